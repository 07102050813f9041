package lake

import (
	"os"
	"path/filepath"
	"testing"
)

// cleaningFS lets a run begin whenever a reader has just removed its lock.
type cleaningFS struct {
	FS
	begin func()
}

func (f cleaningFS) Remove(name string) error {
	err := f.FS.Remove(name)
	if filepath.Base(name) == pinLock {
		f.begin()
	}
	return err
}

// A run that begins while a reader closes gets into the way of neither.
func TestCloseBesideABeginningRun(t *testing.T) {
	dir := t.TempDir()
	writer := open(t, dir)
	content, _ := published(t, "m", "f1", "")
	put(t, writer, "gold/m.parquet", content)
	recoverNow(t, writer)
	begun := 0
	reader, err := Open(dir, cleaningFS{OS(), func() { begun++; recoverNow(t, writer) }})
	if err != nil {
		t.Fatal(err)
	}
	pins := reader.NewPins(7)
	if p, ok, err := pins.Pin(reader, "m"); err != nil || !ok || !p.Held {
		t.Fatal(ok, err)
	}
	if err := pins.Close(); err != nil || begun == 0 {
		t.Errorf("close: %v, %d runs began", err, begun)
	}
	if entries, err := os.ReadDir(writer.abs(pinsDir)); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
	// A folder whose reader died before it had a lock.
	if err := os.MkdirAll(writer.abs(pinsDir+"/8"), 0o777); err != nil {
		t.Fatal(err)
	}
	recoverNow(t, writer)
	if entries, err := os.ReadDir(writer.abs(pinsDir)); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}
