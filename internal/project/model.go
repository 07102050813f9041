package project

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// config is the configuration of one model on its way: defaults of folders, then
// frontmatter, then config() in the body. A later layer wins; tags add up and
// meta is merged by key.
type config struct {
	mat      Materialization
	strategy string
	layout   string
	path     string
	enabled  bool
	enforced bool
	onChange string
	tags     []string
	meta     map[string]any
	docs     map[string]any
	values   map[string]any      // every key as written, by its own name
	pos      map[string]diag.Pos // where
}

// defaultConfig is what holds where nothing is written.
func defaultConfig() config {
	return config{mat: Table, strategy: "append", layout: "file", enabled: true, onChange: "fail"}
}

// clone gives a copy whose maps can be changed.
func (c config) clone() config {
	c.tags = c.tags[:len(c.tags):len(c.tags)]
	c.meta, c.docs = maps.Clone(c.meta), maps.Clone(c.docs)
	c.values, c.pos = maps.Clone(c.values), maps.Clone(c.pos)
	return c
}

func (c *config) note(f fields, name string, value any) {
	if c.values == nil {
		c.values, c.pos = map[string]any{}, map[string]diag.Pos{}
	}
	c.values[name] = value
	c.pos[name] = f.pos(name)
}

// apply lays one layer over the configuration. c must own its maps.
func (c *config) apply(f fields) {
	if n := f.node("materialization"); n != nil || f.has("materialization") {
		if mat, ok := f.materialization(); ok {
			c.mat = mat
			c.note(f, "materialization", string(mat))
		}
	}
	for _, word := range []struct {
		key string
		to  *string
	}{{"strategy", &c.strategy}, {"layout", &c.layout}, {"on_schema_change", &c.onChange}} {
		if v := f.text(word.key); v != "" {
			*word.to = v
			c.note(f, word.key, v)
		}
	}
	if n := f.node("path"); n != nil {
		c.applyPath(f, n)
	}
	if f.has("enabled") {
		c.enabled = f.boolean("enabled", true)
		c.note(f, "enabled", c.enabled)
	}
	if f.has("contract") {
		c.enforced = f.contract()
		c.note(f, "contract", c.enforced)
	}
	if tags := f.texts("tags"); len(tags) > 0 {
		c.applyTags(f, tags)
	}
	if meta := f.values("meta"); meta != nil {
		c.meta = overlay(c.meta, meta)
		c.note(f, "meta", c.meta)
	}
	if f.node("docs") != nil {
		f.table("docs")
		c.docs = overlay(c.docs, f.values("docs"))
		c.note(f, "docs", c.docs)
	}
}

// overlay gives base with the keys of top over it, in a map of its own.
func overlay(base, top map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}

func (c *config) applyPath(f fields, n *yaml.Node) {
	path := strings.TrimSuffix(slashed(strings.TrimSpace(f.text("path"))), "/")
	path = strings.TrimPrefix(path, "./")
	if path == "." {
		path = ""
	}
	if problem := folderProblem(path); problem != "" {
		f.d.add(diag.Errorf(diag.BadPath, f.d.pos(n), "`path` cannot be %q: %s", n.Value, problem))
		return
	}
	c.path = path
	c.note(f, "path", path)
}

func (c *config) applyTags(f fields, tags []string) {
	for _, tag := range tags {
		tag = strings.TrimSpace(tag)
		if tag == "" || strings.ContainsAny(tag, ", ") {
			f.d.add(diag.Errorf(diag.BadValue, f.pos("tags"), "the tag %q cannot be selected: tags have no spaces or commas", tag))
			continue
		}
		known := false
		for _, t := range c.tags {
			known = known || t == tag
		}
		if !known {
			c.tags = append(c.tags, tag)
		}
	}
	c.note(f, "tags", c.tags)
}

// materialization reads how the model is published.
func (f fields) materialization() (Materialization, bool) {
	n := f.node("materialization")
	if n == nil {
		f.d.add(diag.Errorf(diag.BadValue, f.pos("materialization"), "%s has no value", f.label("materialization")).
			WithHint("allowed: %s", strings.Join(materializations, ", ")))
		return "", false
	}
	if n.Kind != yaml.ScalarNode {
		f.d.expected(n, f.label("materialization"), "text")
		return "", false
	}
	switch strings.ToLower(strings.TrimSpace(n.Value)) {
	case "full_refresh", "full-refresh":
		return Table, true
	case "incremental_append", "append":
		return Incremental, true
	}
	word := f.d.word(n, f.label("materialization"), materializations)
	return Materialization(word), word != ""
}

