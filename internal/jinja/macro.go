package jinja

import (
	"errors"
	"slices"
	"sort"

	"rbt/internal/diag"
)

// macroValue is a macro, test or call body together with the activation that
// it was defined in.
type macroValue struct {
	def   *macroDef
	outer *activation
}

// argList holds the evaluated arguments of a call.
type argList struct {
	pos    []any
	names  []string
	values []any
}

func (a *argList) named(name string) int { return slices.Index(a.names, name) }

func (a *argList) set(name string, v any) {
	a.names = append(a.names, name)
	a.values = append(a.values, v)
}

// take removes a named argument and gives its value.
func (a *argList) take(name string) (any, bool) {
	i := a.named(name)
	if i < 0 {
		return nil, false
	}
	v := a.values[i]
	a.names = slices.Delete(a.names, i, i+1)
	a.values = slices.Delete(a.values, i, i+1)
	return v, true
}

// returned carries the value of return() out of a macro.
type returned struct {
	value any
	pos   diag.Pos
}

// Error says what is wrong where no macro stops it.
func (*returned) Error() string { return "return() outside of a macro" }

// Return is dbt's return(): it ends the macro that is running and makes its
// call give the value itself, so that a list stays a list. Put it into
// Options.Globals under the name it should have. Called outside of a macro it
// is an error.
func Return(c *Call) (any, error) {
	var v any
	switch {
	case len(c.Args) == 1 && c.Kwargs == nil:
		v = c.Args[0]
	case len(c.Args) == 0 && c.Kwargs != nil && c.Kwargs.Len() == 1:
		for _, only := range c.Kwargs.All() {
			v = only
		}
	case len(c.Args) > 1 || c.Kwargs != nil:
		return nil, typeError("return() takes one value")
	}
	return nil, &returned{value: v, pos: c.Pos}
}

// hostArgs makes the arguments of CallMacro, the named ones sorted.
func hostArgs(args []any, kwargs map[string]any) (*argList, error) {
	a := &argList{}
	for _, v := range args {
		n, err := normal(v)
		if err != nil {
			return nil, err
		}
		a.pos = append(a.pos, n)
	}
	for name := range kwargs {
		a.names = append(a.names, name)
	}
	sort.Strings(a.names)
	for _, name := range a.names {
		n, err := normal(kwargs[name])
		if err != nil {
			return nil, err
		}
		a.values = append(a.values, n)
	}
	return a, nil
}

// args evaluates the arguments of a call.
func (p *proc) args(c *callArgs, rich bool) (*argList, error) {
	a := &argList{}
	eval := p.eval
	if rich {
		eval = p.evalRich
	}
	if len(c.args) > 0 {
		a.pos = make([]any, len(c.args))
		for i, x := range c.args {
			v, err := eval(x)
			if err != nil {
				return nil, err
			}
			a.pos[i] = v
		}
	}
	for _, kw := range c.kwargs {
		v, err := eval(kw.value)
		if err != nil {
			return nil, err
		}
		a.set(kw.name, v)
	}
	if c.star != nil {
		if err := p.starArgs(a, c.star); err != nil {
			return nil, p.at(err, c.star.origin())
		}
	}
	if c.starstar != nil {
		if err := p.starStarArgs(a, c.starstar); err != nil {
			return nil, p.at(err, c.starstar.origin())
		}
	}
	return a, nil
}

func (p *proc) starArgs(a *argList, x expr) error {
	v, err := p.eval(x)
	if err != nil {
		return err
	}
	list, err := p.r.collect(v)
	a.pos = append(a.pos, list...)
	return err
}

func (p *proc) starStarArgs(a *argList, x expr) error {
	v, err := p.eval(x)
	if err != nil {
		return err
	}
	d, ok := v.(*Dict)
	if !ok {
		if u, ok := v.(*Undefined); ok {
			return u.fault()
		}
		return typeError("** needs a dict, not %s", typeName(v))
	}
	for k, v := range d.All() {
		name, ok := text(k)
		if !ok {
			return typeError("** needs a dict with text keys, not %s", typeName(k))
		}
		if a.named(name) >= 0 {
			return typeError("the argument '%s' is given twice", name)
		}
		a.set(name, v)
	}
	return nil
}

