package plan

import "slices"

// Relay stands for an unselected node on the way between steps. It does
// nothing: it is over when all that it waits for is over, and failed where any
// of these failed. Without it a node that many steps feed and many read would
// put as many pairs into After as the two numbers multiplied.
type Relay struct {
	Number int // counts on from the last step
	Node   *Node
	After  []int // steps and relays, ascending
}

// relayFrom is how many steps an unselected node must gather to become a relay;
// fewer are passed on one by one.
const relayFrom = 8

// waits finds what a step waits for.
type waits struct {
	g      *Graph
	order  []int   // places of nodes: each after all that it waits for
	step   []int   // place of a node -> number of its step, 0 where it is none
	before [][]int // place of an unselected node -> steps and relays that end above it
	relays []Relay
	// through reports whether reading an unselected node means reading what is
	// above it.
	through func(*Node) bool
}

// newWaits goes through the graph once. steps are in this order, numbered from 1.
func newWaits(g *Graph, order []int, steps []*Step, through func(*Node) bool) *waits {
	w := &waits{g: g, order: order, through: through, step: make([]int, len(g.nodes)), before: make([][]int, len(g.nodes))}
	for _, s := range steps {
		w.step[s.Node.index] = s.Number
	}
	needed := make([]bool, len(g.nodes)) // unselected, with a step below it
	for _, i := range slices.Backward(order) {
		for _, p := range g.parents[i] {
			needed[p] = needed[p] || needed[i] || w.step[i] > 0
		}
	}
	for _, i := range order {
		if w.step[i] > 0 || !needed[i] {
			continue
		}
		after := w.after(g.parents[i])
		if len(after) < relayFrom {
			w.before[i] = after
			continue
		}
		number := len(steps) + len(w.relays) + 1
		w.relays = append(w.relays, Relay{Number: number, Node: g.nodes[i], After: after})
		w.before[i] = []int{number}
	}
	return w
}

// after gives what must be over before something that reads these nodes.
func (w *waits) after(places []int) []int {
	var out []int
	for _, p := range places {
		if w.step[p] > 0 {
			out = append(out, w.step[p])
		} else {
			out = append(out, w.before[p]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// live gives the steps on whose data of this run the content of nodes depends:
// the steps among them and those that unselected views and ephemerals among
// them read. Other unselected nodes are read as they are published.
func (w *waits) live(places []int) []int {
	var out []int
	seen := map[int]bool{}
	todo := slices.Clone(places)
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case seen[i]:
		case w.step[i] > 0:
			out = append(out, i)
		case w.through(w.g.nodes[i]):
			todo = append(todo, w.g.parents[i]...)
		}
		seen[i] = true
	}
	slices.Sort(out)
	return out
}

// above answers which of many pairs (upper, lower) of places are joined by a
// path, 64 upper ones in one walk over the graph.
func (g *Graph) above(pairs [][2]int) map[[2]int]bool {
	joined := map[[2]int]bool{}
	lowers := map[int][]int{} // upper -> lowers that are not told at once
	for _, p := range pairs {
		upper, lower := p[0], p[1]
		if _, direct := slices.BinarySearch(g.parents[lower], upper); direct {
			joined[p] = true
		} else if g.rank[upper] < g.rank[lower] {
			lowers[upper] = append(lowers[upper], lower)
		}
	}
	uppers := make([]int, 0, len(lowers))
	for u := range lowers {
		uppers = append(uppers, u)
	}
	slices.SortFunc(uppers, func(a, b int) int { return g.rank[a] - g.rank[b] })
	reached := make([]uint64, len(g.nodes))
	for batch := range slices.Chunk(uppers, 64) {
		clear(reached)
		last := 0 // place in run order behind which nothing is asked
		for bit, u := range batch {
			reached[u] |= 1 << bit
			for _, l := range lowers[u] {
				last = max(last, g.rank[l])
			}
		}
		for _, i := range g.order[g.rank[batch[0]] : last+1] {
			for _, p := range g.parents[i] {
				reached[i] |= reached[p]
			}
		}
		for bit, u := range batch {
			for _, l := range lowers[u] {
				if reached[l]&(1<<bit) != 0 {
					joined[[2]int{u, l}] = true
				}
			}
		}
	}
	return joined
}
