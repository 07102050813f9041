package engine

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// catalog knows every relation of a project and makes those that a query needs
// known to the engine, each once: a view over the files that its receipt or
// manifest lists, over the files of a source, or with the SQL of a view model.
// Relations are looked up and bound by many workers at once.
type catalog struct {
	project *project.Project
	parser  plan.Parser
	// published gives what is published of a node, and where.
	published func(n *plan.Node) (publishedNode, bool, error)
	relations map[string]*relation // by relationKey
	// exec runs or keeps statements that define something; nil where the session
	// at hand runs them.
	exec func(ctx context.Context, statement string) error

	// sources of Parquet files as they were described before; nil for none.
	sources map[*plan.Node]*foreseenSource
	recalls *schemas // columns of the files of sources; nil where none are remembered

	schemaMu sync.Mutex
	schemas  map[string]bool // made in the engine, in lower case
}

// publishedNode is what a lake holds of a node, and the files of each of its
// relations as they are to be opened.
type publishedNode struct {
	receipt lake.Receipt
	files   func(relation string) []string // absolute
	foreign bool
	damage  error
}

// folder gives the parts of an ingest that lie in a folder of the node.
func (p publishedNode) folder(name string) []string {
	for _, o := range p.receipt.Outputs {
		if len(o.Files) > 0 && path.Base(path.Dir(o.Files[0].Path)) == name {
			return p.files(o.Relation)
		}
	}
	return nil
}

// relation is one name that SQL may read.
type relation struct {
	schema, name string
	node         *plan.Node
	output       string // of an ingest; "" is the node itself

	mu      sync.Mutex
	version int // counts how often the name got another meaning
	bound   bool
	// parents are the relations that a bound view reads, with the versions that
	// they had then: a view over a relation that changed must be made again.
	parents  map[*relation]int
	table    *fileTable    // of a source, once it was bound
	foreseen bool          // the files of a source are those that were described before
	plain    bool          // reads Parquet files of the lake and nothing else
	footers  *footers      // of these files; nil where a row is more than a row of a file
	columns  []lake.Column // as they are stored, or once a test asked for them
}

func relationKey(schema, name string) string {
	return strings.ToLower(schema) + "\x00" + strings.ToLower(name)
}

func newCatalog(p *project.Project, g *plan.Graph, parser plan.Parser, published func(*plan.Node) (publishedNode, bool, error)) *catalog {
	c := &catalog{project: p, parser: parser, published: published, relations: map[string]*relation{}, schemas: map[string]bool{}}
	for _, n := range g.Nodes() {
		if n.Source != nil {
			c.add(&relation{schema: n.Source.Group, name: n.Source.Name, node: n})
			continue
		}
		c.add(&relation{schema: "main", name: n.Name, node: n})
		if n.Model == nil {
			continue
		}
		for _, o := range n.Model.Outputs() {
			if o.Relation != n.Name {
				c.add(&relation{schema: "main", name: o.Relation, node: n, output: o.Relation})
			}
		}
	}
	return c
}

func (c *catalog) add(r *relation) { c.relations[relationKey(r.schema, r.name)] = r }

// lookup finds a relation; a name without a schema is one of main.
func (c *catalog) lookup(schema, name string) (*relation, bool) {
	if schema == "" {
		schema = "main"
	}
	r, ok := c.relations[relationKey(schema, name)]
	return r, ok
}

// bindRefs makes everything known that a compiled text refers to.
func (c *catalog) bindRefs(ctx context.Context, s *session, refs []project.Ref) ([]*relation, error) {
	bound := make([]*relation, 0, len(refs))
	for _, ref := range refs {
		r, ok := c.lookup(ref.Relation())
		if !ok {
			schema, name := ref.Relation()
			return nil, diag.Errorf(diag.SQLUnknownTable, ref.Pos, "the project has no relation %s.%s", schema, name)
		}
		if err := c.bind(ctx, s, r, nil); err != nil {
			return nil, err
		}
		bound = append(bound, r)
	}
	return bound, nil
}

