package plan

import (
	"context"
	"slices"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// Render gives nodes the renderings that Options.Recall left out; those that have
// them keep them. What they depend on was found out before and stays. Problems are
// met only where the project's files changed since it was loaded. It must be over
// before the nodes are used by several goroutines.
func (g *Graph) Render(ctx context.Context, nodes []*Node) diag.List {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool {
		return n.Full != nil || n.Model == nil || n.Model.Materialization == project.Ingest
	})
	lists := make([]diag.List, len(nodes))
	parallel(len(nodes), g.compiler.o.Workers, func(i int) {
		n := nodes[i]
		var more diag.List
		if n.Full, lists[i] = g.compiler.p.Compile(ctx, n.Model, g.compiler.options(false)); n.incremental() {
			n.Increment, more = g.compiler.p.Compile(ctx, n.Model, g.compiler.options(true))
			lists[i] = append(lists[i], more...)
		}
	})
	return slices.Concat(lists...).Sort()
}

// Rendered gives the nodes of which carrying out the plan can need the renderings:
// what is built or tested, and everything above it.
func (p *Plan) Rendered() []*Node {
	m := marker{g: p.Graph, seen: make([]bool, len(p.Graph.nodes))}
	idle := true
	for _, s := range p.Steps {
		if s.Action == ActionUnchanged {
			continue
		}
		idle = false
		m.mark(s.Node)
		for _, t := range s.Gates {
			m.markTest(t)
		}
	}
	for _, l := range p.Late {
		if !idle || len(l.Reasons) > 0 {
			m.markTest(l.Test)
		}
	}
	for _, u := range p.UnitTests {
		if n := p.Graph.Lookup(u.Model); n != nil {
			m.mark(n)
		}
	}
	return m.found
}

// marker collects nodes with all that is above them, each once.
type marker struct {
	g     *Graph
	seen  []bool
	found []*Node
}

func (m *marker) mark(n *Node) {
	for todo := []*Node{n}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if m.seen[n.index] {
			continue
		}
		m.seen[n.index] = true
		m.found = append(m.found, n)
		todo = append(todo, n.Parents...)
	}
}

func (m *marker) markTest(t *project.Test) {
	for _, n := range m.g.testOf[t].Reads {
		m.mark(n)
	}
}
