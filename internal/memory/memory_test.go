package memory

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const mark = "mark 1\n"

// TestSealed says that a text is opened whole or not at all.
func TestSealed(t *testing.T) {
	var b strings.Builder
	b.WriteString(mark + "what was found out")
	Seal(&b, mark)
	text := b.String()
	if body, ok := Open(text, mark); !ok || body != "what was found out" {
		t.Errorf("got %q, %t", body, ok)
	}
	if _, ok := Open(text, "mark 2\n"); ok {
		t.Error("a text of another form is opened")
	}
	for at := range len(text) {
		if _, ok := Open(text[:at], mark); ok {
			t.Errorf("%d of %d bytes are taken for the whole", at, len(text))
		}
		damaged := text[:at] + string(text[at]^1) + text[at+1:]
		if _, ok := Open(damaged, mark); ok {
			t.Errorf("a text with another byte %d is opened", at)
		}
	}
	if _, ok := Open(text+"x", mark); ok {
		t.Error("a text with something behind it is opened")
	}
}

// TestReader says that values come back, and that of less than was written the reader
// says so.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		signed, unsigned := rapid.Int64().Draw(t, "signed"), rapid.Uint64().Draw(t, "unsigned")
		items := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "items")
		id := Identity{Size: rapid.Int64().Draw(t, "size"), Mtime: rapid.Int64().Draw(t, "mtime"), Ctime: rapid.Int64().Draw(t, "ctime"),
			Device: rapid.Uint64().Draw(t, "device"), Inode: rapid.Uint64().Draw(t, "inode")}
		b := AppendText(nil, text)
		b = binary.AppendUvarint(binary.AppendVarint(b, signed), unsigned)
		b = AppendOptional(AppendOptional(b, nil), &text)
		b = AppendLength(b, 0, true)
		b = append(AppendLength(b, len(items), false), items...)
		b = append(binary.AppendUvarint(b, uint64(len(items))), items...)
		b = append(AppendIdentity(b, id), 7)
		say := func(r *Reader) string {
			said := fmt.Sprint(r.Text(), r.Varint(), r.Uvarint(), r.Optional() == nil)
			if again := r.Optional(); again != nil {
				said += *again
			}
			said += fmt.Sprint(r.Length())
			said += r.Bytes(uint64(max(0, r.Length())))
			said += r.Bytes(uint64(r.Count()))
			return said + fmt.Sprint(r.Identity(), r.Byte())
		}
		whole := NewReader(string(b))
		want := fmt.Sprint(text, signed, unsigned, true) + text + "-1" + string(items) + string(items) + fmt.Sprint(id, 7)
		if got := say(&whole); got != want || !whole.Done() || whole.Bad() {
			t.Fatalf("got %q, want %q; done %t", got, want, whole.Done())
		}
		short := NewReader(string(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]))
		if say(&short); !short.Bad() || short.Done() {
			t.Fatal("a part of the text is taken for the whole")
		}
	})
}

func TestSettled(t *testing.T) {
	const s = int64(time.Second)
	for _, c := range []struct {
		ctime, now int64
		want       bool
	}{
		{100*s + 7, 100*s + 7 + s*3/10, true},
		{100*s + 7, 100*s + 6 + s*3/10, false},
		{100*s + 7, 100 * s, false},
		// A clock of whole seconds may not have ticked for one or two.
		{100 * s, 102 * s, false},
		{100 * s, 103 * s, true},
	} {
		id := Identity{Size: 1, Ctime: c.ctime, Inode: 1}
		if got := id.Settled(c.now); got != c.want {
			t.Errorf("a file of %d at %d: %v", c.ctime, c.now, got)
		}
	}
	if (Identity{}).Settled(9 * s) {
		t.Error("a file without identity is known by it")
	}
}

// TestStat compares Stat with what os.Stat tells.
func TestStat(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	paths := []string{file, dir}
	if os.Symlink(file, link) == nil {
		paths = append(paths, link)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Stat(path), IdentityOf(info); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(file, "below"), "", "a\x00b"} {
		if id := Stat(path); id != (Identity{}) {
			t.Errorf("%q has the identity %+v", path, id)
		}
	}
	if id := Stat(dir); id != (Identity{}) {
		t.Errorf("a folder has the identity %+v", id)
	}
}
