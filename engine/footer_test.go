package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"rbt/internal/lake"
)

// TestFootersCountNulls compares what footers say with a scan, for columns of
// every kind, over files of several row groups with NULLs in some, all or none.
func TestFootersCountNulls(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	kinds := []struct {
		expr  string // of the row number i
		exact bool
	}{
		{"i", true}, {"i % 3 = 0", true}, {"'text ' || i", true}, {"'same'", true}, {"i::DECIMAL(38,4)", true}, {"i::DECIMAL(9,2)", true},
		{"'nan'::DOUBLE", true}, {"i::FLOAT", true}, {"DATE '2024-01-01' + i::INTEGER", true}, {"TIMESTAMPTZ '2024-01-01 00:00:00+00'", true},
		{"'a'::BLOB", true}, {"uuid()", true}, {"INTERVAL 1 DAY", false}, {"TIME '10:00:00'", true},
		{"[i, NULL]", false}, {"[]::INTEGER[]", false}, {"{'x': NULL, 'y': NULL}", false},
		// Of nested values the footers can only tell that none is NULL.
		{"[i]", false}, {"{'x': NULL, 'y': i}", false}, {"MAP {'k': i}", false}, {"[{'x': i}]", false},
	}
	for n, rows := range [][]int{{0}, {1}, {5000}, {0, 5}, {5000, 5000}, {5, 0, 5000}} {
		var files []string
		var columns []lake.Column
		for f, count := range rows {
			var list []string
			for i, k := range kinds {
				// Of each column none, some or all values are NULL.
				list = append(list, fmt.Sprintf("CASE WHEN (hash(i, %d) %% 100) < %d THEN NULL ELSE %s END AS c%d", i, []int{0, 1, 50, 100}[(i+n)%4], k.expr, i))
			}
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d-%d.parquet", n, f))
			if err := s.Exec(ctx, fmt.Sprintf("COPY (SELECT %s FROM range(%d) AS r(i)) TO %s (FORMAT parquet, ROW_GROUP_SIZE 2048)", strings.Join(list, ", "), count, quoteText(path))); err != nil {
				t.Fatal(err)
			}
			var err error
			if columns, err = s.Describe(ctx, "SELECT * FROM read_parquet("+quoteText(path)+")"); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		foot := newFooters(files)
		for i, c := range columns {
			known := foot.column(c)
			nulls, rows, ok := known.nulls, known.rows, known.counted
			var wantNulls, wantRows int64
			if err := s.Query(ctx, "SELECT count(*) - count("+quoteIdent(c.Name)+"), count(*) FROM ("+scanFiles(files, nil)+")", func(v []any) error {
				wantNulls, wantRows = v[0].(int64), v[1].(int64)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			want := kinds[i].exact || wantNulls == 0 && i >= len(kinds)-4
			if wantRows > 0 && ok != want {
				t.Errorf("%s (%s): answered %v", kinds[i].expr, c.Type, ok)
			}
			if ok && (nulls != wantNulls || rows != wantRows) {
				t.Errorf("%s: the footers say %d of %d, a scan %d of %d", kinds[i].expr, nulls, rows, wantNulls, wantRows)
			}
		}
	}
}

// TestFootersOfOthers leaves files of other writers, and columns that could be
// taken for a field of another, to a scan.
func TestFootersOfOthers(t *testing.T) {
	ctx := context.Background()
	s := testSession(t)
	path := filepath.Join(t.TempDir(), "odd.parquet")
	if err := s.Exec(ctx, `COPY (SELECT {'x': NULL::INTEGER} AS s, 1 AS "s, x", 3 AS "s.x", 2 AS "plain") TO `+quoteText(path)); err != nil {
		t.Fatal(err)
	}
	foot := newFooters([]string{path})
	for name, want := range map[string]bool{"s": false, "s, x": true, "s.x": true, "plain": true, "Plain": false, "none": false} {
		if known := foot.column(lake.Column{Name: name, Type: "INTEGER"}); known.counted != want {
			t.Errorf("%q: %+v", name, known)
		}
	}
	if newFooters(nil) != nil {
		t.Error("no files have footers")
	}
}
