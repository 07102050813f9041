package project

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// File is the name of the project file.
const File = "project.yml"

// settings is project.yml with one target laid over it.
type settings struct {
	name    string
	folders map[string]fields // by path under the models folder
	folderN []pair            // in order
	vars    map[string]any
	sources *sourceReader
	dirs    map[string]string // models, seeds, tests, macros: relative to the project, with "/"
	given   map[string]diag.Pos
}

// projectFile reads project.yml into l.p. false means that nothing else can be
// loaded.
func (l *loader) projectFile() bool {
	path := filepath.Join(l.p.Dir, File)
	text, err := os.ReadFile(path)
	if err != nil {
		d := diag.Errorf(diag.NoProject, diag.Pos{File: File}, "there is no %s in %s", File, l.p.Dir).
			WithHint("run `rbt init`, or name the project's folder with --project-dir")
		if !os.IsNotExist(err) {
			d = diag.Errorf(diag.NoProject, diag.Pos{File: File}, "%s cannot be read: %s", path, err)
		}
		l.diags = append(l.diags, d)
		return false
	}
	l.fileText = string(text)
	root, list := yamlText{file: File, text: strings.TrimPrefix(l.fileText, bom), line: 1}.parse()
	l.diags = append(l.diags, list...)
	if list != nil {
		return false
	}
	if root == nil {
		root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	}
	l.renderScalars(root)
	d := &decoder{file: File}
	f, ok := d.fields(root, projectTable)
	if ok {
		l.targets(f)
	}
	l.late = append(l.late, d)
	return ok && l.settings != nil
}

// renderScalars replaces {{ env_var(…) }} in the values of project.yml.
func (l *loader) renderScalars(root *yaml.Node) {
	if root.Kind != yaml.ScalarNode {
		for i, c := range root.Content {
			// Conditions are rendered with the context of models, once that is
			// known.
			if root.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains(conditionKeys, root.Content[i-1].Value) {
				continue
			}
			l.renderScalars(c)
		}
		return
	}
	if !strings.Contains(root.Value, "{{") && !strings.Contains(root.Value, "{%") {
		return
	}
	text, err := l.p.renderValue(l.ctx, root)
	if err != nil {
		for _, d := range asList(err, diag.Pos{File: File, Line: root.Line, Col: 1}) {
			l.report(inScalar(d, root))
		}
		return
	}
	// What a variable holds is text, whatever it looks like.
	root.Value, root.Tag, root.Style = text, "!!str", yaml.DoubleQuotedStyle
}

// conditionKeys are keys of tests that hold SQL.
var conditionKeys = []string{"where", "expression", "sql"}

// asList makes diagnostics of an error, with a place where it has none.
func asList(err error, at diag.Pos) diag.List {
	switch e := err.(type) {
	case nil:
		return nil
	case diag.List:
		return e
	case diag.Diagnostic:
		if e.Pos.IsZero() {
			e.Pos = at
		}
		return diag.List{e}
	default:
		return diag.List{diag.Errorf(diag.TemplateHost, at, "%s", err)}
	}
}

