package jinja

import (
	"slices"
	"strings"

	"rbt/internal/diag"
)

// sequenceFilter finds the filters over lists, dicts and other sequences.
func sequenceFilter(name string) *filterDef {
	switch name {
	case "length", "count":
		return &filterDef{fn: filterLength}
	case "first":
		return &filterDef{fn: filterFirst}
	case "last":
		return &filterDef{fn: filterLast}
	case "list":
		return &filterDef{fn: func(c *filterCall) (any, error) {
			list, err := c.collect(c.in)
			return &List{items: list}, err
		}}
	case "items":
		return &filterDef{fn: filterItems}
	case "join":
		return &filterDef{params: params{"d?", "attribute?"}, fn: filterJoin}
	case "reverse":
		return &filterDef{fn: filterReverse}
	case "sort":
		return &filterDef{params: params{"reverse?", "case_sensitive?", "attribute?"}, fn: filterSort}
	case "dictsort":
		return &filterDef{params: params{"case_sensitive?", "by?", "reverse?"}, fn: filterDictSort}
	case "unique":
		return &filterDef{params: params{"case_sensitive?", "attribute?"}, fn: filterUnique}
	case "min", "max":
		return &filterDef{params: params{"case_sensitive?", "attribute?"}, fn: func(c *filterCall) (any, error) {
			return filterExtreme(c, name == "max")
		}}
	case "sum":
		return &filterDef{params: params{"attribute?", "start?"}, fn: filterSum}
	case "groupby":
		return &filterDef{params: params{"attribute", "default?", "case_sensitive?"}, fn: filterGroupBy}
	case "batch":
		return &filterDef{params: params{"linecount", "fill_with?"}, fn: filterBatch}
	case "slice":
		return &filterDef{params: params{"slices", "fill_with?"}, fn: filterSlice}
	case "map":
		return &filterDef{raw: true, fn: filterMap}
	case "select", "reject", "selectattr", "rejectattr":
		return &filterDef{raw: true, fn: func(c *filterCall) (any, error) {
			return filterSelect(c, name, strings.HasPrefix(name, "select"), strings.HasSuffix(name, "attr"))
		}}
	}
	return nil
}

func filterLength(c *filterCall) (any, error) {
	if n, ok := lengthOf(c.in); ok {
		return n, nil
	}
	switch v := c.in.(type) {
	case *loopValue:
		return v.length()
	case *Undefined:
		return nil, v.fault()
	case *generator:
		return nil, failHint(diag.TemplateType, "add | list before it",
			"the filter '%s' gives a sequence that has no length before it is read", v.name)
	}
	return nil, typeError("%s has no length", typeName(c.in))
}

func filterFirst(c *filterCall) (any, error) {
	next, err := c.iterate(c.in)
	if err != nil {
		return nil, err
	}
	v, ok, err := next()
	if err == nil && !ok {
		return c.empty("it has no first item"), nil
	}
	return v, err
}

// empty is the undefined value of an empty sequence.
func (c *filterCall) empty(what string) *Undefined {
	return &Undefined{msg: "the sequence is empty: " + what, pos: c.at.pos, width: c.at.width}
}

// reversed reads a value with a length from its end.
func (c *filterCall) reversed() (nextFunc, error) {
	if s, ok := text(c.in); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return c.iterate(string(runes))
	}
	if u, ok := c.in.(*Undefined); ok {
		return nil, u.fault()
	}
	at, length, err := c.indexed(c.in)
	if err != nil {
		return nil, err
	}
	n, err := length()
	return func() (any, bool, error) {
		if n == 0 {
			return nil, false, nil
		}
		n--
		return elem(at(n)), true, c.step(1)
	}, err
}

func filterLast(c *filterCall) (any, error) {
	if g, ok := c.in.(*generator); ok {
		return nil, failHint(diag.TemplateType, "add | list before it",
			"the filter '%s' gives a sequence that can only be read from its beginning", g.name)
	}
	next, err := c.reversed()
	if err != nil {
		return nil, err
	}
	v, ok, err := next()
	if err == nil && !ok {
		return c.empty("it has no last item"), nil
	}
	if s, ok := v.(string); ok {
		// Safe text stays safe when it is read from its end, not from its beginning.
		return like(c.in, s), err
	}
	return v, err
}

