package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
	"rbt/materialize"
)

// unitBench is where one worker runs unit tests: a database of its own in
// memory, in which nothing that is published has a name. Each test runs in a
// transaction that is rolled back.
type unitBench struct {
	session *session
	catalog string // its name in the engine
}

// openBench makes a bench. number tells those of one engine apart.
func openBench(ctx context.Context, db *database, number int) (*unitBench, error) {
	s, err := db.session(ctx)
	if err != nil {
		return nil, err
	}
	b := &unitBench{session: s, catalog: fmt.Sprintf("rbt_unit_%d", number)}
	for _, sql := range []string{"ATTACH ':memory:' AS " + b.catalog, "USE " + b.catalog} {
		if err := s.Exec(ctx, sql); err != nil {
			return nil, errors.Join(fmt.Errorf("make room for unit tests: %w", err), s.Close())
		}
	}
	return b, nil
}

// close gives the connection back as it was: connections are used again.
func (b *unitBench) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, sql := range []string{"USE memory", "DETACH " + b.catalog} {
		if err := b.session.Exec(ctx, sql); err != nil {
			return errors.Join(fmt.Errorf("end unit tests: %w", err), b.session.Close())
		}
	}
	return b.session.Close()
}

// unitTypes gives the columns that a relation has, for what a unit test does
// not say; none where they are not known.
type unitTypes func(ctx context.Context, r *relation) []lake.Column

// unitRunner runs unit tests. Nothing is built for them and nothing that is
// published is read, but the types of its columns.
type unitRunner struct {
	e            *Engine
	catalog      *catalog // for the names of a project
	types        unitTypes
	runStartedAt time.Time
	invocationID string
}

// test runs one unit test. What goes wrong is in the result.
func (u unitRunner) test(ctx context.Context, bench *unitBench, n *plan.TestNode) *TestResult {
	started := u.e.o.Now()
	c := unitCase{unitRunner: u, bench: bench, session: bench.session, node: n, unit: n.Unit, result: newUnitResult(n)}
	if err := c.inTransaction(ctx); err != nil {
		c.result.Status, c.result.Err = StatusError, err
	}
	c.result.Elapsed = u.e.o.Now().Sub(started)
	return c.result
}

func newUnitResult(n *plan.TestNode) *TestResult {
	u := n.Unit
	return &TestResult{
		ID: n.ID, Name: u.Name, Node: u.Model, Kind: unitTestKind, Label: u.Name, File: u.Pos.File, Severity: diag.Error, Checked: -1,
	}
}

// unitTestKind is the kind of a unit test's result.
const unitTestKind = "unit_test"

// unitCase is one unit test being run.
type unitCase struct {
	unitRunner
	bench   *unitBench
	session *session
	node    *plan.TestNode
	unit    *project.UnitTest
	result  *TestResult

	given map[*relation]bool
	this  bool // rows of this are given
}

func (c *unitCase) inTransaction(ctx context.Context) (err error) {
	if err := c.session.Exec(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.session.Exec(context.WithoutCancel(ctx), "ROLLBACK")) }()
	return c.run(ctx)
}

func (c *unitCase) run(ctx context.Context) error {
	if err := c.giveInputs(ctx); err != nil {
		return err
	}
	increment := c.isIncrement()
	if increment {
		if err := c.giveThis(ctx); err != nil {
			return err
		}
	}
	q, err := c.query(ctx, increment)
	if err != nil {
		return err
	}
	c.result.SQL, c.result.Checked = q.compiled.SQL, 0
	diff, err := c.compare(ctx, c.unit.Expect, q)
	if err != nil {
		return err
	}
	found := diff.found()
	if c.unit.ExpectTable != nil && diff.failures() == 0 {
		all := q
		all.sql = "SELECT * FROM " + c.name("main", c.unit.Model) + " UNION ALL BY NAME SELECT * FROM (\n" + q.sql + "\n)"
		if diff, err = c.compare(ctx, *c.unit.ExpectTable, all); err != nil {
			return err
		}
		found = "in the table after the increment, " + diff.found()
		c.result.Expected = "in the table after the increment, " + c.result.Expected
	}
	c.result.Status, c.result.Failures = StatusPass, int64(diff.failures())
	if c.result.Failures > 0 {
		c.result.Status, c.result.Found = StatusFail, found
		c.result.Columns, c.result.Sample = diff.table()
	}
	return nil
}

// isIncrement reports whether the increment is tested: what the test says of
// is_incremental, else whether it speaks of the published table.
func (c *unitCase) isIncrement() bool {
	if said, ok := c.unit.Macros["is_incremental"].(bool); ok {
		return said
	}
	return c.unit.ExpectTable != nil || slices.ContainsFunc(c.unit.Given, isThis)
}

