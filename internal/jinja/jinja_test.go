package jinja

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

func mustParse(t testing.TB, file, src string) *Template {
	t.Helper()
	tmpl, problems := Parse(file, src, 1)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return tmpl
}

func mustLibrary(t testing.TB, templates ...*Template) *Library {
	t.Helper()
	l, problems := NewLibrary(templates...)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return l
}

// spanText is a span as tests compare it.
type spanText struct {
	Text    string
	Literal bool
	Pos     string
	Callers []string
	Value   string
}

func spansOf(r *Result) []spanText {
	var out []spanText
	for _, s := range r.Spans {
		st := spanText{Text: r.Text[s.Start:s.End], Literal: s.Literal, Pos: s.Pos.String()}
		for _, c := range s.Callers {
			st.Callers = append(st.Callers, c.String())
		}
		if s.Value != nil {
			st.Value = fmt.Sprintf("%T", s.Value)
		}
		out = append(out, st)
	}
	return out
}

func TestSpans(t *testing.T) {
	lib := mustLibrary(t, mustParse(t, "lib.sql", "{% macro q(x) %}[{{ x }}]{% endmacro %}\n{% macro twice(x) %}\n{{ q(x) }}{{ q(x) }}{% endmacro %}"))
	cases := []struct {
		name, src string
		want      []spanText
	}{
		{"text and output", "a\n{{ 1 }}b", []spanText{
			{Text: "a\n", Literal: true, Pos: "m.sql:1:1"},
			{Text: "1", Pos: "m.sql:2:4"},
			{Text: "b", Literal: true, Pos: "m.sql:2:8"},
		}},
		{"host object", "from {{ ref('t') }} x", []spanText{
			{Text: "from ", Literal: true, Pos: "m.sql:1:1"},
			{Text: `"main"."t"`, Pos: "m.sql:1:9", Value: "jinja.relation"},
			{Text: " x", Literal: true, Pos: "m.sql:1:20"},
		}},
		{"macro", "é {{ q('x') }}", []spanText{
			{Text: "é ", Literal: true, Pos: "m.sql:1:1"},
			{Text: "[", Literal: true, Pos: "lib.sql:1:17", Callers: []string{"m.sql:1:6"}},
			{Text: "x", Pos: "lib.sql:1:21", Callers: []string{"m.sql:1:6"}},
			{Text: "]", Literal: true, Pos: "lib.sql:1:25", Callers: []string{"m.sql:1:6"}},
		}},
		{"macro in macro, object passed on", "{{ twice(ref('t')) | trim }}", []spanText{
			{Text: "[", Literal: true, Pos: "lib.sql:1:17", Callers: []string{"lib.sql:3:4", "m.sql:1:4"}},
			{Text: `"main"."t"`, Pos: "lib.sql:1:21", Callers: []string{"lib.sql:3:4", "m.sql:1:4"}, Value: "jinja.relation"},
			{Text: "]", Literal: true, Pos: "lib.sql:1:25", Callers: []string{"lib.sql:3:4", "m.sql:1:4"}},
			{Text: "[", Literal: true, Pos: "lib.sql:1:17", Callers: []string{"lib.sql:3:14", "m.sql:1:4"}},
			{Text: `"main"."t"`, Pos: "lib.sql:1:21", Callers: []string{"lib.sql:3:14", "m.sql:1:4"}, Value: "jinja.relation"},
			{Text: "]", Literal: true, Pos: "lib.sql:1:25", Callers: []string{"lib.sql:3:14", "m.sql:1:4"}},
		}},
		{"set block", "{% set s %}a{{ 2 }}{% endset %}\n{{ s }}", []spanText{
			{Text: "\n", Literal: true, Pos: "m.sql:1:32"},
			{Text: "a", Literal: true, Pos: "m.sql:1:12"},
			{Text: "2", Pos: "m.sql:1:16"},
		}},
		{"concatenation", "{{ 'x' ~ ref('t') ~ q(1) }}", []spanText{
			{Text: "x", Pos: "m.sql:1:4"},
			{Text: `"main"."t"`, Pos: "m.sql:1:10", Value: "jinja.relation"},
			{Text: "[", Literal: true, Pos: "lib.sql:1:17", Callers: []string{"m.sql:1:21"}},
			{Text: "1", Pos: "lib.sql:1:21", Callers: []string{"m.sql:1:21"}},
			{Text: "]", Literal: true, Pos: "lib.sql:1:25", Callers: []string{"m.sql:1:21"}},
		}},
		{"join of objects", "{{ [ref('a'), ref('b')] | join(', ') }}", []spanText{
			{Text: `"main"."a"`, Pos: "m.sql:1:27", Value: "jinja.relation"},
			{Text: ", ", Pos: "m.sql:1:27"},
			{Text: `"main"."b"`, Pos: "m.sql:1:27", Value: "jinja.relation"},
		}},
		{"caller", "{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{{ 3 }}{% endcall %}", []spanText{
			{Text: "<", Literal: true, Pos: "m.sql:1:16", Callers: []string{"m.sql:1:54"}},
			{Text: "in", Literal: true, Pos: "m.sql:1:60", Callers: []string{"m.sql:1:20", "m.sql:1:54"}},
			{Text: "3", Pos: "m.sql:1:65", Callers: []string{"m.sql:1:20", "m.sql:1:54"}},
			{Text: ">", Literal: true, Pos: "m.sql:1:31", Callers: []string{"m.sql:1:54"}},
		}},
		{"filter that makes new text", "{{ q('x') | upper }}", []spanText{{Text: "[X]", Pos: "m.sql:1:4"}}},
		{"condition", "{{ ref('t') if true }}", []spanText{{Text: `"main"."t"`, Pos: "m.sql:1:4", Value: "jinja.relation"}}},
		{"empty", "{{ '' }}{# c #}", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res, err := render(t, c.src, Options{Library: lib})
			if err != nil {
				t.Fatal(err)
			}
			checkSpans(t, res)
			if d := cmp.Diff(c.want, spansOf(res)); d != "" {
				t.Fatalf("spans (-want +got):\n%s", d)
			}
		})
	}
}

