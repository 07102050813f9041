package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// Build makes the plan of a command: it compiles the project, selects, and
// decides for every selected node what is to be done and why. state is what the
// lake holds; nil is an empty lake. With a list there is no plan; warnings alone
// are in the plan.
func Build(ctx context.Context, p *project.Project, state *lake.State, parser Parser, o Options) (*Plan, diag.List) {
	g, diags := Load(ctx, p, parser, o)
	if g == nil {
		return nil, diags
	}
	pl, more := g.Plan(p, state, o)
	diags = append(diags, more...)
	if pl == nil || diags.HasErrors() {
		return nil, diags.Sort()
	}
	pl.Warnings = diags.Sort()
	return pl, nil
}

// Plan makes the plan of a command from the graph of a project that is loaded.
func (g *Graph) Plan(p *project.Project, state *lake.State, o Options) (*Plan, diag.List) {
	sel, diags := g.Select(o.Selectors)
	if diags.HasErrors() {
		return nil, diags
	}
	pl := &Plan{Project: p, Graph: g, Selected: sel, ids: newIdentities(g, state, o, p.Mask)}
	if state != nil {
		pl.Orphans = state.Orphans(func(name string) bool { return g.Lookup(name) != nil && g.Lookup(name).form() != "" })
		pl.Foreign = state.Foreign
	}
	if o.Tests {
		pl.testsOnly()
		pl.noteDeferred()
		return pl, diags
	}
	pl.makeSteps()
	pl.ids.stampAll(sel.Tests, o.Workers)
	pl.tests = pl.ids.withSources(sel.Tests)
	for _, s := range pl.Steps {
		s.decided(pl.ids.compare(s))
	}
	placed, w := pl.attach()
	pl.Relays = w.relays
	pl.UnitTests = placed.units
	pl.Late = w.lateTests(placed.late, pl.Steps)
	pl.Guards = w.guards(placed.late, pl.Steps)
	for _, g := range pl.Guards {
		for _, k := range g.Tests {
			pl.Late[k].Guards = true
		}
	}
	diags = append(diags, pl.checkParents()...)
	diags = append(diags, pl.checkPublished(o)...)
	diags = append(diags, pl.checkSomething(o)...)
	if diags.HasErrors() {
		return nil, diags.Sort()
	}
	pl.noteDeferred()
	for _, s := range pl.Steps {
		s.decided(s.audited(Decision{Action: s.Action, Reasons: s.Reasons, Fingerprint: s.Fingerprint, Inputs: s.Inputs, Pending: s.Pending}))
	}
	pl.lateReasons(placed.late)
	return pl, diags
}

// testsOnly plans the selected tests against what is published.
func (p *Plan) testsOnly() {
	for _, t := range p.Selected.Tests {
		if t.Unit != nil {
			p.UnitTests = append(p.UnitTests, t.Unit)
		} else {
			p.Late = append(p.Late, LateTest{Test: t.Test, Owner: p.Graph.owner(t), Reasons: []string{"selected"}})
		}
	}
}

// makeSteps gives the selected nodes that a run publishes, in run order.
func (p *Plan) makeSteps() {
	selected := make([]bool, len(p.Graph.nodes))
	for _, n := range p.Selected.Nodes {
		selected[n.index] = true
	}
	for _, i := range p.Graph.order {
		n := p.Graph.nodes[i]
		if !selected[i] || n.form() == "" {
			continue
		}
		s := &Step{Number: len(p.Steps) + 1, Node: n}
		p.Steps = append(p.Steps, s)
		p.ids.steps[i] = s
		if held, ok := p.ids.here.node(n.Name); ok {
			s.Receipt, s.parts, s.damage = &held.Receipt, held.Manifest, held.Damage
			// Of no rows every aggregate is NULL: a watermark over them would let
			// nothing pass, today or later.
			s.Incremental = n.incremental() && !p.ids.o.FullRefresh && held.Receipt.Form == lake.FormIncremental &&
				held.Manifest != nil && len(held.Manifest.Parts) > 0 && held.Damage == nil && !held.Foreign
			s.Appends = s.Incremental || n.materialization() == project.Ingest && n.appends() && !p.ids.o.FullRefresh &&
				held.Receipt.Form == lake.FormIngest && held.Manifest != nil && held.Manifest.HasLedger() && held.Damage == nil && !held.Foreign
		}
	}
}