// isThis reports whether a fixture gives rows of the model itself.
func isThis(f project.Fixture) bool { return f.Ref.Node == "" }

// name is a relation of the bench.
func (c *unitCase) name(schema, name string) string {
	return c.bench.catalog + "." + relationName(schema, name)
}

// giveInputs makes a table of the rows of each input.
func (c *unitCase) giveInputs(ctx context.Context) error {
	c.given = map[*relation]bool{}
	var problems diag.List
	for _, f := range c.unit.Given {
		if isThis(f) {
			c.this = true
			continue
		}
		r, ok := c.catalog.lookup(f.Ref.Relation())
		if !ok {
			problems = append(problems, diag.Errorf(diag.UnitInput, f.Pos, "the project has no relation %s", f.Input))
			continue
		}
		if !c.mayRead(r) {
			problems = append(problems, c.inVain(f, r))
			continue
		}
		c.given[r] = true
		if err := c.give(ctx, f, r.schema, r.name, c.types(ctx, r)); err != nil {
			problems = append(problems, c.fixtureProblem(f, "the rows of "+f.Input, err))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			break // an error ends the transaction
		}
	}
	return problems.Err()
}

// giveThis makes the table to which the increment is added. Its columns are
// those that the model gives when it is built whole; where that cannot be asked,
// those that are published.
func (c *unitCase) giveThis(ctx context.Context) error {
	m := c.node.About.Model
	columns := c.types(ctx, c.self())
	if columns == nil {
		columns = c.ownColumns(ctx)
	}
	for _, f := range c.unit.Given {
		if isThis(f) {
			if err := c.give(ctx, f, "main", m.Name, columns); err != nil {
				return diag.List{c.fixtureProblem(f, "the rows of this", err)}
			}
			return nil
		}
	}
	if columns == nil {
		return diag.Errorf(diag.UnitInput, c.unit.Pos, "the unit test %s gives no rows for this, and the columns of %s are not known", c.unit.Name, m.Name).
			WithHint("add `- {input: this, rows: […]}` to `given`")
	}
	return c.session.Exec(ctx, "CREATE TABLE "+c.name("main", m.Name)+" AS "+emptyRelation(columns))
}

func (c *unitCase) self() *relation {
	r, _ := c.catalog.lookup("main", c.unit.Model)
	return r
}

// ownColumns gives the columns of the model by its declared types; nil unless
// every one has a type.
func (c *unitCase) ownColumns(context.Context) []lake.Column {
	var columns []lake.Column
	for _, d := range c.node.About.Model.Columns {
		if d.Type == "" {
			return nil
		}
		columns = append(columns, lake.Column{Name: d.Name, Type: d.Type})
	}
	return columns
}

// give makes a table of a fixture. columns are those of the relation, nil where
// they are not known.
func (c *unitCase) give(ctx context.Context, f project.Fixture, schema, name string, columns []lake.Column) error {
	query, err := c.fixtureQuery(ctx, f, columns)
	if err != nil {
		return err
	}
	if schema != "main" {
		if err := c.session.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+c.bench.catalog+"."+quoteIdent(schema)); err != nil {
			return err
		}
	}
	return c.session.Exec(ctx, "CREATE TABLE "+c.name(schema, name)+" AS\n"+query)
}

// fixtureQuery is a fixture as a query with the columns of its relation.
func (c *unitCase) fixtureQuery(ctx context.Context, f project.Fixture, columns []lake.Column) (string, error) {
	if r, ok := c.catalog.lookup(f.Ref.Relation()); ok && f.Unsaid && !isThis(f) && r.node.Seed != nil {
		query, _, err := seedQuery(c.e.o.Project, r.node.Seed)
		return query, err
	}
	if f.SQL != "" {
		return c.fixtureSQL(ctx, f, columns)
	}
	rows, err := readFixture(f)
	if err != nil {
		return "", err
	}
	if columns == nil {
		if len(rows.columns) == 0 {
			return "", errors.New("its columns are not known, and no row names them")
		}
		return rows.query(rows.typed())
	}
	if err := knownColumns(rows.columns, columns); err != nil {
		return "", err
	}
	return rows.query(columns)
}