func TestLocate(t *testing.T) {
	lib := mustLibrary(t, mustParse(t, "lib.sql", "{% macro m() %}a\nbé c{% endmacro %}"))
	res, err := render(t, "x\ny {{ m() }} {{ 1 + 1 }}\nz", Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		at      string // the output text whose first byte is looked up
		pos     string
		callers int
		exact   bool
	}{
		{"x\n", "m.sql:1:1", 0, true},
		{"y a", "m.sql:2:1", 0, true},
		{"a\nb", "lib.sql:1:16", 1, true},
		{"bé", "lib.sql:2:1", 1, true},
		{" c", "lib.sql:2:3", 1, true},
		{"2", "m.sql:2:16", 0, false},
		{"z", "m.sql:3:1", 0, true},
	}
	for _, c := range cases {
		pos, callers, exact := res.Locate(strings.Index(res.Text, c.at))
		if pos.String() != c.pos || len(callers) != c.callers || exact != c.exact {
			t.Errorf("%q in %q: got %v, %v, %v, want %s, %d callers, %v", c.at, res.Text, pos, callers, exact, c.pos, c.callers, c.exact)
		}
	}
	if pos, _, exact := res.Locate(len(res.Text)); pos.String() != "m.sql:3:2" || !exact {
		t.Errorf("the end: got %v, %v", pos, exact)
	}
	if res, err = render(t, "{% set x = 1 %}", Options{}); err != nil {
		t.Fatal(err)
	}
	if pos, _, exact := res.Locate(3); pos.String() != "m.sql:1:1" || exact {
		t.Errorf("an empty result: got %v, %v", pos, exact)
	}
}

