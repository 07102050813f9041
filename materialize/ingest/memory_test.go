package ingest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
)

// peakHeap runs a load and gives the most that Go's heap held, as seen between
// records.
func peakHeap(t *testing.T, n int, line func(i int) string) (peak uint64, l *loaded) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.ndjson")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		w.WriteString(line(i))
		w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	var top atomic.Uint64
	var count atomic.Int64
	j := &Job{Program: mustCompile(t, nestedSpec), Files: []File{{Path: path, Name: "in.ndjson"}}, Workers: 2, MemoryLimit: 64 << 20}
	j.hooks.record = func(int, int64) {
		if count.Add(1)%2000 != 0 {
			return
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapInuse > top.Load() {
			top.Store(m.HeapInuse)
		}
	}
	dir := t.TempDir()
	if _, err := j.Stage(context.Background(), newTestSession(t, 2), dir); err != nil {
		t.Fatal(err)
	}
	return top.Load(), &loaded{stats: j.Stats()}
}

// TestMemoryDoesNotGrowWithRecords loads equal and different records, and twice
// as many.
func TestMemoryDoesNotGrowWithRecords(t *testing.T) {
	n := 20_000
	if os.Getenv("RBT_TEST_LONG") == "1" {
		n = 1_000_000
	}
	some := generate(rand.New(rand.NewSource(3)), 200, 0, 0)
	for name, line := range map[string]func(i int) string{
		"equal":     func(int) string { return some[0] },
		"different": func(i int) string { return strings.Replace(some[i%200], `"o-`, fmt.Sprintf(`"o-%d-`, i), 1) },
	} {
		one, _ := peakHeap(t, n, line)
		two, l := peakHeap(t, 2*n, line)
		t.Logf("%s: %d MB and %d MB, %d occurrences, %d dropped", name, one>>20, two>>20, l.stats.Occurrences, l.stats.Dropped)
		if limit := uint64(96 << 20); two > limit {
			t.Errorf("%s: the heap grew to %d MB", name, two>>20)
		}
	}
}
