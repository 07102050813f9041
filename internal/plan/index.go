package plan

import (
	"slices"
	"strconv"
	"strings"

	"rbt/internal/diag"
)

// item is what selectors pick from: a node or a test.
type item struct {
	kind   Kind
	id     string
	name   string // lower case
	dotted string // folders and name joined by dots, lower case
	file   string
	node   *Node     // nil for a test
	test   *TestNode // nil for a node
	reads  []int     // places of the nodes that a test reads
}

// index holds the items of one selection: first the nodes in the graph's order,
// then the tests.
type index struct {
	g       *Graph
	project string // lower case
	items   []item
	testsOf [][]int // place of a node -> places of the tests that read it
	past    Past
	diags   diag.List
	// named finds the items of a name or folder, whole names only; it is made
	// when the first name is looked up.
	named map[string][]int
	// states, results and sources are what past gave, when it was asked.
	states           map[string]Change
	results, sources map[string]string
	asked            map[method]bool
	metPast          bool // a term compared with an earlier command
	selectors        namedSelectors
}

func newIndex(g *Graph, s Selectors) *index {
	x := &index{
		g: g, project: strings.ToLower(g.project), past: s.Past, asked: map[method]bool{}, selectors: namedSelectors{list: s.Named},
		items:   make([]item, 0, len(g.nodes)+len(g.tests)),
		testsOf: make([][]int, len(g.nodes)),
	}
	for _, n := range g.nodes {
		x.items = append(x.items, item{
			kind: n.Kind, id: n.ID, name: strings.ToLower(n.Name), dotted: dotted(n.Folder, n.Name), file: n.File, node: n,
		})
	}
	for _, t := range g.tests {
		it := item{kind: t.Kind, id: t.ID, name: strings.ToLower(t.Name), file: t.File, test: t}
		it.dotted = dotted(t.Folder, t.Name)
		for _, n := range t.Reads {
			it.reads = append(it.reads, n.index)
			x.testsOf[n.index] = append(x.testsOf[n.index], len(x.items))
		}
		x.items = append(x.items, it)
	}
	return x
}

func dotted(folder []string, name string) string {
	if len(folder) == 0 {
		return strings.ToLower(name)
	}
	return strings.ToLower(strings.Join(folder, ".") + "." + name)
}

// matches gives the items that the criterion of a term picks by itself.
func (x *index) matches(t term) bitset {
	set := newBitset(len(x.items))
	if t.method == bySelector {
		return x.selector(t.value, strconv.Quote(t.text)).clone()
	}
	if t.method == byName && !hasWildcard(t.value) {
		for _, i := range x.lookup(strings.ToLower(t.value)) {
			set.set(i)
		}
		return set
	}
	match := x.matcher(t)
	for i := range x.items {
		if match(&x.items[i]) {
			set.set(i)
		}
	}
	return set
}

// lookup gives the items with a name, below a folder, or with folders and name
// joined by dots, each with or without the project's name in front; that name
// alone is none, so that a project may have a model called like itself. Sources
// are found by source: only.
func (x *index) lookup(name string) []int {
	if x.named == nil {
		x.named = map[string][]int{}
		for i := range x.items {
			it := &x.items[i]
			if it.kind == KindSource {
				continue
			}
			for end := 0; end <= len(it.dotted); end++ {
				if end == len(it.dotted) || it.dotted[end] == '.' {
					x.named[it.dotted[:end]] = append(x.named[it.dotted[:end]], i)
				}
			}
			if it.name != it.dotted {
				x.named[it.name] = append(x.named[it.name], i)
			}
		}
		for place, outputs := range x.g.outputs {
			for _, o := range outputs {
				x.named[strings.ToLower(o)] = append(x.named[strings.ToLower(o)], place)
			}
		}
	}
	found := x.named[name]
	if rest, ok := strings.CutPrefix(name, x.project+"."); ok {
		found = slices.Concat(found, x.named[rest])
	}
	return found
}

// matcher gives the criterion of a term as a function.
func (x *index) matcher(t term) func(*item) bool {
	lower := strings.ToLower(t.value)
	switch t.method {
	case byName:
		return func(it *item) bool {
			return it.kind != KindSource &&
				(like(lower, it.name) || like(lower, it.dotted) || like(lower, x.project+"."+it.dotted))
		}
	case byPath:
		cleaned := cleanPath(t.value, x.g.dir)
		return func(it *item) bool { return matchPath(cleaned, it.file) }
	case byFile:
		return func(it *item) bool { return matchFile(lower, it.file) }
	case byTag:
		return func(it *item) bool {
			return slices.ContainsFunc(it.tags(), func(tag string) bool { return like(t.value, tag) })
		}
	case bySource:
		return func(it *item) bool {
			return it.kind == KindSource && matchSource(lower, x.project, it.node.Source.Group, it.node.Source.Name)
		}
	case byConfig:
		return func(it *item) bool {
			if it.node == nil {
				return false
			}
			value, ok := configValue(it.node, t.key)
			return ok && matchConfig(t.value, value)
		}
	case byResourceType:
		return func(it *item) bool { return string(it.kind) == t.value }
	case byTestType:
		return func(it *item) bool { return it.test != nil && it.test.ofType(t.value) }
	case byTestName:
		return func(it *item) bool {
			return it.test != nil && it.test.Test != nil && it.test.About != nil && like(t.value, it.test.Test.Kind)
		}
	default:
		return x.pastMatcher(t)
	}
}

func (it *item) tags() []string {
	if it.node != nil {
		return it.node.Tags()
	}
	return it.test.tags()
}

// ofType reports whether a test is of dbt's type: generic and singular tests
// look at data, unit tests at code.
func (t *TestNode) ofType(kind string) bool {
	switch kind {
	case "unit":
		return t.Unit != nil
	case "singular":
		return t.singular()
	case "generic":
		return t.Test != nil && !t.singular()
	default: // data
		return t.Test != nil
	}
}
