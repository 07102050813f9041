package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// unitRow is a row of a model, or one that is expected.
type unitRow []unitValue

func (r unitRow) key() string {
	var b strings.Builder
	for _, v := range r {
		if v.null {
			b.WriteString("n;")
		} else {
			fmt.Fprintf(&b, "%d:%s;", len(v.equal), v.equal)
		}
	}
	return b.String()
}

// same is the number of equal values.
func (r unitRow) same(o unitRow) (n int) {
	for i := range r {
		if sameValue(r[i], o[i]) {
			n++
		}
	}
	return n
}

// unitDiff is what tells the rows of a model from those that a test expects.
// The order of rows does not count.
type unitDiff struct {
	columns         []string
	nExpected, nGot int
	differing       [][2]unitRow // expected, got
	missing, extra  []unitRow
}

func (d unitDiff) failures() int { return len(d.differing) + len(d.missing) + len(d.extra) }

// found says in a few words what was found.
func (d unitDiff) found() string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(len(d.differing), "differs", "differ")
	add(len(d.missing), "is missing", "are missing")
	add(len(d.extra), "is not expected", "are not expected")
	return fmt.Sprintf("%d %s: %s", d.nGot, plural(int64(d.nGot), "row"), strings.Join(parts, ", "))
}

// maxUnitRows bounds the rows of a unit test, and pairRows those among which
// rows that resemble each other are sought, a search that grows with its square.
const (
	maxUnitRows = 10_000
	pairRows    = 100
	diffLines   = 20
)

// table shows the difference: a row that differs as two lines, what differs
// between stars.
func (d unitDiff) table() (columns []string, rows [][]string) {
	line := func(word string, r, other unitRow) {
		cells := []string{word}
		for i, v := range r {
			if other != nil && !sameValue(v, other[i]) {
				cells = append(cells, v.marked(other[i]))
			} else {
				cells = append(cells, v.shown())
			}
		}
		rows = append(rows, cells)
	}
	for _, pair := range d.differing {
		line("expected", pair[0], pair[1])
		line("got", pair[1], pair[0])
	}
	for _, r := range d.missing {
		line("missing", r, nil)
	}
	for _, r := range d.extra {
		line("extra", r, nil)
	}
	if more := len(rows) - diffLines; more > 0 {
		rows = append(rows[:diffLines:diffLines], []string{fmt.Sprintf("… %d more lines", more)})
	}
	return append([]string{""}, d.columns...), rows
}

// diffRows compares two lots of rows whatever their order.
func diffRows(columns []string, expected, got []unitRow) unitDiff {
	d := unitDiff{columns: columns, nExpected: len(expected), nGot: len(got)}
	count := map[string]int{}
	for _, r := range got {
		count[r.key()]++
	}
	var missing, extra []unitRow
	for _, r := range expected {
		if count[r.key()] > 0 {
			count[r.key()]--
			continue
		}
		missing = append(missing, r)
	}
	for i := len(got) - 1; i >= 0; i-- {
		if k := got[i].key(); count[k] > 0 {
			count[k]--
			extra = append(extra, got[i])
		}
	}
	slices.SortStableFunc(extra, func(a, b unitRow) int { return strings.Compare(a.key(), b.key()) })
	d.pair(missing, extra)
	return d
}

// pair puts rows together that agree in at least one value, those that agree in
// most first come, first served.
func (d *unitDiff) pair(missing, extra []unitRow) {
	taken := make([]bool, len(extra))
	for n, want := range missing {
		best, most := -1, 0
		for i := 0; n < pairRows && i < min(len(extra), pairRows); i++ {
			if same := want.same(extra[i]); !taken[i] && same > most {
				best, most = i, same
			}
		}
		if best < 0 && len(missing) == 1 && len(extra) == 1 {
			best = 0
		}
		if best < 0 {
			d.missing = append(d.missing, want)
			continue
		}
		taken[best] = true
		d.differing = append(d.differing, [2]unitRow{want, extra[best]})
	}
	for i, r := range extra {
		if !taken[i] {
			d.extra = append(d.extra, r)
		}
	}
}

// compare runs the query and compares its rows with those that are expected, in
// the columns that the test names; in all of them where it names none.
func (c *unitCase) compare(ctx context.Context, f project.Fixture, q unitQuery) (unitDiff, error) {
	expected, columns, err := c.expected(ctx, f, q.columns)
	if err != nil {
		return unitDiff{}, c.fixtureProblem(f, "the expected rows", err)
	}
	got, err := c.rows(ctx, q.sql, columns)
	if err != nil {
		st, _ := oneQuery(q.compiled.SQL)
		return unitDiff{}, c.placed(err, q.compiled, st)
	}
	names := make([]string, len(columns))
	for i, col := range columns {
		names[i] = col.Name
	}
	c.result.Checked = int64(len(expected))
	c.result.Expected = fmt.Sprintf("%d %s", len(expected), plural(int64(len(expected)), "row"))
	return diffRows(names, expected, got), nil
}

// expected gives the rows of a fixture as the model's columns would print them.
func (c *unitCase) expected(ctx context.Context, f project.Fixture, columns []lake.Column) ([]unitRow, []lake.Column, error) {
	var names []string
	if f.SQL != "" {
		st, err := oneQuery(f.SQL)
		if err != nil {
			return nil, nil, err
		}
		has, err := c.session.Describe(ctx, st.text)
		if err != nil {
			return nil, nil, err
		}
		for _, h := range has {
			names = append(names, h.Name)
		}
	} else {
		rows, err := readFixture(f)
		if err != nil {
			return nil, nil, err
		}
		names = rows.columns
	}
	if err := knownColumns(names, columns); err != nil {
		return nil, nil, err
	}
	named := columns
	if len(names) > 0 {
		named = slices.DeleteFunc(slices.Clone(columns), func(col lake.Column) bool {
			return !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, col.Name) })
		})
	}
	query, err := c.fixtureQuery(ctx, f, named)
	if err != nil {
		return nil, nil, err
	}
	rows, err := c.rows(ctx, query, named)
	return rows, named, err
}

// rows reads rows, every value printed.
func (c *unitCase) rows(ctx context.Context, query string, columns []lake.Column) ([]unitRow, error) {
	list := make([]string, 0, 2*len(columns))
	for _, col := range columns {
		name, tree := quoteIdent(col.Name), treeOf(col.Type)
		shown := textOf(shownAs(name, col.Type))
		if tree.isJSON() { // however its blanks stand
			shown = "CAST(json(" + name + ") AS VARCHAR)"
		}
		equal := "NULL"
		if e := equalValue(name, tree, 0); e != name {
			equal = "CAST(" + e + " AS VARCHAR)"
		}
		list = append(list, shown, equal)
	}
	var out []unitRow
	err := c.session.Query(ctx, fmt.Sprintf("SELECT %s FROM (\n%s\n) AS tested LIMIT %d", strings.Join(list, ", "), query, maxUnitRows+1), func(values []any) error {
		if len(out) == maxUnitRows {
			return fmt.Errorf("a unit test compares at most %d rows", maxUnitRows)
		}
		row := make(unitRow, len(columns))
		for i, col := range columns {
			row[i] = unitValueOf(values[2*i], values[2*i+1], col.Type)
		}
		out = append(out, row)
		return nil
	})
	return out, err
}
