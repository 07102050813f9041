package plan

import (
	"cmp"
	"slices"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// attachment is a selected test with the step that it would gate.
type attachment struct {
	test *TestNode
	step int   // place of what it would gate; -1 if there is nothing
	live []int // places of the other steps whose new data it looks at, ascending
	// waits says that the step may be made to wait for all of live. Without it the
	// test is a gate only where they are above the step anyhow.
	waits bool
	// circle says that something of live is the step, or built from it: it cannot wait.
	circle bool
}

// placement is where the selected tests of a plan run.
type placement struct {
	late  []*TestNode
	units []*project.UnitTest // that no step brings
}

// attach gives each step its gates and unit tests, and puts the steps into the order
// in which they come after what their gates look at. A late test of what was never
// published and is not built now is left out: there is nothing to test.
func (p *Plan) attach() (placement, *waits) {
	w := newWaits(p.Graph, p.Graph.order, p.Steps, p.readThrough)
	all := make([]attachment, len(p.tests))
	for i, t := range p.tests {
		all[i] = p.attachment(w, t)
	}
	if order := p.Graph.settle(all); order != nil {
		p.renumber(order)
		w = newWaits(p.Graph, order, p.Steps, p.readThrough)
	}
	for _, s := range p.Steps {
		s.After = w.after(p.Graph.parents[s.Node.index])
	}
	recall := recollection{p: p, passed: map[*Node]map[string]bool{}}
	for i := range all {
		p.movable(w, &all[i], &recall)
	}
	above := p.Graph.above(unmovable(all))
	var out placement
	for _, a := range all {
		switch t := a.test; {
		case a.step >= 0 && a.gates(w, above):
			p.gate(w, a)
		case t.Unit != nil:
			out.units = append(out.units, t.Unit)
		case slices.ContainsFunc(t.Reads, func(n *Node) bool { return w.step[n.index] == 0 && !p.available(n) }):
		default:
			out.late = append(out.late, t)
		}
	}
	for _, s := range p.Steps {
		s.settleLooks()
	}
	return out, w
}

// attachment finds what a test would gate by the graph alone, whatever is built: the
// order of the steps shall be the same for what changed and what did not.
func (p *Plan) attachment(w *waits, t *TestNode) attachment {
	a := attachment{test: t, step: -1}
	if t.About != nil && w.step[t.About.index] > 0 {
		a.step = t.About.index
	}
	if t.Unit != nil {
		return a
	}
	var others []int
	for _, n := range t.Reads {
		if n != t.About {
			others = append(others, n.index)
		}
	}
	a.live, a.waits = w.live(others), a.step >= 0 && t.Test.Severity == diag.Error
	a.circle = slices.Contains(a.live, a.step)
	return a
}

// movable leaves the steps out that a test looks at and that get no new data, and
// finds what it gates where the node that it is about gets none: the last of the
// others is not to be published in a way that breaks what held.
func (p *Plan) movable(w *waits, a *attachment, recall *recollection) {
	t := a.test
	a.live = slices.DeleteFunc(a.live, func(place int) bool { return !p.ids.steps[place].moves() })
	switch {
	case len(a.live) == 0 || a.step >= 0 && (p.ids.steps[a.step].moves() || !recall.has(t)):
		return
	case t.About != nil && t.About.Kind == KindSource || slices.ContainsFunc(t.Reads, p.elsewhere):
		return
	}
	last := slices.MaxFunc(a.live, func(a, b int) int { return cmp.Compare(p.Graph.rank[a], p.Graph.rank[b]) })
	if node := p.Graph.nodes[last]; p.Graph.owner(t) != node && !recall.has(t) || !w.readsItself(t, node) {
		return
	}
	a.step, a.waits = last, false
	a.live = slices.DeleteFunc(a.live, func(place int) bool { return place == last })
}

// readsItself reports whether a test reads a step by its own name alone, which means
// the new data before it is published, and not through an ephemeral or a view.
func (w *waits) readsItself(t *TestNode, step *Node) bool {
	through := func(n *Node) bool { return n != step && slices.Contains(w.live([]int{n.index}), step.index) }
	return slices.Contains(t.Reads, step) && !slices.ContainsFunc(t.Reads, through)
}

// moves reports whether a step may publish new data.
func (s *Step) moves() bool { return s.Action != ActionUnchanged && s.Action != ActionAudit }

// elsewhere reports whether a node is neither a step nor to be read in this lake.
func (p *Plan) elsewhere(n *Node) bool {
	return p.ids.steps[n.index] == nil && (!p.available(n) || p.deferred(n))
}

// recollection looks up which tests passed on what is published, each receipt once.
type recollection struct {
	p      *Plan
	passed map[*Node]map[string]bool
}

// has reports whether a test passed on what is published now, as far as its
// owner remembers.
func (r *recollection) has(t *TestNode) bool {
	owner := r.p.Graph.owner(t)
	if owner == nil || t.Volatile != "" {
		return false
	}
	passed, known := r.passed[owner]
	if !known {
		if n, ok := r.p.ids.here.node(owner.Name); ok {
			passed = rememberedTests(&n.Receipt)
		}
		r.passed[owner] = passed
	}
	return passed[t.Hash]
}

// unmovable gives the pairs (looked at, step) that must be joined by a path of
// the graph, since the step does not wait for the sake of the test.
func unmovable(all []attachment) [][2]int {
	var pairs [][2]int
	for _, a := range all {
		if a.step < 0 || a.waits {
			continue
		}
		for _, i := range a.live {
			pairs = append(pairs, [2]int{i, a.step})
		}
	}
	return pairs
}

// gates reports whether all that the test looks at is over before its step.
func (a attachment) gates(w *waits, above map[[2]int]bool) bool {
	for _, i := range a.live {
		if a.waits && w.step[i] >= w.step[a.step] || !a.waits && !above[[2]int{i, a.step}] {
			return false
		}
	}
	return true
}

// gate gives a step a gate or unit test.
func (p *Plan) gate(w *waits, a attachment) {
	s, t := p.ids.steps[a.step], a.test
	if t.Unit != nil {
		s.UnitTests = append(s.UnitTests, t.Unit)
		s.tested(t)
		return
	}
	s.Gates = append(s.Gates, t.Test)
	for _, i := range a.live {
		s.looks(t.Test, w.step[i])
	}
	owner := p.Graph.owner(t)
	if owner == s.Node {
		s.tested(t)
		return
	}
	if s.foreign == nil {
		s.foreign = map[*project.Test]*Node{}
	}
	s.foreign[t.Test] = owner
	if owner := p.ids.steps[owner.index]; owner != nil {
		owner.tested(t)
	}
}

func (s *Step) looks(t *project.Test, number int) {
	if s.lookedAt == nil {
		s.lookedAt = map[*project.Test][]int{}
	}
	s.lookedAt[t] = append(s.lookedAt[t], number)
	s.Looks = append(s.Looks, number)
}

// settleLooks leaves out of Looks what stands in After.
func (s *Step) settleLooks() {
	if len(s.Looks) == 0 {
		return
	}
	slices.Sort(s.Looks)
	s.Looks = slices.DeleteFunc(slices.Compact(s.Looks), func(number int) bool {
		_, found := slices.BinarySearch(s.After, number)
		return found
	})
}

// LookedAt gives the numbers of the other steps whose new data a gate of the step
// looks at. Where one of them was built, the gate is to be asked although the step
// itself need not be built.
func (s *Step) LookedAt(t *project.Test) []int { return s.lookedAt[t] }

// OwnerOf gives the node whose receipt remembers that a gate of the step passed: its
// own node, but for a gate that is about something that does not change in this run.
func (s *Step) OwnerOf(t *project.Test) *Node {
	if owner := s.foreign[t]; owner != nil {
		return owner
	}
	return s.Node
}

// OwnGates gives the gates of which the receipt of the step's own node remembers that
// they passed.
func (s *Step) OwnGates() []*project.Test {
	if len(s.foreign) == 0 {
		return s.Gates
	}
	return slices.DeleteFunc(slices.Clone(s.Gates), func(t *project.Test) bool { return s.OwnerOf(t) != s.Node })
}

// renumber puts the steps into another order.
func (p *Plan) renumber(order []int) {
	steps := make([]*Step, 0, len(p.Steps))
	for _, i := range order {
		if s := p.ids.steps[i]; s != nil {
			steps = append(steps, s)
			s.Number = len(steps)
		}
	}
	p.Steps = steps
}
