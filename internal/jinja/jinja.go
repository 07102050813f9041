// Package jinja is the template language of rbt: it turns template text into
// SQL, and remembers for every byte of the SQL which place of which template
// made it. It follows Jinja2 3.1 of Python with undefined names as errors and
// the extensions do and loopcontrols.
//
// It is pure: it reads no file, no environment and no clock, knows nothing of
// models, and a template reaches nothing but what Options puts in. It never
// renders silently wrong: what it does not have it refuses by name. Every
// render is bounded by a Budget.
//
// Its words: a template is parsed once and rendered many times; a library is
// the set of templates whose macros every render sees; a frame is the scope of
// a block, a unit what has slots of its own (template, macro, call body); a
// span is a part of the output with the place that made it; rich text is text
// that still knows its spans.
package jinja

import (
	"context"
	"slices"

	"rbt/internal/diag"
)

// Template is a parsed template. It is never changed and safe for use by
// several goroutines.
type Template struct {
	file   string
	line   int // of the file, on which its text begins
	body   []stmt
	frame  frameCode
	names  map[string]symbol
	slots  int32
	size   int // bytes of its text
	macros []*macroStmt
	// plainMacros is set where the top level holds nothing but macros and text,
	// so that its macros can be made without running it.
	plainMacros bool
	errs        diag.List
}

// MacroInfo describes a macro or test defined at the top level of a template.
type MacroInfo struct {
	Name   string
	Kind   string // "macro" or "test"
	Pos    diag.Pos
	Params []ParamInfo
}

// ParamInfo describes one parameter of a macro.
type ParamInfo struct {
	Name       string
	HasDefault bool
	Pos        diag.Pos
}

// Parse parses a template. file is the name in places; line is the line of the
// file, from 1, on which src begins. The list holds every problem that was
// found; the template is never nil, but one with errors renders to the first.
func Parse(file, src string, line int) (*Template, diag.List) {
	t := &Template{file: file, line: line, size: len(src)}
	if len(src) > maxSource {
		t.errs = diag.List{diag.Errorf(diag.TemplateBudget, diag.Pos{File: file, Line: line},
			"the template has %d bytes; the most is %d", len(src), maxSource).
			WithHint("keep data in a seed or source, not in a template")}
		return t, t.errs
	}
	p := &parser{lex: newLexer(file, src, line), tmpl: t}
	t.body = p.template()
	t.errs = p.diags.Sort()
	if t.errs.HasErrors() {
		t.body = nil
		return t, t.errs
	}
	t.frame, t.names, t.slots = bindTemplate(t.body)
	t.plainMacros = true
	for _, s := range t.body {
		switch s := s.(type) {
		case *macroStmt:
			t.macros = append(t.macros, s)
		case *textStmt:
		default:
			t.plainMacros = false
		}
	}
	return t, nil
}

// File gives the name of the template as Parse got it.
func (t *Template) File() string { return t.file }

// Macros lists the macros and tests of the top level in their order.
func (t *Template) Macros() []MacroInfo {
	list := make([]MacroInfo, 0, len(t.macros))
	for _, m := range t.macros {
		info := MacroInfo{Name: m.def.name, Kind: m.def.kind, Pos: m.def.pos.in(t.file)}
		for _, prm := range m.def.params {
			info.Params = append(info.Params, ParamInfo{
				Name: prm.name.name, HasDefault: prm.value != nil, Pos: prm.name.in(t.file)})
		}
		list = append(list, info)
	}
	return list
}

// Options is what a render may reach and use.
type Options struct {
	Globals map[string]any // the names that templates see; values as FromGo gives them, Func and Object
	// Own are names of this render alone, before Globals: many renders share one
	// map of globals.
	Own     map[string]any
	Library *Library // macros that every template sees; may be nil
	Budget  Budget
}

// Render renders a template. The error is a diag.Diagnostic with the place and,
// as notes, the macro calls around it; a diag.List for a template that could
// not be parsed; or wraps ctx.Err().
func Render(ctx context.Context, t *Template, o Options) (*Result, error) {
	if t.errs.HasErrors() {
		return nil, slices.Clone(t.errs)
	}
	r := newRun(ctx, o)
	out := &sink{r: r, spans: make([]Span, 0, len(t.body))}
	out.b.Grow(t.size)
	p := &proc{r: r, tmpl: t, act: newActivation(t.slots, nil), out: out}
	if err := p.template(); err != nil {
		return nil, final(err, t.file)
	}
	return p.out.result(diag.Pos{File: t.file, Line: t.line, Col: 1}), nil
}

// CallMacro calls the macro or test (kind) of the library with the name and
// renders what it gives. Arguments are as in Options.Globals.
func CallMacro(ctx context.Context, l *Library, kind, name string, args []any, kwargs map[string]any, o Options) (*Result, error) {
	o.Library = l
	r := newRun(ctx, o)
	def := l.macro(kind, name)
	if def == nil {
		d := diag.Errorf(diag.UndefinedName, diag.Pos{}, "there is no %s '%s'", kind, name)
		if near := diag.Nearest(name, l.names(kind)); near != "" {
			d.Hint = "did you mean '" + near + "'?"
		}
		return nil, d
	}
	list, err := hostArgs(args, kwargs)
	if err != nil {
		return nil, err
	}
	p := &proc{r: r, tmpl: def.tmpl, out: &sink{r: r}}
	act, err := r.module(def.tmpl)
	if err == nil {
		var v any
		if v, err = p.callMacro(&macroValue{def: def, outer: act}, list, head{place: def.pos}, diag.Pos{}); err == nil {
			err = p.print(v, head{place: def.pos})
		}
		err = p.at(err, head{place: def.pos})
	}
	if err != nil {
		return nil, final(err, def.tmpl.file)
	}
	return p.out.result(def.pos.in(def.tmpl.file)), nil
}

// Evaluate gives the value of an expression that stands alone, for example the
// text between "{{" and "}}" in a YAML value. line is the line on which it begins.
func Evaluate(ctx context.Context, expression, file string, line int, o Options) (any, error) {
	t := &Template{file: file}
	lex := newLexer(file, expression, line)
	lex.mode = inOutput
	p := &parser{lex: lex, tmpl: t}
	p.advance()
	x := p.tuple(tupleRules{cond: true})
	if !p.failed && p.cur.kind != tokEOF {
		p.unexpected("expected the end of the expression")
	}
	if p.diags.HasErrors() {
		return nil, p.diags.Sort()[0]
	}
	t.frame, t.names, t.slots = bindTemplate([]stmt{&outStmt{x: x}})
	r := newRun(ctx, o)
	e := &proc{r: r, tmpl: t, act: newActivation(t.slots, nil), out: &sink{r: r}}
	v, err := e.eval(x)
	if u, ok := v.(*Undefined); ok && err == nil && !u.lenient {
		err = u.fault()
	}
	if err != nil {
		return nil, final(err, file)
	}
	return v, nil
}
