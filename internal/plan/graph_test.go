package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// model makes a model node in a folder under models/.
func model(folder, name string) *Node {
	n := &Node{
		ID: "model.shop." + name, Name: name, Kind: KindModel,
		Model: &project.Model{Name: name, Materialization: project.Table},
	}
	file := "models/"
	if folder != "" {
		n.Folder = strings.Split(folder, "/")
		file += folder + "/"
	}
	n.File = file + name + ".sql"
	n.Model.File = n.File
	return n
}

// reads makes an edge at a place in the child's file.
func reads(child, parent *Node, line int) edge {
	return edge{parent: parent, child: child, pos: diag.Pos{File: child.File, Line: line, Col: 15}}
}

// chain makes models with edges from text such as "a -> b -> c; a -> d".
func chain(t *testing.T, text string) (*Graph, diag.List) {
	t.Helper()
	byName := map[string]*Node{}
	var nodes []*Node
	var edges []edge
	for _, part := range strings.Split(text, ";") {
		var before *Node
		for _, name := range strings.Split(part, "->") {
			name = strings.TrimSpace(name)
			if byName[name] == nil {
				byName[name] = model("", name)
				nodes = append(nodes, byName[name])
			}
			if before != nil {
				edges = append(edges, reads(byName[name], before, 1))
			}
			before = byName[name]
		}
	}
	slices.Reverse(nodes) // the order of files must not matter
	return newGraph("shop", "/home/me/shop", nodes, edges)
}

