package engine

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestProgressOfQuery runs a query that is stopped by the first share of it that
// is told.
func TestProgressOfQuery(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t, map[string]string{
		"models/a.sql": "select i as id from range(2000000) t(i)",
		"models/b.sql": "select sum(length(md5(md5(md5(id::varchar))))) as n from {{ ref('a') }}",
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var told []Event
	if _, err := w.do(command{ctx: ctx, workers: 1, progress: time.Millisecond, events: func(e Event) {
		if e.Kind == EventNodeProgress {
			told = append(told, e)
		}
		if e.Progress != nil && e.Progress.Share > 0 && e.Node.Name == "b" {
			cancel()
		}
	}}); err != nil {
		t.Fatal(err)
	}
	share := -1.0
	for _, e := range told {
		if p := *e.Progress; p.Share > 1 || p.Share == 0 || p.Rows < 0 || p.Bytes < 0 || e.Message != phaseBuild && e.Message != phaseAudit {
			t.Errorf("%s in %s: %+v", e.Node.Name, e.Message, p)
		}
		if e.Node.Name == "b" && e.Message == phaseBuild {
			if e.Progress.Share < share {
				t.Errorf("the share falls from %v to %v", share, e.Progress.Share)
			}
			share = e.Progress.Share
		}
	}
	if share <= 0 {
		t.Errorf("no share was told: %v", told)
	}
}

// TestProgressUnasked: nothing is told, and the engine does not count, where
// nobody asks.
func TestProgressUnasked(t *testing.T) {
	w := newWorld(t, map[string]string{"models/a.sql": "select current_setting('enable_progress_bar') as on"})
	w.must(command{workers: 1})
	for _, e := range w.events {
		if e.Kind == EventNodeProgress {
			t.Errorf("%+v", e)
		}
	}
	if diff := cmp.Diff([]string{"on", "false"}, w.rows("from 'LAKE/a.parquet'")); diff != "" {
		t.Error(diff)
	}
}

func TestProgressOf(t *testing.T) {
	for _, tc := range []struct {
		percentage  float64
		rows, total uint64
		want        Progress
	}{
		{-1, 0, 0, Progress{Share: -1}},
		{0, 0, 10_000_002, Progress{Share: -1}},
		{25, 500, 2000, Progress{Share: 0.25, Rows: 500, Estimated: true}},
		{87.5, 20_000_003, 20_000_002, Progress{Share: 0.875, Rows: 20_000_002, Estimated: true}},
		{130, 7, 7, Progress{Share: 1, Rows: 7, Estimated: true}},
		{50, 1 << 47, 1 << 48, Progress{Share: 0.5, Estimated: true}},
	} {
		if diff := cmp.Diff(tc.want, progressOf(tc.percentage, tc.rows, tc.total)); diff != "" {
			t.Errorf("progressOf(%v, %d, %d) (-want +got)\n%s", tc.percentage, tc.rows, tc.total, diff)
		}
	}
}
