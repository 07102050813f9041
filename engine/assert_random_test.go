package engine

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// randomColumn is a type, the values of its columns as the engine prints them, and
// what its assertions may be given.
type randomColumn struct {
	typ    string
	values []string
	bounds []string // of ranges and lists; nil where there is no order to speak of
	steps  []string // of a sequence; nil where it has none
}

func randomColumns() []randomColumn {
	small := []string{"0", "1", "2", "3"}
	return []randomColumn{
		{"BIGINT", append([]string{"-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"}, small...), []string{"0", "2", "-0.5", "1e60", "9223372036854775808"}, []string{"1", "2"}},
		{"UTINYINT", append([]string{"255"}, small...), []string{"0", "3", "300", "-1", "254.5"}, []string{"1"}},
		{"UBIGINT", append([]string{"18446744073709551615"}, small...), []string{"0", "1", "18446744073709551615"}, []string{"1", "2"}},
		{"INTEGER", append([]string{"-2147483648", "2147483647"}, small...), []string{"1", "1.5"}, []string{"1", "4294967295"}},
		{"HUGEINT", append([]string{"170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"}, small...), []string{"0", "170141183460469231731687303715884105727", "0.5"}, []string{"1", "2"}},
		{"UHUGEINT", append([]string{"340282366920938463463374607431768211455", "340282366920938463463374607431768211454"}, small...), []string{"0", "1", "0.5"}, []string{"1"}},
		{"DECIMAL(9,2)", []string{"0.00", "0.50", "1.00", "1.50", "-0.01", "9999999.99"}, []string{"0", "0.5", "1.505", "-0.01", "99999999999"}, []string{"0.5", "1", "99999999"}},
		{"DECIMAL(38,0)", append([]string{"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"}, small...), []string{"0", "0.5", "-1e40", "99999999999999999999999999999999999999"}, []string{"1", "1e40"}},
		{"DOUBLE", []string{"0.0", "-0.0", "0.5", "1.0", "1.5", "nan", "inf", "-inf", "1e+308", "9007199254740992.0"}, []string{"0", "-0", "1", "0.1", "1e308"}, []string{"0.5", "1"}},
		{"FLOAT", []string{"0.0", "-0.0", "0.5", "1.0", "nan", "inf", "-inf"}, []string{"0", "1", "0.5"}, []string{"0.5"}},
		{"VARCHAR", []string{"", "a", "A", "it's", `q"q`, "é", "e\u0301", "null", "NULL", "007", "7", "1.5", "a\nb", "--x", "日本", "%", `\`, "a;b", "$1", "2024-01-01"},
			[]string{"", "a", "é", "007", "z", "it's", `q"q`}, nil},
		{"BOOLEAN", []string{"true", "false"}, []string{"true", "false"}, nil},
		{"DATE", []string{"2024-01-01", "2024-01-02", "2024-01-03", "2026-03-04", "1900-02-28", "9999-12-31"}, []string{"2024-01-02", "2026-03-04", "1900-02-28"}, []string{"1 day", "24 hours"}},
		{"TIMESTAMP", []string{"2024-01-01 00:00:00", "2024-01-02 00:00:00", "2024-01-03 00:00:00", "2026-03-04 11:59:59.999999", "2026-03-04 12:00:00"}, []string{"2024-01-02", "2024-01-02 00:00:00", "2026-03-04T12:00:00Z"}, []string{"1 day"}},
		{"TIMESTAMP WITH TIME ZONE", []string{"2024-01-01 00:00:00+00", "2024-01-02 00:00:00+00", "2026-03-04 12:00:00+00"}, []string{"2024-01-02 00:00:00+00", "2024-01-02 02:00:00+02"}, []string{"1 day"}},
		{"TIMESTAMP_NS", []string{"2024-01-01 00:00:00.000000001", "2024-01-01 00:00:00.000000002", "2024-01-02 00:00:00.000000001"}, []string{"2024-01-01 00:00:00.000000001", "2024-01-02 00:00:00"}, []string{"1 day"}},
		{"TIME", []string{"00:00:00", "12:30:00", "23:59:59.999999"}, []string{"12:30:00"}, nil},
		{"UUID", []string{"00000000-0000-0000-0000-000000000001", "ffffffff-0000-0000-0000-000000000001"}, []string{"00000000-0000-0000-0000-000000000001"}, nil},
		{"BIGINT[]", []string{"[]", "[1]", "[1, NULL]", "[NULL]"}, nil, nil},
		{"STRUCT(a BIGINT, b VARCHAR)", []string{"{'a': 1, 'b': x}", "{'a': NULL, 'b': x}", "{'a': NULL, 'b': NULL}"}, nil, nil},
	}
}

// randomTable is a table of the columns v and w of two random types and k, a small
// whole number for conditions.
type randomTable struct {
	v, w randomColumn
	rows [][3]cell
}

func drawTable(rt *rapid.T) randomTable {
	out := randomTable{v: rapid.SampledFrom(randomColumns()).Draw(rt, "type of v"), w: rapid.SampledFrom(randomColumns()).Draw(rt, "type of w")}
	pick := func(values []string, label string) *rapid.Generator[cell] {
		return rapid.Ptr(rapid.SampledFrom(values), true)
	}
	for range rapid.IntRange(0, 10).Draw(rt, "rows") {
		out.rows = append(out.rows, [3]cell{pick(out.v.values, "v").Draw(rt, "v"), pick(out.w.values, "w").Draw(rt, "w"), pick([]string{"0", "1", "2"}, "k").Draw(rt, "k")})
	}
	return out
}

// sql is the table as a relation.
func (r randomTable) sql() string {
	values := []string{"(NULL, NULL, NULL, false)"}
	for _, row := range r.rows {
		values = append(values, fmt.Sprintf("(%s, %s, %s, true)", sqlOf(row[0], quoteText), sqlOf(row[1], quoteText), sqlOf(row[2], quoteText)))
	}
	return fmt.Sprintf(`(SELECT CAST(v AS %s) AS v, CAST(w AS %s) AS "w ""x", CAST(k AS BIGINT) AS k FROM (VALUES %s) AS t(v, w, k, is_row) WHERE is_row)`,
		r.v.typ, r.w.typ, strings.Join(values, ", "))
}

func (r randomTable) columns() []lake.Column {
	return []lake.Column{{Name: "v", Type: r.v.typ}, {Name: `w "x`, Type: r.w.typ}, {Name: "k", Type: "BIGINT"}}
}

// condition is a `where` and the same in Go.
type condition struct {
	sql   string
	holds func(row [3]cell) bool
}

func conditions() []condition {
	is := func(c cell, list ...string) bool { return c != nil && slices.Contains(list, *c) }
	return []condition{
		{"", func([3]cell) bool { return true }},
		{"k > 0", func(row [3]cell) bool { return is(row[2], "1", "2") }},
		{"k IS NULL -- unknown", func(row [3]cell) bool { return row[2] == nil }},
		{`"K" = 1 OR k = 2`, func(row [3]cell) bool { return is(row[2], "1", "2") }},
		{`"w ""x" IS NOT NULL`, func(row [3]cell) bool { return row[1] != nil }},
		{"k > 99", func([3]cell) bool { return false }},
		{"k", func(row [3]cell) bool { return is(row[2], "1", "2") }},
	}
}

// randomCase is an assertion and what it must say of a table.
type randomCase struct {
	test              project.Test
	parent            string // the other relation
	parentType        string
	failures, checked int64
}

// naive counts with loops in Go what assertions about a table count with SQL. data
// are the rows that the where leaves.
type naive struct {
	randomTable
	data      [][3]cell
	failNulls bool
}

// column counts values of v; a NULL where `nulls: fail` says so.
func (n naive) column(violates func(string) bool) (failures, checked int64) {
	for _, row := range n.data {
		if row[0] == nil {
			failures, checked = failures+int64(b2i(n.failNulls)), checked+int64(b2i(n.failNulls))
		} else {
			failures, checked = failures+int64(b2i(violates(*row[0]))), checked+1
		}
	}
	return failures, checked
}

func (n naive) has(list []string, v string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return compareCells(n.v.typ, n.as(x), n.as(v)) == 0 })
}