// readThrough reports whether an unselected node keeps no data of its own: an
// ephemeral, and what is published as a view.
func (p *Plan) readThrough(n *Node) bool {
	if held, ok := p.held(n); ok && n.materialization() != project.Ephemeral {
		return held.Receipt.Form == lake.FormView
	}
	return n.transparent()
}

// held finds what is published of a node in this lake, else in the deferred one.
func (p *Plan) held(n *Node) (*lake.Node, bool) {
	held, ok := p.ids.here.node(n.Name)
	if !ok && p.ids.other != nil {
		held, ok = p.ids.other.node(n.Name)
	}
	return held, ok
}

// available reports whether a node can be read: it is a source, published in
// this lake or the deferred one, or an ephemeral.
func (p *Plan) available(n *Node) bool {
	if n.Kind == KindSource || n.materialization() == project.Ephemeral {
		return true
	}
	_, here := p.ids.here.node(n.Name)
	return here || p.deferred(n)
}

// deferred reports whether a node is read from the other lake.
func (p *Plan) deferred(n *Node) bool {
	if p.ids.other == nil {
		return false
	}
	if _, here := p.ids.here.node(n.Name); here {
		return false
	}
	_, there := p.ids.other.node(n.Name)
	return there
}

// checkParents reports the parents of steps that are neither built nor published
// in this lake or the deferred one. An ephemeral is as good as its own parents.
func (p *Plan) checkParents() diag.List {
	var diags diag.List
	g := p.Graph
	needed := make([]bool, len(g.nodes)) // ephemerals that a step reads
	for _, i := range slices.Backward(g.order) {
		for _, parent := range g.parents[i] {
			if (p.ids.steps[i] != nil || needed[i]) && g.nodes[parent].materialization() == project.Ephemeral {
				needed[parent] = true
			}
		}
	}
	lacking := make([]*Node, len(g.nodes)) // what an ephemeral needs and does not have
	for _, i := range g.order {
		step := p.ids.steps[i] != nil
		if !step && !needed[i] {
			continue
		}
		for _, parent := range g.parents[i] {
			m, lacks := g.nodes[parent], lacking[parent]
			if p.ids.steps[parent] == nil && !p.available(m) {
				lacks = m
			}
			switch {
			case lacks == nil:
			case step:
				diags = append(diags, unpublished(g.nodes[i], lacks, m, g.readings(parent, i).pos))
			default:
				lacking[i] = lacks
			}
		}
	}
	return diags
}

// noteDeferred lists what the steps and tests of the plan read from the other
// lake.
func (p *Plan) noteDeferred() {
	if p.ids.other == nil {
		return
	}
	var todo []*Node
	for _, s := range p.Steps {
		todo = append(todo, s.Node.Parents...)
	}
	for _, t := range p.Selected.Tests {
		todo = append(todo, t.Reads...)
	}
	seen := make([]bool, len(p.Graph.nodes))
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case seen[n.index] || p.ids.steps[n.index] != nil:
		case n.materialization() == project.Ephemeral:
			todo = append(todo, n.Parents...)
		case p.deferred(n):
			p.Deferred = append(p.Deferred, n)
			// A view has no files: what it reads there is read too.
			if held, _ := p.held(n); held.Receipt.Form == lake.FormView {
				todo = append(todo, p.publishedParents(&held.Receipt)...)
			}
		case n.Kind != KindSource:
			if held, ok := p.held(n); ok && held.Receipt.Form == lake.FormView {
				todo = append(todo, p.publishedParents(&held.Receipt)...)
			}
		}
		seen[n.index] = true
	}
	slices.SortFunc(p.Deferred, func(a, b *Node) int { return a.index - b.index })
}

