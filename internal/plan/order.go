package plan

import (
	"container/heap"
	"slices"
)

// settle gives an order of the nodes in which each comes after what it reads and
// after what the tests that it may wait for look at; nil where the run order is such
// an order. Where waits would close a circle, one does not wait: that of the nodes
// of the circle that comes first in run order. A test that looks at what is built
// from its own node is no wait at all, and marked as a circle.
//
// It takes time in proportion to the nodes, edges and tests, but for tests that stand
// in circles, of which 64 are looked into at a time.
func (g *Graph) settle(all []attachment) []int {
	wants := g.wanted(all)
	if wants == nil {
		return nil
	}
	knot := g.knotted(wants)
	if g.markCircles(all, knot) {
		if wants = g.wanted(all); wants == nil {
			return nil
		}
		knot = g.knotted(wants)
	}
	s := sorting{g: g, wants: wants, knot: knot, hard: make([]int, len(g.nodes)), soft: make([]int, len(g.nodes)), placed: make([]bool, len(g.nodes))}
	return s.sort()
}

// wanted gives for each place those that would wait for it; nil where all of them
// come later in run order anyhow.
func (g *Graph) wanted(all []attachment) [][]int {
	wants := make([][]int, len(g.nodes))
	against := false
	for _, a := range all {
		if a.step < 0 || !a.waits || a.circle {
			continue
		}
		for _, i := range a.live {
			wants[i] = append(wants[i], a.step)
			against = against || g.rank[i] > g.rank[a.step]
		}
	}
	if !against {
		return nil
	}
	return wants
}

// knotted gives for each place which knot of nodes that would wait for each other
// it belongs to, 0 if to none. They count from 1 such that none waits for a later one.
func (g *Graph) knotted(wants [][]int) []int {
	with := &Graph{nodes: g.nodes, children: slices.Clone(g.children)}
	all := make([]bool, len(g.nodes))
	for i := range with.children {
		all[i] = true
		if len(wants[i]) > 0 {
			with.children[i] = slices.Concat(g.children[i], wants[i])
		}
	}
	knots := with.knots(all)
	knot := make([]int, len(g.nodes))
	for k, places := range knots { // the last of all comes first
		for _, i := range places {
			knot[i] = len(knots) - k
		}
	}
	return knot
}

// markCircles marks the tests that look at what is built from their own step, and
// reports whether there are any.
func (g *Graph) markCircles(all []attachment, knot []int) bool {
	suspect := func(a attachment, i int) bool {
		return a.waits && !a.circle && knot[i] > 0 && knot[i] == knot[a.step] && g.rank[i] > g.rank[a.step]
	}
	var pairs [][2]int
	for _, a := range all {
		for _, i := range a.live {
			if suspect(a, i) {
				pairs = append(pairs, [2]int{a.step, i})
			}
		}
	}
	below := g.above(pairs)
	for k, a := range all {
		all[k].circle = a.circle || slices.ContainsFunc(a.live, func(i int) bool { return suspect(a, i) && below[[2]int{a.step, i}] })
	}
	return len(below) > 0
}

// sorting is the making of an order: the first in run order of the nodes that wait
// for nothing comes next.
type sorting struct {
	g          *Graph
	wants      [][]int
	knot       []int
	hard, soft []int // what is still to come: read, or wanted across knots; wanted within the knot
	placed     []bool
	free, held readyHeap // waiting for nothing; waiting for wants of their knot alone
	order      []int
}

func (s *sorting) sort() []int {
	n := len(s.g.nodes)
	s.free.height, s.held.height = make([]int, n), make([]int, n)
	for i := range n {
		s.free.height[i] = -s.g.rank[i]
		s.held.height[i] = -s.g.rank[i] - n*s.knot[i]
		s.hard[i] += len(s.g.parents[i])
		for _, c := range s.wants[i] {
			*s.count(i, c)++
		}
	}
	for i := range n {
		s.offer(i)
	}
	for len(s.order) < n {
		from := &s.free
		if s.free.Len() == 0 {
			from = &s.held
		}
		if i := heap.Pop(from).(int); !s.placed[i] {
			s.place(i)
		}
	}
	return s.order
}

// count is the counter in which c waits for i, which it wants to.
func (s *sorting) count(i, c int) *int {
	if s.knot[i] > 0 && s.knot[i] == s.knot[c] {
		return &s.soft[c]
	}
	return &s.hard[c]
}

// offer puts a node where it may be taken, if it may.
func (s *sorting) offer(i int) {
	switch {
	case s.hard[i] > 0 || s.placed[i]:
	case s.soft[i] > 0:
		heap.Push(&s.held, i)
	default:
		heap.Push(&s.free, i)
	}
}

func (s *sorting) place(i int) {
	s.placed[i] = true
	s.order = append(s.order, i)
	for _, c := range s.g.children[i] {
		if s.hard[c]--; s.hard[c] == 0 {
			s.offer(c)
		}
	}
	for _, c := range s.wants[i] {
		n := s.count(i, c)
		if *n--; *n == 0 {
			s.offer(c)
		}
	}
}
