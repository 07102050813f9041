package jinja

import (
	"context"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strings"

	"rbt/internal/diag"
)

// List is Python's list: a reference, so that what one holder appends all see.
type List struct{ items []any }

// NewList makes a list of the items.
func NewList(items ...any) *List {
	l := &List{items: make([]any, 0, len(items))}
	l.Append(items...)
	return l
}

// Len is the number of items.
func (l *List) Len() int { return len(l.items) }

// At gives item i, counted from 0; i must be in range.
func (l *List) At(i int) any { return l.items[i] }

// Append adds items at the end.
func (l *List) Append(items ...any) {
	for _, item := range items {
		l.items = append(l.items, elem(item))
	}
}

// elem gives an item in the form of the evaluator, in which every whole number
// of Go's int is an int64.
func elem(v any) any {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v
}

// Items gives a copy of the items.
func (l *List) Items() []any { return slices.Clone(l.items) }

// Tuple is Python's tuple; it is never changed.
type Tuple []any

// Func is a function of the host that templates can call. An error becomes a
// diagnostic at the call; a diag.Diagnostic keeps its code, message and hint
// and gets the call's place where it has none.
type Func func(c *Call) (any, error)

// Call is one call of a host function.
type Call struct {
	Ctx    context.Context
	Args   []any
	Kwargs *Dict    // named arguments in the order of the call; nil where there are none
	Pos    diag.Pos // of the called expression
	// Callers are the places of the macro calls around it, innermost first.
	Callers []diag.Pos
	expr    *callExpr
	run     *run
}

// Text gives a value as {{ }} writes it. What has no text, such as a function,
// and a text above the budget are errors.
func (c *Call) Text(v any) (string, error) { return c.run.str(v) }

// ArgPos gives the place of argument i, counted from 0, where it is written out
// in the call, else that of the call.
func (c *Call) ArgPos(i int) diag.Pos {
	if c.expr == nil || i < 0 || i >= len(c.expr.args.args) {
		return c.Pos
	}
	return c.expr.args.args[i].origin().in(c.Pos.File)
}

// KwargPos gives the place of a named argument, where it is written out in the
// call, else that of the call.
func (c *Call) KwargPos(name string) diag.Pos {
	if c.expr != nil {
		for _, kw := range c.expr.args.kwargs {
			if kw.name == name {
				return kw.at.in(c.Pos.File)
			}
		}
	}
	return c.Pos
}

// Kwarg gives a named argument.
func (c *Call) Kwarg(name string) (any, bool) {
	if c.Kwargs == nil {
		return nil, false
	}
	v, ok := c.Kwargs.Get(name)
	return v, ok
}

// Object is a value of the host. It prints as String says; Attr gives the
// attributes that templates may read with a dot.
type Object interface {
	Attr(name string) (any, bool)
	fmt.Stringer
}

// Lazy is a global whose value is asked for when a template uses its name, so that
// the host learns that it does.
type Lazy func() any

// Callable is an Object that can be called.
type Callable interface {
	Object
	Call(c *Call) (any, error)
}

// Undefined is the value of a name, attribute or item that does not exist. Any
// use but the tests defined and undefined and the filter default is an error;
// the value of a condition without else is a lenient one, which prints as
// nothing and counts as false.
type Undefined struct {
	msg     string
	hint    func() string // may be nil; asked only when the error is reported
	pos     diag.Pos      // where it is used last
	width   int
	from    diag.Pos // where it came from, if that is somewhere else
	lenient bool
}

// usedAt gives the undefined value as it is met again in a variable or item.
func (u *Undefined) usedAt(pos diag.Pos, width int) *Undefined {
	c := *u
	if c.from.IsZero() {
		c.from = c.pos
	}
	c.pos, c.width = pos, width
	return &c
}

// String gives no text: an undefined value has none.
func (u *Undefined) String() string { return "" }

// missing marks a slot that has no value yet.
type missing struct{}

// richText is text made by the template itself that remembers where each part
// came from. Only variables, arguments and results of macros and printed values
// ever are one; everything else sees a plain string.
type richText struct {
	text  string
	spans []Span
}

// markup is text from the filters safe, escape and tojson. What is joined to it
// is escaped as HTML, as in Jinja2.
type markup string

// plain takes the origin off a value.
func plain(v any) any {
	if r, ok := v.(*richText); ok {
		return r.text
	}
	return v
}

// generator is a sequence made while it is read, and only once, as those of the
// filters map, select and their like.
type generator struct {
	name string
	next func() (v any, ok bool, err error)
}

// rangeValue is Python's range.
type rangeValue struct{ start, stop, step int64 }

