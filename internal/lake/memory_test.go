package lake

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/memory"
)

// memoryNodes is the number of nodes of the lakes below.
const memoryNodes = 20

// memoryOf is a memory that pays for few nodes.
func memoryOf(root, text string, now time.Time) *Memory {
	m := NewMemory("p", root, text, now)
	m.from = 1
	return m
}

// rememberedLake gives a lake of tables that were left alone for long, and what a
// first reading of it keeps.
func rememberedLake(t *testing.T) (root, text string) {
	t.Helper()
	root = t.TempDir()
	l := open(t, root)
	for i := range memoryNodes {
		publishFile(t, l, fmt.Sprintf("t%03d", i), "f1", "")
	}
	m := memoryOf(root, "", later())
	recalledState(t, root, m)
	text, ok := m.Text()
	if !ok {
		t.Fatal("nothing is kept of a lake that was read for the first time")
	}
	return root, text
}

// publishFile puts a table and its receipt in place.
func publishFile(t *testing.T, l *Lake, name, fingerprint, replaces string) {
	t.Helper()
	content, commit := published(t, name, fingerprint, replaces)
	file := name + fileSuffix
	put(t, l, file, content)
	r := receiptOf(name, FormFile, file, commit, File{Path: file, Bytes: int64(len(content)), Commit: commit})
	r.Fingerprint = fingerprint
	if err := l.WriteReceipt(r); err != nil {
		t.Fatal(err)
	}
}

// rewrite gives a file other content and the time of modification that it had. The
// file system's clock may not have ticked since it was written before.
func rewrite(t *testing.T, path string, content string) {
	t.Helper()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if memory.IdentityOf(now) != memory.IdentityOf(before) || memory.IdentityOf(now) == (memory.Identity{}) {
			return
		}
	}
}

// later is when the files that a test wrote are old enough to be kept.
func later() time.Time { return time.Now().Add(time.Hour) }

// recalledState reads a lake with a memory, and checks that it gives what reading it
// without one does.
func recalledState(t *testing.T, root string, m *Memory) (opened int) {
	t.Helper()
	want, err := open(t, root).ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fsys := &Faulty{FS: OS()}
	l, err := Open(root, fsys)
	if err != nil {
		t.Fatal(err)
	}
	l.Use(m)
	got, err := l.ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fmt.Sprint(damages(want)), fmt.Sprint(damages(got))); d != "" {
		t.Errorf("damage (-read +recalled):\n%s", d)
	}
	undamaged(want)
	undamaged(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("state (-read +recalled):\n%s", d)
	}
	for _, c := range fsys.Calls() {
		if c.Op == "Open" {
			opened++
		}
	}
	return opened
}

func damages(s State) map[string]string {
	all := map[string]string{}
	for name, n := range s.Nodes {
		if n.Damage != nil {
			all[name] = n.Damage.Error()
		}
	}
	return all
}

func undamaged(s State) {
	for name, n := range s.Nodes {
		n.Damage = nil
		s.Nodes[name] = n
	}
}

func TestMemoryOpensNothing(t *testing.T) {
	root, text := rememberedLake(t)
	if n := recalledState(t, root, NewMemory("p", root, text, later())); n != 0 {
		t.Errorf("%d files of a lake that nobody touched were opened", n)
	}
	m := memoryOf(root, text, later())
	recalledState(t, root, m)
	if _, ok := m.Text(); ok {
		t.Error("a memory that holds everything is written again")
	}
}

