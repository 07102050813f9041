package project

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// brief writes a test in one line, with all that tells it apart.
func brief(t *Test) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%s)", t.Kind, strings.Join(t.Columns, ","))
	show := func(name string, v any, set bool) {
		if set {
			fmt.Fprintf(&b, " %s=%v", name, v)
		}
	}
	text := func(name string, v *string) {
		if v != nil {
			show(name, *v, true)
		}
	}
	a := t.Args
	for _, v := range a.Values {
		if v == nil {
			b.WriteString(" NULL")
		} else {
			fmt.Fprintf(&b, " %q", *v)
		}
	}
	show("to", a.To, a.To != "")
	show("source", true, a.ToSource)
	show("field", a.Field, a.Field != "")
	show("sql", a.SQL, a.SQL != "")
	text("min", a.Min)
	text("max", a.Max)
	show("xmin", true, a.ExclusiveMin)
	show("xmax", true, a.ExclusiveMax)
	text("equal", a.Equal)
	show("equal_to", a.EqualTo, a.EqualTo != "")
	show("pattern", a.Pattern, a.Pattern != "")
	show("age", a.MaxAge, a.MaxAge != 0)
	text("step", a.Value)
	for _, k := range sortedKeys(a.Custom) {
		show(k, goText(a.Custom[k]), true)
	}
	show("severity", "warn", t.Severity == diag.Warning)
	if t.WarnIf != nil {
		fmt.Fprintf(&b, " warn%s%v%v", t.WarnIf.Op, t.WarnIf.Number, t.WarnIf.Percent)
	}
	if t.ErrorIf != nil {
		fmt.Fprintf(&b, " error%s%v%v", t.ErrorIf.Op, t.ErrorIf.Number, t.ErrorIf.Percent)
	}
	show("where", t.Where, t.Where != "")
	show("limit", t.Limit, t.Limit != 0)
	show("nulls", "fail", t.FailNulls)
	show("tags", t.Tags, len(t.Tags) > 0)
	show("description", t.Description, t.Description != "")
	show("output", t.Output, t.Output != "")
	return b.String()
}

