package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/project"
)

// marketplace is the public data set of testdata/projects/olist, cut down to a
// few hundred orders, in a project of its own that a test may spoil.
type marketplace struct {
	*world
	tables map[string][][]string // with the header
}

// newMarketplace reads the shared data; without it the test is skipped.
func newMarketplace(t *testing.T) *marketplace {
	t.Helper()
	shared := os.Getenv("RBT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	dir := filepath.Join(shared, "data", "olist")
	paths, err := filepath.Glob(filepath.Join(dir, "*.csv.gz"))
	if err != nil || len(paths) == 0 {
		t.Skipf("the shared data is absent: no files in %s (RBT_SHARED)", dir)
	}
	files := map[string]string{}
	root := filepath.Join("..", "testdata", "projects", "olist")
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const raw = `raw: "{{ env_var('RBT_SHARED', '../../../../shared') }}/data/olist"`
	if !strings.Contains(files["project.yml"], raw) {
		t.Fatal("project.yml names its data in another way")
	}
	files["project.yml"] = strings.Replace(files["project.yml"], raw, "raw: data", 1)
	m := &marketplace{world: newWorld(t, files), tables: map[string][][]string{}}
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "olist_"), "_dataset.csv.gz")
		m.tables[name] = readGzip(t, path)
	}
	m.cut()
	for name := range m.tables {
		m.store(name)
	}
	return m
}

func readGzip(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// cut keeps the first orders and what belongs to them.
func (m *marketplace) cut() {
	const orders = 300
	m.tables["orders"] = m.tables["orders"][:orders+1]
	m.tables["geolocation"] = m.tables["geolocation"][:1001]
	keep := func(name, column, of, ofColumn string) {
		known := map[string]bool{}
		at := m.column(of, ofColumn)
		for _, row := range m.tables[of][1:] {
			known[row[at]] = true
		}
		at = m.column(name, column)
		rows := m.tables[name]
		m.tables[name] = append(rows[:1:1], slices.DeleteFunc(slices.Clone(rows[1:]), func(row []string) bool { return !known[row[at]] })...)
	}
	for _, name := range []string{"order_items", "order_payments", "order_reviews"} {
		keep(name, "order_id", "orders", "order_id")
	}
	keep("customers", "customer_id", "orders", "customer_id")
}

func (m *marketplace) column(table, name string) int { return slices.Index(m.tables[table][0], name) }

func (m *marketplace) store(name string) {
	m.t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := csv.NewWriter(z)
	if err := w.WriteAll(m.tables[name]); err != nil {
		m.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.write("data/olist_"+name+"_dataset.csv.gz", b.String())
}

// marts gives the content of every published mart: what is rebuilt because the
// files of a source were written again has other bytes and the same rows.
func (m *marketplace) marts() map[string]string {
	m.t.Helper()
	ctx := context.Background()
	db, err := openDatabase(ctx, project.Engine{}, m.t.TempDir())
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	paths, err := filepath.Glob(filepath.Join(m.dir, "lake", "gold", "*.parquet"))
	if err != nil {
		m.t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range paths {
		var rows, content string
		query := "SELECT CAST(count(*) AS VARCHAR), CAST(sum(hash(t)) AS VARCHAR) FROM read_parquet(" + quoteText(path) + ") AS t"
		if err := db.db.QueryRowContext(ctx, query).Scan(&rows, &content); err != nil {
			m.t.Fatal(err)
		}
		out[filepath.Base(path)] = rows + " rows " + content
	}
	return out
}

// failures gives the tests that ran and did not pass as "label on node: failures".
func failures(r *Result) []string {
	var out []string
	for _, t := range r.Tests {
		if t.Status != StatusPass && t.Status != StatusSkipped {
			out = append(out, fmt.Sprintf("%s on %s: %s %d", t.Label, t.Node, t.Status, t.Failures))
		}
	}
	slices.Sort(out)
	return out
}

// TestOneWrongValue spoils one value of a kind at a time: exactly the tests that
// look at it fail, and the marts stay as they were.
func TestOneWrongValue(t *testing.T) {
	m := newMarketplace(t)
	result := m.must(command{})
	if got := failures(result); len(got) > 0 {
		t.Fatalf("the data as it is does not pass: %v", got)
	}
	if n := len(result.Tests); n < 80 {
		t.Fatalf("%d assertions, want at least 80", n)
	}
	before := m.marts()
	if len(before) == 0 {
		t.Fatal("no marts")
	}
	set := func(column, value string) func(m *marketplace, table string) {
		return func(m *marketplace, table string) { m.tables[table][7][m.column(table, column)] = value }
	}
	for _, c := range []struct {
		name, table string
		spoil       func(m *marketplace, table string)
		sel         []string
		want        []string
	}{
		{"NULL", "customers", set("customer_state", ""), nil, []string{"not_null(state) on stg_customers: fail 1"}},
		{"key twice", "sellers", func(m *marketplace, table string) { m.tables[table][7][0] = m.tables[table][8][0] }, []string{"stg_sellers+"},
			[]string{"unique(seller_id) on stg_sellers: fail 1"}},
		{"word outside the list", "orders", set("order_status", "delivred"), nil,
			[]string{"accepted_values(status) on stg_orders: fail 1"}},
		{"number outside the list", "order_reviews", set("review_score", "6"), nil, []string{"accepted_values(score) on stg_reviews: fail 1"}},
		{"number out of range", "order_items", set("price", "0.00"), nil, []string{"expression(price > 0) on stg_order_items: fail 1"}},
		{"text out of shape", "customers", set("customer_zip_code_prefix", "12a45"), nil,
			[]string{"expression(regexp_full_match(zip_prefix, '[0-9]{4,5…) on stg_customers: fail 1"}},
		{"time before its time", "orders", set("order_approved_at", "2001-02-03 04:05:06"), nil,
			[]string{"expression(approved_at >= purchased_at) on stg_orders: fail 1"}},
		{"nobody's key", "order_items", set("seller_id", "nobody"), []string{"stg_order_items+"},
			[]string{"relationships(seller_id) on stg_order_items: fail 1"}},
		{"composite key twice", "order_payments", func(m *marketplace, table string) {
			m.tables[table] = append(m.tables[table], slices.Clone(m.tables[table][7]))
		}, nil, []string{"unique(order_id, sequence) on stg_order_payments: fail 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			good := make([][]string, len(m.tables[c.table]))
			for i, row := range m.tables[c.table] {
				good[i] = slices.Clone(row)
			}
			c.spoil(m, c.table)
			m.store(c.table)
			result, err := m.do(command{sel: c.sel})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, failures(result)); diff != "" {
				t.Error(diff)
			}
			if !slices.ContainsFunc(result.Nodes, func(n *NodeResult) bool { return n.Status == StatusError }) {
				t.Error("no node failed")
			}
			if diff := cmp.Diff(before, m.marts()); diff != "" {
				t.Errorf("marts changed: %s", diff)
			}
			m.tables[c.table] = good
			m.store(c.table)
		})
	}
	m.must(command{})
	if got := m.marts(); len(got) != len(before) {
		t.Errorf("mended data gives %d marts, want %d", len(got), len(before))
	}
}
