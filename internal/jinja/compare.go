package jinja

import (
	"cmp"
	"math"
	"math/big"
	"strings"

	"rbt/internal/diag"
)

// truth is Python's truth of a value.
func truth(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case int64:
		return v != 0, nil
	case string:
		return v != "", nil
	case *richText:
		return v.text != "", nil
	case markup:
		return v != "", nil
	case float64:
		return v != 0, nil
	case *List:
		return len(v.items) > 0, nil
	case *Dict:
		return v.Len() > 0, nil
	case Tuple:
		return len(v) > 0, nil
	case rangeValue:
		return v.len() > 0, nil
	case dictView:
		return v.dict.Len() > 0, nil
	case Sequence:
		return v.Len() > 0, nil
	case *Undefined:
		if v.lenient {
			return false, nil
		}
		return false, v.fault()
	}
	return true, nil
}

// text gives the characters of a value that is text.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case *richText:
		return v.text, true
	case markup:
		return string(v), true
	}
	return "", false
}

// equal is Python's ==. Values of unlike types are never equal.
func (r *run) equal(a, b any) (bool, error) { return r.equalDepth(a, b, 0) }

func (r *run) equalDepth(a, b any, depth int) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if depth > maxDepth {
		return false, tooDeep()
	}
	if u, ok := b.(*Undefined); ok && !u.lenient {
		return false, u.fault()
	}
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b) == 0, nil
	}
	if s, ok := named(a); ok {
		t, same := named(b)
		return same && s == t, nil
	}
	if c, ok := orderHost(a, b); ok {
		return c == 0, nil
	}
	switch a := a.(type) {
	case nil:
		return b == nil, nil
	case *List:
		if b, ok := b.(*List); ok {
			return r.equalItems(a.items, b.items, depth)
		}
		return false, nil
	case Tuple, *groupValue:
		x, _ := items(a)
		if y, ok := items(b); ok && sameSequence(a, b) {
			return r.equalItems(x, y, depth)
		}
		return false, nil
	case *Dict:
		if b, ok := b.(*Dict); ok {
			return r.equalDicts(a, b, depth)
		}
		return false, nil
	case rangeValue:
		b, ok := b.(rangeValue)
		return ok && a.len() == b.len() && (a.len() == 0 || a.start == b.start && (a.len() == 1 || a.step == b.step)), nil
	case dictView:
		return r.equalViews(a, b, depth)
	case *Undefined:
		if !a.lenient {
			return false, a.fault()
		}
		_, ok := b.(*Undefined)
		return ok, nil
	}
	return identical(a, b), nil
}

func (r *run) equalItems(a, b []any, depth int) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if identical(a[i], b[i]) {
			continue
		}
		if ok, err := r.equalDepth(elem(a[i]), elem(b[i]), depth+1); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalDicts(a, b *Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for k, v := range a.All() {
		w, ok, err := b.lookup(k)
		if !ok || err != nil {
			return false, err
		}
		if identical(v, w) {
			continue
		}
		if ok, err := r.equalDepth(v, w, depth+1); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// equalViews compares keys and items of dicts as sets; values only by identity.
func (r *run) equalViews(a dictView, b any, depth int) (bool, error) {
	other, ok := b.(dictView)
	if !ok || a.kind != other.kind {
		return false, nil
	}
	switch a.kind {
	case viewItems:
		return r.equalDicts(a.dict, other.dict, depth)
	case viewValues:
		return false, nil
	}
	if a.dict.Len() != other.dict.Len() {
		return false, nil
	}
	for k := range a.dict.All() {
		if _, ok := other.dict.Get(k); !ok {
			return false, nil
		}
	}
	return true, nil
}

// identical is Python's is, as far as templates can tell.
func identical(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool, int64, string, float64, markup, rangeValue:
		return a == b
	case *List:
		b, ok := b.(*List)
		return ok && a == b
	case *Dict:
		b, ok := b.(*Dict)
		return ok && a == b
	case *macroValue:
		b, ok := b.(*macroValue)
		return ok && a == b
	case *Undefined:
		b, ok := b.(*Undefined)
		return ok && a == b
	case *namespaceValue:
		b, ok := b.(*namespaceValue)
		return ok && a == b
	case *loopValue:
		b, ok := b.(*loopValue)
		return ok && a == b
	case *generator:
		b, ok := b.(*generator)
		return ok && a == b
	case Func, Tuple, *big.Int:
		return false
	case Object:
		return sameObject(a, b)
	}
	return false
}

// sameObject compares two host objects; objects that Go cannot compare are
// never the same.
func sameObject(a Object, b any) bool {
	o, ok := b.(Object)
	return ok && comparable_(a) && comparable_(o) && a == o
}

// compareNumbers gives -1, 0 or 1, and 2 where one of them is not a number.
func compareNumbers(a, b any) int {
	x, xok := small(a)
	y, yok := small(b)
	if xok && yok {
		return cmp.Compare(x, y)
	}
	f, fok := a.(float64)
	g, gok := b.(float64)
	switch {
	case fok && gok:
		if math.IsNaN(f) || math.IsNaN(g) {
			return 2
		}
		return cmp.Compare(f, g)
	case fok:
		n, _ := whole(b)
		return compareFloatInt(f, n)
	case gok:
		n, _ := whole(a)
		c := compareFloatInt(g, n)
		if c == 2 {
			return 2
		}
		return -c
	}
	m, _ := whole(a)
	n, _ := whole(b)
	return m.Cmp(n)
}

func compareFloatInt(f float64, n *big.Int) int {
	switch {
	case math.IsNaN(f):
		return 2
	case math.IsInf(f, 1):
		return 1
	case math.IsInf(f, -1):
		return -1
	}
	// Exact, as Python compares: the float as a rational number.
	return new(big.Rat).SetFloat64(f).Cmp(new(big.Rat).SetInt(n))
}

// less answers a < b, a <= b, a > b and a >= b.
func (r *run) ordered(op compareOp, a, b any) (bool, error) {
	c, err := r.compare(a, b, op, 0)
	if err != nil || c == 2 {
		return false, err
	}
	switch op {
	case opLt:
		return c < 0, nil
	case opLe:
		return c <= 0, nil
	case opGt:
		return c > 0, nil
	}
	return c >= 0, nil
}

// compare gives -1, 0 or 1, or 2 where the values have no order (nan).
func (r *run) compare(a, b any, op compareOp, depth int) (int, error) {
	if err := r.step(1); err != nil {
		return 0, err
	}
	if depth > maxDepth {
		return 0, tooDeep()
	}
	for _, v := range [2]any{a, b} {
		if u, ok := v.(*Undefined); ok {
			return 0, u.fault()
		}
	}
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b), nil
	}
	if s, ok := text(a); ok {
		if t, ok := text(b); ok {
			return strings.Compare(s, t), nil
		}
	}
	if c, ok := orderHost(a, b); ok {
		return c, nil
	}
	x, xok := items(a)
	y, yok := items(b)
	if xok && yok && sameSequence(a, b) {
		return r.compareItems(x, y, op, depth)
	}
	return 0, failHint(diag.TemplateType, orderHint(a, b), "%s and %s have no order: '%s' cannot compare them",
		typeName(a), typeName(b), opText(op))
}