// as is a bound as the engine prints the value that it is.
func (n naive) as(text string) string {
	switch n.v.typ {
	case "TIMESTAMP":
		text = strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z")
		if len(text) == len(time.DateOnly) {
			text += " 00:00:00"
		}
	case "TIMESTAMP WITH TIME ZONE":
		text = strings.Replace(text, "02:00:00+02", "00:00:00+00", 1)
	}
	return text
}

func (n naive) null(row [3]cell, columns []int) bool {
	return slices.ContainsFunc(columns, func(c int) bool { return row[c] == nil })
}

// unique counts keys that occur more than once, and with `nulls: fail` those with
// a NULL in them.
func (n naive) unique(columns []int) (failures, checked int64) {
	types := []string{n.v.typ, n.w.typ, "BIGINT"}
	same := func(a, b [3]cell) bool {
		return !slices.ContainsFunc(columns, func(c int) bool {
			return (a[c] == nil) != (b[c] == nil) || a[c] != nil && compareCells(types[c], *a[c], *b[c]) != 0
		})
	}
	for i, row := range n.data {
		null := n.null(row, columns)
		checked += int64(b2i(!null || n.failNulls))
		if slices.ContainsFunc(n.data[:i], func(o [3]cell) bool { return same(o, row) }) {
			continue // this key was counted
		}
		again := slices.ContainsFunc(n.data[i+1:], func(o [3]cell) bool { return same(o, row) })
		failures += int64(b2i(null && n.failNulls || !null && again))
	}
	return failures, checked
}

