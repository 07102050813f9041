package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"rbt/engine"
	"rbt/internal/diag"
)

// The dots of a line end at lineWidth where every name fits, so that the
// verdicts stand in one column; a run with longer names moves the column, but
// never beyond maxLineWidth.
const (
	lineWidth    = 56
	maxLineWidth = 100
)

// printer shows the events of a run. Event may be called by one goroutine at a
// time. Close is called once, after the last event.
type printer interface {
	Event(engine.Event)
	Close()
}

// textPrinter writes dbt's lines. It keeps no state of its own but the column
// of the verdicts, so the same events give the same text.
type textPrinter struct {
	out    io.Writer
	colour palette
	quiet  bool
	debug  bool
	starts bool // print START lines; a live view shows the same better
	traced bool // statements are told as they are run; without, debug repeats them behind a node
	width  int
	// columns is how wide the screen is; 0: no screen. Dots make way for what is said.
	columns int
	report  report
}

func (p *textPrinter) Event(e engine.Event) {
	switch e.Kind {
	case engine.EventNodeStarted:
		if p.starts && !p.quiet {
			p.line(p.fitted(func(width int, c palette) string { return nodeLine(e, width, c) }))
		}
	case engine.EventStatement:
		if p.debug {
			_, _ = io.WriteString(p.out, statementText(e))
		}
	case engine.EventNodeFinished:
		if p.quiet && !isBad(e.Node.Status) && !hasBadTest(e.Node) {
			return
		}
		p.line(p.fitted(func(width int, c palette) string { return nodeLine(e, width, c) }))
		for _, l := range nodeNotes(e.Node, p.colour) {
			p.line(l)
		}
		if p.debug {
			_, _ = io.WriteString(p.out, debugText(e.Node, p.traced))
		}
	case engine.EventTestFinished:
		if !p.quiet || isBad(e.Test.Status) || e.Test.Status == engine.StatusWarn {
			p.line(p.fitted(func(width int, c palette) string { return testLine(e, width, c) }))
		}
	case engine.EventLog:
		if l := logLine(e, p.colour); l != "" && (e.Level != "debug" || p.debug) && (!p.quiet || e.Level == "warn" || e.Level == "error") {
			p.line(l)
		}
	case engine.EventRunFinished:
		text := p.report.details(e.Result, p.colour)
		if !p.quiet {
			text += notRun(e) + p.report.summary(e.Result, p.colour)
		}
		if text != "" {
			_, _ = io.WriteString(p.out, text)
		}
	}
}

func (p *textPrinter) Close() {}

// fitted gives a line with fewer dots where it would not fit on the screen.
func (p *textPrinter) fitted(line func(width int, c palette) string) string {
	width := p.width
	if p.columns > 0 {
		width -= max(0, cellWidth(line(width, palette{}))-p.columns)
	}
	return line(width, p.colour)
}

func (p *textPrinter) line(s string) { _, _ = io.WriteString(p.out, s+"\n") }

// columnFor gives the width at which the verdicts of a run stand: names are what
// stands after "n of m OK created ".
func columnFor(total int, names []string) int {
	width := lineWidth
	digits := len(fmt.Sprint(total))
	for _, n := range names {
		// "n of m ", the longest verb and at least three dots
		width = max(width, 2*digits+len(" of  ")+len("OK created ")+runeLen(n)+len(" ..."))
	}
	return min(width, maxLineWidth)
}

// describe names a node as the lines do: "table model staging.stg_orders".
func describe(n *engine.NodeResult) string {
	if n.ResourceType == "seed" {
		return "seed file " + n.Display
	}
	return n.Materialization + " model " + n.Display
}

func nodeLine(e engine.Event, width int, c palette) string {
	n := e.Node
	what := describe(n)
	made := "created"
	if n.ResourceType == "seed" {
		made = "loaded"
	}
	if e.Kind == engine.EventNodeStarted {
		return dotted(e, "START "+what, "[RUN]", width)
	}
	took := "in " + seconds(n.Elapsed)
	switch n.Status {
	case engine.StatusSuccess:
		return dotted(e, "OK "+made+" "+what, c.green("[OK"+facts(n)+" "+took+"]"), width)
	case engine.StatusUnchanged:
		return dotted(e, "NO-OP "+what, "[UNCHANGED"+unchangedFacts(n)+"]", width)
	case engine.StatusSkipped:
		because := ""
		if n.Because != "" {
			because = "because of " + n.Because
		}
		return dotted(e, "SKIP "+what, c.yellow("["+because+"]"), width)
	case engine.StatusCancelled:
		return dotted(e, "CANCEL "+what, c.yellow("[CANCELLED "+took+"]"), width)
	}
	if t := gateThatFailed(n); t != nil {
		verdict := fmt.Sprintf("[FAIL %d %s %s]", t.Failures, t.Label, took)
		if t.Status == engine.StatusError {
			verdict = fmt.Sprintf("[ERROR %s %s]", t.Label, took)
		}
		part := "audit"
		if t.Kind == "unit_test" {
			part = "unit tests"
		}
		return dotted(e, "ERROR "+part+" of "+what, c.red(verdict), width)
	}
	verb := "creating"
	if n.ResourceType == "seed" {
		verb = "loading"
	}
	return dotted(e, "ERROR "+verb+" "+what, c.red("[ERROR "+took+"]"), width)
}

