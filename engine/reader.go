package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// reader gives what is published to commands that read without the lake's lock.
// Everything is pinned when it is first asked for, so that every query sees one
// version of it.
type reader struct {
	lake, other *lake.Lake // other is that of the deferred target; may be nil
	pins        *lake.Pins

	mu    sync.Mutex
	nodes map[string]*pinnedNode // by name in lower case
}

type pinnedNode struct {
	from   *lake.Lake
	folder string
	pinned lake.Pinned
	read   bool // once, without being held
}

func (e *Engine) newReader(other *lake.Lake) *reader {
	return &reader{lake: e.o.Lake, other: other, pins: e.o.Lake.NewPins(e.o.PID), nodes: map[string]*pinnedNode{}}
}

func (r *reader) close() error {
	if err := r.pins.Close(); err != nil {
		return fmt.Errorf("remove pins: %w", err)
	}
	return nil
}

// published pins a node.
func (r *reader) published(n *plan.Node) (publishedNode, bool, error) {
	key := strings.ToLower(n.Name)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.nodes[key]
	if p == nil || !p.pinned.Held {
		var err error
		if p, err = r.pin(n, p); err != nil || p == nil {
			return publishedNode{}, false, err
		}
		r.nodes[key] = p
	}
	return p.published(), true, nil
}

func (p *pinnedNode) files(relation string) []string {
	for name, files := range p.pinned.Files {
		if !strings.EqualFold(name, relation) {
			continue
		}
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Path
		}
		return paths
	}
	return nil
}

func (r *reader) pin(n *plan.Node, before *pinnedNode) (*pinnedNode, error) {
	folder := ""
	if n.Model != nil {
		folder = n.Model.Path
	}
	for _, from := range []*lake.Lake{r.lake, r.other} {
		if from == nil {
			continue
		}
		pinned, ok, err := r.pins.Pin(from, n.Name, folder)
		if err != nil {
			return nil, err
		}
		if ok {
			return &pinnedNode{from: from, folder: folder, pinned: pinned, read: before != nil}, nil
		}
	}
	return nil, nil
}

// changed reports whether something that was read in place was published anew
// meanwhile. It says so once a node: the caller then reads again.
func (r *reader) changed(reads []*relation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := false
	for _, rel := range reads {
		p := r.nodes[strings.ToLower(rel.node.Name)]
		if p == nil || p.pinned.Held || p.read {
			continue
		}
		same, err := p.from.Unchanged(p.pinned, p.folder)
		again = again || err != nil || !same
		p.read = true
	}
	return again
}

// ShowOptions say of what rows are shown: the result of a model's SQL (Node), or
// that of a text (Compiled). Nothing is published.
type ShowOptions struct {
	Graph    *plan.Graph
	Node     *plan.Node
	Compiled *project.Compiled
	// Recompile renders the text anew where its template asks the database, with
	// what answers its queries; nil for a node.
	Recompile func(query project.QueryFunc) (*project.Compiled, diag.List)
	DeferLake *lake.Lake // nil if nothing is deferred
	Limit     int        // rows; 0 is all
}

// Rows are the rows of a query.
type Rows struct {
	Columns []lake.Column
	Values  [][]Value
	More    bool // there are rows beyond the limit
}

// Value is one value, printed by the engine without loss: as text, and as JSON
// (not a number and the infinities as text there).
type Value struct {
	Text, JSON string
	Null       bool
}

