package jinja

import (
	"math/big"
	"slices"
	"unicode"

	"rbt/internal/diag"
)

// methodDef is one method of a built-in type. With raw set it gets its
// arguments as they are, else bound to its parameters.
type methodDef struct {
	name   string
	params params
	// bare methods take no named arguments, as those of Python that are written in C.
	bare bool
	raw  func(p *proc, recv any, a *argList) (any, error)
	fn   func(r *run, recv any, args []any) (any, error)
}

func (m *methodDef) apply(p *proc, recv any, a *argList) (any, error) {
	if m.raw != nil {
		return m.raw(p, recv, a)
	}
	if m.bare && len(a.names) > 0 {
		return nil, typeError("%s() takes no named arguments", m.name)
	}
	args, err := m.params.bind(m.name+"()", a)
	if err != nil {
		return nil, err
	}
	return m.fn(p.r, recv, args)
}

// methodKey names a method of one kind of value.
type methodKey struct {
	kind recvKind
	name string
}

type recvKind uint8

const (
	ofNothing recvKind = iota
	ofText
	ofMarkup
	ofList
	ofDict
	ofTuple
	ofLoop
	ofCycler
	ofFloat
	ofWhole
)

func recvKindOf(recv any) recvKind {
	switch recv.(type) {
	case string:
		return ofText
	case markup:
		return ofMarkup
	case *List:
		return ofList
	case *Dict:
		return ofDict
	case Tuple, rangeValue, *groupValue:
		return ofTuple
	case *loopValue:
		return ofLoop
	case *cyclerValue:
		return ofCycler
	case float64:
		return ofFloat
	case int64, *big.Int:
		return ofWhole
	}
	return ofNothing
}

// methodOf finds a method of a value, nil where it has none of that name.
func (r *run) methodOf(recv any, name string) *methodDef {
	key := methodKey{recvKindOf(recv), name}
	if key.kind == ofNothing {
		return nil
	}
	def, ok := r.methods[key]
	if !ok {
		if def = newMethod(key); def != nil {
			def.name = name
		}
		if r.methods == nil {
			r.methods = map[methodKey]*methodDef{}
		}
		r.methods[key] = def
	}
	return def
}

func newMethod(key methodKey) *methodDef {
	switch key.kind {
	case ofText:
		return textMethod(key.name)
	case ofMarkup:
		if def := textMethod(key.name); def != nil {
			return markupMethod(key.name, def)
		}
	case ofList:
		return listMethod(key.name)
	case ofDict:
		return dictMethod(key.name)
	case ofTuple:
		return tupleMethod(key.name)
	case ofLoop:
		return loopMethod(key.name)
	case ofCycler:
		return cyclerMethod(key.name)
	case ofFloat:
		if key.name == "is_integer" {
			return &methodDef{fn: func(_ *run, recv any, _ []any) (any, error) {
				_, ok := floatToBig(recv.(float64))
				return ok, nil
			}}
		}
	case ofWhole:
		if key.name == "bit_length" {
			return &methodDef{fn: func(_ *run, recv any, _ []any) (any, error) {
				n, _ := whole(recv)
				return int64(n.BitLen()), nil
			}}
		}
	}
	return nil
}

// markupMethod is a method of HTML-safe text, which escapes what is put in.
func markupMethod(name string, def *methodDef) *methodDef {
	return &methodDef{raw: func(p *proc, recv any, a *argList) (any, error) {
		switch name {
		case "join":
			if len(a.pos) == 1 {
				list, err := p.r.collect(a.pos[0])
				if err != nil {
					return nil, err
				}
				a.pos = []any{&List{items: escaped(list)}}
			}
		case "center", "ljust", "replace", "rjust":
			a.pos, a.values = escaped(a.pos), escaped(a.values)
		}
		named := *def
		named.name = name
		var self any = string(recv.(markup))
		if name == "format" || name == "format_map" {
			self = recv
		}
		v, err := named.apply(p, self, a)
		return marked(v), err
	}}
}

// escaped makes the texts of a list HTML-safe.
func escaped(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
		if s, ok := safeText(v); ok {
			out[i] = s
		}
	}
	return out
}

// marked makes text, also in a list or tuple, HTML-safe.
func marked(v any) any {
	if s, ok := v.(string); ok {
		return markup(s)
	}
	list, _ := items(v)
	for i := range list {
		list[i] = marked(list[i])
	}
	return v
}

// methodNames lists the methods of a value, for suggestions.
func methodNames(recv any) []string {
	switch recv.(type) {
	case string, markup:
		return []string{"capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format",
			"format_map", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower",
			"isnumeric", "isprintable", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip",
			"partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition",
			"rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill"}
	case *List:
		return []string{"append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"}
	case *Dict:
		return []string{"clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"}
	case Tuple:
		return []string{"count", "index"}
	case *loopValue:
		return []string{"changed", "cycle", "depth", "depth0", "first", "index", "index0", "last", "length",
			"nextitem", "previtem", "revindex", "revindex0"}
	}
	return nil
}

