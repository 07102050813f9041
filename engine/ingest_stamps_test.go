package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
	"rbt/internal/memory"
)

// The identity of many files is that of their folders: nothing about any file
// can change without it.
func TestFolderStamps(t *testing.T) {
	dir := t.TempDir()
	when := time.Unix(1_700_000_000, 0)
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	stamps := func(names ...string) map[string]lake.FileStamp {
		for i, n := range names {
			names[i] = filepath.Join(dir, filepath.FromSlash(n))
		}
		found, err := folderStamps(nil, names)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	write("a/1", "x")
	write("a/2", "xy")
	write("b/1", "x")
	all := []string{"a/1", "a/2", "b/1"}
	first := stamps(append([]string{}, all...)...)
	a, b := filepath.ToSlash(filepath.Join(dir, "a", "*")), filepath.ToSlash(filepath.Join(dir, "b", "*"))
	if first[a].Size != 2 || first[b].Size != 1 || len(first) != 2 {
		t.Fatalf("the folders hold %v", first)
	}
	if d := cmp.Diff(first, stamps(append([]string{}, all...)...)); d != "" {
		t.Errorf("nothing has changed (-first +again):\n%s", d)
	}
	// As long and as old as before; only a system with a change time can tell.
	before, err := os.Stat(filepath.Join(dir, "a", "1"))
	if err != nil {
		t.Fatal(err)
	}
	for again := before; memory.ChangeTime(again) == memory.ChangeTime(before); {
		write("a/1", "z")
		if again, err = os.Stat(filepath.Join(dir, "a", "1")); err != nil {
			t.Fatal(err)
		}
		if memory.ChangeTime(again) == 0 {
			t.Log("skipped: the system has no time of the last change")
			return
		}
	}
	now := stamps(append([]string{}, all...)...)
	if now[a] == first[a] {
		t.Error("a replaced file was not seen")
	}
	if now[b] != first[b] {
		t.Error("another folder has changed")
	}
	if stamps("a/1", "b/1")[a] == now[a] {
		t.Error("a file that is gone was not seen")
	}
}
