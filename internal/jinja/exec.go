package jinja

import (
	"errors"

	"rbt/internal/diag"
)

// activation holds the slots of one run of a unit.
type activation struct {
	slots []any
	outer *activation
}

func newActivation(n int32, outer *activation) *activation {
	a := &activation{slots: make([]any, n), outer: outer}
	for i := range a.slots {
		a.slots[i] = missing{}
	}
	return a
}

func (a *activation) up(hops int32) *activation {
	for ; hops > 0; hops-- {
		a = a.outer
	}
	return a
}

// proc runs the statements of one unit.
type proc struct {
	r       *run
	tmpl    *Template
	act     *activation
	out     *sink
	callers []diag.Pos
}

// control is how a statement ends.
type control uint8

const (
	goOn control = iota
	leaveLoop
	nextRound
)

func (p *proc) template() error {
	if err := p.enter(p.tmpl.frame); err != nil {
		return err
	}
	_, err := p.stmts(p.tmpl.body)
	return err
}

// enter prepares the slots of a frame.
func (p *proc) enter(f frameCode) error {
	for _, e := range f.entries {
		switch e.kind {
		case entryMissing:
			p.act.slots[e.slot] = missing{}
		case entryAlias:
			p.act.slots[e.slot] = p.act.up(e.hops).slots[e.source]
		case entryResolve:
			v, ok, err := p.r.global(p.tmpl, e.name)
			if err != nil {
				return err
			}
			if !ok {
				v = missing{}
			}
			p.act.slots[e.slot] = v
		}
	}
	return nil
}

// leave forgets the names of a frame.
func (p *proc) leave(f frameCode) {
	for _, e := range f.entries {
		p.act.slots[e.slot] = missing{}
	}
}

func (p *proc) stmts(body []stmt) (control, error) {
	for _, s := range body {
		if ctl, err := p.stmt(s); ctl != goOn || err != nil {
			return ctl, err
		}
	}
	return goOn, nil
}

func (p *proc) stmt(s stmt) (control, error) {
	if err := p.r.step(1); err != nil {
		return goOn, p.at(err, stmtHead(s))
	}
	switch s := s.(type) {
	case *textStmt:
		span := Span{Literal: true, Pos: s.in(p.tmpl.file), Callers: p.callers}
		return goOn, placed(p.out.add(s.text, span), head{place: s.place}, p.tmpl.file)
	case *outStmt:
		v, err := p.evalRich(s.x)
		if err == nil {
			err = p.print(v, s.x.origin())
		}
		if err != nil && s.commented {
			hintComment(err)
		}
		return goOn, p.at(err, s.x.origin())
	case *doStmt:
		_, err := p.eval(s.x)
		return goOn, p.at(err, s.x.origin())
	case *ifStmt:
		return p.ifStmt(s)
	case *forStmt:
		return p.forStmt(s)
	case *setStmt:
		return goOn, p.set(s)
	case *setBlockStmt:
		return p.setBlock(s)
	case *macroStmt:
		p.act.slots[s.name.slot] = &macroValue{def: s.def, outer: p.act}
	case *callStmt:
		return goOn, p.callBlock(s)
	case *filterStmt:
		return p.filterBlock(s)
	case *withStmt:
		return p.with(s)
	case breakStmt:
		return leaveLoop, nil
	case continueStmt:
		return nextRound, nil
	case *importStmt:
		return goOn, p.importAll(s)
	case *fromStmt:
		return goOn, p.importNames(s)
	}
	return goOn, nil
}

// stmtHead gives the place of a statement, for errors that no part of it made.
func stmtHead(s stmt) head {
	switch s := s.(type) {
	case *textStmt:
		return head{place: s.place}
	case *outStmt:
		return s.x.origin()
	case *doStmt:
		return s.x.origin()
	case *ifStmt:
		return s.conds[0].origin()
	case *forStmt:
		return head{place: s.place}
	case *setStmt:
		return s.target.origin()
	case *setBlockStmt:
		return head{place: s.place}
	case *macroStmt:
		return s.name.head
	case *callStmt:
		return s.call.head
	case *filterStmt:
		return head{place: s.place}
	case *withStmt:
		return s.at
	case *importStmt:
		return head{place: s.place}
	case *fromStmt:
		return head{place: s.place}
	case breakStmt:
		return s.head
	case continueStmt:
		return s.head
	}
	return head{}
}

func (p *proc) at(err error, h head) error {
	if err == nil {
		return nil
	}
	return placed(err, h, p.tmpl.file)
}

// hintComment tells why a commented-out line can be wrong.
func hintComment(err error) {
	var f *fault
	if errors.As(err, &f) && f.Hint == "" && len(f.calls) == 0 {
		f.Hint = "templates run in SQL comments too: to comment this out write {# … #}"
	}
}

// print writes a value to the output.
func (p *proc) print(v any, h head) error {
	if t, ok := v.(*richText); ok {
		return p.at(p.out.addRich(t), h)
	}
	s, err := p.r.str(v)
	if err != nil {
		return p.at(err, h)
	}
	span := Span{Pos: h.in(p.tmpl.file), Callers: p.callers}
	if o, ok := v.(Object); ok {
		span.Value = o
	}
	return p.at(p.out.add(s, span), h)
}

