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
