package lake

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// growing is a file of pages and a footer that is written bit by bit.
type growing struct {
	t    *testing.T
	file *os.File
}

func grow(t *testing.T, name string) growing {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return growing{t, file}
}

func (g growing) write(b []byte) {
	g.t.Helper()
	if _, err := g.file.Write(b); err != nil {
		g.t.Fatal(err)
	}
}

func (g growing) end(footer int) {
	g.t.Helper()
	g.write(make([]byte, footer))
	g.write(binary.LittleEndian.AppendUint32(nil, uint32(footer)))
	g.write([]byte(parquetMagic))
}

// somePages are n bytes that no other seed gives.
func somePages(seed uint64, n int) []byte {
	b := make([]byte, 0, n+8)
	for r := rand.New(rand.NewPCG(seed, 0)); len(b) < n; {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// byHand ends the ticker of a Following, which would make it chance what is seen
// when.
func byHand(f *Following) {
	close(f.stop)
	<-f.stopped
	f.stop = make(chan struct{})
}

// A file that was followed has the hash of one that was not, whatever was seen of
// it and when, and the followed part is not read again.
func TestFollowedHash(t *testing.T) {
	l, err := Open(t.TempDir(), OS())
	if err != nil {
		t.Fatal(err)
	}
	pages := somePages(1, 21<<20)
	for _, c := range []struct {
		name     string
		cuts     []int // where it is looked at
		footer   int
		atEnd    bool // it is looked at when the footer is there, too
		followed bool
	}{
		{"never looked at", nil, 1000, false, false},
		{"small so far", []int{100, followStep}, 1000, false, false},
		{"once", []int{15 << 20}, 1000, false, true},
		{"often, at odd places", []int{1, 9<<20 + 7, 9<<20 + 8, 14<<20 + 1, 21<<20 - 3}, 1000, true, true},
		{"into a long footer", []int{10 << 20}, 9 << 20, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "m.staged")
			f := l.Follow(name, true)
			g := grow(t, name)
			byHand(f)
			from := 0
			for _, to := range c.cuts {
				g.write(pages[from:to])
				f.look()
				from = to
			}
			g.write(pages[from:])
			g.end(c.footer)
			if c.atEnd {
				f.look()
			}
			f.Stop()
			want, err := l.ContentHash([]string{name}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.ContentHash([]string{name}, nil, func(string) *Following { return f })
			if err != nil || got != want {
				t.Errorf("hash %s, want %s, err %v", got, want, err)
			}
			if h, from := f.begun(l.fs, int64(len(pages))); (h != nil) != c.followed || (from > 0) != c.followed {
				t.Errorf("%d bytes were followed, want some: %v", from, c.followed)
			}
		})
	}
}

// What was followed counts only for that very file, as it was then.
func TestFollowedAnother(t *testing.T) {
	l, err := Open(t.TempDir(), OS())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "m.staged")
	for _, c := range []struct {
		name   string
		change func(g growing) error
	}{
		{"replaced", func(growing) error {
			if err := os.Remove(name); err != nil {
				return err
			}
			g := grow(t, name)
			g.write(somePages(3, 12<<20))
			g.end(10)
			return nil
		}},
		{"longer", func(g growing) error { g.end(10); return nil }},
		{"gone", func(growing) error { return os.Remove(name) }},
	} {
		f := l.Follow(name, true)
		byHand(f)
		g := grow(t, name)
		g.write(somePages(2, 12<<20))
		g.end(10)
		f.look()
		f.Stop()
		if h, _ := f.begun(l.fs, 12<<20); h == nil {
			t.Fatal("nothing was followed")
		}
		if err := c.change(g); err != nil {
			t.Fatal(err)
		}
		if h, from := f.begun(l.fs, 12<<20); h != nil || from != 0 {
			t.Errorf("%s: %d bytes of another file count", c.name, from)
		}
	}
}

// Nothing is followed where a test counts the calls, and that can be stopped.
func TestFollowNothing(t *testing.T) {
	l, err := Open(t.TempDir(), &Faulty{FS: OS()})
	if err != nil {
		t.Fatal(err)
	}
	f := l.Follow("/nowhere", true)
	if f != nil {
		t.Error("a file on a watched file system is followed")
	}
	f.Stop()
	if h, from := f.begun(OS(), 1); h != nil || from != 0 {
		t.Error("nothing counts for something")
	}
}
