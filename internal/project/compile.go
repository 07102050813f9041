package project

import (
	"context"
	"slices"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// CompileOptions settle what a template can see besides the project.
type CompileOptions struct {
	Incremental  bool      // what is_incremental() says
	RunStartedAt time.Time // UTC
	InvocationID string
	Vars         map[string]any                            // over the project's, for unit tests
	Overrides    map[string]any                            // macro or function -> what it returns, for unit tests
	Log          func(msg string, info bool, pos diag.Pos) // nil drops messages
	// Query runs a read-only query for run_query; nil while only dependencies
	// are sought (run_query then gives an empty result and execute is false).
	Query QueryFunc
	// MayRead, where set, is asked before each query with the references met so
	// far. A diagnostic of it is the error of the query.
	MayRead func(refs []Ref) error
}

// QueryFunc runs one read-only query of a template. A time.Time among the values
// is one with a zone.
type QueryFunc func(sql string) (columns []string, rows [][]any, err error)

// Day is a date, and Local a time without a zone, as QueryFunc gives them; both
// in UTC.
type (
	Day   struct{ time.Time }
	Local struct{ time.Time }
)

// Ref is one reference found while compiling: a model, seed or ingest output
// (Source false) or a source table.
type Ref struct {
	Node   string // name of the model or seed in the file's spelling, or "group.table"
	Output string // ingest output in its __ spelling, "" for the node itself
	Source bool
	Pos    diag.Pos
}

// Relation gives schema and name under which the engine knows it, unquoted:
// ("main", "orders"), ("main", "crystals__structure"), ("raw", "orders").
func (r Ref) Relation() (schema, name string) { return relationOf(r) }

// Compiled is a template turned into SQL.
type Compiled struct {
	SQL      string
	Result   *jinja.Result // spans of SQL; the Value of those that ref, source and this printed is a *Relation
	Refs     []Ref         // each relation once, at its first place
	This     bool          // {{ this }} was printed
	Volatile string        // run_started_at, invocation_id … where the text depends on the run; "" else
	Queried  bool          // run_query was called: the text can only be settled when the node runs
	VarsUsed []string      // sorted

	env  bool // the environment was read
	said diag.List
}

// Told reports whether Compile gave a remark or a warning of this text and place
// with c; nil told nothing.
func (c *Compiled) Told(msg string, pos diag.Pos) bool {
	return c != nil && slices.ContainsFunc(c.said, func(d diag.Diagnostic) bool { return d.Pos == pos && d.Msg == msg })
}

// Compile renders a model. The list holds what is wrong with the template, and
// where Options.Log takes no messages, the warnings and remarks that it makes.
func (p *Project) Compile(ctx context.Context, m *Model, o CompileOptions) (*Compiled, diag.List) {
	if c := p.drawn.take(m, o); c != nil {
		return c, c.said
	}
	r := &rendering{p: p, m: m, o: o}
	if p.lost.untold[m] {
		return nil, diag.List{diag.Consequence(diag.Pos{File: m.File})}
	}
	// Parsed trees of ten thousand models would take more memory than all else
	// that is known of them, and parsing again costs some microseconds.
	t, list := jinja.Parse(m.File, m.Body, m.BodyLine)
	if list.HasErrors() {
		return nil, list
	}
	return r.compile(ctx, t)
}

// CompileText renders a text that is no model: --inline, or the body of a file
// whose line is that of its first character.
func (p *Project) CompileText(ctx context.Context, file, text string, line int, o CompileOptions) (*Compiled, diag.List) {
	p.texts.keep(file, text, line)
	t, list := jinja.Parse(file, text, line)
	if list.HasErrors() {
		return nil, list
	}
	r := &rendering{p: p, o: o}
	return r.compile(ctx, t)
}

// compile renders a template and turns its error into a list.
func (r *rendering) compile(ctx context.Context, t *jinja.Template) (*Compiled, diag.List) {
	res, err := r.render(ctx, t)
	if err != nil {
		// What was said before is what a user who looks for the mistake wants to see.
		return nil, append(r.said, r.p.masked(r.p.packageHints(ownPlaces(asList(err, diag.Pos{File: t.File()}))))...)
	}
	ownSpans(res.Spans)
	c := r.compiled(res)
	return c, c.said
}

// notOfDBT reports whether a name is one that dbt gives to templates and rbt does
// not have.
func notOfDBT(name string) bool {
	return slices.Contains([]string{"graph", "flags", "dbt_version", "selected_resources", "metric", "invocation_args_dict",
		"thread_id", "schema", "database", "dbt_metadata_envs", "store_result", "api"}, name)
}

// packageHints says of a name that is not known where it could come from; of one
// that stands before a dot, that packages of dbt are not there.
func (p *Project) packageHints(list diag.List) diag.List {
	for i, d := range list {
		name, ok := strings.CutSuffix(d.Msg, "' is undefined")
		text, known := p.SourceText(d.Pos.File)
		if d.Code != diag.UndefinedName || d.Hint != "" || !ok || !known {
			continue
		}
		name = strings.TrimPrefix(name, "'")
		if notOfDBT(name) {
			list[i] = d.WithHint("dbt gives %s to templates, rbt does not", name)
			continue
		}
		if name == "model" {
			list[i] = d.WithHint("{{ model }} is the model that is built; there is none here")
			continue
		}
		if name == "this" {
			list[i] = d.WithHint("{{ this }} is what a model made; there is none here")
			continue
		}
		if at := offsetOf(text, d.Pos); at >= 0 && strings.HasPrefix(text[at:], name+".") {
			list[i] = d.WithHint("rbt has no packages; what it has of them are dbt.… and dbt_utils.…; copy the macro into macros/ and call it without %s.", name)
			continue
		}
		list[i] = d.WithHint("give it a value before, with {%% set %s = … %%}, or read it with var('%s')", name, name)
	}
	return list
}

// masked takes the secrets out of diagnostics.
func (p *Project) masked(list diag.List) diag.List {
	for i := range list {
		list[i].Msg, list[i].Hint = p.Mask(list[i].Msg), p.Mask(list[i].Hint)
	}
	return list
}

// renderText renders a text in which only the given names are known.
func (p *Project) renderText(ctx context.Context, file, text string, line int, globals map[string]any) (string, error) {
	t, list := jinja.Parse(file, text, line)
	if list.HasErrors() {
		return "", list
	}
	res, err := jinja.Render(ctx, t, jinja.Options{Globals: globals})
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(res.Text, "\n"), nil
}
