package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// wideColumns are the columns of the wide model.
var wideColumns = [...]string{
	"id", "customer_id", "product_id", "status", "channel", "quantity", "price", "discount", "gross", "net",
	"ordered_at", "order_day", "order_year", "order_month", "country", "basket", "note",
}

// accepted are the values of the wide model's columns that have few.
const (
	acceptedStatus  = "[placed, paid, shipped, returned, cancelled]"
	acceptedChannel = "[WEB, APP, SHOP, PHONE]"
	acceptedCountry = "[DE, FR, IT, ES, PL, NL, SE, AT]"
	acceptedBasket  = "[bulk, several, single]"
)

// fiftyTests is frontmatter with 50 assertions on the wide model.
func fiftyTests() string {
	var out strings.Builder
	fmt.Fprintf(&out, "columns:\n")
	column := func(name string, tests ...string) {
		fmt.Fprintf(&out, "  %s: {tests: [%s]}\n", name, strings.Join(tests, ", "))
	}
	span := func(low, high string) string { return "{range: {min: " + low + ", max: " + high + "}}" }
	in := func(values string) string { return "{accepted_values: {values: " + values + "}}" }
	match := func(pattern string) string { return "{matches: '" + pattern + "'}" }
	column("id", "not_null", "unique", span("0", "1000000000"))
	column("customer_id", "not_null", span("0", "500000"))
	column("product_id", "not_null", span("0", "20000"))
	column("status", "not_null", in(acceptedStatus), match("^[a-z]+$"))
	column("channel", "not_null", in(acceptedChannel), match("^[A-Z]+$"))
	column("quantity", "not_null", span("1", "9"))
	column("price", "not_null", span("0", "900"))
	column("discount", "not_null", span("0", "0.4"))
	column("gross", "not_null", span("0", "8100"))
	column("net", "not_null", span("0", "8100"))
	column("ordered_at", "not_null")
	column("order_day", "not_null")
	column("order_year", "not_null", span("2024", "2026"))
	column("order_month", "not_null", span("1", "12"))
	column("country", "not_null", in(acceptedCountry), match("^[A-Z]{2}$"))
	column("basket", "not_null", in(acceptedBasket))
	column("note", "not_null", match("^order note [0-9]+$"))
	out.WriteString("tests:\n  - row_count: {min: 1}\n")
	for _, e := range []string{
		"net <= gross", "gross >= price", "quantity > 0", "price >= 0", "discount < 1", "id >= 0", "customer_id >= 0",
		"order_day <= ordered_at", "order_year >= 2024", "length(country) = 2", "length(note) > 10",
		"status <> ''", "gross = price * quantity",
	} {
		fmt.Fprintf(&out, "  - expression: %q\n", e)
	}
	return out.String()
}

// assertionCase is tests on the published model against plain SQL.
type assertionCase struct {
	name, front string
	tests       int
	plain       []string // the questions of the bare side; %s is the relation
	targets     []target
	note        string
}

// fullScan reads every value of every column. A count of a column would not
// do: the engine answers it from the statistics of the file.
func fullScan() string {
	reads := make([]string, len(wideColumns))
	for i, c := range wideColumns {
		reads[i] = "last(" + c + ")"
	}
	return "SELECT " + strings.Join(reads, ", ") + " FROM %s"
}

// valueColumns are the wide model's columns of few values, and those between
// bounds.
func valueColumns() (few, bounded [][2]string) {
	few = [][2]string{
		{"status", acceptedStatus}, {"channel", acceptedChannel}, {"country", acceptedCountry}, {"basket", acceptedBasket},
		{"order_month", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]"},
	}
	bounded = [][2]string{
		{"id", "1000000000"}, {"customer_id", "500000"}, {"product_id", "20000"}, {"quantity", "9"},
		{"price", "900"}, {"discount", "0.4"}, {"gross", "8100"}, {"net", "8100"},
	}
	return few, bounded
}

// someRows is a where that keeps the statistics of files from settling a test.
const someRows = "quantity < 9"

