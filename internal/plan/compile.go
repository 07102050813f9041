package plan

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// Load compiles every model and test of a project, on all cores, and joins them
// into a graph. It collects every problem; with an error among them, or in the
// project, there is no graph. What the loading of a project told is not told again.
func Load(ctx context.Context, p *project.Project, parser Parser, o Options) (*Graph, diag.List) {
	c := &compiler{p: p, o: o, reader: newReader(p, parser)}
	nodes := makeNodes(p)
	byName := make(map[string]*Node, len(nodes))
	for _, n := range nodes {
		byName[strings.ToLower(n.Name)] = n
	}
	tests := makeTests(p, byName)
	lists := make([]diag.List, len(nodes)+len(tests))
	reads := make([][]project.Ref, len(tests))
	parallel(len(lists), o.Workers, func(i int) {
		switch {
		case ctx.Err() != nil:
		case i < len(nodes):
			lists[i] = c.node(ctx, nodes[i])
		default:
			reads[i-len(nodes)], lists[i] = c.test(ctx, tests[i-len(nodes)])
		}
	})
	diags := slices.Concat(lists...)
	if err := ctx.Err(); err != nil {
		return nil, append(diags, diag.Errorf(diag.TemplateHost, diag.Pos{}, "compile the project: %v", err))
	}
	edges := make([]edge, 0, len(nodes))
	for _, n := range nodes {
		for _, r := range n.Refs {
			edges = append(edges, edge{parent: byName[strings.ToLower(r.Node)], child: n, output: r.Output, pos: r.Pos})
		}
	}
	if p.Broken() {
		// Of edges that lead to one of two nodes with the same name nothing is known.
		if !p.Clashing() {
			_, more := newGraph(p.Name, p.Dir, nodes, edges)
			diags = append(diags, more...)
		}
		return nil, diags.Roots().Sort()
	}
	g, more := newGraph(p.Name, p.Dir, nodes, edges)
	if diags = append(diags, more...); diags.HasErrors() {
		return nil, diags.Sort()
	}
	g.compiler = c
	for i, t := range tests {
		if t.About != nil {
			t.Reads = append(t.Reads, t.About)
		}
		for _, r := range reads[i] {
			t.Reads = append(t.Reads, byName[strings.ToLower(r.Node)])
		}
	}
	g.hang(tests)
	for _, n := range g.nodes {
		for _, parent := range n.Parents {
			if parent.Source != nil {
				maps.Copy(n.Shape, parent.Shape)
			}
		}
	}
	for _, m := range p.Models {
		if m.Records == nil {
			continue
		}
		if outputs := m.Outputs(); len(outputs) > 1 {
			for _, o := range outputs[1:] {
				g.outputs[byName[strings.ToLower(m.Name)].index] = append(g.outputs[byName[strings.ToLower(m.Name)].index], o.Relation)
			}
		}
	}
	return g, diags.Sort()
}

// parallel does work for 0 to n-1 on so many goroutines; 0 is one a core.
func parallel(n, workers int, work func(i int)) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	// A worker takes several at once, so that handing them out costs nothing
	// beside small models.
	const chunk = 16
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, (n+chunk-1)/chunk) {
		wg.Go(func() {
			for {
				from := int(next.Add(chunk)) - chunk
				if from >= n {
					return
				}
				for i := from; i < min(n, from+chunk); i++ {
					work(i)
				}
			}
		})
	}
	wg.Wait()
}

type compiler struct {
	p      *project.Project
	o      Options
	reader *reader
}

func (c *compiler) options(incremental bool) project.CompileOptions {
	return project.CompileOptions{Incremental: incremental, RunStartedAt: c.o.RunStartedAt, InvocationID: c.o.InvocationID}
}

// node compiles a model: what it reads, and its text for fingerprints. An
// ingest has no SQL, and seeds and sources no template.
func (c *compiler) node(ctx context.Context, n *Node) diag.List {
	m := n.Model
	if m == nil || m.Materialization == project.Ingest {
		n.Shape = shape(n)
		return nil
	}
	if c.o.NoTexts || c.o.Recall {
		if found, ok := c.p.Recall(m); ok {
			n.Refs, n.SQLHash, n.Shape, n.Volatile = found.Refs, found.SQLHash, found.Shape, found.Volatile
			return nil
		}
	}
	n.Shape = shape(n)
	full, diags := c.rendering(ctx, n, false)
	if n.incremental() && !diags.HasErrors() {
		increment, more := c.rendering(ctx, n, true)
		diags = append(diags, unsaid(diags, more)...)
		n.Increment = increment.compiled
		n.SQLHash = hashText(c.p.Mask(full.normalized), c.p.Mask(increment.normalized))
	} else {
		n.SQLHash = hashText(c.p.Mask(full.normalized))
	}
	n.Full = full.compiled
	// Stable, so that of several places the first stays.
	slices.SortStableFunc(n.Refs, compareRefs)
	n.Refs = slices.CompactFunc(n.Refs, sameRelation)
	n.textVolatile = n.Full != nil && n.Full.Volatile != ""
	if len(diags) == 0 {
		c.p.Keep(m, project.Found{Refs: n.Refs, SQLHash: n.SQLHash, Shape: n.Shape, Volatile: n.Volatile}, n.Full, n.Increment)
	}
	if c.o.NoTexts {
		n.Full, n.Increment = nil, nil
	}
	return diags
}

// unsaid takes from what the second rendering of a model says what the first one
// said word for word.
func unsaid(said, more diag.List) diag.List {
	type remark struct {
		pos diag.Pos
		msg string
	}
	known := map[remark]bool{}
	for _, d := range said {
		known[remark{d.Pos, d.Msg}] = true
	}
	return slices.DeleteFunc(more, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Remark && known[remark{d.Pos, d.Msg}]
	})
}

// rendering is one rendering of a model, looked into.
type rendering struct {
	text
	compiled *project.Compiled
}

// rendering compiles a model once and adds to the node what it reads.
func (c *compiler) rendering(ctx context.Context, n *Node, incremental bool) (rendering, diag.List) {
	compiled, diags := c.p.Compile(ctx, n.Model, c.options(incremental))
	if diags.HasErrors() {
		return rendering{}, diags
	}
	vague := c.p.Vague(n.Model)
	if vague && strings.TrimSpace(compiled.SQL) == "" {
		return rendering{}, append(diags, diag.Consequence(diag.Pos{File: n.File}))
	}
	found, more := c.reader.look(compiled)
	n.Refs = slices.Concat(n.Refs, compiled.Refs, found.refs)
	n.Volatile = cmp.Or(n.Volatile, compiled.Volatile, found.volatile)
	if found.noModel != nil {
		more = append(more, placed(compiled, found.noModel)...)
	}
	if compiled.This && !n.incremental() && !vague {
		more = append(more, c.reader.readsThis(n.Name, compiled)...)
	}
	return rendering{text: found, compiled: compiled}, append(diags, more...)
}

// compareRefs orders references by what they name. A source's name has a dot, so
// that it is never that of a model.
func compareRefs(a, b project.Ref) int {
	return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Output, b.Output))
}
