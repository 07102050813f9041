package engine

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// writeCatalog brings the catalog of the world's lake up to date.
func (w *world) writeCatalog() (left []string) {
	w.t.Helper()
	ctx := context.Background()
	p, problems := project.Load(ctx, project.Options{Dir: w.dir, Vars: w.vars})
	if err := problems.Err(); err != nil {
		w.t.Fatal(err)
	}
	l, err := lake.Open(p.LakeDir, lake.OS())
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := Open(ctx, Options{Project: p, Lake: l})
	if err != nil {
		w.t.Fatal(err)
	}
	defer e.Close()
	g, list := plan.Load(ctx, p, e.Parser(), plan.Options{})
	if err := list.Err(); err != nil {
		w.t.Fatal(err)
	}
	state, err := l.ReadState(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	left, err = e.WriteCatalog(ctx, g, &state)
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}

func (w *world) catalogPath() string { return filepath.Join(w.dir, "lake", CatalogDatabase) }

// readCatalog runs a query on a catalog as other tools do, and gives its rows as
// text.
func readCatalog(path, query string) (rows []string, err error) {
	connector, err := duckdb.NewConnector(path+"?access_mode=READ_ONLY", nil)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	found, err := db.Query("SELECT CAST(t AS VARCHAR) FROM (" + query + ") t")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	rows = []string{}
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, err
		}
		rows = append(rows, text)
	}
	return rows, found.Err()
}

