package project

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// loadProperties reads the .yml files under models/.
func (l *loader) loadProperties(files []foundFile) {
	for _, f := range files {
		ext := strings.ToLower(filepath.Ext(f.rel))
		if ext != ".yml" && ext != ".yaml" {
			continue
		}
		text, ok := l.read(f)
		if !ok {
			l.p.lost.allYML = true
			continue
		}
		root, list := yamlText{file: f.rel, text: text, line: 1}.parse()
		l.diags = append(l.diags, list...)
		if list.HasErrors() {
			addWords(l.p.lost.yml, text)
		}
		if root == nil {
			continue
		}
		d := &decoder{file: f.rel}
		if p, ok := d.fields(root, ymlTable); ok {
			if p.has("models") {
				d.add(diag.Errorf(diag.Misplaced, p.keyPos("models"), "models are not described in .yml files").
					WithHint("write description, columns and tests into the frontmatter of each model"))
			}
			p.text("version")
			l.settings.sources.read(p)
			l.seeds = append(l.seeds, p.seeds()...)
			l.units = append(l.units, p.unitTests("")...)
		}
		if d.diags.HasErrors() {
			addWords(l.p.lost.yml, text)
		}
		l.late = append(l.late, d)
	}
}

// loadSeeds finds the seeds.
func (l *loader) loadSeeds() {
	for _, f := range l.find("seeds") {
		if strings.EqualFold(filepath.Ext(f.rel), ".csv") {
			l.p.Seeds = append(l.p.Seeds, &Seed{Name: norm.NFC.String(f.stem()), File: f.rel, Folder: f.folder(), Pos: diag.Pos{File: f.rel}})
		}
	}
}

// settleSources puts the sources into the project and reads their tests.
func (l *loader) settleSources() {
	specs := l.settings.sources.settle()
	groups := map[string]bool{}
	for _, s := range specs {
		source := s.Source
		l.p.Sources = append(l.p.Sources, &source)
		l.p.index.sources[folded(s.Group)+"."+folded(s.Name)] = &source
		if !groups[s.Group] {
			groups[s.Group] = true
			l.p.index.groups = append(l.p.index.groups, s.Group)
		}
		r := &testReader{d: s.d, kinds: l.kinds, node: s.Group + "." + s.Name}
		for _, c := range s.columns {
			r.read(c.tests, c.Name, c.tags)
		}
		r.read(s.tests, "", nil)
		l.p.Tests = append(l.p.Tests, r.out...)
	}
}

// named is anything that takes a name in the lake.
type named struct {
	name string
	pos  diag.Pos
	what string
	dim  bool // whether it is enabled cannot be read
}

// settleNames checks the names of models, seeds and ingest outputs and fills the
// index.
func (l *loader) settleNames() {
	l.settleSeeds()
	all := make([]named, 0, len(l.models)+len(l.p.Seeds))
	for _, mf := range l.models {
		if !mf.cfg.enabled {
			continue
		}
		pos := diag.Pos{File: mf.rel}
		if problem := nameProblem(mf.m.Name); problem != "" {
			d := badName(pos, "a model", mf.m.Name, problem)
			if base, version, ok := strings.Cut(mf.m.Name, ".v"); ok {
				d = d.WithHint("name the file %s_v%s.sql; ref('%s', v=%s) finds it", base, version, base, version)
			}
			l.report(d)
			continue
		}
		for _, o := range mf.m.Outputs() {
			what := "model"
			if o.Ref != "" {
				what = "ingest output"
			}
			all = append(all, named{o.Relation, pos, what, mf.unread})
		}
	}
	for _, s := range l.p.Seeds {
		all = append(all, named{s.Name, diag.Pos{File: s.File}, "seed", false})
	}
	seen := make(map[string]int, len(all))
	for i, n := range all {
		place, taken := seen[folded(n.name)]
		if !taken {
			seen[folded(n.name)] = i
			continue
		}
		first := all[place]
		if n.what == "ingest output" && n.pos.File == first.pos.File {
			continue // the ingest's own check says which of its names clash, with their places
		}
		l.p.clash = true
		if n.dim || first.dim {
			continue
		}
		why := ""
		if first.name != n.name {
			why = "; case does not count"
		}
		l.report(diag.Errorf(diag.NameClash, n.pos, "the %s %q has the name of the %s %q in %s%s",
			n.what, n.name, first.what, first.name, first.pos.File, why).
			WithNote(first.pos, "the other one").WithHint("names are unique across models, seeds and ingest outputs: rename one of the files"))
	}
	l.losing()
	l.fillIndex()
	if l.p.recall != nil {
		l.p.recall.names = l.p.index.nameHash()
	}
}

