package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"rbt/internal/diag"
)

// render renders a template with the recorded context.
func render(t testing.TB, src string, o Options) (*Result, error) {
	t.Helper()
	tmpl, problems := Parse("m.sql", src, 1)
	if problems.HasErrors() {
		return nil, problems
	}
	if o.Globals == nil {
		o.Globals = oracleGlobals()
	}
	return Render(context.Background(), tmpl, o)
}

// first gives the first diagnostic of an error.
func first(t testing.TB, err error) diag.Diagnostic {
	t.Helper()
	var l diag.List
	var d diag.Diagnostic
	switch {
	case errors.As(err, &l):
		return l[0]
	case errors.As(err, &d):
		return d
	}
	t.Fatalf("error %v (%T) is no diagnostic", err, err)
	return d
}

func TestBudgets(t *testing.T) {
	cases := map[string]string{
		"endless recursion":        `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`,
		"mutual recursion":         `{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`,
		"caller recursion":         `{% macro m() %}{{ caller() }}{{ m2() }}{% endmacro %}{% macro m2() %}{% call m() %}x{% endcall %}{% endmacro %}{{ m2() }}`,
		"loop recursion":           `{% set xs = [] %}{% do xs.append(xs) %}{% for x in xs recursive %}{{ loop(x) }}{% endfor %}`,
		"long range":               `{% for i in range(10**9) %}{% endfor %}`,
		"list of long range":       `{{ range(10**9) | list }}`,
		"list of longer range":     `{{ range(10**18) | list | length }}`,
		"sum of long range":        `{{ range(10**9) | sum }}`,
		"contains in range":        `{{ 'x' in range(10**9) }}`,
		"repeated text":            `{{ 'a' * 10**10 }}`,
		"repeated text more":       `{{ 'ab' * 9223372036854775807 }}`,
		"repeated list":            `{{ [0] * 10**10 }}`,
		"repeated tuple":           `{{ (1, 2) * 10**18 }}`,
		"doubled text":             `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`,
		"doubled text with plus":   `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
		"doubled list":             `{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
		"doubled by extend":        `{% set xs = [1] %}{% for i in range(100) %}{% do xs.extend(xs) %}{% endfor %}`,
		"doubled by set block":     `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}`,
		"doubled by replace":       `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s | replace('x', 'xx') %}{% endfor %}`,
		"doubled by join":          `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}`,
		"doubled by format":        `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = '%s%s' % (ns.s, ns.s) %}{% endfor %}`,
		"doubled by brace format":  `{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = '{0}{0}'.format(ns.s) %}{% endfor %}`,
		"many large texts":         `{% set xs = [] %}{% for i in range(10000) %}{% do xs.append('x' * 60000000) %}{% endfor %}`,
		"large output":             `{% for i in range(100000000) %}{{ 'x' * 1000000 }}{% endfor %}`,
		"wide percent":             `{{ '%1000000000d' % 1 }}`,
		"precise percent":          `{{ '%.1000000000f' % 1 }}`,
		"star percent":             `{{ '%*d' % (1000000000, 1) }}`,
		"huge percent":             `{{ '%99999999999999999999d' % 1 }}`,
		"wide brace":               `{{ '{:1000000000}'.format('a') }}`,
		"precise brace":            `{{ '{:.1000000000f}'.format(1.5) }}`,
		"center":                   `{{ 'a' | center(10**9) }}`,
		"center method":            `{{ 'a'.center(10**9) }}`,
		"ljust":                    `{{ 'a'.ljust(10**18) }}`,
		"zfill":                    `{{ '1'.zfill(10**18) }}`,
		"expandtabs":               `{{ '\t'.expandtabs(10**9) }}`,
		"indent":                   `{{ 'a\nb' | indent(10**9) }}`,
		"tojson indent":            `{{ [1] | tojson(indent=10**9) }}`,
		"tojson deep indent":       `{{ [[[[[[[1]]]]]]] | tojson(indent=10**7) }}`,
		"replace empty":            `{{ ('a' * 100000) | replace('', 'b' * 100000) }}`,
		"join large separator":     `{{ range(100000) | join('x' * 100000) }}`,
		"batch fill":               `{{ [1] | batch(10**9, 0) | list }}`,
		"slices":                   `{{ [1] | slice(10**9) | list }}`,
		"power":                    `{{ 10 ** (10 ** 9) }}`,
		"power of power":           `{% set ns = namespace(n=10) %}{% for i in range(100) %}{% set ns.n = ns.n * ns.n %}{% endfor %}`,
		"deep list":                `{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}`,
		"deep list compared":       `{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(100000) %}{% set a.l = [a.l] %}{% set b.l = [b.l] %}{% endfor %}{{ a.l == b.l }}`,
		"deep tuple as key":        `{% set ns = namespace(t=(1,)) %}{% for i in range(100000) %}{% set ns.t = (ns.t,) %}{% endfor %}{{ {ns.t: 1} | length }}`,
		"wide tuple as key":        `{% set ns = namespace(t=(1, 2)) %}{% for i in range(60) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}{{ {ns.t: 1} | length }}`,
		"shared lists printed":     `{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}`,
		"shared lists as json":     `{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}`,
		"shared lists compared":    `{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(60) %}{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}`,
		"growing list in its loop": `{% set xs = [1] %}{% for x in xs %}{% do xs.append(x) %}{% endfor %}`,
		"list extended by itself":  `{% set xs = [1] %}{% for i in range(64) %}{% do xs.extend(xs | map('string')) %}{% endfor %}`,
		"nested loops":             `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`,
		"nested parentheses":       `{{ ` + strings.Repeat("(", 10000) + "1" + strings.Repeat(")", 10000) + ` }}`,
		"nested lists":             `{{ ` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + ` }}`,
		"nested dicts":             `{{ ` + strings.Repeat("{1:", 10000) + "1" + strings.Repeat("}", 10000) + ` }}`,
		"nested nots":              `{{ ` + strings.Repeat("not ", 10000) + `1 }}`,
		"nested signs":             `{{ ` + strings.Repeat("-", 10000) + `1 }}`,
		"nested calls":             `{{ ` + strings.Repeat("ref(", 10000) + "1" + strings.Repeat(")", 10000) + ` }}`,
		"nested subscripts":        `{{ ` + strings.Repeat("rows[", 10000) + "1" + strings.Repeat("]", 10000) + ` }}`,
		"nested conditions":        `{{ ` + strings.Repeat("1 if 0 else ", 10000) + `1 }}`,
		"long sum":                 `{{ 1` + strings.Repeat(" + 1", 10000) + ` }}`,
		"long and":                 `{{ 1` + strings.Repeat(" and 1", 10000) + ` }}`,
		"long attribute chain":     `{{ rows` + strings.Repeat(".a", 10000) + ` }}`,
		"long filter chain":        `{{ 'a'` + strings.Repeat("|upper", 10000) + ` }}`,
		"long call chain":          `{{ ref` + strings.Repeat("()", 10000) + ` }}`,
		"nested ifs":               strings.Repeat("{% if 1 %}", 10000) + strings.Repeat("{% endif %}", 10000),
		"nested loops in text":     strings.Repeat("{% for i in [1] %}", 10000) + strings.Repeat("{% endfor %}", 10000),
		"nested macros":            strings.Repeat("{% macro m() %}", 10000) + strings.Repeat("{% endmacro %}", 10000),
		"ten megabytes":            strings.Repeat("select 1\n", 1200000),
	}
	for name, src := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := render(t, src, Options{Budget: Budget{Steps: 1_000_000}})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("no error")
			}
			d := first(t, err)
			if d.Code != diag.TemplateBudget {
				t.Fatalf("code %s, want %s: %v", d.Code, diag.TemplateBudget, err)
			}
			if d.Pos.Line == 0 || d.Msg == "" {
				t.Fatalf("no place or message: %v", err)
			}
			// Not the peak but all that was allocated: far above any honest render.
			if used := after.TotalAlloc - before.TotalAlloc; used > 1200<<20 {
				t.Fatalf("%d MB allocated: %v", used>>20, err)
			}
		})
	}
}

