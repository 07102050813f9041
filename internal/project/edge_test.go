package project

import (
	"strings"
	"testing"

	"rbt/internal/diag"
)

// TestFileForms: CR LF, byte order marks and other encodings.
func TestFileForms(t *testing.T) {
	p := good(t, "-- project.yml --\n\ufeffname: shop\r\nvars: {a: 1}\r\n"+
		"-- models/a.sql --\n---\r\nmaterialized: incremental\r\n---\r\nselect 1 as a\r\n"+
		"-- models/b.sql --\n\ufeffselect 1\n"+
		"-- models/empty.yml --\n"+
		"-- models/comment.yml --\n# nothing\n"+
		"-- models/null.yml --\n~\n"+
		"-- models/c.SQL --\n---\n---\nselect 2\n")
	if m := p.model(t, "a"); m.Materialization != Incremental || m.Body != "select 1 as a\r\n" || m.BodyLine != 4 {
		t.Errorf("got %+v", m)
	}
	if got := p.sql(t, "b", CompileOptions{}); got != "select 1" {
		t.Errorf("got %q", got)
	}
	if m := p.model(t, "c"); m.BodyLine != 3 {
		t.Errorf("got line %d", m.BodyLine)
	}
	for text, want := range map[string]string{
		"-- models/a.sql --\nselect 1\nselect '\xff'\n":                               "models/a.sql:2:9: the text is not UTF-8 [RBT1001]",
		"-- models/a.yml --\nx: \xff\n":                                               "models/a.yml:1:4: the text is not UTF-8 [RBT1001]",
		"-- macros/a.sql --\n\xff\n":                                                  "macros/a.sql:1:1: the text is not UTF-8 [RBT1001]",
		"-- models/a.sql --\n--- \nmaterialized: view\n---\nselect 1\n":               "models/a.sql:1:1: this line does not open frontmatter: it is not exactly --- [RBT1015]",
		"-- models/a.py --\nx\n":                                                      "models/a.py: rbt has no Python models [RBT1006]",
		"-- project.yml --\nname: shop\nmodels: {shop: {+materialized: view}}\n":      "project.yml:2:1: `models` names a folder; dbt's mapping of defaults does not stand here [RBT1006]",
		"-- project.yml --\nname: shop\nseeds: data\n":                                "project.yml:2:8: there is no folder \"data\" [RBT1009]",
		"-- project.yml --\nname: shop\nlake: models\n-- models/a.sql --\nselect 1\n": "project.yml:2:7: the lake must not hold the folder `models` [RBT1009]",
		"-- project.yml --\nname: shop\nlake: target/lake\n":                          "project.yml:2:7: the lake and the target folder must not lie in each other [RBT1009]",
	} {
		_, list := load(t, text)
		if list.Error() != want {
			t.Errorf("%q:\ngot  %s\nwant %s", text, list.Error(), want)
		}
	}
}

// TestSecretVariable: a variable may carry a secret within project.yml only.
func TestSecretVariable(t *testing.T) {
	p, list := loadWith(t, "-- project.yml --\nname: shop\nvars: {deep: [{k: \"x{{ env_var('RBT_SECRET_A') }}y\"}], plain: a}\n-- models/m.sql --\nselect 1\n",
		Options{Env: env("RBT_SECRET_A", "hush")})
	if list != nil {
		t.Fatal(list)
	}
	_, list = compileText(&rendering{p: p}, "{{ var('deep') }}")
	if want := `t.sql:1:4: the variable "deep" holds a secret, which may be used in project.yml only [RBT2025]`; list.Error() != want {
		t.Errorf("got %s", list.Error())
	}
	if _, list := compileText(&rendering{p: p}, "{{ var('plain') }}"); list != nil {
		t.Error(list)
	}
}

