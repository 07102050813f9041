package engine

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// The phases of a node that is built by SQL, as the messages of its progress.
const (
	phaseBuild = "build"
	phaseAudit = "audit"
)

// maxTotalRows is beyond what a query really reads: where DuckDB's estimate of
// all rows is larger, its planner has lost count, and so have the rows so far.
const maxTotalRows = 1 << 40

// gauge tells how far the running query of one connection is.
type gauge struct{ conn mapping.Connection }

// copying is what a session writes, or wrote last.
type copying struct {
	path  string
	rows  int64 // -1 while it is being written
	bytes int64 // once it is written
}

// openGauge makes the connection keep count of what its queries have done. It
// gives nil where that cannot be asked for; then nothing is known.
func (s *session) openGauge(ctx context.Context) *gauge {
	var g *gauge
	if err := s.conn.Raw(func(driverConn any) error {
		if conn, ok := connectionOf(driverConn); ok {
			g = &gauge{conn}
		}
		return nil
	}); err != nil || g == nil {
		return nil
	}
	for _, setting := range []string{"SET enable_progress_bar = true", "SET enable_progress_bar_print = false"} {
		if s.Exec(ctx, setting) != nil {
			return nil
		}
	}
	return g
}

// read asks the engine. It may be called while the connection runs a query, and
// not after the connection was closed.
func (g *gauge) read() Progress {
	p := mapping.QueryProgress(g.conn)
	return progressOf(mapping.QueryProgressTypeMembers(&p))
}

// progressOf makes of the engine's figures what can be shown. The engine says -1
// where it knows nothing, and 0 for all the time of a query whose sources do not
// count.
func progressOf(percentage float64, rows, total uint64) Progress {
	if !(percentage > 0) {
		return Progress{Share: -1}
	}
	p := Progress{Share: min(percentage/100, 1), Estimated: true}
	if total <= maxTotalRows {
		p.Rows = int64(min(rows, total))
	}
	return p
}

// progress is how far the session is with what it writes, and in which phase.
func (s *session) progress() (p Progress, phase string) {
	c := s.copying.Load()
	if c == nil {
		return Progress{Share: -1}, phaseBuild
	}
	if c.rows >= 0 {
		return Progress{Share: -1, Rows: c.rows, Bytes: c.bytes}, phaseAudit
	}
	p = s.gauge.read()
	if info, err := os.Stat(c.path); err == nil {
		p.Bytes = info.Size()
	}
	return p, phaseBuild
}

// watch tells how far the step is until stop is called, if anybody wants to
// know. The session is the step's as long.
func (b *builder) watch(ctx context.Context) (stop func()) {
	every, s := b.run.e.o.ProgressEvery, b.session
	s.copying.Store(nil)
	s.about = b.result.Display
	if every > 0 && s.gauge == nil {
		s.gauge = s.openGauge(ctx)
	}
	if every <= 0 || s.gauge == nil {
		return func() { s.about = "" }
	}
	node, done := *b.result, make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		last := Progress{Share: -1}
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			p, phase := s.progress()
			if phase == phaseBuild && p.Share < last.Share { // the engine forgets at the end of a query
				p.Share, p.Rows, p.Estimated = last.Share, last.Rows, last.Estimated
			}
			if p == last {
				continue
			}
			last = p
			b.run.e.emit(Event{Kind: EventNodeProgress, Number: b.step.Number, Total: b.run.total(), Node: &node, Message: phase, Progress: &p})
		}
	})
	return func() {
		close(done)
		ended.Wait()
		s.about = ""
	}
}
