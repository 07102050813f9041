package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
	"rbt/materialize"
	"rbt/materialize/ingest"
)

// Check binds models against empty relations that have the columns of what they
// read: types flow from declared source columns and headers through the graph,
// and no data is read. It reports every misspelt column, unknown function and
// wrong type that can be known before anything runs. Nodes below one whose
// columns cannot be known are not judged.
//
// Nodes are those to be judged; what they read is bound too, and its problems
// are left to itself.
func (e *Engine) Check(ctx context.Context, g *plan.Graph, nodes []*plan.Node) (diag.List, error) {
	c, err := e.bindEmpty(ctx, g, nodes, nil)
	if err != nil {
		return nil, err
	}
	// The text of a model that is wrong is wrong in its unit tests too.
	sound := slices.DeleteFunc(slices.Clone(nodes), func(n *plan.Node) bool { return !c.known[n] })
	problems, err := e.unitProblems(ctx, g, sound, c.columns)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := c.problems[n]; err != nil {
			problems = append(problems, asList(err, n.File)...)
		}
	}
	return append(problems, c.wide...).Sort(), nil
}

// bindEmpty binds nodes and all that they read in an instance of its own. Where
// the run is given, it binds what that run will execute, over published columns
// of what the run does not build.
func (e *Engine) bindEmpty(ctx context.Context, g *plan.Graph, nodes []*plan.Node, during *foresight) (_ *checker, err error) {
	db, err := openDatabase(ctx, project.Engine{Settings: e.o.Project.Engine.Settings, DuckDBThreads: 1}, filepath.Join(tempDirFor(e.o.Project.TargetDir, e.o.PID), "check"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := &checker{e: e, during: during, names: newCatalog(e.o.Project, g, e.parser, nil).names(), known: map[*plan.Node]bool{}, problems: map[*plan.Node]error{}, columns: map[string][]lake.Column{}, unmade: map[string]string{}, tests: testsByNode(g),
		bindings: map[*plan.Node]*binding{}, sources: map[*plan.Node]*foreseenSource{}, missing: map[*plan.Node]error{}}
	defer func() { err = errors.Join(err, c.close()) }()
	if during == nil {
		c.checked = newCheckCache(e.o.Project, e.o.Version, g)
	}
	if err := c.schemas(ctx, db, g); err != nil {
		return nil, err
	}
	order, jobs := neededNodes(g, nodes, during)
	workers := min(workersFor(0, e.o.Project.Engine), max(1, len(jobs)))
	if err := c.open(ctx, db, workers); err != nil {
		return nil, err
	}
	schedule{
		jobs: jobs, workers: workers, grace: e.o.Grace,
		run: func(ctx context.Context, worker, i int) jobResult {
			err := c.node(ctx, c.sessions[worker], order[i])
			if err == nil {
				err = c.nodeTests(ctx, c.sessions[worker], order[i])
			}
			return jobResult{commit: func() { c.problems[order[i]] = err }}
		},
		crashed: func(i int, value any, _ []byte) jobResult {
			return jobResult{commit: func() { c.problems[order[i]] = fmt.Errorf("a defect of rbt: %v", value) }}
		},
		skip: func(int, int) {},
	}.do(ctx)
	c.fields(nodes)
	if during == nil {
		c.wideTests(ctx, g, nodes)
		_ = c.checked.save() // one that cannot be written costs the next check its time
	}
	return c, ctx.Err()
}

// neededNodes gives nodes and all that they read, parents first, as jobs. What is
// above published data is not needed.
func neededNodes(g *plan.Graph, nodes []*plan.Node, during *foresight) ([]*plan.Node, []job) {
	needed := map[*plan.Node]bool{}
	for todo := slices.Clone(nodes); len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !needed[at] {
			needed[at] = true
			if !during.published(at) {
				todo = append(todo, at.Parents...)
			}
		}
	}
	var order []*plan.Node
	var jobs []job
	place := map[*plan.Node]int{}
	for _, n := range g.Order() {
		if !needed[n] {
			continue
		}
		var after []int
		for _, p := range n.Parents {
			if at, ok := place[p]; ok {
				after = append(after, at)
			}
		}
		place[n] = len(order)
		order, jobs = append(order, n), append(jobs, job{after: after})
	}
	return order, jobs
}

// asList gives an error as diagnostics.
func asList(err error, file string) diag.List {
	err = inFile(err, file)
	var list diag.List
	var one diag.Diagnostic
	switch {
	case errors.As(err, &list):
		return list
	case errors.As(err, &one):
		return diag.List{one}
	}
	return diag.List{diag.Errorf(diag.SQLBind, diag.Pos{File: file}, "%v", err)}
}

// checker binds nodes, parents before children, several at once.
type checker struct {
	e        *Engine
	during   *foresight  // nil where no run is about to start
	names    []string    // of all relations
	sessions []*session  // by worker
	checked  *checkCache // of earlier checks; nil where a run is about to start
	problems map[*plan.Node]error
	tests    map[*plan.Node][]*plan.TestNode
	wide     diag.List // problems of tests that are about no single node

	mu      sync.Mutex
	known   map[*plan.Node]bool      // nodes whose columns are known and bound
	columns map[string][]lake.Column // by relationKey
	unmade  map[string]string        // statements that make views which nobody needed yet, by relationKey

	making   sync.Mutex
	bindings map[*plan.Node]*binding        // of models
	sources  map[*plan.Node]*foreseenSource // of Parquet files
	missing  map[*plan.Node]error           // why a source that keeps undeclared columns has no file
}

// open makes the sessions of the workers.
func (c *checker) open(ctx context.Context, db *database, workers int) error {
	for range workers {
		s, err := db.session(ctx)
		if err != nil {
			return err
		}
		c.sessions = append(c.sessions, s)
		if s.binder, err = db.session(ctx); err != nil {
			return err
		}
		// Nothing runs there, and optimising is a third of what binding costs.
		if err := s.binder.Exec(ctx, "PRAGMA disable_optimizer"); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) close() error {
	var err error
	for _, s := range c.sessions {
		if s.binder != nil {
			err = errors.Join(err, s.binder.Close())
		}
		err = errors.Join(err, s.Close())
	}
	return err
}

// schemas makes the schemas of all sources.
func (c *checker) schemas(ctx context.Context, db *database, g *plan.Graph) error {
	made := map[string]bool{}
	for _, n := range g.Nodes() {
		if n.Source == nil || made[strings.ToLower(n.Source.Group)] {
			continue
		}
		made[strings.ToLower(n.Source.Group)] = true
		if _, err := db.db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+quoteIdent(n.Source.Group)); err != nil {
			return fmt.Errorf("make the schema %s: %w", n.Source.Group, plainError(err))
		}
	}
	return nil
}

func (c *checker) knows(nodes []*plan.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(nodes, func(n *plan.Node) bool { return !c.known[n] })
}

// node binds one node and makes its name known, where its columns can be known.
func (c *checker) node(ctx context.Context, s *session, n *plan.Node) error {
	switch {
	case c.during.published(n):
		return c.stored(ctx, s, n)
	case n.Source != nil:
		return c.source(ctx, s, n)
	case n.Seed != nil:
		query, table, err := seedQuery(c.e.o.Project, n.Seed)
		if err != nil {
			return err
		}
		return c.described(ctx, s, n, query, table)
	case n.Model.Records != nil:
		return c.ingest(ctx, s, n)
	case !c.knows(n.Parents):
		return nil
	}
	return c.model(ctx, s, n)
}

// source makes a source known by the headers of its files; JSON, which has none,
// by its declared columns where nothing else is kept.
func (c *checker) source(ctx context.Context, s *session, n *plan.Node) error {
	table, err := newSourceTable(c.e.o.Project, n.Source, s.db.tempDir)
	if err == nil && c.during != nil && len(table.files) > foreseenFiles {
		return nil
	}
	if err == nil {
		table.schemas = c.e.schemas
	}
	if err != nil {
		// Without files only the declared columns are known, and the run will say
		// that files are missing.
		untyped := slices.ContainsFunc(n.Source.Columns, func(c project.Column) bool { return c.Type == "" })
		if len(n.Source.Columns) == 0 || untyped && n.Source.Format != "csv" {
			return nil // a csv has text where nothing is declared; others say it themselves
		}
		if n.Source.ExtraColumns == "keep" {
			c.mu.Lock()
			c.missing[n] = err
			c.mu.Unlock()
		}
		table = &fileTable{columns: n.Source.Columns}
		return c.define(ctx, s, n, n.Source.Group, n.Source.Name, table.typedColumns())
	}
	isJSON := table.format == "json" || table.format == "ndjson"
	if isJSON && table.extra == "keep" || isJSON && slices.ContainsFunc(table.columns, func(c project.Column) bool { return c.Type == "" }) {
		return nil
	}
	if isJSON {
		return c.define(ctx, s, n, n.Source.Group, n.Source.Name, table.typedColumns())
	}
	stamps, stampErr := table.stamps()
	query, err := table.query(ctx, s)
	if err != nil {
		return err
	}
	if table.format == "parquet" && stampErr == nil {
		c.mu.Lock()
		c.sources[n] = &foreseenSource{table: table, query: query, stamps: stamps}
		c.mu.Unlock()
	}
	return c.described(ctx, s, n, query, table)
}

// described makes a node known by the columns of a query over its files.
func (c *checker) described(ctx context.Context, s *session, n *plan.Node, query string, table *fileTable) error {
	columns, err := s.Describe(ctx, query)
	if err != nil {
		return table.explain(err)
	}
	schema, name := "main", n.Name
	if n.Source != nil {
		schema, name = n.Source.Group, n.Source.Name
	}
	return c.define(ctx, s, n, schema, name, columns)
}

// define makes a relation of these columns known, and its view.
func (c *checker) define(ctx context.Context, s *session, n *plan.Node, schema, name string, columns []lake.Column) error {
	if err := s.Exec(ctx, viewOfNothing(schema, name, columns)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[n] = true
	c.columns[relationKey(schema, name)] = columns
	return nil
}

// defineLater makes a model known, and its view when a query needs that.
func (c *checker) defineLater(n *plan.Node, columns []lake.Column) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := relationKey("main", n.Name)
	c.known[n] = true
	c.columns[key] = columns
	c.unmade[key] = viewOfNothing("main", n.Name, columns)
}

func viewOfNothing(schema, name string, columns []lake.Column) string {
	return "CREATE OR REPLACE VIEW " + relationName(schema, name) + " AS " + emptyRelation(columns)
}

// makeViews makes the views of all that is known.
func (c *checker) makeViews(ctx context.Context, s *session) error {
	c.making.Lock()
	defer c.making.Unlock()
	c.mu.Lock()
	keys := sortedKeys(c.unmade)
	var script strings.Builder
	for _, key := range keys {
		script.WriteString(c.unmade[key] + ";\n")
	}
	c.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	if err := s.Exec(ctx, script.String()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.unmade, key)
	}
	return nil
}