func (p *proc) call(x *callExpr) (any, error) {
	fn, err := p.eval(x.fn)
	if err != nil {
		return nil, err
	}
	_, isMacro := fn.(*macroValue)
	a, err := p.args(&x.args, isMacro)
	if err != nil {
		return nil, err
	}
	v, err := p.callValue(fn, a, x)
	return v, p.blamed(err, blame(x), &x.args)
}

// blamed gives an error of a call its place: that of the named argument that
// caused it, or what is called.
func (p *proc) blamed(err error, called head, args *callArgs) error {
	var f *fault
	if err == nil || !errors.As(err, &f) || !f.Pos.IsZero() {
		return err
	}
	for _, kw := range args.kwargs {
		if kw.name == f.arg {
			return p.at(err, kw.at)
		}
	}
	return p.at(err, called)
}

// blame is the part of a call to underline: the name of what is called.
func blame(x expr) head {
	switch x := x.(type) {
	case *attrExpr:
		return x.at
	case *callExpr:
		return blame(x.fn)
	}
	return x.origin()
}

// callValue calls a value. Its errors may lack a place; blamed gives it.
func (p *proc) callValue(fn any, a *argList, x *callExpr) (any, error) {
	switch fn := fn.(type) {
	case *macroValue:
		at := blame(x)
		return p.callMacro(fn, a, at, at.in(p.tmpl.file))
	case Func:
		return p.callHost(fn, a, x)
	case *method:
		return fn.def.apply(p, fn.recv, a)
	case builtin:
		return fn.call(p, a)
	case *loopValue:
		if fn.recurse == nil {
			return nil, typeError("the loop can only be called if it is declared recursive")
		}
		if len(a.pos) != 1 || len(a.names) > 0 {
			return nil, typeError("loop() takes the sequence to go through")
		}
		return fn.recurse(p, a.pos[0], blame(x))
	case *joinerValue:
		return fn.call(), nil
	case Callable:
		return p.callHost(fn.Call, a, x)
	case *Undefined:
		return nil, fn.fault()
	}
	return nil, typeError("%s cannot be called", typeName(fn))
}

func calledName(x *callExpr) string {
	switch fn := x.fn.(type) {
	case *nameExpr:
		return fn.name + "()"
	case *attrExpr:
		return fn.name + "()"
	}
	return "call"
}

// callHost calls a function of the host, which never gets an undefined value.
func (p *proc) callHost(fn Func, a *argList, x *callExpr) (any, error) {
	at := blame(x)
	c := &Call{Ctx: p.r.ctx, Args: a.pos, Pos: at.in(p.tmpl.file), Callers: p.callers, expr: x, run: p.r}
	for i := range c.Args {
		c.Args[i] = plain(c.Args[i])
		if u, ok := c.Args[i].(*Undefined); ok {
			return nil, quoteHint(u, x, i)
		}
	}
	if len(a.names) > 0 {
		c.Kwargs = NewDict()
		for i, n := range a.names {
			v := plain(a.values[i])
			if u, ok := v.(*Undefined); ok {
				return nil, u.fault()
			}
			c.Kwargs.put(n, v)
		}
	}
	v, err := fn(c)
	if err == nil {
		v, err = normal(v)
	}
	if err != nil {
		return nil, fromHost(err, calledName(x), at, p.tmpl.file)
	}
	return v, nil
}

// quoteHint is the error of an undefined argument; a bare name is most often text
// that lacks its quotes.
func quoteHint(u *Undefined, x *callExpr, i int) error {
	err := u.fault()
	var f *fault
	if i < len(x.args.args) && errors.As(err, &f) && f.Hint == "" {
		if n, ok := x.args.args[i].(*nameExpr); ok && n.slot < 0 {
			f.Hint = "text stands in quotes: '" + n.name + "'"
		}
	}
	return err
}

