package plan

import (
	"math/bits"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// Selectors are the words of a command line that say what a command is about.
type Selectors struct {
	Select, Exclude []string // words of --select and --exclude; no Select is everything
	ResourceTypes   []string // of --resource-type; none is all
	Selector        string   // of --selector, in place of Select and Exclude
	Named           []*project.Selector
	Past            Past // what state:, result: and source_status: compare with
}

// Past gives what selectors compare with. A nil function means that there is
// nothing of the kind; each is called at most once, and only if a selector asks.
type Past struct {
	// State says what is new or modified against another manifest, by ID. Nodes
	// without an entry are unmodified.
	State func(*Graph) (map[string]Change, error)
	// Results gives the status of each node and test of the last run, by ID.
	Results func() (map[string]string, error)
	// Sources gives "fresher" for sources that have newer data than when they
	// were last checked, by ID.
	Sources func() (map[string]string, error)
}

// Change is how a node differs from what it was in another manifest.
type Change struct {
	New, Body, Configs bool
}

// Selection is what selectors picked, each sorted by ID.
type Selection struct {
	Nodes []*Node
	Tests []*TestNode
	// Nothing says that a state:, result: or source_status: term left nothing,
	// which is an answer and no mistake.
	Nothing bool
	// Past says that a term compared with an earlier command.
	Past bool
}

// Select picks nodes and tests. A test belongs to the selection if a term picks
// it, or any node that it reads. What matches nothing is an error that says
// what is near.
func (g *Graph) Select(s Selectors) (Selection, diag.List) {
	include, diags := parseSelector("--select", s.Select)
	exclude, more := parseSelector("--exclude", s.Exclude)
	kinds, badKinds := resourceKinds(s.ResourceTypes)
	if diags = append(append(diags, more...), badKinds...); diags.HasErrors() {
		return Selection{}, diags
	}
	x := newIndex(g, s)
	named := s.Selector
	if d := x.selectors.byDefault(); d != nil && named == "" && len(s.Select)+len(s.Exclude) == 0 {
		named = d.Name
	}
	picked := x.all()
	switch {
	case named != "":
		picked = x.selector(named, "--selector "+named)
	case len(s.Select) > 0:
		picked = x.union(include, false)
	}
	left := picked
	if len(s.Exclude) > 0 {
		left = picked.without(x.union(exclude, true))
	}
	ofKind := x.ofKinds(left, kinds)
	if diags = x.diags; diags.HasErrors() {
		return Selection{}, diags
	}
	sel := x.selection(ofKind)
	sel.Past = x.metPast
	if !ofKind.empty() || len(s.Select)+len(s.Exclude)+len(kinds) == 0 && named == "" {
		return sel, diags
	}
	if sel.Nothing = x.metPast; sel.Nothing {
		return sel, diags
	}
	d := diag.Errorf(diag.SelectionEmpty, diag.Pos{}, "--select %q selects nothing", strings.Join(s.Select, " ")).
		WithHint("a comma means both, a blank either: no node is selected by all of what the commas join")
	switch {
	case picked.empty() && named != "":
		d.Msg = "the selector " + named + " of " + project.SelectorsFile + " selects nothing"
		d.Hint = ""
	case !left.empty():
		d.Msg = "--resource-type " + strings.Join(s.ResourceTypes, " ") + " leaves nothing of the selection"
		d.Hint = ""
	case !picked.empty():
		d.Msg = "--exclude " + strings.Join(s.Exclude, " ") + " leaves nothing of the selection"
		d.Hint = ""
	}
	// The warnings about single words say the same with less.
	return Selection{}, diag.List{d}
}

// resourceKinds reads the words of --resource-type; "all" is every kind.
func resourceKinds(words []string) ([]Kind, diag.List) {
	var kinds []Kind
	var diags diag.List
	known := methods[byResourceType].values
	for _, w := range words {
		switch {
		case w == "all":
			for _, k := range known {
				kinds = append(kinds, Kind(k))
			}
		case slices.Contains(known, w):
			kinds = append(kinds, Kind(w))
		default:
			hint := "resource types are all, " + strings.Join(known, ", ")
			if near := diag.Nearest(w, known); near != "" {
				hint = "did you mean " + near + "? " + hint
			}
			diags = append(diags, diag.Errorf(diag.SelectorMethod, diag.Pos{}, "--resource-type %q does not exist", w).WithHint("%s", hint))
		}
	}
	return kinds, diags
}

// past reports whether a word compares with an earlier command.
func (w word) past() bool {
	return slices.ContainsFunc(w.terms, func(t term) bool { return methods[t.method].past || t.method == bySelector })
}

// union gives what any of the words picks. Of what is to be excluded a method
// may match nothing: a warning says so.
func (x *index) union(s selector, excluding bool) bitset {
	all := newBitset(len(x.items))
	for _, w := range s.words {
		before := len(x.diags)
		both := x.term(w.terms[0], excluding)
		for _, t := range w.terms[1:] {
			both = both.and(x.term(t, excluding))
		}
		if both.empty() && len(x.diags) == before && !w.past() {
			d := diag.Errorf(diag.SelectionEmpty, diag.Pos{}, "selector %q selects nothing", w.text)
			d.Severity = diag.Warning
			x.diags = append(x.diags, d)
		}
		all.add(both)
	}
	return all
}

// term gives what a term picks, with its neighbours and the tests of all.
func (x *index) term(t term, excluding bool) bitset {
	core := x.matches(t)
	if t.method == bySelector && (core.empty() || !t.family && t.up == 0 && t.down == 0) {
		return core // as it is, with what its definition takes out
	}
	if core.empty() {
		if !methods[t.method].past {
			d := x.unknown(t)
			if excluding && (t.method != byName || hasWildcard(t.value)) {
				d.Severity = diag.Warning
			}
			x.diags = append(x.diags, d)
		}
		return core
	}
	picked := core.clone()
	if nodes := x.nodesOf(core); !methods[t.method].past && !nodes.empty() {
		// A folder or path holds tests as well; only a term that picks tests alone
		// means what they read.
		core = nodes
	}
	if t.family {
		x.reach(picked, core, allNeighbours, x.children)
		x.reach(picked, picked.clone(), allNeighbours, x.parents)
	}
	if t.up > 0 {
		x.reach(picked, core, t.up, x.parents)
	}
	if t.down > 0 {
		x.reach(picked, core, t.down, x.children)
	}
	x.addTests(picked)
	return picked
}

// nodesOf leaves the tests out.
func (x *index) nodesOf(set bitset) bitset {
	nodes := newBitset(len(x.items))
	for _, i := range set.places() {
		if i < len(x.g.nodes) {
			nodes.set(i)
		}
	}
	return nodes
}

// parents gives the items above an item. Those of a test are what it reads.
func (x *index) parents(i int) []int {
	if i < len(x.g.nodes) {
		return x.g.parents[i]
	}
	return x.items[i].reads
}

// children gives the nodes below an item; tests are leaves of no path.
func (x *index) children(i int) []int {
	if i < len(x.g.nodes) {
		return x.g.children[i]
	}
	return nil
}

// reach adds to into what lies within so many steps of from.
func (x *index) reach(into, from bitset, steps int, next func(int) []int) {
	seen := from.clone()
	front := from.places()
	for ; steps > 0 && len(front) > 0; steps-- {
		var further []int
		for _, i := range front {
			for _, j := range next(i) {
				if !seen.has(j) {
					seen.set(j)
					further = append(further, j)
				}
			}
		}
		front = further
	}
	into.add(seen)
}

// addTests adds the tests that read any of the picked nodes.
func (x *index) addTests(picked bitset) {
	for _, i := range picked.places() {
		if i >= len(x.testsOf) {
			return
		}
		for _, t := range x.testsOf[i] {
			picked.set(t)
		}
	}
}

// ofKinds keeps the items of these kinds; no kinds keep all.
func (x *index) ofKinds(set bitset, kinds []Kind) bitset {
	if len(kinds) == 0 {
		return set
	}
	kept := newBitset(len(x.items))
	for _, i := range set.places() {
		if slices.Contains(kinds, x.items[i].kind) {
			kept.set(i)
		}
	}
	return kept
}

func (x *index) all() bitset {
	set := newBitset(len(x.items))
	for i := range x.items {
		set.set(i)
	}
	return set
}

func (x *index) selection(set bitset) Selection {
	var sel Selection
	for _, i := range set.places() {
		if it := &x.items[i]; it.node != nil {
			sel.Nodes = append(sel.Nodes, it.node)
		} else {
			sel.Tests = append(sel.Tests, it.test)
		}
	}
	return sel
}

// bitset is a set of places.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bitset) clone() bitset  { return slices.Clone(b) }

func (b bitset) empty() bool {
	return !slices.ContainsFunc(b, func(w uint64) bool { return w != 0 })
}

func (b bitset) add(o bitset) {
	for i := range b {
		b[i] |= o[i]
	}
}

func (b bitset) and(o bitset) bitset {
	out := make(bitset, len(b))
	for i := range b {
		out[i] = b[i] & o[i]
	}
	return out
}

func (b bitset) without(o bitset) bitset {
	out := make(bitset, len(b))
	for i := range b {
		out[i] = b[i] &^ o[i]
	}
	return out
}

// places lists the set, ascending.
func (b bitset) places() []int {
	var out []int
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			out = append(out, i*64+bits.TrailingZeros64(w))
		}
	}
	return out
}
