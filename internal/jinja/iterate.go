package jinja

import (
	"errors"
	"unicode/utf8"

	"rbt/internal/diag"
)

func isTypeFault(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.Code == diag.TemplateType && f.Pos.IsZero()
}

// iterate gives the items of a value one by one. Lists and dicts are read as
// they are at that moment, not as they were at the beginning.
func (r *run) iterate(v any) (nextFunc, error) {
	if g, ok := v.(*generator); ok {
		return g.next, nil
	}
	if s, ok := text(v); ok {
		return func() (any, bool, error) {
			if s == "" {
				return nil, false, nil
			}
			_, n := utf8.DecodeRuneInString(s)
			c := s[:n]
			s = s[n:]
			return c, true, r.step(1)
		}, nil
	}
	at, length, err := r.indexed(v)
	if err != nil {
		return nil, err
	}
	i := 0
	return func() (any, bool, error) {
		n, err := length()
		if err != nil || i >= n {
			return nil, false, err
		}
		i++
		return elem(at(i - 1)), true, r.step(1)
	}, nil
}

// indexed gives access by position to the items of a value. length is asked
// before each access.
func (r *run) indexed(v any) (at func(int) any, length func() (int, error), err error) {
	switch v := v.(type) {
	case *List:
		return func(i int) any { return v.items[i] }, func() (int, error) { return len(v.items), nil }, nil
	case Tuple:
		return func(i int) any { return v[i] }, func() (int, error) { return len(v), nil }, nil
	case *groupValue:
		return r.indexed(v.tuple())
	case *Dict:
		return r.indexed(dictView{dict: v, kind: viewKeys})
	case dictView:
		v.dict.compact()
		n := v.dict.Len()
		return v.at, func() (int, error) {
			if v.dict.Len() != n || v.dict.dead > 0 {
				return 0, valueError("the dict changes while it is looped over")
			}
			return n, nil
		}, nil
	case rangeValue:
		n := int(v.len())
		return func(i int) any { return v.at(int64(i)) }, func() (int, error) { return n, nil }, nil
	case *Undefined:
		if v.lenient {
			return nil, func() (int, error) { return 0, nil }, nil
		}
		return nil, nil, v.fault()
	case Sequence:
		return v.At, func() (int, error) { return v.Len(), nil }, nil
	}
	return nil, nil, typeError("%s has no items", typeName(v))
}

// collect gives all items of a value.
func (r *run) collect(v any) ([]any, error) {
	if n, ok := lengthOf(v); ok {
		if err := r.room(n); err != nil {
			return nil, err
		}
	}
	next, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	var list []any
	for {
		item, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return list, nil
		}
		list = append(list, item)
	}
}

// lengthOf is Python's len.
func lengthOf(v any) (int64, bool) {
	switch v := v.(type) {
	case string, *richText, markup:
		s, _ := text(v)
		return int64(utf8.RuneCountInString(s)), true
	case *List:
		return int64(len(v.items)), true
	case Tuple:
		return int64(len(v)), true
	case *groupValue:
		return 2, true
	case *Dict:
		return int64(v.Len()), true
	case dictView:
		return int64(v.dict.Len()), true
	case rangeValue:
		return v.len(), true
	case *Undefined:
		return 0, v.lenient
	case Sequence:
		return int64(v.Len()), true
	}
	return 0, false
}

// groupValue is one group of the filter groupby: a pair with names.
type groupValue struct {
	key  any
	list *List
}

func (g *groupValue) tuple() Tuple { return Tuple{g.key, g.list} }
