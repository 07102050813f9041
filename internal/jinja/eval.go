package jinja

import (
	"errors"
	"strings"

	"rbt/internal/diag"
)

// eval gives the value of an expression, text without its origin.
func (p *proc) eval(x expr) (any, error) {
	v, err := p.evalRich(x)
	if t, ok := v.(*richText); ok {
		return t.text, err
	}
	return v, err
}

// evalRich gives the value of an expression; text may still know its origin.
func (p *proc) evalRich(x expr) (any, error) {
	if err := p.r.step(1); err != nil {
		return nil, p.at(err, x.origin())
	}
	switch x := x.(type) {
	case *constExpr:
		return x.value, nil
	case *nameExpr:
		return p.name(x)
	case *attrExpr:
		obj, err := p.eval(x.obj)
		if err != nil {
			return nil, err
		}
		v, err := p.r.getattr(obj, x.name, p.place(x.at))
		return p.again(v, x.at), p.at(err, x.at)
	case *itemExpr:
		return p.item(x)
	case *callExpr:
		return p.call(x)
	case *filterExpr:
		var in any
		var err error
		if x.def != nil && x.def.rich {
			in, err = p.evalRich(x.in)
		} else {
			in, err = p.eval(x.in)
		}
		if err != nil {
			return nil, err
		}
		return p.filter(x, in)
	case *testExpr:
		return p.test(x)
	case *unaryExpr:
		return p.unary(x)
	case *notExpr:
		ok, err := p.truth(x.x)
		return !ok, err
	case *binaryExpr:
		return p.binary(x)
	case *logicExpr:
		l, err := p.evalRich(x.l)
		if err != nil {
			return nil, err
		}
		ok, err := truth(l)
		if err != nil || ok != x.and {
			return l, p.at(err, x.l.origin())
		}
		return p.evalRich(x.r)
	case *concatExpr:
		return p.concat(x)
	case *compareExpr:
		return p.compare(x)
	case *condExpr:
		return p.cond(x)
	case *tupleExpr:
		items, err := p.evalAll(x.items)
		return Tuple(items), err
	case *listExpr:
		items, err := p.evalAll(x.items)
		return &List{items: items}, err
	case *dictExpr:
		return p.dict(x)
	}
	return nil, nil
}

func (p *proc) place(h head) where { return where{pos: h.in(p.tmpl.file), width: int(h.width)} }

// where is a place with the width to underline.
type where struct {
	pos   diag.Pos
	width int
}

// again gives an undefined value that was stored somewhere the place where it is
// met now.
func (p *proc) again(v any, h head) any {
	if u, ok := v.(*Undefined); ok && u.pos != h.in(p.tmpl.file) {
		return u.usedAt(h.in(p.tmpl.file), int(h.width))
	}
	return v
}

func (p *proc) name(x *nameExpr) (any, error) {
	if x.slot >= 0 {
		v := p.act.up(x.hops).slots[x.slot]
		switch v.(type) {
		case missing:
			return p.undefinedName(x), nil
		case *Undefined:
			return p.again(v, x.head), nil
		}
		return v, nil
	}
	v, ok, err := p.r.global(p.tmpl, x.name)
	if err != nil {
		return nil, p.at(err, x.head)
	}
	if !ok {
		return p.undefinedName(x), nil
	}
	return v, nil
}

func (p *proc) undefinedName(x *nameExpr) *Undefined {
	w := p.place(x.head)
	return &Undefined{msg: "'" + x.name + "' is undefined", pos: w.pos, width: w.width, hint: func() string {
		return p.r.nameHint(p.tmpl, x.name)
	}}
}