func loopMethod(name string) *methodDef {
	switch name {
	case "cycle":
		return &methodDef{raw: func(_ *proc, recv any, a *argList) (any, error) {
			if len(a.pos) == 0 || len(a.names) > 0 {
				return nil, typeError("cycle() needs at least one item")
			}
			return a.pos[(recv.(*loopValue).index-1)%int64(len(a.pos))], nil
		}}
	case "changed":
		return &methodDef{raw: func(_ *proc, recv any, a *argList) (any, error) {
			return recv.(*loopValue).hasChanged(Tuple(a.pos))
		}}
	}
	return nil
}

func cyclerMethod(name string) *methodDef {
	switch name {
	case "next":
		return &methodDef{fn: func(_ *run, recv any, _ []any) (any, error) {
			c := recv.(*cyclerValue)
			v := c.current()
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}
	case "reset":
		return &methodDef{fn: func(_ *run, recv any, _ []any) (any, error) {
			recv.(*cyclerValue).pos = 0
			return nil, nil
		}}
	}
	return nil
}

// indexIn finds an item by ==.
func (r *run) indexIn(list []any, item any) (int, error) {
	for i, v := range list {
		if identical(v, item) {
			return i, nil
		}
		if same, err := r.equal(elem(v), item); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

func (r *run) countIn(list []any, item any) (any, error) {
	n := int64(0)
	for _, v := range list {
		same, err := r.equal(elem(v), item)
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return n, nil
}

func tupleMethod(name string) *methodDef {
	sequence := func(r *run, recv any) ([]any, error) { return r.collect(recv) }
	switch name {
	case "count":
		return &methodDef{params: params{"value"}, bare: true, fn: func(r *run, recv any, args []any) (any, error) {
			list, err := sequence(r, recv)
			if err != nil {
				return nil, err
			}
			return r.countIn(list, args[0])
		}}
	case "index":
		return &methodDef{params: params{"value", "start?", "stop?"}, bare: true, fn: func(r *run, recv any, args []any) (any, error) {
			list, err := sequence(r, recv)
			if err != nil {
				return nil, err
			}
			return r.position(list, args)
		}}
	}
	return nil
}

// position is index(): the first place of an item within bounds.
func (r *run) position(list, args []any) (any, error) {
	start, stop, _, err := sliceRange([3]any{given(args[1], nil), given(args[2], nil), nil}, int64(len(list)))
	if err != nil {
		return nil, err
	}
	at := -1
	if start < stop {
		if at, err = r.indexIn(list[start:stop], args[0]); err != nil {
			return nil, err
		}
	}
	if at < 0 {
		s, err := r.reprText(args[0])
		if err != nil {
			return nil, err
		}
		return nil, valueError("%s is not in the list", shorten(s))
	}
	return start + int64(at), nil
}

func listMethod(name string) *methodDef {
	on := func(fn func(r *run, l *List, args []any) (any, error), ps ...string) *methodDef {
		return &methodDef{params: ps, bare: true, fn: func(r *run, recv any, args []any) (any, error) {
			return fn(r, recv.(*List), args)
		}}
	}
	switch name {
	case "append":
		return on(func(r *run, l *List, args []any) (any, error) {
			l.items = append(l.items, args[0])
			return nil, r.step(1)
		}, "object")
	case "extend":
		return on(func(r *run, l *List, args []any) (any, error) {
			more, err := r.collect(args[0])
			l.items = append(l.items, more...)
			return nil, err
		}, "iterable")
	case "insert":
		return on(listInsert, "index", "object")
	case "pop":
		return on(listPop, "index?")
	case "remove":
		return on(func(r *run, l *List, args []any) (any, error) {
			i, err := r.indexIn(l.items, args[0])
			if err == nil && i < 0 {
				err = valueError("the list does not hold the item to remove")
			}
			if err != nil {
				return nil, err
			}
			l.items = slices.Delete(l.items, i, i+1)
			return nil, r.step(1 + (len(l.items)-i)/64)
		}, "value")
	case "index":
		return on(func(r *run, l *List, args []any) (any, error) {
			return r.position(l.items, args)
		}, "value", "start?", "stop?")
	case "count":
		return on(func(r *run, l *List, args []any) (any, error) { return r.countIn(l.items, args[0]) }, "value")
	case "copy":
		return on(func(r *run, l *List, _ []any) (any, error) {
			return &List{items: slices.Clone(l.items)}, r.room(int64(len(l.items)))
		})
	case "clear":
		return on(func(_ *run, l *List, _ []any) (any, error) {
			l.items = nil
			return nil, nil
		})
	case "reverse":
		return on(func(r *run, l *List, _ []any) (any, error) {
			slices.Reverse(l.items)
			return nil, r.step(len(l.items))
		})
	case "sort":
		return &methodDef{raw: listSort}
	}
	return nil
}

func listInsert(r *run, l *List, args []any) (any, error) {
	i, err := wantInt(args[0], "the index")
	if err != nil {
		return nil, err
	}
	n := int64(len(l.items))
	if i < 0 {
		i = max(0, i+n)
	}
	i = min(i, n)
	l.items = slices.Insert(l.items, int(i), args[1])
	return nil, r.step(1 + int(n-i)/64)
}

func listPop(r *run, l *List, args []any) (any, error) {
	i, err := wantInt(given(args[0], int64(-1)), "the index")
	if err != nil {
		return nil, err
	}
	n := int64(len(l.items))
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, valueError("pop() finds no item there: the list has %d", n)
	}
	v := l.items[i]
	l.items = slices.Delete(l.items, int(i), int(i)+1)
	return v, r.step(1 + int(n-i)/64)
}

func listSort(p *proc, recv any, a *argList) (any, error) {
	l := recv.(*List)
	if len(a.pos) > 0 {
		return nil, typeError("sort() takes only named arguments")
	}
	key, hasKey := a.take("key")
	backwards := false
	if v, ok := a.take("reverse"); ok {
		var err error
		if backwards, err = truth(v); err != nil {
			return nil, err
		}
	}
	if len(a.names) > 0 {
		return nil, typeError("sort() has no argument '%s'", a.names[0])
	}
	if hasKey && key != nil {
		return nil, failHint(diag.TemplateUnsupported, "use the filter: list | sort(attribute='name')",
			"sort(key=…) is not supported")
	}
	c := &filterCall{run: p.r, p: p}
	list, _, err := c.sorted(l.items, l.items, backwards)
	if err == nil {
		l.items = list
	}
	return nil, err
}

func dictMethod(name string) *methodDef {
	on := func(fn func(r *run, d *Dict, args []any) (any, error), ps ...string) *methodDef {
		return &methodDef{params: ps, bare: true, fn: func(r *run, recv any, args []any) (any, error) {
			return fn(r, recv.(*Dict), args)
		}}
	}
	switch name {
	case "get":
		return on(func(_ *run, d *Dict, args []any) (any, error) {
			v, ok, err := d.lookup(args[0])
			if !ok {
				v = given(args[1], nil)
			}
			return v, err
		}, "key", "default?")
	case "keys", "values", "items":
		kind := map[string]viewKind{"keys": viewKeys, "values": viewValues, "items": viewItems}[name]
		return on(func(_ *run, d *Dict, _ []any) (any, error) { return dictView{dict: d, kind: kind}, nil })
	case "update":
		return &methodDef{raw: dictUpdate}
	case "pop":
		return on(dictPop, "key", "default?")
	case "popitem":
		return on(func(_ *run, d *Dict, _ []any) (any, error) {
			d.compact()
			n := len(d.entries)
			if n == 0 {
				return nil, valueError("popitem() finds nothing: the dict is empty")
			}
			e := d.entries[n-1]
			d.Delete(e.key)
			return Tuple{e.key, e.value}, nil
		})
	case "setdefault":
		return on(func(_ *run, d *Dict, args []any) (any, error) {
			v, ok, err := d.lookup(args[0])
			if ok || err != nil {
				return v, err
			}
			v = given(args[1], nil)
			return v, d.Set(args[0], v)
		}, "key", "default?")
	case "copy":
		return on(func(r *run, d *Dict, _ []any) (any, error) { return d.clone(), r.room(int64(d.Len())) })
	case "clear":
		return on(func(_ *run, d *Dict, _ []any) (any, error) {
			d.clear()
			return nil, nil
		})
	}
	return nil
}

func dictUpdate(p *proc, recv any, a *argList) (any, error) {
	d := recv.(*Dict)
	if len(a.pos) > 1 {
		return nil, typeError("update() takes at most one argument without a name, %d are given", len(a.pos))
	}
	if len(a.pos) == 1 {
		if err := p.r.update(d, a.pos[0]); err != nil {
			return nil, err
		}
	}
	for i, name := range a.names {
		d.put(name, a.values[i])
	}
	return nil, nil
}

func dictPop(r *run, d *Dict, args []any) (any, error) {
	v, ok, err := d.lookup(args[0])
	if err != nil {
		return nil, err
	}
	if ok {
		d.Delete(args[0])
		return v, nil
	}
	if _, none := args[1].(missing); !none {
		return args[1], nil
	}
	s, err := r.reprText(args[0])
	if err != nil {
		return nil, err
	}
	return nil, failHint(diag.TemplateValue, "give a default: pop(key, none)", "pop() finds no key %s", shorten(s))
}

// isNumeric is str.isnumeric of one character.
func isNumeric(r rune) bool { return unicode.In(r, unicode.Nd, unicode.Nl, unicode.No) }

// decimalDigit gives the value of a decimal digit of any script: their blocks
// hold the ten digits in order.
func decimalDigit(r rune) (int, bool) {
	if !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	for d := 0; d < 10; d++ {
		if !unicode.Is(unicode.Nd, r-rune(d)-1) {
			return d, true
		}
	}
	return int(r) % 10, true
}
