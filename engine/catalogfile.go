package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// CatalogDatabase is the name of the DuckDB file in a lake whose views read what
// is published, for `duckdb -readonly`.
const CatalogDatabase = "catalog.duckdb"

// CatalogStale reports whether the catalog of a lake is older than something
// that the state says is published. It opens no database.
func CatalogStale(state *lake.State) bool {
	info, err := os.Stat(filepath.Join(state.Root, CatalogDatabase))
	if err != nil {
		return len(state.Nodes) > 0
	}
	for _, n := range state.Nodes {
		if n.Receipt.PublishedAt > info.ModTime().UnixMilli() {
			return true
		}
	}
	return false
}

// WriteCatalog rewrites the catalog of the lake: main.<name> for everything that
// is published, over exactly the published files by absolute path, and the same
// in a schema a folder. What did not change since the last time is kept as it
// is. The file is complete before it takes the place of the old one, so that who
// has that open reads on. It is called under the lake's lock. What could not be
// made a view (a source that is gone) is returned with the reason, sorted; the
// rest is there all the same.
func (e *Engine) WriteCatalog(ctx context.Context, g *plan.Graph, state *lake.State) (left []string, err error) {
	final := filepath.Join(state.Root, CatalogDatabase)
	temp := filepath.Join(state.Root, ".rbt", "catalog-"+strconv.Itoa(e.o.PID)+".tmp")
	defer func() {
		for _, name := range []string{temp, temp + ".wal"} {
			if rerr := os.Remove(name); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
	}()
	if err := removeDeadCatalogs(filepath.Dir(temp)); err != nil {
		return nil, err
	}
	if err := copyFile(final, temp); err != nil {
		return nil, fmt.Errorf("copy %s: %w", final, err)
	}
	w := &catalogWriter{e: e, g: g, state: state}
	if err := w.attached(ctx, temp); err != nil {
		// What is there may be of another version or damaged, or a folder may be
		// called as an instance calls something of its own; nothing in it is not
		// in the receipts.
		if rerr := os.Remove(temp); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			return nil, rerr
		}
		w = &catalogWriter{e: e, g: g, state: state}
		if err := w.write(ctx, temp); err != nil {
			return nil, fmt.Errorf("write %s: %w", final, err)
		}
	}
	fs := lake.OS()
	for _, step := range []func() error{
		func() error { return fs.Sync(temp) },
		func() error { return fs.Rename(temp, final) },
		func() error { return fs.SyncDir(state.Root) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("write %s: %w", final, err)
		}
	}
	return w.left, nil
}

// removeDeadCatalogs removes what writers left that were killed. The caller holds
// the lake's lock, so that none of them is at work; and a catalog that was not
// finished is stale, so that the next run comes here.
func removeDeadCatalogs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list unfinished catalogs: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, "catalog-") || !strings.Contains(name, ".tmp") {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove an unfinished catalog: %w", err)
		}
	}
	return nil
}

// copyFile copies a file that may not exist.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// catalogWriter brings one catalog file up to date.
type catalogWriter struct {
	e     *Engine
	g     *plan.Graph
	state *lake.State
	s     *session
	c     *catalog
	left  []string

	script  *strings.Builder         // of what is to be done at once; nil where each statement is
	changed map[*plan.Node]bool      // made anew by this writer
	views   map[string][]catalogView // of the file, by name of the node in lower case
}

// bookSchema holds rbt's own notes in the catalog: which commit of each node its
// view was made from.
const bookSchema = "_rbt"

// attachedCatalog is what the instance of the engine calls the file while it is
// written there.
const attachedCatalog = "_rbt_catalog"

// attached writes the file by the instance that ran the models, which knows their
// files already: to start one more takes longer than a hundred views.
func (w *catalogWriter) attached(ctx context.Context, path string) (err error) {
	shared, err := w.e.database(ctx)
	if err != nil {
		return err
	}
	// More threads would wake up for each view and find it made.
	shared.narrow(ctx)
	defer func() { err = errors.Join(err, shared.widen(context.WithoutCancel(ctx))) }()
	if w.s, err = (&database{db: shared.db, tempDir: shared.tempDir}).session(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.s.Close()) }()
	if err := w.s.Exec(ctx, "ATTACH "+quoteText(path)+" AS "+attachedCatalog); err != nil {
		return err
	}
	defer func() {
		// The connection goes back to those who know nothing of the file.
		err = errors.Join(err, w.s.Exec(context.WithoutCancel(ctx), "USE memory;\nDETACH "+attachedCatalog))
	}()
	if err := w.s.Exec(ctx, "USE "+attachedCatalog); err != nil {
		return err
	}
	return w.bringUpToDate(ctx)
}