// contract reads `contract: enforced`, `contract: {enforced: true}` or false.
func (f fields) contract() bool {
	n := f.node("contract")
	if n == nil {
		return false
	}
	if n.Kind == yaml.MappingNode {
		return f.table("contract").boolean("enforced", false)
	}
	switch strings.ToLower(strings.TrimSpace(n.Value)) {
	case "enforced", "true":
		return true
	case "false", "none":
		return false
	}
	f.d.badHint(n, "write `contract: enforced`", "`contract` cannot be %s", describe(n))
	return false
}

// fill puts the configuration into the model.
func (c config) fill(m *Model) {
	m.Materialization, m.Path = c.mat, c.path
	m.Strategy, m.Layout = "", ""
	switch c.mat {
	case Incremental:
		m.Strategy = c.strategy
	case Table:
		m.Layout = c.layout
	}
	m.OnSchemaChange, m.ContractEnforced = c.onChange, c.enforced
	m.Tags, m.Meta, m.Docs = c.tags, c.meta, c.docs
	m.Config, m.ConfigPos = c.values, c.pos
	if m.Config == nil {
		m.Config = make(map[string]any, 2)
	}
	m.Config["materialization"] = string(c.mat)
	m.Config["materialized"] = string(c.mat)
}

// layerOnly are keys that mean something for one materialization only; written
// at a model of another they are a mistake.
var layerOnly = []struct {
	key string
	mat Materialization
}{
	{"strategy", Incremental}, {"layout", Table},
	{"input", Ingest}, {"root", Ingest}, {"root_by", Ingest}, {"records", Ingest}, {"families", Ingest},
	{"on_bad_record", Ingest}, {"max_rejects", Ingest}, {"unknown_fields", Ingest}, {"type_mismatch", Ingest},
	{"occurrences", Ingest}, {"mode", Ingest}, {"on_changed_file", Ingest}, {"workers", Ingest}, {"memory_limit", Ingest},
}

// writtenKey is a key that stands in a frontmatter.
type writtenKey struct {
	name  string
	label string // as it was written, for messages
	pos   diag.Pos
}

// written lists the keys that are there.
func (f fields) written() []writtenKey {
	var keys []writtenKey
	for i, k := range f.t.keys {
		if f.where[i] > 0 {
			keys = append(keys, writtenKey{name: k.name, label: f.label(k.name), pos: f.keyPos(k.name)})
		}
	}
	return keys
}

// layerKnown reports whether the frontmatter makes no mistake about the
// materialization, from which others would follow.
func (mf *modelFile) layerKnown() bool {
	_, taken := mf.m.ConfigPos["materialization"]
	return taken || !slices.ContainsFunc(mf.written, func(k writtenKey) bool { return k.name == "materialization" })
}

// checkLayer reports keys of the frontmatter that its materialization does not
// have.
func (mf *modelFile) checkLayer() {
	for _, k := range mf.written {
		for _, only := range layerOnly {
			if only.key == k.name && only.mat != mf.m.Materialization {
				mf.d.add(diag.Errorf(diag.Misplaced, k.pos, "%s belongs to `materialization: %s`, this model is %s",
					k.label, only.mat, mf.m.Materialization))
			}
		}
	}
}

// checkModel reports what cannot be true of a model as a whole.
func (d *decoder) checkModel(m *Model, at diag.Pos, tests []*Test) {
	if m.ContractEnforced {
		if len(m.Columns) == 0 {
			d.add(diag.Errorf(diag.MissingKey, at, "`contract: enforced` needs `columns` with their types"))
		}
		for _, c := range m.Columns {
			if c.Type == "" && c.TypePos.IsZero() { // one that is no type was told
				d.add(diag.Errorf(diag.MissingKey, c.Pos, "`contract: enforced` needs the type of the column %q", c.Name).
					WithHint("write `%s: {type: …}`", c.Name))
			}
		}
	}
	if m.Materialization == Ephemeral && len(tests) > 0 {
		d.add(diag.Errorf(diag.Misplaced, tests[0].Pos, "an ephemeral model is never published, so that nothing can be tested").
			WithHint("make it a view, or test a model that reads it"))
	}
}
