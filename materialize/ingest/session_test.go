package ingest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/materialize"
)

// testSession is a Session over an in-memory DuckDB, set up as rbt does it.
type testSession struct {
	db   *sql.DB
	conn *sql.Conn
	own  bool
}

func newTestSession(t testing.TB, threads int) *testSession {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := &testSession{db: db, conn: conn, own: true}
	for _, set := range []string{
		fmt.Sprintf("SET threads = %d", threads), "SET preserve_insertion_order = false", "SET TimeZone = 'UTC'",
		"SET memory_limit = '2GB'", "SET temp_directory = " + text(t.TempDir()),
	} {
		if err := s.Exec(context.Background(), set); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { s.Close() })
	return s
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
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		vals, ptrs := make([]any, len(cols)), make([]any, len(cols))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		if err := row(vals); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *testSession) Describe(ctx context.Context, q string) ([]lake.Column, error) {
	var cols []lake.Column
	err := s.Query(ctx, "DESCRIBE "+q, func(v []any) error {
		cols = append(cols, lake.Column{Name: v[0].(string), Type: v[1].(string)})
		return nil
	})
	return cols, err
}

func (s *testSession) CopyTo(ctx context.Context, q, path string, metadata map[string]string) ([]materialize.StagedFile, error) {
	kv := ""
	if len(metadata) > 0 {
		var items []string
		for k, v := range metadata {
			items = append(items, k+": "+text(v))
		}
		slices.Sort(items)
		kv = ", KV_METADATA {" + strings.Join(items, ", ") + "}"
	}
	res, err := s.conn.ExecContext(ctx, "COPY ("+q+") TO "+text(path)+" (FORMAT parquet, COMPRESSION zstd"+kv+")")
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	rows, err := res.RowsAffected()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []materialize.StagedFile{{Path: path, Rows: rows, Bytes: info.Size()}}, nil
}

func (s *testSession) Relation(context.Context, string, string, []string, []lake.Column) error {
	return fmt.Errorf("ingest asks for no relation")
}

func (s *testSession) Fork(ctx context.Context) (materialize.Session, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &testSession{db: s.db, conn: conn}, nil
}

func (s *testSession) Close() error {
	err := s.conn.Close()
	if s.own {
		s.db.Close()
	}
	return err
}

// parseSpec reads the tests' own short notation for declarations; every word
// has the place where it stands.
func parseSpec(src string) Spec {
	s := Spec{Model: "m", Pos: diag.Pos{File: "m.sql", Line: 1, Col: 1}}
	var rec *Record
	var stack []*Members
	for i, line := range strings.Split(src, "\n") {
		var words []Text
		col := 0
		for _, w := range strings.Fields(line) {
			col += strings.Index(line[col:], w)
			words = append(words, Text{w, diag.Pos{File: "m.sql", Line: i + 1, Col: col + 1}})
			col += len(w)
		}
		if len(words) == 0 {
			continue
		}
		kw, args := words[0].Value, words[1:]
		get := func(i int) Text {
			if i < len(args) {
				return args[i]
			}
			return Text{}
		}
		opt := func(name string) Text {
			for _, w := range args {
				if v, ok := strings.CutPrefix(w.Value, name+"="); ok {
					return Text{strings.ReplaceAll(v, "~", " "), w.Pos}
				}
			}
			return Text{}
		}
		flag := func(name string) Flag {
			for _, w := range args {
				if w.Value == name {
					return Flag{true, w.Pos}
				}
			}
			return Flag{}
		}
		set := map[string]*Text{"root": &s.Root, "on_bad_record": &s.OnBadRecord, "max_rejects": &s.MaxRejects, "unknown_fields": &s.UnknownFields,
			"type_mismatch": &s.TypeMismatch, "occurrences": &s.Occurrences, "mode": &s.Mode, "format": &s.Input.Format,
			"compression": &s.Input.Compression, "record_path": &s.Input.RecordPath, "on_changed_file": &s.OnChangedFile}
		if p, ok := set[kw]; ok {
			*p = get(0)
			continue
		}
		meta := kw == "meta"
		if meta {
			kw, args = args[0].Value, args[1:]
		}
		var m *Members
		if len(stack) > 0 {
			m = stack[len(stack)-1]
		}
		if meta {
			m = &rec.Metadata
		}
		switch kw {
		case "record":
			s.Records = append(s.Records, Record{Name: get(0), Dedup: get(1), Entries: flag("entries"), OnMetadataConflict: opt("conflict"), Identity: opt("identity")})
			rec = &s.Records[len(s.Records)-1]
			stack = []*Members{&rec.Members}
		case "family":
			s.Families = append(s.Families, Family{Name: get(0), Members: args[1:]})
		case "root_by":
			s.RootBy = &RootBy{Field: get(0), Pos: words[0].Pos}
			for _, w := range args[1:] {
				v, r, _ := strings.Cut(w.Value, "=")
				s.RootBy.Map = append(s.RootBy.Map, RootCase{Text{v, w.Pos}, Text{r, w.Pos}})
			}
		case "id":
			rec.ID = &ID{Pos: words[0].Pos, Base: opt("base"), Series: opt("series"), From: opt("from"), Repeats: flag("repeats").Set}
		case "field":
			m.Fields = append(m.Fields, Field{Name: get(0), Type: get(1), Path: opt("path"), Required: flag("required")})
		case "ref":
			m.References = append(m.References, Reference{Name: get(0), Record: get(1), Path: opt("path"), Required: flag("required")})
		case "child":
			c := Child{Name: get(0), Path: opt("path"), Required: flag("required")}
			switch get(1).Value {
			case "->":
				c.Record = get(2)
			case "{":
				c.Row = &Members{}
			default:
				c.Type = get(1)
			}
			m.Children = append(m.Children, c)
			if c.Row != nil {
				stack = append(stack, c.Row)
			}
		case "}":
			stack = stack[:len(stack)-1]
		default:
			panic("unknown word " + kw)
		}
	}
	return s
}

