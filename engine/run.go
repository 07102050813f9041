package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// EveryCore as RunOptions.Workers is one node a core, at most 8, whatever the
// project says.
const EveryCore = -1

// RunOptions say how a plan is run. The caller holds the lake's lock and has
// recovered the lake; State is what was published then.
type RunOptions struct {
	Command       string // for the result: run, build, test
	InvocationID  string
	RunStartedAt  time.Time
	State         *lake.State
	DeferLake     *lake.Lake // where plan.Deferred nodes are read; nil if nowhere
	Workers       int        // nodes at once; 0 is what the project says, EveryCore one a core, at most 8
	FailFast      bool
	FullRefresh   bool
	Force         bool // publish what comes out as it is published too
	StoreFailures bool
}

// Run builds what the plan says. The error is nil unless rbt could not start or
// finish; that nodes or tests failed is in the result.
func (e *Engine) Run(ctx context.Context, p *plan.Plan, o RunOptions) (_ *Result, err error) {
	r, err := e.newRun(ctx, p, o)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Action == plan.ActionRun }) {
		db, err := e.database(ctx)
		if err != nil { // a mistake in the settings is not one of every node
			return nil, err
		}
		db.narrow(ctx)
	}
	pins, err := r.pinDeferred()
	if err != nil {
		return nil, errors.Join(err, pins.Close())
	}
	defer func() { err = errors.Join(err, pins.Close()) }()
	r.catalog = newCatalog(e.o.Project, p.Graph, e.parser, r.publishedNode)
	r.catalog.recalls = e.schemas
	defer func() { err = errors.Join(err, r.widened(ctx)) }()
	defer e.o.Lake.ShareStaging(o.InvocationID)()
	return r.do(ctx)
}

// Test runs the tests of a plan on what is published, which it pins while it
// reads, without the lake's lock; it builds and changes nothing. The plan was
// made with Options.Tests.
func (e *Engine) Test(ctx context.Context, p *plan.Plan, o RunOptions) (_ *Result, err error) {
	r, err := e.newRun(ctx, p, o)
	if err != nil {
		return nil, err
	}
	r.reader = e.newReader(o.DeferLake)
	defer func() { err = errors.Join(err, r.reader.close()) }()
	r.catalog = newCatalog(e.o.Project, p.Graph, e.parser, r.reader.published)
	r.catalog.recalls = e.schemas
	return r.do(ctx)
}

// do runs the schedule and sums up.
func (r *run) do(ctx context.Context) (*Result, error) {
	e, total := r.e, r.total()
	e.emit(Event{Kind: EventRunStarted, Total: total, Result: r.result})
	if r.reader == nil {
		r.foresee(ctx)
	}
	stuck := r.schedule().do(ctx)
	r.abandon(ctx, stuck)
	r.told.rest()
	if ctx.Err() == nil && r.reader == nil {
		r.rememberLate()
	}
	r.result.Cancelled = ctx.Err() != nil
	r.result.Elapsed = e.o.Now().Sub(r.result.Started)
	for _, n := range r.result.Nodes {
		r.result.Tests = append(r.result.Tests, n.Tests...)
	}
	for _, t := range slices.Concat(r.late, r.unitTests) {
		if t != nil {
			r.result.Tests = append(r.result.Tests, t)
		}
	}
	var err error
	if len(stuck) == 0 {
		err = r.close()
	}
	e.emit(Event{Kind: EventRunFinished, Total: total, Result: r.result})
	if len(stuck) > 0 {
		e.silence()
	}
	return r.result, err
}

// run is one run of a plan.
type run struct {
	e       *Engine
	plan    *plan.Plan
	o       RunOptions
	catalog *catalog
	reader  *reader // of Test; nil where the lake is locked
	settler *plan.Settler
	tests   map[*project.Test]*plan.TestNode
	units   map[*project.UnitTest]*plan.TestNode
	hashes  map[string]string // of tests, by ID
	lookers map[int][]looker  // gates that look at a step, by its number

	mu        sync.Mutex
	sessions  map[int]*session         // by worker
	published map[string]publishedNode // by name in lower case
	receipts  map[string]lake.Receipt  // of nodes, as this run wrote or found them
	built     map[*plan.Node]bool      // built by this run
	begun     map[int]*NodeResult      // steps as they were started, by place

	benches   map[int]*unitBench // by worker
	unitOnce  sync.Mutex
	unitKnown map[string][]lake.Column // columns of what unit tests' models read
	foreseen  map[*plan.Node]error     // what is known to fail before anything was built
	foretold  *checker                 // what was learnt then; nil where nothing was

	failedOnce sync.Once
	noneFailed bool // no earlier run kept a result that was refused

	result    *Result
	late      []*TestResult // by place in plan.Late; nil where it did not run
	remote    []remote      // gates that held and that other receipts remember
	unitTests []*TestResult // by place in plan.UnitTests
	told      tellInOrder   // of late and unit tests
}

