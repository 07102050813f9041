package plan

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/dominikbraun/graph"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// Graph is every node of a project and what reads what. It never changes after
// it was made, but that Render fills in what was left out.
type Graph struct {
	project  string      // the project's name
	dir      string      // the project folder
	nodes    []*Node     // by ID
	tests    []*TestNode // by ID
	testOf   map[*project.Test]*TestNode
	compiler *compiler        // that it was loaded with, for Render
	outputs  map[int][]string // place of an ingest -> relations that it has besides its own
	byID     map[string]int   // ID -> place in nodes
	byName   map[string]int   // name in lower case -> place in nodes
	store    graph.Graph[int, *Node]
	rows     *rows // what store keeps
	// parents and children are the edges of store by place in nodes, ascending;
	// reads holds what the edges from parents carry.
	parents, children [][]int
	reads             [][]*readings
	order             []int // places in nodes, in run order
	rank              []int // place in nodes -> place in order
}

// edge says that a node reads an output of another.
type edge struct {
	parent, child *Node
	output        string // "" is the node itself
	pos           diag.Pos
}

// newGraph joins nodes by edges; both ends of an edge must be among the nodes.
// Self-references and cycles are reported, each cycle once, and then there is
// no graph.
func newGraph(name, dir string, nodes []*Node, edges []edge) (*Graph, diag.List) {
	g := &Graph{
		project: name, dir: dir, outputs: map[int][]string{}, testOf: map[*project.Test]*TestNode{},
		nodes:  slices.SortedFunc(slices.Values(nodes), func(a, b *Node) int { return strings.Compare(a.ID, b.ID) }),
		byID:   make(map[string]int, len(nodes)),
		byName: make(map[string]int, len(nodes)),
	}
	g.rows = newRows(len(nodes))
	g.store = graph.NewWithStore(func(n *Node) int { return n.index }, graph.Store[int, *Node](g.rows), graph.Directed())
	for i, n := range g.nodes {
		n.index = i
		g.byID[n.ID] = i
		g.byName[strings.ToLower(n.Name)] = i
		must(g.store.AddVertex(n))
	}
	diags := g.connect(edges)
	g.link()
	diags = append(diags, g.sort()...)
	if diags.HasErrors() {
		return nil, diags.Sort()
	}
	return g, diags
}

// hang adds the tests, each with the nodes that it reads.
func (g *Graph) hang(tests []*TestNode) {
	g.tests = slices.SortedFunc(slices.Values(tests), func(a, b *TestNode) int { return strings.Compare(a.ID, b.ID) })
	for _, t := range g.tests {
		slices.SortFunc(t.Reads, func(a, b *Node) int { return a.index - b.index })
		t.Reads = slices.Compact(t.Reads)
		if t.About != nil && t.Test != nil {
			t.About.Tests = append(t.About.Tests, t.Test)
		}
		if t.Test != nil {
			g.testOf[t.Test] = t
		}
	}
}

// must ends the process where an invariant of this package is broken: the graph
// container refuses only what connect has excluded.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("plan: graph container: %v", err))
	}
}

// readings is what an edge of the container carries: the outputs that are read,
// sorted, and where the first of them is named.
type readings struct {
	outputs []string
	pos     diag.Pos
}

// connect puts the edges into the container, one for each pair of nodes. It sorts them.
func (g *Graph) connect(edges []edge) diag.List {
	var diags diag.List
	slices.SortStableFunc(edges, compareEdges)
	for start := 0; start < len(edges); {
		first := edges[start]
		r := &readings{pos: first.pos}
		end := start
		for ; end < len(edges) && edges[end].parent == first.parent && edges[end].child == first.child; end++ {
			if edges[end].pos.Compare(r.pos) < 0 {
				r.pos = edges[end].pos
			}
			if n := len(r.outputs); n == 0 || r.outputs[n-1] != edges[end].output {
				r.outputs = append(r.outputs, edges[end].output)
			}
		}
		start = end
		if first.parent == first.child {
			diags = append(diags, selfReference(first.child, r.pos))
			continue
		}
		must(g.store.AddEdge(first.parent.index, first.child.index, graph.EdgeData(r)))
	}
	return diags
}

func compareEdges(a, b edge) int {
	return cmp.Or(a.child.index-b.child.index, a.parent.index-b.parent.index, strings.Compare(a.output, b.output))
}

func selfReference(n *Node, pos diag.Pos) diag.Diagnostic {
	d := diag.Errorf(diag.SelfReference, pos, "%s %q (%s) reads itself", n.Kind, n.Name, n.File)
	if n.incremental() {
		return d.WithHint("write {{ this }} for what is published of it, inside {%% if is_incremental() %%}")
	}
	return d.WithHint("a model is built from other nodes; what an incremental model has published is {{ this }}")
}

