package project

import (
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// columnSpec is a declared column with the tests that stand at it.
type columnSpec struct {
	Column
	tests *yaml.Node // nil if there are none
	tags  []string
}

// columns reads declared columns: a mapping from name to type or to a mapping,
// or dbt's list of mappings with a name.
func (f fields) columns(name string) []columnSpec {
	n := f.node(name)
	if n == nil {
		return nil
	}
	var out []columnSpec
	switch n.Kind {
	case yaml.MappingNode:
		pairs := f.d.pairs(n)
		for i := 0; i < len(pairs); i++ {
			if text, size := tornType(pairs[i:]); size > 0 {
				f.d.badHint(pairs[i].value, "put it in quotes: '"+strings.ReplaceAll(text, "'", "''")+"'",
					"%q is not a type: the comma in it ends the value", pairs[i].value.Value)
				i += size
				continue
			}
			out = append(out, f.d.column(pairs[i].key, pairs[i].name, pairs[i].value))
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			item = resolved(item)
			c, ok := f.d.fields(item, columnTable)
			if !ok {
				continue
			}
			if c.text("name") == "" {
				f.d.add(diag.Errorf(diag.MissingKey, f.d.pos(item), "a column in a list needs the key \"name\""))
				continue
			}
			out = append(out, c.column(c.node("name"), c.text("name")))
		}
	default:
		f.d.expected(n, f.label(name), "a mapping from column to type")
	}
	f.d.distinctColumns(out)
	return out
}

func (d *decoder) column(key *yaml.Node, name string, value *yaml.Node) columnSpec {
	if !isNull(value) && value.Kind == yaml.ScalarNode {
		return columnSpec{Column: Column{Name: name, Type: d.typeText(value), Pos: d.pos(key), TypePos: d.pos(value)}}
	}
	f, _ := d.fields(value, columnTable)
	if n := f.node("name"); n != nil && n.Value != name {
		d.bad(n, "the column is called %q by its key and %q here", name, n.Value)
	}
	return f.column(key, name)
}

// column reads a column's mapping.
func (f fields) column(key *yaml.Node, name string) columnSpec {
	c := columnSpec{
		Column: Column{Name: name, Description: f.text("description"), Pos: f.d.pos(key)},
		tests:  f.node("tests"),
		tags:   f.texts("tags"),
	}
	if n := f.node("type"); n != nil {
		if n.Kind != yaml.ScalarNode {
			f.d.expected(n, f.label("type"), "text")
		} else {
			c.Type, c.TypePos = f.d.typeText(n), f.d.pos(n)
		}
	}
	return c
}

// typeText gives a declared type that is safe to stand in SQL.
func (d *decoder) typeText(n *yaml.Node) string {
	text := strings.TrimSpace(n.Value)
	if problem := typeProblem(text); problem != "" {
		d.bad(n, "%q is not a type: %s", text, problem)
		return ""
	}
	if word := unknownType(text); word != "" {
		hint := "the types are those of DuckDB"
		if near := diag.Nearest(word, typeNames); near != "" {
			hint = "did you mean " + near + "?"
		}
		d.badHint(n, hint, "%q is not a type: DuckDB has no type %s", text, word)
		return ""
	}
	return text
}

// tornType puts together a type that stands without quotes in {…}, where YAML
// takes its commas for ends of values and the rest for keys, as in
// {a: DECIMAL(10,2)}. It gives the whole type and how many pairs after the first
// belong to it, 0 if the first holds a type or is beyond repair.
func tornType(pairs []pair) (text string, size int) {
	first := pairs[0].value
	if isNull(first) || first.Kind != yaml.ScalarNode || first.Style != 0 || typeProblem(first.Value) == "" {
		return "", 0
	}
	text = first.Value
	for i, p := range pairs[1:] {
		if !isNull(p.value) || p.value.Value != "" {
			return "", 0
		}
		text += "," + p.name
		if typeProblem(text) == "" {
			return text, i + 1
		}
	}
	return "", 0
}

// distinctColumns reports names that differ only by case, which SQL takes for
// one column.
func (d *decoder) distinctColumns(columns []columnSpec) {
	seen := make(map[string]int, len(columns))
	for i, c := range columns {
		if c.Name == "" {
			d.add(diag.Errorf(diag.BadValue, c.Pos, "a column without a name"))
			continue
		}
		if j, ok := seen[folded(c.Name)]; ok {
			d.add(diag.Errorf(diag.DuplicateKey, c.Pos, "the columns %q and %q are one column: SQL ignores case",
				columns[j].Name, c.Name).WithNote(columns[j].Pos, "the first one"))
			continue
		}
		seen[folded(c.Name)] = i
	}
}

func plainColumns(specs []columnSpec) []Column {
	if specs == nil {
		return nil
	}
	out := make([]Column, len(specs))
	for i, c := range specs {
		out[i] = c.Column
	}
	return out
}
