package ingest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiscover(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"b.ndjson", "a/x.ndjson", "a/y.json", "a/deep/z.ndjson.gz", ".hidden/h.ndjson", "a/.h.ndjson", "w [1].ndjson", "a.b/q.ndjson"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name         string
		paths, globs []string
		want         []string
	}{
		{"a folder", []string{"."}, nil, []string{"a.b/q.ndjson", "a/deep/z.ndjson.gz", "a/x.ndjson", "a/y.json", "b.ndjson", "w [1].ndjson"}},
		{"globs", []string{"."}, []string{"**/*.ndjson", "**/*.gz"}, []string{"a.b/q.ndjson", "a/deep/z.ndjson.gz", "a/x.ndjson", "b.ndjson", "w [1].ndjson"}},
		{"a file", []string{"a/x.ndjson"}, nil, []string{"x.ndjson"}},
		{"a file with brackets", []string{"w [1].ndjson"}, nil, []string{"w [1].ndjson"}},
		{"a pattern", []string{"a/**/*.gz"}, nil, []string{"deep/z.ndjson.gz"}},
		{"a list", []string{"a/deep", "a/x.ndjson", "a/*.ndjson"}, nil, []string{"deep/z.ndjson.gz", "x.ndjson"}},
		{"a hidden pattern", []string{"."}, []string{".hidden/*"}, []string{".hidden/h.ndjson"}},
	} {
		paths := make([]string, len(c.paths))
		for i, p := range c.paths {
			paths[i] = filepath.Join(root, p)
		}
		files, err := Discover(paths, c.globs)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Name)
			if _, err := os.Stat(f.Path); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	for _, none := range []string{"nothing", "nothing/*.x", "a/*.csv"} {
		if _, err := Discover([]string{filepath.Join(root, none)}, nil); !errors.Is(err, ErrNoInput) {
			t.Errorf("%s: %v", none, err)
		}
	}
	if _, err := Discover([]string{root}, []string{"[a"}); err == nil || errors.Is(err, ErrNoInput) {
		t.Errorf("a broken pattern: %v", err)
	}
}

// A folder may be a link to one; files are named as below any folder.
func TestDiscoverLinkedFolder(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, ".real", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".real", "sub", "a.ndjson"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, ".real"), filepath.Join(root, "in")); err != nil {
		t.Logf("skipped: %v", err)
		return
	}
	for _, path := range []string{"in", "in/**/*.ndjson", ".real"} {
		files, err := Discover([]string{filepath.Join(root, filepath.FromSlash(path))}, nil)
		if err != nil || len(files) != 1 || files[0].Name != "sub/a.ndjson" {
			t.Errorf("%s: %v %v", path, files, err)
		}
	}
}
