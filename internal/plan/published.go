package plan

import (
	"errors"
	"slices"
	"strings"

	"rbt/internal/lake"
)

var errUnstamped = errors.New("nobody looked at them")

// published finds what a lake holds, ignoring case.
type published struct {
	nodes     map[string]*lake.Node // by name in lower case
	relations map[string]*lake.Node // by relation in lower case
}

func newPublished(s *lake.State) *published {
	if s == nil {
		return &published{}
	}
	p := &published{nodes: make(map[string]*lake.Node, len(s.Nodes)), relations: make(map[string]*lake.Node, len(s.Nodes))}
	names := make([]string, 0, len(s.Nodes))
	for name := range s.Nodes {
		names = append(names, name)
	}
	slices.Sort(names) // of two that differ in case only, always the same one counts
	all := make([]lake.Node, len(names))
	for i, name := range names {
		n := &all[i]
		*n = s.Nodes[name]
		if !n.Recorded && !n.Adopted && !n.Foreign {
			continue
		}
		p.nodes[strings.ToLower(name)] = n
		for _, o := range n.Receipt.Outputs {
			p.relations[strings.ToLower(o.Relation)] = n
		}
	}
	return p
}

// node finds what is published of a node.
func (p *published) node(name string) (*lake.Node, bool) {
	n, ok := p.nodes[strings.ToLower(name)]
	return n, ok
}

// relation finds the node that publishes a relation.
func (p *published) relation(name string) (*lake.Node, bool) {
	n, ok := p.relations[strings.ToLower(name)]
	return n, ok
}
