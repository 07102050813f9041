package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// nodeErr is the error of one node as a user reads it.
func (w *world) nodeErr(r *Result, name string) string {
	w.t.Helper()
	for _, n := range r.Nodes {
		if n.Name != name || n.Err == nil {
			continue
		}
		var d diag.Diagnostic
		var l diag.List
		text := func(file string) (string, bool) {
			b, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(file)))
			return string(b), err == nil
		}
		switch {
		case errors.As(n.Err, &l):
			return diag.RenderList(l, text)
		case errors.As(n.Err, &d):
			return diag.Render(d, text)
		}
		return n.Err.Error()
	}
	return ""
}

func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, filepath.FromSlash(name)))
	return err == nil
}

// TestModelErrors: each error points at what the user wrote, and nothing is
// written.
func TestModelErrors(t *testing.T) {
	type modelCase struct {
		name  string
		files map[string]string
		want  string
	}
	tests := []modelCase{
		{"unknown column", map[string]string{"models/m.sql": "---\ndescription: x\n---\nselect\n  a.idd\nfrom (select 1 as id) a"},
			"error[RBT4006]: \"a\" has no column \"idd\"\n  --> models/m.sql:5:5\n   5 |   a.idd\n     |     ^^^\n  help: did you mean \"id\"?\n"},
		{"unknown column with candidates", map[string]string{"models/m.sql": "select idd from (select 1 as id)"},
			"error[RBT4006]: Referenced column \"idd\" not found in FROM clause\n  --> models/m.sql:1:8\n   1 | select idd from (select 1 as id)\n     |        ^^^\n  help: did you mean \"id\"?\n"},
		{"unknown table", map[string]string{"models/m.sql": "select 1 as x\nfrom nowhere"},
			"error[RBT4007]: Table with name nowhere does not exist\n  --> models/m.sql:2:6\n   2 | from nowhere\n     |      ^^^^^^^\n"},
		{"syntax", map[string]string{"models/m.sql": "select 1 as x\nfrm t"},
			"error[RBT4005]: syntax error at or near \"frm\"\n  --> models/m.sql:2:1\n   2 | frm t\n     | ^^^\n"},
		{"end of input", map[string]string{"models/m.sql": "select (1"},
			"error[RBT4005]: syntax error at end of input\n  --> models/m.sql:1:10\n   1 | select (1\n     |          ^\n"},
		{"unknown function", map[string]string{"models/m.sql": "select kount(1) as n"},
			"error[RBT4008]: Scalar Function with name kount does not exist\n  --> models/m.sql:1:8\n   1 | select kount(1) as n\n     |        ^^^^^\n  help: did you mean \"count\"?\n"},
		{"operator", map[string]string{"models/m.sql": "select\n  x * (id - 1) as n from (select 2 as x, 'a'::varchar as id)"},
			"error[RBT4008]: No function matches the given name and argument types '-(VARCHAR, INTEGER_LITERAL)'. You might need to add explicit type casts\n  --> models/m.sql:2:11\n   2 |   x * (id - 1) as n from (select 2 as x, 'a'::varchar as id)\n     |           ^\n  help: there is -(TINYINT) -> TINYINT; -(TINYINT, TINYINT) -> TINYINT; -(SMALLINT) -> SMALLINT; -(SMALLINT, SMALLINT) -> SMALLINT; and 35 more\n"},
		{"operator as a word", map[string]string{"models/m.sql": "select id not ilike 1 as n from (select [1] as id)"},
			"error[RBT4008]: No function matches the given name and argument types '!~~*(INTEGER[], INTEGER_LITERAL)'. You might need to add explicit type casts\n  --> models/m.sql:1:11\n   1 | select id not ilike 1 as n from (select [1] as id)\n     |           ^^^\n  help: there is !~~*(VARCHAR, VARCHAR) -> BOOLEAN\n"},
		{"parentheses too deep", map[string]string{"models/m.sql": "select 1 as a,\n  " + strings.Repeat("abs(", 1500) + "\n1" + strings.Repeat(")", 1500) + " as x"},
			"deep 2:6002"},
		{"parentheses deeper", map[string]string{"models/m.sql": "select 1 as a,\n  " + strings.Repeat("(", 10_000) + "\n1" + strings.Repeat(")", 10_000) + " as x"},
			"deep 2:9997"},
		{"chain too long", map[string]string{"models/m.sql": "select 1 + 2 as a,\n  1" + strings.Repeat(" + 1", 3000) + " as x"},
			"deep 2:5"},
		{"in a loop of the template", map[string]string{"models/m.sql": "select\n{% for c in ['id', 'nme'] %}  {{ c }},\n{% endfor %}\nfrom (select 1 as id, 2 as name)"},
			"error[RBT4006]: Referenced column \"nme\" not found in FROM clause\n  --> models/m.sql:2:34\n   2 | {% for c in ['id', 'nme'] %}  {{ c }},\n     |                                  ^^^\n  help: did you mean \"name\"?\n"},
		{"in a macro", map[string]string{"models/m.sql": "select 1 as a,\n  {{ f() }} as b", "macros/f.sql": "{% macro f() %}\n  nofun(1)\n{% endmacro %}"},
			"error[RBT4008]: Scalar Function with name nofun does not exist\n  --> macros/f.sql:2:3\n   2 |   nofun(1)\n     |   ^^^^^\n  note: models/m.sql:2:6: called here\n   2 |   {{ f() }} as b\n     |      ^\n"},
		{"at run time", map[string]string{"models/m.sql": "select cast(x as integer) as y from (values ('1'), ('z')) t(x)"},
			"error[RBT4010]: Could not convert string 'z' to INT32 when casting from source column x\n  --> models/m.sql:1:8\n   1 | select cast(x as integer) as y from (values ('1'), ('z')) t(x)\n     |        ^^^^\n  help: try_cast(… as …) gives NULL where a value does not fit\n"},
		{"at run time in a view", map[string]string{"models/v.sql": "---\nmaterialization: view\n---\nselect cast(x as integer) as y from (values ('1'), ('z')) t(x)", "models/m.sql": "select * from {{ ref('v') }}"},
			"error[RBT4010]: Could not convert string 'z' to INT32 when casting from source column x\n  --> models/m.sql\n  note: m reads the views v, in which this may have happened\n  help: try_cast(… as …) gives NULL where a value does not fit\n"},
		{"untyped column", map[string]string{"models/m.sql": "select 1 as id, null as x"},
			"error[RBT5008]: x has no type: all that is known of it is NULL\n  --> models/m.sql\n  help: give it one in the SQL (NULL::VARCHAR) or declare it: columns: {x: {type: VARCHAR}}\n"},
		{"source value", map[string]string{"models/m.sql": "select * from {{ source('r', 't') }}", "models/s.yml": "sources:\n  - name: r\n    tables:\n      - {name: t, path: data/*.csv, columns: {id: BIGINT}}\n", "data/a.csv": "id\n1\nx\n"},
			"error[RBT4022]: column id: \"x\" is not BIGINT\n  --> data/a.csv:3\n   3 | x\n  note: models/s.yml:4:16: source r.t is declared here\n   4 |       - {name: t, path: data/*.csv, columns: {id: BIGINT}}\n     |                ^\n  help: mend the file, or declare the column as VARCHAR and convert it in a model\n"},
		{"unknown quoted type of a source", map[string]string{"models/m.sql": "select * from {{ source('r', 't') }}", "models/s.yml": "sources:\n  - name: r\n    tables:\n      - {name: t, path: data/*.csv, columns: {id: '\"BIGNIT\"'}}\n", "data/a.csv": "id\n1\n"},
			"error[RBT1004]: column id of source r.t: there is no type BIGNIT\n  --> models/s.yml:4:51\n   4 |       - {name: t, path: data/*.csv, columns: {id: '\"BIGNIT\"'}}\n     |                                                   ^\n  help: did you mean BIGINT?\n"},
		{"source missing", map[string]string{"models/m.sql": "select * from {{ source('r', 't') }}", "models/s.yml": "sources:\n  - name: r\n    tables:\n      - {name: t, path: data/*.csv}\n"},
			"error[RBT4020]: source r.t has no file: nothing matches data/*.csv\n  --> models/s.yml:4:25\n   4 |       - {name: t, path: data/*.csv}\n     |                         ^\n  help: mend the path, or write `on_missing: empty` where no file means no rows\n"},
		{"view over pivot", map[string]string{"models/m.sql": "---\nmaterialization: view\n---\npivot (select 1 as a, 2 as b) on a using sum(b)"},
			"error[RBT4009]: a view cannot hold this query: its columns are known only when it runs\n  --> models/m.sql\n  help: name the values, as in PIVOT … ON x IN (1, 2), or make it a table\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.files)
			r := w.must(command{})
			got := w.nodeErr(r, "m")
			if at, ok := strings.CutPrefix(test.want, "deep "); ok {
				first, rest, _ := strings.Cut(got, "\n")
				place, _, _ := strings.Cut(rest, "\n")
				if first != "error[RBT4005]: the query is nested more deeply here than the SQL engine takes" || place != "  --> models/m.sql:"+at {
					t.Errorf("%s\n%s, want it at %s", first, place, at)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if w.exists("lake/m.parquet") {
				t.Error("something was published")
			}
		})
	}
}

// TestPlanRefuses: what is no single query is refused before anything starts.
func TestPlanRefuses(t *testing.T) {
	for sql, want := range map[string]string{
		"copy (select 1) to 'x.parquet'; select 1":                  "models/m.sql:1:1: a model is one query; this is a statement that begins with COPY [RBT4003]",
		"select 1 as a; select 2 as b":                              "models/m.sql:1:16: a second statement begins here: a model is one SELECT [RBT4002]",
		"select ? as a":                                             "models/m.sql:1:8: a parameter of a prepared statement: a model has none [RBT4004]",
		"\n  attach 'dbname=x password=p4ss' as db (type postgres)": "models/m.sql:2:3: a model is one query; this is a statement that begins with ATTACH [RBT4003]",
		"-- nothing":  "models/m.sql:1:1: there is no SQL statement here [RBT4001]",
		"select 'abc": "models/m.sql:1:8: this string is never closed [RBT4005]",
	} {
		w := newWorld(t, map[string]string{"models/m.sql": sql})
		_, err := w.do(command{})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", sql, err, want)
		}
		if w.exists("x.parquet") || w.exists("lake/m.parquet") {
			t.Errorf("%q wrote a file", sql)
		}
	}
}

