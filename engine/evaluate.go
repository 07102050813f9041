package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/plan"
	"rbt/internal/project"
	"rbt/materialize"
)

// sampleRows is how many violating rows a result shows.
const sampleRows = 5

func newTestResult(t *project.Test, n *plan.TestNode) *TestResult {
	out := &TestResult{Name: t.Name, Node: t.Node, Kind: t.Kind, Label: testLabel(t), File: t.Pos.File, Severity: t.Severity, Checked: -1}
	if t.File != "" {
		out.File = t.File
	}
	if n != nil {
		out.ID, out.Output = n.ID, outputTested(t, n)
	}
	return out
}

// outputTested is the output of an ingest that a test is about, as ref() takes it;
// "" where it is about no output, or the root.
func outputTested(t *project.Test, n *plan.TestNode) string {
	if t.Output == "" || n.About == nil || n.About.Model == nil {
		return ""
	}
	for _, o := range n.About.Model.Outputs() {
		if strings.EqualFold(o.Relation, t.Output) && o.Ref != "" {
			return o.Node + "." + o.Ref
		}
	}
	return ""
}

// testLabel is how a test is called under the line of its node: not_null(id),
// after its name where the user gave it one.
func testLabel(t *project.Test) string {
	label := t.Kind
	switch {
	case len(t.Columns) > 0:
		label += "(" + strings.Join(t.Columns, ", ") + ")"
	case t.Kind == "expression":
		label += "(" + firstRunes(strings.Join(strings.Fields(t.Args.SQL), " "), 40) + ")"
	case t.Node == "":
		return t.Name
	}
	// Names that rbt makes begin with the kind.
	if !strings.HasPrefix(t.Name, t.Kind+"_") && t.Name != t.Kind {
		label = t.Name + ": " + label
	}
	return label
}

// opener gives the connection on which a query may run. What the footers of
// files answer needs none.
type opener func(context.Context) (*session, error)

// evaluate asks a test. part, where it is not nil, is asked in place of the
// relation. What goes wrong is in the result. Violating rows that are kept of an
// earlier time go first: what lies there is of the last time that a test was asked.
func (r *run) evaluate(ctx context.Context, open opener, t *project.Test, part *subject) *TestResult {
	n := r.tests[t]
	result := newTestResult(t, n)
	started := r.e.o.Now()
	if err := os.Remove(r.failuresOf(t)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.e.emit(Event{Kind: EventLog, Level: "warn", Message: fmt.Sprintf("remove the violating rows of an earlier run: %v", err)})
	}
	for again := true; again; {
		q := asking{run: r, test: t, node: n, result: result}
		if err := q.answer(ctx, open, part); err != nil {
			if q.session != nil {
				err = r.catalog.unreadable(ctx, q.session, err, q.reads)
			}
			result.Status, result.Err = StatusError, q.explain(err)
		}
		if part != nil { // its staged file is gone when the SQL is read
			result.SQL = strings.ReplaceAll(result.SQL, part.from, relationName(q.about()))
		}
		// What cannot be pinned may have been published anew while it was read.
		if again = r.reader != nil && r.reader.changed(q.reads); again {
			r.catalog.forgetAll(q.reads)
			result = newTestResult(t, n)
		}
	}
	result.Elapsed = r.e.o.Now().Sub(started)
	r.keepSQL(result)
	return result
}

// keepSQL writes the SQL of a test under target/compiled, to be looked at and
// run by hand: of every test that was asked for by itself, and of those that
// did not pass. It can be made again, so that a fault is only told.
func (r *run) keepSQL(t *TestResult) {
	if t.SQL == "" || r.reader == nil && t.Status == StatusPass {
		return
	}
	folder := "tests"
	if t.Kind == unitTestKind {
		folder = "unit_tests"
	}
	name := path.Join("compiled", r.e.o.Project.Name, folder, t.Name+".sql")
	file := filepath.Join(r.e.o.Project.TargetDir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(file), 0o777)
	if err == nil {
		err = project.ReplaceFile(file, r.e.o.Project.Mask(t.SQL)+"\n")
	}
	if err != nil {
		r.e.emit(Event{Kind: EventLog, Level: "warn", Message: fmt.Sprintf("keep the SQL of the test %s: %v", t.Name, err)})
		return
	}
	t.Compiled = name
}

