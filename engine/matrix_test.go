package engine

import (
	"cmp"
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

	"rbt/internal/lake"
	"rbt/internal/project"
)

// cell is a value in its YAML spelling; nil is NULL.
type cell = *string

func cells(texts ...string) []cell {
	out := make([]cell, len(texts))
	for i, s := range texts {
		if s != "NULL" {
			out[i] = &s
		}
	}
	return out
}

// compareCells orders two values of a type as SQL does: NaN above all numbers.
func compareCells(typ, a, b string) int {
	switch {
	case isFloat(typ):
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(b2i(math.IsNaN(x)), b2i(math.IsNaN(y)))
		}
		return cmp.Compare(x, y)
	case isInteger(typ) || decimalType.MatchString(typ):
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		return x.Cmp(y)
	}
	return strings.Compare(a, b)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matrixColumn is a column of a type with values of every kind, and arguments
// for each assertion that some of them keep and others break.
type matrixColumn struct {
	typ      string
	sets     map[string][]cell // by kind of data
	accepted [][]string
	ranges   [][3]string // min, max, exclusive
	patterns []string
	steps    []string
}

func matrixColumns() []matrixColumn {
	data := func(plain, duplicates, odd []cell) map[string][]cell {
		return map[string][]cell{
			"empty": {}, "plain": plain, "all NULL": cells("NULL", "NULL", "NULL"), "one NULL": cells("NULL"), "duplicates": duplicates, "odd": odd,
			"with NULLs": append(slices.Concat(plain, duplicates, odd), nil, nil),
		}
	}
	return []matrixColumn{
		{"BIGINT", data(cells("1", "2", "3"), cells("5", "5", "7", "7", "7"), cells("-9223372036854775808", "9223372036854775807", "9007199254740993", "9007199254740992")),
			[][]string{{"1", "2", "3"}, {"005", "7"}, {"9007199254740993"}}, [][3]string{{"1", "3", ""}, {"1", "3", "both"}, {"0.5", "", ""}, {"", "99999999999999999999", ""}, {"", "1e60", ""}, {"2", "", "min"}},
			[]string{"^[0-9]+$", "^.$"}, []string{"1", "2"}},
		{"VARCHAR", data(cells("a", "b", "c"), cells("x", "x", "y"), cells("", "it's", `q"q`, "é", "e\u0301", "日本", "null", "007", "7", "a\nb", "--x", "%", `\`)),
			[][]string{{"a", "b", "c"}, {"it's", "007", "日本"}, {"", "é"}, {"7"}}, [][3]string{{"a", "c", ""}, {"", "b", "max"}}, []string{"^[a-z]$", "'", "^é$"}, nil},
		{"BOOLEAN", data(cells("true", "false"), cells("true", "true"), cells("false")), [][]string{{"true"}, {"true", "false"}}, [][3]string{{"true", "", ""}}, []string{"^t"}, nil},
		{"DECIMAL(9,2)", data(cells("1.00", "2.00", "3.00"), cells("1.10", "1.10"), cells("-0.01", "9999999.99", "0.00")),
			[][]string{{"1", "2.0", "3.000"}, {"1.1"}, {"-0.01", "0"}}, [][3]string{{"1", "3", ""}, {"1.095", "", ""}, {"0", "9999999.99", "both"}}, []string{`\.00$`}, []string{"1", "0.5"}},
		{"DATE", data(cells("2024-02-28", "2024-02-29", "2024-03-01"), cells("2024-01-01", "2024-01-01"), cells("1900-01-01", "2999-12-31")),
			[][]string{{"2024-02-28", "2024-02-29", "2024-03-01"}, {"2024-01-01"}}, [][3]string{{"2024-01-01", "2024-12-31", ""}, {"", "2024-02-29", "max"}}, []string{"^2024-02"}, []string{"1 day"}},
		{"TIMESTAMP", data(cells("2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-04 12:00:00"), cells("2024-01-01 00:00:00", "2024-01-01 00:00:00"), cells("1969-12-31 23:59:59", "2026-03-04 00:00:00")),
			[][]string{{"2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-04 12:00:00"}, {"2024-01-01 00:00:00"}}, [][3]string{{"2024-01-01 00:00:00", "2026-03-04 12:00:00", ""}, {"", "2026-03-03 12:00:00", "max"}}, []string{"12:00:00$"}, []string{"1 day"}},
		{"DOUBLE", data(cells("1", "2", "3"), cells("0.1", "0.1"), cells("NaN", "NaN", "Infinity", "-Infinity", "1e308", "-0.5")),
			[][]string{{"1", "2", "3"}, {"NaN", "0.1"}, {"Infinity"}}, [][3]string{{"1", "3", ""}, {"0", "", ""}, {"", "1e300", ""}, {"-0.5", "", "min"}}, []string{"[0-9]", "(?i)n"}, []string{"1"}},
	}
}

// TestMatrix asks every assertion about every kind of data in every type, with
// NULLs ignored and as failures, and compares exact counts with loops in Go.
func TestMatrix(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	met := map[string]bool{}
	for _, col := range matrixColumns() {
		for _, name := range sortedKeys(col.sets) {
			data := col.sets[name]
			table := relationName("main", col.typ+" "+name)
			if err := s.Exec(ctx, "CREATE TABLE "+table+" AS "+cellTable(col.typ, data)); err != nil {
				t.Fatal(err)
			}
			m := matrix{t: t, s: s, col: col, data: data, table: table}
			for _, failNulls := range []bool{false, true} {
				for _, c := range m.cases(failNulls) {
					c.test.Node, c.test.FailNulls = "data", failNulls
					if c.test.Columns == nil {
						c.test.Columns = []string{"v"}
					}
					label := fmt.Sprintf("%s of %s, %s, nulls fail %v, %v", c.test.Kind, col.typ, name, failNulls, c.what)
					built, err := genericCheck(&c.test, subject{from: table, columns: []lake.Column{{Name: "v", Type: col.typ}, {Name: "k", Type: "BIGINT"}}}, c.parent, clock)
					if err != nil {
						t.Errorf("%s: %v", label, err)
						continue
					}
					failures, _ := counted(t, s, built, 0)
					if failures != c.want {
						t.Errorf("%s: %d violations, want %d\n%s", label, failures, c.want, built.Rows)
					}
					result := map[bool]string{true: "passes", false: "fails"}[c.want == 0]
					for _, about := range []string{name, col.typ, name + " " + col.typ, fmt.Sprintf("nulls fail %v", failNulls), fmt.Sprint(c.what)} {
						met[c.test.Kind+", "+about+" "+result] = true
					}
				}
			}
		}
	}
	types := []string{}
	for _, col := range matrixColumns() {
		types = append(types, col.typ)
	}
	for _, kind := range []string{"not_null", "unique", "accepted_values", "relationships", "range", "row_count", "expression", "matches", "freshness", "not_constant", "sequence"} {
		for _, about := range slices.Concat(sortedKeys(matrixColumns()[0].sets), []string{"odd VARCHAR", "odd DOUBLE", "nulls fail true", "nulls fail false"}, types) {
			for _, result := range []string{"passes", "fails"} {
				if cell := kind + ", " + about + " " + result; met[cell] == impossible(kind, about, result) {
					t.Errorf("%s: met %v, impossible %v", cell, met[cell], !met[cell])
				}
			}
		}
	}
	for _, cell := range []string{"unique, composite passes", "unique, composite fails"} {
		if !met[cell] {
			t.Errorf("never met: %s", cell)
		}
	}
}

// impossible reports whether there is no such result of an assertion about a kind
// of data or a type.
func impossible(kind, about, result string) bool {
	is := func(list ...string) bool { return slices.Contains(list, about) }
	switch kind + " " + result {
	case "not_null passes":
		return is("all NULL", "one NULL", "with NULLs")
	case "not_null fails":
		return is("empty", "plain", "duplicates", "odd", "odd VARCHAR", "odd DOUBLE")
	case "unique fails", "accepted_values fails", "relationships fails", "range fails", "expression fails", "matches fails":
		return is("empty")
	case "range passes":
		return is("odd DOUBLE") // NaN is in no range
	case "freshness passes":
		return is("empty", "all NULL", "one NULL") || impossible(kind, about, "ever")
	case "freshness fails", "freshness ever":
		return is("BIGINT", "VARCHAR", "BOOLEAN", "DECIMAL(9,2)", "DOUBLE", "odd VARCHAR", "odd DOUBLE")
	case "not_constant fails":
		return is("empty", "plain", "odd VARCHAR", "odd DOUBLE")
	case "sequence passes": // equal neighbours are no step apart
		return is("duplicates", "odd", "with NULLs", "odd DOUBLE") || impossible(kind, about, "ever")
	case "sequence fails":
		return is("empty") || impossible(kind, about, "ever")
	case "sequence ever":
		return is("VARCHAR", "BOOLEAN", "odd VARCHAR")
	}
	return false
}

// cellTable is a query of the values as a column v, and a column k of which
// every second value is NULL.
func cellTable(typ string, data []cell) string {
	rows := []string{}
	for i, v := range data {
		k := "NULL"
		if i%2 == 0 {
			k = strconv.Itoa(i / 4)
		}
		rows = append(rows, "("+sqlOf(v, quoteText)+", "+k+")")
	}
	if len(rows) == 0 {
		return "SELECT CAST(NULL AS " + typ + ") AS v, CAST(NULL AS BIGINT) AS k WHERE false"
	}
	return "SELECT CAST(v AS " + typ + ") AS v, CAST(k AS BIGINT) AS k FROM (VALUES " + strings.Join(rows, ", ") + ") AS t(v, k)"
}

type matrix struct {
	t     *testing.T
	s     *session
	col   matrixColumn
	data  []cell
	table string
}

type matrixCase struct {
	test   project.Test
	parent string
	what   any
	want   int64
}

// count is the naive loop: NULL counts where null says so.
func (m matrix) count(null bool, violates func(string) bool) (n int64) {
	for _, v := range m.data {
		if v == nil && null || v != nil && violates(*v) {
			n++
		}
	}
	return n
}

func (m matrix) has(list []string, v string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return compareCells(m.col.typ, x, v) == 0 })
}

func (m matrix) cases(failNulls bool) []matrixCase {
	out := []matrixCase{
		{test: project.Test{Kind: "not_null"}, want: m.count(true, func(string) bool { return false })},
		{test: project.Test{Kind: "unique"}, want: m.repeated(failNulls)},
		{test: project.Test{Kind: "unique", Columns: []string{"v", "k"}}, what: "composite", want: m.repeatedPairs(failNulls)},
		{test: project.Test{Kind: "not_constant"}, want: m.constant() + m.nulls(failNulls)},
		{test: project.Test{Kind: "row_count", Args: project.TestArgs{Equal: spelled(strconv.Itoa(len(m.data)))}}},
		{test: project.Test{Kind: "row_count", Args: project.TestArgs{Max: spelled(strconv.Itoa(len(m.data))), EqualTo: "parent"}}, parent: fmt.Sprintf("range(%d)", len(m.data)+1), want: 1},
		{test: project.Test{Kind: "expression", Args: project.TestArgs{SQL: "v IS NULL"}}, want: m.count(false, func(string) bool { return true })},
		{test: project.Test{Kind: "expression", Args: project.TestArgs{SQL: "v IS NOT NULL"}}, want: m.nulls(true)},
		{test: project.Test{Kind: "expression", Args: project.TestArgs{SQL: "v = v OR v IS NULL"}}},
		{test: project.Test{Kind: "row_count", Args: project.TestArgs{Min: spelled("1"), Max: spelled("4")}}, want: int64(b2i(len(m.data) < 1 || len(m.data) > 4))},
		{test: project.Test{Kind: "expression", Args: project.TestArgs{SQL: "v IS NOT NULL OR k IS NOT NULL"}}, want: m.bothNull()},
	}
	own := m.set()
	for _, list := range append(slices.Clone(m.col.accepted), own) {
		if len(list) == 0 {
			continue
		}
		values := []*string{nil}
		for _, v := range list {
			values = append(values, &v)
		}
		want := m.count(failNulls, func(v string) bool { return !m.has(list, v) })
		out = append(out, matrixCase{test: project.Test{Kind: "accepted_values", Args: project.TestArgs{Values: values}}, what: list, want: want})
		parent := "(" + cellTable(m.col.typ, append(cells(list...), nil)) + ")"
		out = append(out, matrixCase{test: project.Test{Kind: "relationships", Args: project.TestArgs{To: "parent", Field: "v"}}, parent: parent, what: list, want: want})
	}
	ranges := m.col.ranges
	if len(own) > 0 {
		slices.SortFunc(own, func(a, b string) int { return compareCells(m.col.typ, a, b) })
		ranges = append(slices.Clone(ranges), [3]string{own[0], own[len(own)-1], ""})
	}
	for _, r := range ranges {
		args := project.TestArgs{ExclusiveMin: r[2] == "min" || r[2] == "both", ExclusiveMax: r[2] == "max" || r[2] == "both"}
		if r[0] != "" {
			args.Min = &r[0]
		}
		if r[1] != "" {
			args.Max = &r[1]
		}
		out = append(out, matrixCase{test: project.Test{Kind: "range", Args: args}, what: r, want: m.count(failNulls, func(v string) bool {
			low := args.Min != nil && (compareCells(m.col.typ, v, r[0]) < 0 || args.ExclusiveMin && compareCells(m.col.typ, v, r[0]) == 0)
			high := args.Max != nil && (compareCells(m.col.typ, v, r[1]) > 0 || args.ExclusiveMax && compareCells(m.col.typ, v, r[1]) == 0)
			return low || high || v == "NaN"
		})})
	}
	for _, pattern := range append([]string{"(?s)^.*$"}, m.col.patterns...) {
		re := regexp.MustCompile(pattern)
		out = append(out, matrixCase{test: project.Test{Kind: "matches", Args: project.TestArgs{Pattern: pattern}}, what: pattern,
			want: m.count(failNulls, func(v string) bool { return !re.MatchString(v) })})
	}
	for _, step := range m.col.steps {
		out = append(out, matrixCase{test: project.Test{Kind: "sequence", Args: project.TestArgs{Value: &step}}, what: step, want: m.gaps(step) + m.nulls(failNulls)})
	}
	if isTemporal(m.col.typ) {
		for _, days := range []int{0, 30, 365 * 200} {
			out = append(out, matrixCase{test: project.Test{Kind: "freshness", Args: project.TestArgs{MaxAge: time.Duration(days) * 24 * time.Hour}}, what: days, want: m.stale(days, failNulls)})
		}
	}
	return out
}

// set are the values that are no NULL.
func (m matrix) set() []string {
	var out []string
	for _, v := range m.data {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out
}

func (m matrix) bothNull() (n int64) {
	for i, v := range m.data {
		n += int64(b2i(v == nil && i%2 == 1))
	}
	return n
}

// repeated counts the values that occur more than once, and NULL where it fails.
func (m matrix) repeated(failNulls bool) (n int64) {
	var seen []string
	for i, v := range m.data {
		if v == nil || m.has(seen, *v) {
			continue
		}
		seen = append(seen, *v)
		if slices.ContainsFunc(m.data[i+1:], func(o cell) bool { return o != nil && compareCells(m.col.typ, *o, *v) == 0 }) {
			n++
		}
	}
	if failNulls && slices.Contains(m.data, nil) {
		n++
	}
	return n
}

func (m matrix) repeatedPairs(failNulls bool) (n int64) {
	type pair struct {
		v    string
		null bool
		k    int // -1 is NULL
	}
	times := map[pair]int{}
	for i, v := range m.data {
		p := pair{null: v == nil, k: -1}
		if i%2 == 0 {
			p.k = i / 4
		}
		if v != nil {
			p.v = *v
		}
		times[p]++
	}
	for p, count := range times {
		if p.null || p.k < 0 {
			n += int64(b2i(failNulls))
		} else if count > 1 {
			n++
		}
	}
	return n
}

func (m matrix) constant() int64 {
	var seen []string
	for _, v := range m.data {
		if v != nil && !m.has(seen, *v) {
			seen = append(seen, *v)
		}
	}
	return int64(b2i(len(seen) == 1))
}

// gaps counts the neighbours that differ by something else than the step.
func (m matrix) gaps(step string) (n int64) {
	values := m.set()
	slices.SortFunc(values, func(a, b string) int { return compareCells(m.col.typ, a, b) })
	for i := 1; i < len(values); i++ {
		n += int64(b2i(!follows(m.col.typ, values[i-1], values[i], step)))
	}
	return n
}

func follows(typ, a, b, step string) bool {
	switch typ {
	case "DATE":
		x, _ := time.Parse(time.DateOnly, a)
		return x.AddDate(0, 0, 1).Format(time.DateOnly) == b
	case "TIMESTAMP":
		x, _ := time.Parse(time.DateTime, a)
		return x.AddDate(0, 0, 1).Format(time.DateTime) == b
	case "DOUBLE":
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		by, _ := strconv.ParseFloat(step, 64)
		return y == x+by || math.IsNaN(y) && math.IsNaN(x+by)
	}
	x, _ := new(big.Rat).SetString(a)
	y, _ := new(big.Rat).SetString(b)
	by, _ := new(big.Rat).SetString(step)
	return y.Cmp(x.Add(x, by)) == 0
}

// nulls counts the NULLs where they are violations by themselves.
func (m matrix) nulls(failNulls bool) int64 {
	return m.count(failNulls, func(string) bool { return false })
}

func (m matrix) stale(days int, failNulls bool) int64 {
	oldest := clock.AddDate(0, 0, -days)
	newest := ""
	for _, v := range m.data {
		if v != nil {
			newest = max(newest, *v)
		}
	}
	if newest == "" {
		return max(m.nulls(failNulls), 1)
	}
	if len(newest) == len(time.DateOnly) {
		newest += " 00:00:00"
	}
	at, err := time.Parse(time.DateTime, newest)
	if err != nil {
		panic(err)
	}
	return m.nulls(failNulls) + int64(b2i(at.Before(oldest)))
}