// targets chooses the target, lays it over the project, and checks all targets.
func (l *loader) targets(f fields) {
	entries := f.entries("targets")
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
		if problem := nameProblem(e.name); problem != "" {
			f.d.add(badName(f.d.pos(e.key), "a target", e.name, problem))
		}
	}
	chosen, at := l.o.Target, diag.Pos{File: "--target"}
	if v, ok := l.env("RBT_TARGET"); chosen == "" && ok {
		chosen, at = v, diag.Pos{File: "RBT_TARGET"}
	}
	if chosen == "" {
		chosen, at = f.text("default_target"), f.pos("default_target")
	}
	if chosen == "" && len(names) == 1 {
		chosen = names[0]
	}
	l.p.Target = chosen
	if chosen == "" {
		l.p.Target = "default"
	}
	if chosen != "" && !slices.Contains(names, chosen) && !(len(names) == 0 && chosen == "default") {
		d := diag.Errorf(diag.UnknownNode, at, "there is no target %q", chosen)
		if hint := suggestion(chosen, names); hint != "" {
			d = d.WithHint("%s", hint)
		} else if len(names) > 0 {
			d = d.WithHint("targets: %s", strings.Join(names, ", "))
		} else {
			d = d.WithHint("project.yml has no `targets`")
		}
		f.d.add(d)
	}
	lakes, lakePos := []lakeDir{}, f.pos("lake")
	l.p.targetLakes = make(map[string]string, len(entries)+1)
	for _, e := range entries {
		t, ok := f.d.fields(e.value, targetTable)
		switch {
		case !ok:
		case e.name != chosen && isNull(e.value): // its lake is that of the project
			scratch := &Project{Dir: l.p.Dir, realDir: l.p.realDir}
			l.readSettings(&decoder{file: File}, f.at, scratch, false)
			l.p.targetLakes[e.name] = scratch.LakeDir
		case e.name == chosen && t.has("lake"):
			lakePos = t.pos("lake")
		case e.name != chosen && !isNull(e.value):
			scratch := &Project{Dir: l.p.Dir, realDir: l.p.realDir}
			l.readSettings(f.d, overlayNode(f.at, t.at), scratch, false)
			lakes = append(lakes, lakeDir{scratch.LakeDir, t.pos("lake"), e.name})
			l.p.targetLakes[e.name] = scratch.LakeDir
		}
	}
	merged := f.at
	for _, e := range entries {
		if e.name == chosen && e.value.Kind == yaml.MappingNode {
			merged = overlayNode(f.at, e.value)
		}
	}
	l.settings = l.readSettings(f.d, merged, l.p, true)
	lakes = append(lakes, lakeDir{l.p.LakeDir, lakePos, l.p.Target})
	l.p.targetLakes[l.p.Target] = l.p.LakeDir
	l.checkLakes(f.d, lakes)
}

type lakeDir struct {
	dir    string
	pos    diag.Pos
	target string
}

// checkLakes reports lakes that lie in each other, which would read each
// other's files.
func (l *loader) checkLakes(d *decoder, lakes []lakeDir) {
	slices.SortFunc(lakes, func(a, b lakeDir) int {
		return cmp.Or(strings.Compare(a.dir, b.dir), strings.Compare(a.target, b.target))
	})
	for i := 1; i < len(lakes); i++ {
		a, b := lakes[i-1], lakes[i]
		if a.dir != "" && a.dir != b.dir && within(b.dir, a.dir) {
			d.add(diag.Errorf(diag.LakeNested, b.pos, "the lake of target %s lies in the lake of target %s", b.target, a.target).
				WithNote(a.pos, "the outer lake"))
		}
	}
}

// overlayNode gives base with the keys of top over it: mappings are merged key
// by key, everything else is replaced.
func overlayNode(base, top *yaml.Node) *yaml.Node {
	base, top = resolved(base), resolved(top)
	if base == nil || base.Kind != yaml.MappingNode || top.Kind != yaml.MappingNode {
		return top
	}
	out := *base
	out.Content = slices.Clone(base.Content)
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		at := -1
		for j := 0; j+1 < len(out.Content); j += 2 {
			if out.Content[j].Value == key.Value {
				at = j
				break
			}
		}
		if at < 0 {
			out.Content = append(out.Content, key, value)
			continue
		}
		out.Content[at], out.Content[at+1] = key, overlayNode(out.Content[at+1], value)
	}
	return &out
}

// readSettings reads the merged project file into p. Only for the target in
// force do flags and environment count.
func (l *loader) readSettings(d *decoder, merged *yaml.Node, p *Project, inForce bool) *settings {
	f, ok := d.fields(merged, projectTable)
	if !ok {
		return nil
	}
	s := &settings{name: f.text("name"), vars: f.values("vars"), dirs: map[string]string{}, given: map[string]diag.Pos{}}
	if n := f.node("name"); n != nil && n.Kind == yaml.ScalarNode {
		if problem := nameProblem(s.name); problem != "" {
			d.add(badName(d.pos(n), "the project", s.name, problem))
		}
	}
	p.Name = s.name
	l.readRoots(f, p)
	for _, key := range []string{"models", "seeds", "tests", "macros"} {
		s.dirs[key] = f.inputFolder(key)
		if n := f.node(key); n != nil && n.Kind == yaml.ScalarNode {
			s.given[key] = f.pos(key)
		}
	}
	lake, target := "", ""
	if inForce {
		lake, target = l.o.Lake, l.o.TargetPath
	}
	at := map[string]diag.Pos{}
	p.LakeDir, at["lake"] = l.outputFolder(f, p, "lake", lake, "RBT_LAKE", inForce)
	p.TargetDir, at["target"] = l.outputFolder(f, p, "target", target, "RBT_TARGET_PATH", inForce)
	f.checkFolders(p, s, at)
	l.readEngine(f, p, inForce)
	s.folders, s.folderN = map[string]fields{}, f.entries("folders")
	for _, e := range s.folderN {
		if sub, ok := d.fields(e.value, folderTable); ok {
			s.folders[strings.Trim(slashed(e.name), "/")] = sub
		}
	}
	s.sources = &sourceReader{p: p}
	s.sources.read(f)
	return s
}

