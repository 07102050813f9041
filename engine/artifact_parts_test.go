package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/plan"
	"rbt/internal/project"
)

// recalling loads a project with what earlier commands kept; "" for program is without.
func recalling(t *testing.T, dir, target, program string) (*Engine, *plan.Graph) {
	t.Helper()
	ctx := context.Background()
	p, problems := project.Load(ctx, project.Options{Dir: dir, TargetPath: target, Program: program, RecallFrom: 1})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	e, err := Open(ctx, Options{Project: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	g, problems := plan.Load(ctx, p, e.Parser(), plan.Options{Recall: true})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.SaveRecall(); err != nil {
		t.Fatal(err)
	}
	return e, g
}

// manifestNow loads a project, with what earlier commands kept or without it, writes
// its artifacts and gives the manifest without what differs from command to command,
// and how many models were not rendered for it.
func manifestNow(t *testing.T, dir, target, program string) (manifest string, taken int) {
	t.Helper()
	e, g := recalling(t, dir, target, program)
	if err := e.WriteArtifacts(context.Background(), &plan.Plan{Graph: g}, nil, Invocation{ID: "i", Command: "run"}); err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes() {
		if n.Model != nil && n.Full == nil {
			taken++
		}
	}
	content, err := os.ReadFile(filepath.Join(target, ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(content) {
		t.Fatal("the manifest is no JSON")
	}
	return string(content), taken
}

// The manifest of a command that rendered next to nothing is, byte for byte, the one
// of a command that rendered everything.
func TestManifestTakesOver(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":       "name: shop\nvars: {v: 1}\n",
		"models/raw.yml":    "sources: [{name: raw, tables: [{name: orders, path: raw.csv, columns: {id: BIGINT}}]}]\n",
		"raw.csv":           "id\n1\n",
		"macros/m.sql":      "{% macro twice(c) %}{{ c }} * 2{% endmacro %}\n",
		"models/orders.sql": "---\ntags: [daily]\ncolumns: {id: {tests: [not_null, unique]}}\n---\nselect {{ twice('id') }} as id from {{ source('raw', 'orders') }}\n",
		"models/a.sql":      "select '{{ var('v') }}' as id\n",
		"models/b.sql":      "select * from {{ ref('a') }}\n",
		"models/inc.sql":    "---\nmaterialization: incremental\n---\nselect * from {{ ref('b') }} {% if is_incremental() %}where false{% endif %}\n",
		"models/now.sql":    "select '{{ invocation_id }}' as id, '<&>\u2028' as t\n",
	})
	target := filepath.Join(w.dir, "target")
	index := filepath.Join(target, "cache", partsFile)
	write := func(name, content string) func(t *testing.T) {
		return func(*testing.T) { w.write(name, content) }
	}
	change := func(path, old, now string) func(t *testing.T) {
		return func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(content), old) {
				t.Fatalf("%s: no %q, %v", path, old, err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(content), old, now, 1)), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Of five models one, now, is different in every run.
	for _, step := range []struct {
		what  string
		do    func(t *testing.T)
		taken int
	}{
		{"at first", nil, 0},
		{"again", nil, 4},
		{"a text", write("models/a.sql", "select '{{ var('v') }}' as id, 2 as n\n"), 3},
		{"again", nil, 4},
		{"a description", write("models/a.sql", "---\ndescription: d\n---\nselect '{{ var('v') }}' as id, 2 as n\n"), 3},
		{"a macro", write("macros/m.sql", "{% macro twice(c) %}{{ c }} * 3{% endmacro %}\n"), 0},
		{"a variable", write("project.yml", "name: shop\nvars: {v: 2}\n"), 0},
		{"what is declared of a source", write("models/raw.yml", "sources: [{name: raw, tables: [{name: orders, path: raw.csv, columns: {id: INTEGER}}]}]\n"), 3},
		{"again", nil, 4},
		{"a model becomes a seed", func(t *testing.T) {
			if err := os.Remove(filepath.Join(w.dir, "models/a.sql")); err != nil {
				t.Fatal(err)
			}
			w.write("seeds/a.csv", "id\n1\n")
		}, 2},
		{"again", nil, 3},
		{"the manifest was changed", change(filepath.Join(target, ManifestFile), "daily", "dayly"), 0},
		{"the manifest is gone", func(t *testing.T) { _ = os.Remove(filepath.Join(target, ManifestFile)) }, 0},
		{"again", nil, 3},
		{"what is said of it was changed", change(index, partsMagic, "rbt manifest 0\n"), 0},
		{"what is said of it is cut off", func(t *testing.T) {
			if err := os.Truncate(index, int64(len(partsMagic))+40); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"again", nil, 3},
		{"a place was changed", func(t *testing.T) {
			content, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			content[len(partsMagic)+sha256.Size+partKeyLen] ^= 1
			if err := os.WriteFile(index, content, 0o666); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"again", nil, 3},
		{"the cache is gone", func(t *testing.T) { _ = os.RemoveAll(filepath.Join(target, "cache")) }, 0},
		{"again", nil, 3},
	} {
		if step.do != nil {
			step.do(t)
		}
		got, taken := manifestNow(t, w.dir, target, "p")
		if taken != step.taken {
			t.Errorf("%s: %d models were taken over, want %d", step.what, taken, step.taken)
		}
		want, _ := manifestNow(t, w.dir, filepath.Join(t.TempDir(), "target"), "")
		if diff := cmp.Diff(strings.Split(want, ",\""), strings.Split(got, ",\"")); diff != "" {
			t.Errorf("%s (-anew +taken over):\n%s", step.what, diff)
		}
	}
}

// A file that is edited while a command runs: the manifest tells what was loaded, and
// so does the next one that takes its entry over.
func TestManifestOfEditedFile(t *testing.T) {
	const text = "select 1 as id\n"
	w := newWorld(t, map[string]string{"models/a.sql": text, "models/b.sql": "\ufeff" + text})
	target := filepath.Join(w.dir, "target")
	e, g := recalling(t, w.dir, target, "p")
	w.write("models/a.sql", "select 2 as id\n")
	if err := e.WriteArtifacts(context.Background(), &plan.Plan{Graph: g}, nil, Invocation{}); err != nil {
		t.Fatal(err)
	}
	w.write("models/a.sql", text)
	manifest, taken := manifestNow(t, w.dir, target, "p")
	if want := `"checksum":"` + hash(text) + `"`; taken != 2 || strings.Count(manifest, want) != 2 {
		t.Errorf("%d entries were taken over, and the manifest does not say twice %s:\n%s", taken, want, manifest)
	}
}
