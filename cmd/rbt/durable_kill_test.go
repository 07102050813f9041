package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Models beside those of the demo, of which every reading shows whether it is of
// one version. Every run has its own v.
var versioned = map[string]string{
	"models/durable/versions.sql":       "---\npath: durable\ntests: [{row_count: {min: 20000, max: 20000}}, {unique: [i]}, {not_constant: [i]}]\n---\nselect {{ var('v') }}::bigint as v, i from range(20000) t(i) order by i",
	"models/durable/versions_parts.sql": "---\npath: durable\nlayout: parts\ntests: [{row_count: {min: 20000, max: 20000}}]\n---\nselect {{ var('v') }}::bigint as v, i from range(20000) t(i) order by i",
	"models/durable/steps.sql": `---
path: durable
materialization: incremental
tests: [{unique: [v, i]}]
---
select {{ var('v') }}::bigint as v, i from range(100) t(i)
{% if is_incremental() %} where {{ var('v') }} > (select coalesce(max(v), 0) from {{ this }}) {% endif %}`,
	"models/durable/records.sql": `---
materialization: ingest
path: durable
input: {path: $drop/*.ndjson}
mode: append
records:
  reading:
    fields: {batch: {type: bigint, required: true}, n: bigint}
    references: {site: site}
    children: {tags: varchar}
  site: {fields: {name: varchar}}
root: reading
tests: {not_null: [batch]}
---
`,
	"models/durable/by_site.sql": "---\npath: durable\nmaterialization: view\n---\nselect s.name, count(*) as n from {{ ref('records') }} r join {{ ref('records.site') }} s on s._sid = r.site_sid group by all order by all",
}

// newKillProject is the demo with the versioned models and a first run behind it.
func newKillProject(t testing.TB) durable {
	d := newDurable(t, versioned)
	root := filepath.Join("..", "..")
	for _, folder := range []string{"models", "seeds", "tests", "macros", "testdata/demo"} {
		from := os.DirFS(filepath.Join(root, filepath.FromSlash(folder)))
		if err := os.CopyFS(d.path(folder), from); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "project.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), "\nvars:\n", "\nvars:\n  v: 0\n", 1)
	config = strings.Replace(config, "\nroots:\n", "\nroots:\n  drop: drop\n", 1)
	d.write("project.yml", config)
	d.drop(0)
	return d
}

// drop adds a file of raw records.
func (d durable) drop(batch int) {
	var b strings.Builder
	for n := range 50 {
		fmt.Fprintf(&b, `{"batch":%d,"n":%d,"site":{"name":"site %d"},"tags":["a","b"]}`+"\n", batch, n, n%5)
	}
	d.write(fmt.Sprintf("drop/%05d.ndjson", batch), b.String())
}

// late adds the demo's late day, or takes it away.
func (d durable) late(here bool) {
	d.t.Helper()
	if err := os.RemoveAll(d.path("inbox")); err != nil {
		d.t.Fatal(err)
	}
	if here {
		if err := os.CopyFS(d.path("inbox"), os.DirFS(d.path("testdata/demo/late"))); err != nil {
			d.t.Fatal(err)
		}
	}
}

// oneVersion are queries over what is published, with relations read twice, of
// which the answer is "true" for every version that was ever published whole.
var oneVersion = []string{
	"select count(*) = 20000 and min(a.v) = max(b.v) and max(a.v) = min(b.v) from {{ ref('versions') }} a join {{ ref('versions') }} b using (i)",
	"select count(*) = 20000 and min(a.v) = max(b.v) and max(a.v) = min(b.v) from {{ ref('versions_parts') }} a join {{ ref('versions_parts') }} b using (i)",
	"select count(*) = 100 * count(distinct a.v) and count(*) = (select count(*) from {{ ref('steps') }}) from {{ ref('steps') }} a join {{ ref('steps') }} b using (v, i)",
	"select (select count(*) = 50 * count(distinct batch) and min(n) = 0 and max(n) = 49 from {{ ref('records') }}) and (select count(*) from {{ ref('records.tags') }}) = 2 * (select count(*) from {{ ref('records') }})",
	"select (count(*), sum(a.amount), sum(b.amount)) in ((1539, 175022.30, 175022.30), LATE) from {{ ref('fct_orders') }} a join {{ ref('fct_orders') }} b using (order_id)",
	"select count(*) in (2660, 2850) and count(*) = count(distinct event_id) from {{ ref('fct_events') }}",
}

// killReaders reads until stop is closed: rbt's own commands, and DuckDB over the
// files as docs/guarantees.md promises.
type killReaders struct {
	d        durable
	queries  []string
	tests    []string // singular tests that rbt test runs besides
	stop     chan struct{}
	wg       sync.WaitGroup
	readings atomic.Int64
	wrong    atomic.Int64
}

func (r *killReaders) start(db *sql.DB) {
	loop := func(read func(i int) error) {
		r.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-r.stop:
					return
				default:
				}
				if err := read(i); err != nil {
					r.wrong.Add(1)
					r.d.t.Errorf("wrong reading: %v", err)
				}
				r.readings.Add(1)
			}
		})
	}
	loop(r.show)
	loop(func(int) error {
		args := append([]string{"test", "--target-path", "target_of_test", "-s", "versions", "versions_parts", "steps", "records"}, r.tests...)
		o, err := finish(r.d.command(args...))
		if err == nil && o.code != 0 {
			err = fmt.Errorf("rbt test: %s", o)
		}
		return err
	})
	loop(func(i int) error { return plainRead(r.d, db, i) })
}