func (p *proc) ifStmt(s *ifStmt) (control, error) {
	for i, cond := range s.conds {
		ok, err := p.truth(cond)
		if err != nil {
			return goOn, err
		}
		if ok {
			return p.stmts(s.bodies[i])
		}
	}
	return p.stmts(s.other)
}

func (p *proc) truth(x expr) (bool, error) {
	v, err := p.eval(x)
	if err != nil {
		return false, err
	}
	ok, err := truth(v)
	return ok, p.at(err, x.origin())
}

func (p *proc) set(s *setStmt) error {
	if err := p.checkNamespaces(s.target); err != nil {
		return err
	}
	v, err := p.evalRich(s.value)
	if err != nil {
		return p.at(err, s.value.origin())
	}
	return p.assign(s.target, v)
}

// checkNamespaces refuses, before anything is computed, attributes of what is
// no namespace.
func (p *proc) checkNamespaces(t target) error {
	switch t := t.(type) {
	case *nsTarget:
		v, err := p.eval(t.ns)
		if err != nil {
			return err
		}
		if _, ok := v.(*namespaceValue); ok {
			return nil
		}
		if u, ok := v.(*Undefined); ok {
			return p.at(u.fault(), t.head)
		}
		return p.at(failHint(diag.TemplateType, "make it with namespace(), or use {% do d.update({…}) %} for a dict",
			"'%s' is %s: only attributes of a namespace can be assigned", t.ns.name, typeName(v)), t.head)
	case *tupleTarget:
		for _, item := range t.items {
			if err := p.checkNamespaces(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// assign binds a value to a target.
func (p *proc) assign(t target, v any) error {
	switch t := t.(type) {
	case *nameExpr:
		p.act.slots[t.slot] = v
	case *nsTarget:
		ns, err := p.eval(t.ns)
		if err != nil {
			return err
		}
		if ns, ok := ns.(*namespaceValue); ok {
			ns.attrs.put(t.attr, plain(v))
		}
	case *tupleTarget:
		return p.unpack(t, plain(v))
	}
	return nil
}

// unpack binds the items of a value to several targets.
func (p *proc) unpack(t *tupleTarget, v any) error {
	it, err := p.r.iterate(v)
	if err != nil {
		if isTypeFault(err) {
			err = typeError("%s cannot be taken apart into %d values", typeName(v), len(t.items))
		}
		return p.at(err, t.head)
	}
	list := make([]any, 0, len(t.items))
	for len(list) <= len(t.items) {
		item, ok, err := it()
		if err != nil {
			return p.at(err, t.head)
		}
		if !ok {
			break
		}
		list = append(list, item)
	}
	switch {
	case len(list) < len(t.items):
		return p.at(valueError("not enough values: %d are expected, %d are there", len(t.items), len(list)), t.head)
	case len(list) > len(t.items):
		return p.at(valueError("too many values: %d are expected", len(t.items)), t.head)
	}
	for i, item := range list {
		if err := p.assign(t.items[i], item); err != nil {
			return err
		}
	}
	return nil
}

// capture runs statements and gives their output as a value.
func (p *proc) capture(f frameCode, body []stmt) (any, control, error) {
	if err := p.enter(f); err != nil {
		return nil, goOn, err
	}
	out := p.out
	p.out = &sink{r: p.r}
	ctl, err := p.stmts(body)
	v := p.out.value()
	p.out = out
	return v, ctl, err
}

func (p *proc) setBlock(s *setBlockStmt) (control, error) {
	v, ctl, err := p.capture(s.frame, s.body)
	if ctl != goOn || err != nil {
		return ctl, err
	}
	if s.filter != nil {
		if v, err = p.filterOver(s.filter, v); err != nil {
			return goOn, err
		}
	}
	p.leave(s.frame)
	if err := p.checkNamespaces(s.target); err != nil {
		return goOn, err
	}
	return goOn, p.assign(s.target, v)
}

func (p *proc) filterBlock(s *filterStmt) (control, error) {
	v, ctl, err := p.capture(s.frame, s.body)
	if ctl != goOn || err != nil {
		return ctl, err
	}
	p.leave(s.frame)
	if v, err = p.filterOver(s.filter, v); err != nil {
		return goOn, err
	}
	return goOn, p.print(v, s.filter.at)
}

// filterOver applies a chain of filters, the first of which has no input, to a value.
func (p *proc) filterOver(f *filterExpr, v any) (any, error) {
	if f.in != nil {
		inner, err := p.filterOver(f.in.(*filterExpr), v)
		if err != nil {
			return nil, err
		}
		v = inner
	}
	return p.filter(f, v)
}

func (p *proc) with(s *withStmt) (control, error) {
	values := make([]any, len(s.values))
	for i, x := range s.values {
		v, err := p.evalRich(x)
		if err != nil {
			return goOn, p.at(err, x.origin())
		}
		values[i] = v
	}
	if err := p.enter(s.frame); err != nil {
		return goOn, err
	}
	for i, t := range s.targets {
		if err := p.assign(t, values[i]); err != nil {
			return goOn, err
		}
	}
	ctl, err := p.stmts(s.body)
	if ctl == goOn && err == nil {
		p.leave(s.frame)
	}
	return ctl, err
}