// TestShapes: every shape in which an assertion may be written.
func TestShapes(t *testing.T) {
	tests := []struct {
		name, yaml string
		want       []string
	}{
		{"list of names", "columns: {id: {tests: [not_null, unique]}}", []string{"not_null(id)", "unique(id)"}},
		{"mapping", "columns: {id: {tests: {not_null: , unique: {where: x > 1}}}}", []string{"not_null(id)", "unique(id) where=x > 1"}},
		{"data_tests", "columns: {id: {data_tests: [not_null]}}\ndata_tests: [unique: id]", []string{"not_null(id)", "unique(id)"}},
		{"dbt columns", "columns: [{name: id, data_type: int, tests: [not_null]}]", []string{"not_null(id)"}},
		{"not_null of several", "tests: {not_null: [a, b]}", []string{"not_null(a)", "not_null(b)"}},
		{"not_null of several with options", "tests: [not_null: {columns: [a, b], severity: warn, where: w}]",
			[]string{"not_null(a) severity=warn where=w", "not_null(b) severity=warn where=w"}},
		{"unique composite", "tests: {unique: [a, b]}", []string{"unique(a,b)"}},
		{"unique columns", "tests: [unique: {columns: [a, b], nulls: fail}]", []string{"unique(a,b) nulls=fail"}},
		{"two composites", "tests: [unique: [a, b], unique: {column: c}]", []string{"unique(a,b)", "unique(c)"}},
		{"accepted_values keep their spelling", "columns: {s: {tests: [accepted_values: {values: [012, 00123, 08, 1_000, 1e3, 12:30:45, no, yes, null, 'null', 2024-01-01, '']}]}}",
			[]string{`accepted_values(s) "012" "00123" "08" "1_000" "1e3" "12:30:45" "no" "yes" NULL "null" "2024-01-01" ""`}},
		{"accepted_values short", "columns: {s: {tests: {accepted_values: [a, b]}}}", []string{`accepted_values(s) "a" "b"`}},
		{"accepted_values of a model", "tests: [accepted_values: {column: s, values: [a]}]", []string{`accepted_values(s) "a"`}},
		{"relationships", "tests: [relationships: {column: c, to: other, field: id}]", []string{"relationships(c) to=other field=id"}},
		{"relationships to ref", "columns: {c: {tests: [relationships: {to: ref('Other'), field: id}]}}", []string{"relationships(c) to=other field=id"}},
		{"relationships to source", "columns: {c: {tests: [relationships: {to: \"source('raw', 'T')\", field: id}]}}", []string{"relationships(c) to=raw.t source=true field=id"}},
		{"relationships to source by name", "columns: {c: {tests: [relationships: {to: raw.t}]}}", []string{"relationships(c) to=raw.t source=true field=c"}},
		{"several relationships", "tests: {relationships: [{column: a, to: other}, {column: b, to: other, field: x}]}",
			[]string{"relationships(a) to=other field=a", "relationships(b) to=other field=x"}},
		{"range", "columns: {n: {tests: [range: {min: 0, max: 1.50, exclusive: max}]}}", []string{"range(n) min=0 max=1.50 xmax=true"}},
		{"range of dates", "columns: {n: {tests: [range: {min: 2024-01-01, exclusive: true}]}}", []string{"range(n) min=2024-01-01 xmin=true xmax=true"}},
		{"row_count", "tests: [row_count: 5, row_count: {min: 1, max: 9}, row_count: {equal_to: ref('other')}, row_count: {equal_to: 7}]",
			[]string{"row_count() equal=5", "row_count() min=1 max=9", "row_count() equal_to=other", "row_count() equal=7"}},
		{"expression", "tests: [expression: a >= 0, expression: {sql: 'b > 1', nulls: fail}, expression: {expression: c}]",
			[]string{"expression() sql=a >= 0", "expression() sql=b > 1 nulls=fail", "expression() sql=c"}},
		{"expression at a column", "columns: {a: {tests: [expression: a > 0]}}", []string{"expression(a) sql=a > 0"}},
		{"matches", "columns: {a: {tests: [matches: '^x+$', matches: {regex: y}]}}", []string{"matches(a) pattern=^x+$", "matches(a) pattern=y"}},
		{"freshness", "columns: {a: {tests: [freshness: 2 days, freshness: {max_age: {count: 90, period: minute}}]}}",
			[]string{"freshness(a) age=48h0m0s", "freshness(a) age=1h30m0s"}},
		{"not_constant and sequence", "tests: {not_constant: [a, b], sequence: {column: c, step: 2}}",
			[]string{"not_constant(a)", "not_constant(b)", "sequence(c) step=2"}},
		{"sequence of days", "columns: {a: {tests: [sequence: {step: 1 day}, sequence: {step: '-0.5'}]}}", []string{"sequence(a) step=1 day", "sequence(a) step=-0.5"}},
		{"thresholds", "columns: {a: {tests: [not_null: {warn_if: '>= 1', error_if: '>2.5%'}]}}", []string{"not_null(a) warn>=1false error>2.5true"}},
		{"dbt config and arguments", "columns: {a: {tests: [accepted_values: {arguments: {values: [x]}, config: {severity: WARN, where: w, limit: 3, tags: [t]}, name: my_name, description: d}]}}",
			[]string{`accepted_values(a) "x" severity=warn where=w limit=3 tags=[t] description=d`}},
		{"keys beside the test", "columns: {a: {tests: [{unique: , config: {severity: warn}}, {not_null: {}, where: w}]}}",
			[]string{"unique(a) severity=warn", "not_null(a) where=w"}},
		{"test_name", "columns: {a: {tests: [{name: n, test_name: accepted_values, values: [x], config: {severity: warn}}]}}", []string{`accepted_values(a) "x" severity=warn`}},
		{"not enabled", "columns: {a: {tests: [not_null: {enabled: false}, unique: {config: {enabled: false}}]}}", nil},
		{"null is no tests", "tests:\ncolumns: {a: {tests: }}", nil},
		{"tags of the column", "columns: {a: {tags: [c], tests: [not_null: {tags: [x]}]}}", []string{"not_null(a) tags=[x c]"}},
		{"names that need quotes", "columns: {'start time': {tests: [not_null]}, 'x\"y': {tests: [unique]}}", []string{"not_null(start time)", `unique(x"y)`}},
		{"own test", "columns: {n: {tests: [divisible: {by: 2}, divisible: {arguments: {by: 3, tables: [a, b]}, where: w}]}}",
			[]string{"divisible(n) by=2", "divisible(n) by=3 tables=a_b where=w"}},
		{"own test of a model", "tests: [divisible: {column_name: n, by: 2, severity: warn}]", []string{"divisible(n) by=2 severity=warn"}},
		{"templates in conditions", "vars_used: x", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "templates in conditions" {
				tt.yaml = "tests: [expression: \"d >= '{{ var('start') }}'\", not_null: {column: a, where: \"b in (select b from {{ ref('other') }})\"}]"
				tt.want = []string{"expression() sql=d >= '2024-01-01'", `not_null(a) where=b in (select b from "main"."other")`}
			}
			p := good(t, `
-- project.yml --
name: shop
vars: {start: 2024-01-01}
sources: [{name: raw, tables: [{name: t, path: t.csv}]}]
-- tests/generic/divisible.sql --
{% test divisible(model, column_name, by, tables=[]) %}
select * from {{ model }} where {{ column_name }} % {{ by }} <> 0 {% for t in tables %}and {{ t }} {% endfor %}
{% endtest %}
-- models/other.sql --
select 1 as id
-- models/m.sql --
---
`+tt.yaml+`
---
select 1 as id
`)
			var got []string
			for _, x := range p.Tests {
				got = append(got, brief(x))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNames: names are stable, unique and fit for files.
func TestTestNames(t *testing.T) {
	p := good(t, `
-- models/m.sql --
---
columns:
  id: {tests: [not_null, unique, not_null: {where: a > 1}, not_null: {where: a > 2}]}
  größe: {tests: [accepted_values: {values: [a b, "c'd"]}]}
tests:
  - expression: a > 1
  - expression: a < 1
  - expression: {sql: b, name: named}
  - accepted_values: {column: s, values: [`+strings.Repeat("long_value, ", 20)+`z]}
---
select 1
-- tests/singular_one.sql --
---
severity: warn
description: d
error_if: ">5"
---
select * from {{ ref('m') }}
`)
	var names []string
	for _, x := range p.Tests {
		names = append(names, x.Name)
	}
	want := []string{
		"singular_one", "not_null_m_id", "unique_m_id", "not_null_m_id__where_a_gt_1", "not_null_m_id__where_a_gt_2", "accepted_values_m_größe__a_b_c_d",
		"expression_m__a_gt_1", "expression_m__a_lt_1", "named", "accepted_values_m_s__long_value_long_value_long_value_long_value_long_value_long_value_long_value_long_value_lo_6d586cdd",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	seen := map[string]bool{}
	for _, n := range names {
		if seen[folded(n)] || nameProblem(n) != "" {
			t.Errorf("%q is there twice or no name", n)
		}
		seen[folded(n)] = true
	}
	s := p.test(t, "singular_one")
	if s.Kind != "singular" || s.Severity != diag.Warning || s.Description != "d" || s.ErrorIf.Number != 5 || s.BodyLine != 6 || s.Body != "select * from {{ ref('m') }}\n" {
		t.Errorf("got %+v", s)
	}
	c, list := p.CompileTest(context.Background(), s, CompileOptions{})
	if list != nil || c.SQL != `select * from "main"."m"` || len(c.Refs) != 1 {
		t.Errorf("got %v %v", c, list)
	}
}

// TestTestNamesOfLongLists: a name is cut in one step, between letters, however
// much there is to cut.
func TestTestNamesOfLongLists(t *testing.T) {
	p := good(t, "-- models/m.sql --\n---\ntests:\n  - accepted_values: {column: s1234567, values: ["+strings.Repeat("größe, ", 50_000)+"z]}\n---\nselect 1 as s1234567\n")
	want := "accepted_values_m_s1234567__" + strings.Repeat("größe_", 10) + "gr_"
	if got := p.Tests[0].Name; !strings.HasPrefix(got, want) || len(got) != len(want)+8 {
		t.Errorf("got %q, want %q and eight digits", got, want)
	}
}

// TestCompileTest: a test block gets its relation, column and arguments.
func TestCompileTest(t *testing.T) {
	p := good(t, `
-- tests/generic/t.sql --
{% test as_many(model, to, factor=1) %}
select 1 where (select count(*) from {{ model }}) <> {{ factor }} * (select count(*) from {{ to }})
{% endtest %}
{% test small(model, column_name) %}
select {{ column_name }} from {{ model }} where {{ column_name }} > {{ limit() }}
{% endtest %}
-- macros/limit.sql --
{% macro limit() %}100{% endmacro %}
-- models/other.sql --
select 1 as id
-- models/m.sql --
---
tests: [as_many: {to: ref('other'), factor: 2}]
columns: {n: {tests: [small: {where: n is not null}]}}
---
select 1 as id
`)
	got := map[string]string{}
	for _, x := range p.Tests {
		c, list := p.CompileTest(context.Background(), x, CompileOptions{})
		if list != nil {
			t.Fatal(diag.RenderList(list, p.SourceText))
		}
		var refs []string
		for _, r := range c.Refs {
			refs = append(refs, r.Node)
		}
		got[x.Kind] = strings.TrimSpace(c.SQL) + " <- " + strings.Join(refs, ",")
	}
	want := map[string]string{
		"as_many": `select 1 where (select count(*) from "main"."m") <> 2 * (select count(*) from "main"."other") <- m,other`,
		"small":   "select n from (select * from \"main\".\"m\" where n is not null\n) as filtered where n > 100 <- m",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if refs := p.test(t, "as_many_m__factor_2_to_ref_other").Refs; len(refs) != 1 || refs[0].Node != "other" {
		t.Errorf("got %v", refs)
	}
}

func TestUnitTests(t *testing.T) {
	p := good(t, `
-- project.yml --
name: shop
sources: [{name: raw, tables: [{name: t, path: t.csv}]}]
-- models/a.sql --
---
materialization: incremental
unit_tests:
  - name: rows
    given:
      - input: ref('b')
        rows:
          - {id: 1, zip: 00123, amount: 1.50, ok: true, note: , d: 2024-01-01, tags: [a, 2], s: {x: 1}, t: "7"}
          - {Extra: x}
      - input: this
        rows: []
    expect: {rows: [{id: 1}]}
    expect_table: {csv: "id\n1\n"}
    overrides: {vars: {v: 2024-01-01}, macros: {is_incremental: true, dbt_utils.star: "*"}}
    now: 2024-02-03
    config: {tags: [x]}
---
select * from {{ ref('b') }}
-- models/b.sql --
select 1 as a
-- models/u.yml --
version: 2
unit_tests:
  - name: csv
    model: B
    description: d
    given:
      - {input: "source('raw', 't')", format: csv, rows: "a\n1"}
    expect:
      format: sql
      rows: |
        select 1
`)
	u := p.UnitTests[0]
	if u.Name != "rows" || u.Model != "a" || !u.Now.Equal(time.Date(2024, 2, 3, 0, 0, 0, 0, time.UTC)) || u.Vars["v"] != "2024-01-01" ||
		u.Macros["is_incremental"] != true || u.Macros["dbt_utils.star"] != "*" || u.Tags[0] != "x" {
		t.Errorf("got %+v", u)
	}
	row := u.Given[0].Rows[0]
	list, dict := row["tags"].(*jinja.List).Items(), row["s"].(*jinja.Dict)
	x, _ := dict.Get("x")
	if d := cmp.Diff([]any{"a", Number("2"), Number("1")}, append(list, x)); d != "" {
		t.Error(d)
	}
	delete(row, "tags")
	delete(row, "s")
	if d := cmp.Diff(map[string]any{"id": Number("1"), "zip": Number("00123"), "amount": Number("1.50"), "ok": true, "note": nil, "d": "2024-01-01", "t": "7"}, row); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"id", "zip", "amount", "ok", "note", "d", "tags", "s", "t", "Extra"}, u.Given[0].Columns); d != "" {
		t.Error(d)
	}
	if u.Given[1].Input != "this" || len(u.Given[1].Rows) != 0 || u.Given[1].Rows == nil || *u.ExpectTable.CSV != "id\n1\n" {
		t.Errorf("got %+v", u.Given[1])
	}
	v := p.UnitTests[1]
	if v.Model != "b" || v.Given[0].Input != "raw.t" || !v.Given[0].IsSource || *v.Given[0].CSV != "a\n1" || v.Expect.SQL != "select 1\n" || v.Expect.SQLLine != 11 {
		t.Errorf("got %+v", v)
	}
}

// TestIntervals: a step of dates and times is an interval that the engine reads.
func TestIntervals(t *testing.T) {
	for text, want := range map[string]bool{"1 day": true, "15 minutes": true, "1 month 2 Days": true, "0 days": false, "day": false, "1": false, "1 dog": false, "1 day; select 1": false} {
		if got := isInterval(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
