package project

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// TestToYAML compares toyaml with what PyYAML 6.0 made of the same values.
func TestToYAML(t *testing.T) {
	text, err := os.ReadFile("testdata/toyaml.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Template string `json:"template"`
		Output   string `json:"pyyaml_output"`
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	p := good(t, small)
	for _, c := range cases {
		got, list := compileText(&rendering{p: p}, c.Template)
		if list != nil {
			t.Errorf("%s:\n%s", c.Template, diag.RenderList(list, p.SourceText))
			continue
		}
		if d := cmp.Diff(c.Output, got.SQL); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.Template, d)
		}
	}
	for template, want := range map[string]string{
		"{{ toyaml({'b': 1, 'a': 2}, sort_keys=true) }}": "a: 2\nb: 1\n",
		"{{ toyaml({'': 1}, 'no') }}":                    "no",
		"{{ toyaml((1, [])) }}":                          "- 1\n- []\n",
		"{{ tojson([1e300, 1e-7, 1e999, -1e999]) }}":     "[1e+300, 1e-07, Infinity, -Infinity]",
	} {
		if got, list := compileText(&rendering{p: p}, template); list != nil || got.SQL != want {
			t.Errorf("%s: got %+v %v", template, got, list)
		}
	}
}

// TestYAMLBack: fromyaml gives back every text that toyaml wrote, in any place.
func TestYAMLBack(t *testing.T) {
	piece := rapid.OneOf(rapid.StringMatching(`[ -~]{0,3}`), rapid.SampledFrom([]string{" ", "  ", "\n", "\n\n", ": ", "# ", "- ", "'", "\"", "é", "\u0085", "\u2028", "\t", "\x01", "😀", "a long word ", "---", "null", "1.5"}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		list := jinja.NewList(text, jinja.NewList(text))
		d := jinja.NewDict()
		if err := d.Set("k", list); err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{text, list, d} {
			var w yamlWriter
			if !w.value(v, 0, atTop, 0) {
				t.Fatalf("%q is not written", text)
			}
			root, problems := yamlText{file: "y", text: w.b.String(), line: 1}.parse()
			if len(problems) > 0 {
				t.Fatalf("%q: %v", w.b.String(), problems)
			}
			got := (&decoder{}).value(root)
			if d, ok := got.(*jinja.Dict); ok {
				got, _ = d.Get("k")
			}
			if all, ok := items(got); ok {
				got = all[0]
			}
			if got != text {
				t.Fatalf("%q came back from %q as %#v", text, w.b.String(), got)
			}
		}
	})
}
