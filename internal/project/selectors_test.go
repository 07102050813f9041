package project

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rbt/internal/diag"
)

func loadSelectorsText(t *testing.T, text string) (*Project, diag.List) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{File: "name: shop\n", SelectorsFile: text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return Load(context.Background(), Options{Dir: dir})
}

func TestSelectors(t *testing.T) {
	p, list := loadSelectorsText(t, `selectors:
  - {name: words, definition: "tag:daily +a"}
  - name: all
    default: true
    definition:
      union:
        - {method: tag, value: 007, parents: true, children: true, children_depth: 2}
        - {intersection: [a, {config.materialized: view}]}
        - {method: fqn, value: m, childrens_parents: true, exclude: [b]}
        - exclude: [tag:slow]
`)
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	want := []*Selector{
		{Name: "all", Default: true, Definition: &Criterion{
			Union: []*Criterion{
				{Method: "tag", Value: "007", Parents: AllGenerations, Children: 2},
				{Intersection: []*Criterion{{Words: "a"}, {Method: "config.materialized", Value: "view"}}},
				{Method: "fqn", Value: "m", Family: true, Exclude: []*Criterion{{Words: "b"}}},
			},
			Exclude: []*Criterion{{Words: "tag:slow"}},
		}},
		{Name: "words", Definition: &Criterion{Words: "tag:daily +a"}},
	}
	if diff := cmp.Diff(want, p.Selectors, cmpopts.IgnoreTypes(diag.Pos{})); diff != "" {
		t.Error(diff)
	}
}

func TestSelectorMistakes(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // place and code
	}{
		{"selectors: [{name: x}]\n", []string{"1:13 RBT1005"}},
		{"selectors: [{name: a b, definition: x}]\n", []string{"1:20 RBT1007"}},
		{"selectors: [{name: x, definition: []}]\n", []string{"1:35 RBT1004"}},
		{"selectors: [{name: x, definition: {union: []}}]\n", []string{"1:43 RBT1004"}},
		{"selectors: [{name: x, definition: {union: [a], intersection: [b]}}]\n", []string{"1:35 RBT1004"}},
		{"selectors: [{name: x, definition: {method: tag}}]\n", []string{"1:35 RBT1005"}},
		{"selectors: [{name: x, definition: {method: tag, value: a, parents_depth: 1}}]\n", []string{"1:74 RBT1004"}},
		{"selectors: [{name: x, definition: {method: tag, value: a, indirect_selection: cautious}}]\n", []string{"1:79 RBT1004"}},
		{"selectors: [{name: x, default: true, definition: a}, {name: y, default: true, definition: a}]\n", []string{"1:61 RBT1014"}},
		{"selector: []\n", []string{"1:1 RBT1002"}},
	} {
		_, list := loadSelectorsText(t, tt.text)
		var got []string
		for _, d := range list {
			got = append(got, d.Pos.String()[len(SelectorsFile)+1:]+" "+string(d.Code))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s%s", tt.text, diff)
		}
	}
}

// checkSelectors holds for every text: reading ends, every problem has a place,
// and a definition says exactly one thing.
func checkSelectors(t *testing.T, text string) {
	root, list := yamlText{file: SelectorsFile, text: text, line: 1}.parse()
	if list != nil || root == nil {
		return
	}
	d := &decoder{file: SelectorsFile}
	f, ok := d.fields(root, selectorsTable)
	if !ok {
		return
	}
	selectors := f.selectors()
	lines := 1 + strings.Count(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
	for _, problem := range d.diags {
		if problem.Pos.Line < 1 || problem.Pos.Line > lines {
			t.Fatalf("%q: %v", text, problem)
		}
	}
	names := map[string]bool{}
	for _, s := range selectors {
		if names[s.Name] || s.Name == "" {
			t.Fatalf("%q: the name %q", text, s.Name)
		}
		names[s.Name] = true
		checkCriterion(t, text, s.Definition)
	}
}

func checkCriterion(t *testing.T, text string, c *Criterion) {
	if c == nil {
		t.Fatalf("%q: a definition is missing", text)
	}
	said := 0
	for _, is := range []bool{c.Words != "", c.Method != "", c.Union != nil, c.Intersection != nil} {
		if is {
			said++
		}
	}
	if said > 1 {
		t.Fatalf("%q: a definition says %d things: %+v", text, said, *c)
	}
	for _, parts := range [][]*Criterion{c.Union, c.Intersection, c.Exclude} {
		for _, part := range parts {
			checkCriterion(t, text, part)
		}
	}
}

func FuzzSelectors(f *testing.F) {
	for _, text := range []string{
		"selectors: [{name: a, definition: 'tag:x,+m+2 @y'}]", "selectors:\n  - name: a\n    default: true\n    definition: {method: tag, value: x, parents: true, parents_depth: 2}\n",
		"selectors: [{name: a, definition: {union: [x, {intersection: [y, {tag: z}]}, {exclude: [w]}]}}]",
		"selectors: [{name: a, definition: {method: '', value: ~, exclude: [&b {tag: x}, *b]}}]", "selectors: {a: 1}", "selectors:\r- {name: a, definition: [x]}\r",
	} {
		f.Add(text)
	}
	f.Fuzz(checkSelectors)
}