// values are those of v that are set, in order.
func (n naive) values() []string {
	var out []string
	for _, row := range n.data {
		if row[0] != nil {
			out = append(out, *row[0])
		}
	}
	slices.SortFunc(out, func(a, b string) int { return compareCells(n.v.typ, a, b) })
	return out
}

// nulls counts the NULLs of v where they are violations, and all that is looked at.
func (n naive) nulls() (failures, checked int64) {
	return n.column(func(string) bool { return false })
}

func (n naive) notConstant() (failures, checked int64) {
	failures, checked = n.nulls()
	values := n.values()
	one := len(values) > 0 && compareCells(n.v.typ, values[0], values[len(values)-1]) == 0
	return failures + int64(b2i(one)), checked
}

func (n naive) sequence(step string) (failures, checked int64) {
	failures, checked = n.nulls()
	values := n.values()
	for i := 1; i < len(values); i++ {
		failures += int64(b2i(!n.follows(values[i-1], values[i], step)))
	}
	return failures, checked
}

func (n naive) follows(a, b, step string) bool {
	switch {
	case isFloat(n.v.typ):
		return follows("DOUBLE", a, b, step)
	case isTemporal(n.v.typ): // all steps of them are a day
		layout := map[string]string{"DATE": time.DateOnly, "TIMESTAMP": time.DateTime, "TIMESTAMP_NS": time.DateTime, "TIMESTAMP WITH TIME ZONE": "2006-01-02 15:04:05-07"}[n.v.typ]
		x, _ := time.Parse(layout, a)
		y, _ := time.Parse(layout, b)
		return x.AddDate(0, 0, 1).Equal(y)
	}
	return follows(n.v.typ, a, b, step)
}

// fresh is what freshness counts: one row where the newest value is too old, or
// there is none.
func (n naive) fresh(age time.Duration) (failures, checked int64) {
	nulls, _ := n.nulls()
	values := n.values()
	if len(values) == 0 {
		return max(nulls, 1), int64(len(n.data))
	}
	newest, err := time.Parse("2006-01-02 15:04:05", strings.TrimSuffix(n.timestamp(values[len(values)-1]), "+00"))
	if err != nil {
		panic(err)
	}
	return nulls + int64(b2i(newest.Before(clock.Add(-age)))), int64(len(n.data))
}

