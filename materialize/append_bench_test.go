package materialize

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rbt/internal/lake"
)

// BenchmarkAppend measures what an append to so many parts costs beside its own
// rows: the recovery at its start, reading the node, the publish, and the bytes of
// its documents.
func BenchmarkAppend(b *testing.B) {
	for _, parts := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) {
			s := openDB(b).session(b)
			l := newLake(b, filepath.Join(tempDir(b), "lake"), lake.OS())
			mustPublish(b, s, target(l, "m", lake.FormIncremental, 0), "SELECT 1 AS a, 'x' AS b")
			growTo(b, l, parts)
			b.ResetTimer()
			for i := range b.N {
				recoverLake(b, l)
				tg := target(l, "m", lake.FormIncremental, 1_000_000+i)
				tg.Append, tg.Now = true, func() time.Time { return time.UnixMilli(100) }
				mustPublish(b, s, tg, "SELECT 1 AS a, 'x' AS b")
			}
			b.StopTimer()
			for name, file := range map[string]string{"manifest-bytes": "gold/m.parts/_rbt_manifest.json", "receipt-bytes": ".rbt/state/m.json"} {
				info, err := os.Stat(filepath.Join(l.Root(), file))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(info.Size()), name)
			}
		})
	}
}

// growTo makes a published node of so many parts by linking the first.
func growTo(b *testing.B, l *lake.Lake, parts int) {
	b.Helper()
	node, _, err := l.ReadNode("m", "gold")
	if err != nil {
		b.Fatal(err)
	}
	m, r := node.Manifest.Clone(), node.Receipt
	info := m.PartInfo[m.Parts[0]]
	dir := filepath.Join(l.Root(), "gold", "m.parts")
	for i := 2; i <= parts; i++ {
		name := lake.PartName(int64(i))
		if err := os.Link(filepath.Join(dir, m.Parts[0]), filepath.Join(dir, name)); err != nil {
			b.Fatal(err)
		}
		info.Fingerprint = fmt.Sprintf("%064d", i)
		m.Parts, m.PartInfo[name] = append(m.Parts, name), info
		m.TotalRows++
		r.Outputs[0].Files = append(r.Outputs[0].Files, lake.File{Path: "gold/m.parts/" + name, Bytes: info.Bytes, Commit: info.Commit})
	}
	m.NextPart = int64(parts) + 1
	place, err := lake.NewPlace("gold", "m", lake.FormIncremental)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.CommitManifest(nil, place, m, r); err != nil {
		b.Fatal(err)
	}
}