// valueTests are assertions on those columns, enough of them that the start of
// a process does not hide their cost; where, if it is not empty, holds for each.
func valueTests(where string) string {
	few, bounded := valueColumns()
	front := "columns:\n"
	if where != "" {
		where = ", where: '" + where + "'"
	}
	for _, c := range few {
		front += fmt.Sprintf("  %s: {tests: [{accepted_values: {values: %s%s}}]}\n", c[0], c[1], where)
	}
	for _, c := range bounded {
		front += fmt.Sprintf("  %s: {tests: [{range: {min: 0, max: %s%s}}]}\n", c[0], c[1], where)
	}
	return front
}

// valueQueries are the plain queries that ask the same.
func valueQueries(where string) []string {
	few, bounded := valueColumns()
	var queries []string
	if where != "" {
		where = " AND " + where
	}
	for _, c := range few {
		list := strings.ReplaceAll(strings.Trim(c[1], "[]"), ", ", "', '")
		queries = append(queries, "SELECT count(*) FROM %s WHERE "+c[0]+" NOT IN ('"+list+"')"+where)
	}
	for _, c := range bounded {
		queries = append(queries, "SELECT count(*) FROM %s WHERE ("+c[0]+" < 0 OR "+c[0]+" > "+c[1]+")"+where)
	}
	return queries
}

// rowTests are assertions that read every row of their columns, and rowQueries
// the plain queries that ask the same.
const rowTests = "tests:\n  - expression: net <= gross\n  - expression: gross = price * quantity\n  - matches: {column: note, pattern: '^order note [0-9]+$'}\n"

func rowQueries() []string {
	return []string{
		"SELECT count(*) FROM %s WHERE NOT (net <= gross)", "SELECT count(*) FROM %s WHERE NOT (gross = price * quantity)",
		"SELECT count(*) FROM %s WHERE NOT regexp_matches(note, '^order note [0-9]+$')",
	}
}

func assertionCases() []assertionCase {
	cost := func(m metric, limit float64) target {
		return target{side: "rbt", metric: m, against: "bare", max: limit}
	}
	return []assertionCase{
		{
			"not_null of all 17 columns, against a full scan", "tests:\n  - not_null: [" + strings.Join(wideColumns[:], ", ") + "]\n", len(wideColumns),
			[]string{fullScan()}, []target{cost(cpu, 0.1), cost(wall, 0.1)}, "",
		},
		{
			"5 accepted_values and 8 ranges", valueTests(""), 13, valueQueries(""), []target{cost(cpu, 1.2), cost(wall, 1.2)},
			"rbt answers these from footers and dictionaries and starts no engine; the start of either process is most of its figure",
		},
		{
			"the same 13 where " + someRows + ", 2 expressions and a pattern", valueTests(someRows) + rowTests, 16, append(valueQueries(someRows), rowQueries()...),
			[]target{cost(cpu, 1.2), cost(wall, 1.2)}, "no statistics settle these: each side reads the rows",
		},
		{
			"unique of one column, memory_limit 1GB", "columns:\n  id: {tests: [unique]}\n", 1,
			[]string{"SELECT count(*) FROM (SELECT id FROM %s GROUP BY id HAVING count(*) > 1)"},
			[]target{{side: "rbt", metric: peak, max: memoryLimit}}, "whole numbers: rbt sets a bit for each",
		},
		{
			"unique of a number and a text, memory_limit 1GB", "tests:\n  - unique: [id, note]\n", 1,
			[]string{"SELECT count(*) FROM (SELECT id, note FROM %s GROUP BY id, note HAVING count(*) > 1)"},
			[]target{{side: "rbt", metric: peak, max: memoryLimit + memoryRoom}}, "texts are grouped",
		},
	}
}

// runAssertions is scenario f.
func runAssertions(b *bench) error {
	rows := b.size(20_000_000, 10_000)
	if b.opt.growth {
		return b.growAssertions(b.size(5_000_000, 10_000))
	}
	dir, project, err := b.publishedWide(rows)
	if err != nil {
		return err
	}
	published := relation{files: []string{filepath.Join(project, "lake", "wide.parquet")}}
	for _, c := range assertionCases() {
		bare := job{Settings: plainSettings(dir, "SET memory_limit = '1GB'")}
		for _, q := range c.plain {
			bare.Steps = append(bare.Steps, step{Ask: fmt.Sprintf(q, published.sql())})
		}
		if err := wideWithTests(dir, project, c.front); err != nil {
			return err
		}
		if err := b.compare(comparison{
			name: c.name + ", " + count(rows, "row"), base: "bare", targets: c.targets,
			notes: notesOf(c.note), sides: []side{
				{name: "bare", run: func() (usage, error) { _, u, err := b.ask(dir, "plain", bare); return u, err }},
				{name: "rbt", run: func() (usage, error) { return b.runTests(project, c.tests) }},
			},
		}); err != nil {
			return err
		}
	}
	if err := b.fiftyAssertions(b.size(5_000_000, 10_000)); err != nil {
		return err
	}
	return b.unitTests()
}