func (n naive) timestamp(text string) string {
	if n.v.typ == "DATE" {
		text += " 00:00:00"
	}
	return text
}

// refers reports whether a value of v is one of another type's, no digit lost.
func (n naive) refers(own, other, otherType string) bool {
	number := func(typ string) bool { return isInteger(typ) || decimalType.MatchString(typ) }
	exact := func(text, typ string) *big.Rat {
		if isFloat(typ) {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
				return nil
			}
			return new(big.Rat).SetFloat64(f)
		}
		if typ == "VARCHAR" && !regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`).MatchString(text) {
			return nil
		}
		r, _ := new(big.Rat).SetString(text)
		return r
	}
	typ := n.v.typ
	switch {
	case typ == otherType:
		return compareCells(typ, own, other) == 0
	case isFloat(typ) && isFloat(otherType):
		return compareCells("DOUBLE", own, other) == 0
	case number(typ) || isFloat(typ) || number(otherType) || isFloat(otherType):
		a, b := exact(own, typ), exact(other, otherType)
		if typ == "VARCHAR" {
			a, b, typ, otherType = b, a, otherType, typ
		}
		if a == nil || b == nil {
			return false
		}
		// A text is equal only where the number's type can hold it; then the type
		// of the values settles it, which are all held by theirs.
		return a.Cmp(b) == 0
	}
	return n.timestampOf(own, typ) == n.timestampOf(other, otherType)
}

func (n naive) timestampOf(text, typ string) string {
	if typ == "DATE" || typ == "VARCHAR" && len(text) == len(time.DateOnly) {
		return text + " 00:00:00"
	}
	return text
}

// comparable are the types whose values can be those of v's relationship.
func (n naive) comparable() []string {
	numbers := []string{n.v.typ, "BIGINT", "UTINYINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(9,2)", "DECIMAL(38,0)", "DOUBLE", "FLOAT", "VARCHAR"}
	switch typ := n.v.typ; {
	case isInteger(typ), isFloat(typ), decimalType.MatchString(typ), typ == "VARCHAR":
		return numbers
	case typ == "DATE":
		return []string{"DATE", "TIMESTAMP", "VARCHAR"}
	case typ == "TIMESTAMP":
		return []string{"DATE", "TIMESTAMP"}
	}
	return []string{n.v.typ}
}

func percentOrCount(rt *rapid.T, label string) *project.Threshold {
	if rapid.Bool().Draw(rt, label+" absent") {
		return nil
	}
	th := &project.Threshold{Op: rapid.SampledFrom([]string{"=", "==", "!=", "<>", "<", "<=", ">", ">="}).Draw(rt, label+" op"), Percent: rapid.Bool().Draw(rt, label+" percent")}
	if th.Percent {
		th.Number = rapid.SampledFrom([]float64{0, 10, 12.5, 20, 25, 50, 100}).Draw(rt, label)
	} else {
		th.Number = float64(rapid.IntRange(0, 4).Draw(rt, label))
	}
	return th
}

// naiveStatus settles the outcome with fractions.
func naiveStatus(t project.Test, failures, checked int64) Status {
	met := func(th *project.Threshold) bool {
		if th == nil {
			return failures > 0
		}
		value := big.NewRat(failures, 1)
		if th.Percent {
			value = big.NewRat(100*failures, max(checked, 1))
		}
		order := value.Cmp(new(big.Rat).SetFloat64(th.Number))
		return map[string]bool{"=": order == 0, "==": order == 0, "!=": order != 0, "<>": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[th.Op]
	}
	switch {
	case t.Severity == diag.Error && met(t.ErrorIf):
		return StatusFail
	case met(t.WarnIf):
		return StatusWarn
	}
	return StatusPass
}

// TestAssertionsAgainstNaive asks every kind of assertion about random tables of
// all types, full of NULLs, repeats, NaN and odd text, with conditions, limits and
// thresholds, and compares failures, rows looked at and outcome with loops in Go.
func TestAssertionsAgainstNaive(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	met := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		table := drawTable(rt)
		where := rapid.SampledFrom(conditions()).Draw(rt, "where")
		n := naive{randomTable: table, failNulls: rapid.Bool().Draw(rt, "nulls fail")}
		for _, row := range table.rows {
			if where.holds(row) {
				n.data = append(n.data, row)
			}
		}
		for _, c := range n.cases(rt) {
			test := c.test
			test.Node, test.Where, test.FailNulls = "data", where.sql, n.failNulls
			test.Limit = rapid.SampledFrom([]int{0, 0, 1, 2, 100}).Draw(rt, "limit")
			test.WarnIf, test.ErrorIf = percentOrCount(rt, "warn_if"), percentOrCount(rt, "error_if")
			test.Severity = rapid.SampledFrom([]diag.Severity{diag.Error, diag.Warning}).Draw(rt, "severity")
			built, err := genericCheck(&test, subject{from: table.sql(), columns: table.columns(), field: c.parentType}, c.parent, clock)
			if err != nil {
				rt.Fatalf("%s of %s: %v", test.Kind, table.v.typ, err)
			}
			q := asking{session: s, test: &test, result: &TestResult{}}
			if err := q.count(ctx, built); err != nil {
				rt.Fatalf("%s of %s: %v\n%s", test.Kind, table.v.typ, err, built.Rows)
			}
			if test.Limit > 0 {
				c.failures = min(c.failures, int64(test.Limit))
			}
			if q.result.Failures != c.failures || q.result.Checked != c.checked {
				rt.Fatalf("%s of %s %+v: %d of %d, want %d of %d\n%s", test.Kind, table.v.typ, test.Args, q.result.Failures, q.result.Checked, c.failures, c.checked, built.Rows)
			}
			if got, want := outcome(&test, q.result.Failures, q.result.Checked), naiveStatus(test, c.failures, c.checked); got != want {
				rt.Fatalf("%d of %d, warn_if %+v, error_if %+v, severity %v: %s, want %s", c.failures, c.checked, test.WarnIf, test.ErrorIf, test.Severity, got, want)
			}
			met[fmt.Sprintf("%s %v", test.Kind, c.failures == 0)]++
		}
	})
	for _, kind := range []string{"not_null", "unique", "accepted_values", "relationships", "range", "row_count", "expression", "matches", "freshness", "not_constant", "sequence"} {
		for _, passes := range []bool{true, false} {
			if key := fmt.Sprintf("%s %v", kind, passes); met[key] == 0 {
				t.Errorf("%s: never met", key)
			}
		}
	}
}

// cases draws an assertion of every kind that v's type can have.
func (n naive) cases(rt *rapid.T) []randomCase {
	names := []string{"v", `W "x`, "k"}
	var out []randomCase
	add := func(kind string, args project.TestArgs, columns []int, failures, checked int64) *randomCase {
		c := randomCase{test: project.Test{Kind: kind, Args: args}, failures: failures, checked: checked}
		for _, i := range columns {
			c.test.Columns = append(c.test.Columns, names[i])
		}
		out = append(out, c)
		return &out[len(out)-1]
	}
	rows := int64(len(n.data))
	null := int64(0)
	for _, row := range n.data {
		null += int64(b2i(row[0] == nil))
	}
	add("not_null", project.TestArgs{}, []int{0}, null, rows)
	keys := rapid.SampledFrom([][]int{{0}, {0, 1}, {1, 0}, {0, 1, 2}, {2, 0}}).Draw(rt, "key")
	failures, checked := n.unique(keys)
	add("unique", project.TestArgs{}, keys, failures, checked)
	failures, checked = n.notConstant()
	add("not_constant", project.TestArgs{}, []int{0}, failures, checked)
	n.related(rt, add)
	n.rowCounts(rt, add)
	failures = 0
	for _, row := range n.data {
		failures += int64(b2i(row[2] == nil && n.failNulls || row[2] != nil && *row[2] == "0"))
	}
	add("expression", project.TestArgs{SQL: rapid.SampledFrom([]string{"k > 0", "k", "CASE k WHEN 0 THEN 'false' WHEN 1 THEN 'yes' WHEN 2 THEN 't' END -- text"}).Draw(rt, "expression")}, nil, failures, rows)
	if n.v.typ == "VARCHAR" || n.v.typ == "BIGINT" {
		pattern := rapid.SampledFrom([]string{"^[a-z0-9]+$", "'", "^$", "^.$", `(?i)^a`, "日", `^-?\d+$`}).Draw(rt, "pattern")
		re := regexp.MustCompile(pattern)
		failures, checked = n.column(func(v string) bool { return !re.MatchString(v) })
		add("matches", project.TestArgs{Pattern: pattern}, []int{0}, failures, checked)
	}
	if n.v.steps != nil {
		step := rapid.SampledFrom(n.v.steps).Draw(rt, "step")
		failures, checked = n.sequence(step)
		add("sequence", project.TestArgs{Value: &step}, []int{0}, failures, checked)
	}
	if n.v.typ == "DATE" || strings.HasPrefix(n.v.typ, "TIMESTAMP") {
		age := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 12 * time.Hour, 24 * time.Hour, 800 * 24 * time.Hour}).Draw(rt, "age")
		for _, age := range []time.Duration{age, 800 * 24 * time.Hour} { // most values are older than all but the longest
			failures, checked = n.fresh(age)
			add("freshness", project.TestArgs{MaxAge: age}, []int{0}, failures, checked)
		}
	}
	if n.v.bounds != nil {
		n.bounded(rt, add)
	}
	return out
}

