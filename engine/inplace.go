package engine

import (
	"context"
	"slices"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
	"rbt/materialize"
)

// A view that one model reads once costs as much as a third of a small COPY: it
// is bound when it is made and again when it is read. So a small model reads its
// parents' files in place, by a copy of its text in which their names are
// replaced by what their views would say. That is done only where the tokens
// show that a name stands for its rows and for nothing else; and whatever the
// engine says against the copy, it is asked again about the text itself, whose
// words and places a user knows. The limits keep what may be done twice small.
const (
	inPlaceBytes = 1 << 20 // of the files of a relation
	inPlaceFiles = 8
)

// inPlace is a text and its copy that reads files in place.
type inPlace struct {
	text, copied string
	// stays says that the copy is worth while although the text was bound.
	stays bool
	// bind makes the relations known after all.
	bind func(ctx context.Context) error
}

// of is a query made of the text, made of the copy.
func (p *inPlace) of(query string) string { return strings.Replace(query, p.text, p.copied, 1) }

// readInPlace gives what of refs can be read in place, and the others. Nothing
// can where the text was not bound before: then it would not be known that it is
// right.
func (b *builder) readInPlace(st statement, refs []project.Ref) (*inPlace, []project.Ref) {
	n := b.step.Node
	if n.Model.Materialization == project.View || b.step.Incremental || !b.boundBefore(st) || !st.replaceable() {
		return nil, refs
	}
	var others []project.Ref
	at := map[int]string{} // by the token at which a name begins
	hides := st.hidesNothing()
	for _, ref := range refs {
		query, file, ok := b.smallFiles(ref)
		places := st.onlyRead(ref.Relation())
		if !ok || len(places) == 0 {
			others = append(others, ref)
			continue
		}
		for _, i := range places {
			if at[i] = "(" + query + ")"; hides && file != "" && st.renamed(i+3) {
				at[i] = file
			}
		}
	}
	if len(at) == 0 {
		return nil, refs
	}
	return &inPlace{text: st.text, copied: st.replaced(at), bind: func(ctx context.Context) (err error) {
		b.reads, err = b.run.catalog.bindRefs(ctx, b.session, refs)
		return err
	}}, others
}

// boundBefore reports whether this very text was bound before the run.
func (b *builder) boundBefore(st statement) bool {
	if b.run.foretold == nil {
		return false
	}
	known := b.run.foretold.bindings[b.step.Node]
	return known != nil && known.read.text == st.text
}

// smallFiles gives the query over the files of what a reference names, where they
// are few and small and nobody made a view of them yet. file is a call that gives
// the same rows and columns, where there is one.
func (b *builder) smallFiles(ref project.Ref) (query, file string, ok bool) {
	rel, ok := b.run.catalog.lookup(ref.Relation())
	if !ok || rel.schema != "main" || rel.output != "" {
		return "", "", false
	}
	rel.mu.Lock()
	bound := rel.bound
	rel.mu.Unlock()
	pub, ok, err := b.run.publishedNode(rel.node)
	if bound || err != nil || !ok || pub.foreign || pub.damage != nil || len(pub.receipt.Outputs) != 1 ||
		!slices.Contains([]lake.Form{lake.FormFile, lake.FormSeed, lake.FormParts, lake.FormIncremental}, pub.receipt.Form) {
		return "", "", false
	}
	o := pub.receipt.Outputs[0]
	total := int64(0)
	for _, f := range o.Files {
		total += f.Bytes
	}
	if len(o.Files) > inPlaceFiles || total > inPlaceBytes || len(o.Columns) == 0 {
		return "", "", false
	}
	files := pub.files(o.Relation)
	if len(files) == 1 && (pub.receipt.Form == lake.FormFile || pub.receipt.Form == lake.FormSeed) {
		file = wholeFile(files[0]) // whose columns are those of the receipt, in their order
	}
	return scanFiles(files, o.Columns), file, true
}

// replaceable reports whether FROM and JOIN stand before nothing but relations,
// and all relations are named.
func (s statement) replaceable() bool { return s.plain() && !s.mentions("trim", "substring") }

// wholeFile is a call that gives the columns and rows of one Parquet file. To bind a
// query around it that names the columns costs a twentieth of a small COPY, and an
// option as much.
func wholeFile(path string) string {
	option := ""
	if strings.Contains(path, "=") {
		option = ", hive_partitioning = false" // a folder called x=1 is no column
	}
	return "read_parquet(" + quoteText(literalPath(path)) + option + ")"
}

// hidesNothing reports whether a plain text names none of the columns that a call
// of read_parquet has besides those of its files, nor leaves it to the engine to
// find names.
func (s statement) hidesNothing() bool {
	return !slices.ContainsFunc(s.tokens, func(t token) bool {
		name, ok := identifier(s.text, t)
		name = strings.ToLower(name)
		return ok && (strings.HasPrefix(name, "file") || name == "rowid" || name == "natural" || name == "")
	})
}

