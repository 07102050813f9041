package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// roomyHeap is the size in bytes that Go's memory may reach at first before
	// garbage is collected. A collection costs time by what is in use, and Go's own
	// rule collects a heap that grows from nothing a dozen times until there.
	roomyHeap = 96 << 20
	// roomyCollections bounds how many collections there are by that size alone: so
	// much of it may be taken by other things than the heap that little is free.
	roomyCollections = 8
	// laterPercent takes the place of Go's 100 in its own rule: where much is in use,
	// room counts more than the time that was saved before.
	laterPercent = 75
)

// heapRule is Go's own rule for when garbage is collected, with what the user set
// of it in GOGC and GOMEMLIMIT.
type heapRule struct {
	percent int
	limit   int64
}

// startHeap lets the heap be as large as roomyHeap until half of that is in use, or
// until end is called; from then on Go's own rule counts.
func startHeap() (end func()) {
	rule := heapRule{limit: debug.SetMemoryLimit(-1)}
	if rule.limit < roomyHeap {
		return func() {}
	}
	if rule.percent = debug.SetGCPercent(-1); rule.percent < 0 {
		return func() {}
	}
	if rule.percent == 100 {
		rule.percent = laterPercent
	}
	debug.SetMemoryLimit(roomyHeap)
	rule.await(roomyCollections)
	return rule.count
}

// count makes the rule count from now on.
func (r heapRule) count() {
	debug.SetGCPercent(r.percent)
	debug.SetMemoryLimit(r.limit)
}

// await looks after each of so many collections whether the rule should count.
func (r heapRule) await(collections int) {
	type garbage struct{ _ *garbage }
	runtime.AddCleanup(&garbage{}, func(left int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if left > 0 && live[0].Value.Kind() == metrics.KindUint64 && live[0].Value.Uint64() < roomyHeap/2 {
			r.await(left - 1)
			return
		}
		r.count()
	}, collections)
}
