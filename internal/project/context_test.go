package project

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

const small = `
-- project.yml --
name: shop
vars:
  start: 2024-01-01
  at: 2024-01-01 10:00:00
  xs: [1, 2]
  shop: {own: mine, start: 2024-02-02}
sources: [{name: raw, tables: [{name: Orders, path: o.csv}]}]
-- macros/m.sql --
{% macro cents(c, scale=2) %}round({{ c }} / 100, {{ scale }}){% endmacro %}
{% macro parent() %}{{ ref('base') }}{% endmacro %}
{% macro pick() %}{{ return([1, 'x']) }}{% endmacro %}
{% macro dateadd(a) %}mine({{ a }}){% endmacro %}
-- models/base.sql --
select 1 as id
-- models/base_v2.sql --
select 2 as id
-- models/Upper.sql --
select 3 as id
`

// TestContext renders snippets as the model base would.
func TestContext(t *testing.T) {
	p := good(t, small)
	now := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	tests := []struct{ name, text, want string }{
		{"ref", "{{ ref('base') }}", `"main"."base"`},
		{"ref ignores case", "{{ ref('UPPER') }}", `"main"."Upper"`},
		{"ref with version", "{{ ref('base', v=2) }} {{ ref('base', version='2') }}", `"main"."base_v2" "main"."base_v2"`},
		{"ref with project", "{{ ref('shop', 'base') }}", `"main"."base"`},
		{"ref parts", "{{ ref('base').schema }}.{{ ref('base').identifier }} {{ ref('base').name }}", "main.base base"},
		{"source", "{{ source('raw', 'orders') }}", `"raw"."Orders"`},
		{"ref in a comment", "-- {{ ref('base') }}", `-- "main"."base"`},
		{"ref in a macro", "{{ parent() }}", `"main"."base"`},
		{"var", "{{ var('start') }} {{ var('at') }} {{ var('own') }}", "2024-02-02 2024-01-01 10:00:00 mine"},
		{"var default", "{{ var('nope', 'd') }}{{ var('nope', default=3) + 1 }}", "d4"},
		{"var is a copy", "{% do var('xs').append(3) %}{{ var('xs') }}", "[1, 2]"},
		{"env_var", "{{ env_var('HOME') }} {{ env_var('NOPE', 'd') }}", "/home/x d"},
		{"this", "{{ this }} {{ this.schema }} {{ this.identifier }} {{ this.name }}", `"main"."base" main base base`},
		{"is_incremental", "{{ is_incremental() }}", "True"},
		{"target", "{{ target.name }} {{ target.schema }} {{ target['name'] }} {{ target.type }}", "default main default duckdb"},
		{"model", "{{ model.name }} {{ model.unique_id }} {{ model.path }}", "base model.shop.base models/base.sql"},
		{"config.get", "{{ config.get('materialized') }} {{ config.get('nope', 'd') }} {{ config.get('nope') is none }}", "table d True"},
		{"config prints nothing", "a{{ config(tags=['x']) }}b", "ab"},
		{"log prints nothing", "a{{ log('hello', info=true) }}b{% do log('x') %}", "ab"},
		{"return keeps the value", "{{ pick()[1] }} {{ pick() | length }}", "x 2"},
		{"execute", "{{ execute }}", "False"},
		{"run_started_at", "{{ run_started_at }} {{ run_started_at.strftime('%Y-%m-%d') }}", "2026-03-04 05:06:07.000008+00:00 2026-03-04"},
		{"invocation_id", "{{ invocation_id }}", "abc"},
		{"invocation_id is text", "{{ invocation_id[:2] }}{{ invocation_id.replace('a', '-') }}{{ invocation_id | length }}", "ab-bc3"},
		{"relations of one name are equal", `{{ ref('base') == ref('BASE') }} {{ ref('base') in [ref('base')] }} {{ ref('base') == '"main"."base"' }} ` +
			`{{ '"main"."base"' == ref('base') }} {{ ref('base') == ref('Upper') }} {{ ref('base') != this }} {{ this == source('raw', 'orders') }} {{ ref('base') == none }}`,
			"True True True True False False False False"},
		{"relations as keys", `{% set d = {ref('base'): 1} %}{{ d[ref('base')] }} {{ d['"main"."base"'] }} {{ [ref('base'), ref('base'), this] | unique | list | length }} ` +
			`{{ {'"main"."base"': 2}[ref('base')] }}`, "1 1 1 2"},
		{"relations in a list", "{{ [ref('base')] }} {{ (ref('base'), 1) }}", `['"main"."base"'] ('"main"."base"', 1)`},
		{"zip", "{% for a, b in zip([1, 2, 3], ['x', 'y']) %}{{ a }}{{ b }};{% endfor %}", "1x;2y;"},
		{"set", "{{ set([3, 1, 3, 2]) | list }}", "[3, 1, 2]"},
		{"tojson", `{{ tojson({'b': [1, none, true], 'a': 'é"'}) }}`, `{"b": [1, null, true], "a": "\u00e9\""}`},
		{"tojson sorted", "{{ tojson({'b': 1, 'a': 2}, sort_keys=true) }}", `{"a": 2, "b": 1}`},
		{"fromjson", `{% set d = fromjson('{"a": [1, 2.5, "x"], "n": 12345678901234567890}') %}{{ d.a[1] }} {{ d['n'] }}`, "2.5 12345678901234567890"},
		{"fromjson default", "{{ fromjson('{', 'd') }}", "d"},
		{"fromyaml", "{{ fromyaml('a: 00123')['a'] }}", "00123"},
		{"toyaml", "{{ toyaml({'a': [1, 'x']}) }}", "a:\n- 1\n- x\n"},
		{"adapter.quote", `{{ adapter.quote('a "b"') }}`, `"a ""b"""`},
		{"datetime", "{{ modules.datetime.datetime.strptime('2024-02-28', '%Y-%m-%d').strftime('%d.%m.%y') }}", "28.02.24"},
		{"date", "{{ modules.datetime.date(2024, 1, 31) }} {{ modules.datetime.datetime(2024, 1, 31, 5).isoformat() }}", "2024-01-31 2024-01-31T05:00:00"},
		{"timedelta", "{{ modules.datetime.timedelta(days=1, hours=2) }} {{ modules.datetime.timedelta(hours=-1) }}", "1 day, 2:00:00 -1 day, 23:00:00"},
		{"arithmetic of times", "{% set d = modules.datetime.date(2024, 2, 28) + modules.datetime.timedelta(days=2) %}{{ d }} {{ (d - modules.datetime.date(2024, 1, 1)).days }} {{ d > modules.datetime.date(2024, 1, 1) }}", "2024-03-01 60 True"},
		{"run_started_at moves", "{{ (run_started_at - modules.datetime.timedelta(days=3 * 1)).strftime('%Y-%m-%d') }}", "2026-03-01"},
		{"re", "{{ modules.re.sub('[^a-z]+', '_', 'ab  c') }} {{ modules.re.match('(a)(b)', 'abc').group(2) }} {{ modules.re.match('b', 'abc') is none }}", "ab_c b True"},
		{"times without a zone", "{{ modules.datetime.datetime(2024, 1, 2) }} {{ modules.datetime.datetime.strptime('2024-01-31', '%Y-%m-%d') + modules.datetime.timedelta(days=1) }} {{ modules.datetime.datetime.fromisoformat('2024-01-02T03:04:05').replace(hour=4) }} {{ modules.datetime.datetime(2024, 1, 2).strftime('%H%z') }}",
			"2024-01-02 00:00:00 2024-02-01 00:00:00 2024-01-02 04:04:05 00"},
		{"times with a zone", "{{ modules.datetime.datetime.fromisoformat('2024-01-02T03:04:05+01:00') }} {{ modules.datetime.datetime.strptime('2024 +0000', '%Y %z') }} {{ run_started_at.replace(microsecond=0) }} {{ run_started_at.strftime('%z') }}",
			"2024-01-02 02:04:05+00:00 2024-01-01 00:00:00+00:00 2026-03-04 05:06:07+00:00 +0000"},
		{"a date changes no time", "{{ modules.datetime.date(2024, 1, 2).replace(day=3) }} {{ modules.datetime.datetime(2024, 1, 2, hour=5) }}", "2024-01-03 2024-01-02 05:00:00"},
		{"re count", "{{ modules.re.sub('a', 'b', 'aaa', count=1) }} {{ modules.re.sub('a', 'b', 'aaa', 2) }} {{ modules.re.split(',', 'a,b,c', maxsplit=1) }}", "baa bba ['a', 'b,c']"},
		{"re fullmatch", "{{ modules.re.fullmatch('a|ab', 'ab') }} {{ modules.re.fullmatch('a+?', 'aaa') }} {{ modules.re.fullmatch('a', 'ab') is none }}", "ab aaa True"},
		{"re beyond ASCII", `{{ modules.re.sub('\\w+', 'x', 'é b') }} {{ modules.re.sub('[\\s_]', '', 'a b\u00a0c_') }} {{ modules.re.findall('\\d', '1١') | length }} {{ modules.re.search('a', 'éa').span() }} {{ modules.re.sub('[^\\w]', '-', 'é!') }}`, "x x abc 2 (1, 2) é-"},
		{"re groups in a replacement", `{{ modules.re.sub('(?P<a>x)(y)?', '[\\g<a>\\g<2>\\1\\\\1$1]', 'axb') }} {{ modules.re.sub('x', '\\t', 'axb') }}`, "a[xx\\1$1]b a\tb"},
		{"re groups", "{{ modules.re.split('(,)', 'a,b') }} {{ modules.re.findall('(a)(b)?', 'aba') }} {{ modules.re.match('(a)(b)?', 'ac').groups() }} {{ modules.re.match('(?P<q>a)(c)', 'ac').group('q', 2) }}", "['a', ',', 'b'] [('a', 'b'), ('a', '')] ('a', None) ('a', 'c')"},
		{"re of nothing", `{{ modules.re.sub(' *$', '', 'a  ') }} {{ modules.re.sub('x*', '-', 'ab') }}`, "a -a-b-"},
		{"re escape", "{{ modules.re.escape('a-b c.d_é') }}", `a\-b\ c\.d_é`},
		{"re braces and brackets", "{{ modules.re.sub('a{,2}b', 'x', 'aab') }} {{ modules.re.findall('[]x]', 'a]x') }} {{ modules.re.findall('[^]x]', 'a]x') }}", "x [']', 'x'] ['a']"},
		{"macro of the project", "{{ cents('amount', scale=4) }}", "round(amount / 100, 4)"},
		{"project macro before a bare one", "{{ dateadd('x') }}", "mine(x)"},
		{"bare macro of dbt", "{{ type_string() }} {{ dbt.type_int() }}", "varchar integer"},
		{"raw braces", "{% raw %}'{{1,2}}' '{%'{% endraw %}", "'{{1,2}}' '{%'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &rendering{p: p, m: p.model(t, "base"), o: CompileOptions{Incremental: true, RunStartedAt: now, InvocationID: "abc"}}
			p.env = env("HOME", "/home/x")
			c, list := compileText(r, tt.text)
			if list.HasErrors() {
				t.Fatal(diag.RenderList(list, nil))
			}
			if d := cmp.Diff(tt.want, c.SQL); d != "" {
				t.Error(d)
			}
		})
	}
}

