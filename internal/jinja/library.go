package jinja

import (
	"maps"
	"slices"

	"rbt/internal/diag"
)

// Library is the set of templates whose macros are global to every render, and
// of named collections of macros. It is never changed.
type Library struct {
	templates []*Template
	macros    map[string]*macroStmt // by the name that they are bound to
	spaces    map[string]*library
	space     map[*Template]*library // the collection that a template belongs to
	// ready are the activations of templates of plain macros: nothing changes
	// them, so that all renders share one.
	ready map[*Template]*activation
}

// library is one named collection: macros are its attributes.
type library struct {
	name   string
	run    *run
	macros map[string]*macroStmt
	module *Template // an imported template, of which all names are attributes
}

// NewLibrary collects the macros of templates. Two with one name are a problem
// that names both places; the first then counts.
func NewLibrary(templates ...*Template) (*Library, diag.List) {
	l := &Library{spaces: map[string]*library{}, space: map[*Template]*library{}, templates: templates, ready: map[*Template]*activation{}}
	var errs diag.List
	l.macros, errs = collectMacros(templates)
	l.prepare(templates)
	return l, errs
}

// WithNamespace gives a library that has, beside all of l, the macros of the
// templates as attributes of one name: {{ ns.macro() }}. Inside of these
// templates they are also seen without the name. A name that l has already is
// replaced. l may be nil.
func (l *Library) WithNamespace(ns string, templates ...*Template) (*Library, diag.List) {
	if l == nil {
		l, _ = NewLibrary()
	}
	c := &Library{templates: l.templates, macros: l.macros, spaces: maps.Clone(l.spaces), space: maps.Clone(l.space), ready: maps.Clone(l.ready)}
	space := &library{name: ns}
	var errs diag.List
	space.macros, errs = collectMacros(templates)
	c.spaces[ns] = space
	for _, t := range templates {
		c.space[t] = space
	}
	c.prepare(templates)
	return c, errs
}

// prepare makes the activations of templates of plain macros.
func (l *Library) prepare(templates []*Template) {
	for _, t := range templates {
		if t.plainMacros && l.ready[t] == nil {
			l.ready[t] = t.activate()
		}
	}
}

func collectMacros(templates []*Template) (map[string]*macroStmt, diag.List) {
	byName := map[string]*macroStmt{}
	var errs diag.List
	for _, t := range templates {
		for _, m := range t.macros {
			if first, ok := byName[m.name.name]; ok {
				d := diag.Errorf(diag.DuplicateMacro, m.def.pos.in(t.file), "there are two definitions of the %s '%s'", m.def.kind, m.def.name)
				d.Width = len([]rune(m.def.name))
				errs = append(errs, d.WithNote(first.def.pos.in(first.def.tmpl.file), "the other one is here"))
				continue
			}
			byName[m.name.name] = m
		}
	}
	return byName, errs.Sort()
}

// Macros lists all macros and tests of the library itself, without those of its
// namespaces, by kind and name.
func (l *Library) Macros() []MacroInfo {
	if l == nil {
		return nil
	}
	var list []MacroInfo
	for _, t := range l.templates {
		list = append(list, t.Macros()...)
	}
	slices.SortStableFunc(list, func(a, b MacroInfo) int {
		return slices.Compare([]string{a.Kind, a.Name}, []string{b.Kind, b.Name})
	})
	return list
}

// boundName is the variable that a macro of a kind is bound to.
func boundName(kind, name string) string {
	if kind == "test" {
		return "test_" + name
	}
	return name
}

func (l *Library) macro(kind, name string) *macroDef {
	if l == nil {
		return nil
	}
	if m := l.macros[boundName(kind, name)]; m != nil && m.def.kind == kind {
		return m.def
	}
	return nil
}

func (l *Library) names(kind string) []string {
	if l == nil {
		return nil
	}
	var names []string
	for _, m := range l.macros {
		if m.def.kind == kind {
			names = append(names, m.def.name)
		}
	}
	slices.Sort(names)
	return names
}

// global looks up a name that no frame binds: macros of the template's own
// namespace, macros of the library, its namespaces, what the host put in, and
// what is built in.
func (r *run) global(t *Template, name string) (any, bool, error) {
	if l := r.lib; l != nil {
		if space := l.space[t]; space != nil {
			if m := space.macros[name]; m != nil {
				return r.bound(m)
			}
		}
		if m := l.macros[name]; m != nil {
			return r.bound(m)
		}
		if space := l.spaces[name]; space != nil {
			return &library{name: name, run: r, macros: space.macros}, true, nil
		}
	}
	v, ok := r.own[name]
	if !ok {
		v, ok = r.globals[name]
	}
	if ok {
		if lazy, ok := v.(Lazy); ok {
			v = lazy()
		}
		v, err := normal(v)
		return v, true, err
	}
	v, ok = builtinNamed(name)
	return v, ok, nil
}