func (c *checker) ingest(ctx context.Context, s *session, n *plan.Node) error {
	program, problems := ingest.Compile(ingestSpec(n.Model))
	if err := problems.Err(); err != nil {
		return err
	}
	for _, o := range program.Outputs() {
		if err := c.define(ctx, s, n, "main", o.Relation, o.Columns); err != nil {
			return err
		}
	}
	return nil
}

// model binds both renderings of a model and makes its stored columns known.
func (c *checker) model(ctx context.Context, s *session, n *plan.Node) error {
	if c.during.appends(n) {
		return c.increment(ctx, s, n)
	}
	columns, err := c.bind(ctx, s, n, n.Full)
	if err != nil || columns == nil {
		return err
	}
	c.defineLater(n, columns)
	if n.Increment == nil || c.during != nil {
		return nil
	}
	_, err = c.bind(ctx, s, n, n.Increment)
	return err
}

// bind gives the columns of a rendering as they would be stored; none where they
// are known only when it runs.
func (c *checker) bind(ctx context.Context, s *session, n *plan.Node, compiled *project.Compiled) ([]lake.Column, error) {
	if compiled.Queried {
		if err := c.makeViews(ctx, s); err != nil {
			return nil, err
		}
		told, err := c.recompile(ctx, s, n, compiled)
		if told == nil || err != nil {
			return nil, err
		}
		compiled = told
	}
	st, err := oneQuery(compiled.SQL)
	p := placing{file: n.File, name: n.Name, compiled: compiled, text: st, names: c.names}
	wrong := func(err error) error {
		p.columns = c.columnsRead(n)
		return c.withoutFiles(n, placeError(err, p))
	}
	key := ""
	if err == nil {
		key = c.checkKey(n, compiled, st)
		if columns, ok := c.wasChecked(key); ok {
			return columns, nil
		}
	}
	read := c.columnsFor(n)
	known := &described{}
	var look *inPlace
	if err == nil {
		var columns []lake.Column
		if columns, look, err = c.query(ctx, s, n, st, read); columns != nil {
			known.put(st.text, columns)
		}
	}
	if err != nil {
		return nil, wrong(err)
	}
	if st.mentions("pivot", "pivot_wider") {
		tables, err := c.e.parser.Tables(compiled.SQL)
		if err != nil || tables.Refused {
			return nil, err
		}
	}
	if n.Model.Materialization == project.Ephemeral {
		columns, err := knowing{s, known, look}.Describe(ctx, st.text)
		if err != nil {
			return nil, wrong(err)
		}
		c.keepChecked(key, columns)
		return columns, nil
	}
	_, columns, err := materialize.NewQuery(st.text, declaredColumns(n.Model), n.Model.ContractEnforced).Select(ctx, knowing{s, known, look})
	if err != nil {
		return nil, wrong(err)
	}
	c.keepChecked(key, columns)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bindings[n] = &binding{rendered: compiled.SQL, read: st, known: known}
	return columns, nil
}

