package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// Entries of Inputs.Parents are a bare commit, or begin with what they are.
const (
	contentPrefix = "content:" // hash of a relation's content
	viewPrefix    = "view:"    // fingerprint of a view or ephemeral
)

// identity says which content a relation has for what reads it. Exactly one of
// id, pending and unknown is set.
type identity struct {
	id       string // as Inputs.Parents holds it
	pending  bool   // a step of this run decides
	unknown  string // why nothing can be said
	volatile string // why the content can change by itself
}

// made is what a node is made from, as far as it is known.
type made struct {
	in       lake.Inputs
	pending  []string // relations of parents that a step of this run decides; sorted
	unknown  string
	volatile string
}

// stamps is what is known of a source's files.
type stamps struct {
	files map[string]lake.FileStamp
	err   error
}

// identities finds out what relations are, each once.
type identities struct {
	g       *Graph
	o       Options
	mask    func(string) string // takes secrets out of what receipts keep
	here    *published
	other   *published // of Options.Defer; nil if there is none
	steps   []*Step    // by place of the node; nil where it is none
	settled []*lake.Receipt
	running bool // steps are being run: one that is neither unchanged nor settled is unknown

	relations map[string]relation // of the graph, by name in lower case
	made      map[int]made        // of steps, views and ephemerals, by place
	views     map[*published]map[string]identity
	sources   map[int]stamps // by place
}

// relation is an output of a node of the graph.
type relation struct {
	place  int
	output string
}

func newIdentities(g *Graph, state *lake.State, o Options, mask func(string) string) *identities {
	x := &identities{g: g, o: o, mask: mask, here: newPublished(state), steps: make([]*Step, len(g.nodes)), settled: make([]*lake.Receipt, len(g.nodes)),
		relations: make(map[string]relation, len(g.nodes)), sources: map[int]stamps{}}
	if o.Defer != nil {
		x.other = newPublished(o.Defer)
	}
	for i, n := range g.nodes {
		if n.Kind == KindSource {
			continue
		}
		x.relations[strings.ToLower(n.Name)] = relation{place: i}
		for _, output := range g.outputs[i] {
			x.relations[strings.ToLower(output)] = relation{place: i, output: output}
		}
	}
	x.forget()
	return x
}

// forget drops what was found out about views and ephemerals.
func (x *identities) forget() {
	x.made = map[int]made{}
	x.views = map[*published]map[string]identity{x.here: {}, x.other: {}}
}

// identity gives what an output of a node is for what reads it.
func (x *identities) identity(i int, output string) identity {
	n, s := x.g.nodes[i], x.steps[i]
	switch {
	case n.transparent() && (s != nil || n.materialization() == project.Ephemeral):
		return x.current(i)
	case s != nil && x.settled[i] != nil:
		return ofReceipt(x.settled[i], relationName(n, output))
	case s != nil && s.Receipt != nil && (s.Action == ActionUnchanged || s.Action == ActionAudit):
		return ofReceipt(s.Receipt, relationName(n, output))
	case s != nil && x.running:
		return identity{unknown: "it was not built"}
	case s != nil:
		return identity{pending: true}
	}
	if p, ok := x.here.node(n.Name); ok {
		return x.publishedIdentity(x.here, p, relationName(n, output))
	}
	if x.other != nil {
		if p, ok := x.other.node(n.Name); ok {
			return x.publishedIdentity(x.other, p, relationName(n, output))
		}
	}
	return identity{unknown: "it was never published"}
}

func relationName(n *Node, output string) string {
	if output != "" {
		return output
	}
	return n.Name
}

// ofReceipt gives the identity of a relation that has data of its own.
func ofReceipt(r *lake.Receipt, name string) identity {
	for _, o := range r.Outputs {
		if strings.EqualFold(o.Relation, name) && o.ContentHash != nil {
			return identity{id: contentPrefix + *o.ContentHash}
		}
	}
	return identity{id: r.Commit}
}

// current gives the identity of a view or ephemeral with the SQL that it has in
// the project.
func (x *identities) current(i int) identity {
	m := x.inputs(i)
	id := identity{volatile: m.volatile}
	switch {
	case m.unknown != "":
		return identity{unknown: m.unknown}
	case len(m.pending) > 0:
		id.pending = true
		return id
	}
	fingerprint := Fingerprint(m.in)
	id.id = viewPrefix + fingerprint
	r := x.settled[i]
	if s := x.steps[i]; r == nil && s != nil {
		r = s.Receipt
	}
	if id.volatile == "" && r != nil && r.Volatile != nil && r.Fingerprint == fingerprint {
		id.volatile = *r.Volatile
	}
	return id
}

// publishedIdentity gives the identity of a relation as it is published in a
// lake. A view is its SQL over what its parents are now.
func (x *identities) publishedIdentity(in *published, n *lake.Node, name string) identity {
	switch {
	case n.Damage != nil:
		return identity{unknown: "what is published of it is damaged"}
	case n.Receipt.Form != lake.FormView:
		return ofReceipt(&n.Receipt, name)
	}
	key := strings.ToLower(n.Receipt.Name)
	if known, ok := x.views[in][key]; ok {
		return known
	}
	// Until it is known, so that a view that reaches itself through other
	// published views ends here.
	x.views[in][key] = identity{unknown: "it reads itself as it is published"}
	id := x.publishedView(in, &n.Receipt)
	if id.unknown != "" && x.running {
		delete(x.views[in], key)
	} else {
		x.views[in][key] = id
	}
	return id
}

