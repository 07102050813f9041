package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDirect: a statement runs without being prepared, and what is said of it is
// what is said of one that was.
func TestDirect(t *testing.T) {
	s, ctx := testSession(t), context.Background()
	dir := t.TempDir()
	file := func(name string) string { return quoteText(filepath.Join(dir, name)) }
	if err := s.Exec(ctx, "CREATE TABLE d AS SELECT i :: VARCHAR AS v FROM range(3000) t(i)"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query string
		rows  int64
	}{
		{"COPY (SELECT * FROM d WHERE v <> '7') TO " + file("a.parquet") + " (FORMAT parquet)", 2999},
		{"COPY (SELECT a.v FROM read_parquet(" + file("a.parquet") + ") a WHERE false) TO " + file("b.parquet") + " (FORMAT parquet)", 0},
		{"CREATE OR REPLACE VIEW w AS FROM read_parquet(" + file("a.parquet") + ")", 0},
		{"SET GLOBAL threads = 1", 0},
	} {
		rows, done, err := s.direct(ctx, test.query)
		if err != nil || !done || rows != test.rows {
			t.Errorf("%s: %d rows, %v, %v; want %d", test.query, rows, done, err, test.rows)
		}
	}
	for _, query := range []string{
		"COPY (SELECT nope FROM d) TO " + file("c.parquet") + " (FORMAT parquet)",
		"COPY (SELECT 'é', (v || 'x') :: INTEGER FROM d) TO " + file("c.parquet") + " (FORMAT parquet)",
		"COPY (SELECT sum(v) FROM d) TO " + file("c.parquet") + " (FORMAT parquet)",
		"COPY (SELECT * FROM read_parquet(" + file("none.parquet") + ")) TO " + file("c.parquet") + " (FORMAT parquet)",
		"COPY (SELECT 1) TO " + file("none/c.parquet") + " (FORMAT parquet)",
		"COPY (SELECT 1 TO", "CREATE VIEW w AS SELECT 1",
	} {
		_, done, err := s.direct(ctx, query)
		var got, want *EngineError
		if !done || !errors.As(err, &got) || !errors.As(s.Query(ctx, query, func([]any) error { return nil }), &want) {
			t.Errorf("%s: %v, %v", query, done, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-prepared +direct):\n%s", query, diff)
		}
	}
}

// TestDirectIsInterrupted: the end of a context ends a statement, and not the one
// after it.
func TestDirectIsInterrupted(t *testing.T) {
	s := testSession(t)
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		began := make(chan error, 1)
		go func() {
			_, done, err := s.direct(ctx, "CREATE OR REPLACE TABLE t AS SELECT count(*) FROM range(10000000000) a, range(10000000000) b")
			if !done && err == nil {
				err = context.Canceled // it had not begun
			}
			began <- err
		}()
		cancel()
		if err := <-began; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if rows, done, err := s.direct(context.Background(), "CREATE OR REPLACE TABLE t AS SELECT * FROM range(5)"); err != nil || !done {
			t.Fatal(rows, done, err)
		}
	}
}

func TestOneStatement(t *testing.T) {
	for query, want := range map[string]bool{
		"select 1": true, "p": true, "select 'pip'": true, "COPY (select 1) TO 'x'": true,
		"select 1; select 2": false, "select ';'": false, "PIVOT t ON a USING sum(b)": false, "from t pivot_wider (x)": false,
		"create view v as (PiVoT t on a)": false, "select piv": true, "select 'pivot'": false, "unpivot t on a": false, "": true,
	} {
		if got := oneStatement(query); got != want {
			t.Errorf("%q: %v", query, got)
		}
	}
}