func (r rangeValue) len() int64 {
	switch {
	case r.step > 0 && r.start < r.stop:
		return int64((uint64(r.stop)-uint64(r.start)-1)/uint64(r.step)) + 1
	case r.step < 0 && r.start > r.stop:
		return int64((uint64(r.start)-uint64(r.stop)-1)/(-uint64(r.step))) + 1
	}
	return 0
}

func (r rangeValue) at(i int64) int64 { return r.start + i*r.step }

// dictView is what keys(), values() and items() of a dict give: it follows the
// dict.
type dictView struct {
	dict *Dict
	kind viewKind
}

type viewKind uint8

const (
	viewKeys viewKind = iota
	viewValues
	viewItems
)

func (v dictView) at(i int) any {
	e := v.dict.entries[i]
	switch v.kind {
	case viewKeys:
		return e.key
	case viewValues:
		return e.value
	}
	return Tuple{e.key, e.value}
}

func (v dictView) name() string {
	return [...]string{"dict_keys", "dict_values", "dict_items"}[v.kind]
}

// Dict is Python's dict: a reference that keeps the order of insertion.
type Dict struct {
	entries []dictEntry
	index   map[any]int
	dead    int // entries that were removed and still hold a place
}

type dictEntry struct {
	key, value any
	removed    bool
}

// smallDict is the number of entries up to which a dict is searched one by one.
const smallDict = 8

// NewDict makes an empty dict.
func NewDict() *Dict { return &Dict{} }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.entries) - d.dead }

// Get gives the value of a key; a key that cannot be one is not there.
func (d *Dict) Get(key any) (any, bool) {
	v, ok, err := d.lookup(key)
	return v, ok && err == nil
}

// Set binds a key, at the end where it is new. Lists and dicts cannot be keys.
func (d *Dict) Set(key, value any) error {
	key, value = elem(key), elem(value)
	id, err := hashKey(key)
	if err != nil {
		return err
	}
	if i := d.find(id); i >= 0 {
		d.entries[i].value = value
		return nil
	}
	d.entries = append(d.entries, dictEntry{key: key, value: value})
	if d.index != nil {
		d.index[id] = len(d.entries) - 1
	} else if len(d.entries) > smallDict {
		d.reindex()
	}
	return nil
}

// put is Set for a key that is text.
func (d *Dict) put(key string, value any) *Dict {
	// Text is always a valid key.
	_ = d.Set(key, value)
	return d
}

// Delete removes a key and reports whether it was there.
func (d *Dict) Delete(key any) bool {
	id, err := hashKey(key)
	if err != nil {
		return false
	}
	i := d.find(id)
	if i < 0 {
		return false
	}
	d.removeAt(i, id)
	return true
}

func (d *Dict) removeAt(i int, id any) {
	delete(d.index, id)
	if d.index == nil || i == len(d.entries)-1 {
		d.entries = slices.Delete(d.entries, i, i+1)
		for n := len(d.entries); n > 0 && d.entries[n-1].removed; n-- {
			d.entries = d.entries[:n-1]
			d.dead--
		}
		return
	}
	d.entries[i] = dictEntry{removed: true}
	d.dead++
	if d.dead > len(d.entries)/2 {
		d.compact()
	}
}

// compact drops the removed entries, so that positions count again.
func (d *Dict) compact() {
	if d.dead == 0 {
		return
	}
	d.entries = slices.DeleteFunc(d.entries, func(e dictEntry) bool { return e.removed })
	d.dead = 0
	d.reindex()
}

func (d *Dict) reindex() {
	d.index = nil
	if len(d.entries) <= smallDict {
		return
	}
	d.index = make(map[any]int, len(d.entries))
	for i, e := range d.entries {
		// The key was accepted when it was set.
		id, _ := hashKey(e.key)
		d.index[id] = i
	}
}

func (d *Dict) clear() { *d = Dict{} }

// All ranges over keys and values in order.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		for _, e := range d.entries {
			if !e.removed && !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Keys gives the keys in order.
func (d *Dict) Keys() []any {
	keys := make([]any, 0, d.Len())
	for k := range d.All() {
		keys = append(keys, k)
	}
	return keys
}

func (d *Dict) clone() *Dict {
	c := &Dict{entries: make([]dictEntry, 0, d.Len())}
	for _, e := range d.entries {
		if !e.removed {
			c.entries = append(c.entries, e)
		}
	}
	c.reindex()
	return c
}

func (d *Dict) lookup(key any) (any, bool, error) {
	id, err := hashKey(key)
	if err != nil {
		return nil, false, err
	}
	if i := d.find(id); i >= 0 {
		return d.entries[i].value, true, nil
	}
	return nil, false, nil
}