// publishedParents gives the nodes that a published view reads, as far as they
// are in the project.
func (p *Plan) publishedParents(r *lake.Receipt) []*Node {
	var nodes []*Node
	for _, name := range slices.Sorted(maps.Keys(r.Inputs.Parents)) {
		if rel, ok := p.ids.relations[strings.ToLower(name)]; ok {
			nodes = append(nodes, p.Graph.nodes[rel.place])
		}
	}
	return nodes
}

// unpublished says that n lacks what it reads, itself or through an ephemeral.
func unpublished(n, lacks, through *Node, pos diag.Pos) diag.Diagnostic {
	what := fmt.Sprintf("%q", lacks.Name)
	if through != lacks {
		what += fmt.Sprintf(" through the ephemeral model %q", through.Name)
	}
	return diag.Errorf(diag.ParentUnpublished, pos, "%s %q reads %s, which was never published and is not selected", n.Kind, n.Name, what).
		WithHint("select it too: +%s builds %s with all that it reads", n.Name, n.Name)
}

// checkPublished reports steps that must not replace what is published without
// a full refresh, and refuses those whose own data is damaged.
func (p *Plan) checkPublished(o Options) diag.List {
	if o.FullRefresh {
		return nil
	}
	var diags diag.List
	for _, s := range p.Steps {
		held, ok := p.ids.here.node(s.Node.Name)
		if !ok {
			continue
		}
		place, err := lake.NewPlace(s.Node.folder(), s.Node.Name, s.Node.form())
		if err != nil {
			diags = append(diags, diag.Errorf(diag.BadPath, diag.Pos{File: s.Node.File}, "%v", err))
			continue
		}
		switch r := held.Receipt; {
		case held.Foreign, s.Node.form() != lake.FormView && slices.Contains(held.Others, place.Path()):
			path := place.Path()
			if held.Foreign {
				path = r.Path
			}
			diags = append(diags, diag.Errorf(diag.LakeForeign, diag.Pos{File: s.Node.File},
				"%s %q: no run of rbt published %s in the lake", s.Node.Kind, s.Node.Name, path).
				WithHint("move it away, or replace it with --full-refresh"))
		case s.Node.appends() && r.Form == s.Node.form() && held.Damage != nil:
			s.Refused = diag.Errorf(diag.LakeDamaged, diag.Pos{File: s.Node.File},
				"model %q appends to what is damaged: %v", s.Node.Name, held.Damage).
				WithHint("restore it, or build the model anew: rbt run --full-refresh -s %s", s.Node.Name)
		case s.Node.incremental() && r.Form == lake.FormIncremental && r.Path != place.Path():
			diags = append(diags, diag.Errorf(diag.IncrementalMove, s.Node.pathPos(),
				"incremental model %q is published in %s and would move to %s", s.Node.Name, r.Path, place.Path()).
				WithHint("its rows would stay behind: build it anew with --full-refresh, or keep the path"))
		}
	}
	return diags
}

// checkSomething reports a selection of which nothing can be built or tested.
func (p *Plan) checkSomething(o Options) diag.List {
	if len(o.Select) == 0 || p.Selected.Nothing || p.Selected.Past || len(p.Steps)+len(p.Late)+len(p.UnitTests) > 0 {
		return nil
	}
	for _, n := range p.Selected.Nodes {
		if n.Kind != KindSource {
			return nil // an ephemeral: it is part of whatever reads it
		}
	}
	return diag.List{diag.Errorf(diag.SelectionEmpty, diag.Pos{}, "--select %q picks sources only, and sources are not built", strings.Join(o.Select, " ")).
		WithHint("write source:<name>+ for what reads them")}
}

// folder is where a node's data lies in the lake.
func (n *Node) folder() string {
	if n.Model == nil {
		return ""
	}
	return n.Model.Path
}

// appends reports whether a node keeps data that its sources need not have any
// more.
func (n *Node) appends() bool {
	if n.materialization() == project.Ingest {
		return n.Model.Records != nil && n.Model.Records.Mode.Value == "append"
	}
	return n.incremental()
}

// pathPos is where a model's path was written, else its file.
func (n *Node) pathPos() diag.Pos {
	if pos, ok := n.Model.ConfigPos["path"]; ok {
		return pos
	}
	return diag.Pos{File: n.File}
}