func (x *identities) publishedView(in *published, r *lake.Receipt) identity {
	now := r.Inputs
	now.Engine = x.o.EngineIdentity
	now.Parents, now.Sources = map[string]string{}, map[string]lake.FileStamp{}
	id := identity{}
	if r.Volatile != nil {
		id.volatile = *r.Volatile
	}
	for _, name := range slices.Sorted(maps.Keys(r.Inputs.Parents)) {
		parent := x.named(in, name)
		switch {
		case parent.unknown != "":
			return identity{unknown: name + ": " + parent.unknown}
		case parent.pending:
			id.pending = true
		}
		now.Parents[name] = parent.id
		if id.volatile == "" {
			id.volatile = parent.volatile
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Inputs.Config)) {
		name, isSource := strings.CutPrefix(key, sourceKey)
		if !isSource {
			continue
		}
		n := x.g.Lookup(name)
		if n == nil || n.Source == nil {
			return identity{unknown: "the source " + name + " is not declared any more"}
		}
		now.Config = maps.Clone(now.Config)
		now.Config[key] = n.Shape[sourceKey+n.Name]
		if unknown := x.addStamps(&now, n.index); unknown != "" {
			return identity{unknown: unknown}
		}
	}
	if !id.pending {
		id.id = viewPrefix + Fingerprint(now)
	}
	return id
}

// named gives the identity of a relation that a published view of a lake reads.
// A name means the same wherever it stands: a view of the deferred lake reads
// what this lake publishes, where it does.
func (x *identities) named(in *published, name string) identity {
	if r, ok := x.relations[strings.ToLower(name)]; ok {
		return x.identity(r.place, r.output)
	}
	if n, ok := in.relation(name); ok {
		return x.publishedIdentity(in, n, name)
	}
	return identity{unknown: "it is not published"}
}

// inputs gives what a step, view or ephemeral is made from now.
func (x *identities) inputs(i int) made {
	if m, ok := x.made[i]; ok {
		return m
	}
	// As in publishedIdentity: a published view may reach what is being built.
	x.made[i] = made{unknown: "it reads itself through what is published of a view"}
	m := x.gather(x.g.nodes[i])
	if m.unknown != "" && x.running {
		delete(x.made, i)
	} else {
		x.made[i] = m
	}
	return m
}

func (x *identities) gather(n *Node) made {
	m := made{volatile: n.Volatile, in: lake.Inputs{
		SQL: n.SQLHash, Config: n.Shape, Parents: make(map[string]string, len(n.Parents)), Sources: map[string]lake.FileStamp{}, Engine: x.o.EngineIdentity,
	}}
	note := func(unknown string) {
		if m.unknown == "" {
			m.unknown = unknown
		}
	}
	switch {
	case n.Seed != nil:
		hash, err := x.seed(n)
		m.in.SQL = hash
		note(err)
	case n.materialization() == project.Ingest:
		note(x.addStamps(&m.in, n.index))
	}
	for k, p := range n.Parents {
		if p.Source != nil {
			note(x.addStamps(&m.in, p.index))
			continue
		}
		for _, output := range x.g.reads[n.index][k].outputs {
			name := relationName(p, output)
			id := x.identity(p.index, output)
			m.in.Parents[name] = id.id
			if m.volatile == "" && id.volatile != "" {
				m.volatile = id.volatile + " in " + name
			}
			switch {
			case id.unknown != "":
				note("parent " + name + ": " + id.unknown)
			case id.pending:
				m.pending = append(m.pending, name)
			}
		}
	}
	slices.Sort(m.pending)
	return m
}

// seed gives the hash of a seed's file, or why it is not known.
func (x *identities) seed(n *Node) (hash, unknown string) {
	if x.o.SeedHash == nil {
		return "", "the seed file was not looked at"
	}
	hash, err := x.o.SeedHash(n.Seed)
	if err != nil {
		return "", fmt.Sprintf("the seed file: %v", err)
	}
	return hash, ""
}

// addStamps adds the files of a source or of an ingest's input, and gives why
// they are not known.
func (x *identities) addStamps(in *lake.Inputs, i int) string {
	s, ok := x.sources[i]
	if !ok {
		s = x.stamp(i)
		x.sources[i] = s
	}
	if s.err != nil {
		return x.mask(fmt.Sprintf("files of %s: %v", x.g.nodes[i].Name, s.err))
	}
	for file, stamp := range s.files {
		in.Sources[x.mask(file)] = stamp
	}
	return ""
}

func (x *identities) stamp(i int) stamps {
	n := x.g.nodes[i]
	var files map[string]lake.FileStamp
	err := errUnstamped
	switch {
	case n.Source != nil && x.o.SourceFiles != nil:
		files, err = x.o.SourceFiles(n.Source)
	case n.Source == nil && x.o.IngestFiles != nil:
		files, err = x.o.IngestFiles(n.Model)
	}
	return stamps{files: files, err: err}
}

// stampAll looks at the files of everything that the steps and these tests read, on
// so many goroutines.
func (x *identities) stampAll(tests []*TestNode, workers int) {
	needed := map[int]bool{}
	for _, t := range tests {
		for _, i := range x.g.sourcesOf(t) {
			needed[i] = true
		}
	}
	seen := map[int]bool{}
	var todo []int
	for i, s := range x.steps {
		if s != nil {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		if x.g.nodes[i].materialization() == project.Ingest {
			needed[i] = true
		}
		for _, p := range x.g.parents[i] {
			switch n := x.g.nodes[p]; {
			case n.Source != nil:
				needed[p] = true
			case n.transparent():
				todo = append(todo, p)
			}
		}
	}
	places := slices.Sorted(maps.Keys(needed))
	found := make([]stamps, len(places))
	parallel(len(places), workers, func(k int) { found[k] = x.stamp(places[k]) })
	for k, i := range places {
		x.sources[i] = found[k]
	}
}