func (d *Dict) find(id any) int {
	if d.index != nil {
		if i, ok := d.index[id]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		e := &d.entries[i]
		if e.removed {
			continue
		}
		if s, ok := e.key.(string); ok {
			if t, same := id.(string); same && s == t {
				return i
			}
			continue
		}
		// The key was accepted when it was set.
		if other, _ := hashKey(e.key); other == id {
			return i
		}
	}
	return -1
}

// Keys that are equal in Python must have one identity: 1, 1.0 and true.
type (
	bigID   string
	tupleID string
	noneID  struct{}
)

// maxTupleKey bounds the identity of a tuple in bytes: tuples that hold one
// another twice would grow without end.
const maxTupleKey = 1 << 16

// hashKey gives a comparable identity of a key, equal for equal keys.
func hashKey(key any) (any, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case nil:
		return noneID{}, nil
	case *richText:
		return k.text, nil
	case markup:
		return string(k), nil
	case bool, int, int64:
		return toInt64(k), nil
	case *big.Int:
		if k.IsInt64() {
			return k.Int64(), nil
		}
		return bigID(k.Text(62)), nil
	case float64:
		return hashFloat(k), nil
	case *groupValue:
		return hashKey(k.tuple())
	case Tuple:
		var b strings.Builder
		if err := hashTuple(&b, k, 0); err != nil {
			return nil, err
		}
		return tupleID(b.String()), nil
	case *Undefined:
		if !k.lenient {
			return nil, k.fault()
		}
		return k, nil
	case *List, *Dict, dictView, *namespaceValue, Func:
		return nil, fail(diag.TemplateType, "%s cannot be a key, because it can change", typeName(key))
	case *macroValue, *generator, rangeValue, *loopValue:
		return k, nil
	case Named:
		return k.String(), nil
	case Object:
		if comparable_(k) {
			return k, nil
		}
	}
	return nil, fail(diag.TemplateType, "%s cannot be a key", typeName(key))
}

func hashTuple(b *strings.Builder, t Tuple, depth int) error {
	if depth > maxDepth {
		return tooDeep()
	}
	b.WriteByte('(')
	for _, item := range t {
		if g, ok := item.(*groupValue); ok {
			item = g.tuple()
		}
		if inner, ok := item.(Tuple); ok {
			if err := hashTuple(b, inner, depth+1); err != nil {
				return err
			}
			continue
		}
		id, err := hashKey(item)
		if err != nil {
			return err
		}
		if o, ok := id.(Object); ok {
			// Two objects of one text are different keys only outside of tuples.
			id = o.String()
		}
		part := fmt.Sprintf("%T:%v", id, id)
		fmt.Fprintf(b, "%d:%s", len(part), part)
		if b.Len() > maxTupleKey {
			return fail(diag.TemplateBudget, "a tuple as a key has more than %d bytes", maxTupleKey)
		}
	}
	b.WriteByte(')')
	return nil
}

func hashFloat(f float64) any {
	if f == float64(int64(f)) && f >= -1<<62 && f <= 1<<62 {
		return int64(f)
	}
	if b, ok := floatToBig(f); ok {
		return bigID(b.Text(62))
	}
	return f
}

// FromGo makes a template value of a tree of Go values as JSON and YAML decoders
// give them: maps with text keys (sorted by key, for a Go map has no order),
// slices, text, numbers, booleans and nil. Any other type is an error.
func FromGo(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		d := NewDict()
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			item, err := FromGo(v[k])
			if err != nil {
				return nil, err
			}
			d.put(k, item)
		}
		return d, nil
	case []any:
		l := &List{items: make([]any, len(v))}
		for i := range v {
			item, err := FromGo(v[i])
			if err != nil {
				return nil, err
			}
			l.items[i] = item
		}
		return l, nil
	case []string:
		l := &List{items: make([]any, len(v))}
		for i := range v {
			l.items[i] = v[i]
		}
		return l, nil
	}
	return normal(v)
}

// normal brings a value from the host into the one form that the evaluator
// knows: whole numbers are int64, or *big.Int where they do not fit.
func normal(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, *List, *Dict, Tuple, Func, *Undefined,
		*macroValue, *richText, markup, *generator, rangeValue, dictView, *namespaceValue,
		*method, builtin, *groupValue, *loopValue, *cyclerValue, *joinerValue:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint64:
		return normalBig(new(big.Int).SetUint64(v)), nil
	case *big.Int:
		return normalBig(v), nil
	case func(*Call) (any, error):
		return Func(v), nil
	case Object:
		return v, nil
	}
	return nil, fmt.Errorf("use a value in a template: the type %T is not one of its types", v)
}