func (p *proc) evalAll(list []expr) ([]any, error) {
	values := make([]any, len(list))
	for i, x := range list {
		v, err := p.eval(x)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (p *proc) dict(x *dictExpr) (any, error) {
	d := NewDict()
	for i := range x.keys {
		k, err := p.eval(x.keys[i])
		if err != nil {
			return nil, err
		}
		v, err := p.eval(x.values[i])
		if err != nil {
			return nil, err
		}
		if err := d.Set(k, v); err != nil {
			return nil, p.at(err, x.keys[i].origin())
		}
	}
	return d, nil
}

func (p *proc) item(x *itemExpr) (any, error) {
	obj, err := p.eval(x.obj)
	if err != nil {
		return nil, err
	}
	if s, ok := x.key.(*sliceExpr); ok {
		bounds, err := p.evalSlice(s)
		if err != nil {
			return nil, err
		}
		v, err := p.r.slice(obj, bounds)
		return v, p.at(err, s.head)
	}
	key, err := p.eval(x.key)
	if err != nil {
		return nil, err
	}
	v, err := p.r.getitem(obj, key, p.place(x.key.origin()))
	return p.orUndefined(v, err, x.key.origin())
}

// orUndefined gives the value of a subscript; like Jinja2, what a value does not
// offer at all is undefined, an error only when it is used.
func (p *proc) orUndefined(v any, err error, at head) (any, error) {
	var f *fault
	if err != nil && isTypeFault(err) && errors.As(err, &f) {
		w := p.place(at)
		return &Undefined{msg: f.Msg, pos: w.pos, width: w.width}, nil
	}
	return p.again(v, at), p.at(err, at)
}

func (p *proc) evalSlice(s *sliceExpr) ([3]any, error) {
	var bounds [3]any
	for i, x := range [3]expr{s.lo, s.hi, s.step} {
		if x == nil {
			continue
		}
		v, err := p.eval(x)
		if err != nil {
			return bounds, err
		}
		if u, ok := v.(*Undefined); ok {
			return bounds, u.fault()
		}
		bounds[i] = v
	}
	return bounds, nil
}

func (p *proc) cond(x *condExpr) (any, error) {
	ok, err := p.truth(x.cond)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return p.evalRich(x.then)
	case x.other != nil:
		return p.evalRich(x.other)
	}
	w := p.place(x.head)
	return &Undefined{lenient: true, pos: w.pos, width: w.width,
		msg: "the condition is false and there is no else, so there is no value here"}, nil
}

func (p *proc) unary(x *unaryExpr) (any, error) {
	v, err := p.eval(x.x)
	if err != nil {
		return nil, err
	}
	switch n := v.(type) {
	case float64:
		if x.op == tokSub {
			return -n, nil
		}
		return n, nil
	case *Undefined:
		return nil, n.fault()
	}
	if !isWhole(v) {
		return nil, p.at(typeError("a sign cannot stand before %s", typeName(v)), x.head)
	}
	if x.op == tokSub {
		return arithmetic(tokSub, int64(0), v)
	}
	return arithmetic(tokAdd, int64(0), v)
}

// concat joins texts; parts that know their origin keep it.
func (p *proc) concat(x *concatExpr) (any, error) {
	out := &sink{r: p.r}
	outer := p.out
	rich := false
	var b strings.Builder
	parts := make([]any, len(x.parts))
	for i, part := range x.parts {
		v, err := p.evalRich(part)
		if err != nil {
			return nil, err
		}
		switch v.(type) {
		case *richText, Object:
			rich = true
		}
		parts[i] = v
	}
	if rich {
		p.out = out
		defer func() { p.out = outer }()
		for i, v := range parts {
			if err := p.print(v, x.parts[i].origin()); err != nil {
				return nil, err
			}
		}
		return out.value(), nil
	}
	for i, v := range parts {
		s, err := p.r.str(v)
		if err == nil {
			err = p.r.size(b.Len() + len(s))
		}
		if err != nil {
			return nil, p.at(err, x.parts[i].origin())
		}
		b.WriteString(s)
	}
	return b.String(), p.at(p.r.grow(int64(b.Len())), x.head)
}

func (p *proc) compare(x *compareExpr) (any, error) {
	left, err := p.eval(x.first)
	if err != nil {
		return nil, err
	}
	for _, op := range x.ops {
		right, err := p.eval(op.x)
		if err != nil {
			return nil, err
		}
		ok, err := p.r.compareOp(op.op, left, right)
		if err != nil {
			return nil, p.at(err, op.at)
		}
		if !ok {
			return false, nil
		}
		left = right
	}
	return true, nil
}

func (r *run) compareOp(op compareOp, l, right any) (bool, error) {
	switch op {
	case opEq:
		return r.equal(l, right)
	case opNe:
		ok, err := r.equal(l, right)
		return !ok, err
	case opIn:
		return r.contains(right, l)
	case opNotIn:
		ok, err := r.contains(right, l)
		return !ok, err
	}
	return r.ordered(op, l, right)
}

func (p *proc) binary(x *binaryExpr) (any, error) {
	l, err := p.evalRich(x.l)
	if err != nil {
		return nil, err
	}
	right, err := p.evalRich(x.r)
	if err != nil {
		return nil, err
	}
	if x.op == tokAdd {
		_, lok := l.(*richText)
		_, rok := right.(*richText)
		_, lplain := l.(string)
		_, rplain := right.(string)
		if lok && (rok || rplain) || rok && (lok || lplain) {
			return p.joinRich(x, l, right)
		}
	}
	v, err := p.r.operate(x.op, plain(l), plain(right))
	return v, p.at(err, x.at)
}

// joinRich is + for texts of which at least one knows its origin.
func (p *proc) joinRich(x *binaryExpr, l, right any) (any, error) {
	outer := p.out
	p.out = &sink{r: p.r}
	defer func() { p.out = outer }()
	if err := p.print(l, x.l.origin()); err != nil {
		return nil, err
	}
	if err := p.print(right, x.r.origin()); err != nil {
		return nil, err
	}
	return p.out.value(), nil
}

// operate computes l op r.
func (r *run) operate(op tokenKind, l, right any) (any, error) {
	_, isText := text(l)
	for _, v := range [2]any{l, right} {
		// The value of a condition without else prints as nothing, in formats too.
		if u, ok := v.(*Undefined); ok && !(u.lenient && isText && op == tokMod) {
			return nil, u.fault()
		}
	}
	if isNumber(l) && isNumber(right) {
		return arithmetic(op, l, right)
	}
	if v, ok, err := operateHost(op, l, right); ok || err != nil {
		return v, err
	}
	if v, ok, err := r.operateMarkup(op, l, right); ok || err != nil {
		return v, err
	}
	switch op {
	case tokMod:
		if s, ok := text(l); ok {
			return r.percentFormat(s, right, false)
		}
	case tokAdd:
		if v, ok, err := r.join(l, right); ok || err != nil {
			return v, err
		}
	case tokMul:
		if n, ok := small(right); ok {
			if v, ok, err := r.repeat(l, n); ok || err != nil {
				return v, err
			}
		}
		if n, ok := small(l); ok {
			if v, ok, err := r.repeat(right, n); ok || err != nil {
				return v, err
			}
		}
	}
	return nil, failHint(diag.TemplateType, operateHint(op, l, right), "'%s' cannot be applied to %s and %s",
		operatorText(op), typeName(l), typeName(right))
}

// operateMarkup computes with HTML-safe text, which escapes what it is joined
// with and stays safe.
func (r *run) operateMarkup(op tokenKind, l, right any) (any, bool, error) {
	if !isMarkup(l) && !isMarkup(right) {
		return nil, false, nil
	}
	a, aok := safeText(l)
	b, bok := safeText(right)
	var v any
	var err error
	switch {
	case op == tokAdd && aok && bok:
		v, _, err = r.join(a, b)
	case op == tokMul && aok && isWhole(right):
		v, _, err = r.repeat(a, bound(right))
	case op == tokMul && bok && isWhole(l):
		v, _, err = r.repeat(b, bound(l))
	case op == tokMod && isMarkup(l):
		v, err = r.percentFormat(a, right, true)
	default:
		return nil, false, nil
	}
	s, _ := text(v)
	return markup(s), true, err
}

// safeText gives text as HTML-safe text.
func safeText(v any) (string, bool) {
	s, ok := text(v)
	if !ok || isMarkup(v) {
		return s, ok
	}
	return escapeHTML(s), true
}

func isMarkup(v any) bool {
	_, ok := v.(markup)
	return ok
}

func operateHint(op tokenKind, l, right any) string {
	_, lt := text(l)
	_, rt := text(right)
	switch {
	case op == tokAdd && (lt || rt):
		return "join text with ~, or make the text a number: value | int"
	case lt || rt:
		return "make the text a number first: value | int"
	}
	return ""
}

func operatorText(op tokenKind) string {
	switch op {
	case tokAdd:
		return "+"
	case tokSub:
		return "-"
	case tokMul:
		return "*"
	case tokDiv:
		return "/"
	case tokFloorDiv:
		return "//"
	case tokMod:
		return "%"
	}
	return "**"
}

// join is + for texts, lists and tuples.
func (r *run) join(a, b any) (any, bool, error) {
	if s, ok := text(a); ok {
		t, ok := text(b)
		if !ok {
			return nil, false, nil
		}
		if err := r.grow(int64(len(s)) + int64(len(t))); err != nil {
			return nil, false, err
		}
		return s + t, true, nil
	}
	x, xok := items(a)
	y, yok := items(b)
	if !xok || !yok || !sameSequence(a, b) {
		return nil, false, nil
	}
	if err := r.room(int64(len(x)) + int64(len(y))); err != nil {
		return nil, false, err
	}
	sum := append(append(make([]any, 0, len(x)+len(y)), x...), y...)
	if _, ok := a.(*List); ok {
		return &List{items: sum}, true, nil
	}
	return Tuple(sum), true, nil
}

// repeat is * of a text, list or tuple with a number.
func (r *run) repeat(v any, n int64) (any, bool, error) {
	n = max(n, 0)
	if s, ok := text(v); ok {
		if n > 0 && len(s) > 0 {
			if n > int64(r.budget.Output) {
				return nil, false, r.size(r.budget.Output + 1)
			}
			if err := r.grow(n * int64(len(s))); err != nil {
				return nil, false, err
			}
		}
		return strings.Repeat(s, int(n)), true, nil
	}
	list, ok := items(v)
	if !ok {
		return nil, false, nil
	}
	if len(list) > 0 {
		if n > r.left {
			return nil, false, r.room(n)
		}
		if err := r.room(n * int64(len(list))); err != nil {
			return nil, false, err
		}
	}
	out := make([]any, 0, int(n)*len(list))
	for ; n > 0 && len(list) > 0; n-- {
		out = append(out, list...)
	}
	if _, ok := v.(*List); ok {
		return &List{items: out}, true, nil
	}
	return Tuple(out), true, nil
}
