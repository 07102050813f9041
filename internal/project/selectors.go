package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// SelectorsFile is the name of the file of named selectors, beside project.yml.
const SelectorsFile = "selectors.yml"

// Selector is a named selection of selectors.yml.
type Selector struct {
	Name        string
	Description string
	Default     bool // what a command selects that is told nothing
	Definition  *Criterion
	Pos         diag.Pos
}

// AllGenerations says of Criterion.Parents and Children that they are not
// limited.
const AllGenerations = -1

// Criterion is a part of a definition: exactly one of Words, Method, Union and
// Intersection is set. What the methods are is not looked at here.
type Criterion struct {
	Words         string // in the grammar of --select
	Method, Value string // "tag" and "daily", "config.materialized" and "view"
	Parents       int    // generations of ancestors of what Method picks
	Children      int    // generations of descendants
	Family        bool   // descendants, and ancestors of all of these
	Union         []*Criterion
	Intersection  []*Criterion
	Exclude       []*Criterion // taken out of the rest
	Pos           diag.Pos
}

// loadSelectors reads selectors.yml, which need not exist.
func (l *loader) loadSelectors() {
	path := filepath.Join(l.p.Dir, SelectorsFile)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return
	}
	text, ok := l.read(foundFile{path: path, rel: SelectorsFile})
	if !ok {
		return
	}
	root, list := yamlText{file: SelectorsFile, text: text, line: 1}.parse()
	l.diags = append(l.diags, list...)
	if list != nil {
		return
	}
	d := &decoder{file: SelectorsFile}
	f, ok := d.fields(root, selectorsTable)
	if ok {
		l.p.Selectors = f.selectors()
	}
	l.diags = append(l.diags, d.diags...)
}

