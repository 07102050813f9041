package project

import (
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// refCall is ref('x'), ref('p', 'x'), source('s', 't'), this or a bare name, as
// YAML holds them.
type refCall struct {
	source  bool
	this    bool
	bare    bool
	args    []string
	version string
}

// name gives what is named: "x", "x_v2" or "s.t".
func (c refCall) name() string {
	switch {
	case c.source:
		return strings.Join(c.args, ".")
	case c.this:
		return "this"
	case c.version != "":
		return c.args[len(c.args)-1] + "_v" + c.version
	default:
		return c.args[len(c.args)-1]
	}
}

// parseReference reads a reference in YAML. problem is "" if it is one.
func parseReference(n *yaml.Node) (call refCall, problem string) {
	if n.Kind != yaml.ScalarNode {
		return call, "it is no text"
	}
	text := strings.TrimSpace(n.Value)
	if inner, ok := strings.CutPrefix(text, "{{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}}"); ok {
			text = strings.TrimSpace(inner)
		}
	}
	if text == "this" {
		return refCall{this: true}, ""
	}
	open := strings.IndexByte(text, '(')
	if open < 0 {
		if text == "" || strings.ContainsAny(text, " '\"),") {
			return call, "it is no name"
		}
		return refCall{bare: true, args: []string{text}}, ""
	}
	function, rest := strings.TrimSpace(text[:open]), text[open+1:]
	rest, closed := strings.CutSuffix(strings.TrimSpace(rest), ")")
	if !closed {
		return call, "the parenthesis is not closed"
	}
	if function != "ref" && function != "source" {
		return call, "it is neither ref nor source"
	}
	call.source = function == "source"
	for _, arg := range strings.Split(rest, ",") {
		arg = strings.TrimSpace(arg)
		if key, value, ok := strings.Cut(arg, "="); ok && !call.source {
			if key = strings.TrimSpace(key); key != "v" && key != "version" {
				return call, "ref has no argument " + key
			}
			call.version = strings.Trim(strings.TrimSpace(value), `'"`)
			continue
		}
		if len(arg) < 3 || arg[0] != '\'' && arg[0] != '"' || arg[len(arg)-1] != arg[0] {
			return call, "a name must stand in quotes"
		}
		call.args = append(call.args, arg[1:len(arg)-1])
	}
	switch {
	case call.source && len(call.args) != 2:
		return call, "source takes two names"
	case !call.source && (len(call.args) == 0 || len(call.args) > 2):
		return call, "ref takes one name, or project and name"
	}
	return call, ""
}

// target is what a name of ref() stands for.
type target struct {
	node     string
	output   string // in its __ spelling, "" for the node itself
	disabled string // file of a disabled model
}

// index finds what references name, ignoring case.
type index struct {
	nodes   map[string]target // by folded name
	sources map[string]*Source
	names   []string // of models, seeds and outputs, for suggestions
	groups  []string

	mu   sync.Mutex
	near map[string]string // suggestions for unknown names: one missing parent may have many children
}

// suggest gives a suggestion for an unknown name.
func (ix *index) suggest(name string) string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	hint, ok := ix.near[name]
	if !ok {
		hint = suggestion(name, ix.names)
		if ix.near == nil {
			ix.near = map[string]string{}
		}
		ix.near[name] = hint
	}
	return hint
}

func (ix *index) add(name string, t target) {
	ix.nodes[folded(name)] = t
	if t.disabled == "" {
		ix.names = append(ix.names, name)
	}
}

// lookup resolves a reference. The diagnostic has no place.
func (p *Project) lookup(c refCall) (Ref, *diag.Diagnostic) {
	if c.source {
		return p.lookupSource(c.args[0], c.args[1])
	}
	if len(c.args) == 2 && folded(c.args[0]) != folded(p.Name) {
		d := diag.Errorf(diag.UnknownRef, diag.Pos{}, "ref names the project %q, and this one is %q", c.args[0], p.Name).
			WithHint("rbt has no packages: write ref('%s')", c.args[1])
		return Ref{}, &d
	}
	name := c.name()
	if t, ok := p.index.nodes[folded(name)]; ok {
		if t.disabled != "" {
			d := diag.Errorf(diag.DisabledRef, diag.Pos{}, "%q is disabled", t.node).
				WithNote(diag.Pos{File: t.disabled}, "it has `enabled: false`")
			return Ref{}, &d
		}
		return Ref{Node: t.node, Output: t.output}, nil
	}
	if p.lost.output(name) {
		d := diag.Consequence(diag.Pos{})
		return Ref{}, &d
	}
	if c.bare {
		if group, table, ok := strings.Cut(name, "."); ok {
			if r, d := p.lookupSource(group, table); d == nil || p.lost.source(group, table) {
				return r, d
			}
		}
	}
	d := diag.Errorf(diag.UnknownRef, diag.Pos{}, "there is no model, seed or ingest output called %q", name)
	if hint := p.index.suggest(name); hint != "" {
		d = d.WithHint("%s", hint)
	} else if len(c.args) == 1 && p.index.sources[folded(name)] != nil {
		d = d.WithHint("it is a source: write source()")
	}
	return Ref{}, &d
}

func (p *Project) lookupSource(group, table string) (Ref, *diag.Diagnostic) {
	if s := p.index.sources[folded(group)+"."+folded(table)]; s != nil {
		return Ref{Node: s.Group + "." + s.Name, Source: true}, nil
	}
	if p.lost.source(group, table) {
		d := diag.Consequence(diag.Pos{})
		return Ref{}, &d
	}
	known := slices.ContainsFunc(p.index.groups, func(g string) bool { return folded(g) == folded(group) })
	if !known {
		d := diag.Errorf(diag.UnknownSource, diag.Pos{}, "there is no source called %q", group)
		if hint := suggestion(group, p.index.groups); hint != "" {
			d = d.WithHint("%s", hint)
		} else {
			d = d.WithHint("declare it under `sources:` in project.yml or in a .yml file under models/")
		}
		return Ref{}, &d
	}
	var tables []string
	for _, s := range p.Sources {
		if folded(s.Group) == folded(group) {
			tables = append(tables, s.Name)
		}
	}
	d := diag.Errorf(diag.UnknownSource, diag.Pos{}, "the source %q has no table %q", group, table)
	if hint := suggestion(table, tables); hint != "" {
		d = d.WithHint("%s", hint)
	} else {
		d = d.WithHint("its tables: %s", strings.Join(tables, ", "))
	}
	return Ref{}, &d
}

// suggestion gives `did you mean "x"?`, or "" where nothing is near.
func suggestion(word string, names []string) string {
	if near := diag.Nearest(word, names); near != "" {
		return `did you mean "` + near + `"?`
	}
	return ""
}

// relationOf gives schema and name of what a reference names.
func relationOf(r Ref) (schema, name string) {
	if r.Source {
		schema, name, _ = strings.Cut(r.Node, ".")
		return schema, name
	}
	if r.Output != "" {
		return "main", r.Output
	}
	return "main", r.Node
}