func TestFirstLine(t *testing.T) {
	tmpl, problems := Parse("m.sql", "a\n{{ nope }}", 8)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	_, err := Render(context.Background(), tmpl, Options{})
	if d := first(t, err); d.Pos.String() != "m.sql:9:4" {
		t.Fatalf("got %v", d.Pos)
	}
}

func TestLibrary(t *testing.T) {
	utils := mustParse(t, "packages/utils.sql",
		"{% macro star(x) %}{{ helper(x) }}.*{% endmacro %}{% macro helper(x) %}h({{ x }}){% endmacro %}")
	project := mustParse(t, "macros/a.sql",
		"{% macro a(x) %}a{{ b(x) }}{% endmacro %}\n{% macro uses_ref(n) %}{{ ref(n) }}{% endmacro %}{% macro clean(xs) %}{{ return(xs | map('upper') | list) }}never{% endmacro %}")
	other := mustParse(t, "macros/b.sql",
		"{% set k = 7 %}{% macro b(x) %}b{{ x }}{{ k }}{% endmacro %}{% test positive(model, column_name, limit=0) %}select * from {{ model }} where {{ column_name }} <= {{ limit }}{% endtest %}")
	lib := mustLibrary(t, project, other)
	lib, problems := lib.WithNamespace("utils", utils)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	cases := map[string]string{
		"{{ a(1) }}":                               "ab17",
		"{{ uses_ref('t') }}":                      `"main"."t"`,
		"{{ utils.star('t') }}":                    "h(t).*",
		"{{ helper is defined }}":                  "False",
		"{% import 'utils' as u %}{{ u.star(1) }}": "h(1).*",
		"{% from 'utils' import star, helper as h %}{{ star(1) }}{{ h(2) }}":                                                     "h(1).*h(2)",
		"{% from 'macros/b.sql' import b, k %}{{ b(1) }}{{ k }}":                                                                 "b177",
		"{% from utils import star with context %}{{ star(1) }}":                                                                 "h(1).*",
		"{% for c in clean(['a','b']) %}{{ c }}{{ ',' if not loop.last }}{% endfor %}":                                           "A,B",
		"{{ clean(['a']) | length }}{{ clean([]) is sequence }}":                                                                 "1True",
		"{% macro a(x) %}mine{{ x }}{% endmacro %}{{ a(1) }}":                                                                    "mine1",
		"{% macro r(n) %}{% if n %}{% do return(n) %}{% endif %}0{% endmacro %}{{ r(5) }}":                                       "5",
		"{% macro r() %}{% for i in range(9) %}{% if i == 3 %}{{ return(i) }}{% endif %}{% endfor %}{% endmacro %}{{ r() + 1 }}": "4",
		"{% macro r() %}{{ return(none) }}{% endmacro %}{{ r() is none }}":                                                       "True",
		"{{ positive is defined }}{{ test_positive is defined }}":                                                                "FalseTrue",
	}
	for src, want := range cases {
		t.Run(src, func(t *testing.T) {
			res, err := render(t, src, Options{Library: lib})
			if err != nil {
				t.Fatal(err)
			}
			if res.Text != want {
				t.Fatalf("got %q, want %q", res.Text, want)
			}
			checkSpans(t, res)
		})
	}
	t.Run("test block", func(t *testing.T) {
		res, err := CallMacro(context.Background(), lib, "test", "positive", []any{relation{"main", "m"}},
			map[string]any{"column_name": "amount", "limit": 3}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := `select * from "main"."m" where amount <= 3`; res.Text != want {
			t.Fatalf("got %q, want %q", res.Text, want)
		}
		checkSpans(t, res)
		if res.Spans[1].Value != (relation{"main", "m"}) {
			t.Fatalf("the relation is not in its span: %+v", res.Spans[1])
		}
	})
	t.Run("infos", func(t *testing.T) {
		want := []MacroInfo{
			{Name: "b", Kind: "macro", Pos: diag.Pos{File: "macros/b.sql", Line: 1, Col: 25},
				Params: []ParamInfo{{Name: "x", Pos: diag.Pos{File: "macros/b.sql", Line: 1, Col: 27}}}},
			{Name: "positive", Kind: "test", Pos: diag.Pos{File: "macros/b.sql", Line: 1, Col: 69}, Params: []ParamInfo{
				{Name: "model", Pos: diag.Pos{File: "macros/b.sql", Line: 1, Col: 78}},
				{Name: "column_name", Pos: diag.Pos{File: "macros/b.sql", Line: 1, Col: 85}},
				{Name: "limit", HasDefault: true, Pos: diag.Pos{File: "macros/b.sql", Line: 1, Col: 98}},
			}},
		}
		if d := cmp.Diff(want, other.Macros()); d != "" {
			t.Fatal(d)
		}
		if n := len(lib.Macros()); n != 5 {
			t.Fatalf("%d macros in the library, want 5", n)
		}
	})
}

func TestLibraryErrors(t *testing.T) {
	a := mustParse(t, "a.sql", "{% macro m() %}{% endmacro %}{% test m() %}{% endtest %}")
	b := mustParse(t, "b.sql", "\n{% macro m() %}{% endmacro %}")
	_, problems := NewLibrary(a, b)
	if len(problems) != 1 || problems[0].Code != diag.DuplicateMacro || problems[0].Pos.String() != "b.sql:2:10" ||
		len(problems[0].Notes) != 1 || problems[0].Notes[0].Pos.String() != "a.sql:1:10" {
		t.Fatalf("got %+v", problems)
	}
	lib := mustLibrary(t, a)
	_, err := CallMacro(context.Background(), lib, "test", "n", nil, nil, Options{})
	if d := first(t, err); d.Code != diag.UndefinedName || d.Hint == "" {
		t.Fatalf("got %v", err)
	}
	_, err = CallMacro(context.Background(), lib, "macro", "m", []any{1}, nil, Options{})
	if d := first(t, err); d.Code != diag.TemplateType || d.Pos.File != "a.sql" {
		t.Fatalf("got %v", err)
	}
	_, err = CallMacro(context.Background(), nil, "macro", "m", nil, nil, Options{})
	if d := first(t, err); d.Code != diag.UndefinedName {
		t.Fatalf("got %v", err)
	}
}

func TestHost(t *testing.T) {
	sentinel := errors.New("disk on fire")
	globals := map[string]any{
		"plain":  Func(func(*Call) (any, error) { return nil, sentinel }),
		"placed": Func(func(c *Call) (any, error) { return nil, diag.Errorf(diag.BadValue, c.ArgPos(1), "no").WithHint("try") }),
		"named":  Func(func(c *Call) (any, error) { return nil, diag.Errorf(diag.BadValue, c.KwargPos("k"), "no") }),
		"bare":   Func(func(*Call) (any, error) { return nil, diag.Errorf(diag.BadValue, diag.Pos{}, "no") }),
		"list":   Func(func(*Call) (any, error) { return nil, diag.List{diag.Errorf(diag.BadValue, diag.Pos{}, "one")} }),
		"odd":    Func(func(*Call) (any, error) { return struct{}{}, nil }),
		"args": Func(func(c *Call) (any, error) {
			return fmt.Sprintf("%T %T %T %v", c.Args[0], c.Args[1], c.Args[2], c.Kwargs.Keys()), nil
		}),
		"int":  7,
		"obj":  relation{"s", "t"},
		"call": callableObject{},
	}
	errs := []struct{ src, pos, msg string }{
		{"\n{{ plain(1) }}", "m.sql:2:4", "plain(): disk on fire"},
		{"{{ placed(1, 2) }}", "m.sql:1:14", "no"},
		{"{{ named(1, k = 2) }}", "m.sql:1:13", "no"},
		{"{{ 1 + bare(1) }}", "m.sql:1:8", "no"},
		{"{{ list() }}", "m.sql:1:4", "one"},
		{"{{ obj.nope }}", "m.sql:1:8", `the value "s"."t" has no attribute 'nope'`},
		{"{{ args(nope) }}", "m.sql:1:9", "'nope' is undefined"},
	}
	for _, c := range errs {
		_, err := render(t, c.src, Options{Globals: globals})
		if d := first(t, err); d.Pos.String() != c.pos || d.Msg != c.msg {
			t.Errorf("%s\ngot %v: %s, want %s: %s", c.src, d.Pos, d.Msg, c.pos, c.msg)
		}
	}
	if _, err := render(t, "{{ odd() }}", Options{Globals: globals}); err == nil {
		t.Error("a value of a foreign type is accepted")
	}
	outs := map[string]string{
		"{{ args(1, 'a', [1], z=1, b=2) }}":     "int64 string *jinja.List [z b]",
		"{{ int + 1 }}":                         "8",
		"{{ obj.schema }}.{{ obj.identifier }}": "s.t",
		"{{ obj['schema'] }}":                   "s",
		"{{ call(2) }}{{ call.x }}":             "called 1x",
		"{{ obj == obj }}{{ obj != 1 }}":        "TrueTrue",
		"{{ {obj: 1}[obj] }}":                   "1",
		"{{ obj | length if false }}|":          "|",
		"{{ obj | string | upper }}":            `"S"."T"`,
		"{{ obj ~ '' }}":                        `"s"."t"`,
	}
	for src, want := range outs {
		res, err := render(t, src, Options{Globals: globals})
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if res.Text != want {
			t.Errorf("%s: got %q, want %q", src, res.Text, want)
		}
	}
}

type callableObject struct{}

func (callableObject) String() string { return "c" }
func (callableObject) Attr(name string) (any, bool) {
	return name, name == "x"
}
func (callableObject) Call(c *Call) (any, error) { return fmt.Sprintf("called %d", len(c.Args)), nil }

// days is a host value with operators and an order; page one with items.
type days int64

func (d days) String() string          { return fmt.Sprintf("%dd", int64(d)) }
func (d days) Attr(string) (any, bool) { return nil, false }

func (d days) Operate(op string, other any, swapped bool) (any, bool, error) {
	n, ok := other.(int64)
	switch {
	case ok && op == "+":
		return d + days(n), true, nil
	case ok && op == "-" && !swapped:
		return d - days(n), true, nil
	case ok && op == "//":
		return nil, false, errors.New("days cannot be divided")
	}
	return nil, false, nil
}

func (d days) Order(other any) (int, bool) {
	if n, ok := other.(int64); ok {
		other = days(n)
	}
	o, ok := other.(days)
	return int(d - o), ok
}

type page []any

func (p page) String() string          { return "page" }
func (p page) Attr(string) (any, bool) { return nil, false }
func (p page) Len() int                { return len(p) }
func (p page) At(i int) any            { return p[i] }

func TestHostOperators(t *testing.T) {
	globals := map[string]any{"d": days(3), "p": page{1, "x", days(2)}, "none_": page{}}
	outs := map[string]string{
		"{{ d + 1 }} {{ 1 + d }} {{ d - 1 }}":                    "4d 4d 2d",
		"{{ d > 2 }} {{ 2 < d }} {{ d == 3 }} {{ 4 <= d }}":      "True True True False",
		"{{ [p[2], d, 1] | sort | join(' ') }}":                  "1 2d 3d",
		"{{ p | length }} {{ p[1] }} {{ p[-1] }}":                "3 x 2d",
		"{% for v in p %}{{ v }};{% endfor %}":                   "1;x;2d;",
		"{{ 'x' in p }} {{ p is iterable }} {{ p is sequence }}": "True True True",
		"{{ 'a' if none_ else 'b' }}{{ 'a' if p else 'b' }}":     "ba",
		"{{ p[0] + 1 }}": "2",
	}
	for src, want := range outs {
		res, err := render(t, src, Options{Globals: globals})
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if res.Text != want {
			t.Errorf("%s: got %q, want %q", src, res.Text, want)
		}
	}
	for src, pos := range map[string]string{"{{ 1 - d }}": "m.sql:1:6", "{{ d * 'a' }}": "m.sql:1:6", "{{ d // 2 }}": "m.sql:1:6", "{{ d < 'a' }}": "m.sql:1:6"} {
		_, err := render(t, src, Options{Globals: globals})
		if err == nil {
			t.Errorf("%s: no error", src)
		} else if d := first(t, err); d.Pos.String() != pos {
			t.Errorf("%s: got %v, want %s", src, err, pos)
		}
	}
}

func TestEvaluate(t *testing.T) {
	ctx := context.Background()
	o := Options{Globals: oracleGlobals()}
	v, err := Evaluate(ctx, "[1, 'a', target.name] + [2 ** 70]", "p.yml", 3, o)
	if err != nil {
		t.Fatal(err)
	}
	want := new(big.Int).Lsh(big.NewInt(1), 70)
	if l := v.(*List); l.Len() != 4 || l.At(0) != int64(1) || l.At(1) != "a" || l.At(2) != "dev" || l.At(3).(*big.Int).Cmp(want) != 0 {
		t.Fatalf("got %v", l.Items())
	}
	for src, pos := range map[string]string{
		"nope": "p.yml:3:1", "1 +": "p.yml:3:4", "1 }} x": "p.yml:3:3", "\n1 2": "p.yml:4:3", "": "p.yml:3:1", "'a": "p.yml:3:1",
	} {
		_, err := Evaluate(ctx, src, "p.yml", 3, o)
		if err == nil {
			t.Errorf("%q: no error", src)
			continue
		}
		if d := first(t, err); d.Pos.String() != pos {
			t.Errorf("%q: got %v, want %s", src, err, pos)
		}
	}
}

func TestFromGo(t *testing.T) {
	v, err := FromGo(map[string]any{"b": []any{1, int64(2), "x", nil, true, 1.5}, "a": map[string]any{}, "c": []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newRun(context.Background(), Options{}).reprText(v)
	if want := "{'a': {}, 'b': [1, 2, 'x', None, True, 1.5], 'c': ['y']}"; err != nil || s != want {
		t.Fatalf("got %s, %v, want %s", s, err, want)
	}
	if _, err := FromGo(struct{}{}); err == nil {
		t.Fatal("a struct is accepted")
	}
}

func TestDict(t *testing.T) {
	d := NewDict()
	for i := range 100 {
		if err := d.Set(i, i*i); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < 100; i += 3 {
		if !d.Delete(i) || d.Delete(i) {
			t.Fatalf("delete %d", i)
		}
	}
	if v, ok := d.Get(int64(50)); !ok || v != int64(2500) {
		t.Fatalf("got %v, %v", v, ok)
	}
	if v, ok := d.Get(50.0); !ok || v != int64(2500) {
		t.Fatalf("got %v, %v for the float", v, ok)
	}
	if _, ok := d.Get(51); ok {
		t.Fatal("51 is still there")
	}
	keys := d.Keys()
	if len(keys) != d.Len() || keys[0] != int64(1) || keys[len(keys)-1] != int64(98) {
		t.Fatalf("keys %v", keys)
	}
	if err := d.Set(NewList(), 1); err == nil {
		t.Fatal("a list is accepted as a key")
	}
}

func TestConcurrentRenders(t *testing.T) {
	lib := mustLibrary(t, mustParse(t, "l.sql", "{% set k = 2 %}{% macro m(x) %}{{ x * k }}{% endmacro %}"))
	tmpl := mustParse(t, "m.sql", "{% for i in range(50) %}{{ m(i) }},{% endfor %}{{ 'a' | upper }}{{ [3, 1] | sort }}")
	want, err := Render(context.Background(), tmpl, Options{Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := Render(context.Background(), tmpl, Options{Library: lib})
				if err != nil || got.Text != want.Text {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestParseReportsSeveral(t *testing.T) {
	tmpl, problems := Parse("m.sql", "{{ a b }}\n{{ ref('x') }}\n{{ 1 | nope }}\n{{ ) }}\n{% if x %}{{ 1 + }}{% endif %}", 1)
	var got []string
	for _, d := range problems {
		got = append(got, d.Pos.String())
	}
	want := []string{"m.sql:1:6", "m.sql:3:8", "m.sql:4:4", "m.sql:5:18"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("places (-want +got):\n%s", d)
	}
	if _, err := Render(context.Background(), tmpl, Options{}); first(t, err).Pos.String() != "m.sql:1:6" {
		t.Fatalf("rendering gives %v", err)
	}
}

func TestRefused(t *testing.T) {
	cases := map[string]diag.Code{
		"{% include 'x' %}":                             diag.TemplateUnsupported,
		"{% extends 'x' %}":                             diag.TemplateUnsupported,
		"{% block b %}{% endblock %}":                   diag.TemplateUnsupported,
		"{% autoescape true %}{% endautoescape %}":      diag.TemplateUnsupported,
		"{% trans %}{% endtrans %}":                     diag.TemplateUnsupported,
		"{% debug %}":                                   diag.TemplateUnsupported,
		"{% snapshot s %}{% endsnapshot %}":             diag.TemplateUnsupported,
		"{% materialization m, default %}":              diag.TemplateUnsupported,
		"{% docs d %}{% enddocs %}":                     diag.TemplateUnsupported,
		"{% import 'x' as y %}":                         diag.TemplateUnsupported,
		"{% from 'x' import y %}":                       diag.TemplateUnsupported,
		"{{ [1] | random }}":                            diag.TemplateUnsupported,
		"{{ [1] | map('random') | list }}":              diag.TemplateUnsupported,
		"{{ 'a' | urlize }}":                            diag.TemplateUnsupported,
		"{{ {} | xmlattr }}":                            diag.TemplateUnsupported,
		"{{ 1 | pprint }}":                              diag.TemplateUnsupported,
		"{{ lipsum() }}":                                diag.TemplateUnsupported,
		"{{ 'a'.encode() }}":                            diag.TemplateUnsupported,
		"{{ 'a'.translate({}) }}":                       diag.TemplateUnsupported,
		"{% do [1].sort(key=range) %}":                  diag.TemplateUnsupported,
		"{{ (-8) ** 0.5 }}":                             diag.TemplateUnsupported,
		`{{ '\N{DASH}' }}`:                              diag.TemplateSyntax,
		"{{ ''.__class__ }}":                            diag.UndefinedName,
		"{{ ''['__class__'] }}":                         diag.UndefinedName,
		"{{ '' | attr('__class__') }}":                  diag.UndefinedName,
		"{{ '{0.__class__}'.format(1) }}":               diag.UndefinedName,
		"{{ ref.__globals__ }}":                         diag.UndefinedName,
		"{{ range.__self__ }}":                          diag.UndefinedName,
		"{{ [nope] }}":                                  diag.UndefinedName,
		"{{ ref(nope) }}":                               diag.UndefinedName,
		"{{ ref }}":                                     diag.TemplateType,
		"{{ 'a'.upper }}":                               diag.TemplateType,
		"{{ range }}":                                   diag.TemplateType,
		"{{ [1] | map('string') }}":                     diag.TemplateType,
		"{{ 10 ** 5000 }}":                              diag.TemplateValue,
		"{% macro m() %}{% endmacro %}{{ m.__call__ }}": diag.UndefinedName,
	}
	for src, code := range cases {
		_, err := render(t, src, Options{})
		if err == nil {
			t.Errorf("%s: no error", src)
		} else if d := first(t, err); d.Code != code || d.Pos.Col == 0 {
			t.Errorf("%s: got %v, want code %s and a place", src, err, code)
		}
	}
}

func TestManyMistakes(t *testing.T) {
	_, problems := Parse("m.sql", strings.Repeat("{{ a b }} {{ ' }} {{ 1 | nope }}\n", 20000), 1)
	if n := len(problems); n == 0 || n > maxProblems+1 {
		t.Fatalf("%d problems", n)
	}
}
