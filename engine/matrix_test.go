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
	case typ == "DOUBLE":
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(b2i(math.IsNaN(x)), b2i(math.IsNaN(y)))
		}
		return cmp.Compare(x, y)
	case typ == "BIGINT" || strings.HasPrefix(typ, "DECIMAL"):
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
		{"BOOLEAN", data(cells("true", "false"), cells("true", "true"), cells("false")), [][]string{{"true"}, {"true", "false"}}, nil, nil, nil},
		{"DECIMAL(9,2)", data(cells("1.00", "2.00", "3.00"), cells("1.10", "1.10"), cells("-0.01", "9999999.99", "0.00")),
			[][]string{{"1", "2.0", "3.000"}, {"1.1"}, {"-0.01", "0"}}, [][3]string{{"1", "3", ""}, {"1.095", "", ""}, {"0", "9999999.99", "both"}}, nil, []string{"1", "0.5"}},
		{"DATE", data(cells("2024-02-28", "2024-02-29", "2024-03-01"), cells("2024-01-01", "2024-01-01"), cells("1900-01-01", "2999-12-31")),
			[][]string{{"2024-02-28", "2024-02-29", "2024-03-01"}, {"2024-01-01"}}, [][3]string{{"2024-01-01", "2024-12-31", ""}, {"", "2024-02-29", "max"}}, nil, []string{"1 day"}},
		{"DOUBLE", data(cells("1", "2", "3"), cells("0.1", "0.1"), cells("NaN", "NaN", "Infinity", "-Infinity", "1e308", "-0.5")),
			[][]string{{"1", "2", "3"}, {"NaN", "0.1"}, {"Infinity"}}, [][3]string{{"1", "3", ""}, {"0", "", ""}, {"", "1e300", ""}, {"-0.5", "", "min"}}, nil, []string{"1"}},
	}
}

// TestMatrix asks every assertion about every kind of data in every type, with
// NULLs ignored and as failures, and compares exact counts with loops in Go.
func TestMatrix(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	asked, passed, failed := map[string]int{}, map[string]int{}, map[string]int{}
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
					asked[c.test.Kind]++
					if c.want == 0 {
						passed[c.test.Kind]++
					} else {
						failed[c.test.Kind]++
					}
				}
			}
		}
	}
	for _, kind := range []string{"not_null", "unique", "accepted_values", "relationships", "range", "row_count", "expression", "matches", "freshness", "not_constant", "sequence"} {
		if passed[kind] == 0 || failed[kind] == 0 {
			t.Errorf("%s: %d cases, of which %d pass and %d fail", kind, asked[kind], passed[kind], failed[kind])
		}
	}
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
		{test: project.Test{Kind: "not_constant"}, want: m.constant()},
		{test: project.Test{Kind: "row_count", Args: project.TestArgs{Min: spelled("1"), Max: spelled("4")}}, want: int64(b2i(len(m.data) < 1 || len(m.data) > 4))},
		{test: project.Test{Kind: "expression", Args: project.TestArgs{SQL: "v IS NOT NULL OR k IS NOT NULL"}}, want: m.bothNull()},
	}
	for _, list := range m.col.accepted {
		values := []*string{nil}
		for _, v := range list {
			values = append(values, &v)
		}
		want := m.count(failNulls, func(v string) bool { return !m.has(list, v) })
		out = append(out, matrixCase{test: project.Test{Kind: "accepted_values", Args: project.TestArgs{Values: values}}, what: list, want: want})
		parent := "(" + cellTable(m.col.typ, append(cells(list...), nil)) + ")"
		out = append(out, matrixCase{test: project.Test{Kind: "relationships", Args: project.TestArgs{To: "parent", Field: "v"}}, parent: parent, what: list, want: want})
	}
	for _, r := range m.col.ranges {
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
	for _, pattern := range m.col.patterns {
		re := regexp.MustCompile(pattern)
		out = append(out, matrixCase{test: project.Test{Kind: "matches", Args: project.TestArgs{Pattern: pattern}}, what: pattern,
			want: m.count(failNulls, func(v string) bool { return !re.MatchString(v) })})
	}
	for _, step := range m.col.steps {
		out = append(out, matrixCase{test: project.Test{Kind: "sequence", Args: project.TestArgs{Value: &step}}, what: step, want: m.gaps(step)})
	}
	if m.col.typ == "DATE" {
		for _, days := range []int{30, 365 * 200} {
			out = append(out, matrixCase{test: project.Test{Kind: "freshness", Args: project.TestArgs{MaxAge: time.Duration(days) * 24 * time.Hour}}, what: days, want: m.stale(days)})
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
	var values []string
	for _, v := range m.data {
		if v != nil {
			values = append(values, *v)
		}
	}
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

func (m matrix) stale(days int) int64 {
	oldest := clock.AddDate(0, 0, -days)
	for _, v := range m.data {
		if v == nil {
			continue
		}
		if day, _ := time.Parse(time.DateOnly, *v); !day.Before(oldest) {
			return 0
		}
	}
	return 1
}
