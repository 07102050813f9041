package jinja

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// method is a method of a built-in type with the value that it belongs to.
type method struct {
	recv any
	def  *methodDef
}

// getattr is obj.name: an attribute or method first, then an item.
func (r *run) getattr(obj any, name string, at where) (any, error) {
	if u, ok := obj.(*Undefined); ok {
		return nil, u.fault()
	}
	v, ok, err := r.attribute(obj, name)
	if ok || err != nil {
		return settled(v, at), err
	}
	if d, ok := obj.(*Dict); ok {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
	}
	return r.noAttribute(obj, name, at), nil
}

// settled gives a new undefined value its place.
func settled(v any, at where) any {
	if u, ok := v.(*Undefined); ok && u.pos.IsZero() {
		u.pos, u.width = at.pos, at.width
	}
	return v
}

// attribute looks for an attribute or method, not for an item.
func (r *run) attribute(obj any, name string) (any, bool, error) {
	switch o := obj.(type) {
	case *namespaceValue:
		v, ok := o.attrs.Get(name)
		return v, ok, nil
	case *loopValue:
		return o.attr(name)
	case *groupValue:
		switch name {
		case "grouper":
			return o.key, true, nil
		case "list":
			return o.list, true, nil
		}
	case *macroValue:
		v, ok := o.attr(name)
		return v, ok, nil
	case *library:
		v, ok := o.attr(name)
		return v, ok, nil
	case *cyclerValue:
		if name == "current" {
			return o.current(), true, nil
		}
	case rangeValue:
		switch name {
		case "start":
			return o.start, true, nil
		case "stop":
			return o.stop, true, nil
		case "step":
			return o.step, true, nil
		}
	case Object:
		v, ok := o.Attr(name)
		if !ok {
			return nil, false, nil
		}
		v, err := normal(v)
		return v, true, err
	}
	if def := r.methodOf(obj, name); def != nil {
		return &method{recv: obj, def: def}, true, nil
	}
	return nil, false, nil
}

func (m *macroValue) attr(name string) (any, bool) {
	switch name {
	case "name":
		if m.def.kind == "call" {
			return nil, true
		}
		return m.def.name, true
	case "arguments":
		args := Tuple{}
		for _, prm := range m.def.params {
			args = append(args, prm.name.name)
		}
		return args, true
	case "catch_kwargs":
		return m.def.kwargsSlot >= 0, true
	case "catch_varargs":
		return m.def.varargsSlot >= 0, true
	case "caller":
		return m.def.uses.caller, true
	}
	return nil, false
}

// noAttribute is the undefined value of an attribute that is not there.
func (r *run) noAttribute(obj any, name string, at where) *Undefined {
	u := &Undefined{msg: typeName(obj) + " has no attribute '" + name + "'", pos: at.pos, width: at.width}
	switch o := obj.(type) {
	case *Dict:
		u.msg = "the dict has no key '" + name + "'"
		u.hint = func() string { return keyHint(o, name) }
	case *library:
		u.msg = o.name + " has no macro '" + name + "'"
		u.hint = func() string { return nearest(name, slices.Sorted(maps.Keys(o.macros))) }
	case Described:
		called, attributes := o.Described()
		u.msg = called + " has no attribute '" + name + "'"
		u.hint = func() string { return cmp.Or(o.Missing(), nearest(name, attributes)) }
	default:
		u.hint = func() string { return attrHint(obj, name) }
	}
	return u
}

// attrHint knows how other languages call what is asked for.
func attrHint(obj any, name string) string {
	_, isText := text(obj)
	_, isList := obj.(*List)
	switch {
	case name == "length" || name == "len" || name == "size":
		return "write value | length"
	case isList && (name == "push" || name == "add"):
		return "did you mean 'append'?"
	case isList && (name == "join" || name == "map" || name == "filter"):
		return "write value | " + map[string]string{"join": "join(', ')", "map": "map('upper')", "filter": "select('odd')"}[name]
	case isText && name == "trim":
		return "did you mean 'strip'?"
	case (isText || isList) && (name == "contains" || name == "includes"):
		return "write item in value"
	}
	return nearest(name, methodNames(obj))
}

func nearest(name string, names []string) string {
	if near := diag.Nearest(name, names); near != "" {
		return "did you mean '" + near + "'?"
	}
	// A name that became longer: long enough that it cannot be in it by chance.
	const long = 6
	longer := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return len(name) < long || !strings.Contains(n, name) })
	if len(longer) == 1 {
		return "did you mean '" + longer[0] + "'?"
	}
	return ""
}

func keyHint(d *Dict, name string) string {
	var names []string
	for k := range d.All() {
		if s, ok := text(k); ok {
			names = append(names, s)
		}
	}
	if hint := nearest(name, names); hint != "" {
		return hint
	}
	return nearest(name, methodNames(d))
}

