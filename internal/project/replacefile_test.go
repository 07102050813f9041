package project

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A cache keeps the newest files of a prefix, and what a command left that was killed
// while it wrote is removed once nobody can be writing it.
func TestKeepCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	old := func(name string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		at := time.Now().Add(-age)
		if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := KeepCache(filepath.Join(dir, "a-0"), "a-", "zero"); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a-1", "a-2", "a-3", "a-4", "b-1"} {
		old(name, time.Duration(i+1)*time.Minute)
	}
	old(".tmp-dead", 2*time.Hour)
	old(".tmp-alive", time.Second)
	if err := KeepCache(filepath.Join(dir, "a-0"), "a-", "now"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{".tmp-alive", "a-0", "a-1", "a-2", "a-3", "b-1"}, names); diff != "" {
		t.Error(diff)
	}
	if text, err := ReadText(filepath.Join(dir, "a-0")); text != "now" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