// facts are the figures of a line: rows, bytes, parts, tests.
func facts(n *engine.NodeResult) string {
	var f []string
	if n.Materialization != "view" && n.Materialization != "ephemeral" {
		rows := count(n.Rows, "row")
		if n.Incremental {
			rows = count(n.Rows, "new row")
		}
		f = append(f, rows)
		if n.Kept {
			f = append(f, "as before")
		}
		if n.Bytes > 0 {
			f = append(f, bytesText(n.Bytes))
		}
	}
	if n.Parts > 0 {
		f = append(f, count(int64(n.Parts), "part"))
	}
	if len(n.Tests) > 0 {
		f = append(f, count(int64(len(n.Tests)), "test"))
	}
	if len(f) == 0 {
		return ""
	}
	return " " + strings.Join(f, ", ")
}

// unchangedFacts adds what is more than "nothing changed": the part that already
// holds an increment, and tests that looked at the published data anew.
func unchangedFacts(n *engine.NodeResult) string {
	facts := ""
	if strings.HasPrefix(n.Reason, "already in ") {
		facts += ", " + n.Reason
	}
	if len(n.Tests) > 0 {
		facts += ", " + count(int64(len(n.Tests)), "test") + " in " + seconds(n.Elapsed)
	}
	return facts
}

// gateThatFailed is the first test of a node that stopped what reads it.
func gateThatFailed(n *engine.NodeResult) *engine.TestResult {
	for _, t := range n.Tests {
		if t.Status == engine.StatusFail || t.Status == engine.StatusError {
			return t
		}
	}
	return nil
}

// nodeNotes are the lines under a node: warnings of tests, then what the engine
// says about the node.
func nodeNotes(n *engine.NodeResult, c palette) []string {
	var lines []string
	for _, t := range n.Tests {
		if t.Status == engine.StatusWarn {
			lines = append(lines, c.yellow(fmt.Sprintf("       WARN %d %s", t.Failures, t.Label)))
		}
	}
	for _, note := range n.Notes {
		lines = append(lines, "       "+note)
	}
	return lines
}

// statementText shows a statement as it begins, and how long it took.
func statementText(e engine.Event) string {
	if s := e.Statement; !s.Done {
		return "debug: " + e.Message + "\n" + indent(s.SQL, "    ")
	}
	return "debug: " + e.Message + "\n"
}

// debugText is what --debug adds to a node: why it ran and how long each of its
// tests took, with the SQL unless that was told when it was run.
func debugText(n *engine.NodeResult, traced bool) string {
	sql := func(text string) string {
		if traced {
			return ""
		}
		return indent(text, "    ")
	}
	var b strings.Builder
	if n.Reason != "" {
		fmt.Fprintf(&b, "debug: %s: %s\n", n.Display, n.Reason)
	}
	if n.SQL != "" && !traced {
		fmt.Fprintf(&b, "debug: %s: SQL\n%s", n.Display, sql(n.SQL))
	}
	for _, t := range n.Tests {
		fmt.Fprintf(&b, "debug: %s: test %s in %s\n%s", n.Display, t.Label, seconds(t.Elapsed), sql(t.SQL))
	}
	return b.String()
}