func TestLongFlatTemplatesAreFine(t *testing.T) {
	cases := map[string]string{
		"many outputs":  strings.Repeat("{{ 1 }}", 100000),
		"many ifs":      strings.Repeat("{% if true %}a{% endif %}", 20000),
		"many sets":     strings.Repeat("{% set x = 1 %}{{ x }}", 20000),
		"long list":     "{{ [" + strings.Repeat("1,", 100000) + "] | length }}",
		"long concat":   "{{ (1" + strings.Repeat(" ~ 1", 50000) + ") | length }}",
		"long compare":  "{{ 1" + strings.Repeat(" < 2", 50000) + " }}",
		"many elifs":    "{% if false %}" + strings.Repeat("{% elif false %}", 20000) + "{% endif %}",
		"many macros":   strings.Repeat("{% macro m() %}a{% endmacro %}", 20000),
		"many strings":  "{{ " + strings.Repeat("'a' ", 50000) + "}}",
		"many comments": strings.Repeat("{# a #}", 100000),
		"much space":    "{{ 1 -}}" + strings.Repeat(" ", 1<<20) + "{{- 2 }}",
		"many braces":   strings.Repeat("{ ", 1<<20),
		"raw and tags":  "{% raw %}" + strings.Repeat("{% x ", 1<<18) + "{% endraw %}",
	}
	for name, src := range cases {
		t.Run(name, func(t *testing.T) {
			res, err := render(t, src, Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkSpans(t, res)
		})
	}
}

func TestCancelledContext(t *testing.T) {
	tmpl, problems := Parse("m.sql", "{% for i in range(1000000) %}{% do stop() if i == 100000 %}{% endfor %}", 1)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := Func(func(*Call) (any, error) {
		cancel()
		return nil, nil
	})
	_, err := Render(ctx, tmpl, Options{Globals: map[string]any{"stop": stop}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it to be context.Canceled", err)
	}
}

func TestSmallBudget(t *testing.T) {
	_, err := render(t, "{% for i in range(1000) %}{{ i }}{% endfor %}", Options{Budget: Budget{Steps: 500}})
	if d := first(t, err); d.Code != diag.TemplateBudget || !strings.Contains(d.Msg, "500") {
		t.Fatalf("got %v", err)
	}
	_, err = render(t, "{% for i in range(1000) %}{{ i }}{% endfor %}", Options{Budget: Budget{Output: 100}})
	if d := first(t, err); d.Code != diag.TemplateBudget || !strings.Contains(d.Msg, "100") {
		t.Fatalf("got %v", err)
	}
	src := "{% macro f(n) %}{{ f(n - 1) if n }}{% endmacro %}{{ f(20) }}"
	if _, err = render(t, src, Options{}); err != nil {
		t.Fatal(err)
	}
	_, err = render(t, src, Options{Budget: Budget{Depth: 10}})
	if d := first(t, err); d.Code != diag.TemplateBudget || !strings.Contains(d.Msg, "10") {
		t.Fatalf("got %v", err)
	}
}
