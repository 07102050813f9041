package plan

import (
	"maps"
	"slices"
	"strings"

	"rbt/internal/lake"
)

// testSourcesMark stands in the hash of a test before that of the files of the
// sources that it looks at: the receipt of its owner says what the owner was made
// from, but nothing of sources that only the test reads.
const testSourcesMark = "."

// sourcesOf gives the places of the sources that a test looks at, by itself or
// through views and ephemerals: not those of its own node, ascending.
func (g *Graph) sourcesOf(t *TestNode) []int {
	var out []int
	var todo []*Node
	for _, n := range t.Reads {
		if n != t.About || n.Kind == KindSource {
			todo = append(todo, n)
		}
	}
	seen := map[*Node]bool{}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case seen[n]:
		case n.Kind == KindSource:
			out = append(out, n.index)
		case n.transparent():
			todo = append(todo, n.Parents...)
		}
		seen[n] = true
	}
	slices.Sort(out)
	return out
}

// withSources gives the tests with the hashes by which receipts remember them now.
// What is not known of files is in the hash too: with it no test ever passed.
func (x *identities) withSources(tests []*TestNode) []*TestNode {
	out := slices.Clone(tests)
	for k, t := range out {
		sources := x.g.sourcesOf(t)
		if len(sources) == 0 {
			continue
		}
		in := lake.Inputs{Config: map[string]string{}, Sources: map[string]lake.FileStamp{}}
		for _, i := range sources {
			n := x.g.nodes[i]
			maps.Copy(in.Config, n.Shape)
			in.SQL += x.addStamps(&in, i)
		}
		with := *t
		with.Hash += testSourcesMark + Fingerprint(in)[:testHashSize]
		out[k] = &with
	}
	return out
}

// TestHashes gives by ID how receipts remember the selected tests.
func (p *Plan) TestHashes() map[string]string {
	out := make(map[string]string, len(p.tests))
	for _, t := range p.tests {
		out[t.ID] = t.Hash
	}
	return out
}

// StillPassed gives, as the receipt of a step does, the tests of sources that it
// remembers and that hold whatever becomes of the step: they look at nothing but
// files, which did not change since.
func (s *Step) StillPassed() []string {
	passed := rememberedTests(s.Receipt)
	var out []string
	for _, t := range s.tests {
		if passed[t.Hash] && t.Volatile == "" && !slices.ContainsFunc(t.Reads, func(n *Node) bool { return n.Kind != KindSource }) {
			out = append(out, t.Hash)
		}
	}
	return out
}

// TestOfHash gives the part of a test's hash that is the same whatever files its
// sources have.
func TestOfHash(hash string) string {
	test, _, _ := strings.Cut(hash, testSourcesMark)
	return test
}