func testLine(e engine.Event, width int, c palette) string {
	t := e.Test
	took := "in " + seconds(t.Elapsed)
	switch t.Status {
	case engine.StatusPass:
		return dotted(e, "PASS "+t.Name, c.green("[PASS "+took+"]"), width)
	case engine.StatusWarn:
		return dotted(e, fmt.Sprintf("WARN %d %s", t.Failures, t.Name), c.yellow(fmt.Sprintf("[WARN %d %s]", t.Failures, took)), width)
	case engine.StatusFail:
		return dotted(e, fmt.Sprintf("FAIL %d %s", t.Failures, t.Name), c.red(fmt.Sprintf("[FAIL %d %s]", t.Failures, took)), width)
	case engine.StatusSkipped:
		reason := "SKIP"
		if t.Because != "" {
			reason = "because of " + t.Because
		}
		return dotted(e, "SKIP "+t.Name, c.yellow("["+reason+"]"), width)
	default:
		return dotted(e, "ERROR "+t.Name, c.red("[ERROR "+took+"]"), width)
	}
}

func logLine(e engine.Event, c palette) string {
	switch e.Level {
	case "warn":
		return c.yellow("warning: ") + e.Message
	case "error":
		return c.red("error: ") + e.Message
	case "debug":
		return "debug: " + e.Message
	default:
		return e.Message
	}
}

// dotted is "n of m what ..... [verdict]".
func dotted(e engine.Event, what, verdict string, width int) string {
	head := fmt.Sprintf("%d of %d %s ", e.Number, e.Total, what)
	dots := max(3, width-runeLen(head))
	return head + strings.Repeat(".", dots) + " " + verdict
}

// report turns the result of a run into what is printed after its lines.
type report struct {
	text   diag.SourceText
	target string // the target folder as it is shown
}