func (l *loader) readRoots(f fields, p *Project) {
	for _, e := range f.entries("roots") {
		dir := slashed(strings.TrimSpace(e.value.Value))
		switch {
		case e.value.Kind == yaml.ScalarNode && foreignPath(dir, "reads files") != "":
			f.d.add(diag.Errorf(diag.BadPath, f.d.pos(e.value), "%s", foreignPath(dir, "reads files")))
			continue
		case e.value.Kind != yaml.ScalarNode || dir == "":
			f.d.expected(e.value, "the root `"+e.name+"`", "a folder")
			continue
		case nameProblem(e.name) != "":
			f.d.add(badName(f.d.pos(e.key), "a root", e.name, nameProblem(e.name)))
			continue
		}
		if isDrive(dir) && runtime.GOOS != "windows" {
			f.d.add(diag.Errorf(diag.BadPath, f.d.pos(e.value), "the path names a Windows drive, which this system does not have"))
			continue
		}
		full := filepath.FromSlash(dir)
		if !isAbs(dir) {
			full = filepath.Join(p.Dir, full)
		}
		p.roots = append(p.roots, root{name: e.name, dir: filepath.Clean(full)})
	}
	for _, r := range p.roots {
		p.realRoots = append(p.realRoots, realPath(r.dir))
	}
}

// inputFolder reads one of the folders of the project's own files.
func (f fields) inputFolder(key string) string {
	if n := f.node(key); n != nil && n.Kind == yaml.MappingNode {
		f.d.add(diag.Errorf(diag.Unsupported, f.keyPos(key), "%s names a folder; dbt's mapping of defaults does not stand here", f.label(key)).
			WithHint("write defaults of models under `folders:`, and those of seeds and tests at each of them"))
		return key
	}
	text := slashed(strings.TrimSpace(f.text(key)))
	if text == "" {
		return key
	}
	clean := filepath.ToSlash(filepath.Clean(text))
	if isAbs(text) || clean == ".." || strings.HasPrefix(clean, "../") {
		f.d.add(diag.Errorf(diag.BadPath, f.pos(key), "%s must be a folder of the project, not %q", f.label(key), text))
		return key
	}
	return clean
}

// outputFolder settles lake or target, and where that is said: flag, environment,
// file, default.
func (l *loader) outputFolder(f fields, p *Project, key, flag, env string, inForce bool) (string, diag.Pos) {
	text, pos := f.text(key), f.pos(key)
	if text == "" {
		text = key
	}
	if inForce {
		if v, ok := l.env(env); ok && v != "" {
			text, pos = v, diag.Pos{File: env}
		}
		if flag != "" {
			text, pos = flag, diag.Pos{File: map[string]string{"lake": "--lake", "target": "--target-path"}[key]}
		}
	}
	if pos.File != File {
		// Flags and environment come from whoever runs rbt, not from a file.
		if !filepath.IsAbs(text) {
			text = filepath.Join(p.Dir, text)
		}
		return filepath.Clean(text), pos
	}
	dir, problem, hint := p.outputDir(text)
	if problem != "" {
		d := diag.Errorf(diag.BadPath, pos, "%s: %s", f.label(key), problem)
		if hint != "" {
			d = d.WithHint("%s", hint)
		}
		f.d.add(d)
		return filepath.Join(p.Dir, key), pos
	}
	return dir, pos
}

