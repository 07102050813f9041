package jinja

import (
	"rbt/internal/diag"
)

// builtin is a function of the template language itself.
type builtin struct {
	name string
	call func(p *proc, a *argList) (any, error)
}

// namespaceValue is what namespace() makes: attributes that can be assigned from
// any scope.
type namespaceValue struct{ attrs *Dict }

type cyclerValue struct {
	items []any
	pos   int
}

func (c *cyclerValue) current() any { return c.items[c.pos] }

type joinerValue struct {
	sep  any
	used bool
}

func (j *joinerValue) call() any {
	if !j.used {
		j.used = true
		return ""
	}
	return j.sep
}

func builtinNames() []string { return []string{"range", "dict", "namespace", "cycler", "joiner"} }

func builtinNamed(name string) (any, bool) {
	switch name {
	case "range":
		return builtin{name, callRange}, true
	case "dict":
		return builtin{name, callDict}, true
	case "namespace":
		return builtin{name, func(p *proc, a *argList) (any, error) {
			d, err := callDict(p, a)
			if err != nil {
				return nil, err
			}
			return &namespaceValue{attrs: d.(*Dict)}, nil
		}}, true
	case "cycler":
		return builtin{name, callCycler}, true
	case "joiner":
		return builtin{name, callJoiner}, true
	case "lipsum":
		return builtin{name, func(*proc, *argList) (any, error) {
			return nil, fail(diag.TemplateUnsupported, "lipsum() is not supported: its text would differ from run to run")
		}}, true
	}
	return nil, false
}

func callRange(_ *proc, a *argList) (any, error) {
	if len(a.names) > 0 {
		return nil, typeError("range() takes no named arguments")
	}
	if n := len(a.pos); n < 1 || n > 3 {
		return nil, typeError("range() takes one to three whole numbers, %d arguments are given", n)
	}
	var nums [3]int64
	for i, v := range a.pos {
		if u, ok := v.(*Undefined); ok {
			return nil, u.fault()
		}
		n, ok := small(v)
		if !ok {
			if isWhole(v) {
				return nil, valueError("range() cannot count so far")
			}
			return nil, typeError("range() takes whole numbers, not %s", typeName(v))
		}
		if n > 1<<61 || n < -1<<61 {
			return nil, valueError("range() cannot count so far")
		}
		nums[i] = n
	}
	switch len(a.pos) {
	case 1:
		return rangeValue{0, nums[0], 1}, nil
	case 2:
		return rangeValue{nums[0], nums[1], 1}, nil
	}
	if nums[2] == 0 {
		return nil, valueError("the step of range() cannot be 0")
	}
	return rangeValue{nums[0], nums[1], nums[2]}, nil
}

// callDict is dict(): of a dict or pairs, and named values.
func callDict(p *proc, a *argList) (any, error) {
	d := NewDict()
	if len(a.pos) > 1 {
		return nil, typeError("at most one argument without a name is taken, %d are given", len(a.pos))
	}
	if len(a.pos) == 1 {
		if err := p.r.update(d, a.pos[0]); err != nil {
			return nil, err
		}
	}
	for i, name := range a.names {
		d.put(name, plain(a.values[i]))
	}
	return d, nil
}

// update adds the pairs of a dict, or of a sequence of pairs, to d.
func (r *run) update(d *Dict, v any) error {
	if other, ok := v.(*Dict); ok {
		if err := r.room(int64(other.Len())); err != nil {
			return err
		}
		for _, e := range other.clone().entries {
			if err := d.Set(e.key, e.value); err != nil {
				return err
			}
		}
		return nil
	}
	if ns, ok := v.(*namespaceValue); ok {
		return typeError("%s is no dict and no sequence of pairs", typeName(ns))
	}
	next, err := r.iterate(v)
	if err != nil {
		return err
	}
	for {
		item, ok, err := next()
		if !ok || err != nil {
			return err
		}
		pair, err := r.collect(item)
		if err != nil {
			return err
		}
		if len(pair) != 2 {
			return valueError("a dict is made of pairs; one item has %d parts", len(pair))
		}
		if err := d.Set(pair[0], pair[1]); err != nil {
			return err
		}
	}
}

func callCycler(_ *proc, a *argList) (any, error) {
	if len(a.names) > 0 {
		return nil, typeError("cycler() takes no named arguments")
	}
	if len(a.pos) == 0 {
		return nil, typeError("cycler() needs at least one item")
	}
	return &cyclerValue{items: a.pos}, nil
}

func callJoiner(_ *proc, a *argList) (any, error) {
	sep, ok := a.take("sep")
	if !ok {
		sep = ", "
		if len(a.pos) > 0 {
			sep = a.pos[0]
		}
	}
	return &joinerValue{sep: sep}, nil
}