func compileText(r *rendering, text string) (*Compiled, diag.List) {
	r.p.texts.keep("t.sql", text, 1)
	t, list := parseTemplate("t.sql", text)
	if list != nil {
		return nil, list
	}
	return r.compile(context.Background(), t)
}

// TestContextErrors checks message and place.
func TestContextErrors(t *testing.T) {
	p := good(t, small)
	tests := []struct{ text, want string }{
		{"select\n  {{ ref('bas') }}", `t.sql:2:11: there is no model, seed or ingest output called "bas" [RBT2020]`},
		{"{{ ref('other', 'base') }}", `t.sql:1:18: ref names the project "other", and this one is "shop" [RBT2020]`},
		{"{{ ref('base', v=3) }}", `t.sql:1:9: there is no model, seed or ingest output called "base_v3" [RBT2020]`},
		{"{{ ref() }}", `t.sql:1:4: ref takes one name, or project and name [RBT2026]`},
		{"{{ ref(base) }}", ``},
		{"{{ ref('base', vv=1) }}", `t.sql:1:4: ref has no argument "vv" [RBT2026]`},
		{"{{ source('raw', 'order') }}", `t.sql:1:19: the source "raw" has no table "order" [RBT2021]`},
		{"{{ source('row', 'orders') }}", `t.sql:1:12: there is no source called "row" [RBT2021]`},
		{"{{ source('raw') }}", `t.sql:1:4: source takes two names: source('group', 'table') [RBT2026]`},
		{"a\n\n   {{ var('strat') }}", `t.sql:3:12: the variable "strat" is not set [RBT2022]`},
		{"{{ env_var('NOPE') }}", `t.sql:1:4: the environment variable NOPE is not set [RBT2023]`},
		{"{{ env_var('RBT_SECRET_X', 'd') }}", `t.sql:1:4: the secret RBT_SECRET_X may be used in project.yml only [RBT2025]`},
		{"{{ exceptions.raise_compiler_error('no ' ~ 1) }}", `t.sql:1:15: no 1 [RBT2007]`},
		{"{{ config.require('nope') }}", `t.sql:1:11: the configuration has no key "nope" [RBT1005]`},
		{"{{ modules.re.sub('x*', '-', 'abxd') }}", `t.sql:1:15: a pattern that also matches nothing is not supported here: write + for * [RBT2026]`},
		{"{{ modules.re.search('b$', 'ab\n') }}", `t.sql:1:15: $ is not supported in texts that end in a line break: write \Z for the very end [RBT2026]`},
		{`{{ modules.re.search('\\ba', 'é') }}`, `t.sql:1:15: \b and \B are not supported in texts with letters beyond ASCII [RBT2026]`},
		{`{{ modules.re.sub('a', '\\2', 'a') }}`, `t.sql:1:15: the replacement "\\2" is not supported: the pattern has no group 2 [RBT2026]`},
		{`{{ modules.re.sub('a', '\\q', 'a') }}`, `t.sql:1:15: the replacement "\\q" is not supported: what stands behind the backslash means nothing [RBT2026]`},
		{`{{ modules.re.sub('a', 'b', 'a', flags=2) }}`, `t.sql:1:15: re has no argument "flags" [RBT2026]`},
		{`{{ modules.re.search('[[:alpha:]]', 'a') }}`, `t.sql:1:15: the pattern "[[:alpha:]]" is not supported: [: :] is none of Python's [RBT2026]`},
		{`{{ modules.re.search('[\\W]', 'a') }}`, `t.sql:1:15: the pattern "[\\W]" is not supported: \W within brackets [RBT2026]`},
		{"{{ modules.datetime.date(2024, 2, 30) }}", `t.sql:1:21: there is no such time [RBT2026]`},
		{"-- {{ nopkg.f('b') }}", ``},
		{"{{ adapter.dispatch('x', 'y')() }}", `t.sql:1:12: adapter.dispatch() is not supported [RBT2006]`},
		{"{% call statement('x') %}select 1{% endcall %}", `t.sql:1:9: statement() is not supported [RBT2006]`},
	}
	for _, tt := range tests {
		r := &rendering{p: p, m: p.model(t, "base")}
		_, list := compileText(r, tt.text)
		if len(list) != 1 {
			t.Errorf("%s: got %v", tt.text, list)
			continue
		}
		if tt.want != "" && list[0].Error() != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.text, list[0].Error(), tt.want)
		}
	}
	if c, list := compileText(&rendering{p: p}, "{# {{ nopkg.f('b') }} {{ ref('nope') }} #}select 1"); list != nil || c.SQL != "select 1" {
		t.Errorf("a template comment is nothing: %v", list)
	}
}

