package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rbt/internal/lake"
)

// tested notes a test that the receipt of a step remembers.
func (s *Step) tested(t *TestNode) { s.tests = append(s.tests, t) }

// A receipt remembers the tests that passed on what it describes as the hashes
// of these tests, sorted, joined by blanks: a later command that selects only
// some of them knows which of its own have passed.

// rememberedTests gives the tests that a receipt remembers.
func rememberedTests(r *lake.Receipt) map[string]bool {
	passed := map[string]bool{}
	if r != nil {
		for _, hash := range strings.Fields(r.TestsHash) {
			passed[hash] = true
		}
	}
	return passed
}

// auditReason says why what is published must be audited, "" if it need not.
func (s *Step) auditReason() string {
	if len(s.tests) == 0 {
		return ""
	}
	passed := rememberedTests(s.Receipt)
	clock := ""
	var names []string
	for _, t := range s.tests {
		switch {
		case !passed[t.Hash]:
			names = append(names, t.Name)
		case t.Volatile != "" && clock == "":
			clock = "the test " + t.Name + " uses the clock"
		}
	}
	switch n := len(names); {
	case n == 0:
		return clock
	case n == 1:
		return "the test " + names[0] + " is new, changed or did not pass"
	case n > maxNamedTests:
		return fmt.Sprintf("the tests %s and %d more are new, changed or did not pass", strings.Join(names[:maxNamedTests], ", "), n-maxNamedTests)
	default:
		return "the tests " + strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " are new, changed or did not pass"
	}
}

// maxNamedTests is how many tests a reason names; the rest are counted.
const maxNamedTests = 3

// lateTests settles when the late tests run. It must come before the steps are
// decided, since owners remember them.
func (w *waits) lateTests(tests []*TestNode, steps []*Step) []LateTest {
	late := make([]LateTest, 0, len(tests))
	for _, t := range tests {
		l := LateTest{Test: t.Test, Owner: w.g.owner(t)}
		for _, i := range w.live(placesOf(t.Reads)) {
			l.After = append(l.After, w.step[i])
		}
		slices.Sort(l.After)
		if l.Owner != nil && w.step[l.Owner.index] > 0 {
			steps[w.step[l.Owner.index]-1].tested(t)
		}
		late = append(late, l)
	}
	return late
}

// guards gives what waits for late tests: the steps that read what a test is about,
// or anything that it reads if it is about no one relation.
// Of these only those that stand lower in the graph than all that the test waits
// for: every wait of a run then goes up the graph, and none goes in a circle.
func (w *waits) guards(late []*TestNode, steps []*Step) []Guard {
	type group struct {
		id    string // of what the tests are about, else of the test itself
		level int    // of the lowest step that the tests wait for; -1 where there is none
	}
	if len(late) == 0 {
		return nil
	}
	var groups []group
	tests := map[group][]int{}
	levels := w.levels(steps)
	for i, t := range late {
		of := group{t.ID, -1}
		if t.About != nil {
			of.id = t.About.ID
		}
		for _, place := range w.live(placesOf(t.Reads)) {
			of.level = max(of.level, levels[place])
		}
		if tests[of] == nil {
			groups = append(groups, of)
		}
		tests[of] = append(tests[of], i)
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Or(strings.Compare(a.id, b.id), a.level-b.level) })
	var out []Guard
	for _, of := range groups {
		about := late[tests[of][0]].Reads
		if n := late[tests[of][0]].About; n != nil {
			about = []*Node{n}
		}
		steps := slices.DeleteFunc(w.readers(about), func(place int) bool { return levels[place] <= of.level })
		for i, place := range steps {
			steps[i] = w.step[place]
		}
		if len(steps) > 0 {
			slices.Sort(steps)
			out = append(out, Guard{Tests: tests[of], Steps: steps})
		}
	}
	return out
}

// readers gives the places of the steps that read any of the nodes, by themselves or
// through unselected nodes that keep no data of their own.
func (w *waits) readers(nodes []*Node) []int {
	var out []int
	seen := map[*Node]bool{}
	var todo []*Node
	for _, n := range nodes {
		todo = append(todo, n.Children...)
	}
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case seen[c]:
		case w.step[c.index] > 0:
			out = append(out, c.index)
		case w.through(c):
			todo = append(todo, c.Children...)
		}
		seen[c] = true
	}
	return out
}

// levels gives the length of the longest path of waits that ends at each node,
// those for what tests look at among them.
func (w *waits) levels(steps []*Step) []int {
	levels := make([]int, len(w.g.nodes))
	for _, i := range w.order {
		for _, p := range w.g.parents[i] {
			levels[i] = max(levels[i], levels[p]+1)
		}
		if w.step[i] == 0 {
			continue
		}
		for _, number := range steps[w.step[i]-1].Looks {
			levels[i] = max(levels[i], levels[steps[number-1].Node.index]+1)
		}
	}
	return levels
}

func placesOf(nodes []*Node) []int {
	places := make([]int, len(nodes))
	for i, n := range nodes {
		places[i] = n.index
	}
	return places
}

// lateReasons says of each late test why it runs whatever is built, when the
// steps are decided.
func (p *Plan) lateReasons(tests []*TestNode) {
	remembered := map[*Node]map[string]bool{} // by owner; one of a source may have very many tests
	for i := range p.Late {
		l, t := &p.Late[i], tests[i]
		var owner *Step
		passed, held := remembered[l.Owner]
		if l.Owner != nil {
			owner = p.ids.steps[l.Owner.index]
			if n, ok := p.ids.here.node(l.Owner.Name); ok && !held {
				passed, held = rememberedTests(&n.Receipt), true
				remembered[l.Owner] = passed
			}
		}
		switch {
		case t.Volatile != "":
			l.Reasons = []string{"it uses the clock"}
		case owner == nil && len(l.After) == 0:
			l.Reasons = []string{"selected"}
		case owner != nil && owner.Action == ActionRun && len(l.After) == 0:
			l.Reasons = []string{owner.Node.Name + " is built"}
		case held && !passed[t.Hash]:
			l.Reasons = []string{"it is new, changed or did not pass"}
		}
	}
}

// owner gives the node whose receipt remembers that a test passed: the node
// that it is about; else the last in run order of the published nodes that it
// reads; of a test about a source, the first that reads the source, since its
// receipt knows the source's files. Nil where there is none.
func (g *Graph) owner(t *TestNode) *Node {
	if t.About != nil && t.About.form() != "" {
		return t.About
	}
	var owner *Node
	if t.About != nil {
		for _, n := range t.About.Children {
			if n.form() != "" && (owner == nil || g.rank[n.index] < g.rank[owner.index]) {
				owner = n
			}
		}
		return owner
	}
	for _, n := range t.Reads {
		if n.form() != "" && (owner == nil || g.rank[n.index] > g.rank[owner.index]) {
			owner = n
		}
	}
	return owner
}