func (l *loader) fillIndex() {
	ix := l.p.index
	ix.nodes = make(map[string]target, len(l.models)+len(l.p.Seeds))
	ix.names = make([]string, 0, len(l.models)+len(l.p.Seeds))
	// Disabled ones first: an enabled one of the same name is what is meant.
	for _, mf := range l.models {
		if !mf.cfg.enabled {
			ix.add(mf.m.Name, target{node: mf.m.Name, disabled: mf.rel})
		}
	}
	for _, s := range l.disabledSeeds {
		ix.add(s.Name, target{node: s.Name, disabled: s.File})
	}
	for _, s := range l.p.Seeds {
		ix.add(s.Name, target{node: s.Name})
	}
	for _, mf := range l.models {
		if !mf.cfg.enabled {
			continue
		}
		for _, o := range mf.m.Outputs() {
			if o.Ref == "" {
				ix.add(mf.m.Name, target{node: mf.m.Name})
				continue
			}
			t := target{node: mf.m.Name, output: o.Relation}
			ix.add(mf.m.Name+"."+o.Ref, t)
			ix.nodes[folded(o.Relation)] = t
		}
		if mf.m.Records != nil && mf.m.Records.root() != "" {
			t := target{node: mf.m.Name}
			ix.nodes[folded(mf.m.Name+"."+mf.m.Records.root())] = t
			ix.nodes[folded(mf.m.Name+"__"+mf.m.Records.root())] = t
		}
	}
}

// settleSeeds joins what .yml files say about seeds to the files.
func (l *loader) settleSeeds() {
	byName := make(map[string]*Seed, len(l.p.Seeds))
	var names []string
	for _, s := range l.p.Seeds {
		if problem := nameProblem(s.Name); problem != "" {
			l.report(badName(diag.Pos{File: s.File}, "a seed", s.Name, problem))
		}
		byName[folded(s.Name)] = s
		names = append(names, s.Name)
	}
	said := map[string]*seedSpec{}
	for _, spec := range l.seeds {
		key := folded(spec.name)
		seed := byName[key]
		if seed == nil {
			d := diag.Errorf(diag.UnknownNode, spec.nameAt, "there is no seed %q", spec.name)
			if hint := suggestion(spec.name, names); hint != "" {
				d = d.WithHint("%s", hint)
			} else {
				d = d.WithHint("put %s.csv into %s/", spec.name, l.settings.dirs["seeds"])
			}
			l.report(d)
			continue
		}
		if first := said[key]; first != nil {
			l.report(diag.Errorf(diag.NameClash, spec.nameAt, "the seed %q is described twice", spec.name).WithNote(first.nameAt, "the first one"))
			continue
		}
		said[key] = spec
		if !spec.enabled {
			l.disabledSeeds = append(l.disabledSeeds, seed)
			l.p.Seeds = slices.DeleteFunc(l.p.Seeds, func(s *Seed) bool { return s == seed })
			continue
		}
		spec.apply(seed)
		r := &testReader{d: spec.d, kinds: l.kinds, node: seed.Name}
		for _, c := range spec.columns {
			r.read(c.tests, c.Name, c.tags)
		}
		r.read(spec.tests, "", nil)
		l.p.Tests = append(l.p.Tests, r.out...)
	}
	slices.SortFunc(l.p.Seeds, func(a, b *Seed) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File)) })
}