// afterRelation are the words that may stand behind a relation and are no name that
// it gets.
var afterRelation = set("where", "group", "having", "order", "limit", "offset", "window", "qualify", "union", "intersect", "except",
	"join", "inner", "left", "right", "full", "cross", "natural", "positional", "asof", "semi", "anti", "outer", "on", "using", "fetch", "for", "at",
	"select", "from", "with", "tablesample", "pivot", "unpivot", "values")

// renamed reports whether the text gives the relation before token i a name of its
// own: without, a call would be known by the name of its function.
func (s statement) renamed(i int) bool {
	if i >= len(s.tokens) {
		return false
	}
	_, ok := identifier(s.text, s.tokens[i])
	return ok && !afterRelation[s.wordAt(i)]
}

// onlyRead gives the tokens at which schema.name is read: behind FROM or JOIN,
// schema and all. None where the name stands anywhere else, too, by whatever
// name it is called there.
func (s statement) onlyRead(schema, name string) []int {
	var places []int
	for i, t := range s.tokens {
		word, ok := identifier(s.text, t)
		if !ok || !strings.EqualFold(word, name) {
			continue
		}
		if i < 3 || s.text[s.tokens[i-1].start:s.tokens[i-1].end] != "." {
			return nil
		}
		before, ok := identifier(s.text, s.tokens[i-2])
		lead := s.wordAt(i - 3)
		if !ok || lead != "from" && lead != "join" || lead == "from" && i > 3 && s.wordAt(i-4) == "distinct" {
			return nil
		}
		if strings.EqualFold(before, schema) { // else it is another relation of that name
			places = append(places, i-2)
		}
	}
	return places
}

// replaced is the text with what stands for each name of two parts that begins at
// one of the tokens.
func (s statement) replaced(at map[int]string) string {
	var b strings.Builder
	done := 0
	for _, i := range sortedKeys(at) {
		b.WriteString(s.text[done:s.tokens[i].start] + at[i])
		done = s.tokens[i+2].end
	}
	b.WriteString(s.text[done:])
	return b.String()
}

// CopyTo implements materialize.Session.
func (k knowing) CopyTo(ctx context.Context, query, path string, metadata map[string]string) ([]materialize.StagedFile, error) {
	if k.inPlace == nil {
		return k.session.CopyTo(ctx, query, path, metadata)
	}
	files, err := k.session.CopyTo(ctx, k.inPlace.of(query), path, metadata)
	if err == nil || ctx.Err() != nil {
		return files, err
	}
	if err := k.inPlace.bind(ctx); err != nil {
		return nil, err
	}
	return k.session.CopyTo(ctx, query, path, metadata)
}

// query binds the text of a model over empty relations, and refuses casts that no
// value survives. Where it was bound by a copy, that is given too.
func (c *checker) query(ctx context.Context, s *session, n *plan.Node, st statement, read []lake.Column) ([]lake.Column, *inPlace, error) {
	untyped := !st.plain() || st.untyped(read)
	timed := !st.plain() || !st.untimed(read) || c.during == nil && st.joins()
	judge := func(st statement) ([]lake.Column, error) {
		columns, err := s.bindQuery(ctx, st, untyped)
		if err == nil && timed {
			err = s.checkCasts(ctx, st, c.during == nil)
		}
		return columns, err
	}
	copied, views := c.nothingInPlace(n, st)
	if copied != "" {
		look, err := oneQuery(copied)
		if err == nil {
			var columns []lake.Column
			if columns, err = judge(look); err == nil {
				return columns, &inPlace{text: st.text, copied: look.text, bind: func(ctx context.Context) error { return c.makeViews(ctx, s) }}, nil
			}
		}
	}
	if !views {
		columns, err := judge(st)
		if err == nil || ctx.Err() != nil {
			return columns, nil, err
		}
		// What the engine says of a mistake depends on all that it knows.
	}
	if err := c.makeViews(ctx, s); err != nil {
		return nil, nil, err
	}
	columns, err := judge(st)
	return columns, nil, err
}

// nothingInPlace is a copy of a text that reads, where it names a model that has
// no view yet, no rows of its columns in place; "" where it names none, or where a
// copy will not do. views says that the text itself needs the views of what is
// known.
func (c *checker) nothingInPlace(n *plan.Node, st statement) (copied string, views bool) {
	if !st.replaceable() {
		return "", true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := map[int]string{}
	for _, ref := range n.Refs {
		key := relationKey(ref.Relation())
		if c.unmade[key] == "" {
			continue
		}
		places := st.onlyRead(ref.Relation())
		if len(places) == 0 {
			return "", true
		}
		for _, i := range places {
			at[i] = "(" + emptyRelation(c.columns[key]) + ")"
		}
	}
	if len(at) == 0 {
		return "", false
	}
	return st.replaced(at), true
}
