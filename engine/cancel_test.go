package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

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