// settleModels puts the enabled models into the project.
func (l *loader) settleModels() {
	l.p.Models = slices.Grow(l.p.Models, len(l.models))
	for _, mf := range l.models {
		if !mf.cfg.enabled {
			// Only config() in the body may say so as late as this.
			if t := l.p.index.nodes[folded(mf.m.Name)]; t.node == mf.m.Name && t.disabled == "" && mf.parsed {
				l.p.index.nodes[folded(mf.m.Name)] = target{node: mf.m.Name, disabled: mf.rel}
			}
			l.diags = append(l.diags, mf.d.diags...)
			continue
		}
		if !mf.recalled {
			mf.cfg.fill(mf.m)
			if mf.layerKnown() {
				mf.checkLayer()
				mf.checkBody()
			}
			mf.d.checkModel(mf.m, mf.configPos("contract"), mf.tests)
		}
		l.lose(mf)
		l.diags = append(l.diags, mf.d.diags...)
		mf.unsteady = mf.unsteady || len(mf.d.diags) > 0
		l.p.Models = append(l.p.Models, mf.m)
		l.p.Tests = append(l.p.Tests, mf.tests...)
		l.units = append(l.units, mf.units...)
	}
	slices.SortFunc(l.p.Models, func(a, b *Model) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File)) })
}

// configPos gives where a key of the configuration was written, else the top of
// the file.
func (mf *modelFile) configPos(key string) diag.Pos {
	if pos, ok := mf.m.ConfigPos[key]; ok {
		return pos
	}
	return diag.Pos{File: mf.rel}
}

// checkBody reports SQL under an ingest, which has none.
func (mf *modelFile) checkBody() {
	if mf.m.Materialization != Ingest {
		return
	}
	if mf.m.Records == nil {
		mf.d.add(diag.Errorf(diag.MissingKey, mf.configPos("materialization"), "`materialization: ingest` needs `input` and `records` in the frontmatter"))
		return
	}
	line := mf.m.BodyLine
	for rest := mf.m.Body; rest != ""; line++ {
		text, after, _ := cutLine(rest)
		rest = after
		if trimmed := strings.TrimSpace(text); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			mf.d.add(diag.Errorf(diag.Misplaced, diag.Pos{File: mf.rel, Line: line, Col: 1}, "an ingest has no SQL").
				WithHint("write a model that reads {{ ref('%s') }}", mf.m.Name))
			return
		}
	}
}

// outputTests reads `tables:` among the tests of an ingest and gives the rest. known
// says that all outputs are: otherwise only what looks like another is reported.
func (l *loader) outputTests(r *testReader, m *Model, tests *yaml.Node, known bool) *yaml.Node {
	if tests == nil || tests.Kind != yaml.MappingNode {
		return tests
	}
	rest := *tests
	rest.Content = nil
	for i := 0; i+1 < len(tests.Content); i += 2 {
		key, value := tests.Content[i], resolved(tests.Content[i+1])
		if key.Value != "tables" {
			rest.Content = append(rest.Content, key, tests.Content[i+1])
			continue
		}
		if value.Kind != yaml.MappingNode {
			r.d.expected(value, "`tables`", "a mapping from output to tests")
			continue
		}
		for _, p := range r.d.pairs(value) {
			o, ok := m.output(strings.TrimPrefix(p.name, m.Name+"."))
			if !ok {
				var names []string
				for _, o := range m.Outputs() {
					names = append(names, o.Ref)
				}
				d := diag.Errorf(diag.UnknownNode, r.d.pos(p.key), "the ingest has no output %q", p.name)
				hint := suggestion(p.name, names)
				if hint != "" {
					d = d.WithHint("%s", hint)
				}
				if known || hint != "" {
					r.d.add(d)
				}
				continue
			}
			if o.Ref != "" {
				r.output = o.Relation
			}
			r.read(p.value, "", nil)
			r.output = ""
		}
	}
	return &rest
}