func orderHint(a, b any) string {
	_, at := text(a)
	_, bt := text(b)
	if at && isNumber(b) || bt && isNumber(a) {
		return "make the text a number first: value | int"
	}
	return ""
}

func opText(op compareOp) string {
	return [...]string{"==", "!=", "<", "<=", ">", ">=", "in", "not in"}[op]
}

// items gives the items of a list or tuple.
func items(v any) ([]any, bool) {
	switch v := v.(type) {
	case *List:
		return v.items, true
	case Tuple:
		return v, true
	case *groupValue:
		return v.tuple(), true
	}
	return nil, false
}

func sameSequence(a, b any) bool {
	_, x := a.(*List)
	_, y := b.(*List)
	return x == y
}

func (r *run) compareItems(a, b []any, op compareOp, depth int) (int, error) {
	for i := 0; i < len(a) && i < len(b); i++ {
		x, y := elem(a[i]), elem(b[i])
		same := identical(x, y)
		if !same {
			var err error
			if same, err = r.equalDepth(x, y, depth+1); err != nil {
				return 0, err
			}
		}
		if !same {
			return r.compare(x, y, op, depth+1)
		}
	}
	return cmp.Compare(len(a), len(b)), nil
}

// contains answers item in container.
func (r *run) contains(container, item any) (bool, error) {
	switch c := container.(type) {
	case string, *richText, markup:
		s, _ := text(c)
		t, ok := text(item)
		if !ok {
			if u, ok := item.(*Undefined); ok {
				return false, u.fault()
			}
			return false, typeError("'in' looks for text in text, not for %s", typeName(item))
		}
		if err := r.step(len(s) / 64); err != nil {
			return false, err
		}
		return strings.Contains(s, t), nil
	case *Dict:
		_, ok, err := c.lookup(item)
		return ok, err
	case dictView:
		if c.kind == viewKeys {
			_, ok, err := c.dict.lookup(item)
			return ok, err
		}
	case rangeValue:
		if n, ok := whole(item); ok {
			return n.IsInt64() && c.has(n.Int64()), nil
		}
	case *Undefined:
		if c.lenient {
			return false, nil
		}
		return false, c.fault()
	}
	it, err := r.iterate(container)
	if err != nil {
		if isTypeFault(err) {
			return false, typeError("'in' cannot look into %s", typeName(container))
		}
		return false, err
	}
	for {
		v, ok, err := it()
		if !ok || err != nil {
			return false, err
		}
		if identical(v, item) {
			return true, nil
		}
		if same, err := r.equal(v, item); same || err != nil {
			return same, err
		}
	}
}

func (r rangeValue) has(n int64) bool {
	if r.len() == 0 {
		return false
	}
	last := r.at(r.len() - 1)
	lo, hi := min(r.start, last), max(r.start, last)
	return n >= lo && n <= hi && (n-r.start)%r.step == 0
}