// getitem is obj[key]: an item first, then, for a text key, an attribute.
func (r *run) getitem(obj, key any, at where) (any, error) {
	if u, ok := obj.(*Undefined); ok {
		return nil, u.fault()
	}
	if u, ok := key.(*Undefined); ok {
		return nil, u.fault()
	}
	if d, ok := obj.(*Dict); ok {
		v, ok, err := d.lookup(key)
		if err != nil {
			return nil, err
		}
		if ok {
			return v, nil
		}
	} else if isWhole(key) {
		if v, ok := r.index(obj, key); ok {
			return v, nil
		}
	}
	if name, ok := text(key); ok {
		v, ok, err := r.attribute(obj, name)
		if ok || err != nil {
			return settled(v, at), err
		}
		return r.noAttribute(obj, name, at), nil
	}
	return r.noItem(obj, key, at)
}

func (r *run) noItem(obj, key any, at where) (any, error) {
	s, err := r.reprText(key)
	if err != nil {
		return nil, err
	}
	u := &Undefined{pos: at.pos, width: at.width}
	n, sized := lengthOf(obj)
	_, isDict := obj.(*Dict)
	switch {
	case isDict:
		u.msg = "the dict has no key " + s
	case sized && isWhole(key):
		u.msg = typeName(obj) + " of " + counted(n) + " has none at " + s
	default:
		u.msg = typeName(obj) + " has no item " + s
	}
	if d, ok := obj.(Described); ok {
		called, _ := d.Described()
		u.msg, u.hint = called+" has no item "+s, d.Missing
	}
	return u, nil
}

func counted(n int64) string {
	if n == 1 {
		return "1 item"
	}
	return strconv.FormatInt(n, 10) + " items"
}

// index is an item by its position, counted from the end where it is negative.
func (r *run) index(obj, key any) (any, bool) {
	n, ok := lengthOf(obj)
	i, small := small(key)
	if !ok || !small {
		return nil, false
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	if s, ok := text(obj); ok {
		return like(obj, runeAt(s, int(i), int(n))), true
	}
	switch obj.(type) {
	case *Dict, dictView, *Undefined:
		return nil, false
	}
	at, _, err := r.indexed(obj)
	if err != nil {
		return nil, false
	}
	return elem(at(int(i))), true
}

// runeAt gives character i of s, which has n.
func runeAt(s string, i, n int) string {
	if n == len(s) {
		return s[i : i+1]
	}
	for ; i > 0; i-- {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}

// bound gives a bound of a slice as an int64, cut to what any sequence can have.
func bound(v any) int64 {
	if n, ok := v.(*big.Int); ok {
		return int64(n.Sign()) * (1 << 62)
	}
	n, _ := small(v)
	return n
}

// sliceRange gives the positions of a slice over n items, as Python counts.
func sliceRange(bounds [3]any, n int64) (start, stop, step int64, err error) {
	step = 1
	if bounds[2] != nil {
		step = bound(bounds[2])
	}
	if step == 0 {
		return 0, 0, 0, valueError("the step of a slice cannot be 0")
	}
	lo, hi := int64(0), n
	if step < 0 {
		lo, hi = -1, n-1
	}
	limit := func(v any, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		i := bound(v)
		if i < 0 {
			i += n
		}
		return max(lo, min(hi, i))
	}
	if step > 0 {
		return limit(bounds[0], lo), limit(bounds[1], hi), step, nil
	}
	return limit(bounds[0], hi), limit(bounds[1], lo), step, nil
}

// slice is obj[lo:hi:step].
func (r *run) slice(obj any, bounds [3]any) (any, error) {
	n, ok := lengthOf(obj)
	switch v := obj.(type) {
	case string, *List, Tuple, *groupValue, rangeValue, markup:
	case *Undefined:
		return nil, v.fault()
	default:
		ok = false
	}
	if !ok {
		return nil, typeError("%s cannot be sliced", typeName(obj))
	}
	for _, b := range bounds {
		if b != nil && !isWhole(b) {
			return nil, typeError("the bound of a slice must be a whole number, not %s", typeName(b))
		}
	}
	start, stop, step, err := sliceRange(bounds, n)
	if err != nil {
		return nil, err
	}
	span := rangeValue{start, stop, step}
	if rv, ok := obj.(rangeValue); ok {
		return rangeValue{rv.start + start*rv.step, rv.start + stop*rv.step, rv.step * step}, nil
	}
	if s, ok := text(obj); ok {
		return like(obj, sliceText(s, span, n == int64(len(s)))), r.grow(int64(len(s)))
	}
	if g, ok := obj.(*groupValue); ok {
		obj = g.tuple()
	}
	list, _ := items(obj)
	if err := r.room(span.len()); err != nil {
		return nil, err
	}
	out := make([]any, span.len())
	for i := range out {
		out[i] = list[span.at(int64(i))]
	}
	if _, ok := obj.(*List); ok {
		return &List{items: out}, nil
	}
	return Tuple(out), nil
}

func sliceText(s string, span rangeValue, ascii bool) string {
	if span.len() == 0 {
		return ""
	}
	if ascii && span.step == 1 {
		return s[span.start:span.stop]
	}
	var b strings.Builder
	runes := []rune(s)
	for i := range span.len() {
		b.WriteRune(runes[span.at(i)])
	}
	return b.String()
}
