package plan

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/dominikbraun/graph"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestRows adds the same nodes and edges to containers with this store and with the
// library's own, which must say the same of them.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "nodes")
		own := newRows(n)
		hash := func(n *Node) int { return n.index }
		got := graph.NewWithStore(hash, graph.Store[int, *Node](own), graph.Directed())
		want := graph.New(hash, graph.Directed())
		for i := range n {
			node := &Node{index: i}
			if got.AddVertex(node) != nil || want.AddVertex(node) != nil {
				t.Fatal("a node is refused")
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			a, b := rapid.IntRange(-1, 12).Draw(t, "source"), rapid.IntRange(-1, 12).Draw(t, "target")
			one, other := got.AddEdge(a, b), want.AddEdge(a, b)
			if (one == nil) != (other == nil) || errors.Is(one, graph.ErrEdgeAlreadyExists) != errors.Is(other, graph.ErrEdgeAlreadyExists) {
				t.Fatalf("edge %d to %d: %v, want %v", a, b, one, other)
			}
		}
		edges := func(g graph.Graph[int, *Node]) []graph.Edge[int] {
			all, err := g.Edges()
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(all, func(a, b graph.Edge[int]) int { return cmp.Or(a.Target-b.Target, a.Source-b.Source) })
			return all
		}
		if diff := gocmp.Diff(edges(want), edges(got), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("edges -want +got:\n%s", diff)
		}
		for target, row := range own.edges {
			if !slices.IsSortedFunc(row, func(a, b graph.Edge[int]) int { return a.Source - b.Source }) {
				t.Errorf("the row of %d is not in order: %v", target, row)
			}
		}
		a, _ := got.PredecessorMap()
		b, _ := want.PredecessorMap()
		if diff := gocmp.Diff(b, a); diff != "" {
			t.Error(diff)
		}
		if order, err := got.Order(); order != n || err != nil {
			t.Errorf("%d nodes, %v", order, err)
		}
		if n > 0 && (!errors.Is(own.RemoveVertex(0), errKept) || !errors.Is(own.RemoveEdge(0, 0), errKept) || !errors.Is(own.UpdateEdge(0, 0, graph.Edge[int]{}), errKept)) {
			t.Error("a node or edge can be changed")
		}
	})
}
