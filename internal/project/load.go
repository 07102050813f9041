package project

import (
	"context"
	"crypto/sha256"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// loader holds what is only needed while a project is loaded.
type loader struct {
	ctx      context.Context
	o        Options
	p        *Project
	settings *settings
	diags    diag.List
	kinds    *testKinds
	configs  map[string]config // by folder under models/
	models   []*modelFile
	seeds    []*seedSpec
	units    []*UnitTest
	singular []*singularFile

	testFiles     []foundFile
	macroTexts    []string // of p.macros
	disabledSeeds []*Seed
	known         map[string]bool // functions and macros that a unit test may replace
	late          []*decoder      // of project.yml and .yml files, parts of which are read at the end
	fileText      string          // of project.yml
	asked         map[string]any  // what was read of the environment for project.yml
	anew          bool            // nothing is recalled
}

// modelFile is one file of models/ while it is loaded.
type modelFile struct {
	foundFile
	m       *Model
	d       *decoder
	cfg     config
	front   fields // while the file is read: the trees of all files would take much room
	has     bool   // there is frontmatter
	written []writtenKey
	columns []columnSpec
	tests   []*Test
	units   []*UnitTest

	whole    bool      // the file could be read
	parsed   bool      // there is a template
	drawn    *Compiled // what config() was sought in; nil where there is none, or it says nothing of the SQL
	source   source    // where models are recalled
	entry    *entry    // what is kept of the file; nil where nothing is
	recalled bool      // m and tests are what an earlier command made of the same text
	// unsteady says that something was said about the model, or that what was
	// loaded depends on the environment or the run.
	unsteady bool
	vague    bool // there is a mistake in the frontmatter
	failed   bool // the template does
	unread   bool // nothing of the frontmatter could be read
}

// Load reads the whole project. It collects every problem and never stops at the
// first; with errors in the list the project is incomplete and only good for
// SourceText and Mask. It is never nil.
func Load(ctx context.Context, o Options) (*Project, diag.List) {
	l := &loader{ctx: ctx, o: o, p: newProject(o)}
	if !l.load() {
		l = &loader{ctx: ctx, o: o, p: newProject(o), anew: true}
		l.load()
	}
	for _, d := range l.late {
		l.diags = append(l.diags, d.diags...)
	}
	l.p.problems = l.diags.Roots().Sort()
	l.p.maskList()
	for _, d := range l.p.problems {
		if d.Severity == diag.Warning {
			l.p.Warnings = append(l.p.Warnings, d)
		}
	}
	return l.p, l.p.problems
}

// load reads the whole project; false says that what it recalled is out of date.
func (l *loader) load() bool {
	stop := l.recordEnv()
	ok := l.projectFile()
	stop()
	return !ok || l.everything()
}

func newProject(o Options) *Project {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		dir = o.Dir
	}
	p := &Project{Dir: dir}
	p.realDir = realPath(dir)
	p.mask = &mask{}
	for _, secret := range o.Secrets {
		if len(secret) >= leastUnasked {
			p.mask.add(secret)
		}
	}
	p.texts = &texts{virtual: map[string]string{}}
	p.drawn = &drawn{compiled: map[*Model]*Compiled{}}
	p.lost = newLost()
	p.index = &index{nodes: map[string]target{}, sources: map[string]*Source{}}
	p.env = o.Env
	if p.env == nil {
		p.env = func(string) (string, bool) { return "", false }
	}
	return p
}

func (l *loader) env(name string) (string, bool) { return l.p.env(name) }

// everything loads what project.yml points to; false says that what it recalled
// is out of date.
func (l *loader) everything() bool {
	p := l.p
	p.Vars = l.projectVars()
	if l.diags.HasErrors() || l.late[0].diags.HasErrors() {
		addWords(p.lost.yml, l.fileText)
	}
	macros := l.loadMacros()
	p.globals = p.baseGlobals()
	l.kinds = l.ownTests(macros)
	l.prepareFolders()
	files := l.find("models")
	l.openRecall(files)
	l.loadModels(files)
	l.loadProperties(files)
	l.loadSeeds()
	l.loadSingular()
	l.settleSources()
	l.settleNames()
	l.configureModels()
	l.settleModels()
	if p.recall.stale(p.index) {
		return false
	}
	l.keepDrawn()
	l.settleTests()
	l.settleUnitTests()
	l.loadSelectors()
	p.loaded = true
	return true
}