// withoutFiles says of a column that is not found that a source has no file
// which might have it. A run cannot succeed before the file is there, so there
// the missing file is what is told.
func (c *checker) withoutFiles(n *plan.Node, err error) error {
	var d diag.Diagnostic
	if !errors.As(err, &d) || d.Code != diag.SQLUnknownColumn {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range n.Parents {
		switch missing := c.missing[p]; {
		case missing == nil:
		case c.during != nil:
			return missing
		default:
			d = d.WithNote(p.Source.PathPos, "source %s has no file here: only its declared columns are known", p.Name)
		}
	}
	return d
}

// columnsRead gives the names of the columns of all that a node reads, each once.
func (c *checker) columnsRead(n *plan.Node) []string {
	var names []string
	seen := map[string]bool{}
	for _, column := range c.columnsFor(n) {
		if !seen[column.Name] {
			seen[column.Name] = true
			names = append(names, column.Name)
		}
	}
	return names
}

// columnsFor gives the columns of all that a node reads, and of itself where it
// adds to what is published.
func (c *checker) columnsFor(n *plan.Node) []lake.Column {
	c.mu.Lock()
	defer c.mu.Unlock()
	var columns []lake.Column
	for _, ref := range n.Refs {
		columns = append(columns, c.columns[relationKey(ref.Relation())]...)
	}
	if c.during.appends(n) {
		columns = append(columns, c.columns[relationKey("main", n.Name)]...)
	}
	return columns
}

func declaredColumns(m *project.Model) []materialize.Declared {
	declared := make([]materialize.Declared, len(m.Columns))
	for i, c := range m.Columns {
		declared[i] = materialize.Declared{Name: c.Name, Type: c.Type, Pos: c.TypePos}
		if c.Type == "" {
			declared[i].Pos = c.Pos
		}
	}
	return declared
}