func mustCompile(t testing.TB, src string) *Program {
	t.Helper()
	p, list := Compile(parseSpec(src))
	if p == nil {
		t.Fatalf("declaration refused:\n%v", list)
	}
	return p
}

// writeInput makes the files of an input and returns them in order.
func writeInput(t testing.TB, files map[string]string) []File {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		return nil
	}
	out, err := Discover([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// table is the content of one staged output: rows as text, NULL as "∅".
func readTable(t testing.TB, s materialize.Session, out materialize.StagedOutput, drop ...string) []string {
	t.Helper()
	var items []string
	for _, c := range out.Columns {
		if !slices.Contains(drop, c.Name) {
			items = append(items, "coalesce(CAST("+ident(c.Name)+" AS VARCHAR), '∅')")
		}
	}
	var paths []string
	for _, f := range out.Files {
		paths = append(paths, f.Path)
	}
	rows := []string{}
	// file_row_number keeps the order of the file whatever the settings are.
	q := fmt.Sprintf("SELECT concat_ws('|', %s) FROM read_parquet([%s], file_row_number = true) ORDER BY file_row_number", strings.Join(items, ", "),
		strings.TrimSuffix(strings.TrimPrefix(readParquet(paths), "read_parquet(["), "])"))
	if err := s.Query(context.Background(), q, func(v []any) error {
		rows = append(rows, v[0].(string))
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return rows
}

// load runs a job and returns every table by folder.
type loaded struct {
	staged materialize.Staged
	tables map[string][]string
	stats  Stats
	dir    string
}

// plainColumns are left out of comparisons that are about other things.
var plainColumns = []string{"_content_id", "_load_id", "rbt_version"}

func runJob(t testing.TB, s *testSession, j *Job) (*loaded, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "stage")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := j.Stage(context.Background(), s, dir)
	if left, _ := os.ReadDir(filepath.Join(dir, "shards")); left != nil {
		t.Errorf("shards are left: %v", left)
	}
	if err != nil {
		if n := countSchemas(t, s); n != 0 {
			t.Errorf("%d merge schemas are left", n)
		}
		return nil, err
	}
	out := &loaded{staged: st, tables: map[string][]string{}, stats: j.Stats(), dir: dir}
	for i, o := range j.Program.Outputs() {
		out.tables[o.Folder] = readTable(t, s, st.Outputs[i], plainColumns...)
		if st.Outputs[i].Relation != o.Relation || st.Outputs[i].Rows != int64(len(out.tables[o.Folder])) {
			t.Errorf("output %s: %+v", o.Relation, st.Outputs[i])
		}
	}
	return out, nil
}

func countSchemas(t testing.TB, s *testSession) (n int64) {
	t.Helper()
	if err := s.Query(context.Background(), "SELECT count(*) FROM duckdb_schemas() WHERE schema_name LIKE 'rbt_ingest_%'", func(v []any) error {
		n = v[0].(int64)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// mustLoad loads one file a.ndjson with default settings.
func mustLoad(t testing.TB, src string, lines ...string) *loaded {
	t.Helper()
	got, err := tryLoad(t, src, lines...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func tryLoad(t testing.TB, src string, lines ...string) (*loaded, error) {
	t.Helper()
	files := writeInput(t, map[string]string{"a.ndjson": strings.Join(lines, "\n")})
	return runJob(t, newTestSession(t, 2), &Job{Program: mustCompile(t, src), Files: files, Workers: 2})
}
