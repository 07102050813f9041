package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// proofColumn is a column of random values, of which few are picked for a row
// group, and the bounds and lists that its assertions take.
type proofColumn struct {
	typ    string
	values []string // to be cast to typ
	texts  []string // in YAML spelling
}

func proofColumns() []proofColumn {
	long := strings.Repeat("z", 300)
	return []proofColumn{
		{"BIGINT", []string{"0", "1", "2", "3", "-7", "9223372036854775807", "-9223372036854775808"}, []string{"0", "1", "2", "3", "-7", "1.5", "1e2", "9223372036854775807", "1e60"}},
		{"UBIGINT", []string{"0", "1", "18446744073709551615"}, []string{"0", "1", "18446744073709551615", "-1"}},
		{"UTINYINT", []string{"0", "1", "200", "255"}, []string{"0", "1", "200", "255", "300"}},
		{"SMALLINT", []string{"0", "1", "-2", "32767"}, []string{"0", "1", "-2", "3"}},
		{"DECIMAL(9,2)", []string{"0", "1.5", "1.51", "-0.01"}, []string{"0", "1.5", "1.509", "-0.01", "1"}},
		{"DECIMAL(18,4)", []string{"0", "1.5", "-99999999999999.9999"}, []string{"0", "1.5", "-100000000000000"}},
		{"DECIMAL(38,0)", []string{"0", "1", "-1", "99999999999999999999999999999999999999"}, []string{"0", "1", "-1", "99999999999999999999999999999999999999"}},
		{"DOUBLE", []string{"0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "1e308"}, []string{"0", "1.5", "1e308", "-0"}},
		{"FLOAT", []string{"0", "-0", "0.1", "NaN"}, []string{"0", "0.1", "0.10000000149011612"}},
		{"DATE", []string{"1969-12-31", "2024-02-29", "infinity", "0044-03-15 (BC)"}, []string{"1969-12-31", "2024-02-29", "2024-3-1", "infinity"}},
		{"TIMESTAMP", []string{"1969-12-31 23:59:59.999999", "2024-02-29", "2024-02-29 12:00:00"}, []string{"1969-12-31", "2024-02-29 12:00:00", "2024-02-29 12:00:00.5"}},
		{"TIMESTAMPTZ", []string{"2024-02-29 12:00:00+00", "2024-02-29 12:00:00+02"}, []string{"2024-02-29 12:00:00+00"}},
		{"VARCHAR", []string{"", "a", "b", "é", "007", "7", long, long + "b"}, []string{"", "a", "b", "é", "007", "7", long, "zz"}},
		{"BOOLEAN", []string{"true", "false"}, []string{"true", "false"}},
		{"UUID", []string{"00000000-0000-0000-0000-000000000001"}, []string{"00000000-0000-0000-0000-000000000001"}},
	}
}

// TestProofs writes random tables to Parquet files of several row groups and asks
// assertions about them both ways: what the footers show must be what the query
// counts, and the bitmap of a key must know of repeats exactly where grouping
// does.
func TestProofs(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	dir := t.TempDir()
	shown, bitmaps := map[string]int{}, map[bool]int{}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		col := rapid.SampledFrom(proofColumns()).Draw(rt, "column")
		var files []string
		for range rapid.IntRange(1, 2).Draw(rt, "files") {
			// What a row holds depends on its row group, of which each is 2,048 rows.
			pool := rapid.SliceOfN(rapid.SampledFrom(append(quotedValues(col.values), "NULL", "NULL")), 1, 3)
			rows := rapid.SampledFrom([]int{0, 1, 7, 2048, 5000}).Draw(rt, "rows")
			var groups []string
			for g := range 3 {
				values := pool.Draw(rt, "pool")
				groups = append(groups, fmt.Sprintf("WHEN %d THEN list_extract([%s]::VARCHAR[], 1 + i %% %d)", g, strings.Join(values, ", "), len(values)))
			}
			n++
			path := filepath.Join(dir, fmt.Sprintf("%d.parquet", n))
			files = append(files, path)
			must(t, s.Exec(ctx, fmt.Sprintf("COPY (SELECT CAST(CASE i // 2048 %s END AS %s) AS v, i // 3 AS k, i %% 3 AS l FROM range(%d) AS r(i)) TO %s (FORMAT parquet, ROW_GROUP_SIZE 2048)",
				strings.Join(groups, " "), col.typ, rows, quoteText(path))))
		}
		defer func() {
			for _, path := range files {
				_ = os.Remove(path)
			}
		}()
		from := "(" + scanFiles(files, nil) + ")"
		columns, err := s.Describe(ctx, "SELECT * FROM "+from)
		must(t, err)
		foot := newFooters(files)
		q := asking{run: &run{e: &Engine{o: Options{Project: &project.Project{}}}}, session: s, footers: foot}
		for _, test := range proofTests(rt, col) {
			c, err := genericCheck(&test, subject{from: from, columns: columns, footers: foot}, "", clock)
			if err != nil {
				continue // a value that the type cannot hold
			}
			failures, checked := int64(-1), int64(-1)
			if checkedNow, ok := q.holds(c.proof, foot); ok {
				failures, checked = counted(t, s, c, 0)
				shown[test.Kind]++
				if failures != 0 || checked != checkedNow {
					rt.Errorf("%s of %s %+v: the footers show none of %d, the query counts %d of %d\n%s", test.Kind, col.typ, test.Args, checkedNow, failures, checked, c.Rows)
				}
			}
			if c.proof == nil || len(c.proof.keys) == 0 {
				continue
			}
			q.test, q.result = &test, &TestResult{}
			none, err := q.distinct(ctx, c)
			must(t, err)
			failures, checked = counted(t, s, c, 0)
			if none {
				if failures != 0 || checked != q.result.Checked {
					rt.Errorf("unique of %v: the bitmap finds none in %d, grouping %d in %d", test.Columns, q.result.Checked, failures, checked)
				}
			} else if _, asked := distinctQuery(c.from, c.proof.keys, foot.column); asked && failures == 0 {
				rt.Errorf("unique of %v: the bitmap finds repeats, grouping none", test.Columns)
			}
			bitmaps[none]++
		}
	})
	for _, kind := range []string{"not_null", "range", "accepted_values", "row_count", "not_constant"} {
		if shown[kind] == 0 {
			t.Errorf("nothing was shown for %s", kind)
		}
	}
	if bitmaps[true] == 0 || bitmaps[false] == 0 {
		t.Errorf("bitmaps: %v", bitmaps)
	}
}

