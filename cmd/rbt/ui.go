package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"rbt/engine"
)

// ui shows the events of a run in the form that flags and terminal ask for, and
// keeps them in the log file.
type ui struct {
	printers []printer
	out      *lasting
}

// lasting is standard output for a command that does more than print: that
// nobody reads it does not end the command, and what could not be written for
// another reason is kept, to be told at the end.
type lasting struct {
	w    io.Writer
	mu   sync.Mutex
	lost error // the first
}

func (l *lasting) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.w.Write(p); err != nil && l.lost == nil && !errors.Is(err, syscall.EPIPE) {
		l.lost = fmt.Errorf("write to standard output: %w", err)
	}
	return len(p), nil
}

// outcome is how a command ended whose work ended with err: what was not told
// for want of output is no success.
func (u *ui) outcome(err error) error {
	u.out.mu.Lock()
	defer u.out.mu.Unlock()
	if u.out.lost != nil && (err == nil || errors.Is(err, errFailed)) {
		return u.out.lost
	}
	return err
}

// newUI settles the form. names are what the lines will name, total is how many
// there will be; both only move the column of the verdicts.
func (w *workspace) newUI(total int, names []string) *ui {
	width := columnFor(total, names)
	r := report{text: w.p.SourceText, target: w.shownTarget()}
	u := &ui{out: &lasting{w: w.out}}
	if file, err := openLog(filepath.Join(w.p.TargetDir, "logs", "rbt.log")); err != nil {
		_, _ = fmt.Fprintf(w.errOut, "warning: no log is kept: %s\n", err)
	} else {
		u.printers = append(u.printers, &logPrinter{file: file, mask: w.p.Mask, width: width, report: r, traced: w.o.debug})
	}
	if w.o.json {
		u.printers = append(u.printers, &jsonPrinter{out: u.out, quiet: w.o.quiet, debug: w.o.debug})
		return u
	}
	text := &textPrinter{out: u.out, colour: w.colour, quiet: w.o.quiet, debug: w.o.debug, traced: w.o.debug, starts: true, width: width, report: r}
	if !w.liveView() {
		u.printers = append(u.printers, text)
		return u
	}
	var buffer strings.Builder
	text.out, text.starts = &buffer, false
	size := func() (int, int) {
		columns, rows, _ := w.sys.terminal()
		return columns, rows
	}
	u.printers = append(u.printers, newTTYPrinter(u.out, text, &buffer, size, w.sys.now))
	return u
}

// liveView says whether a live view is drawn.
func (w *workspace) liveView() bool { return w.sys.liveView() && !w.o.quiet && !w.o.json }

// tellEvery is how often the engine is asked how far it is: never where nobody
// sees it.
func (w *workspace) tellEvery() time.Duration {
	if w.liveView() || w.o.json && w.o.debug {
		return 2 * redrawEvery
	}
	return 0
}

// debugEvents prints the statements of a command that runs no plan, which has
// standard output for its result.
func (w *workspace) debugEvents(e engine.Event) {
	switch {
	case e.Kind != engine.EventStatement || !w.o.debug:
	case w.o.json:
		writeJSONLine(w.errOut, toJSON(e))
	default:
		_, _ = io.WriteString(w.errOut, statementText(e))
	}
}

// shownTarget is the target folder as paths in messages begin: below the
// project where it lies there.
func (w *workspace) shownTarget() string {
	if rel, err := filepath.Rel(w.p.Dir, w.p.TargetDir); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return w.p.TargetDir
}

// Event shows an event. What happens before there is a view is shown by none.
func (u *ui) Event(e engine.Event) {
	if u == nil {
		return
	}
	for _, p := range u.printers {
		p.Event(e)
	}
}

func (u *ui) Close() {
	for _, p := range u.printers {
		p.Close()
	}
}

// maxLog is the size at which the log file is put aside as rbt.log.1.
const maxLog = 10 << 20

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
}

// logPrinter keeps everything, with times, in the log file. A line is one
// write, so that the lines of two commands do not mix.
type logPrinter struct {
	file   *os.File
	mask   func(string) string
	width  int
	report report
	traced bool
}

func (p *logPrinter) Event(e engine.Event) {
	if e.Kind == engine.EventNodeProgress {
		return
	}
	var b strings.Builder
	text := &textPrinter{out: &b, debug: true, traced: p.traced, starts: true, width: p.width, report: p.report}
	if e.Kind == engine.EventRunStarted && e.Result != nil {
		fmt.Fprintf(&b, "rbt %s, invocation %s\n", e.Result.Command, e.Result.InvocationID)
	}
	text.Event(e)
	if e.Node != nil && e.Kind == engine.EventNodeFinished && e.Node.Reason != "" {
		fmt.Fprintf(&b, "       because: %s\n", e.Node.Reason)
	}
	stamp := e.Time.UTC().Format(time.RFC3339Nano) + " "
	for _, line := range strings.SplitAfter(b.String(), "\n") {
		if strings.TrimSpace(line) != "" {
			_, _ = io.WriteString(p.file, p.mask(stamp+line))
		}
	}
}

func (p *logPrinter) Close() { _ = p.file.Close() }
