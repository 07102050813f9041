package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// logged is a schedule whose jobs only write down what happens to them.
type logged struct {
	mu      sync.Mutex
	started []int
	skipped map[int]int
}

func (l *logged) schedule(jobs []job, workers int, fail func(i int) bool) schedule {
	l.skipped = map[int]int{}
	return schedule{
		jobs: jobs, workers: workers, grace: time.Minute,
		run: func(_ context.Context, _, i int) jobResult {
			l.mu.Lock()
			l.started = append(l.started, i)
			l.mu.Unlock()
			return jobResult{failed: fail(i)}
		},
		crashed: func(int, any, []byte) jobResult { return jobResult{} },
		skip:    func(i, cause int) { l.skipped[i] = cause },
	}
}

func never(int) bool { return false }

func TestScheduleOrder(t *testing.T) {
	tests := []struct {
		name    string
		jobs    []job
		fail    []int
		started []int
		skipped map[int]int
	}{
		{"empty", nil, nil, nil, map[int]int{}},
		{"longest path first", []job{{}, {}, {after: []int{1}}, {after: []int{2}}}, nil, []int{1, 2, 0, 3}, map[int]int{}},
		{"depth first", []job{{}, {}, {after: []int{0}}, {after: []int{1}}}, nil, []int{0, 1, 2, 3}, map[int]int{}},
		{"root cause", []job{{}, {after: []int{0}}, {after: []int{1}}, {after: []int{2}}, {}}, []int{1}, []int{0, 1, 4}, map[int]int{2: 1, 3: 1}},
		{"two causes", []job{{}, {}, {after: []int{0, 1}}, {after: []int{2}}}, []int{0, 1}, []int{0, 1}, map[int]int{2: 0, 3: 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var l logged
			stuck := l.schedule(test.jobs, 1, func(i int) bool { return slices.Contains(test.fail, i) }).do(context.Background())
			if diff := cmp.Diff(test.started, l.started); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.skipped, l.skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
			if len(stuck) > 0 {
				t.Errorf("stuck: %v", stuck)
			}
		})
	}
}

