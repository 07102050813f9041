package jinja

import (
	"slices"

	"rbt/internal/diag"
)

// The filters whose result is made while it is read.

// itemCost is what one item of map, select and their like costs in steps: they
// take so much longer than other steps.
const itemCost = 8

func filterUnique(c *filterCall) (any, error) {
	sensitive, err := c.flag(0, false)
	if err != nil {
		return nil, err
	}
	get, err := c.attrGetter(given(c.args[1], nil), missing{})
	if err != nil {
		return nil, err
	}
	next, err := c.iterate(c.in)
	if err != nil {
		return nil, err
	}
	seen := map[any]bool{}
	return &generator{name: "unique", next: func() (any, bool, error) {
		for {
			v, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := c.step(itemCost); err != nil {
				return nil, false, err
			}
			key, err := get(v)
			if err != nil {
				return nil, false, err
			}
			id, err := hashKey(folded(key, sensitive))
			if err != nil {
				return nil, false, err
			}
			if !seen[id] {
				seen[id] = true
				return v, true, nil
			}
		}
	}}, nil
}

func filterBatch(c *filterCall) (any, error) {
	size, err := wantInt(c.args[0], "linecount")
	if err != nil {
		return nil, err
	}
	fill := given(c.args[1], nil)
	next, err := c.iterate(c.in)
	if err != nil {
		return nil, err
	}
	var held any
	holding, done := false, false
	return &generator{name: "batch", next: func() (any, bool, error) {
		if done {
			return nil, false, nil
		}
		batch := &List{}
		if holding {
			batch.items, holding = append(batch.items, held), false
		}
		for {
			v, ok, err := next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			if int64(len(batch.items)) == size {
				held, holding = v, true
				return batch, true, nil
			}
			batch.items = append(batch.items, v)
		}
		done = true
		if len(batch.items) == 0 {
			return nil, false, nil
		}
		if lacks := size - int64(len(batch.items)); fill != nil && lacks > 0 {
			if err := c.room(lacks); err != nil {
				return nil, false, err
			}
			for ; lacks > 0; lacks-- {
				batch.items = append(batch.items, fill)
			}
		}
		return batch, true, nil
	}}, nil
}

func filterSlice(c *filterCall) (any, error) {
	n, err := wantInt(c.args[0], "slices")
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, divisionByZero()
	}
	fill := given(c.args[1], nil)
	list, err := c.collect(c.in)
	if err != nil {
		return nil, err
	}
	size, extra := int64(len(list))/max(n, 1), int64(len(list))%max(n, 1)
	i, from := int64(0), int64(0)
	return &generator{name: "slice", next: func() (any, bool, error) {
		if i >= n {
			return nil, false, nil
		}
		to := from + size
		if i < extra {
			to++
		}
		part := &List{items: slices.Clone(list[from:to])}
		if fill != nil && i >= extra {
			part.items = append(part.items, fill)
		}
		i, from = i+1, to
		return part, true, c.step(itemCost + len(part.items))
	}}, nil
}

func filterMap(c *filterCall) (any, error) {
	var apply func(any) (any, error)
	attribute, byAttribute := any(nil), false
	if len(c.raw.pos) == 0 {
		attribute, byAttribute = c.raw.take("attribute")
	}
	if byAttribute {
		otherwise, ok := c.raw.take("default")
		if !ok || otherwise == nil {
			otherwise = missing{}
		}
		if len(c.raw.names) > 0 {
			return nil, typeError("the filter 'map' has no argument '%s'", c.raw.names[0])
		}
		get, err := c.attrGetter(attribute, otherwise)
		if err != nil {
			return nil, err
		}
		apply = get
	} else {
		if len(c.raw.pos) == 0 {
			return nil, failHint(diag.TemplateType, "for example map('upper') or map(attribute='name')",
				"the filter 'map' needs the name of a filter or an attribute")
		}
		name, err := wantText(c.raw.pos[0], "the name of the filter")
		if err != nil {
			return nil, err
		}
		def := filterNamed(name)
		if def == nil {
			return nil, failHint(diag.UndefinedName, nearest(name, filterNames()), "there is no filter '%s'", name)
		}
		pos, names, values := c.raw.pos[1:], c.raw.names, c.raw.values
		apply = func(v any) (any, error) {
			a := &argList{pos: slices.Clone(pos), names: slices.Clone(names), values: slices.Clone(values)}
			return c.p.applyFilter(name, def, v, a, c.at)
		}
	}
	next, err := c.source()
	if err != nil {
		return nil, err
	}
	return &generator{name: "map", next: func() (any, bool, error) {
		v, ok, err := next()
		if !ok || err != nil {
			return nil, false, err
		}
		if err := c.step(itemCost); err != nil {
			return nil, false, err
		}
		v, err = apply(v)
		return plain(v), err == nil, err
	}}, nil
}

// source reads the input; like Jinja2, a false one (none too) as empty.
func (c *filterCall) source() (nextFunc, error) {
	ok, err := truth(c.in)
	if err != nil {
		return nil, err
	}
	if !ok {
		return sliceNext(nil), nil
	}
	return c.iterate(c.in)
}

func filterSelect(c *filterCall, filter string, keep, byAttr bool) (any, error) {
	args := c.raw.pos
	get := func(v any) (any, error) { return v, nil }
	if byAttr {
		if len(args) == 0 {
			return nil, typeError("the filter '%s' needs the name of an attribute", filter)
		}
		var err error
		if get, err = c.attrGetter(args[0], missing{}); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	check := truth
	if len(args) > 0 {
		name, err := wantText(args[0], "the name of the test")
		if err != nil {
			return nil, err
		}
		def := testNamed(name)
		if def == nil {
			return nil, failHint(diag.UndefinedName, nearest(name, testNames()), "there is no test '%s'", name)
		}
		pos := args[1:]
		check = func(v any) (bool, error) {
			a := &argList{pos: pos, names: c.raw.names, values: c.raw.values}
			return c.p.applyTest(name, def, v, a)
		}
	}
	next, err := c.source()
	if err != nil {
		return nil, err
	}
	return &generator{name: filter, next: func() (any, bool, error) {
		for {
			v, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := c.step(itemCost); err != nil {
				return nil, false, err
			}
			part, err := get(v)
			if err != nil {
				return nil, false, err
			}
			holds, err := check(part)
			if err != nil {
				return nil, false, err
			}
			if holds == keep {
				return v, true, nil
			}
		}
	}}, nil
}
