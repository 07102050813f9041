package lake

import (
	"fmt"
	"testing"
)

// BenchmarkReadState reads a lake of 10,000 tables.
func BenchmarkReadState(b *testing.B) {
	l, err := Open(b.TempDir(), notDurable{OS()})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		name := fmt.Sprintf("m%d", i)
		content, commit := published(b, name, "f", "")
		rel := fmt.Sprintf("f%d/%s.parquet", i%50, name)
		put(b, l, rel, content)
		r := receiptOf(name, FormFile, rel, commit, File{rel, int64(len(content)), commit})
		r.Inputs.Config = map[string]string{"columns": "0123456789abcdef", "materialization": "0123456789abcdef"}
		for j := range 20 {
			r.Outputs[0].Columns = append(r.Outputs[0].Columns, Column{fmt.Sprintf("column_%d", j), "TIMESTAMP WITH TIME ZONE"})
		}
		if err := l.WriteReceipt(r); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s, err := l.ReadState(ctx)
		if err != nil || len(s.Nodes) != 10_000 || len(s.Foreign) > 0 {
			b.Fatal(err, len(s.Nodes), len(s.Foreign))
		}
	}
}
