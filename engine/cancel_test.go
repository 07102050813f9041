package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// endless is a query that never ends by itself and can be interrupted.
const endless = "select count(*) as n from range(1000000000) a(i), range(1000000000) b(j) where (i * j) % 7 = 3"

func TestCancelRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t, map[string]string{
		"models/a.sql": "select 1 as x",
		"models/b.sql": endless,
		"models/c.sql": "select * from {{ ref('b') }}",
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := w.do(command{ctx: ctx, workers: 1, events: func(e Event) {
		if e.Kind == EventNodeStarted && e.Node.Name == "b" {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Cancelled {
		t.Error("the result does not say that it was cancelled")
	}
	for _, n := range r.Nodes {
		if n.Name != "a" && n.Status != StatusCancelled && n.Status != StatusSkipped {
			t.Errorf("%s: %s (%v)", n.Name, n.Status, n.Err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, "lake", ".rbt-tmp", "*", "*")); len(left) > 0 {
		t.Errorf("staging stays: %v", left)
	}
	w.write("models/b.sql", "select 2 as n")
	r = w.must(command{})
	for _, n := range r.Nodes {
		if n.Status == StatusError {
			t.Errorf("%s after the cancel: %v", n.Name, n.Err)
		}
	}
}

// slowDisk holds back whoever makes a staged file durable until it is released.
type slowDisk struct {
	lake.FS
	waits   func() // told of each that is held back
	release chan struct{}
	done    chan string // receipts in their places
}

// Sync implements lake.FS.
func (d slowDisk) Sync(name string) error {
	if strings.HasSuffix(name, ".staged") {
		d.waits()
		<-d.release
	}
	return d.FS.Sync(name)
}

// Rename implements lake.FS.
func (d slowDisk) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if filepath.Base(filepath.Dir(to)) == "state" {
		d.done <- to
	}
	return err
}

// TestCancelWithCommitsInFlight: what waits for the disk when the run is cancelled
// is published whole and said to be, nothing else begins, and no goroutine stays.
// Where the disk does not answer in time, the run ends without it and says so.
func TestCancelWithCommitsInFlight(t *testing.T) {
	const inFlight = 5
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("answers %v", answers), func(t *testing.T) {
			files := map[string]string{}
			for i := range inFlight {
				files[fmt.Sprintf("models/m%d.sql", i)] = fmt.Sprintf("select %d as x", i)
				files[fmt.Sprintf("models/n%d.sql", i)] = fmt.Sprintf("select * from {{ ref('m%d') }}", i)
			}
			w := newWorld(t, files)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var waiting atomic.Int32
			disk := slowDisk{FS: lake.OS(), release: make(chan struct{}), done: make(chan string, 2*inFlight)}
			disk.waits = func() {
				if waiting.Add(1) == inFlight {
					cancel()
					if answers {
						close(disk.release)
					}
				}
			}
			grace, status, note := time.Minute, StatusSuccess, ""
			if !answers {
				grace, status, note = time.Nanosecond, StatusCancelled, "it was being published, and the disk did not answer in time: the next run finds the old version or the new one"
			}
			r := w.must(command{ctx: ctx, workers: 2, fs: disk, grace: grace})
			if !answers {
				close(disk.release)
			}
			for _, n := range r.Nodes {
				want := StatusCancelled
				if n.Name[0] == 'm' {
					want = status
					if got := strings.Join(n.Notes, "; "); got != note {
						t.Errorf("%s: note %q", n.Name, got)
					}
				}
				if n.Status != want {
					t.Errorf("%s: %s (%v), want %s", n.Name, n.Status, n.Err, want)
				}
			}
			for range inFlight {
				<-disk.done
			}
			if w.last.Outlived() == answers {
				t.Errorf("outlived: %v", !answers)
			}
			if err := goleak.Find(goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener")); err != nil { // which waits for what is published
				t.Error(err)
			}
			w.last.stuck = false // here, not in a command, the process goes on
			if err := w.last.Close(); err != nil {
				t.Error(err)
			}
			r = w.must(command{})
			for _, n := range r.Nodes {
				want := StatusSuccess
				if n.Name[0] == 'm' {
					want = StatusUnchanged
				}
				if n.Status != want {
					t.Errorf("the next run: %s: %s (%v), want %s", n.Name, n.Status, n.Err, want)
				}
			}
		})
	}
}

// TestCancelsLeaveConnectionUsable: fifty interrupted statements, and the
// statement after each is not touched.
func TestCancelsLeaveConnectionUsable(t *testing.T) {
	d, err := openDatabase(context.Background(), project.Engine{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.session(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := t.TempDir()
	for i := range 50 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if i%2 == 0 {
			_, err = s.CopyTo(ctx, endless, filepath.Join(dir, "x.staged"), nil)
		} else {
			err = s.Query(ctx, endless, func([]any) error { return nil })
		}
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("interrupted statement: %v", err)
		}
		if err := s.Query(context.Background(), "select 1", func([]any) error { return nil }); err != nil {
			t.Fatalf("after interrupt %d: %v", i, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("unfinished files stay: %v", left)
	}
}