// TestSeen checks what a compile reports beside its text.
func TestSeen(t *testing.T) {
	p := good(t, small)
	compile := func(text string, o CompileOptions) *Compiled {
		c, list := compileText(&rendering{p: p, m: p.model(t, "base"), o: o}, text)
		if list != nil {
			t.Fatalf("%s: %v", text, list)
		}
		return c
	}
	c := compile("{{ ref('base_v2') }} {{ source('raw', 'Orders') }} {{ ref('base_v2') }} {% set x = ref('upper') %}{{ var('start') }}{{ var('nope', 1) }}", CompileOptions{})
	var refs []string
	for _, r := range c.Refs {
		schema, name := r.Relation()
		refs = append(refs, schema+"."+name+" "+r.Pos.String())
	}
	if d := cmp.Diff([]string{"main.base_v2 t.sql:1:4", "raw.Orders t.sql:1:25", "main.Upper t.sql:1:84"}, refs); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"nope", "start"}, c.VarsUsed); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"{{ run_started_at }}": "run_started_at", "{{ invocation_id }}": "invocation_id", "select 1": "",
		"{{ modules.datetime.datetime.now() }}": "modules.datetime.datetime.now", "{% set x = run_started_at %}": "",
	} {
		if got := compile(text, CompileOptions{}).Volatile; got != want {
			t.Errorf("%s: volatile %q, want %q", text, got, want)
		}
	}
	if c := compile("{{ run_query('select 1').rows | length }}", CompileOptions{}); !c.Queried || c.SQL != "0" {
		t.Errorf("queried %v, text %q", c.Queried, c.SQL)
	}
	query := func(sql string) ([]string, [][]any, error) {
		if sql != "select a" {
			return nil, nil, errors.New("what")
		}
		return []string{"a", "b"}, [][]any{{int64(1), "x"}, {int64(2), nil}}, nil
	}
	text := "{% set r = run_query('select a') %}{{ r.columns[0].values() }} {{ r.column_names }} {{ r.rows[1][0] }} {{ execute }}{% for x in r.rows %};{{ x['a'] }},{{ x.b }},{{ x[1] }}{% endfor %} {{ r.columns['b'].values()[0] }}"
	if c := compile(text, CompileOptions{Query: query}); c.SQL != "(1, 2) ['a', 'b'] 2 True;1,x,x;2,None,None x" {
		t.Errorf("got %q", c.SQL)
	}
	_, list := compileText(&rendering{p: p, o: CompileOptions{Query: query}}, "{{ run_query('select b') }}")
	if len(list) != 1 || !strings.Contains(list[0].Error(), "the query failed: what") {
		t.Errorf("got %v", list)
	}
}

func TestLogAndOverrides(t *testing.T) {
	p := good(t, small)
	var logged []string
	o := CompileOptions{
		Vars:      map[string]any{"start": "v"},
		Overrides: map[string]any{"cents": "7", "is_incremental": true, "dbt_utils.star": "s", "current_timestamp": "now"},
		Log:       func(msg string, info bool, pos diag.Pos) { logged = append(logged, msg+" "+pos.String()) },
	}
	c, list := compileText(&rendering{p: p, m: p.model(t, "base"), o: o},
		"{{ log('hi') }}{{ cents('x', scale=3) }} {{ is_incremental() }} {{ dbt_utils.star(from=ref('base')) }} {{ dbt_utils.group_by(2) }} {{ var('start') }} {{ current_timestamp() }}{% do exceptions.warn('w') %}")
	if list != nil {
		t.Fatal(list)
	}
	if d := cmp.Diff("7 True s group by 1, 2 v now", c.SQL); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"hi t.sql:1:4", "warning: w t.sql:1:193"}, logged); d != "" {
		t.Error(d)
	}
}
