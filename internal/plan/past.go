package plan

import (
	"rbt/internal/diag"
	"rbt/internal/project"
)

// pastMatcher compares with an earlier command, and reports where there is
// nothing to compare with.
func (x *index) pastMatcher(t term) func(*item) bool {
	x.metPast = true
	if !x.asked[t.method] {
		x.asked[t.method] = true
		x.ask(t)
	}
	switch t.method {
	case byResult:
		return func(it *item) bool { return x.results[it.id] == t.value }
	case bySourceStatus:
		return func(it *item) bool { return x.sources[it.id] == t.value }
	default:
		return func(it *item) bool { return x.states[it.id].is(t.value) }
	}
}

// ask fetches what a method compares with.
func (x *index) ask(t term) {
	var err error
	var given bool
	var hint string
	switch t.method {
	case byResult:
		hint = "result: looks at target/run_results.json of the last run: run first"
		if given = x.past.Results != nil; given {
			x.results, err = x.past.Results()
		}
	case bySourceStatus:
		hint = "source_status: compares with target/sources.json: run `rbt source freshness` first"
		if given = x.past.Sources != nil; given {
			x.sources, err = x.past.Sources()
		}
	default:
		hint = "state: compares with another manifest: add --state DIR or --state git:REF"
		if given = x.past.State != nil; given {
			x.states, err = x.past.State(x.g)
		}
	}
	switch {
	case !given:
		x.diags = append(x.diags, diag.Errorf(diag.SelectorNeedsState, diag.Pos{},
			"selector %q has nothing to compare with", t.text).WithHint("%s", hint))
	case err != nil:
		x.diags = append(x.diags, diag.Errorf(diag.SelectorNeedsState, diag.Pos{},
			"selector %q has nothing to compare with: %v", t.text, err).WithHint("%s", hint))
	}
}

// is reports whether a change is of one of the kinds of state:, in dbt's
// meaning: what is new is modified in every way.
func (c Change) is(what string) bool {
	switch what {
	case "new":
		return c.New
	case "old":
		return !c.New
	case "modified.body":
		return c.New || c.Body
	case "modified.configs":
		return c.New || c.Configs
	case "unmodified":
		return c == Change{}
	default: // modified
		return c != Change{}
	}
}

// Print is what state: compares of a node or test: a hash of what it computes
// and one of how it is configured.
type Print struct {
	Body    string `json:"body"`
	Configs string `json:"configs"`
}

// Prints gives the print of every node and test, by ID. The body of a model is
// its compiled SQL without comments and white space, so that a macro or variable
// that it uses counts; where that differs from run to run, it is the template.
// Configurations count whole, descriptions do not. seedHash is
// Options.SeedHash, called for several seeds at once; a seed that it cannot read has
// its error for a body.
func (g *Graph) Prints(seedHash func(*project.Seed) (string, error)) map[string]Print {
	each := make([]Print, len(g.nodes))
	parallel(len(g.nodes), 0, func(i int) { each[i] = g.nodes[i].print(seedHash) })
	prints := make(map[string]Print, len(g.nodes)+len(g.tests))
	for i, n := range g.nodes {
		prints[n.ID] = each[i]
	}
	for _, t := range g.tests {
		prints[t.ID] = Print{Body: t.Hash}
	}
	return prints
}

func (n *Node) print(seedHash func(*project.Seed) (string, error)) Print {
	p := Print{Body: n.SQLHash}
	switch {
	case n.Source != nil:
		p.Body = n.Shape[sourceKey+n.Name]
		p.Configs = digest([]any{n.Source.Tags, n.Source.Meta, n.Source.Freshness})
	case n.Seed != nil:
		hash, err := seedHash(n.Seed)
		if err != nil {
			hash = err.Error()
		}
		p.Body, p.Configs = hash, digest([]any{n.Shape, n.Seed.Tags, n.Seed.Meta})
	default:
		if n.textVolatile {
			p.Body = hashText(n.Model.Body)
		}
		p.Configs = digest([]any{n.Shape, n.Model.Config})
	}
	return p
}

// Changed compares prints with those of another manifest, for Past.State.
func Changed(now, before map[string]Print) map[string]Change {
	changes := map[string]Change{}
	for id, p := range now {
		old, known := before[id]
		c := Change{New: !known, Body: known && old.Body != p.Body, Configs: known && old.Configs != p.Configs}
		if c != (Change{}) {
			changes[id] = c
		}
	}
	return changes
}
