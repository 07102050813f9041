package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/jinja"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// unitLines gives each test of a result as a line: name, status, and what was
// found or what went wrong.
func unitLines(r *Result) []string {
	var lines []string
	for _, t := range r.Tests {
		line := t.Name + " " + string(t.Status)
		if t.Found != "" {
			line += ": " + t.Found
		}
		if t.Err != nil {
			line += ": " + t.Err.Error()
		}
		lines = append(lines, line)
	}
	return lines
}

func TestUnitTests(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml": `name: shop
vars: {tax: 2}
sources:
  - name: raw
    tables:
      - {name: orders, path: none.csv, on_missing: empty, columns: {id: BIGINT, amount: "DECIMAL(9,2)", day: DATE, at: TIMESTAMP, note: VARCHAR, tags: "VARCHAR[]", who: "STRUCT(first VARCHAR, age INTEGER)", extra: JSON}}
`,
		"macros/m.sql": `{% macro rate() %}100{% endmacro %}`,
		"models/plain.sql": `---
unit_tests:
  - name: types
    given:
      - input: source('raw', 'orders')
        rows:
          - {id: 1, amount: 1.10, day: 2024-02-29, at: "2024-02-29 10:00:00", note: 007, tags: [a, "b, c"], who: {first: "O'Hara", age: 3}, extra: {k: [1, null]}}
          - {id: 9223372036854775807, tags: [], who: {AGE: 4}}
    expect:
      rows:
        - {id: 9223372036854775807, amount: null, tags: [], who: {age: 4}}
        - {id: 1, amount: 1.1, tags: [a, "b, c"], who: {age: 3, first: "O'Hara"}}
  - name: csv
    given:
      - input: source('raw', 'orders')
        csv: |
          id,note,amount
          1,"a, b",
          2,,3
    expect:
      csv: |
        id,note,amount,tags
        2,,3.00,
        1,"a, b",,
  - name: sql
    given:
      - {input: "source('raw', 'orders')", sql: "select 1 as id, 2.5 as amount"}
    expect: {sql: "select 1 as id, 2.50 as amount, null as day"}
  - name: nothing
    given: [{input: "source('raw', 'orders')", rows: []}]
    expect: {rows: []}
  - name: repeats
    given:
      - {input: "source('raw', 'orders')", rows: [{id: 1}, {id: 1}]}
    expect: {rows: [{id: 1}]}
---
select * from {{ source('raw', 'orders') }}
`,
		"models/totals.sql": `select {{ var('tax') }} * {{ rate() }} as factor, '{{ run_started_at.strftime("%Y-%m-%d") }}' as today, id, sum(amount) as amount from {{ ref('plain') }} group by id`,
		"models/units.yml": `unit_tests:
  - name: overridden
    model: totals
    now: 2020-05-06
    overrides: {vars: {tax: 7}, macros: {rate: 3}}
    given: [{input: ref('plain'), rows: [{id: 1, amount: 1}, {id: 1, amount: 0.25}]}]
    expect: {rows: [{factor: 21, today: "2020-05-06", id: 1, amount: 1.25}]}
`,
		"models/log.sql": `---
materialization: incremental
unit_tests:
  - name: first_build
    given: [{input: ref('totals'), rows: [{id: 1}, {id: 2}]}]
    expect: {rows: [{id: 1}, {id: 2}]}
  - name: increment
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('totals'), rows: [{id: 1}, {id: 2}]}
      - {input: this, rows: [{id: 1}]}
    expect: {rows: [{id: 2}]}
    expect_table: {rows: [{id: 1}, {id: 2}]}
  - name: table_differs
    given:
      - {input: ref('totals'), rows: [{id: 1}, {id: 2}]}
      - {input: this, rows: [{id: 1}]}
    expect: {rows: [{id: 2}]}
    expect_table: {rows: [{id: 2}]}
  - name: onto_nothing
    overrides: {macros: {is_incremental: true}}
    given: [{input: ref('totals'), rows: [{id: 1}]}]
    expect: {rows: []}