// addCase notes an assertion on columns, of which it counts so many failures.
type addCase func(kind string, args project.TestArgs, columns []int, failures, checked int64) *randomCase

// bounded draws a range and a list of values.
func (n naive) bounded(rt *rapid.T, add addCase) {
	text := rapid.Ptr(rapid.SampledFrom(n.v.bounds), true)
	args := project.TestArgs{Min: text.Draw(rt, "min"), Max: text.Draw(rt, "max"), ExclusiveMin: rapid.Bool().Draw(rt, "exclusive min"), ExclusiveMax: rapid.Bool().Draw(rt, "exclusive max")}
	order := func(v, bound string) int { return compareCells(n.v.typ, v, n.as(bound)) }
	empty := args.Min != nil && args.Max != nil && (order(n.as(*args.Min), *args.Max) > 0 || order(n.as(*args.Min), *args.Max) == 0 && (args.ExclusiveMin || args.ExclusiveMax))
	if !empty && (args.Min != nil || args.Max != nil) {
		failures, checked := n.column(func(v string) bool {
			return args.Min != nil && (order(v, *args.Min) < 0 || args.ExclusiveMin && order(v, *args.Min) == 0) ||
				args.Max != nil && (order(v, *args.Max) > 0 || args.ExclusiveMax && order(v, *args.Max) == 0) || v == "nan"
		})
		add("range", args, []int{0}, failures, checked)
	}
	fits := slices.DeleteFunc(slices.Concat(n.v.values, n.v.bounds), func(v string) bool {
		_, err := assertion{test: &project.Test{}, columns: []lake.Column{{Type: n.v.typ}}}.literal(v)
		return err != nil
	})
	list := rapid.SliceOfN(rapid.SampledFrom(fits), 1, 5).Draw(rt, "accepted")
	values := []*string{nil}
	for _, v := range list {
		values = append(values, &v)
	}
	failures, checked := n.column(func(v string) bool { return !n.has(list, v) })
	add("accepted_values", project.TestArgs{Values: values}, []int{0}, failures, checked)
}

