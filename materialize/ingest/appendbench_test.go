package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkAppend loads 5 % more into a dataset, a third of it known; the
// figure to look at is the share of the full load's CPU.
func BenchmarkAppend(b *testing.B) {
	n := 200_000
	if v, err := strconv.Atoi(os.Getenv("RBT_BENCH_RECORDS")); err == nil {
		n = v
	}
	dir := b.TempDir()
	write := func(name string, from, to int) File {
		var w strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&w, `{"id":%d,"name":"some name %d","score":%d.5,"owner":{"name":"owner %d"},"tags":["a","b%d"]}`+"\n", i, i*7, i, i%1000, i%10)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(w.String()), 0o644); err != nil {
			b.Fatal(err)
		}
		return File{Path: path, Name: name}
	}
	files := []File{write("0.ndjson", 0, n), write("1.ndjson", n-n/60, n-n/60+n/20)}
	src := "mode append\nroot r\nrecord r\nfield id bigint\nfield name varchar\nfield score double\nref owner owner\nchild tags varchar\nrecord owner\nfield name varchar"
	for range b.N {
		l := &published{p: mustCompile(b, src), s: newTestSession(b, 2), dir: b.TempDir()}
		start := cpuSeconds()
		if err := l.load(&Job{Files: files[:1]}); err != nil {
			b.Fatal(err)
		}
		full := cpuSeconds() - start
		start = cpuSeconds()
		if err := l.load(&Job{Files: files}); err != nil {
			b.Fatal(err)
		}
		part := cpuSeconds() - start
		b.ReportMetric(full, "full-cpu-s")
		b.ReportMetric(part, "append-cpu-s")
		b.ReportMetric(100*part/full, "%-of-full")
	}
}
