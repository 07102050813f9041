package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// testsByNode gives the assertions about each node, as the graph has them.
func testsByNode(g *plan.Graph) map[*plan.Node][]*plan.TestNode {
	out := map[*plan.Node][]*plan.TestNode{}
	for _, t := range g.Tests() {
		if t.Test != nil && t.About != nil {
			out[t.About] = append(out[t.About], t)
		}
	}
	return out
}

// columnsOf gives the columns of what a test looks at, nil where they are not
// known.
func (c *checker) columnsOf(t *plan.TestNode) []lake.Column {
	schema, name := "main", testedRelation(t.About, t.Test)
	if t.About.Source != nil {
		schema, name = t.About.Source.Group, t.About.Source.Name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.columns[relationKey(schema, name)]
}

// nodeTests finds mistakes in the assertions about a node whose columns are
// known: a column that is not there, a value that its type cannot hold, SQL that
// does not bind.
func (c *checker) nodeTests(ctx context.Context, s *session, n *plan.Node) error {
	var problems diag.List
	for _, t := range c.tests[n] {
		columns := c.columnsOf(t)
		if columns == nil {
			continue
		}
		if err := c.nodeTest(ctx, s, t, columns, false); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			problems = append(problems, asList(err, t.File)...)
		}
	}
	return problems.Err()
}

// nodeTest finds mistakes in an assertion about a node. Not before all is known
// that can be is SQL looked at that reads other nodes too.
func (c *checker) nodeTest(ctx context.Context, s *session, t *plan.TestNode, columns []lake.Column, all bool) error {
	if t.Compiled != nil {
		if isWide(t) {
			return nil // the others may not be known yet
		}
		return c.ownTest(ctx, s, t)
	}
	schema, name := "main", testedRelation(t.About, t.Test)
	if t.About.Source != nil {
		schema, name = t.About.Source.Group, t.About.Source.Name
	}
	// The other side of the relationship is looked at when everything is known.
	built, err := genericCheck(t.Test, subject{from: relationName(schema, name), columns: columns}, relationName(schema, name), c.e.o.Now())
	if err != nil && all {
		return nil // it was told before
	}
	if err == nil {
		err = s.checkValues(ctx, t.Test, columns)
	}
	if err != nil || t.Test.Args.To != "" || t.Test.Args.SQL == "" && t.Test.Where == "" && t.Test.Kind != "matches" {
		return err
	}
	if isWide(t) && !all {
		return nil // its condition may read what is not known yet
	}
	return c.bindTest(ctx, s, t, built, columns)
}

// bindTest binds a built-in assertion about a relation of these columns.
func (c *checker) bindTest(ctx context.Context, s *session, t *plan.TestNode, built check, columns []lake.Column) error {
	st, err := oneQuery(built.Rows)
	if err == nil {
		err = c.makeViews(ctx, s)
	}
	if err == nil {
		err = s.checkQuery(ctx, st)
	}
	if err == nil {
		err = s.checkConditions(ctx, t.Test, columns)
	}
	var problem *sqlProblem
	var e *EngineError
	switch {
	case errors.As(err, &problem):
		return problem.SQLDiagnostic(t.Test.Pos)
	case errors.As(err, &e):
		d := diag.Diagnostic{Code: codeOf(e), Pos: t.Test.Pos, Msg: "test " + t.Test.Kind + ": " + messageOf(e), Hint: hintOf(e)}
		switch {
		case d.Code == diag.SQLUnknownColumn && e.Name != "":
			d.Hint = columnsHint(e.Name, columns)
		case d.Code == diag.SQLSyntax && t.Test.Args.SQL != "" && len(t.Test.Columns) == 1:
			whole := t.Test.Columns[0] + " " + t.Test.Args.SQL
			if is, err := s.Describe(ctx, conditionType(whole, columns)); err == nil && len(is) == 1 && is[0].Type == "BOOLEAN" {
				d.Hint = "at a column too the whole condition is written: " + firstRunes(whole, 60)
			}
		}
		return d
	}
	return err
}

// checkConditions refuses a where or an expression that can be neither true nor
// false. Of a text, only the values tell.
func (s *session) checkConditions(ctx context.Context, t *project.Test, columns []lake.Column) error {
	for _, sql := range []string{t.Where, t.Args.SQL} {
		if sql == "" {
			continue
		}
		is, err := s.Describe(ctx, conditionType(sql, columns))
		if err != nil || len(is) != 1 {
			continue // it reads other relations than the one that is tested
		}
		switch as := comparedAs(is[0].Type); as {
		case "", "number":
		default:
			return diag.Errorf(diag.SQLBind, t.Pos, "test %s: a condition is true or false, and this one has the type %s: %s", t.Kind, is[0].Type, firstRunes(strings.Join(strings.Fields(sql), " "), 60))
		}
	}
	return nil
}