// write writes the file by an instance of its own.
func (w *catalogWriter) write(ctx context.Context, path string) (err error) {
	connector, err := duckdb.NewConnector(path, nil)
	if err != nil {
		return err
	}
	d := &database{db: sql.OpenDB(connector), tempDir: filepath.Join(tempDirFor(w.e.o.Project.TargetDir, w.e.o.PID), "catalog")}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.configure(ctx, project.Engine{DuckDBThreads: 1}); err != nil {
		return err
	}
	if w.s, err = d.session(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.s.Close()) }()
	return w.bringUpToDate(ctx)
}

// bringUpToDate makes the file that the session uses say what is published.
func (w *catalogWriter) bringUpToDate(ctx context.Context) error {
	before, err := w.book(ctx)
	if err != nil {
		return err
	}
	if err := w.fillAtOnce(ctx, before); err != nil {
		return err
	}
	return w.s.Exec(ctx, "CHECKPOINT")
}

// fillAtOnce makes all views in one transaction, which saves a write of the log
// a view, and by texts of many statements, each of which costs less than half of one
// that is run by itself. What cannot be read can end a transaction: then the views
// are made one by one.
func (w *catalogWriter) fillAtOnce(ctx context.Context, before map[string]string) error {
	if err := w.s.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	w.script = &strings.Builder{}
	err := w.fill(ctx, before)
	if err == nil && len(w.left) == 0 {
		return w.s.Exec(ctx, "COMMIT")
	}
	without := context.WithoutCancel(ctx)
	rerr := errors.Join(w.s.Exec(without, "ROLLBACK"), w.s.Exec(without, optimized))
	if rerr != nil || ctx.Err() != nil {
		return errors.Join(err, rerr)
	}
	w.left, w.script = nil, nil
	return w.fill(ctx, before)
}

// scriptBytes bounds a text of many statements, of which the engine holds every
// parse tree at once.
const scriptBytes = 16 << 10

// A definition is planned like a query, though there is nothing in it to optimise:
// to try all the same takes a quarter of what a view costs.
const (
	unoptimized = "PRAGMA disable_optimizer"
	optimized   = "PRAGMA enable_optimizer"
)

// exec runs a statement that defines or drops something, or keeps it where many are
// run at once.
func (w *catalogWriter) exec(ctx context.Context, statement string) error {
	if w.script == nil {
		return w.s.Exec(ctx, statement)
	}
	if w.script.Len() == 0 {
		w.script.WriteString(unoptimized + ";\n")
	}
	w.script.WriteString(statement + "\n;\n")
	if w.script.Len() < scriptBytes {
		return nil
	}
	return w.flush(ctx)
}

// flush runs what exec has kept.
func (w *catalogWriter) flush(ctx context.Context) error {
	if w.script == nil || w.script.Len() == 0 {
		return nil
	}
	w.script.WriteString(optimized)
	statements := w.script.String()
	w.script.Reset()
	return w.s.script(ctx, statements)
}

