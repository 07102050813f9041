package engine

import (
	"container/heap"
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// job is one unit of work of a schedule. After lists the jobs, by index, that
// must be over before it may start, and none of which may have failed. Looks lists
// others that must be over, however they ended.
type job struct {
	after []int
	looks []int
	// urgent jobs come before all others that may start.
	urgent bool
}

// jobResult is how a job ended. Commit, where it is not nil, is called once,
// one at a time over all jobs, and not at all when the schedule was abandoned:
// what a job changes outside of itself belongs there.
//
// Rest, where it is not nil, is what is left to do and only waits: for a disk. It
// gives the result of the job, whose own is not looked at, and the worker may take
// another job meanwhile. The job is not over, and nothing that waits for it
// starts, until rest has returned.
type jobResult struct {
	failed bool
	commit func()
	rest   func() jobResult
}

// schedule is work to be done in the order that jobs demand, by several
// workers. It knows nothing of what a job is.
type schedule struct {
	jobs     []job
	workers  int
	failFast bool // hand out no more work after the first failure
	// grace is how long a cancelled schedule waits for jobs that do not return.
	grace time.Duration
	// run does job i; worker counts from 0. It is called at most once a job.
	run func(ctx context.Context, worker, i int) jobResult
	// crashed makes the result of a job whose run panicked.
	crashed func(i int, value any, stack []byte) jobResult
	// skip is told of every job that will not run, one call at a time: because
	// of the failed job cause, or, with -1, because the schedule was cancelled.
	skip func(i, cause int)
}

// noCause stands for "nothing failed before it".
const noCause = -1

// scheduler is the state of one schedule: counters of what is still to be
// waited for, a heap of what is ready, one mutex.
type scheduler struct {
	schedule
	mu        sync.Mutex
	wake      *sync.Cond
	ready     readyHeap
	children  [][]int
	pending   []int // jobs still to be waited for
	cause     []int // root cause of a failed or skipped job
	over      []bool
	running   map[int]bool
	waiting   int // jobs whose rest is done beside the workers
	left      int // jobs that are not over
	stopped   bool
	firstFail int
	abandoned bool
}

// do runs the schedule and returns when every job is over, or, after ctx was
// cancelled, when the running ones have returned or the grace is over. It
// returns the jobs that were still running then, ascending; none normally.
func (s schedule) do(ctx context.Context) (stuck []int) {
	r := newScheduler(s)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		var workers sync.WaitGroup
		for w := range max(1, s.workers) {
			workers.Go(func() { r.work(ctx, w, &workers) })
		}
		workers.Wait()
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		r.stop()
		timer := time.NewTimer(s.grace)
		defer timer.Stop()
		select {
		case <-finished:
		case <-timer.C:
		}
	}
	return r.close()
}

func newScheduler(s schedule) *scheduler {
	n := len(s.jobs)
	r := &scheduler{
		schedule: s, children: make([][]int, n), pending: make([]int, n), cause: make([]int, n),
		over: make([]bool, n), running: map[int]bool{}, left: n, firstFail: noCause,
	}
	r.wake = sync.NewCond(&r.mu)
	for i, j := range s.jobs {
		r.cause[i] = noCause
		r.pending[i] = len(j.after) + len(j.looks)
		for _, p := range j.after {
			r.children[p] = append(r.children[p], i)
		}
		for _, p := range j.looks {
			r.children[p] = append(r.children[p], i)
		}
	}
	r.ready = readyHeap{rank: r.ranks()}
	for i := range s.jobs {
		if r.pending[i] == 0 {
			heap.Push(&r.ready, i)
		}
	}
	return r
}

// maxWaiting bounds how many jobs may be left to their rest at once: enough to
// keep a disk busy, few enough that what they hold stays small.
const maxWaiting = 16

// work takes jobs until none is left. A rest is left to another goroutine, which
// others waits for. Where there are too many, or only one worker, whose order
// shall be the same every time, the worker does it itself.
func (r *scheduler) work(ctx context.Context, worker int, others *sync.WaitGroup) {
	for {
		i, ok := r.take(ctx)
		if !ok {
			return
		}
		res := r.safely(i, func() jobResult { return r.run(ctx, worker, i) })
		switch {
		case res.rest == nil:
			r.finish(i, res)
		case r.workers > 1 && r.mayWait():
			others.Go(func() {
				res := r.safely(i, res.rest)
				r.waited()
				r.finish(i, res)
			})
		default:
			r.finish(i, r.safely(i, res.rest))
		}
	}
}

// mayWait takes one of the places for jobs that only wait, where one is free.
func (r *scheduler) mayWait() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == maxWaiting {
		return false
	}
	r.waiting++
	return true
}

func (r *scheduler) waited() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
}

// take waits for a job that is ready. It reports false when no more will come.
func (r *scheduler) take(ctx context.Context) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if r.stopped || r.left == 0 || ctx.Err() != nil {
			return 0, false
		}
		if r.ready.Len() > 0 {
			i := heap.Pop(&r.ready).(int)
			r.running[i] = true
			return i, true
		}
		r.wake.Wait()
	}
}