func TestScheduleFailFast(t *testing.T) {
	var l logged
	s := l.schedule([]job{{}, {}, {after: []int{0}}, {}}, 1, func(i int) bool { return i == 0 })
	s.failFast = true
	s.do(context.Background())
	if diff := cmp.Diff([]int{0}, l.started); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: 0, 2: 0, 3: 0}, l.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestSchedulePanic(t *testing.T) {
	var l logged
	s := l.schedule([]job{{}, {after: []int{0}}, {}}, 2, never)
	s.run = func(_ context.Context, _, i int) jobResult {
		if i == 0 {
			panic("boom")
		}
		return jobResult{}
	}
	var got string
	s.crashed = func(i int, v any, stack []byte) jobResult {
		return jobResult{commit: func() { got = fmt.Sprintf("%d: %v, stack %v", i, v, len(stack) > 0) }}
	}
	s.do(context.Background())
	if want := "0: boom, stack true"; got != want {
		t.Errorf("crashed = %q, want %q", got, want)
	}
	if diff := cmp.Diff(map[int]int{1: 0}, l.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestScheduleCancel(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(context.Background())
	var l logged
	s := l.schedule([]job{{}, {after: []int{0}}, {after: []int{1}}}, 2, never)
	s.run = func(ctx context.Context, _, i int) jobResult {
		if i == 1 {
			cancel()
			<-ctx.Done()
			return jobResult{failed: true}
		}
		return jobResult{}
	}
	if stuck := s.do(ctx); len(stuck) > 0 {
		t.Errorf("stuck: %v", stuck)
	}
	if _, ok := l.skipped[2]; !ok {
		t.Error("job 2 was not skipped")
	}
}

// TestScheduleAbandons: a job that does not return is given up, and what it
// does later changes nothing.
func TestScheduleAbandons(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(context.Background())
	release, returned := make(chan struct{}), make(chan struct{})
	var l logged
	s := l.schedule([]job{{}, {}}, 1, never)
	s.grace = 0
	committed := false
	s.run = func(context.Context, int, int) jobResult {
		cancel()
		<-release
		return jobResult{commit: func() { committed = true }}
	}
	stuck := s.do(ctx)
	go func() { close(release); close(returned) }()
	<-returned
	if diff := cmp.Diff([]int{0}, stuck); diff != "" {
		t.Errorf("stuck (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: noCause}, l.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if committed {
		t.Error("a job that was given up committed")
	}
}

// TestScheduleLarge: 10,000 jobs, each after what it waits for, whatever the
// number of workers; and the same order every time with one.
func TestScheduleLarge(t *testing.T) {
	const n = 10_000
	jobs := make([]job, n)
	for i := range jobs {
		for _, d := range []int{1, 7, 100, 1013, 4001} {
			if i >= d && (i*d)%3 != 0 {
				jobs[i].after = append(jobs[i].after, i-d)
			}
		}
	}
	var first []int
	for _, workers := range []int{1, 1, 8} {
		var l logged
		l.schedule(jobs, workers, never).do(context.Background())
		checkOrder(t, jobs, &l)
		if workers > 1 {
			continue
		}
		if first == nil {
			first = l.started
		} else if !slices.Equal(first, l.started) {
			t.Error("one worker did the same schedule in two orders")
		}
	}
}

func checkOrder(t interface{ Errorf(string, ...any) }, jobs []job, l *logged) {
	if len(l.started)+len(l.skipped) != len(jobs) {
		t.Errorf("%d started and %d skipped of %d", len(l.started), len(l.skipped), len(jobs))
	}
	place := make([]int, len(jobs))
	for k, i := range l.started {
		place[i] = k + 1
	}
	for i, j := range jobs {
		for _, p := range j.after {
			if place[i] > 0 && (place[p] == 0 || place[p] > place[i]) {
				t.Errorf("job %d started before %d was over", i, p)
			}
		}
	}
}

func TestScheduleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "jobs")
		jobs := make([]job, n)
		for i := range jobs {
			for p := range i {
				if rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
					jobs[i].after = append(jobs[i].after, p)
				}
			}
		}
		fails := rapid.SliceOfN(rapid.IntRange(0, 9), n, n).Draw(t, "fails")
		rests := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "rests")
		var l logged
		s := l.schedule(jobs, rapid.IntRange(1, 4).Draw(t, "workers"), func(i int) bool { return fails[i] == 0 })
		whole := s.run
		s.run = func(ctx context.Context, worker, i int) jobResult {
			res := whole(ctx, worker, i)
			if !rests[i] {
				return res
			}
			return jobResult{rest: func() jobResult { return res }}
		}
		s.do(context.Background())
		checkOrder(t, jobs, &l)
		cause := make([]int, n)
		for i := range jobs {
			cause[i] = noCause
			for _, p := range jobs[i].after {
				if c := cause[p]; c != noCause && (cause[i] == noCause || c < cause[i]) {
					cause[i] = c
				}
			}
			if got, ok := l.skipped[i]; ok != (cause[i] != noCause) || ok && got != cause[i] {
				t.Fatalf("job %d: skipped %v because of %d, want %d", i, ok, got, cause[i])
			}
			if cause[i] == noCause && fails[i] == 0 {
				cause[i] = i
			}
		}
	})
}

// TestScheduleRest: what only waits keeps no worker, and what waits for a job
// starts after its rest.
func TestScheduleRest(t *testing.T) {
	defer goleak.VerifyNone(t)
	const n = 8
	jobs := make([]job, n+1)
	for i := range n {
		jobs[n].after = append(jobs[n].after, i)
	}
	var l logged
	s := l.schedule(jobs, 2, never)
	whole := s.run
	var all sync.WaitGroup
	all.Add(n)
	rested := make([]bool, n)
	s.run = func(ctx context.Context, worker, i int) jobResult {
		whole(ctx, worker, i)
		if i == n {
			l.mu.Lock()
			defer l.mu.Unlock()
			return jobResult{failed: slices.Contains(rested, false)}
		}
		all.Done()
		return jobResult{rest: func() jobResult {
			all.Wait() // on two workers: not before six others were let go
			l.mu.Lock()
			defer l.mu.Unlock()
			rested[i] = true
			return jobResult{}
		}}
	}
	failed := false
	s.skip = func(int, int) { failed = true }
	s.do(context.Background())
	if failed || len(l.started) != n+1 || l.started[n] != n || slices.Contains(rested, false) {
		t.Errorf("started %v, rested %v", l.started, rested)
	}
}

// TestScheduleRestBound: more rests than may wait are done by the workers.
func TestScheduleRestBound(t *testing.T) {
	const n, workers = 200, 2
	var l logged
	s := l.schedule(make([]job, n), workers, never)
	var mu sync.Mutex
	at, most, done := 0, 0, 0
	full := make(chan struct{})
	s.run = func(context.Context, int, int) jobResult {
		return jobResult{rest: func() jobResult {
			mu.Lock()
			at++
			if most = max(most, at); at == maxWaiting+workers {
				close(full)
			}
			mu.Unlock()
			<-full
			mu.Lock()
			defer mu.Unlock()
			at--
			done++
			return jobResult{}
		}}
	}
	s.do(context.Background())
	if most != maxWaiting+workers || done != n {
		t.Errorf("at most %d rests at once, %d done; want %d, %d", most, done, maxWaiting+workers, n)
	}
}

