package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"rbt/engine"
)

// maxRunningLines bounds the live part of the screen, however tall it is.
const maxRunningLines = 12

// redrawEvery is slow enough for a terminal over a network and fast enough to
// look alive.
const redrawEvery = 125 * time.Millisecond

// ttyPrinter keeps a live view at the foot of a terminal: the nodes that are
// running and the count done; finished nodes scroll above it. It is used only
// where the output is a terminal that understands cursor movements.
type ttyPrinter struct {
	mu      sync.Mutex
	text    *textPrinter // writes the finished lines into the buffer
	buffer  *strings.Builder
	out     io.Writer
	size    func() (columns, rows int)
	running []*runningNode // in the order of their start
	done    int
	failed  int
	total   int
	started time.Time
	drawn   []int // widths of the live lines on the screen, in cells
	stop    chan struct{}
	stopped sync.WaitGroup
}

type runningNode struct {
	id, name string
	started  time.Time
	progress engine.Progress
	phase    string
	known    bool // progress was reported
}

// newTTYPrinter starts the redrawing; Close ends it. text must write to buffer.
func newTTYPrinter(out io.Writer, text *textPrinter, buffer *strings.Builder, size func() (int, int), now func() time.Time) *ttyPrinter {
	p := &ttyPrinter{text: text, buffer: buffer, out: out, size: size, stop: make(chan struct{})}
	p.stopped.Go(func() {
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.draw(now())
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *ttyPrinter) Event(e engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case engine.EventRunStarted:
		p.total, p.started = e.Total, e.Time
	case engine.EventNodeStarted:
		p.total = max(p.total, e.Total)
		p.running = append(p.running, &runningNode{id: e.Node.ID, name: describe(e.Node), started: e.Time})
	case engine.EventNodeProgress:
		for _, r := range p.running {
			if e.Node != nil && e.Progress != nil && r.id == e.Node.ID {
				r.progress, r.phase, r.known = *e.Progress, e.Message, true
			}
		}
		return
	case engine.EventNodeFinished:
		p.finish(e.Node.ID, isBad(e.Node.Status))
	case engine.EventTestFinished:
		p.total = max(p.total, e.Total)
		p.finish("", isBad(e.Test.Status))
	}
	p.text.columns, _ = p.size()
	p.text.Event(e)
	if e.Kind == engine.EventRunFinished {
		p.running, p.total = nil, 0
	}
	p.redraw(e.Time)
}

// Close removes the live view and leaves the cursor below the last line.
func (p *ttyPrinter) Close() {
	close(p.stop)
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.total = nil, 0
	p.redraw(time.Time{})
}

func (p *ttyPrinter) finish(id string, bad bool) {
	p.done++
	if bad {
		p.failed++
	}
	kept := p.running[:0]
	for _, r := range p.running {
		if r.id != id {
			kept = append(kept, r)
		}
	}
	p.running = kept
}

func (p *ttyPrinter) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redraw(now)
}

// redraw removes the live lines, writes what is finished, and draws the live
// lines anew, in one write so that nothing flickers. The terminal may have been
// made narrower since: then the old lines take more rows than were written.
func (p *ttyPrinter) redraw(now time.Time) {
	columns, rows := p.size()
	var b strings.Builder
	eraseAbove(&b, wrappedRows(p.drawn, columns))
	b.WriteString(p.buffer.String())
	p.buffer.Reset()
	p.drawn = p.drawn[:0]
	for _, line := range p.live(now, columns, rows) {
		p.drawn = append(p.drawn, cellWidth(line))
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(p.out, b.String())
	}
}

// eraseAbove goes up and empties each row. It does not clear the screen below
// the cursor in one step: where the live view is all that is on the screen, some
// terminals would keep a copy of it in their history each time.
func eraseAbove(b *strings.Builder, rows int) {
	if rows == 0 {
		return
	}
	fmt.Fprintf(b, "\x1b[%dA\r\x1b[2K", rows)
	for range rows - 1 {
		b.WriteString("\x1b[1B\x1b[2K")
	}
	if rows > 1 {
		fmt.Fprintf(b, "\x1b[%dA", rows-1)
	}
}

