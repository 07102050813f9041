package plan

import (
	"slices"

	"rbt/internal/project"
)

// attachment is a test with the steps whose new data it reads.
type attachment struct {
	test *TestNode
	live []int // places, without the test's own node
	gate bool
}

// attach gives each step its gates and unit tests and returns the late tests.
// A test gates its node only if all else that it reads is above the node or not
// built in this run: otherwise it would look at data that is not there yet.
// A late test about nodes that were never published and are not built now is
// left out: there is nothing to test.
func attach(w *waits, steps []*Step, tests []*TestNode, published func(*Node) bool) []LateTest {
	all := make([]attachment, 0, len(tests))
	var pairs [][2]int
	for _, t := range tests {
		a := attachment{test: t, gate: t.About != nil && w.step[t.About.index] > 0}
		for _, n := range t.Reads {
			if n != t.About {
				a.live = append(a.live, n.index)
			}
		}
		a.live = w.live(a.live)
		if a.gate {
			for _, i := range a.live {
				pairs = append(pairs, [2]int{i, t.About.index})
			}
		}
		all = append(all, a)
	}
	above := w.g.above(pairs)
	var late []LateTest
	for _, a := range all {
		for _, i := range a.live {
			a.gate = a.gate && above[[2]int{i, a.test.About.index}]
		}
		switch {
		case a.test.Unit != nil:
			if a.gate {
				s := steps[w.step[a.test.About.index]-1]
				s.UnitTests = append(s.UnitTests, a.test.Unit)
			}
		case a.gate:
			s := steps[w.step[a.test.About.index]-1]
			s.Gates = append(s.Gates, a.test.Test)
		case slices.ContainsFunc(a.test.Reads, func(n *Node) bool { return w.step[n.index] == 0 && !published(n) }):
		default:
			late = append(late, w.lateTest(a.test))
		}
	}
	return late
}

func (w *waits) lateTest(t *TestNode) LateTest {
	places := make([]int, len(t.Reads))
	for i, n := range t.Reads {
		places[i] = n.index
	}
	l := LateTest{Test: t.Test, Owner: w.g.owner(t)}
	for _, i := range w.live(places) {
		l.After = append(l.After, w.step[i])
	}
	slices.Sort(l.After)
	return l
}

// owner gives the node whose receipt remembers that a test passed: the node
// that it is about, else the last in run order of the published nodes that it
// reads; nil where it reads nothing that has a receipt.
func (g *Graph) owner(t *TestNode) *Node {
	if t.About != nil {
		if !t.About.hasReceipt() {
			return nil
		}
		return t.About
	}
	var last *Node
	for _, n := range t.Reads {
		if n.hasReceipt() && (last == nil || g.rank[n.index] > g.rank[last.index]) {
			last = n
		}
	}
	return last
}

// hasReceipt reports whether a node is published by a run.
func (n *Node) hasReceipt() bool {
	return n.Kind != KindSource && n.materialization() != project.Ephemeral
}
