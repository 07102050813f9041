package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
)

// TestOnlyGreatest: a query is asked of one row only where its tokens show that it
// wants nothing but greatest values.
func TestOnlyGreatest(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`select a from s.t where a > (select max(a) from "main"."x")`, "a"},
		{`select a from s.t where a > (select max(A) from main.X)`, "a"},
		{`select a from s.x where a > (select max(a) from main.x)`, "a"},
		{`select a from s.t where a > (select coalesce(max(a), 0) - 3 from "main"."x")`, "a"},
		{`select a from s.t where a > (select coalesce(max("A b"), date '2020-01-01') from "main"."x")`, "a b"},
		{`select a from s.t where a > (select max(a)::date - interval 3 days from "main"."x")`, "a"},
		{`select a from s.t where a > (select max(a) from "main"."x") or b > (select cast(max(b) as bigint) from "main"."x")`, "a b"},
		{`select a from s.t where a > (select max(max) from "main"."x")`, "max"},

		{`select a from s.t where a > (select max(a) from "main"."x" where a < 5)`, ""},
		{`select a from s.t where a > (select max(a) from "main"."x" group by b)`, ""},
		{`select a from s.t where a > (select max(a) from "main"."x" limit 0)`, ""},
		{`select a from s.t where a > (select max(a) from "main"."x" t)`, ""},
		{`select a from s.t where a > (select max(a) from "main"."x", "main"."x")`, ""},
		{`select a from s.t where a > (select max(a) from s.t) and a not in (select a from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a) from "main"."x") and a not in (select a from "main"."x")`, ""},
		{`select a from s.t where a > (select min(a) from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a + 1) from "main"."x")`, ""},
		{`select a from s.t where a > (select max(distinct a) from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a, 2) from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a) filter (b) from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a) over () from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a) + count(*) from "main"."x")`, ""},
		{`select a from s.t where a > (select count(*) + coalesce((select 1), max(a)) from "main"."x")`, ""},
		{`select a from s.t where a > (select 1 union all select max(a) from "main"."x")`, ""},
		{`select a from s.t where a > (select max(a) from "main"."x" union all select 1)`, ""},
		{`select a from s.t where a > (select distinct max(a) from "main"."x")`, ""},
		{`select a from s.t where a > (select b from "main"."x")`, ""},
		{`select a from s.t where exists (select 1 from "main"."x")`, ""},
		{`select max(a) from "main"."x"`, ""},
		{`(select max(a) from "main"."x")`, "a"},
	} {
		st, err := oneQuery(test.text)
		if err != nil {
			t.Fatal(err)
		}
		_, columns := st.onlyGreatest("main", "x")
		if got := strings.Join(columns, " "); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.text, got, test.want)
		}
	}
}

