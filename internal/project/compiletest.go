package project

import (
	"context"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// CompileTest renders a singular test, or calls the {% test %} block of a
// generic one with its relation, column and arguments. A built-in assertion has
// no template: asking for one is an error.
func (p *Project) CompileTest(ctx context.Context, t *Test, o CompileOptions) (*Compiled, diag.List) {
	r := &rendering{p: p, o: o}
	if t.Template != nil {
		return r.compile(ctx, t.Template)
	}
	if builtinTests[t.Kind] != nil {
		return nil, diag.List{diag.Errorf(diag.UnknownTest, t.Pos, "the test %s is built in and has no template", t.Kind)}
	}
	relation := r.testRelation(t)
	kwargs, list := r.testArguments(t)
	if list != nil {
		return nil, list
	}
	model := any(relation)
	if t.Where != "" {
		// A condition goes around the relation, as in dbt, so that blocks need
		// not know of it.
		model = "(select * from " + relation.String() + " where " + t.Where + "\n) as filtered"
	}
	ctx = context.WithValue(ctx, renderingKey{}, r)
	res, err := jinja.CallMacro(ctx, r.library(), "test", t.Kind, []any{model}, kwargs, r.options())
	if err != nil {
		list := asList(p.lost.follows(err), t.Pos)
		for i := range list {
			list[i] = list[i].WithNote(t.Pos, "the test stands here")
		}
		return nil, p.masked(list)
	}
	c := r.compiled(res)
	return c, c.said
}

// testRelation gives the relation that a generic test is about.
func (r *rendering) testRelation(t *Test) *Relation {
	group, _, source := strings.Cut(t.Node, ".")
	ref := Ref{Node: t.Node, Output: t.Output, Pos: t.Pos, Source: source && r.p.hasGroup(group)}
	r.note(ref)
	schema, name := relationOf(ref)
	return &Relation{Schema: schema, Name: name, Ref: ref}
}

func (p *Project) hasGroup(group string) bool {
	for _, g := range p.index.groups {
		if folded(g) == folded(group) {
			return true
		}
	}
	return false
}

// testArguments gives the named arguments of a test block. Texts that are a
// ref() or source() become relations.
func (r *rendering) testArguments(t *Test) (map[string]any, diag.List) {
	kwargs := map[string]any{}
	for _, name := range sortedKeys(t.Args.Custom) {
		v := t.Args.Custom[name]
		if text, ok := v.(string); ok {
			if call, isCall := referenceCall(text); isCall {
				ref, problem := r.p.lookup(call)
				if problem != nil {
					problem.Pos = t.Pos
					return nil, diag.List{*problem}
				}
				ref.Pos = t.Pos
				r.note(ref)
				schema, relation := relationOf(ref)
				kwargs[name] = &Relation{Schema: schema, Name: relation, Ref: ref}
				continue
			}
		}
		kwargs[name] = detached(v)
	}
	if len(t.Columns) > 0 {
		kwargs["column_name"] = t.Columns[0]
	}
	return kwargs, nil
}

// referenceCall reports whether a text is ref('…') or source('…', '…').
func referenceCall(text string) (refCall, bool) {
	trimmed := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "{{"))
	if !strings.HasPrefix(trimmed, "ref") && !strings.HasPrefix(trimmed, "source") {
		return refCall{}, false
	}
	call, problem := parseReference(scalarNode(text))
	return call, problem == "" && !call.bare && !call.this
}

// snippet is SQL in YAML that may hold a template: a condition.
type snippet struct {
	text *string
	at   *yaml.Node
	file string
}

// renderSnippets renders the conditions of a test that hold templates. What they
// refer to is noted in the test.
func (l *loader) renderSnippets(t *Test) {
	for _, s := range t.snippets {
		if s.at == nil || !strings.Contains(*s.text, "{{") && !strings.Contains(*s.text, "{%") {
			continue
		}
		t.templated = true
		pos := diag.Pos{File: s.file, Line: s.at.Line, Col: s.at.Column}
		template, list := jinja.Parse(s.file, *s.text, s.at.Line)
		r := &rendering{p: l.p}
		var res *jinja.Result
		if !list.HasErrors() {
			var err error
			res, err = r.render(l.ctx, template)
			list = asList(err, pos)
		}
		for _, d := range list {
			l.report(inScalar(d, s.at))
		}
		switch {
		case res == nil:
		case r.volatile != "":
			l.report(diag.Errorf(diag.BadValue, pos, "a condition cannot use %s: it would mean another thing in every run", r.volatile).
				WithHint("use now() of SQL"))
		case r.queried:
			l.report(diag.Errorf(diag.BadValue, pos, "a condition cannot run a query"))
		default:
			*s.text = res.Text
			t.Refs = append(t.Refs, r.refs...)
		}
	}
}

// inScalar moves a place within a scalar's text to the file: right for one line,
// the scalar's own place where it is not known.
func inScalar(d diag.Diagnostic, n *yaml.Node) diag.Diagnostic {
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		d.Pos.Line++
		d.Pos.Col, d.Width = 0, 0
	case d.Pos.Line != n.Line:
		d.Pos.Col, d.Width = 0, 0
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		d.Pos.Col += n.Column
	default:
		d.Pos.Col += n.Column - 1
	}
	return d
}