// checkFolders reports folders that would swallow each other: `rbt clean`
// removes the target folder, and a lake holds nothing but what rbt published. at
// is where the two are said.
func (f fields) checkFolders(p *Project, s *settings, at map[string]diag.Pos) {
	clash := func(key, msg string, args ...any) {
		f.d.add(diag.Errorf(diag.BadPath, at[key], msg, args...))
	}
	if within(p.LakeDir, p.TargetDir) || within(p.TargetDir, p.LakeDir) {
		key := "lake"
		if at[key].File == File { // a flag or the environment is what is new
			key = "target"
			if at[key].File == File {
				key = "lake"
			}
		}
		clash(key, "the lake and the target folder must not lie in each other")
	}
	for _, key := range []string{"models", "seeds", "tests", "macros"} {
		dir := filepath.Join(p.Dir, filepath.FromSlash(s.dirs[key]))
		if within(dir, p.LakeDir) {
			clash("lake", "the lake must not hold the folder `%s`", key)
		}
		if within(dir, p.TargetDir) {
			clash("target", "the target folder must not hold the folder `%s`", key)
		}
	}
}

// readEngine settles the `engine:` block.
func (l *loader) readEngine(f fields, p *Project, inForce bool) {
	e := f.table("engine")
	p.Engine = Engine{
		Threads: e.integer("threads", 0), DuckDBThreads: e.integer("duckdb_threads", 0),
		MemoryLimit: e.text("memory_limit"), Settings: e.textMap("settings"),
	}
	for _, s := range e.entries("settings") {
		if p.Engine.SettingPlaces == nil {
			p.Engine.SettingPlaces = map[string]diag.Pos{}
		}
		p.Engine.SettingPlaces[s.name] = f.d.pos(s.key)
	}
	if p.Engine.MemoryLimit == "" {
		p.Engine.MemoryLimit = "80%"
	} else if problem := sizeProblem(p.Engine.MemoryLimit); problem != "" {
		f.d.add(diag.Errorf(diag.BadValue, e.pos("memory_limit"), "`memory_limit` cannot be %q: %s", p.Engine.MemoryLimit, problem))
	}
	if !inForce {
		return
	}
	p.Engine.Threads = l.envInt(f.d, "RBT_THREADS", p.Engine.Threads)
	p.Engine.DuckDBThreads = l.envInt(f.d, "RBT_DUCKDB_THREADS", p.Engine.DuckDBThreads)
	if v, ok := l.env("RBT_MEMORY_LIMIT"); ok && v != "" {
		p.Engine.MemoryLimit = v
		if problem := sizeProblem(v); problem != "" {
			f.d.add(diag.Errorf(diag.BadValue, diag.Pos{File: "RBT_MEMORY_LIMIT"}, "it cannot be %q: %s", v, problem))
		}
	}
	if l.o.Threads > 0 {
		p.Engine.Threads = l.o.Threads
	}
}

func (l *loader) envInt(d *decoder, name string, def int) int {
	v, ok := l.env(name)
	if !ok || v == "" {
		return def
	}
	if !plainInt.MatchString(v) || v[0] == '-' || len(v) > 6 {
		d.add(diag.Errorf(diag.BadValue, diag.Pos{File: name}, "it must be a whole number, 0 or more, not %q", v))
		return def
	}
	return atoi(v)
}

// sizeProblem says why a text is no amount of memory, "" if it is one.
func sizeProblem(text string) string {
	number := strings.TrimRight(strings.TrimSpace(text), "%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.ToUpper(strings.TrimSpace(strings.TrimSpace(text)[len(number):]))
	if !anyNumber.MatchString(number) || strings.HasPrefix(number, "-") {
		return "write a number and a unit, as 4GB or 80%"
	}
	if !slices.Contains([]string{"%", "KB", "MB", "GB", "TB", "KIB", "MIB", "GIB", "TIB"}, unit) {
		return "its unit is one of %, KB, MB, GB, TB, KiB, MiB, GiB, TiB"
	}
	return ""
}

// renderValue renders a value of project.yml, which sees only env_var.
func (p *Project) renderValue(ctx context.Context, n *yaml.Node) (string, error) {
	return p.renderText(ctx, File, n.Value, n.Line, map[string]any{"env_var": p.envVar(true)})
}
