package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// testHashes are the tests that a receipt remembers: how it does, by
// plan.TestOfHash.
type testHashes map[string]string

func readHashes(text string) testHashes {
	set := testHashes{}
	for _, h := range strings.Fields(text) {
		set.add(h)
	}
	return set
}

func (h testHashes) add(hash string) { h[plan.TestOfHash(hash)] = hash }

func (h testHashes) has(hash string) bool { return h[plan.TestOfHash(hash)] == hash }

// note adds a test that passed and takes out one that did not: a test that
// warned is asked again by the next run, which shall warn again. What it came to
// on other files of its sources is forgotten either way.
func (h testHashes) note(hash string, status Status) {
	if status == StatusPass {
		h.add(hash)
	} else {
		delete(h, plan.TestOfHash(hash))
	}
}

func (h testHashes) text() string { return strings.Join(slices.Sorted(maps.Values(h)), " ") }

// gateHashes gives what the receipt of a step that is built remembers at once:
// its gates and unit tests and what stays true of sources, not what runs after it
// is published.
func (r *run) gateHashes(s *plan.Step) testHashes {
	hashes := testHashes{}
	for _, t := range s.OwnGates() {
		hashes.add(r.hashes[r.tests[t].ID])
	}
	for _, u := range s.UnitTests {
		hashes.add(r.hashes[r.units[u].ID])
	}
	for _, hash := range s.StillPassed() {
		hashes.add(hash)
	}
	return hashes
}

// mustAsk reports whether a test is to be asked about what is published: it did
// not pass on it before, or can give another answer by itself.
func (r *run) mustAsk(passed testHashes, t *plan.TestNode) bool {
	return !passed.has(r.hashes[t.ID]) || t.Volatile != ""
}

// lookedAt names what a gate of a step looks at and this run has built; "" where
// that is nothing.
func (r *run) lookedAt(s *plan.Step, t *project.Test) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, number := range s.LookedAt(t) {
		if n := r.plan.Steps[number-1].Node; r.built[n] {
			return n.Name
		}
	}
	return ""
}

// lookedAtAnew names something that gates of a step look at and this run has built,
// though it did not build the step; "" where there is nothing.
func (r *run) lookedAtAnew(s *plan.Step) string {
	for _, t := range s.OwnGates() {
		if name := r.lookedAt(s, t); name != "" {
			return name
		}
	}
	return ""
}

// remote is what a gate came to that the receipt of another node remembers.
type remote struct {
	owner *plan.Node
	test  *TestResult
}

// noteGates writes into the hashes of a step that is published what its gates came
// to, and keeps for the end of the run what other receipts remember.
func (r *run) noteGates(s *plan.Step, tests []*TestResult, hashes testHashes) {
	owners := map[string]*plan.Node{}
	for _, t := range s.Gates {
		owners[r.tests[t].ID] = s.OwnerOf(t)
	}
	for _, t := range tests {
		if owner := owners[t.ID]; owner != nil && owner != s.Node {
			r.mu.Lock()
			r.remote = append(r.remote, remote{owner, t})
			r.mu.Unlock()
			continue
		}
		hashes.note(r.hashes[t.ID], t.Status)
	}
}

// untested gives the gates and unit tests of a step that are to be asked about
// what is published.
func (r *run) untested(s *plan.Step) (gates []*project.Test, units []*project.UnitTest) {
	passed := r.passed(s.Node)
	gates = slices.DeleteFunc(slices.Clone(s.OwnGates()), func(t *project.Test) bool {
		return !r.mustAsk(passed, r.tests[t]) && r.lookedAt(s, t) == ""
	})
	units = slices.DeleteFunc(slices.Clone(s.UnitTests), func(u *project.UnitTest) bool { return !r.mustAsk(passed, r.units[u]) })
	return gates, units
}

// passed gives the tests that passed on what this lake holds of a node now, as its
// receipt remembers them.
func (r *run) passed(n *plan.Node) testHashes {
	receipt, _ := r.receiptOf(n)
	return readHashes(receipt.TestsHash)
}

// looker is a gate that looks at another step.
type looker struct {
	step *plan.Step
	test *project.Test
}

// lookers gives the gates that look at each step, by its number, and that the
// receipts of their own steps remember.
func lookers(p *plan.Plan) map[int][]looker {
	all := map[int][]looker{}
	for _, s := range p.Steps {
		for _, t := range s.OwnGates() {
			for _, number := range s.LookedAt(t) {
				all[number] = append(all[number], looker{s, t})
			}
		}
	}
	return all
}

// forgetLookers takes out of receipts, before a step is published, that the gates
// passed which look at it: from then on that is true only once they are asked again,
// which a failure, a kill or the refusal of what they are about can prevent.
func (r *run) forgetLookers(number int) {
	hashes := map[*plan.Node]testHashes{}
	var owners []*plan.Node
	for _, l := range r.lookers[number] {
		n, hash := l.step.Node, r.hashes[r.tests[l.test].ID]
		if hashes[n] == nil {
			hashes[n] = r.passed(n)
			owners = append(owners, n)
		}
		delete(hashes[n], plan.TestOfHash(hash))
	}
	for _, n := range owners {
		if receipt, ok := r.receiptOf(n); ok {
			r.remember(n, receipt, hashes[n])
		}
	}
}

// rememberLate writes what came of late tests, and of gates of other steps, into
// the receipts of the nodes that remember them, which need not be steps of the plan.
func (r *run) rememberLate() {
	hashes := map[*plan.Node]testHashes{}
	var owners []*plan.Node
	results := slices.Clone(r.remote)
	for i, l := range r.plan.Late {
		results = append(results, remote{l.Owner, r.late[i]})
	}
	for _, of := range results {
		t := of.test
		if of.owner == nil || t == nil || t.Status == StatusSkipped {
			continue
		}
		if hashes[of.owner] == nil {
			receipt, ok := r.receiptOf(of.owner)
			if !ok {
				continue
			}
			hashes[of.owner] = readHashes(receipt.TestsHash)
			owners = append(owners, of.owner)
		}
		hashes[of.owner].note(r.hashes[t.ID], t.Status)
	}
	for _, n := range owners {
		receipt, _ := r.receiptOf(n)
		r.remember(n, receipt, hashes[n])
	}
}

// receiptOf gives the receipt of what this lake holds of a node now; false where
// it has none that a run wrote.
func (r *run) receiptOf(n *plan.Node) (lake.Receipt, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if receipt, ok := r.receipts[n.ID]; ok {
		return receipt, true
	}
	if r.o.State == nil {
		return lake.Receipt{}, false
	}
	held, ok := r.o.State.Nodes[n.Name]
	return held.Receipt, ok && !held.Foreign && held.Damage == nil
}

// remember writes into a receipt which tests passed. That it cannot be written
// costs the next run an audit, and is no failure of this one.
func (r *run) remember(n *plan.Node, receipt lake.Receipt, hashes testHashes) {
	if receipt.TestsHash == hashes.text() {
		return
	}
	receipt.TestsHash = hashes.text()
	if err := r.e.o.Lake.WriteReceipt(receipt); err != nil {
		r.e.emit(Event{Kind: EventLog, Level: "warn", Message: fmt.Sprintf("the receipt of %s does not record its tests: %v", n.Name, err)})
		return
	}
	r.mu.Lock()
	r.receipts[n.ID] = receipt
	r.mu.Unlock()
}