// projectVars lays the command line over project.yml. As in dbt, variables under
// the project's own name count before the others.
func (l *loader) projectVars() map[string]any {
	vars := maps.Clone(l.settings.vars)
	if vars == nil {
		vars = map[string]any{}
	}
	if own, ok := vars[l.settings.name].(*jinja.Dict); ok {
		for k, v := range own.All() {
			if name, ok := k.(string); ok {
				vars[name] = v
			}
		}
	}
	maps.Copy(vars, l.o.Vars)
	return vars
}

// read gives the text of a file without a byte order mark.
func (l *loader) read(f foundFile) (string, bool) {
	b, err := readFile(f.path)
	if err != nil {
		l.report(diag.Errorf(diag.NoProject, diag.Pos{File: f.rel}, "the file cannot be read: %s", err))
		return "", false
	}
	if i := invalidOffset(string(b)); i < len(b) {
		line, col := diag.LineCol(string(b), i)
		l.report(notUTF8(f.rel, line, col))
		return "", false
	}
	return strings.TrimPrefix(string(b), bom), true
}

func notUTF8(file string, line, col int) diag.Diagnostic {
	return diag.Errorf(diag.YAMLSyntax, diag.Pos{File: file, Line: line, Col: col}, "the text is not UTF-8").WithHint("save the file as UTF-8")
}

func (l *loader) report(d diag.Diagnostic) { l.diags = append(l.diags, d) }

// each does work for every index on all cores. Work on one index must touch
// nothing that work on another does.
func each(n int, work func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	// A worker takes indices in chunks, so that handing them out costs nothing
	// beside small files.
	const chunk = 16
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				from := next
				next += chunk
				mu.Unlock()
				if from >= n {
					return
				}
				for i := from; i < min(n, from+chunk); i++ {
					work(i)
				}
			}
		})
	}
	wg.Wait()
}

// prepareFolders computes the defaults of every folder that has some.
func (l *loader) prepareFolders() {
	l.configs = map[string]config{"": defaultConfig()}
	d := &decoder{file: File}
	for _, e := range l.settings.folderN {
		path := strings.Trim(slashed(e.name), "/")
		if path == "" || hasParent(path) {
			d.bad(e.key, "a folder under %s must be named, not %q", l.settings.dirs["models"], e.name)
			continue
		}
		dir := filepath.Join(l.p.Dir, filepath.FromSlash(l.settings.dirs["models"]), filepath.FromSlash(path))
		if !exists(dir) {
			w := diag.Errorf(diag.BadPath, d.pos(e.key), "there is no folder %q under %s", e.name, l.settings.dirs["models"])
			w.Severity = diag.Warning
			if below, ok := strings.CutPrefix(path, l.settings.dirs["models"]+"/"); ok {
				w = w.WithHint("write %q: folders are named from there", below)
			}
			d.add(w)
		}
	}
	paths := slices.Sorted(maps.Keys(l.settings.folders))
	for _, path := range paths {
		// Sorted, so that a folder comes after those around it.
		c := l.folderConfig(path).clone()
		sub := l.settings.folders[path]
		c.apply(sub)
		l.configs[path] = c
	}
	l.diags = append(l.diags, d.diags...)
}

// folderConfig gives the defaults of the deepest folder around a path.
func (l *loader) folderConfig(folder string) config {
	for {
		if c, ok := l.configs[folder]; ok {
			return c
		}
		i := strings.LastIndexByte(folder, '/')
		if i < 0 {
			return l.configs[""]
		}
		folder = folder[:i]
	}
}