// bound gives a macro of the library as a value of this render.
func (r *run) bound(m *macroStmt) (any, bool, error) {
	act, err := r.module(m.def.tmpl)
	if err != nil {
		return nil, false, err
	}
	if v, ok := act.slots[m.name.slot].(*macroValue); ok && v.def == m.def {
		return v, true, nil
	}
	return &macroValue{def: m.def, outer: act}, true, nil
}

// module gives the activation of a library template in this render. Its top
// level is run once, for the variables that it may set; its text goes nowhere.
func (r *run) module(t *Template) (*activation, error) {
	if act, ok := r.made[t]; ok {
		return act, nil
	}
	if r.lib != nil && r.lib.ready[t] != nil {
		return r.lib.ready[t], nil
	}
	act := t.activate()
	if r.made == nil {
		r.made = map[*Template]*activation{}
	}
	r.made[t] = act
	if t.plainMacros {
		return act, nil
	}
	p := &proc{r: r, tmpl: t, act: act, out: &sink{r: r}}
	return act, p.template()
}

// activate gives an activation that has the macros of the template.
func (t *Template) activate() *activation {
	act := newActivation(t.slots, nil)
	values := make([]macroValue, len(t.macros))
	for i, m := range t.macros {
		values[i] = macroValue{def: m.def, outer: act}
		act.slots[m.name.slot] = &values[i]
	}
	return act
}

// attr gives a macro, or for an imported template any of its names.
func (l *library) attr(name string) (any, bool) {
	if l.module != nil {
		s, ok := l.module.names[name]
		if !ok || s.slot < 0 || name[0] == '_' {
			return nil, false
		}
		act, err := l.run.module(l.module) // it was made by the import
		if err != nil {
			return nil, false
		}
		v := act.slots[s.slot]
		_, unset := v.(missing)
		return v, !unset
	}
	m := l.macros[name]
	if m == nil {
		return nil, false
	}
	v, ok, err := l.run.bound(m)
	return v, ok && err == nil
}

// String gives no text: a collection is used by its macros.
func (l *library) String() string { return "" }

// Attr makes the collection an Object.
func (l *library) Attr(name string) (any, bool) { return l.attr(name) }

func (l *library) names() []string {
	if l.module != nil {
		return slices.Sorted(maps.Keys(l.module.names))
	}
	return slices.Sorted(maps.Keys(l.macros))
}

// imported finds what {% import %} and {% from %} name.
func (p *proc) imported(x expr) (*library, error) {
	v, err := p.eval(x)
	if err != nil {
		return nil, err
	}
	if l, ok := v.(*library); ok {
		return l, nil
	}
	if u, ok := v.(*Undefined); ok {
		return nil, u.fault()
	}
	name, ok := text(v)
	if !ok {
		return nil, p.at(typeError("the name of a template is text, not %s", typeName(v)), x.origin())
	}
	r := p.r
	if r.lib != nil {
		if space := r.lib.spaces[name]; space != nil {
			return &library{name: name, run: r, macros: space.macros}, nil
		}
		for _, t := range r.lib.templates {
			if t.file == name {
				if _, err := r.module(t); err != nil {
					return nil, p.at(err, x.origin())
				}
				return &library{name: name, run: r, module: t}, nil
			}
		}
	}
	return nil, p.at(failHint(diag.TemplateUnsupported,
		"macros in macros/ are there without an import; packages are imported by their name",
		"there is no template '%s' to import", name), x.origin())
}

func (p *proc) importAll(s *importStmt) error {
	l, err := p.imported(s.template)
	if err != nil {
		return err
	}
	p.act.slots[s.target.slot] = l
	return nil
}

func (p *proc) importNames(s *fromStmt) error {
	l, err := p.imported(s.template)
	if err != nil {
		return err
	}
	for _, n := range s.names {
		v, ok := l.attr(n.name)
		if !ok {
			w := p.place(n.head)
			v = &Undefined{msg: "'" + l.name + "' has no '" + n.name + "' to import", pos: w.pos, width: w.width,
				hint: func() string { return nearest(n.name, l.names()) }}
		}
		p.act.slots[n.target.slot] = v
	}
	return nil
}

// nameHint says what an unknown name may have been meant to be.
func (r *run) nameHint(t *Template, name string) string {
	var names []string
	for n, s := range t.names {
		if s.slot >= 0 {
			names = append(names, n)
		}
	}
	if r.lib != nil {
		for n := range r.lib.macros {
			names = append(names, n)
		}
		for n, space := range r.lib.spaces {
			names = append(names, n)
			if _, ok := space.macros[name]; ok {
				return "did you mean " + n + "." + name + "?"
			}
		}
	}
	for _, globals := range []map[string]any{r.own, r.globals} {
		for n := range globals {
			names = append(names, n)
		}
	}
	names = append(names, builtinNames()...)
	switch name {
	case "null", "NULL", "nil":
		return "the empty value is written none"
	case "TRUE", "FALSE":
		return "write true or false"
	}
	return nearest(name, names)
}