// details explains every node and test that failed or warned, in plan order.
func (r report) details(res *engine.Result, c palette) string {
	var b strings.Builder
	told := map[string]bool{}
	for _, n := range res.Nodes {
		if n.Status == engine.StatusError && gateThatFailed(n) == nil && n.Err != nil {
			fmt.Fprintf(&b, "\n%s\n%s", c.bold("Error in "+describe(n)+" ("+n.File+")"), r.problem(n.Err))
		}
		for _, t := range n.Tests {
			told[t.ID] = true
			r.test(&b, t, "what is published does not pass; nothing was built", c)
		}
	}
	alike := map[string]int{} // tests that could not be asked, by what is said of them
	for _, t := range res.Tests {
		alike[unasked(t)]++
	}
	for _, t := range res.Tests {
		what := unasked(t)
		switch n := alike[what]; {
		case told[t.ID] || n == 0:
		case what != "" && n > 1:
			alike[what] = 0
			fmt.Fprintf(&b, "\n%s %d tests, the first is %s%s\n%s", c.red("ERROR"), n, testTitle(t), inFile(t.File), r.problem(t.Err))
		default:
			r.test(&b, t, "published before this test could run", c)
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// unasked is what is said of a test that could not be asked, the same of all tests
// that one thing keeps from being: a model that was never published, a source that
// cannot be read. "" of all other tests.
func unasked(t *engine.TestResult) string {
	var d diag.Diagnostic
	if t.Status != engine.StatusError || !errors.As(t.Err, &d) {
		return ""
	}
	if d.Code == diag.SQLUnknownTable {
		return d.Msg // each is told at its own place
	}
	return d.Error()
}

// test explains a test that did not pass. late is what is said of one that looked
// at published data.
func (r report) test(b *strings.Builder, t *engine.TestResult, late string, c palette) {
	var head string
	switch t.Status {
	case engine.StatusFail:
		head = c.red(fmt.Sprintf("FAIL %d", t.Failures))
	case engine.StatusWarn:
		head = c.yellow(fmt.Sprintf("WARN %d", t.Failures))
	case engine.StatusError:
		head = c.red("ERROR")
	default:
		return
	}
	fmt.Fprintf(b, "\n%s %s%s\n", head, testTitle(t), inFile(t.File))
	if t.AfterPublish && t.Status != engine.StatusWarn {
		fmt.Fprintf(b, "  %s\n", late)
	}
	if t.Status == engine.StatusError {
		if t.Err != nil {
			b.WriteString(r.problem(t.Err))
		}
	} else {
		if t.Expected != "" {
			fmt.Fprintf(b, "  expected: %s\n", printable(t.Expected))
		}
		fmt.Fprintf(b, "  got%s\n", gotText(t))
		b.WriteString(indent(textTable(t.Columns, sampleShown(t)), "    "))
	}
	for _, kept := range []struct{ what, path string }{{"compiled SQL", t.Compiled}, {"failing rows", t.Stored}} {
		if kept.path != "" {
			fmt.Fprintf(b, "  %s: %s\n", kept.what, filepath.ToSlash(filepath.Join(r.target, kept.path)))
		}
	}
}

// gotText says what a test found, after "got".
func gotText(t *engine.TestResult) string {
	if t.Found != "" {
		return ": " + t.Found
	}
	switch t.Kind {
	case "row_count", "freshness", "not_constant": // these are about the whole table
		return " something else:"
	}
	of := ""
	if t.Checked >= 0 {
		of = " of " + count(t.Checked, "row")
	}
	if t.Kind == "unique" { // a failure is a key here, not a row
		return fmt.Sprintf(" %s more than once%s%s", count(t.Failures, "key"), strings.Replace(of, " of ", " in ", 1), sampleHead(t))
	}
	return fmt.Sprintf(" %d%s that %s not%s", t.Failures, of, doVerb(t.Failures), sampleHead(t))
}

func (r report) problem(err error) string { return renderError(err, r.text) }

// notRun says why fewer lines than were announced came: each line has its number
// in the plan, and tests that have nothing new to look at have none.
func notRun(e engine.Event) string {
	n := e.Total - tally(e.Result).total()
	if n <= 0 || e.Result.Cancelled || e.Result.Fatal != nil {
		return ""
	}
	what := "tests that passed"
	if n == 1 {
		what = "a test that passed"
	}
	return fmt.Sprintf("%d of %d not run: %s on data that did not change\n", n, e.Total, what)
}

// summary is the closing line.
func (r report) summary(res *engine.Result, c palette) string {
	t := tally(res)
	line := fmt.Sprintf("Done. PASS=%d WARN=%d ERROR=%d SKIP=%d NO-OP=%d TOTAL=%d", t.pass, t.warn, t.err, t.skip, t.noop, t.total())
	switch {
	case res.Cancelled:
		line = c.yellow("Cancelled. ") + strings.TrimPrefix(line, "Done. ")
	case t.err > 0:
		line = c.red(line)
	case t.warn > 0:
		line = c.yellow(line)
	default:
		line = c.green(line)
	}
	return line + "\n"
}

type counts struct{ pass, warn, err, skip, noop int }

func (c counts) total() int { return c.pass + c.warn + c.err + c.skip + c.noop }

// tally counts what a run came to: nodes, and the tests that stand for
// themselves. A node counts once, under the worst of it and its gates.
func tally(res *engine.Result) counts {
	var c counts
	gates := map[string]bool{}
	for _, n := range res.Nodes {
		status := n.Status
		for _, t := range n.Tests {
			gates[t.ID] = true
			if t.Status == engine.StatusWarn && (status == engine.StatusSuccess || status == engine.StatusUnchanged) {
				status = engine.StatusWarn
			}
		}
		c.add(status)
	}
	for _, t := range res.Tests {
		if !gates[t.ID] {
			c.add(t.Status)
		}
	}
	return c
}

func (c *counts) add(s engine.Status) {
	switch s {
	case engine.StatusSuccess, engine.StatusPass:
		c.pass++
	case engine.StatusWarn:
		c.warn++
	case engine.StatusUnchanged:
		c.noop++
	case engine.StatusSkipped, engine.StatusCancelled:
		c.skip++
	default:
		c.err++
	}
}

func isBad(s engine.Status) bool {
	return s == engine.StatusError || s == engine.StatusFail || s == engine.StatusCancelled
}

func hasBadTest(n *engine.NodeResult) bool {
	for _, t := range n.Tests {
		if isBad(t.Status) || t.Status == engine.StatusWarn {
			return true
		}
	}
	return false
}

func testTitle(t *engine.TestResult) string {
	if t.Label == "" || t.Label == t.Name || t.Node == "" {
		return t.Name
	}
	return t.Label + " on " + cmp.Or(t.Output, t.Node)
}

func inFile(file string) string {
	if file == "" {
		return ""
	}
	return " (" + file + ")"
}

func sampleHead(t *engine.TestResult) string {
	switch {
	case len(t.Sample) == 0:
		return ""
	case int64(len(t.Sample)) < t.Failures:
		return fmt.Sprintf("; the first %d:", len(t.Sample))
	default:
		return ":"
	}
}

func doVerb(n int64) string {
	if n == 1 {
		return "does"
	}
	return "do"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bytesText writes a size in units of 1000, as file managers do.
func bytesText(n int64) string {
	const units = "KMGTP"
	if n < 1000 {
		return count(n, "byte")
	}
	v, u := float64(n)/1000, 0
	for v >= 999.95 && u < len(units)-1 {
		v, u = v/1000, u+1
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}

func indent(text, by string) string {
	if text == "" {
		return ""
	}
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

func runeLen(s string) int { return len([]rune(s)) }
