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
	for _, t := range s.Gates {
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

// untested gives the gates and unit tests of a step that are to be asked about
// what is published.
func (r *run) untested(s *plan.Step) (gates []*project.Test, units []*project.UnitTest) {
	passed := readHashes(s.Receipt.TestsHash)
	gates = slices.DeleteFunc(slices.Clone(s.Gates), func(t *project.Test) bool { return !r.mustAsk(passed, r.tests[t]) })
	units = slices.DeleteFunc(slices.Clone(s.UnitTests), func(u *project.UnitTest) bool { return !r.mustAsk(passed, r.units[u]) })
	return gates, units
}

// rememberLate writes what came of late tests into the receipts of the nodes
// that remember them, which need not be steps of the plan.
func (r *run) rememberLate() {
	hashes := map[*plan.Node]testHashes{}
	var owners []*plan.Node
	for i, l := range r.plan.Late {
		t := r.late[i]
		if l.Owner == nil || t == nil || t.Status == StatusSkipped {
			continue
		}
		if hashes[l.Owner] == nil {
			receipt, ok := r.receiptOf(l.Owner)
			if !ok {
				continue
			}
			hashes[l.Owner] = readHashes(receipt.TestsHash)
			owners = append(owners, l.Owner)
		}
		hashes[l.Owner].note(r.hashes[t.ID], t.Status)
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