func (r *killReaders) show(i int) error {
	query := r.queries[i%len(r.queries)]
	o, err := finish(r.d.command("show", "--inline", query, "--output", "csv"))
	if err != nil {
		return err
	}
	if _, answer, _ := strings.Cut(strings.TrimSpace(o.stdout), "\n"); o.code != 0 || answer != "true" {
		return fmt.Errorf("rbt show %s: %s", query, o)
	}
	return nil
}

// plainRead is what an outside reader may do: one scan of a table's file, and one
// scan of the files that a manifest lists. A part that is gone says that the
// manifest was read two runs ago; then it is read again.
func plainRead(d durable, db *sql.DB, i int) error {
	ctx := context.Background()
	var ok bool
	if i%2 == 0 {
		file := quoted(d.path("lake/durable/versions.parquet"))
		err := db.QueryRowContext(ctx, "select count(*) = 20000 and min(v) = max(v) and sum(i) = 199990000 from read_parquet("+file+")").Scan(&ok)
		if err != nil || !ok {
			return fmt.Errorf("one scan of versions.parquet: right is %v, %w", ok, err)
		}
		return nil
	}
	const tries = 5
	var err error
	for range tries {
		var m struct{ Parts []string }
		readJSON(d.t, d.path("lake/durable/versions_parts.parts/_rbt_manifest.json"), &m)
		files := make([]string, len(m.Parts))
		for k, p := range m.Parts {
			files[k] = quoted(d.path("lake/durable/versions_parts.parts/" + p))
		}
		err = db.QueryRowContext(ctx, "select count(*) = 20000 and min(v) = max(v) and sum(i) = 199990000 from read_parquet(["+strings.Join(files, ", ")+"])").Scan(&ok)
		if err == nil && ok {
			return nil
		}
		if err == nil || !strings.Contains(err.Error(), "No files found") && !strings.Contains(err.Error(), "No such file") && !strings.Contains(err.Error(), "Cannot open file") {
			break
		}
	}
	return fmt.Errorf("one scan of the parts of versions_parts: right is %v, %w", ok, err)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// TestKillLoop ends real runs of the demo by SIGKILL at random instants while
// others read, and then compares with a project whose runs were never ended.
func TestKillLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("runs are killed for some time; -short leaves it out")
	}
	wanted := 8
	if long() {
		wanted = 200
	}
	d := newKillProject(t)
	d.late(true)
	d.rbt(0, "run", "--var", "v=1")
	withLate := d.query("select count(*), sum(amount), sum(amount) from {{ ref('fct_orders') }}")
	d.late(false)
	begun := time.Now()
	d.rbt(0, "run", "--full-refresh", "--force", "--var", "v=2")
	whole := time.Since(begun)

	readers := &killReaders{d: d, stop: make(chan struct{})}
	for _, q := range oneVersion {
		readers.queries = append(readers.queries, strings.ReplaceAll(q, "LATE", "("+withLate+")"))
	}
	readers.start(outsider(t))
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("RBT_KILL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	kills, runs, v := 0, 0, 2
	for ; kills < wanted && runs < 3*wanted; runs++ {
		v++
		d.drop(v)
		d.late(rng.IntN(2) == 0)
		args := []string{"run", "--var", fmt.Sprintf("v=%d", v)}
		args = append(args, [][]string{{"--force"}, {"--force"}, nil, {"--full-refresh"}, {"-s", "+tag:gold", "versions", "steps", "records"}}[rng.IntN(5)]...)
		// So long that about one run in ten comes to its end: then its last steps
		// are struck as often as its first.
		if d.killed(time.Duration(rng.Int64N(int64(whole))), args) {
			kills++
			whole += whole / 50
		} else {
			whole -= whole / 5
		}
	}
	close(readers.stop)
	readers.wg.Wait()
	t.Logf("seed %d: %d runs, %d of them killed, %d readings, %d wrong", seed, runs, kills, readers.readings.Load(), readers.wrong.Load())
	if kills < wanted {
		t.Errorf("only %d runs were killed", kills)
	}

	d.late(true)
	d.rbt(0, "run", "--var", fmt.Sprintf("v=%d", v+1))
	never := newKillProject(t)
	never.late(true)
	if err := os.CopyFS(never.path("drop2"), os.DirFS(d.path("drop"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(never.path("drop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(never.path("drop2"), never.path("drop")); err != nil {
		t.Fatal(err)
	}
	never.rbt(0, "run", "--var", fmt.Sprintf("v=%d", v+1))
	compareLakes(t, never, d)
	if got := d.query("select count(*) = 100 * count(distinct v) and max(v) = " + strconv.Itoa(v+1) + " from {{ ref('steps') }}"); got != "true" {
		t.Errorf("steps: %s", d.query("select v, count(*) from {{ ref('steps') }} group by all order by all"))
	}
	// What the last run replaced goes with the next.
	d.rbt(0, "run", "--var", fmt.Sprintf("v=%d", v+1))
	if diff := cmp.Diff(d.documented(), d.files("lake")); diff != "" {
		t.Errorf("files of the lake (-documented +there):\n%s", diff)
	}
	var left []string
	for _, f := range d.files("target") {
		if strings.HasPrefix(f, "tmp/") || strings.HasPrefix(f, ".tmp-") {
			left = append(left, f)
		}
	}
	if len(left) > 0 {
		t.Errorf("left in target/: %v", left)
	}
}

// killed runs a command and kills it after some time, wherever it is; false where
// it had ended before.
func (d durable) killed(after time.Duration, args []string) bool {
	d.t.Helper()
	cmd := d.command(args...)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	switch code := cmd.ProcessState.ExitCode(); {
	case code == -1:
		return true
	case code != 0:
		d.t.Errorf("rbt %s: %v", strings.Join(args, " "), err)
	}
	return false
}

// compareLakes compares the rows of all relations that both lakes must agree on.
func compareLakes(t testing.TB, want, got durable) {
	t.Helper()
	queries := []string{
		"select batch, n, s.name from {{ ref('records') }} r join {{ ref('records.site') }} s on s._sid = r.site_sid order by all",
		"select count(*), count(distinct batch) from {{ ref('records') }}",
		"select * from {{ ref('by_site') }}",
	}
	for _, name := range []string{"versions", "versions_parts", "fct_orders", "fct_events", "dim_customers", "dim_products", "cart_items", "daily_revenue", "funnel_by_day", "int_order_payments", "int_order_totals", "countries", "stg_orders", "stg_events"} {
		queries = append(queries, "select count(*), sum(hash(t)::hugeint) from {{ ref('"+name+"') }} t")
	}
	slices.Sort(queries)
	for _, q := range queries {
		if diff := cmp.Diff(want.query(q), got.query(q)); diff != "" {
			t.Errorf("%s (-never killed +killed):\n%s", q, diff)
		}
	}
}