func names(nodes []*Node) []string {
	out := []string{}
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct{ name, graph, want string }{
		{"chain", "c -> b -> a", "c b a"},
		{"longest path first", "a; b -> c -> d; e -> f", "b c e a d f"},
		{"ids settle ties", "z; y; x; w -> v", "w v x y z"},
		{"diamond", "a -> b -> d; a -> c -> d", "a b c d"},
		{"nothing below", "b; a", "a b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, diags := chain(t, tc.graph)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(strings.Fields(tc.want), names(g.Order())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrderOfManyNodes(t *testing.T) {
	nodes, edges := manyNodes(10_000, 5)
	g, diags := newGraph("shop", "", nodes, edges)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	checkOrder(t, g, edges)
	if got := len(g.Order()); got != 10_000 {
		t.Errorf("%d nodes are ordered", got)
	}
	slices.Reverse(nodes)
	again, _ := newGraph("shop", "", nodes, edges)
	if diff := cmp.Diff(names(g.Order()), names(again.Order())); diff != "" {
		t.Errorf("the order depends on the order of files: %s", diff)
	}
}

// manyNodes makes models of which each reads so many of those before it.
func manyNodes(count, parents int) ([]*Node, []edge) {
	nodes := make([]*Node, count)
	var edges []edge
	for i := range nodes {
		nodes[i] = model(fmt.Sprintf("f%d", i%20), fmt.Sprintf("m%05d", i))
		for k := range min(i, parents) {
			edges = append(edges, reads(nodes[i], nodes[(i*7919+k*104729)%i], 1))
		}
	}
	return nodes, edges
}

// tester is what the checks need of testing.T and rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func checkOrder(t tester, g *Graph, edges []edge) {
	t.Helper()
	rank := map[string]int{}
	for i, n := range g.Order() {
		rank[n.ID] = i
	}
	for _, e := range edges {
		if rank[e.parent.ID] >= rank[e.child.ID] {
			t.Errorf("%s runs before its parent %s", e.child.ID, e.parent.ID)
		}
	}
}

func TestEdgesKnowOutputs(t *testing.T) {
	a, b := model("", "a"), model("", "b")
	g, diags := newGraph("shop", "", []*Node{a, b}, []edge{
		{parent: a, child: b, output: "a__x", pos: diag.Pos{File: "b", Line: 9}},
		{parent: a, child: b, output: "", pos: diag.Pos{File: "b", Line: 3}},
		{parent: a, child: b, output: "a__x", pos: diag.Pos{File: "b", Line: 4}},
	})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if diff := cmp.Diff([]string{"", "a__x"}, g.Reads(a, b)); diff != "" {
		t.Error(diff)
	}
	if got := g.Reads(b, a); got != nil {
		t.Errorf("a reads %q of b", got)
	}
	if diff := cmp.Diff([]string{"b"}, names(a.Children)); diff != "" {
		t.Error(diff)
	}
	if g.Lookup("A") != a || g.Node("model.shop.b") != b || g.Lookup("c") != nil {
		t.Error("a node is not found by name or ID")
	}
}

func TestCycles(t *testing.T) {
	for _, tc := range []struct {
		name, graph string
		want        []string
	}{
		{"two", "a -> b -> a", []string{"models/a.sql:1:15: cycle: a -> b -> a [RBT3001]"}},
		{"three", "a -> b -> c -> a", []string{"models/a.sql:1:15: cycle: a -> b -> c -> a [RBT3001]"}},
		{"starts at the first name", "c -> b -> a -> c", []string{"models/a.sql:1:15: cycle: a -> c -> b -> a [RBT3001]"}},
		{"the shortest of a knot", "a -> b -> c -> d -> a; b -> a", []string{"models/a.sql:1:15: cycle: a -> b -> a [RBT3001]"}},
		{"two knots, nodes around them", "x -> a -> b -> a; b -> y -> p -> q -> p; q -> z", []string{
			"models/a.sql:1:15: cycle: a -> b -> a [RBT3001]", "models/p.sql:1:15: cycle: p -> q -> p [RBT3001]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, diags := chain(t, tc.graph)
			if g != nil {
				t.Error("there is a graph")
			}
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), diags.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCycleNamesEveryReference(t *testing.T) {
	a, b, c := model("", "a"), model("", "b"), model("", "c")
	_, diags := newGraph("shop", "", []*Node{a, b, c}, []edge{reads(b, a, 2), reads(c, b, 3), reads(a, c, 4)})
	want := "error[RBT3001]: cycle: a -> b -> c -> a\n" +
		"  --> models/a.sql:4:15\n" +
		"  note: models/b.sql:2:15: b reads a here\n" +
		"  note: models/c.sql:3:15: c reads b here\n" +
		"  help: every node on this path needs the one before it; one of these references must go\n"
	if diff := cmp.Diff(want, diag.RenderList(diags, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestCycleOfManyNodes(t *testing.T) {
	nodes, edges := manyNodes(10_000, 1)
	for i := range 9_999 {
		edges = append(edges, reads(nodes[i], nodes[i+1], 1))
	}
	_, diags := newGraph("shop", "", nodes, edges)
	if len(diags) != 1 || diags[0].Code != diag.Cycle {
		t.Errorf("%d diagnostics", len(diags))
	}
}

func TestSelfReference(t *testing.T) {
	x, y := model("", "x"), model("", "y")
	y.Model.Materialization = project.Incremental
	_, diags := newGraph("shop", "", []*Node{x, y}, []edge{reads(x, x, 1), reads(y, y, 2)})
	want := "error[RBT3002]: model \"x\" (models/x.sql) reads itself\n" +
		"  --> models/x.sql:1:15\n" +
		"  help: a model is built from other nodes; what an incremental model has published is {{ this }}\n\n" +
		"error[RBT3002]: model \"y\" (models/y.sql) reads itself\n" +
		"  --> models/y.sql:2:15\n" +
		"  help: write {{ this }} for what is published of it, inside {% if is_incremental() %}\n"
	if diff := cmp.Diff(want, diag.RenderList(diags, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestOrderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 12).Draw(t, "nodes")
		nodes := make([]*Node, count)
		for i := range nodes {
			nodes[i] = model("", fmt.Sprintf("m%02d", i))
		}
		var edges []edge
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			from := rapid.IntRange(0, count-1).Draw(t, "from")
			to := rapid.IntRange(0, count-1).Draw(t, "to")
			if from != to {
				edges = append(edges, reads(nodes[to], nodes[from], 1))
			}
		}
		g, diags := newGraph("shop", "", rapid.Permutation(nodes).Draw(t, "files"), edges)
		reach := closure(nodes, edges)
		cyclic := slices.ContainsFunc(nodes, func(n *Node) bool { return reach[n.ID][n.ID] })
		if cyclic != diags.HasErrors() {
			t.Fatalf("cyclic %v, diagnostics %v", cyclic, diags)
		}
		if g != nil {
			checkOrder(t, g, edges)
			return
		}
		for _, d := range diags {
			checkCircle(t, d, edges)
		}
	})
}

// closure says for each node which it reaches by one edge or more.
func closure(nodes []*Node, edges []edge) map[string]map[string]bool {
	reach := map[string]map[string]bool{}
	for _, n := range nodes {
		reach[n.ID] = map[string]bool{}
	}
	for _, e := range edges {
		reach[e.parent.ID][e.child.ID] = true
	}
	for _, k := range nodes {
		for _, i := range nodes {
			for _, j := range nodes {
				if reach[i.ID][k.ID] && reach[k.ID][j.ID] {
					reach[i.ID][j.ID] = true
				}
			}
		}
	}
	return reach
}

// checkCircle follows the path of a cycle message.
func checkCircle(t tester, d diag.Diagnostic, edges []edge) {
	t.Helper()
	path := strings.Split(strings.TrimPrefix(d.Msg, "cycle: "), " -> ")
	if path[0] != path[len(path)-1] {
		t.Errorf("%s is no circle", d.Msg)
	}
	for i := range path[1:] {
		if !slices.ContainsFunc(edges, func(e edge) bool {
			return e.parent.Name == path[i] && e.child.Name == path[i+1]
		}) {
			t.Errorf("%s: nothing leads from %s to %s", d.Msg, path[i], path[i+1])
		}
	}
}
