package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// attachment is a test with the steps whose new data it reads.
type attachment struct {
	test *TestNode
	live []int // places, without the test's own node
	gate bool
}

// placement is where the selected tests of a plan run.
type placement struct {
	late  []*TestNode
	units []*project.UnitTest // that no step brings
}

// attach gives each step its gates and unit tests. A test gates its node only if
// all else that it reads is above the node or not built in this run: otherwise
// it would look at data that is not there yet. A late test of what was never
// published and is not built now is left out: there is nothing to test.
func attach(w *waits, steps []*Step, tests []*TestNode, published func(*Node) bool) placement {
	all := make([]attachment, 0, len(tests))
	var pairs [][2]int
	for _, t := range tests {
		a := attachment{test: t, gate: t.About != nil && w.step[t.About.index] > 0}
		for _, n := range t.Reads {
			if n != t.About {
				a.live = append(a.live, n.index)
			}
		}
		if a.live = w.live(a.live); a.gate {
			for _, i := range a.live {
				pairs = append(pairs, [2]int{i, t.About.index})
			}
		}
		all = append(all, a)
	}
	above := w.g.above(pairs)
	var out placement
	for _, a := range all {
		for _, i := range a.live {
			a.gate = a.gate && above[[2]int{i, a.test.About.index}]
		}
		switch {
		case a.gate:
			steps[w.step[a.test.About.index]-1].gate(a.test)
		case a.test.Unit != nil:
			out.units = append(out.units, a.test.Unit)
		case slices.ContainsFunc(a.test.Reads, func(n *Node) bool { return w.step[n.index] == 0 && !published(n) }):
		default:
			out.late = append(out.late, a.test)
		}
	}
	return out
}

func (s *Step) gate(t *TestNode) {
	if t.Unit != nil {
		s.UnitTests = append(s.UnitTests, t.Unit)
	} else {
		s.Gates = append(s.Gates, t.Test)
	}
	s.tested(t)
}

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
		places := make([]int, len(t.Reads))
		for i, n := range t.Reads {
			places[i] = n.index
		}
		l := LateTest{Test: t.Test, Owner: w.g.owner(t)}
		for _, i := range w.live(places) {
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

// guards gives what waits for late tests: the steps that read what a test is about.
// Of these only those that stand lower in the graph than all that the test waits
// for: every wait of a run then goes up the graph, and none goes in a circle.
func (w *waits) guards(late []*TestNode) []Guard {
	type group struct {
		about *Node
		level int // of the lowest step that the tests wait for; -1 where there is none
	}
	if len(late) == 0 {
		return nil
	}
	var groups []group
	tests := map[group][]int{}
	levels := w.g.levels()
	for i, t := range late {
		if t.About == nil {
			continue
		}
		places := make([]int, len(t.Reads))
		for k, n := range t.Reads {
			places[k] = n.index
		}
		of := group{t.About, -1}
		for _, place := range w.live(places) {
			of.level = max(of.level, levels[place])
		}
		if tests[of] == nil {
			groups = append(groups, of)
		}
		tests[of] = append(tests[of], i)
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Or(strings.Compare(a.about.ID, b.about.ID), a.level-b.level) })
	var out []Guard
	for _, of := range groups {
		steps := slices.DeleteFunc(w.readers(of.about), func(place int) bool { return levels[place] <= of.level })
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

// readers gives the places of the steps that read a node, by themselves or through
// unselected nodes that keep no data of their own.
func (w *waits) readers(n *Node) []int {
	var out []int
	seen := map[*Node]bool{}
	for todo := slices.Clone(n.Children); len(todo) > 0; {
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

// levels gives the length of the longest path that ends at each node.
func (g *Graph) levels() []int {
	levels := make([]int, len(g.nodes))
	for _, i := range g.order {
		for _, p := range g.parents[i] {
			levels[i] = max(levels[i], levels[p]+1)
		}
	}
	return levels
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
