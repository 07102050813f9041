package plan

import (
	"cmp"
	"errors"
	"slices"

	"github.com/dominikbraun/graph"
)

// rows is where the container keeps nodes and edges: in slices by a node's place. Its
// own store keeps some maps a node, which took a fifth of all that a plan of thousands
// of unchanged models allocates.
type rows struct {
	nodes []*Node
	edges [][]graph.Edge[int] // by target, each row by source
}

// errKept refuses what a graph that never changes is not asked for. RemoveVertex,
// RemoveEdge and UpdateEdge return it.
var errKept = errors.New("a graph of nodes is only added to")

func newRows(n int) *rows {
	return &rows{nodes: make([]*Node, 0, n), edges: make([][]graph.Edge[int], 0, n)}
}

func (r *rows) AddVertex(place int, n *Node, _ graph.VertexProperties) error {
	if place != len(r.nodes) {
		return graph.ErrVertexAlreadyExists
	}
	r.nodes, r.edges = append(r.nodes, n), append(r.edges, nil)
	return nil
}

func (r *rows) Vertex(place int) (*Node, graph.VertexProperties, error) {
	if place < 0 || place >= len(r.nodes) {
		return nil, graph.VertexProperties{}, graph.ErrVertexNotFound
	}
	return r.nodes[place], graph.VertexProperties{}, nil
}

func (r *rows) ListVertices() ([]int, error) {
	places := make([]int, len(r.nodes))
	for i := range places {
		places[i] = i
	}
	return places, nil
}

func (r *rows) VertexCount() (int, error) { return len(r.nodes), nil }

func (r *rows) AddEdge(source, target int, e graph.Edge[int]) error {
	if max(source, target) >= len(r.nodes) || min(source, target) < 0 {
		return graph.ErrVertexNotFound
	}
	at, there := r.find(source, target)
	if there {
		return graph.ErrEdgeAlreadyExists
	}
	r.edges[target] = slices.Insert(r.edges[target], at, e)
	return nil
}

func (r *rows) Edge(source, target int) (graph.Edge[int], error) {
	if target >= 0 && target < len(r.edges) {
		if at, there := r.find(source, target); there {
			return r.edges[target][at], nil
		}
	}
	return graph.Edge[int]{}, graph.ErrEdgeNotFound
}

// find gives the place of an edge in its row, or where it would stand.
func (r *rows) find(source, target int) (at int, there bool) {
	return slices.BinarySearchFunc(r.edges[target], source, func(e graph.Edge[int], s int) int { return cmp.Compare(e.Source, s) })
}

func (r *rows) ListEdges() ([]graph.Edge[int], error) { return slices.Concat(r.edges...), nil }

func (r *rows) RemoveVertex(int) error                     { return errKept }
func (r *rows) RemoveEdge(int, int) error                  { return errKept }
func (r *rows) UpdateEdge(int, int, graph.Edge[int]) error { return errKept }
