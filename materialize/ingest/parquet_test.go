package ingest

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShardPages reads back columns of several pages, with and without nulls.
func TestShardPages(t *testing.T) {
	const rows = 3*pageBytes + 5 // booleans take a byte each until they are written
	tab := &table{name: "t"}
	tab.add("p", typBigint, true)
	tab.add("rt", typText, true)
	tab.add("t", typText, false)
	tab.add("b", scalar{kind: kBool}, false)
	tab.add("rb", scalar{kind: kBool}, true)
	tab.add("n", typInt, false)
	tab.add("u", typUUID, false)
	tab.add("void", typText, false)
	b := newTableBuf(tab)
	for i := range rows {
		b.cols[0].int64(int64(i))
		b.cols[1].text(fmt.Appendf(nil, "row %d", i))
		b.cols[4].bool(i%5 == 1)
		b.cols[7].null()
		if i%3 == 0 {
			for _, c := range []int{2, 3, 5, 6} {
				b.cols[c].null()
			}
		} else {
			b.cols[2].text(fmt.Appendf(nil, "%0*d", i%7, i))
			b.cols[3].bool(i%2 == 1)
			b.cols[5].int32(int32(i))
			var id [16]byte
			binary.BigEndian.PutUint64(id[8:], uint64(i))
			b.cols[6].id(&id)
		}
		b.rows++
	}
	path := filepath.Join(t.TempDir(), "t.shard")
	w, err := createShard(path, tab)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.flush(b); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	var got []any
	err = newTestSession(t, 2).Query(t.Context(), `SELECT count(*), count(DISTINCT p), max(p), count(t), count(b), count(n), count(u), count(void),
		count(*) FILTER (rt <> 'row ' || p OR rb <> (p % 5 = 1)),
		count(*) FILTER ((t IS NULL) <> (p % 3 = 0) OR t <> lpad(p::VARCHAR, greatest(length(p::VARCHAR), p % 7)::INTEGER, '0')), count(*) FILTER (b <> (p % 2 = 1)),
		count(*) FILTER (n <> p), count(*) FILTER (u <> CAST(printf('00000000-0000-0000-0000-%012x', p) AS UUID))
		FROM `+readParquet([]string{path}), func(v []any) error {
		got = append([]any(nil), v...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	some := int64(rows - (rows+2)/3)
	want := []any{int64(rows), int64(rows), int64(rows - 1), some, some, some, some, int64(0), int64(0), int64(0), int64(0), int64(0), int64(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info := w.groups[0].chunks[3]; info.values != rows {
		t.Errorf("a column of booleans: %+v", info)
	}
}
