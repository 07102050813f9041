package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/plan"
)

// TestParseCache: answers outlive a command, those of another version do not
// count, and what holds a secret is not kept.
func TestParseCache(t *testing.T) {
	dir := t.TempDir()
	mask := func(s string) string { return strings.ReplaceAll(s, "s3cr3t", "*****") }
	tables := plan.Tables{Names: []plan.TableName{{Schema: "main", Name: "a", Offset: 14}}, Volatile: "calls now()"}
	c := newParseCache(dir, "v1", mask)
	c.put(parseKey("select 1"), tables)
	c.put(parseKey("select 2"), plan.Tables{Names: []plan.TableName{{Name: "s3cr3t"}}})
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	again := newParseCache(dir, "v1", mask)
	got, ok := again.get(parseKey("select 1"))
	if diff := cmp.Diff(tables, got); diff != "" || !ok {
		t.Errorf("known %v: %s", ok, diff)
	}
	if _, ok := again.get(parseKey("select 2")); ok {
		t.Error("a text with a secret was kept")
	}
	other := newParseCache(dir, "v2", mask)
	if _, ok := other.get(parseKey("select 1")); ok {
		t.Error("another version was read")
	}
	other.put(parseKey("select 3"), tables)
	if err := other.save(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(dir, "cache"))
	if err != nil || len(files) != 1 {
		t.Errorf("%d files of the cache, want that of one version: %v", len(files), err)
	}
	content, err := os.ReadFile(other.path())
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{"short": []byte("{"), "cut off": content[:len(content)-1]}
	for i := range content {
		changed := slices.Clone(content)
		changed[i] ^= 1
		damaged[fmt.Sprintf("changed at %d", i)] = changed
	}
	for what, content := range damaged {
		if err := os.WriteFile(other.path(), content, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, ok := newParseCache(dir, "v2", mask).get(parseKey("select 3")); ok {
			t.Errorf("a damaged cache was believed: %s", what)
		}
	}
}

// TestAnswersAtOnce lets commands of different versions keep answers at once: each
// removes the files of the others, which may be gone by then.
func TestAnswersAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for version := range 8 {
		wg.Go(func() {
			for i := range 30 {
				c := newParseCache(dir, fmt.Sprintf("v%d", version), func(s string) string { return s })
				c.put(parseKey(fmt.Sprint(i)), plan.Tables{})
				if err := c.save(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
