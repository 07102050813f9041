package project

import (
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// unitTests reads a `unit_tests:` block. model is the model in whose
// frontmatter it stands, "" in a .yml file.
func (f fields) unitTests(model string) []*UnitTest {
	var out []*UnitTest
	for _, item := range f.items("unit_tests") {
		u, ok := f.d.fields(item, unitTestTable)
		if !ok {
			continue
		}
		if t := u.unitTest(model); t != nil {
			out = append(out, t)
		}
	}
	return out
}

func (f fields) unitTest(model string) *UnitTest {
	t := &UnitTest{Name: f.text("name"), Model: f.text("model"), Description: f.text("description"), Pos: f.pos("name")}
	t.modelPos = f.pos("model")
	switch {
	case t.Model == "" && model == "":
		f.d.add(diag.Errorf(diag.MissingKey, f.d.pos(f.at), "a unit test needs the key \"model\""))
		return nil
	case t.Model == "":
		t.Model = model
	case model != "" && folded(t.Model) != folded(model):
		f.d.add(diag.Errorf(diag.BadValue, t.modelPos, "the unit test stands at the model %q and names %q", model, t.Model))
		return nil
	}
	if n := f.node("name"); n != nil && n.Kind == yaml.ScalarNode {
		if problem := nameProblem(t.Name); problem != "" {
			f.d.add(badName(f.d.pos(n), "a unit test", t.Name, problem))
			return nil
		}
	}
	cfg := f.table("config")
	t.Tags = cfg.texts("tags")
	for _, item := range f.items("given") {
		if g, ok := f.d.fields(item, givenTable); ok {
			t.given(g)
		}
	}
	if n := f.node("expect"); n != nil {
		t.Expect = f.table("expect").fixture()
	}
	if f.node("expect_table") != nil {
		final := f.table("expect_table").fixture()
		t.ExpectTable = &final
	}
	over := f.table("overrides")
	t.macrosPos = over.pos("macros")
	t.Vars, t.Macros = over.values("vars"), over.values("macros")
	t.Now = f.moment("now")
	if t.Name == "" || !cfg.boolean("enabled", true) {
		return nil
	}
	return t
}

// given reads one input.
func (t *UnitTest) given(g fields) {
	n := g.node("input")
	if n == nil {
		return
	}
	call, problem := parseReference(n)
	if problem != "" {
		g.d.badHint(n, "write ref('model'), source('group', 'table') or this", "`input` cannot be %s: %s", describe(n), problem)
		return
	}
	fixture := g.fixture()
	fixture.Input, fixture.IsSource, fixture.call, fixture.inputPos = call.name(), call.source, call, g.d.pos(n)
	for _, other := range t.Given {
		if folded(other.Input) == folded(fixture.Input) && other.IsSource == fixture.IsSource {
			g.d.add(diag.Errorf(diag.DuplicateKey, g.d.pos(n), "the input %s is given twice", n.Value).
				WithNote(other.inputPos, "the first one"))
			return
		}
	}
	t.Given = append(t.Given, fixture)
}

// fixture reads rows in one of their forms.
func (f fields) fixture() Fixture {
	out := Fixture{Pos: f.d.pos(f.at)}
	format := f.text("format")
	rows, csv, sql := f.node("rows"), f.node("csv"), f.node("sql")
	forms := 0
	for _, n := range []*yaml.Node{rows, csv, sql} {
		if n != nil {
			forms++
		}
	}
	if forms > 1 {
		f.d.add(diag.Errorf(diag.BadValue, f.d.pos(f.at), "rows stand in one of `rows`, `csv` and `sql`"))
		return out
	}
	switch {
	case csv != nil:
		out.setCSV(f, csv)
	case sql != nil:
		out.setSQL(f, sql)
	case rows == nil && format == "csv", rows == nil && format == "sql":
		f.d.add(diag.Errorf(diag.MissingKey, f.d.pos(f.at), "`format: %s` needs `rows` with text", format))
	case rows == nil:
		out.Rows, out.Unsaid = []map[string]any{}, true
	case format == "csv":
		out.setCSV(f, rows)
	case format == "sql":
		out.setSQL(f, rows)
	case rows.Kind == yaml.ScalarNode:
		f.d.badHint(rows, "write `csv: |` or `sql: |`, or a list of mappings", "`rows` must be a list of rows, not text")
	default:
		out.setRows(f)
	}
	return out
}

func (x *Fixture) setCSV(f fields, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		f.d.expected(n, "the rows", "CSV with a header line")
		return
	}
	x.CSV = &n.Value
}

func (x *Fixture) setSQL(f fields, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		f.d.expected(n, "the rows", "a query")
		return
	}
	x.SQL, x.SQLLine = n.Value, n.Line
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		x.SQLLine++
	}
}

func (x *Fixture) setRows(f fields) {
	x.Rows = []map[string]any{}
	seen := map[string]string{}
	for _, item := range f.items("rows") {
		if item.Kind != yaml.MappingNode {
			f.d.expected(item, "a row", "a mapping from column to value")
			continue
		}
		row := map[string]any{}
		for _, p := range f.d.pairs(item) {
			if first, ok := seen[folded(p.name)]; !ok {
				seen[folded(p.name)] = p.name
				x.Columns = append(x.Columns, p.name)
			} else if first != p.name {
				f.d.bad(p.key, "the columns %q and %q are one column: SQL ignores case", first, p.name)
				continue
			}
			row[p.name] = f.d.rowValue(p.value)
		}
		x.Rows = append(x.Rows, row)
	}
}

// momentLayouts are the spellings of a time that YAML files use.
var momentLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
}

// moment reads a time, UTC where no zone is written.
func (f fields) moment(name string) *time.Time {
	text := strings.TrimSpace(f.text(name))
	if text == "" {
		return nil
	}
	for _, layout := range momentLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			t = t.UTC()
			return &t
		}
	}
	f.d.add(diag.Errorf(diag.BadValue, f.pos(name), "%s cannot be %q", f.label(name), text).
		WithHint("write a time such as 2024-01-31 or 2024-01-31T12:00:00Z"))
	return nil
}
