package materialize

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"

	"rbt/internal/lake"
)

// testDB is one embedded DuckDB set up as rbt's engine sets up its own, as far
// as that matters here.
type testDB struct {
	connector *duckdb.Connector
	db        *sql.DB
	// point is asked before each file that CopyTo writes, so that a fault can
	// strike there too.
	point func(path string) error
}

func openDB(t testing.TB) *testDB {
	t.Helper()
	c, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &testDB{connector: c, db: sql.OpenDB(c)}
	t.Cleanup(func() { d.db.Close() })
	// DuckDB keeps what it read of a file while the time of that stays, and a test
	// replaces a file several times within one tick of the clock.
	for _, s := range []string{"SET TimeZone = 'UTC'", "SET threads = 2", "SET preserve_insertion_order = false", "SET enable_external_file_cache = false"} {
		if _, err := d.db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *testDB) session(t testing.TB) Session {
	t.Helper()
	s, err := d.fork(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (d *testDB) fork(ctx context.Context) (Session, error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &testSession{db: d, conn: conn}, nil
}

type testSession struct {
	db   *testDB
	conn *sql.Conn
}

func (s *testSession) Exec(ctx context.Context, q string) error {
	_, err := s.conn.ExecContext(ctx, q)
	return err
}

func (s *testSession) Query(ctx context.Context, q string, row func([]any) error) error {
	rows, err := s.conn.QueryContext(ctx, q)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(columns))
	at := make([]any, len(columns))
	for i := range values {
		at[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return err
		}
		if err := row(slices.Clone(values)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *testSession) Describe(ctx context.Context, q string) ([]lake.Column, error) {
	var names []string
	err := s.conn.Raw(func(c any) error {
		stmt, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, q)
		if err != nil {
			return err
		}
		defer stmt.Close()
		d := stmt.(*duckdb.Stmt)
		n, err := d.ColumnCount()
		if err != nil {
			return err
		}
		for i := range n {
			name, err := d.ColumnName(i)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.Exec(ctx, "CREATE OR REPLACE TEMP VIEW rbt_describe AS "+q); err != nil {
		return nil, err
	}
	var out []lake.Column
	err = s.Query(ctx, "SELECT data_type FROM duckdb_columns() WHERE table_name = 'rbt_describe' AND database_name = 'temp' ORDER BY column_index", func(v []any) error {
		out = append(out, lake.Column{Name: names[len(out)], Type: v[0].(string)})
		return nil
	})
	return out, err
}

func (s *testSession) CopyTo(ctx context.Context, q, path string, metadata map[string]string) ([]StagedFile, error) {
	if s.db.point != nil {
		if err := s.db.point(path); err != nil {
			return nil, err
		}
	}
	var kv []string
	for k, v := range metadata {
		kv = append(kv, k+": "+QuoteText(v))
	}
	slices.Sort(kv)
	var n int64
	err := s.Query(ctx, fmt.Sprintf("COPY (\n%s\n) TO %s (FORMAT parquet, COMPRESSION zstd, KV_METADATA {%s})", q, QuoteText(path), strings.Join(kv, ", ")),
		func(v []any) error { n = v[0].(int64); return nil })
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []StagedFile{{Path: path, Rows: n, Bytes: info.Size()}}, nil
}

func (s *testSession) Relation(ctx context.Context, schema, name string, files []string, columns []lake.Column) error {
	return s.Exec(ctx, fmt.Sprintf("CREATE OR REPLACE VIEW %s.%s AS %s", QuoteIdent(schema), QuoteIdent(name), readSQL(files, columns)))
}

// readSQL reads exactly these files as a relation with these columns.
func readSQL(files []string, columns []lake.Column) string {
	if len(files) == 0 {
		exprs := make([]string, len(columns))
		for i, c := range columns {
			exprs[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", c.Type, QuoteIdent(c.Name))
		}
		return "SELECT " + strings.Join(exprs, ", ") + " LIMIT 0"
	}
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = QuoteText(f)
	}
	return "SELECT * FROM read_parquet([" + strings.Join(quoted, ", ") + "], union_by_name = true)"
}

func (s *testSession) Fork(ctx context.Context) (Session, error) { return s.db.fork(ctx) }

func (s *testSession) Close() error { return s.conn.Close() }