func filterReverse(c *filterCall) (any, error) {
	if s, ok := text(c.in); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return like(c.in, string(runes)), c.grow(int64(len(s)))
	}
	if _, ok := c.in.(*generator); ok {
		list, err := c.collect(c.in)
		slices.Reverse(list)
		return &List{items: list}, err
	}
	next, err := c.reversed()
	return &generator{name: "reverse", next: next}, err
}

func filterItems(c *filterCall) (any, error) {
	switch v := c.in.(type) {
	case *Dict:
		next, err := c.iterate(dictView{dict: v, kind: viewItems})
		return &generator{name: "items", next: next}, err
	case *Undefined:
		return &generator{name: "items", next: sliceNext(nil)}, nil
	}
	return nil, typeError("the filter 'items' takes a dict, not %s", typeName(c.in))
}

// filterJoin keeps the origin of host objects and of text made by macros only in
// that the objects stay findable: each part is a span of its own.
func filterJoin(c *filterCall) (any, error) {
	next, err := c.iterate(c.in)
	if err != nil {
		return nil, err
	}
	sep, err := c.strArg(0, "")
	if err != nil {
		return nil, err
	}
	get, err := c.attrGetter(given(c.args[1], nil), missing{})
	if err != nil {
		return nil, err
	}
	out := &sink{r: c.run}
	span := Span{Pos: c.at.pos, Callers: c.p.callers}
	objects := false
	for n := 0; ; n++ {
		v, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if v, err = get(v); err != nil {
			return nil, err
		}
		s, err := c.str(v)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			if err := out.add(sep, span); err != nil {
				return nil, err
			}
		}
		part := span
		if o, ok := v.(Object); ok {
			part.Value, objects = o, true
		}
		if err := out.add(s, part); err != nil {
			return nil, err
		}
	}
	if objects {
		return out.value(), nil
	}
	return out.b.String(), nil
}

// folded gives a value as sort and its like compare it: text without its case.
func folded(v any, caseSensitive bool) any {
	if s, ok := text(v); ok && !caseSensitive {
		return lower(s)
	}
	return v
}

// keyed reads all items with their keys.
func (c *filterCall) keyed(attribute any, caseSensitive bool) (list, keys []any, err error) {
	list, err = c.collect(c.in)
	if err != nil {
		return nil, nil, err
	}
	get, err := c.attrGetter(attribute, missing{})
	if err != nil {
		return nil, nil, err
	}
	keys = make([]any, len(list))
	for i, v := range list {
		if v, err = get(v); err != nil {
			return nil, nil, err
		}
		keys[i] = folded(v, caseSensitive)
	}
	return list, keys, nil
}

// sorted orders items by their keys, stable, as Python's sorted does.
func (c *filterCall) sorted(list, keys []any, backwards bool) ([]any, []any, error) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	var failed error
	slices.SortStableFunc(order, func(a, b int) int {
		if failed != nil {
			return 0
		}
		x, y := keys[a], keys[b]
		if backwards {
			x, y = y, x
		}
		n, err := c.compare(x, y, opLt, 0)
		if err != nil {
			failed = err
		}
		if n == 2 {
			return 0
		}
		return n
	})
	if failed != nil {
		return nil, nil, failed
	}
	outList, outKeys := make([]any, len(list)), make([]any, len(list))
	for i, n := range order {
		outList[i], outKeys[i] = list[n], keys[n]
	}
	return outList, outKeys, nil
}

func filterSort(c *filterCall) (any, error) {
	backwards, err := c.flag(0, false)
	if err != nil {
		return nil, err
	}
	sensitive, err := c.flag(1, false)
	if err != nil {
		return nil, err
	}
	attribute := given(c.args[2], nil)
	// Keys are tuples, as in Jinja2, so that equal items need no order.
	names := []any{attribute}
	if s, ok := text(attribute); ok {
		names = nil
		for _, name := range strings.Split(s, ",") {
			names = append(names, name)
		}
	}
	list, err := c.collect(c.in)
	if err != nil {
		return nil, err
	}
	keys := make([]any, len(list))
	for i := range keys {
		keys[i] = Tuple{}
	}
	for _, name := range names {
		get, err := c.attrGetter(name, missing{})
		if err != nil {
			return nil, err
		}
		for i, v := range list {
			part, err := get(v)
			if err != nil {
				return nil, err
			}
			keys[i] = append(keys[i].(Tuple), folded(part, sensitive))
		}
	}
	list, _, err = c.sorted(list, keys, backwards)
	return &List{items: list}, err
}