func (f fields) selectors() []*Selector {
	var out []*Selector
	names := map[string]diag.Pos{}
	for _, item := range f.items("selectors") {
		s, ok := f.d.fields(item, selectorTable)
		if !ok || s.node("name") == nil || s.node("definition") == nil {
			continue
		}
		sel := &Selector{Name: s.text("name"), Description: s.text("description"), Default: s.boolean("default", false), Pos: s.pos("name")}
		if first, twice := names[sel.Name]; twice {
			f.d.add(diag.Errorf(diag.NameClash, sel.Pos, "two selectors are called %q", sel.Name).WithNote(first, "the first one"))
			continue
		}
		names[sel.Name] = sel.Pos
		if sel.Name == "" || strings.ContainsAny(sel.Name, " \t\n,+@:") {
			f.d.add(badName(sel.Pos, "a selector", sel.Name, "it stands in selectors, so it has no blank and none of , + @ :"))
			continue
		}
		if sel.Definition = f.d.criterion(s.node("definition")); sel.Definition != nil {
			out = append(out, sel)
		}
	}
	f.d.oneDefault(out)
	slices.SortFunc(out, func(a, b *Selector) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (d *decoder) oneDefault(selectors []*Selector) {
	var first *Selector
	for _, s := range selectors {
		switch {
		case !s.Default:
		case first == nil:
			first = s
		default:
			d.add(diag.Errorf(diag.Contradicted, s.Pos, "the selectors %q and %q are both the default", first.Name, s.Name).WithNote(first.Pos, "the first one"))
		}
	}
}

// criterion reads a definition or a part of one; nil after a problem.
func (d *decoder) criterion(n *yaml.Node) *Criterion {
	n = resolved(n)
	c := &Criterion{Pos: d.pos(n)}
	switch {
	case n.Kind == yaml.ScalarNode && !isNull(n):
		if strings.TrimSpace(n.Value) == "" {
			d.bad(n, "a definition cannot be empty")
			return nil
		}
		c.Words = n.Value
		return c
	case n.Kind != yaml.MappingNode:
		d.badHint(n, `write "tag:daily", {tag: daily}, {method: tag, value: daily}, {union: […]} or {intersection: […]}`,
			"a definition is text or a mapping, not %s", describe(n))
		return nil
	}
	pairs := d.pairs(n)
	named := func(name string) bool { return slices.ContainsFunc(pairs, func(p pair) bool { return p.name == name }) }
	switch {
	case named("method"), named("value"):
		return d.methodCriterion(n, c)
	case named("union"), named("intersection"):
		return d.setCriterion(n, c)
	case len(pairs) == 1 && pairs[0].value.Kind == yaml.ScalarNode && !isNull(pairs[0].value) && pairs[0].name != "exclude":
		c.Method, c.Value = pairs[0].name, pairs[0].value.Value
		return c
	}
	d.badHint(n, "write {tag: daily}, {method: tag, value: daily}, {union: […]} or {intersection: […]}", "this definition says nothing that rbt knows")
	return nil
}

func (d *decoder) methodCriterion(n *yaml.Node, c *Criterion) *Criterion {
	before := len(d.diags)
	f, _ := d.fields(n, criterionTable)
	c.Method, c.Value = f.text("method"), f.text("value")
	generations := func(all, depth string) int {
		if !f.boolean(all, false) {
			if f.has(depth) {
				d.add(diag.Errorf(diag.BadValue, f.pos(depth), "%s means nothing without `%s: true`", f.label(depth), all))
			}
			return 0
		}
		if f.node(depth) == nil {
			return AllGenerations
		}
		return f.integer(depth, 0)
	}
	c.Parents, c.Children = generations("parents", "parents_depth"), generations("children", "children_depth")
	if c.Family = f.boolean("childrens_parents", false); c.Family && (c.Parents != 0 || c.Children != 0) {
		d.add(diag.Errorf(diag.BadValue, f.pos("childrens_parents"), "`childrens_parents` goes without `parents` and `children`"))
	}
	f.text("indirect_selection")
	c.Exclude = d.criteria(f.items("exclude"), nil)
	if len(d.diags) > before {
		return nil
	}
	return c
}

func (d *decoder) setCriterion(n *yaml.Node, c *Criterion) *Criterion {
	before := len(d.diags)
	f, _ := d.fields(n, criteriaTable)
	if f.has("union") && f.has("intersection") {
		d.badHint(n, "put one into the list of the other", "a definition is a union or an intersection, not both")
		return nil
	}
	name := "union"
	if f.has("intersection") {
		name = "intersection"
	}
	list := d.criteria(f.items(name), &c.Exclude)
	if len(list) == 0 && len(d.diags) == before {
		d.add(diag.Errorf(diag.BadValue, f.pos(name), "%s has nothing in it", f.label(name)))
	}
	if name == "union" {
		c.Union = list
	} else {
		c.Intersection = list
	}
	if len(d.diags) > before {
		return nil
	}
	return c
}

// criteria reads a list of definitions. In the list of a union or intersection
// {exclude: […]} is taken out of what the others come to.
func (d *decoder) criteria(items []*yaml.Node, exclude *[]*Criterion) []*Criterion {
	var out []*Criterion
	for _, item := range items {
		if exclude != nil && item.Kind == yaml.MappingNode && len(item.Content) == 2 && item.Content[0].Value == "exclude" {
			if *exclude != nil {
				d.bad(item, "`exclude` stands twice in one list")
				continue
			}
			f, _ := d.fields(item, excludeTable)
			*exclude = d.criteria(f.items("exclude"), nil)
			continue
		}
		if c := d.criterion(item); c != nil {
			out = append(out, c)
		}
	}
	return out
}

var (
	selectorsTable = newTable("selectors", "selectors.yml", nil,
		mapKey{name: "selectors", kind: kindList, sub: "selector", doc: "Named selections for --selector and selector:."})
	selectorTable = newTable("selector", "a selector", nil,
		mapKey{name: "name", kind: kindText, required: true, doc: "How --selector and selector: call it."},
		mapKey{name: "description", kind: kindText, doc: "What it is for."},
		mapKey{name: "default", kind: kindBool, doc: "Whether commands use it that are told nothing else."},
		mapKey{name: "definition", kind: kindAny, required: true, doc: "Text as for --select, {method, value, …}, {union: […]} or {intersection: […]}."})
	criterionTable = newTable("criterion", "a criterion", map[string]string{"greedy": "tests come along with every node that they read"},
		mapKey{name: "method", kind: kindText, required: true, doc: "A method of selectors: tag, path, config.materialized, …"},
		mapKey{name: "value", kind: kindText, required: true, doc: "What the method looks for."},
		mapKey{name: "parents", kind: kindBool, doc: "Whether ancestors come along."},
		mapKey{name: "parents_depth", kind: kindInt, doc: "How many generations of ancestors."},
		mapKey{name: "children", kind: kindBool, doc: "Whether descendants come along."},
		mapKey{name: "children_depth", kind: kindInt, doc: "How many generations of descendants."},
		mapKey{name: "childrens_parents", kind: kindBool, doc: "Whether descendants and all that they need come along (@)."},
		mapKey{name: "indirect_selection", kind: kindText, enum: []string{"eager"}, doc: "Which tests come along: those that read any picked node."},
		mapKey{name: "exclude", kind: kindAny, doc: "A list of what is taken out."})
	criteriaTable = newTable("criteria", "a definition", nil,
		mapKey{name: "union", kind: kindAny, doc: "A list of definitions: what any of them picks."},
		mapKey{name: "intersection", kind: kindAny, doc: "A list of definitions: what all of them pick."})
	excludeTable = newTable("exclude", "`exclude`", nil,
		mapKey{name: "exclude", kind: kindAny, doc: "A list of definitions of what is taken out."})
)
