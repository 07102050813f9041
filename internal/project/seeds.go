package project

import (
	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// seedSpec is what a .yml file says about one seed.
type seedSpec struct {
	name    string
	nameAt  diag.Pos
	columns []columnSpec
	tests   *yaml.Node
	options map[string]string
	tags    []string
	meta    map[string]any
	desc    string
	enabled bool
	d       *decoder
}

// seeds reads one `seeds:` block.
func (f fields) seeds() []*seedSpec {
	var out []*seedSpec
	for _, item := range f.items("seeds") {
		s, ok := f.d.fields(item, seedTable)
		if !ok || s.text("name") == "" {
			continue
		}
		cfg := s.table("config")
		s.table("docs")
		spec := &seedSpec{
			name: s.text("name"), nameAt: s.pos("name"), d: f.d, desc: s.text("description"),
			columns: s.columns("columns"), tests: s.node("tests"), options: s.options("csv"),
			tags:    append(s.texts("tags"), cfg.texts("tags")...),
			meta:    overlay(s.values("meta"), cfg.values("meta")),
			enabled: s.boolean("enabled", true) && cfg.boolean("enabled", true),
		}
		for _, delimiter := range []string{s.text("delimiter"), cfg.text("delimiter")} {
			if delimiter == "" {
				continue
			}
			if spec.options == nil {
				spec.options = map[string]string{}
			}
			spec.options["delimiter"] = delimiter
		}
		spec.columnTypes(cfg)
		out = append(out, spec)
	}
	return out
}

// columnTypes takes dbt's column_types.
func (s *seedSpec) columnTypes(cfg fields) {
	for _, p := range cfg.entries("column_types") {
		c := s.d.column(p.key, p.name, p.value)
		known := false
		for i := range s.columns {
			if folded(s.columns[i].Name) == folded(c.Name) {
				known = true
				if s.columns[i].Type == "" {
					s.columns[i].Type, s.columns[i].TypePos = c.Type, c.TypePos
				}
			}
		}
		if !known {
			s.columns = append(s.columns, c)
		}
	}
}

// apply puts what is said about a seed into it.
func (s *seedSpec) apply(seed *Seed) {
	seed.Description, seed.Tags, seed.Meta = s.desc, s.tags, s.meta
	seed.Columns, seed.Options, seed.Pos = plainColumns(s.columns), s.options, s.nameAt
}
