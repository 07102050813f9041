package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplitFrontmatter(t *testing.T) {
	tests := []struct {
		name, text string
		want       split
	}{
		{"none", "select 1\n", split{body: "select 1\n", bodyLine: 1}},
		{"empty file", "", split{bodyLine: 1}},
		{"plain", "---\na: 1\n---\nselect 1\n", split{yaml: "a: 1\n", has: true, closed: true, body: "select 1\n", bodyLine: 4}},
		{"empty", "---\n---\nselect 1", split{has: true, closed: true, body: "select 1", bodyLine: 3}},
		{"crlf", "---\r\nmaterialized: incremental\r\n---\r\nselect 1 as a\r\n",
			split{yaml: "materialized: incremental\r\n", has: true, closed: true, body: "select 1 as a\r\n", bodyLine: 4}},
		{"bom", "\ufeff---\na: 1\n---\nselect 1", split{yaml: "a: 1\n", has: true, closed: true, body: "select 1", bodyLine: 4}},
		{"bom without frontmatter", "\ufeffselect 1", split{body: "select 1", bodyLine: 1}},
		{"close at the end", "---\na: 1\n---", split{yaml: "a: 1\n", has: true, closed: true, bodyLine: 4}},
		{"unclosed", "---\na: 1\nselect 1\n", split{yaml: "a: 1\nselect 1\n", has: true, bodyLine: 4}},
		{"only the fence", "---", split{has: true, bodyLine: 2}},
		{"space behind the fence", "--- \nselect 1", split{body: "--- \nselect 1", bodyLine: 1}},
		{"four dashes", "----\nselect 1", split{body: "----\nselect 1", bodyLine: 1}},
		{"not the first line", "\n---\na: 1\n---\nselect 1", split{body: "\n---\na: 1\n---\nselect 1", bodyLine: 1}},
		{"indented fence inside", "---\na: |\n  ---\n---\nselect 1", split{yaml: "a: |\n  ---\n", has: true, closed: true, body: "select 1", bodyLine: 5}},
		{"fence in SQL", "---\na: 1\n---\nselect 1\n---\nfrom t", split{yaml: "a: 1\n", has: true, closed: true, body: "select 1\n---\nfrom t", bodyLine: 4}},
		{"comment with dashes", "---\na: 1\n---- no\n---\nx", split{yaml: "a: 1\n---- no\n", has: true, closed: true, body: "x", bodyLine: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, splitFrontmatter(tt.text), cmp.AllowUnexported(split{})); d != "" {
				t.Error(d)
			}
		})
	}
}

// checkSplit holds for every text: nothing is lost, the body stands at the line
// that is claimed, and no line of the YAML is a fence.
func checkSplit(t interface{ Fatalf(string, ...any) }, text string) {
	s := splitFrontmatter(text)
	plain := strings.TrimPrefix(text, bom)
	if !s.has {
		if s.body != plain || s.bodyLine != 1 || s.yaml != "" {
			t.Fatalf("%q: without frontmatter the body is the text, got %+v", text, s)
		}
		if first, _, _ := cutLine(plain); first == "---" {
			t.Fatalf("%q: the first line opens frontmatter", text)
		}
		return
	}
	for rest := s.yaml; rest != ""; {
		line, after, _ := cutLine(rest)
		if line == "---" {
			t.Fatalf("%q: a fence within the YAML", text)
		}
		rest = after
	}
	if !s.closed {
		if s.body != "" {
			t.Fatalf("%q: unclosed and yet a body", text)
		}
		return
	}
	if !strings.HasSuffix(plain, s.body) || !strings.Contains(plain, s.yaml) {
		t.Fatalf("%q: parts that are not in the text: %+v", text, s)
	}
	before := plain[:len(plain)-len(s.body)]
	// A lone CR ends a line too.
	n := strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
	if s.body != "" && n+1 != s.bodyLine {
		t.Fatalf("%q: the body begins on line %d, not %d", text, n+1, s.bodyLine)
	}
}

func TestSplitProperties(t *testing.T) {
	pieces := []string{"---", "--- ", "-", "\n", "\r\n", "\r", "a: 1", "select 1", bom, " ", "é", "----", "\x00"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 30).Draw(t, "parts")
		checkSplit(t, strings.Join(parts, ""))
	})
	// A file that is put together comes apart again.
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[a-z:# -]{0,12}`).Filter(func(s string) bool { return s != "---" })
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		yaml := rapid.SliceOfN(line, 0, 6).Draw(t, "yaml")
		body := rapid.String().Draw(t, "body")
		text := rapid.SampledFrom([]string{"", bom}).Draw(t, "bom") + "---" + end
		want := split{has: true, closed: true, body: body, bodyLine: 3 + len(yaml)}
		for _, l := range yaml {
			want.yaml += l + end
		}
		text += want.yaml + "---" + end + body
		if d := cmp.Diff(want, splitFrontmatter(text), cmp.AllowUnexported(split{})); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
	})
}

func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{"", "---\na: 1\n---\nselect 1", "\ufeff---\r\n---\r\n", "---\n--- \n---", "---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkSplit(t, text) })
}
