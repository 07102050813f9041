package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A CTE that has the name of what it reads hides no dependency, and makes no
// edge to itself.
func TestCTENamedAsItsSource(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/s.yml": "sources:\n  - name: erp\n    tables: [{name: invoice, path: data/erp.csv}]\n  - name: legacy\n    tables: [{name: invoice, path: data/legacy.csv}]\n",
		"data/erp.csv": "id\n1\n", "data/legacy.csv": "id\n2\n",
		"models/invoice.sql":    "with invoice as (select * from {{ source('erp','invoice') }}), old as (select * from {{ source('legacy','invoice') }}) select * from invoice union all select * from old",
		"models/orders.sql":     "with orders as (select * from {{ ref('stg_orders') }}) select * from orders",
		"models/stg_orders.sql": "select 7 as id",
	})
	w.wants(w.must(command{}), "stg_orders success 1", "invoice success 2", "orders success 1")
}

// A column without a type is refused where the model is built, and both builds
// of an incremental work once the type is declared.
func TestUntypedNull(t *testing.T) {
	w := newWorld(t, map[string]string{"models/m.sql": "---\nmaterialization: incremental\n---\nselect 1 as id, null as x"})
	r := w.must(command{})
	w.wants(r, "m error")
	if got := w.nodeErr(r, "m"); !strings.Contains(got, "x has no type") {
		t.Error(got)
	}
	w.write("models/m.sql", "---\nmaterialization: incremental\ncolumns: {x: {type: varchar}}\n---\nselect 1 as id, null as x")
	w.wants(w.must(command{}), "m success 1 parts=1")
	w.write("models/m.sql", "---\nmaterialization: incremental\ncolumns: {x: {type: varchar}}\n---\nselect 2 as id, 'abc' as x")
	w.wants(w.must(command{}), "m success 1 parts=2")
}

// A query that fails at its three hundred thousandth row leaves the old file.
func TestErrorInTheMiddle(t *testing.T) {
	w := newWorld(t, map[string]string{"models/m.sql": "select 1 as i"})
	w.wants(w.must(command{}), "m success 1")
	before, _ := os.ReadFile(filepath.Join(w.dir, "lake/m.parquet"))
	w.write("models/m.sql", "select i, case when i = 300000 then error('boom') else i end as e from range(400000) t(i)")
	r := w.must(command{})
	w.wants(r, "m error")
	if got := w.nodeErr(r, "m"); !strings.HasPrefix(got, "error[RBT4010]: boom\n") {
		t.Error(got)
	}
	after, _ := os.ReadFile(filepath.Join(w.dir, "lake/m.parquet"))
	if string(before) != string(after) {
		t.Error("the published file changed")
	}
	if found, _ := filepath.Glob(filepath.Join(w.dir, "lake", "*")); len(found) != 2 { // .rbt and the file
		t.Errorf("left in the lake: %v", found)
	}
}

func TestArraysAndTimestamps(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql":  "select [1,2]::int[2] as a union all select null",
		"models/ts.sql": "select timestamp '2024-03-10 06:30:00' as n, timestamptz '2024-03-10 06:30:00+05:30' as t",
	})
	w.wants(w.must(command{}), "a success 2", "ts success 1")
	if diff := cmp.Diff([]string{"t|n", "INTEGER[]|2"}, w.rows("select typeof(a) as t, count(*) as n from 'LAKE/a.parquet' group by all")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, zone := range []string{"UTC", "America/New_York"} {
		s := testSession(t)
		if err := s.Exec(t.Context(), "SET TimeZone = "+quoteText(zone)); err != nil {
			t.Fatal(err)
		}
		got := rowsOf(t, s, "select n::varchar as n, epoch(t) as t from "+quoteText(filepath.Join(w.dir, "lake/ts.parquet")))
		if diff := cmp.Diff([]string{"n|t", "2024-03-10 06:30:00|1.7100324e+09"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", zone, diff)
		}
	}
}

// Failing rows are printed exactly: no float stands in between.
func TestSampleIsExact(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql": "---\ntests: [{expression: 'false'}]\n---\nselect 12345678901234567890.123456789::decimal(38,9) as d, 17014118346046923173168730371588410572::hugeint as h, " +
			"'nan'::double as n, 0.1::double as f, timestamptz '2024-01-01 00:00:00.123456+00' as t, {'a': [1, null]} as s, '\\xAA'::blob as b, null::int as z",
	})
	r := w.must(command{})
	want := [][]string{{"12345678901234567890.123456789", "17014118346046923173168730371588410572", "nan", "0.1", "2024-01-01 00:00:00.123456+00", "{'a': [1, NULL]}", `\xAA`, "NULL"}}
	if diff := cmp.Diff(want, r.Nodes[0].Tests[0].Sample); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A secret that stands in a source's path is nowhere but in the files' names.