// TestScheduleRestOneWorker: one worker ends a job, its rest included, before it
// begins another.
func TestScheduleRestOneWorker(t *testing.T) {
	var l logged
	s := l.schedule([]job{{}, {after: []int{0}}, {}, {after: []int{2}}}, 1, never)
	var order []string
	s.run = func(_ context.Context, _, i int) jobResult {
		order = append(order, fmt.Sprint("run ", i))
		return jobResult{rest: func() jobResult {
			order = append(order, fmt.Sprint("rest ", i))
			return jobResult{commit: func() { order = append(order, fmt.Sprint("over ", i)) }}
		}}
	}
	s.do(context.Background())
	var want []string
	for _, i := range []int{0, 2, 1, 3} {
		want = append(want, fmt.Sprint("run ", i), fmt.Sprint("rest ", i), fmt.Sprint("over ", i))
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestScheduleRestFails: a rest that fails or panics fails its job, and failing
// fast holds for it too.
func TestScheduleRestFails(t *testing.T) {
	for _, workers := range []int{1, 4} {
		for _, panics := range []bool{false, true} {
			var l logged
			s := l.schedule([]job{{}, {after: []int{0}}, {after: []int{1}}}, workers, never)
			s.failFast = true
			s.run = func(context.Context, int, int) jobResult {
				return jobResult{rest: func() jobResult {
					if panics {
						panic("boom")
					}
					return jobResult{failed: true}
				}}
			}
			s.do(context.Background())
			if diff := cmp.Diff(map[int]int{1: 0, 2: 0}, l.skipped); diff != "" {
				t.Errorf("%d workers, panics %v: skipped (-want +got):\n%s", workers, panics, diff)
			}
		}
	}
}

// TestScheduleRestCancel: a cancelled schedule waits for rests that are under way,
// and gives them up after the grace.
func TestScheduleRestCancel(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, grace := range []time.Duration{time.Minute, 0} {
		ctx, cancel := context.WithCancel(context.Background())
		var l logged
		s := l.schedule([]job{{}, {after: []int{0}}}, 2, never)
		s.grace = grace
		release := make(chan struct{})
		var committed atomic.Bool
		s.run = func(context.Context, int, int) jobResult {
			return jobResult{rest: func() jobResult {
				cancel()
				if grace == 0 {
					<-release
				}
				return jobResult{commit: func() { committed.Store(true) }}
			}}
		}
		stuck := s.do(ctx)
		close(release)
		var want []int
		if grace == 0 {
			want = []int{0}
		}
		if diff := cmp.Diff(want, stuck); diff != "" || committed.Load() != (grace > 0) {
			t.Errorf("grace %v: committed %v, stuck (-want +got):\n%s", grace, committed.Load(), diff)
		}
		if diff := cmp.Diff(map[int]int{1: noCause}, l.skipped); diff != "" {
			t.Errorf("grace %v: skipped (-want +got):\n%s", grace, diff)
		}
	}
}

// TestScheduleLooks: a job waits for what it looks at, and runs however that ended.
func TestScheduleLooks(t *testing.T) {
	jobs := []job{{looks: []int{3}}, {after: []int{0}}, {}, {after: []int{2}}, {after: []int{3}, looks: []int{2}}}
	for _, tc := range []struct {
		name    string
		fail    []int
		started []int
		skipped map[int]int
	}{
		{"all hold", nil, []int{2, 3, 0, 1, 4}, map[int]int{}},
		{"what is looked at failed", []int{3}, []int{2, 3, 0, 1}, map[int]int{4: 3}},
		{"what is looked at was skipped", []int{2}, []int{2, 0, 1}, map[int]int{3: 2, 4: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, workers := range []int{1, 4} {
				var l logged
				l.schedule(jobs, workers, func(i int) bool { return slices.Contains(tc.fail, i) }).do(context.Background())
				if workers > 1 {
					slices.Sort(l.started)
					slices.Sort(tc.started)
				}
				if diff := cmp.Diff(tc.started, l.started); diff != "" {
					t.Errorf("%d workers: started (-want +got):\n%s", workers, diff)
				}
				if diff := cmp.Diff(tc.skipped, l.skipped); diff != "" {
					t.Errorf("%d workers: skipped (-want +got):\n%s", workers, diff)
				}
			}
		})
	}
}