// live gives the lines at the foot of the screen, each shorter than the screen
// is wide.
func (p *ttyPrinter) live(now time.Time, columns, rows int) []string {
	if p.total == 0 {
		return nil
	}
	room := max(0, min(maxRunningLines, rows-3))
	var lines []string
	for i, r := range p.running {
		if i == room {
			break
		}
		lines = append(lines, r.line(now, columns-1))
	}
	status := fmt.Sprintf("%d of %d done, %d running", p.done, p.total, len(p.running))
	if p.failed > 0 {
		status += fmt.Sprintf(", %d failed", p.failed)
	}
	if !p.started.IsZero() && now.After(p.started) {
		status += ", " + clock(now.Sub(p.started))
	}
	return append(lines, fit(status, columns-1))
}

// line is what is said of a running node: how long, which, how far. Where the
// screen is narrow the last figures go first, then the end of the name, and
// what is known of the share stays.
func (r *runningNode) line(now time.Time, cells int) string {
	head := fmt.Sprintf("  %s  ", clock(max(0, now.Sub(r.started))))
	figures := r.figures()
	tail := func() string { return strings.Join(append([]string{""}, figures...), "  ") }
	for len(figures) > 1 && cellWidth(head+r.name+tail()) > cells {
		figures = figures[:len(figures)-1]
	}
	return fit(head+fit(r.name, max(1, cells-cellWidth(head+tail())))+tail(), cells)
}

// figures is how far a node is: what is known of it, the most telling first.
func (r *runningNode) figures() []string {
	if !r.known {
		return nil
	}
	var f []string
	pr := r.progress
	if pr.Share >= 0 {
		// What runs is not done, however near the end.
		f = append(f, fmt.Sprintf("%2d%%", min(99, int(100*pr.Share))))
	}
	switch {
	case pr.Records > 0:
		f = append(f, count(pr.Records, "record"))
	case pr.Rows > 0 && pr.Estimated:
		f = append(f, "about "+roughly(pr.Rows)+" rows read")
	case pr.Rows > 0:
		f = append(f, count(pr.Rows, "row"))
	}
	if pr.Rejects > 0 {
		f = append(f, count(pr.Rejects, "reject"))
	}
	if pr.FilesTotal > 0 {
		f = append(f, fmt.Sprintf("%d of %s", pr.Files, count(pr.FilesTotal, "file")))
	}
	switch {
	case pr.BytesTotal > 0:
		f = append(f, bytesText(pr.Bytes)+" of "+bytesText(pr.BytesTotal))
	case pr.Bytes > 0:
		f = append(f, bytesText(pr.Bytes)+" written")
	}
	if r.phase == "audit" {
		f = append(f, "in audit")
	}
	return f
}

// roughly writes a number that is a guess with the digits that can be meant.
func roughly(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%d,000", n/1000)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f million", float64(n)/1e6)
	default:
		return fmt.Sprintf("%.1f billion", float64(n)/1e9)
	}
}

// wrappedRows is how many rows of the screen lines of these widths take.
func wrappedRows(widths []int, columns int) int {
	rows := 0
	for _, w := range widths {
		rows += 1
		if columns > 0 && w > columns {
			rows += (w - 1) / columns
		}
	}
	return rows
}

// fit cuts a line to the given number of cells, with "…" where something is cut.
func fit(s string, cells int) string {
	if cells < 1 {
		return ""
	}
	if cellWidth(s) <= cells {
		return s
	}
	n := 0
	for i, r := range s {
		w := runeCells(r)
		if n+w > cells-1 {
			return s[:i] + "…"
		}
		n += w
	}
	return s
}

// clock is a duration as a person reads it while waiting.
func clock(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%4.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

func trimNewline(s string) string { return strings.TrimSuffix(s, "\n") }