func filterDictSort(c *filterCall) (any, error) {
	d, ok := c.in.(*Dict)
	if !ok {
		if u, ok := c.in.(*Undefined); ok {
			return nil, u.fault()
		}
		return nil, typeError("the filter 'dictsort' takes a dict, not %s", typeName(c.in))
	}
	sensitive, err := c.flag(0, false)
	if err != nil {
		return nil, err
	}
	by, err := wantText(given(c.args[1], "key"), "by")
	if err != nil {
		return nil, err
	}
	if by != "key" && by != "value" {
		return nil, valueError("the filter 'dictsort' sorts by 'key' or 'value', not by '%s'", by)
	}
	backwards, err := c.flag(2, false)
	if err != nil {
		return nil, err
	}
	if err := c.room(int64(d.Len())); err != nil {
		return nil, err
	}
	var list, keys []any
	for k, v := range d.All() {
		list = append(list, Tuple{k, v})
		if by == "value" {
			k = v
		}
		keys = append(keys, folded(k, sensitive))
	}
	list, _, err = c.sorted(list, keys, backwards)
	return &List{items: list}, err
}

func filterExtreme(c *filterCall, largest bool) (any, error) {
	sensitive, err := c.flag(0, false)
	if err != nil {
		return nil, err
	}
	list, keys, err := c.keyed(given(c.args[1], nil), sensitive)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return c.empty("it has no smallest or largest item"), nil
	}
	best := 0
	for i := 1; i < len(list); i++ {
		op := opLt
		if largest {
			op = opGt
		}
		better, err := c.ordered(op, keys[i], keys[best])
		if err != nil {
			return nil, err
		}
		if better {
			best = i
		}
	}
	return list[best], nil
}

func filterSum(c *filterCall) (any, error) {
	get, err := c.attrGetter(given(c.args[0], nil), missing{})
	if err != nil {
		return nil, err
	}
	total := given(c.args[1], int64(0))
	if _, ok := text(total); ok {
		return nil, failHint(diag.TemplateType, "use the filter 'join'", "the filter 'sum' cannot add text")
	}
	next, err := c.iterate(c.in)
	if err != nil {
		return nil, err
	}
	for {
		v, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return total, nil
		}
		if v, err = get(v); err != nil {
			return nil, err
		}
		if total, err = c.operate(tokAdd, total, v); err != nil {
			return nil, err
		}
	}
}

func filterGroupBy(c *filterCall) (any, error) {
	sensitive, err := c.flag(2, false)
	if err != nil {
		return nil, err
	}
	otherwise := given(c.args[1], nil)
	if otherwise == nil {
		otherwise = missing{}
	}
	get, err := c.attrGetter(c.args[0], otherwise)
	if err != nil {
		return nil, err
	}
	list, err := c.collect(c.in)
	if err != nil {
		return nil, err
	}
	keys := make([]any, len(list))
	for i, v := range list {
		if v, err = get(v); err != nil {
			return nil, err
		}
		keys[i] = folded(v, sensitive)
	}
	if list, keys, err = c.sorted(list, keys, false); err != nil {
		return nil, err
	}
	out := &List{}
	for i := 0; i < len(list); {
		group := &groupValue{list: &List{}}
		if group.key, err = get(list[i]); err != nil {
			return nil, err
		}
		for first := i; i < len(list); i++ {
			if i > first && !identical(keys[first], keys[i]) {
				same, err := c.equal(keys[first], keys[i])
				if err != nil {
					return nil, err
				}
				if !same {
					break
				}
			}
			group.list.items = append(group.list.items, list[i])
		}
		out.items = append(out.items, group)
	}
	return out, nil
}