---
select id from {{ ref('totals') }} {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
`,
	})
	result, err := w.do(command{tests: true, workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"first_build pass",
		"increment pass",
		"onto_nothing pass",
		"table_differs fail: in the table after the increment, 2 rows: 1 is not expected",
		"csv pass",
		"nothing pass",
		"repeats fail: 2 rows: 1 is not expected",
		"sql pass",
		"types pass",
		"overridden pass",
	}, unitLines(result)); diff != "" {
		t.Error(diff)
	}
	if w.exists("lake/log.rbt_incremental.json") || w.exists("lake/plain.parquet") {
		t.Error("a unit test published something")
	}
}

func TestUnitTestMistakes(t *testing.T) {
	w := newWorld(t, map[string]string{
		"seeds/s.csv":     "id,name\n1,a\n",
		"seeds/other.csv": "id\n1\n",
		"models/m.sql": `---
unit_tests:
  - {name: a_missing_input, given: [], expect: {rows: []}}
  - {name: b_unknown_column, given: [{input: ref('s'), rows: [{nmae: x}]}], expect: {rows: []}}
  - {name: c_unknown_expected, given: [{input: ref('s'), rows: []}], expect: {rows: [{idd: 1}]}}
  - {name: d_bad_value, given: [{input: ref('s'), rows: [{id: 1}, {id: 1.5}]}], expect: {rows: []}}
  - {name: e_bad_expected, given: [{input: ref('s'), rows: []}], expect: {rows: [{id: many}]}}
  - {name: f_bad_sql, given: [{input: ref('s'), sql: "select 1 as id; select 2"}], expect: {rows: []}}
  - {name: g_not_read, given: [{input: ref('s'), rows: []}, {input: ref('other'), rows: []}], expect: {rows: []}}
  - {name: h_not_a_query, given: [{input: ref('s'), sql: "drop table x"}], expect: {rows: []}}
  - {name: i_fails, given: [{input: ref('s'), rows: [{id: 1, name: x}]}], expect: {rows: []}}
  - {name: j_lossy_sql, given: [{input: ref('s'), sql: "select 1.5 as id"}], expect: {rows: []}}
---
select id, cast(name as integer) as n from {{ ref('s') }}
`,
	})
	result, err := w.do(command{tests: true, workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a_missing_input error: models/m.sql:3:12: the unit test a_missing_input gives no rows for ref('s'), which m reads [RBT6006]",
		`b_unknown_column error: models/m.sql:4:38: the rows of s in the unit test b_unknown_column: there is no column "nmae"; did you mean "name"? [RBT6007]`,
		`c_unknown_expected error: models/m.sql:5:78: the expected rows in the unit test c_unknown_expected: there is no column "idd"; did you mean "id"? [RBT6007]`,
		`d_bad_value error: models/m.sql:6:33: the rows of s in the unit test d_bad_value: row 2, column id: "1.5" is no value of the type BIGINT [RBT6007]`,
		`e_bad_expected error: models/m.sql:7:74: the expected rows in the unit test e_bad_expected: row 1, column id: "many" is no value of the type BIGINT [RBT6007]`,
		"f_bad_sql error: models/m.sql:8:31: a second statement begins here: a model is one SELECT [RBT4002]",
		"g_not_read error: models/m.sql:9:61: the unit test g_not_read gives rows for ref('other'), which m does not read [RBT6006]",
		"h_not_a_query error: models/m.sql:10:35: a model is one query; this is a statement that begins with DROP [RBT4003]",
		"i_fails error: models/m.sql:",
		"j_lossy_sql error: models/m.sql:12:33: the rows of s in the unit test j_lossy_sql: no value of the type BIGINT: 1.5 [RBT6007]",
	}
	got := unitLines(result)
	if len(got) != len(want) {
		t.Fatalf("%d results\n%s", len(got), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// TestUnitTestsGateTheirModel checks that a failing unit test stops its model
// before it is built, and what reads it.
func TestUnitTestsGateTheirModel(t *testing.T) {
	model := func(expected string) string {
		return `---
unit_tests:
  - {name: u, given: [{input: ref('s'), rows: [{id: 1}]}], expect: {rows: [{id: ` + expected + `}]}}
---
select id from {{ ref('s') }}
`
	}
	w := newWorld(t, map[string]string{
		"seeds/s.csv":  "id\n1\n",
		"models/m.sql": model("2"),
		"models/n.sql": "select * from {{ ref('m') }}",
	})
	result, err := w.do(command{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range result.Nodes {
		got = append(got, n.Name+" "+string(n.Status))
	}
	if diff := cmp.Diff([]string{"s success", "m error", "n skipped"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"u fail: 1 row: 1 differs"}, unitLines(result)); diff != "" {
		t.Error(diff)
	}
	if w.exists("lake/m.parquet") {
		t.Error("m was published")
	}
	w.write("models/m.sql", model("1"))
	if result, err = w.do(command{}); err != nil {
		t.Fatal(err)
	}
	if !w.exists("lake/m.parquet") || !w.exists("lake/n.parquet") {
		t.Error("m and n were not published", unitLines(result))
	}
}

// TestDiffRowsIsSymmetric checks on random rows that a difference is found
// exactly where the multisets differ, and accounts for every row.
func TestDiffRowsIsSymmetric(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gen := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) unitRow {
			value := func(label string, texts ...string) unitValue {
				if v := rapid.Ptr(rapid.SampledFrom(texts), true).Draw(rt, label); v != nil {
					return unitValueOf(*v, nil, "VARCHAR")
				}
				return unitValueOf(nil, nil, "VARCHAR")
			}
			return unitRow{value("x", "", "a", "b"), value("y", "", "n;")}
		}), 0, 6)
		a, b := gen.Draw(rt, "expected"), gen.Draw(rt, "got")
		count := map[string]int{}
		for _, r := range a {
			count[r.key()]++
		}
		for _, r := range b {
			count[r.key()]--
		}
		missing, extra := 0, 0
		for _, n := range count {
			missing, extra = missing+max(n, 0), extra+max(-n, 0)
		}
		d := diffRows([]string{"x", "y"}, a, b)
		if got := len(d.differing) + len(d.missing); got != missing {
			rt.Errorf("%d expected rows are not there, the difference has %d", missing, got)
		}
		if got := len(d.differing) + len(d.extra); got != extra {
			rt.Errorf("%d rows are too many, the difference has %d", extra, got)
		}
		for _, pair := range d.differing {
			if pair[0].key() == pair[1].key() {
				rt.Error("equal rows are called different")
			}
		}
	})
}

// TestEqualValues compares values of one type as unit tests do, and shows what
// differs.
func TestEqualValues(t *testing.T) {
	s := testSession(t)
	c := unitCase{session: s}
	cases := []struct {
		typ, a, b string // as SQL
		marks     string // of a, where they differ
	}{
		{"DOUBLE", "-0.0", "0", ""},
		{"FLOAT", "'-0'", "0", ""},
		{"DOUBLE", "'nan'", "'nan'", ""},
		{"DOUBLE", "'nan'", "NULL", "*nan*"},
		{"DOUBLE", "'inf'", "'-inf'", "*inf*"},
		{"DOUBLE", "0.1 + 0.2::DOUBLE", "0.3", "*0.30000000000000004*"},
		{"DOUBLE[]", "[-0.0, NULL, 'nan'::DOUBLE]", "[0, NULL, 'nan'::DOUBLE]", ""},
		{"DOUBLE[]", "NULL", "[]", "*NULL*"},
		{"DECIMAL(9,3)", "1.5", "1.500", ""},
		{"DECIMAL(2,2)", "0.5", "0.25", "*0.50*"},
		{"MAP(VARCHAR, INTEGER)", "map {'a': 1, 'b': 2}", "map {'b': 2, 'a': 1}", ""},
		{"MAP(VARCHAR, INTEGER)", "map {'a': 1, 'b': 2}", "map {'b': 1, 'a': 2}", "*{a=1, b=2}*"},
		{"MAP(VARCHAR, INTEGER)", "NULL", "map {}", "*NULL*"},
		{"MAP(VARCHAR, DOUBLE[])[]", "[map {'a': [-0.0], 'b': NULL}, NULL]", "[map {'b': NULL, 'a': [0.0]}, NULL]", ""},
		{"STRUCT(\"a b\" DOUBLE, m MAP(INTEGER, INTEGER))", "{'a b': -0.0, 'm': map {1: 1, 2: 2}}", "{'a b': 0, 'm': map {2: 2, 1: 1}}", ""},
		{"STRUCT(a DOUBLE)", "NULL", "{'a': NULL}", "*NULL*"},
		{"STRUCT(a DOUBLE)", "{'a': NULL}", "{'a': 0}", "*{'a': NULL}*"},
		{"STRUCT(name VARCHAR, amount DECIMAL(9,2), note VARCHAR)", "{'name': 'somebody', 'amount': 1.5, 'note': 'long'}", "{'name': 'somebody', 'amount': 1.25, 'note': 'long'}",
			"{'name': somebody, 'amount': *1.50*, 'note': long}"},
		{"STRUCT(name VARCHAR, n INTEGER, m MAP(VARCHAR, INTEGER))", "{'name': 'somebody', 'n': 3, 'm': map {'b': 1, 'a': 2}}", "{'name': 'somebody', 'n': 2, 'm': map {'a': 2, 'b': 1}}",
			"{'name': somebody, 'n': *3*, 'm': {a=2, b=1}}"},
		{"VARCHAR[]", "['a', 'b']", "['a, b']", "*[a, b]*"},
		{"VARCHAR[]", "[NULL]", "['NULL']", "*[NULL]*"},
		{"VARCHAR", "NULL", "'NULL'", "*NULL*"},
		{"VARCHAR", "'NULL'", "NULL", "*'NULL'*"},
		{"VARCHAR", "'é'", "'e' || chr(769)", `*"\u00e9"*`},
		{"VARCHAR", "'a '", "'a'", "*a *"},
		{"VARCHAR", "'the quick brown fox jumps over the dog'", "'the quick brown cat jumps over the dog'", "the quick brown *fox* jumps over the dog"},
		{"VARCHAR", "'the quick brown fox jumps over the dog'", "'the quick brown fox jumps over the dog.'", "the quick brown fox jumps over the *dog*"},
		{"TIMESTAMP WITH TIME ZONE", "'2024-01-01 12:00:00+02'", "'2024-01-01 10:00:00+00'", ""},
		{"TIMESTAMP WITH TIME ZONE", "'2024-01-01 12:00:00+02'", "'2024-01-01 12:00:00+00'", "*2024-01-01 10:00:00+00*"},
		{"TIMESTAMP", "'2024-01-01'", "'2024-01-01 00:00:00.000'", ""},
		{"JSON", `'{"b": 1, "a": [1, {"d": 2, "c": 3}]}'`, `'{"a":[1,{"c":3,"d":2}],"b":1}'`, ""},
		{"JSON", `'{"a": 1.0}'`, `'{"a": 1}'`, `*{"a":1.0}*`},
		{"JSON", `'[1, 2]'`, `'[2, 1]'`, `*[1,2]*`},
		{"JSON", `'"<a>"'`, `'"<a>"'`, ""},
		{"JSON", `'{"a":1,"a":2}'`, `'{"a":2}'`, `*{"a":1,"a":2}*`},
		{"BLOB", `'\x00a'`, `'\x00a'`, ""},
	}
	for _, test := range cases {
		columns := []lake.Column{{Name: "v w", Type: test.typ}}
		read := func(value string) unitValue {
			rows, err := c.rows(t.Context(), "SELECT CAST("+value+" AS "+test.typ+") AS \"v w\"", columns)
			if err != nil || len(rows) != 1 {
				t.Fatalf("%s: %v", value, err)
			}
			return rows[0][0]
		}
		a, b := read(test.a), read(test.b)
		marks := ""
		if !sameValue(a, b) {
			marks = a.marked(b)
		}
		if diff := cmp.Diff(test.marks, marks); diff != "" {
			t.Errorf("%s and %s as %s: %s", test.a, test.b, test.typ, diff)
		}
	}
}

func TestFixtureCSV(t *testing.T) {
	text := func(s string) any { return s }
	for _, c := range []struct {
		csv  string
		want fixtureRows
		err  string
	}{
		{csv: "a,b\n1,x\n2,\n", want: fixtureRows{columns: []string{"a", "b"}, rows: [][]any{{text("1"), text("x")}, {text("2"), nil}}}},
		{csv: "\ufeff a , b\r\n1 , \" x \"\r\n,\"\"\r\n", want: fixtureRows{columns: []string{"a", "b"}, rows: [][]any{{text("1"), text(" x ")}, {nil, nil}}}},
		{csv: "é,b\n\"ü\", \"two\nlines \"\n3,4 ", want: fixtureRows{columns: []string{"é", "b"}, rows: [][]any{{text("ü"), text("two\nlines ")}, {text("3"), text("4")}}}},
		{csv: "a,A\n1,2", err: `m.sql: the CSV of a unit test: its header names the column "A" twice [RBT6007]`},
		{csv: "a,b\n1", err: "m.sql: the CSV of a unit test: record on line 2: wrong number of fields [RBT6007]"},
		{csv: "a\n\"x", err: "m.sql: the CSV of a unit test: parse error on line 2, column 3: extraneous or missing \" in quoted-field [RBT6007]"},
	} {
		got, err := readFixtureCSV(project.Fixture{CSV: &c.csv, Pos: diag.Pos{File: "m.sql"}})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(c.err, said); diff != "" {
			t.Errorf("%q: %s", c.csv, diff)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(fixtureRows{})); diff != "" && c.err == "" {
			t.Errorf("%q: %s", c.csv, diff)
		}
	}
}

func TestFixtureLiteral(t *testing.T) {
	dict := func(pairs ...any) *jinja.Dict {
		d := jinja.NewDict()
		for i := 0; i < len(pairs); i += 2 {
			_ = d.Set(pairs[i], pairs[i+1])
		}
		return d
	}
	number := func(s string) project.Number { return project.Number(s) }
	cases := []struct {
		value any
		typ   string
		want  string // or what the error says
	}{
		{nil, "DATE", "CAST(NULL AS DATE)"},
		{"it's", "VARCHAR", "'it''s'::VARCHAR"},
		{number("007"), "VARCHAR", "'007'::VARCHAR"},
		{number("007"), "BIGINT", "CAST('007' AS BIGINT)"},
		{number("1.0"), "INTEGER", "CAST('1.0' AS INTEGER)"},
		{number("1.7"), "INTEGER", `"1.7" is no value of the type INTEGER`},
		{number("-129"), "TINYINT", `"-129" is no value of the type TINYINT`},
		{number("-128"), "TINYINT", "CAST('-128' AS TINYINT)"},
		{number("-1"), "UBIGINT", `"-1" is no value of the type UBIGINT`},
		{number("9223372036854775808"), "BIGINT", `"9223372036854775808" is no value of the type BIGINT`},
		{number("340282366920938463463374607431768211455"), "UHUGEINT", "CAST('340282366920938463463374607431768211455' AS UHUGEINT)"},
		{number("340282366920938463463374607431768211456"), "UHUGEINT", `"340282366920938463463374607431768211456" is no value of the type UHUGEINT`},
		{number("1e7"), "DECIMAL(9,2)", `"1e7" is no value of the type DECIMAL(9,2)`},
		{number("9999999.99"), "DECIMAL(9,2)", "CAST('9999999.99' AS DECIMAL(9,2))"},
		{number("1.25"), "DECIMAL(9,2)", "CAST('1.25' AS DECIMAL(9,2))"},
		{number("1.250"), "DECIMAL(9,2)", "CAST('1.250' AS DECIMAL(9,2))"},
		{number("1.255"), "DECIMAL(9,2)", `"1.255" is no value of the type DECIMAL(9,2)`},
		{number("1.5"), "DECIMAL(9)", `"1.5" is no value of the type DECIMAL(9)`},
		{true, "BOOLEAN", "CAST('true' AS BOOLEAN)"},
		{true, "INTEGER", `"true" is no value of the type INTEGER`},
		{"2024-01-01 10:00:00", "DATE", `"2024-01-01 10:00:00" is no value of the type DATE`},
		{"2024-01-01 00:00:00", "DATE", "CAST('2024-01-01 00:00:00' AS DATE)"},
		{"2024-01-01T10:00:00+02:00", "TIMESTAMP", `"2024-01-01T10:00:00+02:00" is no value of the type TIMESTAMP`},
		{"2024-01-01T10:00:00+02:00", "TIMESTAMP WITH TIME ZONE", "CAST('2024-01-01T10:00:00+02:00' AS TIMESTAMP WITH TIME ZONE)"},
		{jinja.NewList(number("1"), nil), "INTEGER[]", "CAST([CAST('1' AS INTEGER), CAST(NULL AS INTEGER)] AS INTEGER[])"},
		{jinja.NewList(number("1.5")), "INTEGER[]", `element 1: "1.5" is no value of the type INTEGER`},
		{jinja.NewList(), "VARCHAR", "a list is no value of the type VARCHAR"},
		{dict("B", number("1")), `STRUCT("a, b" VARCHAR, b INTEGER)`, `CAST(struct_pack("a, b" := CAST(NULL AS VARCHAR), "b" := CAST('1' AS INTEGER)) AS STRUCT("a, b" VARCHAR, b INTEGER))`},
		{dict("naem", "x"), "STRUCT(name VARCHAR)", `STRUCT(name VARCHAR) has no field "naem"; did you mean "name"?`},
		{dict("k", number("1")), "MAP(VARCHAR, INTEGER)", "CAST(map(['k'::VARCHAR], [CAST('1' AS INTEGER)]) AS MAP(VARCHAR, INTEGER))"},
		{dict("k", jinja.NewList(number("1.50"), true)), "JSON", `CAST('{"k":[1.50,true]}' AS JSON)`},
		{"plain", "JSON", `CAST('"plain"' AS JSON)`},
		{jinja.NewList(dict("x", nil)), `STRUCT(x DECIMAL(4,1))[]`, "CAST([CAST(struct_pack(\"x\" := CAST(NULL AS DECIMAL(4,1))) AS STRUCT(x DECIMAL(4,1)))] AS STRUCT(x DECIMAL(4,1))[])"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%v as %s", c.value, c.typ), func(t *testing.T) {
			got, err := fixtureLiteral(c.value, c.typ)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