// fixtureSQL is the query of a fixture, its columns those of the relation.
func (c *unitCase) fixtureSQL(ctx context.Context, f project.Fixture, columns []lake.Column) (string, error) {
	st, err := oneQuery(f.SQL)
	if err != nil {
		return "", err
	}
	if err := c.session.checkQuery(ctx, st); err != nil {
		return "", err
	}
	has, err := c.session.Describe(ctx, st.text)
	if err != nil || columns == nil {
		return st.text, err
	}
	types, names := map[string]string{}, make([]string, len(has))
	for i, h := range has {
		types[strings.ToLower(h.Name)], names[i] = h.Type, h.Name
	}
	if err := knownColumns(names, columns); err != nil {
		return "", err
	}
	list := make([]string, len(columns))
	for i, col := range columns {
		name := quoteIdent(col.Name)
		list[i] = fixtureCast(name, types[strings.ToLower(col.Name)], col.Type) + " AS " + name
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM (\n" + st.text + "\n) AS fixture", nil
}

// fixtureCast turns a column of a fixture's query into the type of its relation.
// Between numbers DuckDB 1.5.6 rounds, so that what comes out is compared.
func fixtureCast(e, from, to string) string {
	switch {
	case from == "" || from == `"NULL"`:
		return "CAST(NULL AS " + to + ")"
	case from == to:
		return e
	case castClass(strings.SplitN(from, "(", 2)[0]) == 1 && castClass(strings.SplitN(to, "(", 2)[0]) == 1:
		return fmt.Sprintf("CASE WHEN %[1]s IS NULL OR CAST(%[1]s AS %[2]s) = %[1]s THEN CAST(%[1]s AS %[2]s) ELSE error(%[3]s || %[1]s) END",
			e, to, quoteText("no value of the type "+to+": "))
	}
	return "CAST(" + e + " AS " + to + ")"
}

// knownColumns makes sure that a fixture names only columns that there are.
func knownColumns(names []string, columns []lake.Column) error {
	all := make([]string, len(columns))
	known := map[string]bool{}
	for i, col := range columns {
		all[i], known[strings.ToLower(col.Name)] = col.Name, true
	}
	for _, name := range names {
		if known[strings.ToLower(name)] {
			continue
		}
		if near := diag.Nearest(name, all); near != "" {
			return fmt.Errorf("there is no column %q; did you mean %q?", name, near)
		}
		return fmt.Errorf("there is no column %q; columns: %s", name, strings.Join(all, ", "))
	}
	return nil
}

// unitQuery is the SQL of the tested model as its columns would be stored.
type unitQuery struct {
	compiled *project.Compiled
	sql      string
	columns  []lake.Column
}

// query compiles the model for the test and binds it over the inputs.
func (c *unitCase) query(ctx context.Context, increment bool) (unitQuery, error) {
	n := c.node.About
	compiled, err := c.compile(ctx, increment)
	if err != nil {
		return unitQuery{}, err
	}
	q := unitQuery{compiled: compiled}
	st, err := oneQuery(compiled.SQL)
	if err == nil {
		err = c.checkInputs(compiled)
	}
	if err == nil {
		err = c.session.checkQuery(ctx, st)
	}
	if err == nil && n.Model.Materialization == project.Ephemeral {
		q.sql = st.text
		q.columns, err = c.session.Describe(ctx, st.text)
	} else if err == nil {
		q.sql, q.columns, err = materialize.NewQuery(st.text, declaredColumns(n.Model), n.Model.ContractEnforced).Select(ctx, c.session)
	}
	if err != nil {
		return q, c.placed(err, compiled, st)
	}
	return q, nil
}

// compile renders the model with what the test replaces. Where nothing is, the
// text of the plan is used.
func (c *unitCase) compile(ctx context.Context, increment bool) (*project.Compiled, error) {
	n := c.node.About
	ready := n.Full
	if increment && n.Increment != nil {
		ready = n.Increment
	}
	if len(c.unit.Vars) == 0 && len(c.overrides()) == 0 && c.unit.Now == nil && ready != nil && !ready.Queried {
		return ready, nil
	}
	o := project.CompileOptions{
		Incremental: increment, RunStartedAt: c.runStartedAt, InvocationID: c.invocationID, Vars: c.unit.Vars, Overrides: c.overrides(),
	}
	if c.unit.Now != nil {
		o.RunStartedAt = *c.unit.Now
	}
	if ready != nil && ready.Queried {
		o.Query = func(sql string) ([]string, [][]any, error) { return c.session.readOnly(ctx, sql) }
	}
	compiled, problems := c.e.o.Project.Compile(ctx, n.Model, o)
	if err := problems.Err(); err != nil {
		return nil, c.noted(problems)
	}
	return compiled, nil
}

// overrides are the macros that the test replaces, but for is_incremental, which
// settles which rendering is tested.
func (c *unitCase) overrides() map[string]any {
	if _, ok := c.unit.Macros["is_incremental"].(bool); !ok {
		return c.unit.Macros
	}
	rest := maps.Clone(c.unit.Macros)
	delete(rest, "is_incremental")
	return rest
}

// checkInputs makes sure that the test gives what the model reads, and nothing
// else.
func (c *unitCase) checkInputs(compiled *project.Compiled) error {
	reads, err := c.readBy(compiled)
	if err != nil {
		return err
	}
	var problems diag.List
	self := c.self()
	for _, r := range reads {
		if c.given[r] || r == self {
			continue
		}
		problems = append(problems, diag.Errorf(diag.UnitInput, c.unit.Pos, "the unit test %s gives no rows for %s, which %s reads", c.unit.Name, inputName(r), c.unit.Model).
			WithHint("add `- {input: %s, rows: []}` to `given` where none are needed", inputName(r)))
	}
	for _, f := range c.unit.Given {
		if r, ok := c.catalog.lookup(f.Ref.Relation()); ok && !isThis(f) && !c.reads(r) && !slices.Contains(reads, r) {
			problems = append(problems, c.inVain(f, r))
		}
	}
	return problems.Err()
}

// reads reports whether the model reads a relation in the renderings of a run.
func (c *unitCase) reads(r *relation) bool {
	return slices.ContainsFunc(c.node.About.Refs, func(ref project.Ref) bool {
		other, ok := c.catalog.lookup(ref.Relation())
		return ok && other == r
	})
}

// mayRead reports whether the model reads a relation, or could with what the
// test replaces.
func (c *unitCase) mayRead(r *relation) bool {
	return c.reads(r) || len(c.unit.Vars) > 0 || len(c.overrides()) > 0
}

func (c *unitCase) inVain(f project.Fixture, r *relation) diag.Diagnostic {
	return diag.Errorf(diag.UnitInput, f.Pos, "the unit test %s gives rows for %s, which %s does not read", c.unit.Name, inputName(r), c.unit.Model)
}

// readBy gives the relations that a compiled text reads, in the order of names.
func (c *unitCase) readBy(compiled *project.Compiled) ([]*relation, error) {
	tables, err := c.e.parser.Tables(compiled.SQL)
	if err != nil {
		return nil, err
	}
	var out []*relation
	if tables.Refused {
		for _, ref := range compiled.Refs {
			if r, ok := c.catalog.lookup(ref.Relation()); ok {
				out = append(out, r)
			}
		}
	}
	for _, t := range tables.Names {
		if r, ok := c.catalog.lookup(t.Schema, t.Name); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *relation) int {
		return strings.Compare(relationKey(a.schema, a.name), relationKey(b.schema, b.name))
	})
	return slices.Compact(out), nil
}