// asking is one test being asked.
type asking struct {
	run     *run
	session *session
	test    *project.Test
	node    *plan.TestNode
	result  *TestResult

	compiled *project.Compiled // of a test that is SQL of the user
	text     statement
	reads    []*relation
	footers  *footers // of what a built-in test looks at
}

// answer asks and fills in the result.
func (q *asking) answer(ctx context.Context, open opener, part *subject) (err error) {
	if q.unread(part) {
		return nil
	}
	if q.session, err = open(ctx); err != nil {
		return err
	}
	c, err := q.check(ctx, part)
	if err != nil {
		return err
	}
	q.result.SQL, q.result.Expected = c.Rows, c.Expected
	if _, err := oneQuery(c.Rows); err != nil {
		return err
	}
	if err := q.count(ctx, c); err != nil {
		return err
	}
	q.result.Status = outcome(q.test, q.result.Failures, q.result.Checked)
	if q.result.Failures == 0 {
		return nil
	}
	if err := q.sample(ctx, c); err != nil {
		return err
	}
	if q.run.o.StoreFailures && q.result.Status != StatusPass {
		return q.store(ctx, c)
	}
	return nil
}

// unread answers a test without violations by the footers of the files that it
// looks at, and reports whether it could. What is wrong with the test or with a
// file is left to the query to say.
func (q *asking) unread(part *subject) bool {
	t := q.test
	if q.node == nil || q.node.Compiled != nil || q.node.About == nil || t.Args.To != "" || t.Args.EqualTo != "" {
		return false
	}
	var s subject
	var r *relation
	if part != nil {
		s = *part
	} else {
		schema, name := q.about()
		var ok bool
		if r, ok = q.run.catalog.lookup(schema, name); !ok {
			return false
		}
		if s, ok = q.run.catalog.held(r); !ok {
			return false
		}
	}
	c, err := genericCheck(t, s, "", q.run.e.o.Now())
	if err != nil {
		return false
	}
	if _, err := oneQuery(c.Rows); err != nil {
		return false
	}
	checked, ok := q.holds(c.proof, s.footers)
	if !ok {
		return false
	}
	if r != nil {
		q.reads = append(q.reads, r)
	}
	q.result.SQL, q.result.Expected, q.result.Checked = c.Rows, c.Expected, checked
	q.result.Status = outcome(t, 0, checked)
	return true
}

// holds reports whether footers show that there is no violation, and the number
// of rows looked at.
func (q *asking) holds(p *proof, f *footers) (checked int64, ok bool) {
	switch {
	case p == nil || f == nil:
		return 0, false
	case p.rows != nil:
		rows, ok := f.count()
		return rows, ok && p.rows(rows)
	case p.nulls:
		k := f.column(p.column)
		return k.rows, k.counted && k.nulls == 0
	case p.holds != nil && !q.run.e.comparesOtherwise():
		k := f.column(p.column)
		if !k.counted || !p.holds(k) {
			return 0, false
		}
		if p.set {
			return k.rows - k.nulls, true
		}
		return k.rows, true
	}
	return 0, false
}

// comparesOtherwise reports whether a setting of the project lets values compare
// in another way than they stand in the statistics of files.
func (e *Engine) comparesOtherwise() bool {
	for name := range e.o.Project.Engine.Settings {
		if strings.EqualFold(name, "default_collation") {
			return true
		}
	}
	return false
}

// count counts violations and the rows looked at, by the footers where they
// know.
func (q *asking) count(ctx context.Context, c check) (err error) {
	if checked, ok := q.holds(c.proof, q.footers); ok {
		q.result.Checked = checked
		return nil
	}
	var known facts
	if p := c.proof; p != nil && (p.nulls || p.set) {
		known = q.footers.column(p.column)
	}
	if known.counted && c.proof.nulls {
		if q.result.Failures, q.result.Checked = known.nulls, known.rows; q.test.Limit > 0 {
			q.result.Failures = min(known.nulls, int64(q.test.Limit))
		}
		return nil
	}
	if c.proof != nil && len(c.proof.keys) > 0 {
		if done, err := q.distinct(ctx, c); done || err != nil {
			return err
		}
	}
	if q.result.Failures, err = q.number(ctx, c.Count(q.test.Limit)); err != nil {
		return err
	}
	switch {
	case known.counted:
		q.result.Checked = known.rows - known.nulls
	case c.Checked != "":
		q.result.Checked, err = q.checked(ctx, c)
	}
	return err
}

