package ingest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// A file replaced by another of the same size and modification time is told by
// the time of its last change.
func TestReplacedWithEqualTimes(t *testing.T) {
	in := t.TempDir()
	l := newPublished(t, "mode append\nroot r\nrecord r\nfield a integer")
	when := time.Unix(1_700_000_000, 0)
	write := func(text string) []File {
		files := writeFiles(t, in, map[string]string{"1.ndjson": text})
		if err := os.Chtimes(files[0].Path, when, when); err != nil {
			t.Fatal(err)
		}
		return files
	}
	changed := int64(0)
	job := func(files []File) *Job {
		return &Job{Files: files, ChangeTime: func(os.FileInfo) int64 { return changed }}
	}
	if err := l.load(job(write(`{"a":1}`))); err != nil {
		t.Fatal(err)
	}
	changed = 1
	wantDiag(t, l.load(job(write(`{"a":2}`))), diag.IngestChangedFile, "1.ndjson", "was loaded before and has changed")

	// The same content with other times is taken in once: the ledger learns them.
	if err := l.load(job(write(`{"a":1}`))); err != nil {
		t.Fatal(err)
	}
	j := job(write(`{"a":1}`))
	if err := l.load(j); err != nil {
		t.Fatal(err)
	}
	if len(j.touched) != 0 {
		t.Errorf("the times of %d files were not learnt", len(j.touched))
	}
	if err := l.load(&Job{Files: write(`{"a":1}`), FullRefresh: true}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"1|1|true|1|1.ndjson|1"}, l.tables(t)["r"]); d != "" {
		t.Error(d)
	}
}

// Paths that change the folder which names are relative to would load every
// file a second time.
func TestFilesUnderOtherNames(t *testing.T) {
	base := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(base, filepath.FromSlash(name))), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, base, map[string]string{name: text})
	}
	discover := func(paths ...string) []File {
		for i, p := range paths {
			paths[i] = filepath.Join(base, filepath.FromSlash(p))
		}
		files, err := Discover(paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	write("in/orders/1.ndjson", `{"a":1}`)
	write("in/orders/2.ndjson", `{"a":2}`)
	write("in/returns/1.ndjson", `{"a":3}`)
	src := "mode append\nroot r\nrecord r\nfield a integer"

	l := newPublished(t, src)
	if err := l.load(&Job{Files: discover("in/orders")}); err != nil {
		t.Fatal(err)
	}
	wantDiag(t, l.load(&Job{Files: discover("in/orders", "in/returns")}), diag.IngestChangedFile, "orders/1.ndjson", "was loaded before under the name 1.ndjson")
	if err := l.load(&Job{Files: discover("in/orders", "in/returns"), FullRefresh: true}); err != nil {
		t.Fatal(err)
	}
	wantDiag(t, l.load(&Job{Files: discover("in/orders")}), diag.IngestChangedFile, "1.ndjson", "was loaded before under the name orders/1.ndjson")

	// What lies below the same folder changes no name, and a file that is gone
	// is none that was renamed.
	write("in/more/1.ndjson", `{"a":4}`)
	if err := os.Remove(filepath.Join(base, "in", "orders", "1.ndjson")); err != nil {
		t.Fatal(err)
	}
	if err := l.load(&Job{Files: discover("in/orders", "in/returns", "in/more")}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1|1|true|1|orders/1.ndjson|1", "2|2|true|1|orders/2.ndjson|1", "3|3|true|1|returns/1.ndjson|1", "4|4|true|1|more/1.ndjson|1"}
	if d := cmp.Diff(want, l.tables(t)["r"]); d != "" {
		t.Error(d)
	}
}

// Messages call a file as its user does; what is stored calls it as the input
// does.
func TestShownNames(t *testing.T) {
	files := writeInput(t, map[string]string{"a.ndjson": "{\"a\":1}\n{\"a\":\"x\"}\n"})
	files[0].Shown = "landing/a.ndjson"
	_, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, "root r\non_bad_record fail\nrecord r\nfield a integer"), Files: files})
	wantDiag(t, err, diag.IngestBadRecord, "landing/a.ndjson:2", "type_mismatch")
}