// loadModels reads all .sql files under models/.
func (l *loader) loadModels(files []foundFile) {
	all := make([]modelFile, len(files))
	l.models = make([]*modelFile, 0, len(files))
	for i, f := range files {
		switch ext := strings.ToLower(filepath.Ext(f.rel)); ext {
		case ".sql":
			all[i].foundFile = f
			l.models = append(l.models, &all[i])
		case ".py":
			l.p.lost.names[folded(f.stem())] = true
			l.report(diag.Errorf(diag.Unsupported, diag.Pos{File: f.rel}, "rbt has no Python models").WithHint("write the model in SQL"))
		}
	}
	l.recallModels()
	models, decoders := make([]Model, len(l.models)), make([]decoder, len(l.models))
	each(len(l.models), func(i int) {
		l.models[i].m, l.models[i].d = &models[i], &decoders[i]
		l.loadModel(l.models[i])
	})
	for _, mf := range l.models {
		l.diags = append(l.diags, mf.d.diags...)
		mf.unsteady, mf.vague = len(mf.d.diags) > 0, mf.d.diags.HasErrors()
		mf.unread = mf.vague && !mf.has
		mf.d.diags = nil
	}
}

// loadModel reads one model into mf.m; it runs beside others.
func (l *loader) loadModel(mf *modelFile) {
	*mf.d = decoder{file: mf.rel}
	*mf.m = Model{Name: norm.NFC.String(mf.stem()), File: mf.rel, Folder: mf.folder()}
	// The maps of a folder's configuration belong to all of its models.
	mf.cfg = l.folderConfig(mf.folder()).clone()
	if l.unread(mf) && l.p.recall.model(mf) {
		return
	}
	b, err := readFile(mf.path)
	if err != nil {
		mf.d.add(diag.Errorf(diag.NoProject, diag.Pos{File: mf.rel}, "the file cannot be read: %s", err))
		return
	}
	text := string(b)
	s := splitFrontmatter(text)
	mf.m.Body, mf.m.BodyLine = s.body, s.bodyLine
	if l.p.recall != nil {
		mf.source = source{text: sha256.Sum256(b), id: mf.source.id, plain: !strings.HasPrefix(text, bom), body: s.body, bodyLine: s.bodyLine}
		if l.p.recall.model(mf) {
			return
		}
	}
	if i := invalidOffset(text); i < len(text) {
		line, col := diag.LineCol(text, i)
		mf.d.add(notUTF8(mf.rel, line, col))
		return
	}
	if s.has && !s.closed {
		mf.d.add(diag.Errorf(diag.Unclosed, diag.Pos{File: mf.rel, Line: 1, Col: 1}, "the frontmatter is never closed").
			WithHint("end it with a line that is exactly ---"))
		return
	}
	if !s.has && nearFence(s.body) {
		w := diag.Errorf(diag.Misplaced, diag.Pos{File: mf.rel, Line: 1, Col: 1}, "this line does not open frontmatter: it is not exactly ---")
		w.Severity = diag.Warning
		mf.d.add(w)
	}
	if s.has {
		root, list := yamlText{file: mf.rel, text: s.yaml, line: 2}.parse()
		mf.d.diags = append(mf.d.diags, list...)
		if list == nil {
			mf.front, mf.has = mf.d.fields(root, modelTable)
		}
	}
	if mf.has {
		mf.cfg.apply(mf.front)
		l.frontmatter(mf)
		mf.written, mf.front = mf.front.written(), fields{}
	}
	mf.whole = true
}

// nearFence reports a first line that looks like a fence and is none.
func nearFence(body string) bool {
	first, rest, _ := cutLine(body)
	return first != "---" && strings.TrimSpace(first) == "---" && strings.Contains(rest, "\n---")
}

// frontmatter reads what only the model itself can say.
func (l *loader) frontmatter(mf *modelFile) {
	f, m := mf.front, mf.m
	m.Description = f.text("description")
	mf.columns = f.columns("columns")
	m.Columns = plainColumns(mf.columns)
	mf.units = f.unitTests(m.Name)
	r := &testReader{d: mf.d, kinds: l.kinds, node: m.Name}
	tests := f.node("tests")
	if mf.cfg.mat == Ingest {
		before := len(mf.d.diags)
		m.Records = f.records(l.p)
		tests = l.outputTests(r, m, tests, len(mf.d.diags) == before)
	}
	for _, c := range mf.columns {
		r.read(c.tests, c.Name, c.tags)
	}
	r.read(tests, "", nil)
	mf.tests = r.out
}