func quotedValues(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoteText(v)
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// proofTests are the assertions about a random table.
func proofTests(rt *rapid.T, col proofColumn) []project.Test {
	text := func(label string) *string {
		return rapid.Ptr(rapid.SampledFrom(col.texts), true).Draw(rt, label)
	}
	accepted := []*string{}
	for _, v := range rapid.SliceOfNDistinct(rapid.SampledFrom(col.texts), 1, len(col.texts), rapid.ID).Draw(rt, "accepted") {
		accepted = append(accepted, &v)
	}
	args := project.TestArgs{Min: text("min"), Max: text("max"), ExclusiveMin: rapid.Bool().Draw(rt, "exclusive min"), ExclusiveMax: rapid.Bool().Draw(rt, "exclusive max")}
	rows := rapid.SampledFrom([]string{"0", "1", "7", "2048", "5000", "10000"})
	least, most := rows.Draw(rt, "least"), rows.Draw(rt, "most")
	tests := []project.Test{
		{Kind: "not_null", Columns: []string{"v"}},
		{Kind: "accepted_values", Columns: []string{"v"}, Args: project.TestArgs{Values: accepted}},
		{Kind: "not_constant", Columns: []string{"v"}},
		{Kind: "row_count", Args: project.TestArgs{Min: &least, Max: &most}},
		{Kind: "unique", Columns: []string{"v"}},
		{Kind: "unique", Columns: []string{"k"}},
		{Kind: "unique", Columns: []string{"k", "l"}},
		{Kind: "unique", Columns: []string{"l", "k"}, Where: "k % 2 = 0"},
	}
	if args.Min != nil || args.Max != nil {
		tests = append(tests, project.Test{Kind: "range", Columns: []string{"v"}, Args: args})
	}
	failNulls := rapid.Bool().Draw(rt, "nulls fail")
	for i := range tests {
		tests[i].Node, tests[i].FailNulls = "data", failNulls
	}
	return tests
}

// TestProofTexts compares the units in which files hold values with what is
// written in YAML.
func TestProofTexts(t *testing.T) {
	cases := []struct {
		text, typ string
		whole     bool
		want      string // "" where only the engine can tell
	}{
		{"007", "BIGINT", true, "7"},
		{"1.5", "BIGINT", true, ""},
		{"1.5", "BIGINT", false, "3/2"},
		{"1.5", "DECIMAL(9,2)", true, "150"},
		{"1.505", "DECIMAL(9,2)", true, ""},
		{"1e40", "BIGINT", false, "1" + strings.Repeat("0", 40)},
		{"1970-01-02", "DATE", true, "1"},
		{"1969-12-31", "DATE", true, "-1"},
		{"1970-1-2", "DATE", true, ""},
		{"2024-02-30", "DATE", true, ""},
		{"1970-01-01 00:00:01.5", "TIMESTAMP", true, "1500000"},
		{"1970-01-02", "TIMESTAMP", true, "86400000000"},
		{"1970-01-01 00:00:01.1234567", "TIMESTAMP", true, ""},
		{"1970-01-01 00:00:01", "TIMESTAMP WITH TIME ZONE", true, ""},
		{"a", "VARCHAR", true, ""},
	}
	for _, c := range cases {
		got := ""
		if r, ok := digitsOf(c.text, c.typ, c.whole); ok {
			got = r.RatString()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s as %s: %s", c.text, c.typ, diff)
		}
	}
}

// TestFootersOfSources lets the footers of a source speak only of columns that
// are read as they stand in every file.
func TestFootersOfSources(t *testing.T) {
	w := newWorld(t, map[string]string{"project.yml": `name: p
sources:
  - name: s
    tables:
      - name: t
        path: raw/*.parquet
        columns:
          a: {type: BIGINT, tests: [not_null, {range: {min: 1}}]}
          b: {type: BIGINT, tests: [not_null, {range: {min: 1}}]}
          Up: {type: VARCHAR, tests: [not_null]}
          gap: {type: VARCHAR, tests: [not_null]}
`})
	s := testSession(t)
	must(t, os.Mkdir(filepath.Join(w.dir, "raw"), 0o777))
	for name, sql := range map[string]string{"1": "SELECT 1::BIGINT AS a, '2' AS b, 'x' AS \"Up\", 'g' AS gap", "2": "SELECT 2::BIGINT AS a, '0' AS b, 'x' AS up, NULL::VARCHAR AS gap"} {
		must(t, s.Exec(context.Background(), "COPY ("+sql+") TO "+quoteText(filepath.Join(w.dir, "raw", name+".parquet"))))
	}
	r := w.must(command{tests: true})
	var got []string
	for _, test := range r.Tests {
		got = append(got, fmt.Sprintf("%s %s %d of %d", test.Label, test.Status, test.Failures, test.Checked))
	}
	slices.Sort(got)
	want := []string{"not_null(Up) pass 0 of 2", "not_null(a) pass 0 of 2", "not_null(b) pass 0 of 2", "not_null(gap) fail 1 of 2", "range(a) pass 0 of 2", "range(b) fail 1 of 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	foot := newFooters([]string{filepath.Join(w.dir, "raw", "1.parquet")})
	foot.columns = map[string]bool{"a": true}
	for name, want := range map[string]bool{"a": true, "b": false} {
		if known := foot.column(lake.Column{Name: name, Type: "BIGINT"}); known.counted != want {
			t.Errorf("%s: %+v", name, known)
		}
	}
}

// TestAsStored finds the columns that are neither cast nor missing nor spelled in
// another way.
func TestAsStored(t *testing.T) {
	kinds := []*parquetKind{
		{columns: []lake.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "VARCHAR"}, {Name: "Up", Type: "VARCHAR"}, {Name: "some", Type: "DATE"}}},
		{columns: []lake.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "BIGINT"}, {Name: "up", Type: "VARCHAR"}}},
	}
	got := asStored(kinds, []string{"a", "b", "Up", "some"}, map[string]string{"a": "BIGINT", "b": "BIGINT", "up": "VARCHAR", "some": "DATE"})
	if diff := cmp.Diff(map[string]bool{"a": true, "b": false, "Up": false, "some": false}, got); diff != "" {
		t.Error(diff)
	}
}

// TestCountsAreShared asks once how many rows a where leaves, and again where it
// could not be told.
func TestCountsAreShared(t *testing.T) {
	foot := newFooters([]string{"none.parquet"})
	asked := 0
	count := func(n int64, err error) func() (int64, error) {
		return func() (int64, error) {
			asked++
			return n, err
		}
	}
	broken := errors.New("cancelled")
	if _, err := foot.counted("a", count(0, broken)); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	for _, c := range []struct {
		query string
		gives int64
		want  int64
		asked int
	}{{"a", 7, 7, 2}, {"a", 8, 7, 2}, {"b", 9, 9, 3}} {
		if n, err := foot.counted(c.query, count(c.gives, nil)); err != nil || n != c.want || asked != c.asked {
			t.Errorf("%s: %d after %d questions, %v", c.query, n, asked, err)
		}
	}
}
