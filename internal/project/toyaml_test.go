package project

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
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