// checked counts the rows that a test looks at. Tests of one relation with one
// where share the count, unless it may be another the next time.
func (q *asking) checked(ctx context.Context, c check) (int64, error) {
	query := c.Checked
	if c.set != nil {
		if known := q.footers.column(*c.set); known.counted && known.nulls == 0 {
			query = "SELECT count(*) FROM " + c.from
		}
	}
	where := strings.ToLower(q.test.Where)
	if q.footers == nil || strings.Contains(where, "select") || strings.Contains(where, "from") {
		return q.number(ctx, query)
	}
	return q.footers.counted(query, func() (int64, error) { return q.number(ctx, query) })
}

// distinct looks for repeated keys without a table of them, where that can be
// done. That there are none settles the test; which they are does not come out.
func (q *asking) distinct(ctx context.Context, c check) (bool, error) {
	query, ok := distinctQuery(c.from, c.proof.keys, q.footers.column)
	if !ok {
		return false, nil
	}
	var keys, set, rows int64
	err := q.session.Query(ctx, query, func(v []any) error {
		keys, _ = v[0].(int64)
		set, _ = v[1].(int64)
		rows, _ = v[2].(int64)
		return nil
	})
	switch {
	case err != nil || keys != set || q.test.FailNulls && set != rows:
		return false, err
	case q.test.FailNulls:
		q.result.Checked = rows
	default:
		q.result.Checked = set
	}
	return true, nil
}

// check puts the test into SQL, all that it reads made known.
func (q *asking) check(ctx context.Context, part *subject) (check, error) {
	t := q.test
	if q.node != nil {
		for _, n := range q.node.Reads {
			for _, rel := range q.run.catalog.relationsOf(n) {
				q.reads = append(q.reads, rel)
				if err := q.run.catalog.bind(ctx, q.session, rel, nil); err != nil {
					return check{}, err
				}
			}
		}
	}
	if q.node != nil && q.node.Compiled != nil {
		return q.own(ctx)
	}
	if q.node == nil || q.node.About == nil {
		return check{}, fmt.Errorf("ask the test %s: it is about nothing", t.Name)
	}
	s, err := q.subject(ctx, part)
	if err != nil {
		return check{}, err
	}
	q.footers = s.footers
	parent := ""
	if t.Args.To != "" || t.Args.EqualTo != "" {
		parent = relationName(t.Args.Ref.Relation())
		if s.field, err = q.checkField(ctx, parent); err != nil {
			return check{}, err
		}
	}
	return genericCheck(t, s, parent, q.run.e.o.Now())
}

// subject is the relation that the test looks at.
func (q *asking) subject(ctx context.Context, part *subject) (subject, error) {
	if part != nil {
		return *part, nil
	}
	schema, name := q.about()
	out := subject{from: relationName(schema, name)}
	r, ok := q.run.catalog.lookup(schema, name)
	if ok {
		r.mu.Lock()
		out.footers, out.columns = r.footers, r.columns
		r.mu.Unlock()
	}
	if out.columns != nil {
		return out, nil
	}
	var err error
	if out.columns, err = q.run.columns(ctx, q.session, out.from); err == nil && ok {
		r.mu.Lock()
		r.columns = out.columns
		r.mu.Unlock()
	}
	return out, err
}

// about names the relation that a built-in test looks at.
func (q *asking) about() (schema, name string) {
	if source := q.node.About.Source; source != nil {
		return source.Group, source.Name
	}
	return "main", testedRelation(q.node.About, q.test)
}

// checkField makes sure that the column of a relationship's other side exists,
// and gives its type.
func (q *asking) checkField(ctx context.Context, parent string) (string, error) {
	if q.test.Args.Field == "" {
		return "", nil
	}
	columns, err := q.run.columns(ctx, q.session, parent)
	if err != nil {
		return "", err
	}
	column, err := findField(q.test, columns)
	return column.Type, err
}

