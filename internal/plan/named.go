package plan

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// namedSelectors evaluates the selectors of selectors.yml, each once.
type namedSelectors struct {
	list   []*project.Selector
	known  map[string]bitset
	inside []string // names that are being evaluated, outermost first
}

// find gives the selector of a name.
func (n *namedSelectors) find(name string) *project.Selector {
	for _, s := range n.list {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// byDefault gives the selector that counts where nothing is said, nil if none
// does.
func (n *namedSelectors) byDefault() *project.Selector {
	for _, s := range n.list {
		if s.Default {
			return s
		}
	}
	return nil
}

// selector gives what a named selector picks. text is how it was asked for.
func (x *index) selector(name, text string) bitset {
	n := &x.selectors
	if set, ok := n.known[name]; ok {
		return set
	}
	s := n.find(name)
	switch {
	case s == nil:
		x.diags = append(x.diags, n.unknown(name, text))
		return newBitset(len(x.items))
	case slices.Contains(n.inside, name):
		path := append(slices.Clone(n.inside[slices.Index(n.inside, name):]), name)
		x.diags = append(x.diags, diag.Errorf(diag.SelectorSyntax, s.Pos, "selectors name each other: %s", strings.Join(path, " -> ")).
			WithHint("one of them has to say without the others what it picks"))
		return newBitset(len(x.items))
	}
	n.inside = append(n.inside, name)
	set := x.criterion(s.Definition, false)
	n.inside = n.inside[:len(n.inside)-1]
	if n.known == nil {
		n.known = map[string]bitset{}
	}
	n.known[name] = set
	return set
}

func (n *namedSelectors) unknown(name, text string) diag.Diagnostic {
	d := diag.Errorf(diag.SelectorUnknown, diag.Pos{}, "%s: %s has no selector %q", text, project.SelectorsFile, name)
	if len(n.list) == 0 {
		return d.WithHint("there is no %s, or it holds none", project.SelectorsFile)
	}
	names := make([]string, len(n.list))
	for i, s := range n.list {
		names[i] = s.Name
	}
	if near := diag.Nearest(name, names); near != "" {
		return d.WithHint("did you mean %s?", near)
	}
	return d.WithHint("selectors are %s", strings.Join(names, ", "))
}

// criterion gives what a part of a definition picks. Problems get its place.
func (x *index) criterion(c *project.Criterion, excluding bool) bitset {
	before := len(x.diags)
	set := x.picked(c, excluding)
	for _, e := range c.Exclude {
		set = set.without(x.criterion(e, true))
	}
	for i := before; i < len(x.diags); i++ {
		if x.diags[i].Pos.IsZero() {
			x.diags[i].Pos = c.Pos
		}
	}
	return set
}

func (x *index) picked(c *project.Criterion, excluding bool) bitset {
	none := newBitset(len(x.items))
	switch {
	case c.Union != nil:
		for _, part := range c.Union {
			none.add(x.criterion(part, excluding))
		}
		return none
	case c.Intersection != nil:
		both := x.all()
		for _, part := range c.Intersection {
			both = both.and(x.criterion(part, excluding))
		}
		return both
	case c.Words != "":
		words, diags := parseSelector(project.SelectorsFile+":", []string{c.Words})
		if x.diags = append(x.diags, diags...); diags.HasErrors() {
			return none
		}
		return x.union(words, excluding)
	}
	var p selectorParser
	t, ok := p.declared(c)
	if x.diags = append(x.diags, p.diags...); !ok {
		return none
	}
	return x.term(t, excluding)
}

// declared makes a term of a criterion that names its method.
func (p *selectorParser) declared(c *project.Criterion) (term, bool) {
	t := term{text: c.Method + ":" + c.Value, value: norm.NFC.String(c.Value), family: c.Family, up: generations(c.Parents), down: generations(c.Children)}
	name, key, _ := strings.Cut(c.Method, ".")
	t.key = key
	if c.Value == "" {
		p.fail(diag.SelectorSyntax, "write what to look for", "the method %q has no value", c.Method)
		return t, false
	}
	return t, p.method(&t, name)
}

func generations(n int) int {
	if n == project.AllGenerations {
		return allNeighbours
	}
	return n
}
