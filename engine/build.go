package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
	"rbt/materialize"
	"rbt/materialize/ingest"
)

// builder builds one step.
type builder struct {
	run      *run
	step     *plan.Step
	decision plan.Decision
	result   *NodeResult
	session  *session

	compiled *project.Compiled // of a model
	text     statement
	known    *described  // what is known of queries over what the SQL reads; nil for nothing
	inPlace  *inPlace    // how the SQL is run without views of all that it reads; nil if it is not
	reads    []*relation // what the SQL reads
	volatile string
	asked    string // why a query of the template makes the text volatile
	// appending says that the Source holds only new rows.
	appending bool
	// loaded gives the figures of an ingest; nil for all else.
	loaded func() ingest.Stats
}

// build makes the data of a step and audits it. What it gives is still to be
// called to publish that, and no longer needs the session.
func (b *builder) build(ctx context.Context) (commit func() error, err error) {
	n := b.step.Node
	if err := b.unitTests(ctx); err != nil {
		return nil, err
	}
	b.appending = b.step.Incremental
	defer b.watch(ctx)()
	source, form, folder, err := b.source(ctx)
	if err != nil {
		return nil, inFile(b.unreadable(ctx, err), n.File)
	}
	watched, err := b.spread(ctx)
	if err != nil {
		return nil, err
	}
	defer watched()
	target := materialize.Target{
		Lake: b.run.e.o.Lake, Name: n.Name, Folder: folder, Form: form, RunID: b.run.o.InvocationID,
		Fingerprint: b.decision.Fingerprint, Inputs: b.decision.Inputs, TestsHash: b.run.gateHashes(b.step).text(),
		HasReaders: len(n.Children) > 0, Greatest: greatestOf, Append: b.appending, FullRefresh: b.run.o.FullRefresh, Force: b.run.o.Force, FailedDir: b.run.failedDir(), Now: b.run.e.o.Now,
	}
	if b.volatile != "" {
		target.Volatile = &b.volatile
	}
	if n.Model != nil && n.Model.OnSchemaChange == "full_refresh" && b.step.Incremental {
		target.Rebuild = func() (materialize.Source, error) {
			b.result.Incremental = false
			return b.query(ctx, n.Full)
		}
	}
	if b.editedIncrement() {
		b.result.Notes = append(b.result.Notes, "its SQL was edited: rows of earlier runs stay as they are until --full-refresh")
	}
	ready, err := materialize.Prepare(ctx, b.asking(), target, source, b.audit)
	if err != nil {
		b.run.catalog.forget(n)
		return nil, b.explain(ctx, err)
	}
	return func() error {
		b.run.forgetLookers(b.step.Number)
		published, err := ready.Commit(ctx)
		if err != nil {
			b.run.catalog.forget(n)
			return b.explain(ctx, err)
		}
		if published.Rows > 0 && b.rereads() {
			b.result.Notes = append(b.result.Notes, "it reads again what the part before it was made of: rows that both hold are now there twice")
		}
		b.publish(published)
		return nil
	}, nil
}

// unitTests runs the unit tests of the model, which need no data.
func (b *builder) unitTests(ctx context.Context) error {
	var failed []*TestResult
	for _, u := range b.step.UnitTests {
		t := b.run.unitTest(ctx, b.result.Worker, u)
		if err := ctx.Err(); err != nil {
			return err
		}
		b.result.Tests = append(b.result.Tests, t)
		if t.Status != StatusPass {
			failed = append(failed, t)
		}
	}
	if len(failed) > 0 {
		return (&auditError{failed}).diagnostic(b.step.Node)
	}
	return nil
}

// publish notes what was published.
func (b *builder) publish(p materialize.Published) {
	n := b.result
	n.Status, n.Rows, n.Bytes, n.Kept = StatusSuccess, p.Rows, p.Bytes, p.Unchanged && !n.Incremental
	if b.loaded != nil {
		// The records say more than the rows of all tables together.
		n.Rows = b.loaded().Records
		if rejects := b.loaded().Rejects; rejects > 0 {
			n.Notes = append(n.Notes, fmt.Sprintf("records set aside: %d; ref('%s._rejects') says why", rejects, n.Name))
		}
	}
	if p.Manifest != nil && p.Receipt.Form == lake.FormIncremental {
		n.Parts = len(p.Manifest.Parts)
	}
	if p.Rebuilt != "" {
		n.Incremental = false
		n.Notes = append(n.Notes, "rebuilt: "+p.Rebuilt)
	}
	b.run.publish(b.step, p.Receipt)
	hashes := readHashes(p.Receipt.TestsHash)
	b.run.noteGates(b.step, n.Tests, hashes)
	b.run.remember(b.step.Node, p.Receipt, hashes)
}