func (e *Engine) newRun(ctx context.Context, p *plan.Plan, o RunOptions) (*run, error) {
	if e.o.Lake == nil {
		return nil, errors.New("run a plan: the engine was opened without a lake")
	}
	o.Workers = workersFor(o.Workers, e.o.Project.Engine)
	r := &run{
		e: e, plan: p, o: o, sessions: map[int]*session{}, published: map[string]publishedNode{}, receipts: map[string]lake.Receipt{},
		built: map[*plan.Node]bool{}, begun: map[int]*NodeResult{}, units: map[*project.UnitTest]*plan.TestNode{}, benches: map[int]*unitBench{},
		unitTests: make([]*TestResult, len(p.UnitTests)), tests: map[*project.Test]*plan.TestNode{}, hashes: p.TestHashes(), late: make([]*TestResult, len(p.Late)), settler: p.NewSettler(),
		result: &Result{InvocationID: o.InvocationID, Command: o.Command, Started: e.o.Now(), Nodes: make([]*NodeResult, len(p.Steps))},
	}
	for _, t := range p.Graph.Tests() {
		if t.Test != nil {
			r.tests[t.Test] = t
		} else {
			r.units[t.Unit] = t
		}
	}
	r.lookers = lookers(p)
	r.addPublished(e.o.Lake, o.State)
	for i, s := range p.Steps {
		r.result.Nodes[i] = newNodeResult(s)
	}
	return r, ctx.Err()
}

// addPublished notes what the lake holds.
func (r *run) addPublished(l *lake.Lake, state *lake.State) {
	if state == nil {
		return
	}
	for _, name := range sortedKeys(state.Nodes) {
		r.published[strings.ToLower(name)] = inLake(l.Root(), state.Nodes[name])
	}
}

// inLake makes the files of a published node known as they lie in the lake.
func inLake(root string, n lake.Node) publishedNode {
	return publishedNode{
		receipt: n.Receipt, foreign: n.Foreign, damage: n.Damage,
		files: func(relation string) []string { return absolute(root, n.Receipt, relation) },
	}
}

func (r *run) publishedNode(n *plan.Node) (publishedNode, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pub, ok := r.published[strings.ToLower(n.Name)]
	return pub, ok, nil
}

// publish notes what a step published.
func (r *run) publish(s *plan.Step, receipt lake.Receipt) {
	r.mu.Lock()
	r.published[strings.ToLower(s.Node.Name)] = inLake(r.e.o.Lake.Root(), lake.Node{Receipt: receipt})
	r.receipts[s.Node.ID] = receipt
	r.mu.Unlock()
	r.settler.Done(s, &receipt)
	r.catalog.forget(s.Node)
}

// session gives the worker's connection.
func (r *run) session(ctx context.Context, worker int) (*session, error) {
	r.mu.Lock()
	s := r.sessions[worker]
	r.mu.Unlock()
	if s != nil {
		return s, nil
	}
	db, err := r.e.database(ctx)
	if err != nil {
		return nil, err
	}
	if s, err = db.session(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[worker] = s
	return s, nil
}

func (r *run) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for _, w := range sortedKeys(r.sessions) {
		err = errors.Join(err, r.sessions[w].Close())
	}
	err = errors.Join(err, r.closeBenches())
	if err != nil {
		return fmt.Errorf("close the SQL engine: %w", err)
	}
	return nil
}

// schedule turns steps, relays, late tests, unit tests and guards into jobs, in
// this order: the plan's numbers less one.
func (r *run) schedule() schedule {
	p := r.plan
	jobs := make([]job, 0, len(p.Steps)+len(p.Relays)+len(p.Late))
	for _, s := range p.Steps {
		jobs = append(jobs, r.foreseenJob(s))
	}
	for _, relay := range p.Relays {
		jobs = append(jobs, job{after: places(relay.After)})
	}
	for _, t := range p.Late {
		jobs = append(jobs, job{after: places(t.After)})
	}
	for range p.UnitTests {
		jobs = append(jobs, job{})
	}
	for _, g := range p.Guards {
		guard := job{}
		for _, k := range g.Tests {
			guard.after = append(guard.after, len(p.Steps)+len(p.Relays)+k)
		}
		for _, i := range places(g.Steps) {
			jobs[i].after = append(jobs[i].after, len(jobs))
		}
		jobs = append(jobs, guard)
	}
	return schedule{
		jobs: jobs, workers: r.o.Workers, failFast: r.o.FailFast, grace: r.e.o.Grace,
		run: r.job, crashed: r.crashed, skip: r.skip,
	}
}