func TestIncremental(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql": "---\nmaterialization: incremental\n---\nselect * from {{ source('s', 'e') }}{% if is_incremental() %} where ts > (select max(ts) from {{ this }}){% endif %}",
		"models/c.sql": "select count(*) as n, sum(id) as s from {{ ref('m') }}",
		"models/s.yml": "sources:\n  - name: s\n    tables:\n      - {name: e, path: data/*.csv, columns: {id: BIGINT, ts: TIMESTAMP}}\n",
		"data/a.csv":   "id,ts\n1,2024-01-01 00:00:00\n2,2024-01-02 00:00:00\n",
	})
	w.wants(w.must(command{}), "m success 2 parts=1", "c success 1")
	manifest := func() string {
		b, err := os.ReadFile(filepath.Join(w.dir, "lake/m.parts/_rbt_manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := manifest()
	w.wants(w.must(command{}), "m no-op", "c no-op")
	w.write("data/b.csv", "id,ts\n9,2023-01-01 00:00:00\n")
	w.wants(w.must(command{}), "m success 0 parts=1", "c no-op")
	if manifest() != before {
		t.Error("a run without new rows changed the manifest")
	}
	w.write("data/c.csv", "ts,id\n2024-01-03 00:00:00,3\n")
	w.wants(w.must(command{}), "m success 1 parts=2", "c success 1")
	if diff := cmp.Diff([]string{"n|s", "3|6"}, w.rows("from 'LAKE/c.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.wants(w.must(command{fullRefresh: true}), "m success 4 parts=1", "c success 1")
	if diff := cmp.Diff([]string{"n|s", "4|15"}, w.rows("from 'LAKE/c.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDrift(t *testing.T) {
	w := newWorld(t, map[string]string{"models/m.sql": "---\nmaterialization: incremental\n---\nselect 1::int as id, {'x': 1} as s"})
	w.wants(w.must(command{}), "m success 1 parts=1")
	w.write("models/m.sql", "---\nmaterialization: incremental\n---\nselect 2::bigint as id, {'x': 2, 'y': 'q'} as s")
	r := w.must(command{})
	w.wants(r, "m error")
	want := "error[RBT5005]: the columns differ from those of the published parts: id is BIGINT, and INTEGER in the published parts; s.y is new\n  --> models/m.sql\n"
	if got := w.nodeErr(r, "m"); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	w.write("models/m.sql", "---\nmaterialization: incremental\non_schema_change: full_refresh\n---\nselect 2::bigint as id, {'x': 2, 'y': 'q'} as s")
	w.wants(w.must(command{}), "m success 1 parts=1")
	w.write("models/m.sql", "---\nmaterialization: incremental\n---\nselect 3::int4 as id, {'x': 3::int, 'y': 'q'::text} as s")
	w.wants(w.must(command{}), "m success 1 parts=2")
}

func TestSwitches(t *testing.T) {
	w := newWorld(t, map[string]string{"models/m.sql": "select 1 as id"})
	write := func(head string) {
		w.write("models/m.sql", "---\n"+head+"\n---\nselect 1 as id")
	}
	w.wants(w.must(command{}), "m success 1")
	write("materialization: incremental")
	w.wants(w.must(command{}), "m success 1 parts=1")
	write("materialization: view")
	w.wants(w.must(command{}), "m success")
	write("layout: parts")
	w.wants(w.must(command{}), "m success 1")
	write("materialization: table")
	w.wants(w.must(command{}), "m success 1")
	w.wants(w.must(command{}), "m no-op")
	if w.exists("lake/m.parts") || !w.exists("lake/m.parquet") {
		t.Error("the old form is still there, or the new one is not")
	}
}

func TestGates(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql":          "---\ncolumns: {id: {tests: [unique, not_null]}}\n---\nselect * from (values (1), (2)) t(id)",
		"models/child.sql":      "select * from {{ ref('m') }}",
		"models/other.sql":      "select 1 as x",
		"models/grandchild.sql": "select * from {{ ref('child') }}",
	})
	w.wants(w.must(command{}), "m success 2", "child success 2", "grandchild success 2", "other success 1")
	before, _ := os.ReadFile(filepath.Join(w.dir, "lake/m.parquet"))
	w.write("models/m.sql", "---\ncolumns: {id: {tests: [unique, not_null]}}\n---\nselect * from (values (1), (1), (null), (2), (2)) t(id)")
	w.write("models/other.sql", "select 2 as x")
	r := w.must(command{store: true})
	w.wants(r, "m error [fail not_null(id) 1] [fail unique(id) 2]", "child skipped because m", "grandchild skipped because m", "other success 1")
	after, _ := os.ReadFile(filepath.Join(w.dir, "lake/m.parquet"))
	if string(before) != string(after) {
		t.Error("the published file changed")
	}
	if !w.exists("target/failed/m.staged") || !w.exists("target/failures/unique_m_id.parquet") {
		t.Error("failures were not stored")
	}
	test := r.Nodes[0].Tests[1]
	if diff := cmp.Diff([][]string{{"1", "2"}, {"2", "2"}}, test.Sample); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
	// A warning publishes.
	w.write("models/m.sql", "---\ncolumns: {id: {tests: [{unique: {severity: warn}}]}}\n---\nselect * from (values (1), (1)) t(id)")
	w.wants(w.must(command{}), "m success 2 [warn unique(id) 1]", "child success 2", "grandchild success 2", "other no-op")
	// And warns again, though nothing is built.
	w.wants(w.must(command{}), "m no-op [warn unique(id) 1]", "child no-op", "grandchild no-op", "other no-op")
}

// TestChangedTestsAudit: a new test is asked about the published data, and
// nothing is built.
func TestChangedTestsAudit(t *testing.T) {
	w := newWorld(t, map[string]string{"models/m.sql": "select 1 as id"})
	w.wants(w.must(command{}), "m success 1")
	w.write("models/m.sql", "---\ntests: [{row_count: {min: 1}}]\n---\nselect 1 as id")
	r := w.must(command{})
	w.wants(r, "m no-op")
	if len(r.Nodes[0].Tests) != 1 {
		t.Errorf("%d tests were asked", len(r.Nodes[0].Tests))
	}
	r = w.must(command{})
	w.wants(r, "m no-op")
	if len(r.Nodes[0].Tests) != 0 {
		t.Error("the test was asked again")
	}
	w.write("models/m.sql", "---\ntests: [{row_count: {min: 2}}]\n---\nselect 1 as id")
	w.wants(w.must(command{}), "m error [fail row_count 1]")
}

func TestIncrementalAuditsNewPart(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql": "---\nmaterialization: incremental\ncolumns: {id: {tests: [unique, not_null]}}\n---\nselect {{ var('id', '1') }}::int as id",
	})
	w.wants(w.must(command{}), "m success 1 parts=1")
	w.vars = map[string]any{"id": "2"}
	w.wants(w.must(command{}), "m success 1 parts=2")
	w.vars = map[string]any{"id": "1"}
	w.wants(w.must(command{}), "m no-op")
	w.wants(w.must(command{force: true}), "m error [fail unique(id) 1]")
	w.vars = map[string]any{"id": "null"}
	w.wants(w.must(command{}), "m error [fail not_null(id) 1]")
	w.vars = map[string]any{"id": "3"}
	w.wants(w.must(command{}), "m success 1 parts=3")
}

func TestSeeds(t *testing.T) {
	w := newWorld(t, map[string]string{
		"seeds/c.csv": "code,zip,n,f,d,t,b,empty,long,amb,one\nDE,007,1,1.5,2024-01-31,2024-01-31 10:00:00,true,,70000000000000000123,01/02/2024,1\nFR,008,-2,2,2024-02-01,2024-01-31 10:00:00.5,false,,1,03/04/2024,0\n",
	})
	w.wants(w.must(command{}), "c success 2")
	want := []string{"code|zip|n|f|d|t|b|empty|long|amb|one", "VARCHAR|VARCHAR|BIGINT|DOUBLE|DATE|TIMESTAMP|BOOLEAN|VARCHAR|VARCHAR|VARCHAR|BIGINT"}
	if diff := cmp.Diff(want, w.rows("select typeof(columns(*)) from 'LAKE/seeds/c.parquet' limit 1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.wants(w.must(command{}), "c no-op")
}

func TestSumsAreExact(t *testing.T) {
	w := newWorld(t, map[string]string{"models/m.sql": "select sum(x) as s from (values (9007199254740993::bigint), (0)) t(x)"})
	w.wants(w.must(command{}), "m success 1")
	if diff := cmp.Diff([]string{"s|t", "9007199254740993|DECIMAL(38,0)"}, w.rows("select s::varchar as s, typeof(s) as t from 'LAKE/m.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOddNamesAndPaths(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql":        "---\ncolumns:\n  start time: {tests: [not_null]}\n  'x\"y': {tests: [unique]}\n  Ä: {tests: [not_null]}\n---\nselect 1 as \"start time\", 2 as \"x\"\"y\", 3 as \"Ä\" -- the end",
		"models/b.sql":        "select * from {{ source('r', 'brackets') }}",
		"models/s.yml":        "sources:\n  - name: r\n    tables:\n      - {name: brackets, path: 'data/w [1].parquet'}\n",
		"models/rec.sql":      "with recursive t as (select 1 as c union all select c + 1 from t where c < 5) select max(c) as c from t",
		"models/readrec.sql":  "select c from {{ ref('rec') }}",
		"models/selfname.sql": "with m as (select * from {{ ref('m') }}) select * from m",
	})
	s := testSession(t)
	for name, v := range map[string]int{"w [1].parquet": 1, "w 1.parquet": 2} {
		path := filepath.Join(w.dir, "data", name)
		_ = os.MkdirAll(filepath.Dir(path), 0o777)
		if _, err := s.CopyTo(t.Context(), fmt.Sprintf("select %d as a", v), path, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.wants(w.must(command{}), "m success 1", "rec success 1", "b success 1", "readrec success 1", "selfname success 1")
	if diff := cmp.Diff([]string{"a", "1"}, w.rows("from 'LAKE/b.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c", "5"}, w.rows("from 'LAKE/readrec.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPivotWithoutIn(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql": "pivot (select * from (values (1, 'a'), (2, 'b'), (3, 'a')) t(v, k)) on k using sum(v)",
	})
	w.wants(w.must(command{}), "m success 1")
	if diff := cmp.Diff([]string{"a|b", "4|2"}, w.rows("select a::int as a, b::int as b from 'LAKE/m.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Its parse tree is not known, so it is never unchanged.
	w.wants(w.must(command{}), "m success 1")
}

func TestEphemeralAndViewsUnselected(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/base.sql": "select 1 as id",
		"models/e.sql":    "---\nmaterialization: ephemeral\n---\nselect id + 1 as id from {{ ref('base') }}",
		"models/v.sql":    "---\nmaterialization: view\n---\nselect id + 1 as id from {{ ref('e') }}",
		"models/m.sql":    "select * from {{ ref('v') }}",
	})
	w.wants(w.must(command{}), "base success 1", "v success", "m success 1")
	w.write("models/base.sql", "select 10 as id")
	w.wants(w.must(command{sel: []string{"base", "m"}}), "base success 1", "m success 1")
	if diff := cmp.Diff([]string{"id", "12"}, w.rows("from 'LAKE/m.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// An edited view that is not selected is read as it was published.
	w.write("models/v.sql", "---\nmaterialization: view\n---\nselect id + 100 as id from {{ ref('e') }}")
	w.write("models/m.sql", "select id, 'x' as x from {{ ref('v') }}")
	w.wants(w.must(command{sel: []string{"m"}}), "m success 1")
	if diff := cmp.Diff([]string{"id|x", "12|x"}, w.rows("from 'LAKE/m.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSeedErrors(t *testing.T) {
	for name, test := range map[string]struct{ csv, yml, want string }{
		"value":   {"id,n\n1,x\nq,y\n", "{id: BIGINT}", "seeds/c.csv:3: column id: \"q\" is not BIGINT [RBT4022]"},
		"missing": {"ident\n1\n", "{id: BIGINT}", "seeds/c.csv:1: the declared column id is missing [RBT4021]"},
		"row":     {"id,n\n1\n", "{id: BIGINT}", "seeds/c.csv:2: 2 values are expected and 1 is there [RBT4022]"},
		"ends":    {"id,n\r\n1,x\n2,y\r\n", "{id: BIGINT}", "seeds/c.csv:2: the file has mixed line ends: this line does not end as the first one does [RBT4022]"},
		"empty":   {"id,n\n1,x\n2,y,\n", "{id: BIGINT}", "seeds/c.csv:3: 2 values are expected and 3 are there [RBT4022]"},
	} {
		w := newWorld(t, map[string]string{"seeds/c.csv": test.csv, "models/s.yml": "seeds:\n  - name: c\n    columns: " + test.yml + "\n"})
		r := w.must(command{})
		got := ""
		if r.Nodes[0].Err != nil {
			got = r.Nodes[0].Err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