// editedIncrement reports whether an increment is made with other SQL than what
// is published.
func (b *builder) editedIncrement() bool {
	return b.step.Incremental && b.step.Receipt != nil && b.step.Receipt.Inputs.SQL != "" &&
		b.step.Receipt.Inputs.SQL != b.decision.Inputs.SQL
}

// rereads reports whether an increment was made by the same text as the part before
// it, over a source file or a parent that this one read too, without a look at what
// is published: what has not changed there is appended a second time.
func (b *builder) rereads() bool {
	s := b.step
	if !s.Incremental || s.Receipt == nil || b.compiled == nil || b.compiled.This || b.volatile != "" || s.Receipt.Inputs.SQL != b.decision.Inputs.SQL {
		return false
	}
	for file := range b.decision.Inputs.Sources {
		if _, again := s.Receipt.Inputs.Sources[file]; again {
			return true
		}
	}
	return len(b.decision.Inputs.Parents) > 0
}

// source gives what is to be published, and how and where.
func (b *builder) source(ctx context.Context) (src materialize.Source, form lake.Form, folder string, err error) {
	n := b.step.Node
	if n.Seed != nil {
		src, err = b.seed()
		return src, lake.FormSeed, "", err
	}
	folder = n.Model.Path
	if n.Model.Materialization == project.Ingest {
		src, err = b.ingest(ctx)
		return src, lake.FormIngest, folder, err
	}
	compiled := n.Full
	if b.step.Incremental {
		compiled = n.Increment
	}
	switch n.Model.Materialization {
	case project.View:
		form = lake.FormView
	case project.Incremental:
		form = lake.FormIncremental
	default:
		form = lake.FormFile
		if n.Model.Layout == "parts" {
			form = lake.FormParts
		}
	}
	q, err := b.query(ctx, compiled)
	if err != nil {
		return nil, "", "", err
	}
	return q, form, folder, nil
}

func (b *builder) seed() (materialize.Source, error) {
	s := b.step.Node.Seed
	query, table, err := seedQuery(b.run.e.o.Project, s)
	if err != nil {
		return nil, err
	}
	b.result.SQL = query
	b.reads = []*relation{{node: b.step.Node, table: table}}
	return materialize.NewQuery(query, nil, false), nil
}

// query makes a Source of a compiled model: exactly one query, all that it reads
// made known, accepted by the engine.
func (b *builder) query(ctx context.Context, compiled *project.Compiled) (materialize.Source, error) {
	n := b.step.Node
	if compiled.Queried {
		if err := b.session.db.widen(ctx); err != nil {
			return nil, err
		}
		var err error
		if compiled, err = b.recompile(ctx); err != nil {
			return nil, err
		}
	}
	b.compiled, b.result.SQL = compiled, compiled.SQL
	st, err := b.read(compiled.SQL)
	if err != nil {
		return nil, b.place(err)
	}
	b.text = st
	tables, err := b.tables(st)
	if err != nil {
		return nil, b.place(err)
	}
	if tables.Refused && n.Model.Materialization == project.View {
		return nil, viewOverPivot(n)
	}
	if b.volatile = b.volatility(compiled, tables); b.volatile == "" {
		b.volatile = b.ephemeralVolatility(n, map[*plan.Node]bool{})
	}
	var refs []project.Ref
	b.inPlace, refs = b.readInPlace(st, n.Refs)
	if b.reads, err = b.run.catalog.bindRefs(ctx, b.session, refs); err != nil {
		return nil, err
	}
	if look := b.greatest(st); look != nil {
		b.inPlace = look
	} else if compiled.This && b.step.Incremental {
		this, err := b.run.catalog.bindRefs(ctx, b.session, []project.Ref{{Node: n.Name}})
		if err != nil {
			return nil, err
		}
		b.reads = append(b.reads, this...)
	}
	b.known = nil
	if known := b.foreseen(st); known != nil {
		b.known = known.known
	} else if err := b.bindAgain(ctx, st); err != nil {
		return nil, err
	} else if b.inPlace != nil {
		b.known = &described{}
	}
	return materialize.NewQuery(st.text, declaredColumns(n.Model), n.Model.ContractEnforced), nil
}