// fill brings the views up to date with what is published.
func (w *catalogWriter) fill(ctx context.Context, before map[string]string) error {
	w.c = newCatalog(w.e.o.Project, w.g, w.e.parser, w.published)
	w.c.exec = w.exec
	w.changed = map[*plan.Node]bool{}
	if err := w.readViews(ctx); err != nil {
		return err
	}
	kept := map[string]string{"": w.state.Root}
	for _, n := range w.g.Order() {
		commit, ok := w.commit(n)
		if !ok {
			continue
		}
		if before[n.Name] == commit && !w.reachesChanged(n) {
			w.c.assume(n)
			kept[n.Name] = commit
			continue
		}
		made, err := w.node(ctx, n)
		if err != nil {
			return err
		}
		if made {
			kept[n.Name] = commit
		}
	}
	for _, name := range sortedKeys(before) {
		if _, ok := kept[name]; !ok {
			if err := w.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return w.note(ctx, before, kept)
}

// book reads which commits the file holds; of a file that was made for another
// place of the lake nothing is kept.
func (w *catalogWriter) book(ctx context.Context) (map[string]string, error) {
	for _, q := range []string{"CREATE SCHEMA IF NOT EXISTS " + bookSchema,
		"CREATE TABLE IF NOT EXISTS " + bookSchema + ".published(name VARCHAR, commit VARCHAR)"} {
		if err := w.s.Exec(ctx, q); err != nil {
			return nil, err
		}
	}
	before := map[string]string{}
	err := w.s.Query(ctx, "SELECT name, commit FROM "+bookSchema+".published", func(v []any) error {
		before[v[0].(string)] = v[1].(string)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if root, ok := before[""]; ok && root != w.state.Root {
		return nil, fmt.Errorf("it was made for the lake %s", root)
	}
	return before, nil
}

// noteRows bounds how many commits are written by one statement, of which the engine
// holds the parse tree.
const noteRows = 500

// note writes down which commits the views were made from, as far as that is not
// what the file says.
func (w *catalogWriter) note(ctx context.Context, before, commits map[string]string) error {
	var gone, rows []string
	for _, name := range sortedKeys(before) {
		if commit, ok := commits[name]; !ok || commit != before[name] {
			gone = append(gone, quoteText(name))
		}
	}
	for _, name := range sortedKeys(commits) {
		if commit, ok := before[name]; !ok || commit != commits[name] {
			rows = append(rows, "("+quoteText(name)+", "+quoteText(commits[name])+")")
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	for some := range slices.Chunk(gone, noteRows) {
		if err := w.s.Exec(ctx, "DELETE FROM "+bookSchema+".published WHERE name IN ("+strings.Join(some, ", ")+")"); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(rows, noteRows) {
		if err := w.s.Exec(ctx, "INSERT INTO "+bookSchema+".published VALUES "+strings.Join(some, ", ")); err != nil {
			return err
		}
	}
	return nil
}

func (w *catalogWriter) published(n *plan.Node) (publishedNode, bool, error) {
	node, ok := w.state.Nodes[n.Name]
	return inLake(w.state.Root, node), ok, nil
}

// commit is what a node's views depend on; false where nothing is published.
func (w *catalogWriter) commit(n *plan.Node) (string, bool) {
	if n.Source != nil {
		return "", false
	}
	node, ok := w.state.Nodes[n.Name]
	if !ok || node.Damage != nil {
		return "", false
	}
	return node.Receipt.Commit + " " + n.Display(), true
}

// reachesChanged reports whether a view reads something that has new views: it
// may have other columns now.
func (w *catalogWriter) reachesChanged(n *plan.Node) bool {
	if w.state.Nodes[n.Name].Receipt.Form != lake.FormView {
		return false
	}
	for _, p := range n.Parents {
		if w.changed[p] {
			return true
		}
	}
	return false
}

// node makes the views of a node. That it cannot be read is noted and no error.
func (w *catalogWriter) node(ctx context.Context, n *plan.Node) (made bool, err error) {
	w.changed[n] = true
	if err := w.drop(ctx, n.Name); err != nil {
		return false, err
	}
	folder := ""
	if at := strings.LastIndexByte(n.Display(), '.'); at > 0 {
		folder = n.Display()[:at]
	}
	for _, r := range w.c.relationsOf(n) {
		if !w.isPublished(n, r) {
			continue
		}
		err := w.c.bind(ctx, w.s, r, nil)
		if err == nil && folder != "" && !strings.EqualFold(folder, "main") && !strings.EqualFold(folder, bookSchema) && !w.isSource(folder, r.name) {
			if err = w.c.schema(ctx, w.s, folder); err == nil {
				err = w.exec(ctx, "CREATE OR REPLACE VIEW "+relationName(folder, r.name)+" AS "+sameAs(r))
			}
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			var d diag.Diagnostic
			text := err.Error()
			if errors.As(err, &d) {
				text = d.Msg
			}
			w.left = append(w.left, r.name+": "+strings.SplitN(text, "\n", 2)[0])
			return false, nil
		}
	}
	return true, nil
}

// sameAs is a query that gives what the view of a relation gives. Of one file it is a
// query of that file: to look through a view takes a third longer.
func sameAs(r *relation) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plain && r.columns != nil && r.footers != nil && len(r.footers.files) == 1 {
		return scanFiles(r.footers.files, r.columns)
	}
	return "FROM " + relationName(r.schema, r.name)
}

// isPublished reports whether the receipt of a node holds a relation: an ingest
// may declare more than its last run knew.
func (w *catalogWriter) isPublished(n *plan.Node, r *relation) bool {
	if r.output == "" {
		return true
	}
	for _, o := range w.state.Nodes[n.Name].Receipt.Outputs {
		if strings.EqualFold(o.Relation, r.output) {
			return true
		}
	}
	return false
}

// isSource reports whether a name in a schema is that of a source.
func (w *catalogWriter) isSource(schema, name string) bool {
	_, ok := w.c.lookup(schema, name)
	return ok
}

// readViews lists the views of the file, once: asking for those of a node would
// look at all of them each time.
func (w *catalogWriter) readViews(ctx context.Context) error {
	w.views = map[string][]catalogView{}
	return w.s.Query(ctx, "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND database_name = current_database() ORDER BY ALL", func(v []any) error {
		view := catalogView{schema: v[0].(string), name: v[1].(string)}
		key := strings.ToLower(view.name)
		w.views[key] = append(w.views[key], view)
		// What an ingest publishes besides its root belongs to it as well.
		if node, _, ok := strings.Cut(key, "__"); ok {
			w.views[node] = append(w.views[node], view)
		}
		return nil
	})
}

// catalogView is a view of the file.
type catalogView struct{ schema, name string }

// drop removes what the file holds of a node.
func (w *catalogWriter) drop(ctx context.Context, name string) error {
	key := strings.ToLower(name)
	for _, v := range w.views[key] {
		if v.schema != "main" && w.isSource(v.schema, v.name) {
			continue
		}
		if other := w.g.Lookup(v.name); other != nil && !strings.EqualFold(other.Name, name) {
			continue
		}
		if err := w.exec(ctx, "DROP VIEW IF EXISTS "+relationName(v.schema, v.name)); err != nil {
			return err
		}
	}
	delete(w.views, key)
	return nil
}

// assume takes a node's views for made.
func (c *catalog) assume(n *plan.Node) {
	for _, r := range c.relationsOf(n) {
		r.mu.Lock()
		r.bound = true
		r.mu.Unlock()
	}
}

// CatalogDocument writes target/catalog.json: columns and rows of everything
// that is published, in the shape of dbt's catalog v1.
func (e *Engine) CatalogDocument(ctx context.Context, g *plan.Graph, state *lake.State, inv Invocation) error {
	nodes := object{}
	for _, n := range g.Nodes() {
		published, ok := state.Nodes[n.Name]
		if !ok || n.Source != nil {
			continue
		}
		for _, o := range published.Receipt.Outputs {
			id := n.ID
			if !strings.EqualFold(o.Relation, n.Name) && len(published.Receipt.Outputs) > 1 {
				id += "." + o.Relation
			}
			nodes[id] = catalogEntry(id, published.Receipt, o)
		}
	}
	return e.writeDocuments(ctx, map[string]any{CatalogFile: object{
		"metadata": e.metadata("catalog", 1, inv), "nodes": nodes, "sources": emptyObject(), "errors": nil,
	}}, nil)
}

func catalogEntry(id string, r lake.Receipt, o lake.Output) object {
	columns := object{}
	for i, c := range o.Columns {
		columns[c.Name] = object{"type": c.Type, "index": i + 1, "name": c.Name, "comment": nil}
	}
	kind, bytes := "BASE TABLE", int64(0)
	if r.Form == lake.FormView {
		kind = "VIEW"
	}
	for _, f := range o.Files {
		bytes += f.Bytes
	}
	statistic := func(id, label string, value any, description string) object {
		return object{"id": id, "label": label, "value": value, "include": true, "description": description}
	}
	stats := object{"has_stats": object{"id": "has_stats", "label": "Has Stats?", "value": r.Form != lake.FormView, "include": false, "description": "Whether there are figures for this relation"}}
	if r.Form != lake.FormView {
		stats["row_count"] = statistic("row_count", "Rows", o.Rows, "Number of rows")
		stats["bytes"] = statistic("bytes", "Bytes", bytes, "Size of the published files")
		stats["files"] = statistic("files", "Files", len(o.Files), "Number of published files")
		stats["last_modified"] = statistic("last_modified", "Published", stamp(time.UnixMilli(r.PublishedAt)), "When it was published")
	}
	return object{"unique_id": id, "metadata": object{"type": kind, "schema": "main", "name": o.Relation, "database": nil, "comment": nil, "owner": nil}, "columns": columns, "stats": stats}
}