func TestSecretInPath(t *testing.T) {
	const secret = "s3cr3t-0001"
	w := newWorld(t, map[string]string{
		"project.yml":               "name: shop\nsources:\n  - name: r\n    tables:\n      - {name: t, path: \"data/{{ env_var('RBT_SECRET_KEY') }}/*.csv\", columns: {id: BIGINT}}\n",
		"data/" + secret + "/a.csv": "id\n1\n",
		"models/m.sql":              "select * from {{ source('r', 't') }}",
	})
	w.env = map[string]string{"RBT_SECRET_KEY": secret}
	r := w.must(command{})
	w.wants(r, "m success 1")
	look := func(what, text string) {
		t.Helper()
		if strings.Contains(text, secret) {
			t.Errorf("the secret stands in %s", what)
		}
	}
	_ = filepath.WalkDir(filepath.Join(w.dir, "lake"), func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			b, _ := os.ReadFile(path)
			look(path, string(b))
		}
		return nil
	})
	look("the compiled SQL", r.Nodes[0].SQL)
	w.write("data/"+secret+"/a.csv", "id\nx\n")
	r = w.must(command{})
	look("an error", w.nodeErr(r, "m"))
	if got := w.nodeErr(r, "m"); !strings.Contains(got, "data/*****/a.csv:2") {
		t.Error(got)
	}
	if err := os.Remove(filepath.Join(w.dir, "data", secret, "a.csv")); err != nil {
		t.Fatal(err)
	}
	look("an error", w.nodeErr(w.must(command{}), "m"))
}

// Many columns under a low memory limit: done, or a clear error.
func TestWideRows(t *testing.T) {
	if testing.Short() {
		t.Skip("writes many columns")
	}
	columns := make([]string, 200)
	for i := range columns {
		columns[i] = fmt.Sprintf("(i * %d) %% 1000 as c%d", i+7, i)
	}
	w := newWorld(t, map[string]string{
		"project.yml":  "name: shop\nengine: {memory_limit: 200MB, duckdb_threads: 2}\n",
		"models/m.sql": "select " + strings.Join(columns, ", ") + " from range(20000) t(i)",
	})
	w.wants(w.must(command{}), "m success 20000")
}

// Memory that runs out is said with what can be done, and leaves nothing.
func TestMemoryRunsOut(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":  "name: shop\nengine: {memory_limit: 60MB, duckdb_threads: 1}\n",
		"models/m.sql": "select list(i) as l from range(40000000) t(i)",
	})
	r := w.must(command{})
	w.wants(r, "m error")
	got := w.nodeErr(r, "m")
	if !strings.HasPrefix(got, "error[RBT4012]: ") || !strings.Contains(got, "raise engine.memory_limit") {
		t.Error(got)
	}
	w.write("models/m.sql", "select 1 as x")
	w.wants(w.must(command{}), "m success 1")
}

// A mistake in the engine's settings is told once, before anything starts.
func TestBadSettingStopsTheRun(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":  "name: shop\nengine: {settings: {integer_divison: true}}\n",
		"models/m.sql": "select 1 as x",
	})
	_, err := w.do(command{})
	if want := `project.yml:2:21: engine.settings: DuckDB has no setting "integer_divison" [RBT4011]`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestEphemeralOverPivot(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/e.sql": "---\nmaterialization: ephemeral\n---\npivot (select 1 as a, 2 as b) on a using sum(b)",
		"models/m.sql": "select * from {{ ref('e') }}",
	})
	r := w.must(command{})
	if got := w.nodeErr(r, "m"); !strings.HasPrefix(got, "error[RBT4009]: a view cannot hold this query") {
		t.Error(got)
	}
}