// tables is what the parse tree of the text says of what it reads, where its
// tokens do not show that already.
func (b *builder) tables(st statement) (plan.Tables, error) {
	if b.boundBefore(st) && st.plain() {
		return plan.Tables{}, nil
	}
	return b.run.e.parser.Tables(st.text)
}

// bindAgain binds a text that was not bound before the run, or over other
// columns, with views of all that it reads.
func (b *builder) bindAgain(ctx context.Context, st statement) error {
	if b.inPlace != nil {
		if err := b.inPlace.bind(ctx); err != nil {
			return err
		}
		if !b.inPlace.stays {
			b.inPlace = nil
		}
	}
	if err := b.session.checkQuery(ctx, st); err != nil {
		return b.place(err)
	}
	return nil
}

// asking is the session of the step, which asks nothing that is known.
func (b *builder) asking() materialize.Session {
	if b.known == nil {
		return b.session
	}
	return knowing{b.session, b.known, b.inPlace}
}

func (b *builder) volatility(compiled *project.Compiled, tables plan.Tables) string {
	for _, why := range []string{compiled.Volatile, tables.Volatile, b.step.Node.Volatile, b.asked} {
		if why != "" {
			return why
		}
	}
	return ""
}

// ephemeralVolatility is the volatility of the ephemeral models that a node
// reads: they have no receipt that could pass it on.
func (b *builder) ephemeralVolatility(n *plan.Node, seen map[*plan.Node]bool) string {
	for _, p := range n.Parents {
		if seen[p] || p.Model == nil || p.Model.Materialization != project.Ephemeral {
			continue
		}
		seen[p] = true
		why := p.Volatile
		if tables, err := b.run.e.parser.Tables(p.Full.SQL); err == nil && why == "" {
			why = tables.Volatile
		}
		if why != "" {
			return why + " in " + p.Name
		}
		if why := b.ephemeralVolatility(p, seen); why != "" {
			return why
		}
	}
	return ""
}

// recompile renders a model whose template asks the database, now that its
// parents are published.
func (b *builder) recompile(ctx context.Context) (*project.Compiled, error) {
	if _, err := b.run.catalog.bindRefs(ctx, b.session, b.step.Node.Refs); err != nil {
		return nil, err
	}
	compiled, problems := b.run.e.o.Project.Compile(ctx, b.step.Node.Model, project.CompileOptions{
		Incremental: b.step.Incremental, RunStartedAt: b.run.o.RunStartedAt, InvocationID: b.run.o.InvocationID,
		Query: func(sql string) ([]string, [][]any, error) {
			if tables, err := b.run.e.parser.Tables(sql); err == nil && tables.Volatile != "" {
				b.asked = "a query of its template " + tables.Volatile
			}
			return b.session.readOnly(ctx, sql)
		},
		MayRead: func(refs []project.Ref) error {
			if late, ok := lateRefs(b.step.Node, refs).(diag.List); ok {
				return late[0]
			}
			return nil
		},
		Log: func(msg string, info bool, pos diag.Pos) {
			level := "debug"
			// What the rendering for the plan said is shown already.
			n, text := b.step.Node, strings.TrimPrefix(msg, "warning: ")
			if info && !n.Full.Told(text, pos) && !n.Increment.Told(text, pos) {
				level = "info"
			}
			b.run.e.emit(Event{Kind: EventLog, Level: level, Message: msg})
		},
	})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return compiled, lateRefs(b.step.Node, compiled.Refs)
}

// place gives an error of the engine the place in the user's file.
func (b *builder) place(err error) error {
	return placeError(err, placing{
		file: b.step.Node.File, name: b.step.Node.Name, compiled: b.compiled, text: b.text, reads: b.reads, catalog: b.run.catalog,
	})
}

