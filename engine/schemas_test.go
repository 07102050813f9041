package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/project"
)

// schemasAt remembers in a folder, at a time after now.
func schemasAt(dir string, later time.Duration) *schemas {
	p := &project.Project{TargetDir: dir}
	return newSchemas(p, "v", func() time.Time { return time.Now().Add(later) })
}

// TestSchemasOfFiles: what is remembered of files gives the same as a look into each,
// and one that was changed in place or replaced is looked into again.
func TestSchemasOfFiles(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	cache := t.TempDir()
	dir := parquetFiles(t, s, map[string]string{
		"a.parquet": "select 1 as a, 'x' as b", "b.parquet": "select 2 as a, 'y' as b", "c.parquet": "select 'z' as b, 3 as a", "d.parquet": "select 4 as a",
	})
	// kinds gives the kinds of the files, and of how many files the columns were known.
	kinds := func(later time.Duration) (got []string, known int) {
		t.Helper()
		files, err := expandPatterns([]string{filepath.Join(dir, "*.parquet")})
		if err != nil {
			t.Fatal(err)
		}
		memory := schemasAt(cache, later)
		recalled := memory.recall("source s.t", files)
		for i := range files {
			if _, ok := recalled.of(i); ok {
				known++
			}
		}
		table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: files, format: "parquet", extra: "keep", schemas: memory}
		// The engine itself knows a footer again by the time of modification.
		found, err := table.parquetKinds(ctx, testSession(t))
		if err != nil {
			t.Fatal(err)
		}
		memory.close()
		for _, k := range found {
			var names []string
			for _, f := range k.files {
				names = append(names, filepath.Base(f))
			}
			got = append(got, fmt.Sprint(k.columns, names))
		}
		return got, known
	}
	wants := func(what string, later time.Duration, known int, want ...string) {
		t.Helper()
		got, n := kinds(later)
		if diff := cmp.Diff(want, got); diff != "" || n != known {
			t.Errorf("%s: %d known, want %d; kinds (-want +got):\n%s", what, n, known, diff)
		}
	}
	const both, turned, one = "[{a INTEGER} {b VARCHAR}] ", "[{b VARCHAR} {a INTEGER}] ", "[{a INTEGER}] "
	before := []string{both + "[a.parquet b.parquet]", turned + "[c.parquet]", one + "[d.parquet]"}
	wants("young files", 0, 0, before...)
	wants("young files are not remembered", time.Hour, 0, before...)
	wants("all", time.Hour, 4, before...)
	write := func(name, query string) {
		t.Helper()
		if _, err := s.CopyTo(ctx, query, filepath.Join(dir, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	// Changed in place, to a file of the same size and time of modification.
	info, err := os.Stat(filepath.Join(dir, "a.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	write("new", "select 1 as a, 'x' as c")
	content, err := os.ReadFile(filepath.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(content)) != info.Size() {
		t.Fatalf("the new file has %d bytes, want %d", len(content), info.Size())
	}
	if err := os.WriteFile(filepath.Join(dir, "a.parquet"), content, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "a.parquet"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	changed := []string{"[{a INTEGER} {c VARCHAR}] [a.parquet]", both + "[b.parquet]", turned + "[c.parquet]", one + "[d.parquet]"}
	wants("changed in place", time.Hour, 3, changed...)
	wants("changed in place, again", time.Hour, 4, changed...)
	// Replaced, and a file more and less.
	if err := os.Rename(filepath.Join(dir, "d.parquet"), filepath.Join(dir, "b.parquet")); err != nil {
		t.Fatal(err)
	}
	write("e.parquet", "select 5 as a, 'x' as b")
	after := []string{changed[0], one + "[b.parquet]", turned + "[c.parquet]", both + "[e.parquet]"}
	wants("replaced", time.Hour, 2, after...)
	wants("replaced, again", time.Hour, 4, after...)
	// A text that is damaged is worth nothing, and does no harm.
	entries, err := filepath.Glob(filepath.Join(cache, "cache", schemasPrefix+"*"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v %v", entries, err)
	}
	text, err := os.ReadFile(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string]string{
		"cut off":     string(text[:len(text)/2]),
		"no names":    strings.Replace(string(text), `["a","INTEGER","c","VARCHAR"]`, `["a"]`, 1),
		"no base64":   strings.Replace(string(text), `"files":"`, `"files":"!`, 1),
		"other types": `{"x":1}`,
	} {
		if err := os.WriteFile(entries[0], []byte(damaged), 0o666); err != nil {
			t.Fatal(err)
		}
		wants(name, time.Hour, 0, after...)
	}
}
