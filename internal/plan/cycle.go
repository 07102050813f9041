package plan

import (
	"slices"
	"strings"

	"rbt/internal/diag"
)

// cycles gives one diagnostic for each knot of nodes that read each other: the
// shortest circle through its first node, at the place of the reference that
// closes it. ordered holds the nodes that lie on no cycle and behind none.
func (g *Graph) cycles(ordered []int) diag.List {
	rest := make([]bool, len(g.nodes))
	for i := range rest {
		rest[i] = true
	}
	for _, i := range ordered {
		rest[i] = false
	}
	var diags diag.List
	for _, knot := range g.knots(rest) {
		circle := g.shortestCircle(knot)
		names := make([]string, 0, len(circle)+1)
		for _, i := range circle {
			names = append(names, g.nodes[i].Name)
		}
		names = append(names, names[0])
		first, last := circle[0], circle[len(circle)-1]
		d := diag.Errorf(diag.Cycle, g.readings(last, first).pos, "cycle: %s", strings.Join(names, " -> ")).
			WithHint("every node on this path needs the one before it; one of these references must go")
		for n, i := range circle[1:] {
			d = d.WithNote(g.readings(circle[n], i).pos, "%s reads %s here", g.nodes[i].Name, g.nodes[circle[n]].Name)
		}
		diags = append(diags, d)
	}
	return diags
}

// knots gives the strongly connected components of more than one node among
// those in rest, each ascending (Tarjan's algorithm, with a stack of its own
// because a chain of references may be as long as the project).
func (g *Graph) knots(rest []bool) [][]int {
	type frame struct{ node, next int }
	number := make([]int, len(g.nodes)) // of discovery, from 1; 0 is unseen
	low := make([]int, len(g.nodes))
	onStack := make([]bool, len(g.nodes))
	var stack []int
	var knots [][]int
	count := 0
	for root := range g.nodes {
		if !rest[root] || number[root] != 0 {
			continue
		}
		calls := []frame{{node: root}}
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if f.next == 0 && number[f.node] == 0 {
				count++
				number[f.node], low[f.node] = count, count
				stack, onStack[f.node] = append(stack, f.node), true
			}
			if f.next < len(g.children[f.node]) {
				c := g.children[f.node][f.next]
				f.next++
				switch {
				case !rest[c]:
				case number[c] == 0:
					calls = append(calls, frame{node: c})
				case onStack[c]:
					low[f.node] = min(low[f.node], number[c])
				}
				continue
			}
			done := f.node
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].node
				low[up] = min(low[up], low[done])
			}
			if low[done] != number[done] {
				continue
			}
			start := len(stack)
			for more := true; more; {
				start--
				onStack[stack[start]] = false
				more = stack[start] != done
			}
			knot := slices.Clone(stack[start:])
			stack = stack[:start]
			if len(knot) > 1 {
				slices.Sort(knot)
				knots = append(knots, knot)
			}
		}
	}
	return knots
}

// shortestCircle gives a shortest path from the knot's first node back to it,
// in the direction in which data flows, without the repeat at its end.
func (g *Graph) shortestCircle(knot []int) []int {
	start := knot[0]
	within := make(map[int]bool, len(knot))
	for _, i := range knot {
		within[i] = true
	}
	from := map[int]int{}
	for queue := []int{start}; ; queue = queue[1:] {
		i := queue[0]
		for _, c := range g.children[i] {
			if c == start {
				circle := []int{i}
				for i != start {
					i = from[i]
					circle = append(circle, i)
				}
				slices.Reverse(circle)
				return circle
			}
			if _, seen := from[c]; !seen && within[c] {
				from[c] = i
				queue = append(queue, c)
			}
		}
	}
}
