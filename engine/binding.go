package engine

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"sync"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// exactTypes are the types of which a prepared statement tells all there is to
// tell, as DESCRIBE calls them. INTEGER is exact only where no column can be of
// type NULL.
var exactTypes = map[duckdb.Type]string{
	duckdb.TYPE_BOOLEAN: "BOOLEAN", duckdb.TYPE_TINYINT: "TINYINT", duckdb.TYPE_SMALLINT: "SMALLINT", duckdb.TYPE_INTEGER: "INTEGER",
	duckdb.TYPE_BIGINT: "BIGINT", duckdb.TYPE_HUGEINT: "HUGEINT", duckdb.TYPE_UTINYINT: "UTINYINT", duckdb.TYPE_USMALLINT: "USMALLINT",
	duckdb.TYPE_UINTEGER: "UINTEGER", duckdb.TYPE_UBIGINT: "UBIGINT", duckdb.TYPE_FLOAT: "FLOAT", duckdb.TYPE_DOUBLE: "DOUBLE",
	duckdb.TYPE_VARCHAR: "VARCHAR", duckdb.TYPE_DATE: "DATE", duckdb.TYPE_TIMESTAMP: "TIMESTAMP",
}

// preparedColumns gives the columns of a prepared query; nil where a type is not
// one that it tells exactly.
func preparedColumns(prepared driver.Stmt, untyped bool) []lake.Column {
	stmt, ok := prepared.(*duckdb.Stmt)
	if !ok {
		return nil
	}
	n, err := stmt.ColumnCount()
	if err != nil || n == 0 {
		return nil
	}
	columns := make([]lake.Column, n)
	for i := range columns {
		name, nameErr := stmt.ColumnName(i)
		info, typeErr := stmt.ColumnTypeInfo(i)
		if nameErr != nil || typeErr != nil || info.Alias() != "" {
			return nil
		}
		typ := exactTypes[info.InternalType()]
		if d, ok := info.Details().(*duckdb.DecimalDetails); ok {
			typ = fmt.Sprintf("DECIMAL(%d,%d)", d.Width, d.Scale)
		}
		if typ == "" || typ == "INTEGER" && untyped {
			return nil
		}
		columns[i] = lake.Column{Name: name, Type: typ}
	}
	return columns
}

// described is what the engine said of queries, by their texts: each is bound
// once, and not once by everyone who wants to know. It holds as long as the
// relations that the queries read have the same columns.
type described struct {
	mu      sync.Mutex
	columns map[string][]lake.Column
}

func (d *described) get(query string) ([]lake.Column, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	columns, ok := d.columns[query]
	return slices.Clone(columns), ok
}

func (d *described) put(query string, columns []lake.Column) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.columns == nil {
		d.columns = map[string][]lake.Column{}
	}
	d.columns[query] = slices.Clone(columns)
}

// knowing is a session that asks the engine only for what was not described
// before.
type knowing struct {
	*session
	known   *described
	inPlace *inPlace // nil where everything is read by its name
}

// Describe implements materialize.Session.
func (k knowing) Describe(ctx context.Context, query string) ([]lake.Column, error) {
	if columns, ok := k.known.get(query); ok {
		return columns, nil
	}
	asked := query
	if k.inPlace != nil {
		asked = k.inPlace.of(query)
	}
	columns, err := k.session.Describe(ctx, asked)
	if err != nil && k.inPlace != nil && ctx.Err() == nil {
		if err := k.inPlace.bind(ctx); err != nil {
			return nil, err
		}
		columns, err = k.session.Describe(ctx, query)
	}
	if err == nil {
		k.known.put(query, columns)
	}
	return columns, err
}

// binding is what was learnt of a rendering of a model when it was bound before
// the run: the text, as it was rendered and as it was read, and what the engine said
// of the queries made of it.
type binding struct {
	rendered string
	read     statement
	known    *described
}

// read finds the one query of a rendering of the step's model, unless that was done
// before the run.
func (b *builder) read(rendered string) (statement, error) {
	if b.run.foretold != nil {
		if before := b.run.foretold.bindings[b.step.Node]; before != nil && before.rendered == rendered {
			return before.read, nil
		}
	}
	return oneQuery(rendered)
}

// foreseenSource is a source of Parquet files as it was described before the run.
type foreseenSource struct {
	table  *fileTable
	query  string
	stamps map[string]lake.FileStamp // taken before the files were read
}

// still reports whether a source has the files that it had then. It may be asked
// of none.
func (s *foreseenSource) still(now *fileTable) bool {
	if s == nil || !slices.Equal(s.table.files, now.files) {
		return false
	}
	stamps, err := now.stamps()
	return err == nil && maps.Equal(stamps, s.stamps)
}

// stamps takes the identity of the files of the table.
func (t *fileTable) stamps() (map[string]lake.FileStamp, error) {
	return fileStamps(t.project, t.files)
}

// foreseen gives the binding of a model's text where what it reads has the
// columns that were foreseen, so that it need not be bound again to be known:
// only to be run.
func (b *builder) foreseen(st statement) *binding {
	// What reads more than its relations, a file by its name for one, may find
	// there what a model of this run has written since.
	if b.volatile != "" || !b.boundBefore(st) || !b.run.asForeseen(b.step.Node) {
		return nil
	}
	return b.run.foretold.bindings[b.step.Node]
}

// asForeseen reports whether all that a model reads came to have the columns over
// which it was bound before the run.
func (r *run) asForeseen(n *plan.Node) bool {
	for _, ref := range n.Refs {
		rel, ok := r.catalog.lookup(ref.Relation())
		if !ok || !r.relationForeseen(rel) {
			return false
		}
	}
	return !r.foretold.during.appends(n) || r.relationForeseen(r.ownRelation(n))
}

func (r *run) ownRelation(n *plan.Node) *relation {
	rel, _ := r.catalog.lookup("main", n.Name)
	return rel
}

func (r *run) relationForeseen(rel *relation) bool {
	foreseen, ok := r.foretold.columns[relationKey(rel.schema, rel.name)]
	if !ok {
		return false
	}
	switch n := rel.node; {
	case n.Source != nil:
		rel.mu.Lock()
		defer rel.mu.Unlock()
		return rel.foreseen
	case n.Model != nil && n.Model.Materialization == project.Ephemeral:
		return r.asForeseen(n)
	}
	pub, ok, err := r.publishedNode(rel.node)
	if err != nil || !ok || pub.foreign || pub.damage != nil {
		return false
	}
	if pub.receipt.Form == lake.FormView {
		// What a view of another run gives depends on what it reads now.
		r.mu.Lock()
		built := r.built[rel.node]
		r.mu.Unlock()
		if !built || pub.receipt.Volatile != nil || !r.asForeseen(rel.node) {
			return false
		}
	}
	for _, o := range pub.receipt.Outputs {
		if o.Relation == rel.name {
			return slices.Equal(o.Columns, foreseen)
		}
	}
	return false
}

// bindQuery is checkQuery that also gives the columns where the prepared
// statement tells them exactly, nil where it does not. untyped says that one may
// be of type NULL.
func (s *session) bindQuery(ctx context.Context, st statement, untyped bool) ([]lake.Column, error) {
	var columns []lake.Column
	err := s.prepare(ctx, st, func(prepared driver.Stmt) error {
		if !st.mentions("describe", "summarize", "pivot", "pivot_wider") {
			columns = preparedColumns(prepared, untyped)
		}
		return mustBeSelect(prepared)
	})
	return columns, err
}