func notesOf(note string) []string {
	if note == "" {
		return nil
	}
	return []string{note}
}

// publishedWide is a project with the wide model published and no test on it.
func (b *bench) publishedWide(rows int) (dir, project string, err error) {
	if dir, err = b.dir("assertions"); err != nil {
		return "", "", err
	}
	if err := b.makeParquet(dir, map[string]string{"orders": ordersTable(rows)}); err != nil {
		return "", "", err
	}
	project = filepath.Join(dir, "project")
	if err := wideWithTests(dir, project, ""); err != nil {
		return "", "", err
	}
	_, err = b.runRbt(project, "run")
	return dir, project, err
}

func wideWithTests(dir, project, front string) error {
	p := wideProject(dir, "memory_limit: 1GB")
	p.models[0].front = front
	return p.writeRbt(project)
}

// fiftyAssertions compares 50 tests with the COPY that wrote what they test.
func (b *bench) fiftyAssertions(rows int) error {
	dir, project, err := b.publishedWide(rows)
	if err != nil {
		return err
	}
	if err := wideWithTests(dir, project, fiftyTests()); err != nil {
		return err
	}
	copying := b.bareSide("bare COPY", dir, wideProject(dir), 1)
	copying.outputs = nil
	return b.compare(comparison{
		name: "50 assertions on " + count(rows, "row") + ", against the COPY that wrote them", base: "bare COPY",
		sides:   []side{copying, {name: "rbt test", run: func() (usage, error) { return b.runTests(project, 50) }}},
		targets: []target{{side: "rbt test", metric: cpu, against: "bare COPY", max: 1}, {side: "rbt test", metric: wall, against: "bare COPY", max: 1}},
	})
}

// unitTests runs 200 unit tests in one project.
func (b *bench) unitTests() error {
	dir, err := b.dir("unit-tests")
	if err != nil {
		return err
	}
	p := neutral{name: "units", data: dir, sources: []source{{name: "events", path: filepath.Join(dir, "events.parquet")}}}
	for i := range 20 {
		m := model{name: fmt.Sprintf("unit_%02d", i), sql: fmt.Sprintf("select k, sum(v) + %d as v from {{ source('raw', 'events') }} group by k", i)}
		m.front = "unit_tests:\n"
		for t := range 10 {
			m.front += fmt.Sprintf("  - name: case_%02d_%02d\n    given:\n      - input: source('raw', 'events')\n        rows:\n          - {k: 1, v: %d}\n          - {k: 1, v: 2}\n"+
				"    expect:\n      rows:\n        - {k: 1, v: %d}\n", i, t, t, t+2+i)
		}
		p.models = append(p.models, m)
	}
	if err := b.makeParquet(dir, map[string]string{"events": eventsTable(100)}); err != nil {
		return err
	}
	project := filepath.Join(dir, "project")
	if err := p.writeRbt(project); err != nil {
		return err
	}
	return b.compare(comparison{
		name: "200 unit tests", sides: []side{{name: "rbt test", run: func() (usage, error) { return b.runTests(project, 200) }}},
		targets: []target{{side: "rbt test", metric: cpu, max: 3}},
	})
}

// growAssertions reports how 50 assertions grow with the rows.
func (b *bench) growAssertions(rows int) error {
	return b.grow("50 assertions", "rows", rows, func(n int) ([]side, error) {
		dir, project, err := b.publishedWide(n)
		if err != nil {
			return nil, err
		}
		return []side{{name: "rbt test", run: func() (usage, error) { return b.runTests(project, 50) }}}, wideWithTests(dir, project, fiftyTests())
	})
}