// related draws a relationship to a column of the same or another type.
func (n naive) related(rt *rapid.T, add addCase) {
	typ := rapid.SampledFrom(n.comparable()).Draw(rt, "type of the other side")
	all := randomColumns()
	other := all[slices.IndexFunc(all, func(c randomColumn) bool { return c.typ == typ })]
	keys := rapid.SliceOfN(rapid.Ptr(rapid.SampledFrom(other.values), true), 0, 6).Draw(rt, "keys of the other side")
	failures, checked := n.column(func(v string) bool {
		return !slices.ContainsFunc(keys, func(k cell) bool { return k != nil && n.refers(v, *k, typ) })
	})
	c := add("relationships", project.TestArgs{To: "parent", Field: "v"}, []int{0}, failures, checked)
	c.parent, c.parentType = "("+cellTable(typ, keys)+")", typ
}

// rowCounts draws bounds of the number of rows.
func (n naive) rowCounts(rt *rapid.T, add addCase) {
	bound := func(label string) (text *string, number int) {
		if rapid.Bool().Draw(rt, label+" absent") {
			return nil, -1
		}
		number = rapid.IntRange(0, 10).Draw(rt, label)
		return spelled(strconv.Itoa(number)), number
	}
	args, rows := project.TestArgs{}, len(n.data)
	var least, most, equal int
	args.Min, least = bound("least rows")
	args.Max, most = bound("most rows")
	args.Equal, equal = bound("rows")
	others := rapid.IntRange(0, 10).Draw(rt, "rows of the other")
	wrong := rows < least || args.Max != nil && rows > most || args.Equal != nil && rows != equal
	if rapid.Bool().Draw(rt, "equal to another") {
		args.EqualTo = "parent"
		wrong = wrong || rows != others
	}
	if args.Min == nil && args.Max == nil && args.Equal == nil && args.EqualTo == "" {
		return
	}
	add("row_count", args, nil, int64(b2i(wrong)), int64(rows)).parent = fmt.Sprintf("range(%d)", others)
}

