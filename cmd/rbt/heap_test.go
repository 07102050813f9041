package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestHeapRule: after the collections that are put off, what the user set counts.
func TestHeapRule(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	heapRule{percent: 61, limit: 3 << 40}.await(2)
	for range 1000 {
		runtime.GC()
		runtime.Gosched()
		metrics.Read(now)
		if now[0].Value.Uint64() == 61 && now[1].Value.Uint64() == 3<<40 {
			return
		}
	}
	t.Errorf("the percentage is %d and the limit %d", now[0].Value.Uint64(), now[1].Value.Uint64())
}