// relationship binds a relationship whose condition is SQL, or whose sides have two
// types, which there may be no comparing.
func (c *checker) relationship(ctx context.Context, s *session, t *plan.TestNode) error {
	other := relationName(t.Test.Args.Ref.Relation())
	c.mu.Lock()
	fields := c.columns[relationKey(t.Test.Args.Ref.Relation())]
	c.mu.Unlock()
	columns := c.columnsOf(t)
	field, err := findField(t.Test, fields)
	if _, untold := findColumn(t.Test, t.Test.Columns[0], columns); fields == nil || columns == nil || err != nil || untold != nil {
		return nil // it was told before, or nobody can know
	}
	schema, name := "main", testedRelation(t.About, t.Test)
	if t.About.Source != nil {
		schema, name = t.About.Source.Group, t.About.Source.Name
	}
	built, err := genericCheck(t.Test, subject{from: relationName(schema, name), columns: columns, field: field.Type}, other, c.e.o.Now())
	if err != nil || t.Test.Where == "" {
		return err
	}
	return c.bindTest(ctx, s, t, built, columns)
}

// conditionType is a query whose one column has the type of a condition about a
// relation of these columns.
func conditionType(sql string, columns []lake.Column) string {
	return "SELECT (" + sql + "\n) AS c FROM (" + emptyRelation(columns) + ") AS tested"
}

// isWide reports whether a test reads more than the node that it is about, if it
// is about one.
func isWide(t *plan.TestNode) bool { return t.About == nil || len(t.Reads) != 1 }

// ownTest binds a test that is SQL of the user.
func (c *checker) ownTest(ctx context.Context, s *session, t *plan.TestNode) error {
	st, err := oneQuery(t.Compiled.SQL)
	if err == nil {
		err = c.makeViews(ctx, s)
	}
	if err == nil {
		err = s.checkQuery(ctx, st)
	}
	if err != nil {
		return placeError(err, placing{file: t.File, name: t.Name, compiled: t.Compiled, text: st, names: c.names})
	}
	return nil
}

// wideTests binds tests over several nodes, when all columns are known that can
// be, if one of the nodes that are judged is among them.
func (c *checker) wideTests(ctx context.Context, g *plan.Graph, nodes []*plan.Node) {
	judged := make(map[*plan.Node]bool, len(nodes))
	for _, n := range nodes {
		judged[n] = true
	}
	for _, t := range g.Tests() {
		if t.Test == nil || t.Compiled != nil && t.Compiled.Queried || !isWide(t) && t.Test.Args.To == "" || !c.knows(t.Reads) || !slices.ContainsFunc(t.Reads, func(n *plan.Node) bool { return judged[n] }) {
			continue
		}
		if err := c.wideTest(ctx, t); err != nil && ctx.Err() == nil {
			c.wide = append(c.wide, asList(err, t.File)...)
		}
	}
}

// wideTest binds one test over several nodes: SQL of the user, a relationship, or
// an assertion whose condition reads other nodes. Of other assertions nodeTest has
// told all.
func (c *checker) wideTest(ctx context.Context, t *plan.TestNode) error {
	switch {
	case t.Compiled != nil:
		return c.ownTest(ctx, c.sessions[0], t)
	case t.About != nil && t.Test.Args.To != "":
		return c.relationship(ctx, c.sessions[0], t)
	case t.About == nil || t.Test.Args.SQL == "" && t.Test.Where == "" || c.columnsOf(t) == nil:
		return nil
	}
	return c.nodeTest(ctx, c.sessions[0], t, c.columnsOf(t), true)
}

// fields finds relationships to a column that the other side does not have, when
// all columns are known that can be.
func (c *checker) fields(nodes []*plan.Node) {
	for _, n := range nodes {
		var problems diag.List
		for _, t := range c.tests[n] {
			if t.Test.Args.To == "" || t.Test.Args.Field == "" {
				continue
			}
			columns := c.columns[relationKey(t.Test.Args.Ref.Relation())]
			if columns == nil {
				continue
			}
			if _, err := findField(t.Test, columns); err != nil {
				problems = append(problems, asList(err, t.File)...)
			}
		}
		if err := problems.Err(); err != nil {
			c.problems[n] = append(slices.Clip(asProblems(c.problems[n], n.File)), problems...)
		}
	}
}

func asProblems(err error, file string) diag.List {
	if err == nil {
		return nil
	}
	return asList(err, file)
}

// unitProblems runs the unit tests of nodes and gives those that could not be
// run; that one fails is no mistake in it.
func (e *Engine) unitProblems(ctx context.Context, g *plan.Graph, nodes []*plan.Node, columns map[string][]lake.Column) (problems diag.List, err error) {
	judged := make(map[*plan.Node]bool, len(nodes))
	for _, n := range nodes {
		judged[n] = true
	}
	var units []*plan.TestNode
	for _, t := range g.Tests() {
		if t.Unit != nil && judged[t.About] {
			units = append(units, t)
		}
	}
	if len(units) == 0 {
		return nil, nil
	}
	db, err := e.database(ctx)
	if err != nil {
		return nil, err
	}
	bench, err := openBench(ctx, db, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bench.close(ctx)) }()
	runner := unitRunner{e: e, catalog: newCatalog(e.o.Project, g, e.parser, nil), runStartedAt: e.o.Now().UTC(),
		types: func(_ context.Context, r *relation) []lake.Column { return columns[relationKey(r.schema, r.name)] }}
	for _, t := range units {
		if result := runner.test(ctx, bench, t); result.Err != nil {
			problems = append(problems, asList(result.Err, t.File)...)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return problems, nil
}