// explain turns an error of a publish into what the user is told.
func (b *builder) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	var drift *materialize.DriftError
	var failed *auditError
	var fault *materialize.FaultError
	var damaged *lake.DamageError
	switch {
	case errors.As(err, &damaged):
		return damaged.Diagnostic()
	case errors.As(err, &fault):
		return inFile(fault.Diagnostic(), b.step.Node.File)
	case errors.As(err, &failed):
		return failed.diagnostic(b.step.Node)
	case errors.As(err, &drift):
		return inFile(drift.Diagnostic(), b.step.Node.File)
	}
	return inFile(b.place(b.unreadable(ctx, err)), b.step.Node.File)
}

// unreadable blames a damaged file, where one is, for an error of the query.
func (b *builder) unreadable(ctx context.Context, err error) error {
	reads := append(b.run.catalog.named(b.step.Node.Refs), b.reads...)
	return b.run.catalog.unreadable(ctx, b.session, err, reads)
}

// readOnly runs one query of a template and gives all of its rows.
func (s *session) readOnly(ctx context.Context, sql string) ([]string, [][]any, error) {
	columns, rows, err := s.askReadOnly(ctx, sql)
	var e *EngineError
	var p *sqlProblem
	switch {
	case errors.As(err, &e):
		err = &askedFault{msg: messageOf(e), hint: hintOf(e), err: err}
	case errors.As(err, &p):
		err = &askedFault{msg: named(p.msg, "-"), hint: named(p.hint, "-"), err: err}
	}
	return columns, rows, err
}

// askedFault is what is wrong with a query of a template, in rbt's words.
type askedFault struct {
	msg, hint string
	err       error
}

func (f *askedFault) Error() string { return f.msg }
func (f *askedFault) Unwrap() error { return f.err }

// Hint is what may be done about it, or "".
func (f *askedFault) Hint() string { return f.hint }

func (s *session) askReadOnly(ctx context.Context, sql string) ([]string, [][]any, error) {
	st, err := oneQuery(sql)
	if err != nil {
		return nil, nil, err
	}
	var types []duckdb.Type
	if err := s.prepare(ctx, st, func(prepared driver.Stmt) (err error) {
		types, err = queryTypes(prepared)
		return err
	}); err != nil {
		return nil, nil, err
	}
	var rows [][]any
	columns, err := s.query(ctx, st.text, func(v []any) error {
		if len(rows) == maxTemplateRows {
			return fmt.Errorf("the query of a template gives more than %d rows", maxTemplateRows)
		}
		row := slices.Clone(v)
		for i, typ := range types {
			if t, ok := row[i].(time.Time); ok {
				row[i] = templateTime(t, typ)
			}
		}
		rows = append(rows, row)
		return nil
	})
	return columns, rows, err
}

// templateTime gives a time of a type as templates take it.
func templateTime(t time.Time, typ duckdb.Type) any {
	switch typ {
	case duckdb.TYPE_DATE:
		return project.Day{Time: t}
	case duckdb.TYPE_TIME:
		if t.Nanosecond() != 0 {
			return t.UTC().Format("15:04:05.000000")
		}
		return t.UTC().Format(time.TimeOnly)
	case duckdb.TYPE_TIMESTAMP, duckdb.TYPE_TIMESTAMP_S, duckdb.TYPE_TIMESTAMP_MS, duckdb.TYPE_TIMESTAMP_NS:
		return project.Local{Time: t}
	}
	return t
}

// queryTypes gives the types of the columns of a query, which it must be.
func queryTypes(prepared driver.Stmt) ([]duckdb.Type, error) {
	if err := mustBeSelect(prepared); err != nil {
		return nil, err
	}
	// mustBeSelect knows that it is one of the driver's own.
	stmt := prepared.(*duckdb.Stmt)
	n, err := stmt.ColumnCount()
	if err != nil {
		return nil, fmt.Errorf("count the columns of a query: %w", err)
	}
	types := make([]duckdb.Type, n)
	for i := range types {
		if types[i], err = stmt.ColumnType(i); err != nil {
			return nil, fmt.Errorf("ask the type of a column: %w", err)
		}
	}
	return types, nil
}

// maxTemplateRows bounds what a template can hold in memory.
const maxTemplateRows = 100_000
