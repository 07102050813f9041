package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
	"rbt/materialize"
)

// auditError says that gates failed: what was staged is not published.
type auditError struct {
	tests []*TestResult // those that failed
}

// Error names the failed tests.
func (e *auditError) Error() string {
	names := make([]string, len(e.tests))
	for i, t := range e.tests {
		names[i] = t.Name
	}
	return "the audit failed: " + strings.Join(names, ", ")
}

func (e *auditError) diagnostic(n *plan.Node) diag.Diagnostic {
	return diag.Errorf(diag.TestFailed, diag.Pos{File: n.File}, "%s was not published: %s", n.Name, strings.TrimPrefix(e.Error(), "the "))
}

// audit asks the gates of a step about what is staged. While it asks, the names
// of the node mean the staged data; nothing else of a run reads them before they
// are published.
func (b *builder) audit(ctx context.Context, staged materialize.Staged) error {
	for _, o := range staged.Outputs {
		b.run.forgetFailed(o.Relation)
	}
	if len(b.step.Gates) == 0 {
		return nil
	}
	parts := map[string]subject{} // of an increment: the new part alone
	for _, o := range staged.Outputs {
		if err := b.bindStaged(ctx, staged, o); err != nil {
			return err
		}
		if len(o.Kept) > 0 && (b.step.Node.Model == nil || b.step.Node.Model.Records == nil) {
			parts[strings.ToLower(o.Relation)] = subject{from: "(" + scanFiles(paths(o), o.Columns) + ")", columns: o.Columns, footers: newFooters(paths(o))}
		}
	}
	var failed []*TestResult
	for _, t := range b.step.Gates {
		if err := ctx.Err(); err != nil {
			return err
		}
		var part *subject
		if s, ok := parts[strings.ToLower(testedRelation(b.step.Node, t))]; ok && isRowWise(t.Kind) && b.ofNewRows(t) {
			part = &s
		}
		result := b.run.evaluate(ctx, func(context.Context) (*session, error) { return b.session, nil }, t, part)
		if err := ctx.Err(); err != nil {
			return err
		}
		b.result.Tests = append(b.result.Tests, result)
		if result.Status.refuses() {
			failed = append(failed, result)
		}
	}
	if len(failed) > 0 {
		return &auditError{failed}
	}
	return nil
}

// ofNewRows reports whether a gate need look at new rows alone: it is about the step,
// and reads nothing else or passed on the rows before them, compared with what these
// are compared with.
func (b *builder) ofNewRows(t *project.Test) bool {
	n := b.run.tests[t]
	if n.About != b.step.Node || b.run.lookedAt(b.step, t) != "" {
		return false
	}
	others := slices.ContainsFunc(n.Reads, func(p *plan.Node) bool { return p != n.About })
	return !others || b.run.passed(n.About).has(b.run.hashes[n.ID])
}

// forgetFailed removes what is kept of a refused result of an earlier run. It is
// there to be looked at, so that a fault is nothing to stop for.
func (r *run) forgetFailed(relation string) {
	r.failedOnce.Do(func() {
		_, err := os.Stat(filepath.Join(r.e.o.Project.TargetDir, "failed"))
		r.noneFailed = errors.Is(err, fs.ErrNotExist)
	})
	if r.noneFailed {
		return // what this run keeps is of its own nodes, each of which it builds once
	}
	base := filepath.Join(r.e.o.Project.TargetDir, "failed", relation)
	for i, err := 2, os.Remove(base+".staged"); err == nil; i++ {
		err = os.Remove(fmt.Sprintf("%s.%d.staged", base, i))
	}
}

// bindStaged makes the name of an output mean what is staged.
func (b *builder) bindStaged(ctx context.Context, staged materialize.Staged, o materialize.StagedOutput) error {
	n := b.step.Node
	r, ok := b.run.catalog.lookup("main", orWord(o.Relation, n.Name))
	if !ok {
		return nil // what an ingest keeps for itself
	}
	query, reads := staged.SQL, b.reads
	var files []string
	switch {
	case staged.SQL != "":
	case n.Model != nil && n.Model.Records != nil:
		var err error
		if query, err = stagedIngest(n.Model, staged, o); err != nil {
			return err
		}
		reads = nil
		if all := append(append([]string(nil), o.Kept...), paths(o)...); rowsOfFiles(query, all, o.Columns) {
			files = all
		}
	default:
		files = append(append([]string(nil), o.Kept...), paths(o)...)
		query, reads = scanFiles(files, o.Columns), nil
	}
	return b.run.catalog.set(ctx, b.session, r, query, reads, files, o.Columns)
}