// TestManyUnknown: all problems are found at once, in the order of their places.
func TestManyUnknown(t *testing.T) {
	p, list := load(t, "-- models/b.sql --\n{{ config(tags=nope) }}\n-- models/a.sql --\n---\nx: 1\ny: 2\n---\n{% if %}\n-- models/c.yml --\nz: 1\n")
	var got []string
	for _, d := range list {
		got = append(got, d.Pos.String())
	}
	if want := "models/a.sql:2:1 models/a.sql:3:1 models/a.sql:5:7 models/b.sql:1:16 models/c.yml:1:1"; strings.Join(got, " ") != want {
		t.Errorf("got %v\n%s", got, diag.RenderList(list, p.SourceText))
	}
}

// TestDisabled: what is disabled is gone, and a reference to it says so.
func TestDisabled(t *testing.T) {
	p := good(t, `
-- models/a.sql --
---
enabled: false
tests: [not_null: x]
unit_tests: [{name: u, expect: {rows: []}}]
---
select 1
-- models/v2/a.sql --
---
tests: [unique: x]
---
select 2 as x
-- models/off.sql --
{{ config(enabled=false) }}select 1
-- models/b.sql --
select * from {{ ref('a') }}
-- seeds/s.csv --
x
1
-- models/s.yml --
seeds: [{name: s, enabled: false, tests: [not_null: x]}]
`)
	if len(p.Models) != 2 || p.model(t, "a").File != "models/v2/a.sql" || len(p.Tests) != 1 || len(p.UnitTests) != 0 || len(p.Seeds) != 0 {
		t.Errorf("got %d models, %d tests, %d unit tests", len(p.Models), len(p.Tests), len(p.UnitTests))
	}
	for name, file := range map[string]string{"off": "models/off.sql", "s": "seeds/s.csv"} {
		_, list := compileText(&rendering{p: p}, "{{ ref('"+name+"') }}")
		if len(list) != 1 || list[0].Code != diag.DisabledRef || list[0].Notes[0].Pos.File != file {
			t.Errorf("%s: got %v", name, list)
		}
	}
}

// TestConfigOfTests: config() in singular tests and in test blocks counts.
func TestConfigOfTests(t *testing.T) {
	archive := `
-- tests/one.sql --
{{ config(severity='warn', tags=['t'], error_if='>3', where='a > 1') }}select * from {{ ref('m') }}
-- tests/off.sql --
{{ config(enabled=false) }}select 1
-- tests/generic/g.sql --
{% test soft(model, column_name, to=none) %}{{ config(severity='warn', limit=5) }}select {{ column_name }} from {{ model }}, {{ to }}{% endtest %}
-- models/m.sql --
---
columns: {a: {tests: [soft, soft: {severity: error, where: b}, soft: {to: ref('m'), limit: 7}]}}
---
select 1 as a
`
	p := good(t, archive)
	var got []string
	for _, x := range p.Tests {
		got = append(got, brief(x))
	}
	want := "singular() severity=warn error>3false where=a > 1 tags=[t]|soft(a) severity=warn limit=5|soft(a) where=b limit=5|soft(a) to=ref('m') severity=warn limit=7"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	_, list := load(t, archive+"-- tests/two.sql --\n---\nseverity: error\n---\n{{ config(severity='warn', sevrity='x', store_failures=true) }}select 1\n")
	var problems []string
	for _, d := range list {
		problems = append(problems, d.Pos.String()+" "+string(d.Code))
	}
	if want := "tests/two.sql:4:11 RBT1014,tests/two.sql:4:28 RBT1002,tests/two.sql:4:41 RBT1006"; strings.Join(problems, ",") != want {
		t.Errorf("got %v", problems)
	}
}

func TestOverrideNames(t *testing.T) {
	_, list := load(t, `
-- macros/m.sql --
{% macro cents(x) %}{% endmacro %}
-- models/m.sql --
---
unit_tests:
  - name: u
    overrides: {macros: {cents: 1, is_incremental: true, dbt.dateadd: x, dbt_utils.star: y, run_query: z}}
    expect: {rows: []}
  - name: v
    overrides:
      macros: {cent: 1}
    expect: {rows: []}
---
select 1
`)
	if want := `models/m.sql:8:15: there is no macro "cent" to override [RBT1011]`; list.Error() != want {
		t.Errorf("got %s", list.Error())
	}
}