// link copies the container's edges into slices, which the walks of this
// package need, and into the nodes.
func (g *Graph) link() {
	g.parents = make([][]int, len(g.nodes))
	g.children = make([][]int, len(g.nodes))
	g.reads = make([][]*readings, len(g.nodes))
	for i, row := range g.rows.edges {
		if len(row) == 0 {
			continue
		}
		g.parents[i], g.reads[i] = make([]int, len(row)), make([]*readings, len(row))
		for k, e := range row {
			g.parents[i][k], g.reads[i][k] = e.Source, e.Properties.Data.(*readings)
			g.children[e.Source] = append(g.children[e.Source], i)
		}
	}
	for i, n := range g.nodes {
		n.Parents, n.Children = g.at(g.parents[i]), g.at(g.children[i])
	}
}

func (g *Graph) at(places []int) []*Node {
	if len(places) == 0 {
		return nil
	}
	nodes := make([]*Node, len(places))
	for i, p := range places {
		nodes[i] = g.nodes[p]
	}
	return nodes
}

// sort finds the run order: parents before children; of those that could come
// next, the one with the longest path of nodes that wait for it, then the one
// with the lowest ID. The library's own sorts take seconds for 10,000 nodes.
func (g *Graph) sort() diag.List {
	plain := kahn(g.parents, g.children)
	if len(plain) < len(g.nodes) {
		return g.cycles(plain)
	}
	height := make([]int, len(g.nodes))
	for _, i := range slices.Backward(plain) {
		for _, c := range g.children[i] {
			height[i] = max(height[i], height[c]+1)
		}
	}
	ready := &readyHeap{height: height}
	open := make([]int, len(g.nodes))
	for i, ps := range g.parents {
		if open[i] = len(ps); open[i] == 0 {
			heap.Push(ready, i)
		}
	}
	g.order = make([]int, 0, len(g.nodes))
	g.rank = make([]int, len(g.nodes))
	for ready.Len() > 0 {
		i := heap.Pop(ready).(int)
		g.rank[i] = len(g.order)
		g.order = append(g.order, i)
		for _, c := range g.children[i] {
			if open[c]--; open[c] == 0 {
				heap.Push(ready, c)
			}
		}
	}
	return nil
}

// kahn gives the nodes in some order in which parents precede children; those
// on or behind a cycle are missing.
func kahn(parents, children [][]int) []int {
	open := make([]int, len(parents))
	order := make([]int, 0, len(parents))
	for i, ps := range parents {
		if open[i] = len(ps); open[i] == 0 {
			order = append(order, i)
		}
	}
	for next := 0; next < len(order); next++ {
		for _, c := range children[order[next]] {
			if open[c]--; open[c] == 0 {
				order = append(order, c)
			}
		}
	}
	return order
}

// readyHeap holds the nodes whose parents are all placed.
type readyHeap struct {
	height []int
	places []int
}

func (h *readyHeap) Len() int { return len(h.places) }

func (h *readyHeap) Less(a, b int) bool {
	i, j := h.places[a], h.places[b]
	if h.height[i] != h.height[j] {
		return h.height[i] > h.height[j]
	}
	return i < j
}

func (h *readyHeap) Swap(a, b int) { h.places[a], h.places[b] = h.places[b], h.places[a] }

// Push is for container/heap.
func (h *readyHeap) Push(x any) { h.places = append(h.places, x.(int)) }

// Pop is for container/heap.
func (h *readyHeap) Pop() any {
	last := h.places[len(h.places)-1]
	h.places = h.places[:len(h.places)-1]
	return last
}

// Nodes gives every node, by ID. The slice must not be changed.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Order gives every node in run order: parents before children, those with the
// longest path below them first, equals by ID.
func (g *Graph) Order() []*Node { return g.at(g.order) }

// Tests gives every test, by ID. The slice must not be changed.
func (g *Graph) Tests() []*TestNode { return g.tests }

// Test gives the node of a test, or nil.
func (g *Graph) Test(t *project.Test) *TestNode { return g.testOf[t] }

// Node gives the node with this ID, or nil.
func (g *Graph) Node(id string) *Node {
	if i, ok := g.byID[id]; ok {
		return g.nodes[i]
	}
	return nil
}

// Lookup gives the node with this name ("orders", "raw.orders"), whatever its
// case, or nil.
func (g *Graph) Lookup(name string) *Node {
	if i, ok := g.byName[strings.ToLower(name)]; ok {
		return g.nodes[i]
	}
	return nil
}

// Reads gives the outputs of parent that child reads, sorted; "" is the node
// itself. It is nil where there is no edge.
func (g *Graph) Reads(parent, child *Node) []string {
	if r := g.readings(parent.index, child.index); r != nil {
		return r.outputs
	}
	return nil
}

// readings gives what the edge between two places carries; nil where there is
// none.
func (g *Graph) readings(parent, child int) *readings {
	if k, ok := slices.BinarySearch(g.parents[child], parent); ok {
		return g.reads[child][k]
	}
	return nil
}