func (w *world) catalogHas(query string, want ...string) {
	w.t.Helper()
	got, err := readCatalog(w.catalogPath(), query)
	if err != nil {
		w.t.Errorf("%s: %v", query, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: %s", query, diff)
	}
}

const catalogViews = "SELECT schema_name || '.' || view_name AS v FROM duckdb_views() WHERE NOT internal ORDER BY v"

func catalogFiles() map[string]string {
	return map[string]string{
		"project.yml":         "name: shop\nvars: {n: 1}\nsources: [{name: raw, tables: [{name: orders, path: raw/*.csv, columns: {id: BIGINT}}]}]\n",
		"raw/a.csv":           "id\n1\n2\n",
		"seeds/codes.csv":     "code\nx\n",
		"models/gold/m.sql":   "select id, {{ var('n') }} as n from {{ ref('e') }}\n",
		"models/silver/v.sql": "---\nmaterialization: view\n---\nselect sum(id) as s from {{ ref('m') }}\n",
		"models/w.sql":        "---\nmaterialization: view\n---\nselect id from {{ source('raw', 'orders') }}\n",
		"models/e.sql":        "---\nmaterialization: ephemeral\n---\nselect id from {{ source('raw', 'orders') }}\n",
		"models/log.sql":      "---\nmaterialization: incremental\n---\nselect {{ var('n') }} as n\n",
	}
}

// TestCatalog: every relation that is published can be read under main and under
// its folder, and later runs change what changed.
func TestCatalog(t *testing.T) {
	w := newWorld(t, catalogFiles())
	w.must(command{})
	if left := w.writeCatalog(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	names := []string{"gold.m", "main.codes", "main.log", "main.m", "main.v", "main.w", "raw.orders", "silver.v"}
	text := func(list []string) []string {
		out := make([]string, len(list))
		for i, n := range list {
			out[i] = fmt.Sprintf("{'v': %s}", n)
		}
		return out
	}
	w.catalogHas(catalogViews, text(names)...)
	w.catalogHas("FROM main.m ORDER BY id", "{'id': 1, 'n': 1}", "{'id': 2, 'n': 1}")
	w.catalogHas("FROM silver.v", "{'s': 3}")
	w.catalogHas("FROM w ORDER BY id", "{'id': 1}", "{'id': 2}")
	w.catalogHas("FROM log", "{'n': 1}")
	w.catalogHas("FROM codes", "{'code': x}")

	// Another column below a view, a part more, a model that is gone.
	w.write("models/gold/m.sql", "select id * 10 as id, 'a' as label from {{ ref('e') }}\n")
	w.vars = map[string]any{"n": int64(2)}
	w.must(command{})
	if err := os.Remove(filepath.Join(w.dir, "models", "w.sql")); err != nil {
		t.Fatal(err)
	}
	w.writeCatalog()
	w.catalogHas("FROM gold.m ORDER BY id", "{'id': 10, 'label': a}", "{'id': 20, 'label': a}")
	w.catalogHas("FROM v", "{'s': 30}")
	w.catalogHas("FROM log ORDER BY n", "{'n': 1}", "{'n': 2}")
	w.catalogHas(catalogViews+" LIMIT 6", text([]string{"gold.m", "main.codes", "main.log", "main.m", "main.v", "raw.orders"})...)
}

// TestCatalogRepaired: what is no catalog, one of another place, and one whose
// source is gone.
func TestCatalogRepaired(t *testing.T) {
	w := newWorld(t, catalogFiles())
	w.must(command{})
	if err := os.WriteFile(w.catalogPath(), []byte("no database"), 0o666); err != nil {
		t.Fatal(err)
	}
	w.writeCatalog()
	w.catalogHas("FROM v", "{'s': 3}")

	other := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(w.dir, other); err != nil {
		t.Fatal(err)
	}
	w.dir = other
	w.writeCatalog()
	w.catalogHas("FROM v", "{'s': 3}")

	if err := os.Remove(filepath.Join(w.dir, "raw", "a.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.catalogPath()); err != nil {
		t.Fatal(err)
	}
	left := w.writeCatalog()
	if len(left) != 1 || !strings.HasPrefix(left[0], "w: source raw.orders has no file") {
		t.Errorf("left: %v", left)
	}
	w.catalogHas("FROM v", "{'s': 3}")
}

// TestCatalogFolders: folders may be called as the engine calls what it has
// itself.
func TestCatalogFolders(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml": "name: shop\n", "models/memory/m.sql": "select 1 as a\n", "models/" + attachedCatalog + "/n.sql": "select a from {{ ref('m') }}\n",
	})
	w.must(command{})
	if left := w.writeCatalog(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	w.catalogHas(catalogViews, "{'v': _rbt_catalog.n}", "{'v': main.m}", "{'v': main.n}", "{'v': memory.m}")
	w.catalogHas("FROM main.n", "{'a': 1}")
}

// catalogReader, where it is set, makes the test binary a reader of a catalog:
// it reads until its input ends and prints what is wrong.
const catalogReader = "RBT_TEST_CATALOG_READER"

// TestCatalogReader is the second process of TestCatalogWhileRunning.
func TestCatalogReader(t *testing.T) {
	path := os.Getenv(catalogReader)
	if path == "" {
		t.Skip("it is the second process of another test")
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	queries := map[string]string{
		"SELECT count(*) AS n, count(DISTINCT n) AS d FROM m": "{'n': 100, 'd': 1}",
		"SELECT s % 4950 AS s FROM v":                         "{'s': 0}",
		"SELECT count(*) % 10 AS n FROM log":                  "{'n': 0}",
	}
	for rounds := 0; ; rounds++ {
		for _, query := range sortedKeys(queries) {
			rows, err := readCatalog(path, query)
			if err != nil {
				t.Errorf("%s: %v", query, err)
			} else if diff := cmp.Diff([]string{queries[query]}, rows); diff != "" {
				t.Errorf("%s: %s", query, diff)
			}
		}
		if rounds == 0 {
			fmt.Println("reading")
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

// TestCatalogWhileRunning: a second process that opens the catalog read-only
// reads right rows of whole versions while runs publish and rewrite it.
func TestCatalogWhileRunning(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":    "name: shop\nvars: {n: 1}\n",
		"models/m.sql":   "select range as id, {{ var('n') }} as n from range(100)\n",
		"models/v.sql":   "---\nmaterialization: view\n---\nselect sum(id) * any_value(n) as s from {{ ref('m') }}\n",
		"models/log.sql": "---\nmaterialization: incremental\n---\nselect {{ var('n') }} as n from range(10)\n",
	})
	w.must(command{})
	w.writeCatalog()
	reader := exec.Command(os.Args[0], "-test.run=^TestCatalogReader$", "-test.v")
	reader.Env = append(os.Environ(), catalogReader+"="+w.catalogPath())
	stop, err := reader.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := reader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "reading" {
	}
	runs := 15
	if os.Getenv("RBT_TEST_LONG") != "" {
		runs = 100
	}
	for i := range runs {
		w.vars = map[string]any{"n": int64(i + 2)}
		w.must(command{})
		w.writeCatalog()
	}
	if err := stop.Close(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
	}
	if err := reader.Wait(); err != nil {
		t.Errorf("%v: %s", err, strings.Join(said, "\n"))
	}
}

// TestCatalogColumns: what another process that opens the catalog is told of the
// columns is what the files hold, whatever things are called.
func TestCatalogColumns(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml": "name: shop\n",
		"models/gold/Größe.sql": "select 1::utinyint as \"ä\", 1.5::decimal(9, 2) as \"a\"\"b; c\", timestamptz '2024-01-02 03:04:05+00' as at,\n" +
			"  {'x': [1::bigint], 'y y': 'é'} as \"s.s\", map {'k': 1::smallint} as m, 'p''q' as \"select\", uuid '00000000-0000-0000-0000-000000000001' as u\n",
		"models/gold/v.sql": "---\nmaterialization: view\n---\nselect \"ä\" + 1::utinyint as \"ä\", \"s.s\".\"y y\" as y, 'a;b' as \"pivot\" from {{ ref('Größe') }}\n",
	})
	for _, n := range w.must(command{}).Nodes {
		if n.Status != StatusSuccess {
			t.Fatalf("%s: %+v", n.Name, n)
		}
	}
	if left := w.writeCatalog(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	want := map[string][]string{
		"Größe": {`ä UTINYINT`, `a"b; c DECIMAL(9,2)`, `at TIMESTAMP WITH TIME ZONE`, `s.s STRUCT(x BIGINT[], "y y" VARCHAR)`,
			`m MAP(VARCHAR, SMALLINT)`, `select VARCHAR`, `u UUID`},
		"v": {`ä UTINYINT`, `y VARCHAR`, `pivot VARCHAR`},
	}
	for _, name := range sortedKeys(want) {
		for _, schema := range []string{"main", "gold"} {
			all := quoteText(strings.Join(want[name], " | "))
			w.catalogHas("SELECT string_agg(column_name || ' ' || data_type, ' | ' ORDER BY ordinal_position) = "+all+" AS same FROM information_schema.columns"+
				" WHERE table_schema = "+quoteText(schema)+" AND table_name = "+quoteText(name), "{'same': true}")
			w.catalogHas("SELECT string_agg(column_name || ' ' || column_type, ' | ') = "+all+" AS same FROM (DESCRIBE "+relationName(schema, name)+")", "{'same': true}")
			w.catalogHas("SELECT column_count AS n FROM duckdb_views() WHERE schema_name = "+quoteText(schema)+" AND view_name = "+quoteText(name),
				fmt.Sprintf("{'n': %d}", len(want[name])))
		}
	}
	w.catalogHas(`SELECT "ä" AS c, "a""b; c" AS d, "s.s"."y y" AS e, "select" AS f FROM gold."Größe"`, "{'c': 1, 'd': 1.50, 'e': é, 'f': 'p\\'q'}")
	w.catalogHas(`SELECT "ä" AS c, "pivot" AS d FROM gold.v`, "{'c': 2, 'd': a;b}")
}

// TestCatalogManyAtOnce: views that do not fit into one text, among them one that
// cannot be made: the others are there, and the session is as it was.
func TestCatalogManyAtOnce(t *testing.T) {
	files := map[string]string{
		"project.yml":   "name: shop\nsources: [{name: raw, tables: [{name: orders, path: raw/*.csv, columns: {id: BIGINT}}]}]\n",
		"raw/a.csv":     "id\n1\n",
		"models/zz.sql": "---\nmaterialization: view\n---\nselect id from {{ source('raw', 'orders') }}\n",
	}
	for i := range 120 {
		files[fmt.Sprintf("models/%c/m_%03d.sql", 'a'+i%3, i)] = fmt.Sprintf("select %d as n, '%s' as text\n", i, strings.Repeat("x", i))
	}
	w := newWorld(t, files)
	w.must(command{})
	all := "SELECT sum(n) AS n FROM (" + "FROM a.m_000" + " UNION ALL FROM b.m_001 UNION ALL FROM m_118 UNION ALL FROM c.m_119)"
	views := "SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal"
	if left := w.writeCatalog(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	w.catalogHas(all, "{'n': 238}")
	w.catalogHas(views, "{'n': 242}") // with the view and its source

	for _, path := range []string{w.catalogPath(), filepath.Join(w.dir, "raw", "a.csv")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if left := w.writeCatalog(); len(left) != 1 || !strings.HasPrefix(left[0], "zz: ") {
		t.Errorf("left: %v", left)
	}
	w.catalogHas(all, "{'n': 238}")
	w.catalogHas(views, "{'n': 240}")
}

// TestCatalogScript: of several statements, the first that cannot be run is heard of,
// whatever those before it gave, and none after it is run.
func TestCatalogScript(t *testing.T) {
	ctx, s := context.Background(), testSession(t)
	for _, before := range []string{"", "SELECT 1;", "INSERT INTO t VALUES (7);", "CREATE VIEW v AS SELECT 1;"} {
		if err := s.script(ctx, "CREATE OR REPLACE TABLE t(a INT); DROP VIEW IF EXISTS v"); err != nil {
			t.Fatal(err)
		}
		for _, mistake := range []string{"CREATE VIEW w AS FROM nowhere", "INSERT INTO t SELECT CAST('nowhere' AS INT)", "INSERT INTO t SELECT CAST(concat('nowhere', a) AS INT) FROM (VALUES (1)) v(a)"} {
			for _, after := range []string{"", "; INSERT INTO t VALUES (8)"} {
				if err := s.script(ctx, "DROP VIEW IF EXISTS v;"+before+mistake+after); err == nil || !strings.Contains(err.Error(), "nowhere") {
					t.Errorf("%q, %q, %q: %v", before, mistake, after, err)
				}
				if err := s.Query(ctx, "SELECT a FROM t WHERE a = 8", func([]any) error {
					t.Errorf("%q, %q: what stands after the mistake was run", before, mistake)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.script(ended, "DROP TABLE t"); err == nil {
		t.Error("run though its context has ended")
	}
}
