package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
)

// arrowText is an Arrow IPC stream or file of rows (id, zip, seen, tags).
func arrowText(t *testing.T, file bool, ids []int64, zips []string) string {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "zip", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "seen", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	for i, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(zips[i])
		b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000))
		tags := b.Field(3).(*array.ListBuilder)
		tags.Append(true)
		tags.ValueBuilder().(*array.StringBuilder).Append("t")
	}
	batch := b.NewRecordBatch()
	var buf bytes.Buffer
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	} = ipc.NewWriter(&buf, ipc.WithSchema(schema))
	if file {
		fw, err := ipc.NewFileWriter(&buf, ipc.WithSchema(schema))
		if err != nil {
			t.Fatal(err)
		}
		w = fw
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// TestArrowSource reads Arrow files and streams as a source: converted once for
// each content, matched by name, refused with the file's own name.
func TestArrowSource(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/sources.yml": `sources:
  - name: raw
    tables:
      - {name: shops, path: data/*.arrow, columns: {id: BIGINT, zip: VARCHAR}}
`,
		"models/shops.sql": "select id, zip, tags[1] as tag, seen from {{ source('raw', 'shops') }} order by id",
		"data/a.arrow":     arrowText(t, true, []int64{1, 2}, []string{"00123", "é"}),
		"data/b.arrow":     arrowText(t, false, []int64{3}, []string{"x"}),
		"data/c.arrow":     arrowText(t, false, []int64{3}, []string{"x"}),
	})
	w.wants(w.must(command{}), "shops success 4")
	want := []string{"id|zip|tag|seen", "1|00123|t|2023-11-14 22:13:20 +0000 UTC", "2|é|t|2023-11-14 22:13:20 +0000 UTC", "3|x|t|2023-11-14 22:13:20 +0000 UTC", "3|x|t|2023-11-14 22:13:20 +0000 UTC"}
	if d := cmp.Diff(want, w.rows("select * from 'LAKE/shops.parquet' order by all")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	cached, err := filepath.Glob(filepath.Join(w.dir, "target", "cache", "arrow", "*"))
	if err != nil || len(cached) != 2 {
		t.Errorf("the cache holds %v, %v", cached, err)
	}
	before, err := os.Stat(cached[0])
	if err != nil {
		t.Fatal(err)
	}
	w.wants(w.must(command{}), "shops no-op")
	// The footer says where the batches are; before them may stand what is no stream.
	d := arrowText(t, true, []int64{9}, []string{"y"})
	w.write("data/d.arrow", d[:8]+strings.Repeat("\x00", 16)+d[24:])
	w.wants(w.must(command{}), "shops success 5")
	if after, err := os.Stat(cached[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file of the cache was made again: %v", err)
	}
	w.write("data/e.arrow", "ARROW1\x00\x00cut")
	r := w.must(command{})
	if r.Nodes[0].Err == nil || !strings.Contains(r.Nodes[0].Err.Error(), "data/e.arrow") {
		t.Errorf("a damaged file: %v", r.Nodes[0].Err)
	}
}
