package engine

import (
	"fmt"
	"testing"
)

// BenchmarkSmallModels builds models of a hundred rows, each reading another.
func BenchmarkSmallModels(b *testing.B) {
	const n = 500
	files := map[string]string{"models/m0.sql": "select id, 0 as n from range(100) t(id)"}
	for i := 1; i < n; i++ {
		files[fmt.Sprintf("models/m%d.sql", i)] = fmt.Sprintf("select id, %d as n from {{ ref('m%d') }}", i, i/3)
	}
	w := newWorld(b, files)
	for b.Loop() {
		r := w.must(command{force: true})
		if r.Nodes[n-1].Status != StatusSuccess {
			b.Fatal(r.Nodes[n-1].Err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/model")
}