// callMacro runs a macro. Its result is text, or the value given to return().
func (p *proc) callMacro(m *macroValue, a *argList, at head, pos diag.Pos) (any, error) {
	r, def := p.r, m.def
	if r.depth >= r.budget.Depth {
		return nil, p.at(failHint(diag.TemplateBudget, "look for a macro that calls itself without end",
			"macro calls stand more than %d deep in each other", r.budget.Depth), at)
	}
	r.depth++
	defer func() { r.depth-- }()
	sub := &proc{r: r, tmpl: def.tmpl, act: newActivation(def.slots, m.outer), out: &sink{r: r}}
	sub.callers = p.callers
	if !pos.IsZero() {
		sub.callers = append(make([]diag.Pos, 0, min(len(p.callers)+1, maxCallers)), pos)
		sub.callers = append(sub.callers, p.callers[:min(len(p.callers), maxCallers-1)]...)
	}
	if err := sub.enter(def.frame); err != nil {
		return nil, p.at(err, at)
	}
	if err := sub.bind(def, a); err != nil {
		return nil, err
	}
	if err := sub.defaults(def); err != nil {
		return nil, calledFrom(err, def.title(), pos)
	}
	_, err := sub.stmts(def.body)
	if err == nil {
		return sub.out.value(), nil
	}
	var ret *returned
	if errors.As(err, &ret) {
		return ret.value, nil
	}
	if pos.IsZero() {
		return nil, err
	}
	return nil, calledFrom(err, def.title(), pos)
}

func (d *macroDef) title() string {
	if d.kind == "call" {
		return "the body of the call block"
	}
	return d.kind + " '" + d.name + "'"
}

// bind puts the arguments into the slots of the parameters.
func (p *proc) bind(def *macroDef, a *argList) error {
	slots := p.act.slots
	n := min(len(a.pos), len(def.params))
	for i := range def.params {
		slot := def.params[i].name.slot
		if i < n {
			slots[slot] = a.pos[i]
		} else if v, ok := a.take(def.params[i].name.name); ok {
			slots[slot] = v
		}
	}
	if def.callerSlot >= 0 {
		v, ok := a.take("caller")
		if !ok || v == nil {
			w := p.place(head{place: def.pos})
			v = &Undefined{msg: "there is no caller(): the macro '" + def.name + "' is not called by {% call %}", pos: w.pos}
		}
		slots[def.callerSlot] = v
	}
	if def.kwargsSlot >= 0 {
		d := NewDict()
		for i, name := range a.names {
			d.put(name, plain(a.values[i]))
		}
		slots[def.kwargsSlot] = d
	} else if len(a.names) > 0 {
		return p.tooManyNamed(def, a.names[0])
	}
	if def.varargsSlot >= 0 {
		rest := make(Tuple, 0, len(a.pos)-n)
		for _, v := range a.pos[n:] {
			rest = append(rest, plain(v))
		}
		slots[def.varargsSlot] = rest
	} else if len(a.pos) > n {
		return typeError("%s takes at most %d arguments, %d are given", def.title(), len(def.params), len(a.pos))
	}
	return nil
}

func (p *proc) tooManyNamed(def *macroDef, name string) error {
	var names []string
	for _, prm := range def.params {
		if prm.name.name == name {
			return argError(name, "", "%s gets its argument '%s' twice", def.title(), name)
		}
		names = append(names, prm.name.name)
	}
	if name == "caller" {
		return typeError("%s does not use caller(), so it cannot be called by {%% call %%}", def.title())
	}
	return argError(name, nearest(name, names), "%s has no argument '%s'", def.title(), name)
}

// defaults fills the parameters that no argument was given for, in their order.
func (p *proc) defaults(def *macroDef) error {
	for i := range def.params {
		prm := &def.params[i]
		if _, unset := p.act.slots[prm.name.slot].(missing); !unset {
			continue
		}
		if prm.value == nil {
			w := p.place(prm.name.head)
			p.act.slots[prm.name.slot] = &Undefined{
				msg: "the parameter '" + prm.name.name + "' was not given", pos: w.pos, width: w.width}
			continue
		}
		v, err := p.evalRich(prm.value)
		if err != nil {
			return p.at(err, prm.value.origin())
		}
		p.act.slots[prm.name.slot] = v
	}
	return nil
}

// callBlock runs {% call %}: its body becomes caller of the called macro.
func (p *proc) callBlock(s *callStmt) error {
	x := s.call
	fn, err := p.eval(x.fn)
	if err != nil {
		return err
	}
	a, err := p.args(&x.args, true)
	if err != nil {
		return err
	}
	a.set("caller", &macroValue{def: s.def, outer: p.act})
	v, err := p.callValue(fn, a, x)
	if err != nil {
		return p.blamed(err, blame(x), &x.args)
	}
	return p.print(v, x.head)
}