func orWord(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func paths(o materialize.StagedOutput) []string {
	files := make([]string, len(o.Files))
	for i, f := range o.Files {
		files[i] = f.Path
	}
	return files
}

// testedRelation is the name of the relation that a generic test looks at.
func testedRelation(n *plan.Node, t *project.Test) string {
	if t.Output != "" {
		return t.Output
	}
	return n.Name
}

// auditStep asks the tests of a step that have not passed on what is published.
func (r *run) auditStep(ctx context.Context, worker int, s *plan.Step, n *NodeResult) error {
	gates, units := r.untested(s)
	hashes := r.passed(s.Node)
	var failed []*TestResult
	note := func(t *TestResult) {
		t.AfterPublish = true
		n.Tests = append(n.Tests, t)
		if hashes.note(r.hashes[t.ID], t.Status); t.Status.refuses() {
			failed = append(failed, t)
		}
	}
	for _, u := range units {
		t := r.unitTest(ctx, worker, u)
		if err := ctx.Err(); err != nil {
			return err
		}
		note(t)
	}
	for _, g := range gates {
		t := r.evaluate(ctx, r.opener(worker), g, nil)
		if err := ctx.Err(); err != nil {
			return err
		}
		note(t)
	}
	n.Status = StatusUnchanged
	if receipt, ok := r.receiptOf(s.Node); ok {
		r.remember(s.Node, receipt, hashes)
	}
	if len(failed) > 0 {
		return inFile((&auditError{failed}).onPublished(s.Node), s.Node.File)
	}
	return nil
}

func (e *auditError) onPublished(n *plan.Node) diag.Diagnostic {
	return diag.Errorf(diag.TestFailed, diag.Pos{File: n.File}, "what is published of %s does not pass: %s", n.Name, strings.TrimPrefix(e.Error(), "the audit failed: "))
}

// lateTest runs a test that is no gate of one step.
func (r *run) lateTest(ctx context.Context, worker, k int) jobResult {
	l := r.plan.Late[k]
	if !r.needed(l) {
		return jobResult{commit: func() { r.told.done(k, nil) }}
	}
	t := r.evaluate(ctx, r.opener(worker), l.Test, nil)
	if ctx.Err() != nil {
		t.Status, t.Err = StatusSkipped, nil
	}
	t.AfterPublish = len(l.After) > 0
	return jobResult{failed: l.Guards && t.Status.refuses(), commit: func() { r.tested(k, t) }}
}

// opener gives the worker's connection when it is needed, for what may be asked of
// much data.
func (r *run) opener(worker int) opener {
	return func(ctx context.Context) (*session, error) {
		s, err := r.session(ctx, worker)
		if err == nil {
			err = s.db.widen(ctx)
		}
		return s, err
	}
}

// needed reports whether a late test has anything new to look at.
func (r *run) needed(l plan.LateTest) bool {
	if len(l.Reasons) > 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Owner != nil && r.built[l.Owner] {
		return true
	}
	for _, number := range l.After {
		if number <= len(r.plan.Steps) && r.built[r.plan.Steps[number-1].Node] {
			return true
		}
	}
	return false
}

// tested notes the result of a late test or, counted on, of a unit test.
func (r *run) tested(k int, t *TestResult) {
	if k < len(r.late) {
		r.late[k] = t
	} else {
		r.unitTests[k-len(r.late)] = t
	}
	r.told.done(k, func() {
		r.e.emit(Event{Kind: EventTestFinished, Number: len(r.plan.Steps) + k + 1, Total: r.total(), Test: t})
	})
}

// tellInOrder tells of tests in the order of the plan, whichever is over first,
// so that a command says the same for any number of workers. Its methods are
// called by one goroutine at a time.
type tellInOrder struct {
	next int
	held map[int]func() // of tests that are over while one before them is not
}

// done notes that test k is over. tell, where it is not nil, is called once those
// before it are over too.
func (o *tellInOrder) done(k int, tell func()) {
	if o.held == nil {
		o.held = map[int]func(){}
	}
	o.held[k] = tell
	for {
		tell, over := o.held[o.next]
		if !over {
			return
		}
		delete(o.held, o.next)
		o.next++
		if tell != nil {
			tell()
		}
	}
}

// rest tells what is left because a test before it was never over.
func (o *tellInOrder) rest() {
	for _, k := range sortedKeys(o.held) {
		if tell := o.held[k]; tell != nil {
			tell()
		}
	}
	o.held = nil
}

// columns describes a relation.
func (r *run) columns(ctx context.Context, s *session, from string) ([]lake.Column, error) {
	columns, err := s.Describe(ctx, "SELECT * FROM "+from)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", from, err)
	}
	return columns, nil
}
