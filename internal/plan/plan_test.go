package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// picked makes steps of the nodes with these names, in run order.
func picked(g *Graph, pick func(*Node) bool) []*Step {
	var steps []*Step
	for _, n := range g.Order() {
		if pick(n) {
			steps = append(steps, &Step{Number: len(steps) + 1, Node: n})
		}
	}
	return steps
}

func TestAfterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(t, "nodes")
		nodes := make([]*Node, count)
		chosen := map[string]bool{}
		var edges []edge
		for i := range nodes {
			nodes[i] = model("", fmt.Sprintf("m%02d", i))
			chosen[nodes[i].ID] = rapid.Bool().Draw(t, "selected")
			for range min(i, rapid.IntRange(0, 12).Draw(t, "parents")) {
				edges = append(edges, reads(nodes[i], nodes[rapid.IntRange(0, i-1).Draw(t, "parent")], 1))
			}
		}
		g, diags := newGraph("shop", "", nodes, edges)
		if len(diags) > 0 {
			t.Fatalf("%v", diags)
		}
		steps := picked(g, func(n *Node) bool { return chosen[n.ID] })
		w := newWaits(g, g.order, steps, (*Node).transparent)
		all := map[int][]int{} // number -> After, steps and relays
		for _, s := range steps {
			all[s.Number] = w.after(g.parents[s.Node.index])
		}
		for i, r := range w.relays {
			if r.Number != len(steps)+i+1 {
				t.Errorf("relay %d has the number %d", i, r.Number)
			}
			all[r.Number] = r.After
		}
		reach := closure(nodes, edges)
		for _, a := range steps {
			for _, b := range steps {
				got := waitsFor(all, b.Number, a.Number)
				if want := reach[a.Node.ID][b.Node.ID]; got != want {
					t.Errorf("%s waits for %s: %v, want %v", b.Node.Name, a.Node.Name, got, want)
				}
			}
		}
	})
}

// waitsFor follows After from one number to another.
func waitsFor(all map[int][]int, from, to int) bool {
	for _, n := range all[from] {
		if n == to || waitsFor(all, n, to) {
			return true
		}
	}
	return false
}

func TestAfterThroughAHub(t *testing.T) {
	const width = 2000
	hub := model("", "hub")
	nodes := []*Node{hub}
	var edges []edge
	for i := range width {
		up, down := model("", fmt.Sprintf("a%04d", i)), model("", fmt.Sprintf("z%04d", i))
		nodes = append(nodes, up, down)
		edges = append(edges, reads(hub, up, 1), reads(down, hub, 1))
	}
	g, diags := newGraph("shop", "", nodes, edges)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	steps := picked(g, func(n *Node) bool { return n != hub })
	w := newWaits(g, g.order, steps, (*Node).transparent)
	total := 0
	for _, s := range steps {
		total += len(w.after(g.parents[s.Node.index]))
	}
	if len(w.relays) != 1 || w.relays[0].Node != hub || len(w.relays[0].After) != width || total != width {
		t.Errorf("%d relays, %d pairs of steps", len(w.relays), total)
	}
}

func TestAboveProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 90).Draw(t, "nodes")
		nodes := make([]*Node, count)
		var edges []edge
		for i := range nodes {
			nodes[i] = model("", fmt.Sprintf("m%02d", i))
			for range min(i, rapid.IntRange(0, 2).Draw(t, "parents")) {
				edges = append(edges, reads(nodes[i], nodes[rapid.IntRange(0, i-1).Draw(t, "parent")], 1))
			}
		}
		g, _ := newGraph("shop", "", nodes, edges)
		var pairs [][2]int
		for a := range nodes {
			for b := range nodes {
				if a != b {
					pairs = append(pairs, [2]int{a, b})
				}
			}
		}
		reach := closure(nodes, edges)
		got := g.above(pairs)
		for _, p := range pairs {
			if want := reach[g.nodes[p[0]].ID][g.nodes[p[1]].ID]; got[p] != want {
				t.Errorf("%s above %s: %v, want %v", g.nodes[p[0]].Name, g.nodes[p[1]].Name, got[p], want)
			}
		}
	})
}