// inputName is a relation as a unit test names it.
func inputName(r *relation) string {
	if r.node.Source != nil {
		return fmt.Sprintf("source('%s', '%s')", r.schema, r.name)
	}
	return fmt.Sprintf("ref('%s')", r.name)
}

// placed gives an error of the model's text its place.
func (c *unitCase) placed(err error, compiled *project.Compiled, st statement) error {
	if list := (diag.List)(nil); errors.As(err, &list) && slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == diag.UnitInput }) {
		return err
	}
	n := c.node.About
	placed := inFile(placeError(err, placing{file: n.File, name: n.Name, compiled: compiled, text: st}), n.File)
	var list diag.List
	var one diag.Diagnostic
	switch {
	case errors.As(placed, &list):
		return c.noted(list)
	case errors.As(placed, &one):
		return one.WithNote(c.unit.Pos, "in the unit test %s", c.unit.Name)
	}
	return placed
}

func (c *unitCase) noted(list diag.List) diag.List {
	out := slices.Clone(list)
	for i := range out {
		out[i] = out[i].WithNote(c.unit.Pos, "in the unit test %s", c.unit.Name)
	}
	return out
}

// fixtureProblem says what is wrong with rows of the test.
func (c *unitCase) fixtureProblem(f project.Fixture, what string, err error) diag.Diagnostic {
	var d diag.Diagnostic
	var e *EngineError
	var p *sqlProblem
	switch {
	case errors.As(err, &d):
		return d
	case errors.As(err, &p):
		return p.SQLDiagnostic(f.Pos)
	case errors.As(err, &e):
		d = diag.Errorf(diag.UnitFixture, f.Pos, "%s in the unit test %s: %s", what, c.unit.Name, messageOf(e))
		if f.SQL != "" { // values have no SQL to mend
			d.Hint = hintOf(e)
		}
		return d
	}
	return diag.Errorf(diag.UnitFixture, f.Pos, "%s in the unit test %s: %v", what, c.unit.Name, err)
}
