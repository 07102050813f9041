package jinja

import (
	"slices"
	"strings"

	"rbt/internal/diag"
)

// filterDef is one filter. With raw set it gets its arguments as they are, else
// bound to its parameters.
type filterDef struct {
	params params
	rich   bool // the input keeps its origin
	fn     func(c *filterCall) (any, error)
	raw    bool
}

// filterCall is one application of a filter.
type filterCall struct {
	*run
	p    *proc
	in   any
	args []any
	raw  *argList
	at   where
}

// filter applies a filter to a value.
func (p *proc) filter(x *filterExpr, in any) (any, error) {
	if x.def == nil {
		return nil, &fault{Diagnostic: unknownProblem(x.at, p.tmpl.file, "filter", x.name, filterNames())}
	}
	a, err := p.args(&x.args, false)
	if err != nil {
		return nil, err
	}
	v, err := p.applyFilter(x.name, x.def, in, a, p.place(x.at))
	return v, p.blamed(err, x.at, &x.args)
}

func (p *proc) applyFilter(name string, def *filterDef, in any, a *argList, at where) (any, error) {
	c := &filterCall{run: p.r, p: p, in: in, raw: a, at: at}
	if !def.rich {
		c.in = plain(in)
	}
	if !def.raw {
		args, err := def.params.bind("the filter '"+name+"'", a)
		if err != nil {
			return nil, err
		}
		c.args = args
	}
	return def.fn(c)
}

// text gives the input as text, as Python's str makes it.
func (c *filterCall) text() (string, error) { return c.str(c.in) }

func (c *filterCall) flag(i int, otherwise bool) (bool, error) {
	return truth(given(c.args[i], otherwise))
}

func (c *filterCall) int(i int, otherwise int64, what string) (int64, error) {
	return wantInt(given(c.args[i], otherwise), what)
}

// str gives argument i as text, as Python's str makes it.
func (c *filterCall) strArg(i int, otherwise string) (string, error) {
	return c.str(given(c.args[i], otherwise))
}

func filterNames() []string {
	return []string{"abs", "as_bool", "as_native", "as_number", "as_text", "attr", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "e",
		"escape", "filesizeformat", "first", "float", "forceescape", "format", "groupby", "indent", "int",
		"items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr",
		"replace", "reverse", "round", "safe", "select", "selectattr", "slice", "sort", "string", "striptags",
		"sum", "title", "tojson", "trim", "truncate", "unique", "upper", "urlencode", "wordcount", "wordwrap"}
}

// refusedFilters are filters of Jinja2 that would differ from run to run or
// make HTML.
func refusedFilter(name string) string {
	switch name {
	case "random":
		return "its result would differ from run to run"
	case "urlize", "xmlattr":
		return "it makes HTML"
	case "pprint":
		return "use tojson(indent=2) or log()"
	}
	return ""
}

func filterNamed(name string) *filterDef {
	if def := textFilter(name); def != nil {
		return def
	}
	if def := sequenceFilter(name); def != nil {
		return def
	}
	if def := numberFilter(name); def != nil {
		return def
	}
	if why := refusedFilter(name); why != "" {
		return &filterDef{raw: true, fn: func(*filterCall) (any, error) {
			return nil, fail(diag.TemplateUnsupported, "the filter '%s' is not supported: %s", name, why)
		}}
	}
	return nil
}

func isFilter(name string) bool { return slices.Contains(filterNames(), name) }

// textOf makes a filter of a function over text.
func textOf(fn func(string) string) *filterDef {
	return &filterDef{fn: func(c *filterCall) (any, error) {
		s, err := c.text()
		if err != nil {
			return nil, err
		}
		if err := c.grow(int64(len(s))); err != nil {
			return nil, err
		}
		if isMarkup(c.in) {
			return markup(fn(s)), nil
		}
		return fn(s), nil
	}}
}

// numberFilter finds the filters that make or take numbers.
func numberFilter(name string) *filterDef {
	switch name {
	case "int":
		return &filterDef{params: params{"default?", "base?"}, fn: filterInt}
	case "float":
		return &filterDef{params: params{"default?"}, fn: filterFloat}
	case "abs":
		return &filterDef{fn: filterAbs}
	case "round":
		return &filterDef{params: params{"precision?", "method?"}, fn: filterRound}
	case "filesizeformat":
		return &filterDef{params: params{"binary?"}, fn: filterFileSize}
	case "as_bool", "as_native", "as_number", "as_text":
		// dbt's hints for YAML values: in SQL they change nothing.
		return &filterDef{rich: true, fn: func(c *filterCall) (any, error) { return c.in, nil }}
	case "default", "d":
		return &filterDef{params: params{"default_value?", "boolean?"}, rich: true, fn: filterDefault}
	case "tojson":
		return &filterDef{params: params{"indent?"}, fn: filterToJSON}
	case "attr":
		return &filterDef{params: params{"name"}, fn: filterAttr}
	}
	return nil
}

func filterDefault(c *filterCall) (any, error) {
	byTruth, err := c.flag(1, false)
	if err != nil {
		return nil, err
	}
	if _, undefined := c.in.(*Undefined); undefined {
		return given(c.args[0], ""), nil
	}
	if byTruth {
		ok, err := truth(c.in)
		if err != nil {
			return nil, err
		}
		if !ok {
			return given(c.args[0], ""), nil
		}
	}
	return c.in, nil
}

// filterAttr is an attribute without looking for an item.
func filterAttr(c *filterCall) (any, error) {
	if u, ok := c.in.(*Undefined); ok {
		return nil, u.fault()
	}
	name, err := wantText(c.args[0], "the name of the attribute")
	if err != nil {
		return nil, err
	}
	v, ok, err := c.attribute(c.in, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return c.noAttribute(c.in, name, c.at), nil
	}
	return settled(v, c.at), nil
}

// attrGetter reads an attribute path such as "a.b" or 0 from items, with a value
// for what is not there (missing{} for none).
func (c *filterCall) attrGetter(attribute, otherwise any) (func(any) (any, error), error) {
	if attribute == nil {
		return func(v any) (any, error) { return v, nil }, nil
	}
	if u, ok := attribute.(*Undefined); ok {
		return nil, u.fault()
	}
	path := []any{attribute}
	if s, ok := text(attribute); ok {
		path = nil
		for _, part := range strings.Split(s, ".") {
			if n, ok := digitsOnly(part); ok {
				path = append(path, n)
			} else {
				path = append(path, part)
			}
		}
	}
	_, none := otherwise.(missing)
	return func(v any) (any, error) {
		for _, part := range path {
			var err error
			if v, err = c.getitem(v, part, c.at); err != nil {
				return nil, err
			}
			if _, ok := v.(*Undefined); ok && !none {
				v = otherwise
			}
		}
		return v, nil
	}, nil
}
