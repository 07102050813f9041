package jinja

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rbt/internal/diag"
)

// fuzzBudget keeps a single input fast.
var fuzzBudget = Budget{Steps: 200_000, Output: 1 << 20, Depth: 50}

// FuzzTemplate: no input makes the engine panic or hang, every error has a place
// inside of the template, and spans follow each other and cover the output.
func FuzzTemplate(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "jinja", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range decodeRecorded(f, data) {
			f.Add(c.Template)
		}
	}
	f.Fuzz(func(t *testing.T, src string) { checkTemplate(t, src) })
}

func checkTemplate(t interface {
	Helper()
	Fatalf(string, ...any)
}, src string) {
	t.Helper()
	tmpl, problems := Parse("m.sql", src, 1)
	lines := strings.Count(strings.ReplaceAll(src, "\r", "\n"), "\n") + 1
	for _, d := range problems {
		checkPlace(t, d, lines)
	}
	if problems.HasErrors() {
		return
	}
	res, err := Render(context.Background(), tmpl, Options{Globals: oracleGlobals(), Budget: fuzzBudget})
	if err != nil {
		d, ok := err.(diag.Diagnostic)
		if !ok {
			t.Fatalf("error %v (%T) is no diagnostic", err, err)
		}
		checkPlace(t, d, lines)
		return
	}
	checkSpans(t, res)
	for _, s := range res.Spans {
		if s.Pos.File != "m.sql" || s.Pos.Line < 1 || s.Pos.Line > lines || s.Pos.Col < 1 {
			t.Fatalf("span %+v lies outside of the template", s)
		}
	}
}

func checkPlace(t interface {
	Helper()
	Fatalf(string, ...any)
}, d diag.Diagnostic, lines int) {
	t.Helper()
	if d.Code == "" || d.Msg == "" || d.Pos.File != "m.sql" || d.Pos.Line < 1 || d.Pos.Line > lines || d.Pos.Col < 0 {
		t.Fatalf("diagnostic %+v has no code, message or place in the %d lines", d, lines)
	}
}

// TestLiteralText: text without tags comes out as it is, but for line breaks and
// the last of them, and every byte knows its place.
func TestLiteralText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src := rapid.StringOfN(rapid.RuneFrom([]rune("abé\n {}%#'\"-\t;")), 0, 200, -1).Draw(rt, "src")
		for _, tag := range []string{"{{", "{%", "{#"} {
			src = strings.ReplaceAll(src, tag, "{ ")
		}
		tmpl, problems := Parse("m.sql", src, 1)
		if problems.HasErrors() {
			rt.Fatal(problems)
		}
		res, err := Render(context.Background(), tmpl, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if want := strings.TrimSuffix(src, "\n"); res.Text != want {
			rt.Fatalf("got %q, want %q", res.Text, want)
		}
		for i := range res.Text {
			pos, _, exact := res.Locate(i)
			line, col := diag.LineCol(src, i)
			if !exact || pos.Line != line || pos.Col != col {
				rt.Fatalf("byte %d: got %v, %v, want %d:%d", i, pos, exact, line, col)
			}
		}
	})
}

// TestRawText: what stands in a raw block comes out as it is.
func TestRawText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \n{}%#-+'\"")), 0, 60, -1).Draw(rt, "text")
		src := "{% raw %}" + text + "{% endraw %}"
		tmpl, problems := Parse("m.sql", src, 1)
		if problems.HasErrors() {
			rt.Fatal(problems)
		}
		res, err := Render(context.Background(), tmpl, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if res.Text != text {
			rt.Fatalf("got %q, want %q", res.Text, text)
		}
	})
}

// TestStringRoundTrip: the repr of text, read as an expression, is the text.
func TestStringRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		s = strings.ToValidUTF8(s, "")
		v, err := Evaluate(context.Background(), reprString(s), "m.sql", 1, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		// The lexer reads every line break as "\n", but repr escapes them all.
		if v != s {
			rt.Fatalf("got %q, want %q", v, s)
		}
	})
}

// TestIntegers: + - * // % of whole numbers obey Python's laws.
func TestIntegers(t *testing.T) {
	number := rapid.Custom(func(rt *rapid.T) int64 {
		if rapid.Bool().Draw(rt, "small") {
			return rapid.Int64Range(-20, 20).Draw(rt, "n")
		}
		return rapid.Int64().Draw(rt, "n")
	})
	r := newRun(context.Background(), Options{})
	calc := func(rt *rapid.T, op tokenKind, a, b any) any {
		v, err := arithmetic(op, a, b)
		if err != nil {
			rt.Fatal(err)
		}
		return v
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := any(number.Draw(rt, "a")), any(number.Draw(rt, "b"))
		if back := calc(rt, tokSub, calc(rt, tokAdd, a, b), b); back != a {
			rt.Fatalf("(%v + %v) - %v = %v", a, b, b, back)
		}
		if b == int64(0) {
			return
		}
		q, m := calc(rt, tokFloorDiv, a, b), calc(rt, tokMod, a, b)
		sum := calc(rt, tokAdd, calc(rt, tokMul, q, b), m)
		if sum != a {
			rt.Fatalf("%v // %v * %v + %v %% %v = %v", a, b, b, a, b, sum)
		}
		if m != int64(0) {
			sameSign, err := r.ordered(opGt, calc(rt, tokMul, m, b), int64(0))
			if err != nil || !sameSign {
				rt.Fatalf("%v %% %v = %v has not the sign of %v", a, b, m, b)
			}
		}
	})
}

// TestSlices: a slice has the items that Python's definition names.
func TestSlices(t *testing.T) {
	bound := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Int64Range(-8, 8), func(n int64) any { return n }))
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(0, 6).Draw(rt, "n")
		bounds := [3]any{bound.Draw(rt, "lo"), bound.Draw(rt, "hi"), bound.Draw(rt, "step")}
		if bounds[2] == int64(0) {
			bounds[2] = nil
		}
		start, stop, step, err := sliceRange(bounds, n)
		if err != nil {
			rt.Fatal(err)
		}
		span := rangeValue{start, stop, step}
		for i := range span.len() {
			at := span.at(i)
			if at < 0 || at >= n {
				rt.Fatalf("%v over %d items asks for item %d", bounds, n, at)
			}
			lo, hasLo := bounds[0].(int64)
			if hasLo && lo < 0 {
				lo += n
			}
			if hasLo && (step > 0 && at < lo || step < 0 && at > lo) {
				rt.Fatalf("%v over %d items gives item %d", bounds, n, at)
			}
		}
	})
}