// TestEveryBoundAndKey asks about all values of each type at once, with every bound
// of its ranges, and every key of each type that its relationships may have: what
// random draws meet seldom.
func TestEveryBoundAndKey(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	all := randomColumns()
	for _, v := range all {
		n := naive{randomTable: randomTable{v: v, w: all[0]}}
		for i := range v.values {
			n.rows = append(n.rows, [3]cell{&v.values[i]})
		}
		n.data = n.rows
		table := relationName("main", "all of "+v.typ)
		if err := s.Exec(ctx, "CREATE TABLE "+table+" AS FROM "+n.sql()); err != nil {
			t.Fatal(err)
		}
		ask := func(test project.Test, parent, field string, want int64) {
			t.Helper()
			test.Node, test.Columns = "data", []string{"v"}
			built, err := genericCheck(&test, subject{from: table, columns: n.columns(), field: field}, parent, clock)
			if err != nil {
				t.Errorf("%s of %s: %v", test.Kind, v.typ, err)
			} else if failures, _ := counted(t, s, built, 0); failures != want {
				t.Errorf("%s of %s: %d violations, want %d\n%s", test.Kind, v.typ, failures, want, built.Rows)
			}
		}
		for _, bound := range v.bounds {
			order := func(text string) int { return compareCells(v.typ, text, n.as(bound)) }
			for _, exclusive := range []bool{false, true} {
				below, _ := n.column(func(text string) bool { return text == "nan" || order(text) < 0 || exclusive && order(text) == 0 })
				above, _ := n.column(func(text string) bool { return order(text) > 0 || exclusive && order(text) == 0 })
				ask(project.Test{Kind: "range", Args: project.TestArgs{Min: &bound, ExclusiveMin: exclusive}}, "", "", below)
				ask(project.Test{Kind: "range", Args: project.TestArgs{Max: &bound, ExclusiveMax: exclusive}}, "", "", above)
			}
		}
		for _, typ := range n.comparable() {
			other := all[slices.IndexFunc(all, func(c randomColumn) bool { return c.typ == typ })]
			for _, key := range other.values {
				want, _ := n.column(func(text string) bool { return !n.refers(text, key, typ) })
				parent := "(SELECT CAST(" + quoteText(key) + " AS " + typ + ") AS v)"
				ask(project.Test{Kind: "relationships", Args: project.TestArgs{To: "parent", Field: "v"}}, parent, typ, want)
			}
		}
	}
}