// bind makes a relation known to the engine. chain holds the relations for whose
// sake it is bound, for views that were published at different times and have
// come to read each other.
func (c *catalog) bind(ctx context.Context, s *session, r *relation, chain []*relation) error {
	if slices.Contains(chain, r) {
		names := make([]string, 0, len(chain)+1)
		for _, p := range append(chain, r) {
			names = append(names, p.name)
		}
		return fmt.Errorf("views as they are published read each other: %s; run them again", strings.Join(names, " -> "))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bound {
		fresh, err := c.fresh(ctx, s, r, chain)
		if err != nil || fresh {
			return err
		}
	}
	return c.define(ctx, s, r, append(slices.Clip(chain), r))
}

// fresh reports whether all that a bound view reads still means the same. r.mu
// is held.
func (c *catalog) fresh(ctx context.Context, s *session, r *relation, chain []*relation) (bool, error) {
	fresh := true
	for p, version := range r.parents {
		if err := c.bind(ctx, s, p, append(slices.Clip(chain), r)); err != nil {
			return false, err
		}
		p.mu.Lock()
		fresh = fresh && p.version == version
		p.mu.Unlock()
	}
	return fresh, nil
}

// define gives a relation its meaning. r.mu is held.
func (c *catalog) define(ctx context.Context, s *session, r *relation, chain []*relation) error {
	switch n := r.node; {
	case n.Source != nil:
		return c.defineSource(ctx, s, r)
	case n.Model != nil && n.Model.Materialization == project.Ephemeral:
		if tables, err := c.parser.Tables(n.Full.SQL); err == nil && tables.Refused {
			return viewOverPivot(n)
		}
		return c.defineView(ctx, s, r, n.Full.SQL, n.Refs, chain)
	}
	pub, ok, err := c.published(r.node)
	if err != nil {
		return err
	}
	if !ok {
		return notPublished(r.node)
	}
	if pub.damage != nil {
		return fmt.Errorf("read %s: %w", r.node.Name, pub.damage)
	}
	if pub.receipt.Form == lake.FormView {
		refs, err := c.refsOf(pub.receipt)
		if err != nil {
			return err
		}
		return c.defineView(ctx, s, r, pub.receipt.SQL, refs, chain)
	}
	for _, o := range pub.receipt.Outputs {
		if !strings.EqualFold(o.Relation, r.name) && (r.output != "" || len(pub.receipt.Outputs) > 1) {
			continue
		}
		query := scanFiles(pub.files(o.Relation), o.Columns)
		if pub.receipt.Form == lake.FormIngest && r.node.Model != nil && r.node.Model.Records != nil {
			var err error
			if query, err = ingestRelation(r.node.Model, o.Relation, o.Columns, pub.files(o.Relation), pub.folder); err != nil {
				return err
			}
		}
		before, files := r.footers, pub.files(o.Relation)
		if err := c.create(ctx, s, r, query, nil, true); err != nil {
			return err
		}
		if rowsOfFiles(query, files, o.Columns) {
			r.footers = before
			r.stored(files, o.Columns)
		}
		return nil
	}
	return fmt.Errorf("read %s: its receipt lists no relation %s; run it again", r.node.Name, r.name)
}

// viewOverPivot says that no view can hold a query whose columns are its data.
func viewOverPivot(n *plan.Node) error {
	return diag.Errorf(diag.SQLBind, diag.Pos{File: n.File}, "a view cannot hold this query: its columns are known only when it runs").
		WithHint("name the values, as in PIVOT … ON x IN (1, 2), or make it a table")
}

func notPublished(n *plan.Node) error {
	return diag.Errorf(diag.SQLUnknownTable, diag.Pos{File: n.File}, "%s has never been published", n.Name).
		WithHint("build it first: rbt run -s +%s", n.Name)
}

// refsOf finds what the SQL of a published view reads, which may differ from
// what the model reads now.
func (c *catalog) refsOf(r lake.Receipt) ([]project.Ref, error) {
	tables, err := c.parser.Tables(r.SQL)
	if err != nil {
		return nil, fmt.Errorf("read the published view %s: %w", r.Name, err)
	}
	var refs []project.Ref
	for _, t := range tables.Names {
		if rel, ok := c.lookup(t.Schema, t.Name); ok {
			refs = append(refs, refTo(rel))
		}
	}
	return refs, nil
}

func refTo(r *relation) project.Ref {
	if r.node.Source != nil {
		return project.Ref{Node: r.node.Name, Source: true}
	}
	return project.Ref{Node: r.node.Name, Output: r.output}
}

// defineView makes a view with this SQL after all that it reads.
func (c *catalog) defineView(ctx context.Context, s *session, r *relation, sql string, refs []project.Ref, chain []*relation) error {
	st, err := oneQuery(sql)
	if err != nil {
		return fmt.Errorf("read the view %s: %w", r.node.Name, err)
	}
	parents := map[*relation]int{}
	for _, ref := range refs {
		p, ok := c.lookup(ref.Relation())
		if !ok {
			continue // the engine will say that it does not exist
		}
		if err := c.bind(ctx, s, p, chain); err != nil {
			return err
		}
		p.mu.Lock()
		parents[p] = p.version
		p.mu.Unlock()
	}
	return c.create(ctx, s, r, st.text, parents, false)
}

// defineSource makes a view over the files of a source.
func (c *catalog) defineSource(ctx context.Context, s *session, r *relation) error {
	table, err := newSourceTable(c.project, r.node.Source, s.db.tempDir)
	if err != nil {
		return err
	}
	table.schemas = c.recalls
	query := ""
	if known := c.sources[r.node]; known.still(table) {
		table, query = known.table, known.query
	}
	r.table, r.foreseen = table, query != ""
	if query == "" {
		if query, err = table.query(ctx, s); err != nil {
			return err
		}
	}
	if err := c.create(ctx, s, r, query, nil, false); err != nil || table.format != "parquet" {
		return err
	}
	if r.footers = newFooters(table.files); r.footers != nil {
		r.footers.columns = table.asStored
	}
	return nil
}

// create makes the engine's view of a relation. r.mu is held.
func (c *catalog) create(ctx context.Context, s *session, r *relation, query string, parents map[*relation]int, plain bool) error {
	if err := c.schema(ctx, s, r.schema); err != nil {
		return err
	}
	if err := c.run(ctx, s, "CREATE OR REPLACE VIEW "+relationName(r.schema, r.name)+" AS\n"+query); err != nil {
		if r.table != nil {
			return r.table.explain(err)
		}
		return err
	}
	r.version++
	r.bound, r.parents, r.plain, r.footers, r.columns = true, parents, plain, nil, nil
	return nil
}

// run runs a statement that defines something.
func (c *catalog) run(ctx context.Context, s *session, statement string) error {
	if c.exec != nil {
		return c.exec(ctx, statement)
	}
	return s.Exec(ctx, statement)
}

// rowsOfFiles reports whether each row of a query is a row of one of the files.
func rowsOfFiles(query string, files []string, columns []lake.Column) bool {
	return query == scanFiles(files, columns) || query == scanGrown(files, columns)
}

// stored notes that each row of a relation is a row of one of these files. What
// was read of their footers is kept. r.mu is held.
func (r *relation) stored(files []string, columns []lake.Column) {
	if r.footers == nil || !slices.Equal(r.footers.files, files) {
		r.footers = newFooters(files)
	}
	if len(columns) > 0 {
		r.columns = columns
	}
}

// held gives a relation that is stored as it is, without making it known to the
// engine; false where only the engine can tell what it is.
func (c *catalog) held(r *relation) (subject, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.bound && r.footers == nil && r.node.Source == nil && !(r.node.Model != nil && r.node.Model.Materialization == project.Ephemeral) {
		pub, ok, err := c.published(r.node)
		if err != nil || !ok || pub.damage != nil || pub.receipt.Form == lake.FormView || pub.receipt.Form == lake.FormIngest {
			return subject{}, false
		}
		for _, o := range pub.receipt.Outputs {
			if strings.EqualFold(o.Relation, r.name) || r.output == "" && len(pub.receipt.Outputs) == 1 {
				r.stored(pub.files(o.Relation), o.Columns)
				break
			}
		}
	}
	return subject{from: relationName(r.schema, r.name), columns: r.columns, footers: r.footers}, r.footers != nil && r.columns != nil
}

// schema makes a schema once: IF NOT EXISTS does not keep two connections that
// make it at one time from a write-write conflict.
func (c *catalog) schema(ctx context.Context, s *session, name string) error {
	if name == "main" {
		return nil
	}
	c.schemaMu.Lock()
	defer c.schemaMu.Unlock()
	if c.schemas[strings.ToLower(name)] {
		return nil
	}
	if err := c.run(ctx, s, "CREATE SCHEMA IF NOT EXISTS "+quoteIdent(name)); err != nil {
		return err
	}
	c.schemas[strings.ToLower(name)] = true
	return nil
}

// set gives a relation a meaning for the time of an audit: what is staged. files
// are what it reads where that is all.
func (c *catalog) set(ctx context.Context, s *session, r *relation, query string, parents []*relation, files []string, columns []lake.Column) error {
	versions := map[*relation]int{}
	for _, p := range parents {
		if p == r {
			continue
		}
		p.mu.Lock()
		versions[p] = p.version
		p.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := c.create(ctx, s, r, query, versions, len(parents) == 0)
	r.stored(files, columns)
	return err
}

// forget makes every relation of a node be looked up again when it is needed
// next.
func (c *catalog) forget(n *plan.Node) {
	for _, r := range c.relationsOf(n) {
		r.mu.Lock()
		r.bound, r.footers, r.columns = false, nil, nil
		r.mu.Unlock()
	}
}

// forgetAll makes relations, and what views among them read, be looked up again.
func (c *catalog) forgetAll(relations []*relation) {
	for _, r := range relations {
		c.forget(r.node)
	}
}

func (c *catalog) relationsOf(n *plan.Node) []*relation {
	if n.Source != nil {
		r, _ := c.lookup(n.Source.Group, n.Source.Name)
		return []*relation{r}
	}
	r, _ := c.lookup("main", n.Name)
	out := []*relation{r}
	if n.Model == nil {
		return out
	}
	for _, o := range n.Model.Outputs() {
		if o.Relation == n.Name {
			continue
		}
		if r, ok := c.lookup("main", o.Relation); ok {
			out = append(out, r)
		}
	}
	return out
}

// explain turns an error that was raised while a source was read, in whatever
// query, into one with file and line.
func (c *catalog) explain(err error, reads []*relation) error {
	for _, r := range c.sourcesUnder(reads) {
		r.mu.Lock()
		table := r.table
		r.mu.Unlock()
		if table == nil {
			continue
		}
		if explained := table.explain(err); explained != err {
			return explained
		}
	}
	return err
}

// sourcesUnder gives the relations over files of the user that relations are or
// read.
func (c *catalog) sourcesUnder(reads []*relation) []*relation {
	return slices.DeleteFunc(c.under(reads), func(r *relation) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.table == nil
	})
}

// under gives relations and all that they read, through views too, in the order
// of names.
func (c *catalog) under(reads []*relation) []*relation {
	seen := map[*relation]bool{}
	var out []*relation
	for todo := slices.Clone(reads); len(todo) > 0; {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[r] {
			continue
		}
		seen[r] = true
		out = append(out, r)
		r.mu.Lock()
		for p := range r.parents {
			todo = append(todo, p)
		}
		r.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b *relation) int {
		return strings.Compare(relationKey(a.schema, a.name), relationKey(b.schema, b.name))
	})
	return out
}

// absolute gives the files of a relation of a receipt as they lie in the lake.
func absolute(root string, r lake.Receipt, relation string) []string {
	for _, o := range r.Outputs {
		if !strings.EqualFold(o.Relation, relation) {
			continue
		}
		files := make([]string, len(o.Files))
		for i, f := range o.Files {
			files[i] = filepath.Join(root, filepath.FromSlash(f.Path))
		}
		return files
	}
	return nil
}
