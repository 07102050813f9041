package engine

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestCancelIngest: a load that is cancelled in any phase leaves what was
// published, no staged file and no goroutine; the next run completes.
func TestCancelIngest(t *testing.T) {
	// After the databases that read what is published are closed.
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, `{"id":%d,"site":{"city":"c%d"}}`+"\n", i, i%7)
	}
	w := newWorld(t, map[string]string{
		"models/raw.sql": `---
materialization: ingest
input: data/*.ndjson
mode: append
root: r
records:
  r: {fields: {id: bigint}, references: {site: site}}
  site: {fields: {city: varchar}}
---
`,
		"data/a.ndjson": `{"id":-1,"site":{"city":"c1"}}` + "\n",
	})
	w.wants(w.must(command{}), "raw success 1")
	w.write("data/b.ndjson", lines.String())
	for _, phase := range []string{"encode", "merge"} {
		ctx, cancel := context.WithCancel(context.Background())
		r, err := w.do(command{ctx: ctx, events: func(e Event) {
			if e.Kind == EventNodeProgress && e.Message == phase {
				cancel()
			}
		}})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if !r.Cancelled || r.Nodes[0].Status != StatusCancelled {
			t.Errorf("%s: cancelled is %t, the node %s (%v)", phase, r.Cancelled, r.Nodes[0].Status, r.Nodes[0].Err)
		}
		if got := w.rows("select count(*) as n from 'LAKE/raw/r/*.parquet'")[1]; got != "1" {
			t.Errorf("%s: %s rows are published", phase, got)
		}
		err = filepath.WalkDir(filepath.Join(w.dir, "lake"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".staged") || strings.HasSuffix(path, ".shard")) {
				t.Errorf("%s: %s stays", phase, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.wants(w.must(command{}), "raw success 20000")
}