// Show runs one query on what is published. A seed or an ingest is shown as it
// is published, any other model by its SQL, over its published parents.
func (e *Engine) Show(ctx context.Context, o ShowOptions) (_ *Rows, err error) {
	db, err := e.database(ctx)
	if err != nil {
		return nil, err
	}
	s, err := db.session(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r := e.newReader(o.DeferLake)
	defer func() { err = errors.Join(err, r.close()) }()
	view := shower{e: e, o: o, session: s, catalog: newCatalog(e.o.Project, o.Graph, e.parser, r.published)}
	rows, err := view.rows(ctx)
	if r.changed(view.reads) {
		view.catalog.forgetAll(view.reads)
		rows, err = view.rows(ctx)
	}
	return rows, err
}

// shower shows the rows of one query.
type shower struct {
	e       *Engine
	o       ShowOptions
	session *session
	catalog *catalog
	reads   []*relation
}

func (v *shower) rows(ctx context.Context) (*Rows, error) {
	compiled, p := v.o.Compiled, placing{name: "the query", catalog: v.catalog}
	if n := v.o.Node; n != nil {
		compiled, p.file, p.name = n.Full, n.File, n.Name
		if compiled == nil {
			refs := []project.Ref{{Node: n.Name, Source: n.Source != nil}}
			rels, err := v.catalog.bindRefs(ctx, v.session, refs)
			if err != nil {
				return nil, inFile(v.catalog.unreadable(ctx, v.session, err, v.catalog.named(refs)), n.File)
			}
			v.reads = rels
			rows, err := v.read(ctx, "SELECT * FROM "+relationName(rels[0].schema, rels[0].name))
			if err != nil {
				err = v.catalog.explain(err, rels)
			}
			return rows, err
		}
	}
	p.compiled = compiled
	rows, err := v.compiled(ctx, compiled, &p)
	p.reads = v.reads
	if err != nil && ctx.Err() == nil {
		err = inFile(placeError(v.catalog.unreadable(ctx, v.session, err, v.reads), p), p.file)
	}
	return rows, err
}

func (v *shower) compiled(ctx context.Context, compiled *project.Compiled, p *placing) (*Rows, error) {
	if compiled.Queried {
		var err error
		if compiled, err = v.recompile(ctx, compiled); err != nil {
			return nil, err
		}
		p.compiled = compiled
	}
	st, err := oneQuery(compiled.SQL)
	if err != nil {
		return nil, err
	}
	p.text = st
	tables, err := v.e.parser.Tables(compiled.SQL)
	if err != nil {
		return nil, err
	}
	refs := append([]project.Ref(nil), compiled.Refs...)
	for _, t := range tables.Names {
		if rel, ok := v.catalog.lookup(t.Schema, t.Name); ok {
			refs = append(refs, refTo(rel))
		}
	}
	v.reads = v.catalog.named(refs)
	if _, err = v.catalog.bindRefs(ctx, v.session, refs); err != nil {
		return nil, err
	}
	if err := v.session.checkQuery(ctx, st); err != nil {
		return nil, err
	}
	return v.read(ctx, st.text)
}

// recompile renders a text whose template asks the database.
func (v *shower) recompile(ctx context.Context, compiled *project.Compiled) (*project.Compiled, error) {
	again := v.o.Recompile
	refs := compiled.Refs
	if n := v.o.Node; n != nil {
		refs = n.Refs
		again = func(query project.QueryFunc) (*project.Compiled, diag.List) {
			return v.e.o.Project.Compile(ctx, n.Model, project.CompileOptions{RunStartedAt: v.e.o.Now(), Query: query})
		}
	}
	if again == nil {
		return compiled, nil
	}
	if _, err := v.catalog.bindRefs(ctx, v.session, refs); err != nil {
		return nil, err
	}
	told, problems := again(func(sql string) ([]string, [][]any, error) { return v.session.readOnly(ctx, sql) })
	return told, problems.Err()
}

func (v *shower) read(ctx context.Context, query string) (*Rows, error) {
	columns, err := v.session.Describe(ctx, query)
	if err != nil {
		return nil, err
	}
	names, texts := make([]string, len(columns)), make([]string, 0, 2*len(columns))
	for i, c := range columns {
		names[i] = fmt.Sprintf("c%d", i)
		value, typ := shownAs(names[i], c.Type)
		texts = append(texts, textOf(value, typ), jsonText(value, typ, 0))
	}
	limit := ""
	if v.o.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", v.o.Limit+1)
	}
	out := &Rows{Columns: columns}
	err = v.session.Query(ctx, fmt.Sprintf("SELECT %s FROM (\n%s\n) AS shown(%s)%s", strings.Join(texts, ", "), query, strings.Join(names, ", "), limit), func(values []any) error {
		if out.More = v.o.Limit > 0 && len(out.Values) == v.o.Limit; out.More {
			return nil
		}
		row := make([]Value, len(columns))
		for i := range row {
			text, ok := values[2*i].(string)
			json, _ := values[2*i+1].(string)
			row[i] = Value{Text: text, JSON: json, Null: !ok}
		}
		out.Values = append(out.Values, row)
		return nil
	})
	return out, err
}