// Of every change the state that is recalled must be the state that is read;
// recalledState compares them.
func TestMemoryNotices(t *testing.T) {
	receipt := filepath.FromSlash(receiptPath("t007"))
	edit := func(t *testing.T, path, old, now string) {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), old) {
			t.Fatalf("%s does not hold %q: %v", path, old, err)
		}
		rewrite(t, path, strings.Replace(string(content), old, now, 1))
	}
	for name, change := range map[string]func(t *testing.T, root string){
		"a receipt is written over with the same size and time": func(t *testing.T, root string) {
			edit(t, filepath.Join(root, receipt), `"fingerprint": "f1"`, `"fingerprint": "f2"`)
		},
		"a receipt is replaced with the same size and time": func(t *testing.T, root string) {
			path := filepath.Join(root, receipt)
			info, _ := os.Stat(path)
			content, _ := os.ReadFile(path)
			if err := os.WriteFile(path+"x", []byte(strings.Replace(string(content), `"f1"`, `"f2"`, 1)), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path+"x", info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+"x", path); err != nil {
				t.Fatal(err)
			}
		},
		"a receipt is gone": func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, receipt)); err != nil {
				t.Fatal(err)
			}
		},
		"a receipt is cut off": func(t *testing.T, root string) {
			if err := os.Truncate(filepath.Join(root, receipt), 40); err != nil {
				t.Fatal(err)
			}
		},
		"a receipt says another size": func(t *testing.T, root string) {
			edit(t, filepath.Join(root, receipt), `"bytes":`, `"bytes":1`)
		},
		"a table is gone": func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "t007.parquet")); err != nil {
				t.Fatal(err)
			}
		},
		"a table is that of another": func(t *testing.T, root string) {
			if err := os.Rename(filepath.Join(root, "t008.parquet"), filepath.Join(root, "t007.parquet")); err != nil {
				t.Fatal(err)
			}
		},
		"a table is written over with the same size and time": func(t *testing.T, root string) {
			path := filepath.Join(root, "t007.parquet")
			info, _ := os.Stat(path)
			rewrite(t, path, strings.Repeat("x", int(info.Size())))
		},
		"a node is published again": func(t *testing.T, root string) {
			l := open(t, root)
			n, _, err := l.ReadNode("t007", "")
			if err != nil {
				t.Fatal(err)
			}
			publishFile(t, l, "t007", "f2", n.Last)
		},
		"a node is new": func(t *testing.T, root string) {
			publishFile(t, open(t, root), "new", "f1", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, text := rememberedLake(t)
			change(t, root)
			// One or two files changed, and what is damaged is read twice.
			if n := recalledState(t, root, NewMemory("p", root, text, later())); n < 1 || n > 4 {
				t.Errorf("%d files were opened, want 1 to 4", n)
			}
		})
	}
}

// What was changed just now could be changed again without getting another time.
func TestMemoryOfYoungFiles(t *testing.T) {
	root, _ := rememberedLake(t)
	m := memoryOf(root, "", time.Now())
	recalledState(t, root, m)
	if _, ok := m.Text(); ok {
		t.Error("files are kept that were written just now")
	}
}

// Few nodes are read before anybody notices.
func TestMemoryOfFewNodes(t *testing.T) {
	root, _ := rememberedLake(t)
	m := NewMemory("p", root, "", later())
	recalledState(t, root, m)
	if _, ok := m.Text(); ok {
		t.Error("a file is written for a small lake")
	}
}

func TestMemoryThatIsOfNoUse(t *testing.T) {
	root, text := rememberedLake(t)
	all := 2 * memoryNodes
	for name, m := range map[string]*Memory{
		"of another program": NewMemory("q", root, text, later()),
		"of another lake":    NewMemory("p", root+"x", text, later()),
		"of another form":    NewMemory("p", root, "rbt lake 0\n"+strings.TrimPrefix(text, memoryMagic), later()),
		"cut off":            NewMemory("p", root, text[:len(text)/2], later()),
		"cut off at the end": NewMemory("p", root, text[:len(text)-1], later()),
		"changed":            NewMemory("p", root, strings.Replace(text, "BIGINT", "DOUBLE", 1), later()),
		"empty":              NewMemory("p", root, "", later()),
	} {
		if n := recalledState(t, root, m); n != all {
			t.Errorf("%s: %d files were opened, want %d", name, n, all)
		}
	}
}

// Every field of a receipt that is kept comes back, so that a new one cannot be
// forgotten.
func TestReceiptText(t *testing.T) {
	var full Receipt
	fill(reflect.ValueOf(&full).Elem(), new(int64))
	full.Stats, full.Extra = nil, nil
	for name, r := range map[string]Receipt{"full": full, "zero": {}} {
		got, ok := readReceiptText(receiptText(r))
		if d := cmp.Diff(r, got); d != "" || !ok {
			t.Errorf("%s: %t\n%s", name, ok, d)
		}
	}
	fill(reflect.ValueOf(&full).Elem(), new(int64))
	if receiptText(full) != "" {
		t.Error("a receipt with keys that are not known is kept without them")
	}
}

// fill sets every field to something of its own.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *next))
	case reflect.Int, reflect.Int64:
		v.SetInt(*next)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), next)
		fill(v.Index(1), next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, next)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), item)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	default:
		panic(v.Type())
	}
}

func FuzzReceiptText(f *testing.F) {
	f.Add(receiptText(Receipt{Name: "a", Outputs: []Output{{Relation: "a", Files: []File{{Path: "a"}}}}}))
	f.Fuzz(func(t *testing.T, said string) {
		r, ok := readReceiptText(said)
		if !ok {
			return
		}
		if again, ok := readReceiptText(receiptText(r)); !ok || !cmp.Equal(r, again) {
			t.Errorf("what is read of %q does not come back", said)
		}
		NewMemory("p", "/", said, time.Time{})
	})
}