// safely makes a failed job of one that panics.
func (r *scheduler) safely(i int, do func() jobResult) (res jobResult) {
	defer func() {
		if v := recover(); v != nil {
			res = r.crashed(i, v, debug.Stack())
			res.failed = true
		}
	}()
	return do()
}

// finish records how job i ended, and skips or releases what waits for it.
func (r *scheduler) finish(i int, res jobResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		return
	}
	delete(r.running, i)
	if res.commit != nil {
		res.commit()
	}
	if res.failed {
		r.cause[i] = i
		if r.firstFail == noCause {
			r.firstFail = i
		}
		r.stopped = r.stopped || r.failFast
	}
	// A list and no recursion: chains may be thousands of jobs long.
	for done := []int{i}; len(done) > 0; {
		j := done[0]
		done = done[1:]
		r.over[j] = true
		r.left--
		for _, c := range r.children[j] {
			if r.pending[c]--; r.pending[c] > 0 {
				continue
			}
			if cause := r.rootCause(c); cause != noCause {
				r.cause[c] = cause
				r.skip(c, cause)
				done = append(done, c)
			} else {
				heap.Push(&r.ready, c)
			}
		}
	}
	r.wake.Broadcast()
}

// rootCause is the failed job because of which job i cannot run: of several the
// one that comes first in the schedule.
func (r *scheduler) rootCause(i int) int {
	cause := noCause
	for _, p := range r.jobs[i].after {
		if c := r.cause[p]; c != noCause && (cause == noCause || c < cause) {
			cause = c
		}
	}
	return cause
}

func (r *scheduler) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.wake.Broadcast()
}

// close skips what never started and gives up what still runs.
func (r *scheduler) close() (stuck []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned = true
	for i := range r.jobs {
		if r.running[i] {
			stuck = append(stuck, i)
			continue
		}
		if r.over[i] {
			continue
		}
		cause := noCause
		if r.failFast {
			cause = r.firstFail
		}
		r.skip(i, cause)
	}
	return stuck
}

// ranks gives each job its place in the order of preference: the longest
// remaining path first, then depth first, so that what was begun is finished
// early and temporary data stays small.
func (r *scheduler) ranks() []int {
	n := len(r.jobs)
	order := r.topological()
	length := make([]int, n)
	for _, i := range slices.Backward(order) {
		for _, c := range r.children[i] {
			length[i] = max(length[i], length[c]+1)
		}
	}
	depth := r.depthFirst()
	byRank := slices.Clone(order)
	slices.SortFunc(byRank, func(a, b int) int {
		switch {
		case r.jobs[a].urgent && !r.jobs[b].urgent:
			return -1
		case r.jobs[b].urgent && !r.jobs[a].urgent:
			return 1
		}
		if length[a] != length[b] {
			return length[b] - length[a]
		}
		return depth[a] - depth[b]
	})
	rank := make([]int, n)
	for place, i := range byRank {
		rank[i] = place
	}
	return rank
}

func (r *scheduler) topological() []int {
	waiting := slices.Clone(r.pending)
	order := make([]int, 0, len(r.jobs))
	for i, n := range waiting {
		if n == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, c := range r.children[order[k]] {
			if waiting[c]--; waiting[c] == 0 {
				order = append(order, c)
			}
		}
	}
	if len(order) != len(r.jobs) {
		panic("engine: the jobs of a schedule wait for each other in a circle")
	}
	return order
}

// depthFirst numbers the jobs in the order of a depth-first walk from the first
// root.
func (r *scheduler) depthFirst() []int {
	number := make([]int, len(r.jobs))
	seen := make([]bool, len(r.jobs))
	next := 0
	var stack []int
	for root := range r.jobs {
		if len(r.jobs[root].after)+len(r.jobs[root].looks) > 0 {
			continue
		}
		stack = append(stack, root)
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[i] {
				continue
			}
			seen[i] = true
			number[i] = next
			next++
			for _, c := range slices.Backward(r.children[i]) {
				stack = append(stack, c)
			}
		}
	}
	return number
}

// readyHeap holds the jobs that may start, the best rank on top.
type readyHeap struct {
	rank []int
	jobs []int
}

func (h readyHeap) Len() int           { return len(h.jobs) }
func (h readyHeap) Less(a, b int) bool { return h.rank[h.jobs[a]] < h.rank[h.jobs[b]] }
func (h readyHeap) Swap(a, b int)      { h.jobs[a], h.jobs[b] = h.jobs[b], h.jobs[a] }

// Push adds a job; it belongs to container/heap.
func (h *readyHeap) Push(x any) { h.jobs = append(h.jobs, x.(int)) }

// Pop takes the last job; it belongs to container/heap.
func (h *readyHeap) Pop() any {
	last := h.jobs[len(h.jobs)-1]
	h.jobs = h.jobs[:len(h.jobs)-1]
	return last
}