// TestGreatestRow compares the row with what the engine says of the files.
func TestGreatestRow(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	kinds := []struct {
		typ, expr string // of the row number i
		known     bool
	}{
		{"TINYINT", "i % 100 - 50", true}, {"SMALLINT", "i - 300", true}, {"INTEGER", "-i", true}, {"BIGINT", "9223372036854775807 - i", true},
		{"BIGINT", "-9223372036854775807 - 1", true}, {"UTINYINT", "255 - i % 200", true}, {"USMALLINT", "65535 - i", true},
		{"UINTEGER", "4294967295 - i", true}, {"UBIGINT", "18446744073709551615 - i::HUGEINT", true}, {"DATE", "DATE '1969-12-01' + i::INTEGER", true},
		{"DATE", "DATE '0044-03-15 (BC)' + i::INTEGER", true}, {"DATE", "'infinity'", false}, {"TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.999999' + INTERVAL (i) MICROSECOND", true},
		{"TIMESTAMP", "'-infinity'", false}, {"TIMESTAMP_NS", "make_timestamp_ns(i)", false}, {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ '2024-01-01 00:00:00+00'", false},
		{"DOUBLE", "i / 3", false}, {"VARCHAR", "'text ' || i", false}, {"DECIMAL(9,2)", "i", false}, {"HUGEINT", "i", false}, {"BOOLEAN", "i > 3", false},
		{"TIME", "TIME '10:00:00'", false}, {"INTEGER[]", "[i]", false}, {"STRUCT(c0 BIGINT)", "{'c0': i}", false},
	}
	for n, rows := range [][]int{{0}, {1}, {5000}, {0, 5}, {5000, 3, 5000}} {
		var files []string
		for f, count := range rows {
			var list []string
			for i, k := range kinds {
				// Of each column none, some or all values are NULL.
				list = append(list, fmt.Sprintf("CAST(CASE WHEN (hash(i, %d) %% 100) < %d THEN NULL ELSE %s END AS %s) AS c%d", i, []int{0, 0, 50, 100}[(i+n+f)%4], k.expr, k.typ, i))
			}
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d-%d.parquet", n, f))
			if err := s.Exec(ctx, fmt.Sprintf("COPY (SELECT %s FROM range(%d) AS r(i)) TO %s (FORMAT parquet, ROW_GROUP_SIZE 2048)", strings.Join(list, ", "), count, quoteText(path))); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		for i, k := range kinds {
			c := lake.Column{Name: fmt.Sprintf("c%d", i), Type: k.typ}
			row, known := greatestRow(nil, files, []lake.Column{c}, []string{"C" + c.Name[1:]})
			if known != k.known && (k.known || i != 11 && i != 13) { // infinity may be missing
				t.Errorf("%v rows of %s: known %t, want %t", rows, k.expr, known, k.known)
			}
			if !known {
				continue
			}
			ask := func(from string) string {
				query := "SELECT concat_ws(' ', typeof(max(" + c.Name + ")), max(" + c.Name + "), count(*) > 0) FROM " + from
				return strings.Join(rowsOf(t, s, query), "; ")
			}
			want := ask("(SELECT * FROM (" + scanFiles(files, []lake.Column{c}) + ") UNION ALL SELECT NULL)")
			if got := ask("(" + row + ")"); got != want {
				t.Errorf("%v rows of %s:\n got %s\nwant %s", rows, k.expr, got, want)
			}
			// What is known of each file gives the same without a look at any.
			sum := greatestOf(files[:1], []lake.Column{c})
			for f := range files[1:] {
				sum = lake.GreaterOf(sum, greatestOf(files[f+1:f+2], []lake.Column{c}))
			}
			if remembered, known := greatestRow(sum, nil, []lake.Column{c}, []string{c.Name}); !known || remembered != row {
				t.Errorf("%v rows of %s:\n one by one %s\nof all %s", rows, k.expr, remembered, row)
			}
		}
	}
}

// TestGreatestOfOthers: what is not known for certain is asked of the files.
func TestGreatestOfOthers(t *testing.T) {
	s := testSession(t)
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := s.Exec(context.Background(), "COPY (SELECT 1 AS a, {'x': 2} AS s, DATE '2024-01-01' AS d) TO "+quoteText(path)); err != nil {
		t.Fatal(err)
	}
	columns := []lake.Column{{Name: "a", Type: "INTEGER"}, {Name: "s.x", Type: "INTEGER"}, {Name: "d", Type: "TIMESTAMP"}, {Name: "gone", Type: "BIGINT"}}
	for name, want := range map[string]bool{"a": true, "s.x": false, "d": false, "gone": false, "other": false} {
		if _, known := greatestRow(nil, []string{path}, columns, []string{name}); known != want {
			t.Errorf("%s: known %t, want %t", name, known, want)
		}
	}
	if _, known := greatestRow(nil, nil, columns, []string{"a"}); known {
		t.Error("the greatest of no file is known")
	}
	if _, known := greatestRow(nil, []string{path, path + ".gone"}, columns, []string{"a"}); known {
		t.Error("the greatest over a file that is gone is known")
	}
}

// TestIncrementAsksFooters: an increment that asks for the greatest value gets the
// same rows, without a view of the parts; one that asks more reads them.
func TestIncrementAsksFooters(t *testing.T) {
	for name, tc := range map[string]struct {
		where string
		read  bool // the parts are
	}{
		"greatest":  {"k > (select max(k) from {{ this }})", false},
		"with more": {"k > (select coalesce(max(k), 0) from {{ this }})", false},
		"all rows":  {"k not in (select k from {{ this }})", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{
				"project.yml":  "name: shop\nsources: [{name: raw, tables: [{name: s, path: s.csv, columns: {k: BIGINT, v: VARCHAR}}]}]\n",
				"s.csv":        "k,v\n1,a\n2,b\n",
				"models/m.sql": "---\nmaterialization: incremental\n---\nselect k, v from {{ source('raw', 's') }}\n{% if is_incremental() %} where " + tc.where + " {% endif %}",
			})
			w.must(command{})
			for i := 3; i < 6; i++ {
				w.write("s.csv", fmt.Sprintf("k,v\n1,a\n2,b\n%d,c\n", i))
				w.must(command{trace: true})
				read := false
				for _, ev := range w.events {
					read = read || ev.Kind == EventStatement && strings.HasPrefix(ev.Statement.SQL, "COPY") && strings.Contains(ev.Statement.SQL, `"main"."m"`)
				}
				if read != tc.read {
					t.Errorf("the parts were read: %t, want %t", read, tc.read)
				}
			}
			if diff := cmp.Diff([]string{"row", "1 a", "2 b", "3 c", "4 c", "5 c"}, w.rows("select k || ' ' || v as row from 'LAKE/m.parts/*.parquet' order by 1")); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIncrementAsksReceipt: the receipt tells the greatest values, as long as it is
// about the parts that the manifest lists; without it the parts do.
func TestIncrementAsksReceipt(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":  "name: shop\nsources: [{name: raw, tables: [{name: s, path: s.csv, columns: {k: BIGINT, v: VARCHAR}}]}]\n",
		"models/m.sql": "---\nmaterialization: incremental\n---\nselect k, v from {{ source('raw', 's') }}\n{% if is_incremental() %} where k > (select max(k) from {{ this }}) {% endif %}",
	})
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	load := func(rows string) {
		t.Helper()
		w.write("s.csv", "k,v\n"+rows)
		w.must(command{})
	}
	holds := func(want ...string) {
		t.Helper()
		var m struct{ Parts []string }
		if err := json.Unmarshal([]byte(read("lake/m.parts/_rbt_manifest.json")), &m); err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, part := range m.Parts {
			files = append(files, quoteText("LAKE/m.parts/"+part))
		}
		got := w.rows("select k || ' ' || v as row from read_parquet([" + strings.Join(files, ", ") + "]) order by 1")
		if diff := cmp.Diff(append([]string{"row"}, want...), got); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	}
	greatest := func() map[string]string { return w.receipt("m").Outputs[0].Greatest.Values }
	edit := func(name, old, now string) {
		t.Helper()
		text := read(name)
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not contain %s:\n%s", name, old, text)
		}
		w.write(name, strings.Replace(text, old, now, 1))
	}
	const receipt, manifest = "lake/.rbt/state/m.json", "lake/m.parts/_rbt_manifest.json"

	load("1,a\n2,b\n")
	load("2,b\n5,c\n")
	if diff := cmp.Diff(map[string]string{"k": "5"}, greatest()); diff != "" {
		t.Errorf("greatest values (-want +got):\n%s", diff)
	}
	// Nothing new: the values stay, and so do those of the parts.
	load("4,x\n5,c\n")
	holds("1 a", "2 b", "5 c")
	// It is the receipt that is asked.
	edit(receipt, `"k":"5"`, `"k":"3"`)
	load("3,x\n4,d\n5,c\n")
	holds("1 a", "2 b", "4 d", "5 c", "5 c")
	// Of other parts than the receipt is about the parts are asked.
	var m map[string]any
	if err := json.Unmarshal([]byte(read(manifest)), &m); err != nil {
		t.Fatal(err)
	}
	m["parts"], m["total_rows"] = m["parts"].([]any)[:1], 2
	edited, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	w.write(manifest, string(edited))
	load("2,b\n3,e\n")
	holds("1 a", "2 b", "3 e")
	if diff := cmp.Diff(map[string]string{"k": "3"}, greatest()); diff != "" {
		t.Errorf("greatest values of other parts (-want +got):\n%s", diff)
	}
	// A receipt of before says nothing.
	text := read(receipt)
	at := strings.Index(text, `"greatest"`)
	w.write(receipt, text[:at]+strings.Replace(text[at:], `"greatest"`, `"unknown"`, 1))
	load("3,e\n7,f\n")
	holds("1 a", "2 b", "3 e", "7 f")
	if diff := cmp.Diff(map[string]string{"k": "7"}, greatest()); diff != "" {
		t.Errorf("greatest values after a receipt without (-want +got):\n%s", diff)
	}
}
