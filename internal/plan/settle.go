package plan

import (
	"sync"

	"rbt/internal/lake"
)

// Settler settles, while the steps of a plan run, what depends on what their
// parents came to. It may be used by many goroutines.
type Settler struct {
	mu  sync.Mutex
	ids *identities
}

// NewSettler makes the settler of one run of the plan.
func (p *Plan) NewSettler() *Settler {
	ids := *p.ids
	ids.running = true
	ids.settled = make([]*lake.Receipt, len(ids.steps))
	ids.forget()
	return &Settler{ids: &ids}
}

// Done notes what is published of a step that was built.
func (s *Settler) Done(step *Step, r *lake.Receipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.settled[step.Node.index] = r
}

// Decide settles a step whose parents are all over: what it is made from and,
// for ActionRunIfChanged, whether it runs. A step that the plan decided to run
// runs; of it the fingerprint and inputs are settled.
func (s *Settler) Decide(step *Step) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := step.audited(s.ids.compare(step))
	switch {
	case step.Action == ActionRun:
		d.Action, d.Reasons = ActionRun, step.Reasons
	case d.Action != ActionRun:
		s.ids.settled[step.Node.index] = step.Receipt
	}
	return d
}
