package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rbt/internal/memory"
)

// fromMemory is what the text of a model is taken for in memory only, so that a
// model that was not read can be told.
const fromMemory = "select 'from memory'\n"

// remembered gives a project of three models of which the files are known by their
// identities, and what is remembered of them is not what they hold.
func remembered(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, filepath.Join(dir, File), "name: shop\n")
	for _, name := range []string{"a", "b", "c"} {
		writeFile(t, filepath.Join(dir, "area", name+".sql"), "select '"+name+"' as x\n")
	}
	writeFile(t, filepath.Join(dir, "other", "a.sql"), "select 'o' as x\n")
	writeFile(t, filepath.Join(dir, "other", "b.sql"), "select 'b' as x\n")
	writeFile(t, filepath.Join(dir, "other", "c.sql"), "select 'c' as x\n")
	if err := os.Mkdir(filepath.Join(dir, "models"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{"../area", "models/linked"}, {"area/b.sql", "b.sql"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Skipf("there are no symbolic links here: %v", err)
		}
	}
	p := loadAt(t, dir, time.Now().Add(time.Hour))
	for _, m := range p.Models {
		p.Keep(m, Found{SQLHash: "h"})
		p.recall.kept[m].body = fromMemory
	}
	if err := p.SaveRecall(); err != nil {
		t.Fatal(err)
	}
	if memory.Stat(filepath.Join(dir, File)) == (memory.Identity{}) {
		t.Skip("this system does not tell the identity of files")
	}
	return dir
}

func loadAt(t *testing.T, dir string, now time.Time) *Project {
	t.Helper()
	p, list := Load(context.Background(), Options{Dir: dir, Program: "p", RecallFrom: 1, Now: now})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return p
}

// readOf gives the names of the models that are read of their files, each of which must
// have the text of the file.
func readOf(t *testing.T, dir string, now time.Time) string {
	t.Helper()
	var read []string
	for _, m := range loadAt(t, dir, now).Models {
		if m.Body == fromMemory {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(m.File)))
		if err != nil {
			t.Fatal(err)
		}
		if m.Body != string(content) {
			t.Errorf("%s has the text %q, its file %q", m.Name, m.Body, content)
		}
		read = append(read, m.Name)
	}
	return strings.Join(read, " ")
}

// change changes a file until its identity is another: the clock of the file system
// may not have ticked since it was made.
func change(t *testing.T, path string, change func() error) {
	t.Helper()
	for before := memory.Stat(path); memory.Stat(path) == before; {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnread says which files are read again after what was done to them.
func TestUnread(t *testing.T) {
	later := func() time.Time { return time.Now().Add(time.Hour) }
	a := func(dir string) string { return filepath.Join(dir, "area", "a.sql") }
	write := func(t *testing.T, path, text string) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		change(t, path, func() error {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return err
			}
			return os.Chtimes(path, info.ModTime(), info.ModTime())
		})
	}
	for _, c := range []struct {
		what   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"other text of the same size and time", func(t *testing.T, dir string) { write(t, a(dir), "select 'z' as x\n") }, "a"},
		{"the same text again", func(t *testing.T, dir string) { write(t, a(dir), "select 'a' as x\n") }, "a"},
		{"another file renamed to it, of the same size and time", func(t *testing.T, dir string) {
			info, err := os.Stat(a(dir))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, a(dir)+".new", "select 'z' as x\n")
			if err := os.Chtimes(a(dir)+".new", info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(a(dir)+".new", a(dir)); err != nil {
				t.Fatal(err)
			}
		}, "a"},
		{"touched", func(t *testing.T, dir string) {
			change(t, a(dir), func() error { return os.Chtimes(a(dir), time.Now(), time.Now()) })
		}, "a"},
		{"another mode", func(t *testing.T, dir string) {
			change(t, a(dir), func() error { return os.Chmod(a(dir), 0o600) })
		}, "a"},
		{"the link of the folder leads elsewhere", func(t *testing.T, dir string) {
			link := filepath.Join(dir, "models", "linked")
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../other", link); err != nil {
				t.Fatal(err)
			}
		}, "a b c"},
		{"a file becomes a link to another", func(t *testing.T, dir string) {
			if err := os.Remove(a(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../other/a.sql", a(dir)); err != nil {
				t.Fatal(err)
			}
		}, "a"},
		{"a macro", func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, "macros", "m.sql"), "{% macro m() %}{% endmacro %}")
		}, "a b c"},
		{"a further model", func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, "models", "d.sql"), "select 4 as x\n")
		}, "a b c d"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := remembered(t)
			c.change(t, dir)
			if got := readOf(t, dir, later()); got != c.want {
				t.Errorf("read: %q, want %q", got, c.want)
			}
		})
	}
	t.Run("files of just now", func(t *testing.T) {
		dir := remembered(t)
		info, err := os.Stat(a(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, now := range []time.Time{{}, info.ModTime()} {
			if got := readOf(t, dir, now); got != "a b c" {
				t.Errorf("at %v read: %q, want all", now, got)
			}
		}
	})
}

// TestUnreadDamaged says that of a damaged memory nothing is taken.
func TestUnreadDamaged(t *testing.T) {
	dir := remembered(t)
	files, err := filepath.Glob(filepath.Join(dir, "target", "cache", recallPrefix+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(content); at += 7 {
		flipped := append([]byte{}, content...)
		flipped[at] ^= 0x21
		for _, damaged := range [][]byte{content[:at], flipped} {
			if err := os.WriteFile(files[0], damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			if got := readOf(t, dir, time.Now().Add(time.Hour)); got != "a b c" {
				t.Fatalf("damaged at %d: read %q, want all", at, got)
			}
		}
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if got := readOf(t, dir, time.Now().Add(time.Hour)); got != "a b c" {
		t.Errorf("without memory read %q, want all", got)
	}
}

// TestUnreadLater says that identities come to be known once files were left alone,
// though nothing else is new.
func TestUnreadLater(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, File), "name: shop\n")
	writeFile(t, filepath.Join(dir, "models", "a.sql"), "select 1 as x\n")
	for i, now := range []time.Time{{}, time.Now().Add(time.Hour), time.Now().Add(time.Hour)} {
		p := loadAt(t, dir, now)
		k := p.recall.kept[p.Models[0]]
		if known := p.recall.settled == 0 && k.id != (memory.Identity{}); known != (i == 2) && memory.Stat(filepath.Join(dir, File)) != (memory.Identity{}) {
			t.Errorf("load %d: the file is known: %t", i, known)
		}
		p.Keep(p.Models[0], Found{SQLHash: "h"})
		if err := p.SaveRecall(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadAtOnce lets commands load and keep while a model is edited: each must see
// a text that the file had, and the last one the last.
func TestUnreadAtOnce(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, File), "name: shop\n")
	path := filepath.Join(dir, "models", "a.sql")
	writeFile(t, path, "select 100 as x\n")
	for i := range 20 {
		change(t, path, func() error { return ReplaceFile(path, fmt.Sprintf("select %d as x\n", 101+i)) })
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				p, list := Load(context.Background(), Options{Dir: dir, Program: "p", RecallFrom: 1, Now: time.Now().Add(time.Hour)})
				if list.HasErrors() {
					t.Error(list)
					return
				}
				if want := fmt.Sprintf("select %d as x\n", 101+i); p.Models[0].Body != want {
					t.Errorf("the text is %q, want %q", p.Models[0].Body, want)
				}
				p.Keep(p.Models[0], Found{SQLHash: "h"})
				if err := p.SaveRecall(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