func places(numbers []int) []int {
	out := make([]int, len(numbers))
	for i, n := range numbers {
		out[i] = n - 1
	}
	return out
}

// job runs job i of the schedule.
func (r *run) job(ctx context.Context, worker, i int) jobResult {
	steps, relays, late := len(r.plan.Steps), len(r.plan.Relays), len(r.plan.Late)
	switch {
	case i < steps:
		return r.step(ctx, worker, r.plan.Steps[i])
	case i < steps+relays:
		return jobResult{}
	case i < steps+relays+late:
		return r.lateTest(ctx, worker, i-steps-relays)
	}
	k := i - steps - relays - late
	if k >= len(r.plan.UnitTests) {
		return jobResult{}
	}
	t := r.unitTest(ctx, worker, r.plan.UnitTests[k])
	if ctx.Err() != nil {
		t.Status, t.Err = StatusSkipped, nil
	}
	return jobResult{commit: func() { r.tested(late+k, t) }}
}

// step runs a step; what it came to is committed at its end.
func (r *run) step(ctx context.Context, worker int, s *plan.Step) jobResult {
	n := newNodeResult(s)
	n.Worker, n.Started = worker, r.e.o.Now()
	started := *n
	r.mu.Lock()
	r.begun[s.Number-1] = &started
	r.mu.Unlock()
	r.e.emit(Event{Kind: EventNodeStarted, Number: s.Number, Total: r.total(), Node: &started})
	end := func(err error) jobResult {
		n.Elapsed = r.e.o.Now().Sub(n.Started)
		switch {
		case err == nil:
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			n.Status = StatusCancelled
		default:
			n.Status, n.Err = StatusError, err
		}
		return jobResult{failed: err != nil, commit: func() { r.finished(s, n) }}
	}
	commit, err := r.runStep(ctx, worker, s, n)
	if err != nil || commit == nil {
		return end(err)
	}
	r.publishing(s, started)
	return jobResult{rest: func() jobResult { return end(commit()) }}
}

// publishing notes that only the publish of a step is left to do.
func (r *run) publishing(s *plan.Step, begun NodeResult) {
	begun.Notes = []string{"it was being published, and the disk did not answer in time: the next run finds the old version or the new one"}
	r.mu.Lock()
	r.begun[s.Number-1] = &begun
	r.mu.Unlock()
}

func (r *run) total() int { return len(r.plan.Steps) + len(r.plan.Late) + len(r.plan.UnitTests) }

func (r *run) finished(s *plan.Step, n *NodeResult) {
	r.result.Nodes[s.Number-1] = n
	r.e.emit(Event{Kind: EventNodeFinished, Number: s.Number, Total: r.total(), Node: n})
}

// crashed makes a failed node of a panic.
func (r *run) crashed(i int, value any, stack []byte) jobResult {
	err := fmt.Errorf("a defect of rbt: %v", value)
	r.e.emit(Event{Kind: EventLog, Level: "debug", Message: string(stack)})
	if i < len(r.plan.Steps) {
		s := r.plan.Steps[i]
		n := newNodeResult(s)
		n.Status, n.Err = StatusError, err
		return jobResult{commit: func() { r.finished(s, n) }}
	}
	if k := i - len(r.plan.Steps) - len(r.plan.Relays); k >= 0 {
		t := r.unasked(k)
		t.Status, t.Err = StatusError, err
		return jobResult{commit: func() { r.tested(k, t) }}
	}
	return jobResult{}
}

// unasked is the result of late or unit test k before it was asked.
func (r *run) unasked(k int) *TestResult {
	if k < len(r.plan.Late) {
		t := newTestResult(r.plan.Late[k].Test, r.tests[r.plan.Late[k].Test])
		t.AfterPublish = len(r.plan.Late[k].After) > 0
		return t
	}
	u := r.plan.UnitTests[k-len(r.plan.Late)]
	return newUnitResult(r.units[u])
}

// skip notes a step or test that will not run.
func (r *run) skip(i, cause int) {
	because := r.nameOf(cause)
	status := StatusSkipped
	if cause == noCause {
		status = StatusCancelled
	}
	if i < len(r.plan.Steps) {
		s := r.plan.Steps[i]
		n := newNodeResult(s)
		n.Status, n.Because = status, because
		r.finished(s, n)
		return
	}
	k := i - len(r.plan.Steps) - len(r.plan.Relays)
	if k < 0 || k >= len(r.plan.Late)+len(r.plan.UnitTests) {
		return
	}
	t := r.unasked(k)
	t.Status, t.Because = StatusSkipped, because
	r.tested(k, t)
}