// own is a test that is SQL of the user: its rows are the violations.
func (q *asking) own(ctx context.Context) (check, error) {
	q.compiled = q.node.Compiled
	st, err := oneQuery(q.compiled.SQL)
	if err != nil {
		return check{}, err
	}
	q.text = st
	if _, err := q.run.catalog.bindRefs(ctx, q.session, q.compiled.Refs); err != nil {
		return check{}, err
	}
	if err := q.session.checkQuery(ctx, st); err != nil {
		return check{}, err
	}
	c := check{Rows: st.text, Expected: "no rows"}
	if q.node.About != nil && asksForShare(q.test) {
		c.Checked = "SELECT count(*) FROM " + restricted(q.test, relationName(q.about()))
	}
	return c, nil
}

func (q *asking) number(ctx context.Context, query string) (n int64, err error) {
	err = q.session.Query(ctx, query, func(v []any) error {
		i, ok := v[0].(int64)
		if !ok {
			return fmt.Errorf("a count came as %T", v[0])
		}
		n = i
		return nil
	})
	return n, err
}

// sample reads the first violating rows, in an order that depends on nothing but
// their values. Every value is printed by the engine, exactly.
func (q *asking) sample(ctx context.Context, c check) error {
	rows := "SELECT * FROM (" + c.Rows + "\n)"
	columns, err := q.session.Describe(ctx, "SELECT * FROM ("+rows+") LIMIT 0")
	if err != nil {
		return err
	}
	list := make([]string, len(columns))
	for i, col := range columns {
		q.result.Columns = append(q.result.Columns, col.Name)
		list[i] = textOf(shownAs(fmt.Sprintf("c%d", i), col.Type))
	}
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = fmt.Sprintf("c%d", i)
	}
	most := sampleRows
	if q.test.Limit > 0 {
		most = min(most, q.test.Limit)
	}
	query := fmt.Sprintf("SELECT %s FROM (SELECT * FROM (%s\n) AS v(%s) ORDER BY ALL LIMIT %d) ORDER BY ALL",
		strings.Join(list, ", "), c.Rows, strings.Join(names, ", "), most)
	return q.session.Query(ctx, query, func(v []any) error {
		row := make([]string, len(v))
		for i := range v {
			row[i] = "NULL"
			if text, ok := v[i].(string); ok { // masked here: what is shown may be cut within a secret
				row[i] = q.run.e.o.Project.Mask(text)
			}
		}
		q.result.Sample = append(q.result.Sample, row)
		return nil
	})
}

// failuresOf is the file of the violating rows of a test.
func (r *run) failuresOf(t *project.Test) string {
	return filepath.Join(r.e.o.Project.TargetDir, "failures", t.Name+".parquet")
}

// store writes the violating rows to target/failures/<test>.parquet.
func (q *asking) store(ctx context.Context, c check) error {
	file := q.run.failuresOf(q.test)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("store failures: %w", err)
	}
	rows := c.Rows
	if q.test.Limit > 0 {
		rows = fmt.Sprintf("SELECT * FROM (%s\n) LIMIT %d", rows, q.test.Limit)
	}
	// Written beside its name and moved there, so that it is never half there.
	err := q.copyRows(ctx, rows, file+".tmp")
	if err != nil && ctx.Err() == nil && q.copyRows(ctx, `SELECT CAST(COLUMNS('(?s).*') AS VARCHAR) AS '\0' FROM (`+rows+"\n)", file+".tmp") == nil {
		err = nil // rows of a type that no Parquet file holds, as text
	}
	if err != nil {
		return err
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return fmt.Errorf("store failures: %w", err)
	}
	q.result.Stored = path.Join("failures", q.test.Name+".parquet")
	return nil
}

// copyRows writes rows to a Parquet file.
func (q *asking) copyRows(ctx context.Context, rows, file string) error {
	query, _, err := materialize.NewQuery(rows, nil, false).Select(ctx, q.session)
	if err != nil {
		return err
	}
	_, err = q.session.CopyTo(ctx, query, file, nil)
	return err
}

// explain gives an error of a test's query its place.
func (q *asking) explain(err error) error {
	placed := placeError(err, placing{file: q.result.File, name: q.test.Name, compiled: q.compiled, text: q.text, reads: q.reads, catalog: q.run.catalog})
	var d diag.Diagnostic
	if errors.As(placed, &d) {
		if q.compiled == nil && (d.Pos.IsZero() || d.Pos.Line == 0) {
			d.Pos = q.test.Pos
		}
		return d
	}
	var problem *sqlProblem
	if errors.As(err, &problem) {
		return problem.SQLDiagnostic(q.test.Pos)
	}
	return placed
}