// nameOf names job i as messages do; "" of no job.
func (r *run) nameOf(i int) string {
	k := i - len(r.plan.Steps) - len(r.plan.Relays)
	switch {
	case i < 0 || k < 0 && i >= len(r.plan.Steps):
		return ""
	case i < len(r.plan.Steps):
		return r.plan.Steps[i].Node.Display()
	}
	return r.unasked(k).Name
}

// abandon marks what still runs after the grace as cancelled.
func (r *run) abandon(_ context.Context, stuck []int) {
	if len(stuck) == 0 {
		return
	}
	r.e.mu.Lock()
	r.e.stuck = true
	r.e.mu.Unlock()
	var names []string
	for _, i := range stuck {
		if i >= len(r.plan.Steps) {
			continue
		}
		s := r.plan.Steps[i]
		n := newNodeResult(s)
		r.mu.Lock()
		if begun := r.begun[i]; begun != nil {
			n.Worker, n.Started, n.Elapsed, n.Notes = begun.Worker, begun.Started, r.e.o.Now().Sub(begun.Started), begun.Notes
		}
		r.mu.Unlock()
		n.Status = StatusCancelled
		if n.Notes == nil {
			n.Notes = []string{"its query could not be interrupted and ends with the process"}
		}
		r.finished(s, n)
		names = append(names, s.Node.Display())
	}
	if len(names) > 0 {
		r.e.emit(Event{Kind: EventLog, Level: "warn", Message: "still running: " + strings.Join(names, ", ")})
	}
}

// runStep decides and does what is to be done with a step. Where it builds, what
// it gives is still to be called to publish that: it waits for the disk and needs
// no session.
func (r *run) runStep(ctx context.Context, worker int, s *plan.Step, n *NodeResult) (commit func() error, err error) {
	if err := r.hopeless(s); err != nil {
		return nil, err
	}
	d := plan.Decision{Action: s.Action, Reasons: s.Reasons, Fingerprint: s.Fingerprint, Inputs: s.Inputs, Pending: s.Pending}
	if s.Pending || s.Action == plan.ActionRunIfChanged {
		d = r.settler.Decide(s)
	}
	n.Reason = strings.Join(d.Reasons, "; ")
	switch d.Action {
	case plan.ActionUnchanged:
		n.Status = StatusUnchanged
		r.keep(s)
		if looked := r.lookedAtAnew(s); looked != "" {
			n.Reason = "its tests look at " + looked + ", which was built"
			return nil, r.auditStep(ctx, worker, s, n)
		}
		return nil, nil
	case plan.ActionAudit:
		r.keep(s)
		return nil, r.auditStep(ctx, worker, s, n)
	}
	n.Incremental = s.Incremental
	session, err := r.session(ctx, worker)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.built[s.Node] = true
	r.mu.Unlock()
	b := builder{run: r, step: s, decision: d, result: n, session: session}
	return b.build(ctx)
}

// keep notes a step whose published data stays.
func (r *run) keep(s *plan.Step) {
	if s.Receipt == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, written := r.receipts[s.Node.ID]; !written {
		r.receipts[s.Node.ID] = *s.Receipt
	}
}

func newNodeResult(s *plan.Step) *NodeResult {
	n := &NodeResult{
		ID: s.Node.ID, Name: s.Node.Name, Display: s.Node.Display(), ResourceType: string(s.Node.Kind), File: s.Node.File, Status: StatusCancelled,
		Reason: strings.Join(s.Reasons, "; "),
	}
	if s.Node.Model != nil {
		n.Materialization = string(s.Node.Model.Materialization)
	} else {
		n.Materialization = string(s.Node.Kind)
	}
	return n
}

// failedDir is where staged data that failed its audit is kept.
func (r *run) failedDir() string {
	if !r.o.StoreFailures {
		return ""
	}
	return filepath.Join(r.e.o.Project.TargetDir, "failed")
}

// inFile gives diagnostics that know no place the file that they are about.
func inFile(err error, file string) error {
	var list diag.List
	var one diag.Diagnostic
	switch {
	case errors.As(err, &list):
		placed := slices.Clone(list)
		for i := range placed {
			if placed[i].Pos.IsZero() {
				placed[i].Pos.File = file
			}
		}
		return placed
	case errors.As(err, &one):
		if one.Pos.IsZero() {
			one.Pos.File = file
		}
		return one
	}
	return err
}

// workersFor is how many nodes are built at once: as asked, else as the project
// says, else one a core, at most eight, beyond which small models only wait for
// the disk.
func workersFor(asked int, cfg project.Engine) int {
	switch {
	case asked > 0:
		return asked
	case asked == 0 && cfg.Threads > 0:
		return cfg.Threads
	default:
		return min(runtime.GOMAXPROCS(0), 8)
	}
}
