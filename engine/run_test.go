package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// world is a project in a folder that tests run commands in, as cmd/rbt does.
type world struct {
	t      testing.TB
	dir    string
	now    time.Time
	run    int
	events []Event
	mu     sync.Mutex
	vars   map[string]any
	env    map[string]string
	last   *Engine // of the last command
}

func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	if _, ok := files["project.yml"]; !ok {
		files["project.yml"] = "name: shop\n"
	}
	return &world{t: t, dir: writeFiles(t, files), now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
}

// write adds or changes a file.
func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// options change what a command does.
type command struct {
	sel, exclude []string
	fullRefresh  bool
	force        bool
	workers      int
	failFast     bool
	store        bool
	tests        bool // plan and run the tests on what is published
	ctx          context.Context
	events       func(Event)
	progress     time.Duration
	trace        bool
	fs           lake.FS // nil: that of the machine
	grace        time.Duration
}

// do loads, plans and runs; the diagnostics of a project that cannot be loaded
// or planned are the error.
func (w *world) do(c command) (*Result, error) {
	w.t.Helper()
	ctx := c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	w.run++
	w.now = w.now.Add(time.Hour)
	p, problems := project.Load(ctx, project.Options{Dir: w.dir, Vars: w.vars, Env: func(name string) (string, bool) {
		v, ok := w.env[name]
		return v, ok
	}})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	fsys := c.fs
	if fsys == nil {
		fsys = lake.OS()
	}
	l, err := lake.Open(p.LakeDir, fsys)
	if err != nil {
		return nil, err
	}
	w.events = nil
	e, err := Open(ctx, Options{Project: p, Lake: l, ProgressEvery: c.progress, Grace: c.grace, Trace: c.trace, Now: func() time.Time { return w.now }, Events: func(ev Event) {
		w.mu.Lock()
		w.events = append(w.events, ev)
		w.mu.Unlock()
		if c.events != nil {
			c.events(ev)
		}
	}})
	if err != nil {
		return nil, err
	}
	w.last = e
	defer e.Close()
	lock, err := l.Lock(ctx, lake.LockOptions{Now: w.now})
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	recovered, err := l.Recover(ctx, lock)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("run-%d", w.run)
	pl, list := plan.Build(ctx, p, &recovered.State, e.Parser(), plan.Options{
		Selectors: plan.Selectors{Select: c.sel, Exclude: c.exclude}, FullRefresh: c.fullRefresh, Force: c.force, RunStartedAt: w.now, InvocationID: id,
		EngineIdentity: e.Identity(), SourceFiles: e.SourceFiles, SeedHash: e.SeedHash, IngestFiles: e.IngestFiles, Tests: c.tests,
	})
	if err := list.Err(); err != nil {
		return nil, err
	}
	run := e.Run
	if c.tests {
		run = e.Test
	}
	return run(ctx, pl, RunOptions{Command: "run", InvocationID: id, RunStartedAt: w.now, State: &recovered.State, Workers: c.workers,
		FailFast: c.failFast, FullRefresh: c.fullRefresh, StoreFailures: c.store})
}

// must is do for commands that have to start.
func (w *world) must(c command) *Result {
	w.t.Helper()
	r, err := w.do(c)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return r
}

// summary is one line a node: name, status, rows and what else counts.
func summary(r *Result) []string {
	var out []string
	for _, n := range r.Nodes {
		line := fmt.Sprintf("%s %s", n.Name, n.Status)
		if n.Status == StatusSuccess && n.Materialization != "view" {
			line += fmt.Sprintf(" %d", n.Rows)
		}
		if n.Parts > 0 {
			line += fmt.Sprintf(" parts=%d", n.Parts)
		}
		if n.Because != "" {
			line += " because " + n.Because
		}
		for _, t := range n.Tests {
			if t.Status != StatusPass {
				line += fmt.Sprintf(" [%s %s %d]", t.Status, t.Label, t.Failures)
			}
		}
		out = append(out, line)
	}
	return out
}

func (w *world) wants(r *Result, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, summary(r)); diff != "" {
		w.t.Errorf("(-want +got):\n%s", diff)
		for _, n := range r.Nodes {
			if n.Err != nil {
				w.t.Logf("%s: %v", n.Name, n.Err)
			}
			for _, t := range n.Tests {
				if t.Err != nil {
					w.t.Logf("%s: %v", t.Name, t.Err)
				}
			}
		}
	}
}

// rows reads a published file or query with plain DuckDB.
func (w *world) rows(query string) []string {
	w.t.Helper()
	s := testSession(w.t)
	return rowsOf(w.t, s, strings.ReplaceAll(query, "LAKE", filepath.Join(w.dir, "lake")))
}

func TestRunViewsTablesAndSources(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/staging/stg_orders.sql": "---\nmaterialization: view\n---\nselect id, amount / 100.0 as amount, status from {{ source('raw', 'orders') }}",
		"models/orders.sql":             "---\ncolumns:\n  id: {tests: [not_null, unique]}\n---\nwith orders as (select * from {{ ref('stg_orders') }}) select * from orders order by id",
		"models/totals.sql":             "select status, sum(amount) as total, count(*) as n from orders group by all order by all",
		"models/sources.yml":            "sources:\n  - name: raw\n    tables:\n      - name: orders\n        path: data/orders*.csv\n        columns: {id: BIGINT, amount: BIGINT}\n",
		"data/orders1.csv":              "id,amount,status\n1,1000,a\n2,250,b\n",
		"data/orders2.csv":              "status,id,amount\na,3,75\n",
	})
	r := w.must(command{})
	w.wants(r, "stg_orders success", "orders success 3", "totals success 2")
	if diff := cmp.Diff([]string{"status|total|n", "a|10.75|2", "b|2.5|1"}, w.rows("from 'LAKE/totals.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.wants(w.must(command{}), "stg_orders no-op", "orders no-op", "totals no-op")
	w.write("data/orders3.csv", "id,amount,status\n4,1,c\n")
	w.wants(w.must(command{}), "stg_orders success", "orders success 4", "totals success 3")
	if diff := cmp.Diff([]string{"n", "4"}, w.rows("select count(*) as n from 'LAKE/orders.parquet'")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTestReadsWhatIsPublished(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql":     "---\ncolumns:\n  id: {tests: [not_null, unique]}\n---\nselect * from (values (1), (2)) t(id)",
		"models/v.sql":     "---\nmaterialization: view\ntests: [{row_count: {equal_to: a}}]\n---\nselect * from a",
		"models/never.sql": "---\ntests: [{row_count: {min: 1}}]\n---\nselect 1 as x",
		"tests/single.sql": "select * from {{ ref('v') }} where id > 1",
	})
	w.must(command{exclude: []string{"never", "single"}})
	r := w.must(command{tests: true})
	var got []string
	for _, tr := range r.Tests {
		line := fmt.Sprintf("%s %s %d of %d", tr.Label, tr.Status, tr.Failures, tr.Checked)
		if tr.Err != nil {
			line += " " + tr.Err.Error()
		}
		got = append(got, line)
	}
	want := []string{
		"not_null(id) pass 0 of 2", "unique(id) pass 0 of 2",
		"row_count error 0 of -1 models/never.sql:2:10: never has never been published [RBT4007]",
		"row_count pass 0 of 2", "single fail 1 of -1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pins, _ := filepath.Glob(filepath.Join(w.dir, "lake", ".rbt", "pins", "*")); len(pins) > 0 {
		t.Errorf("pins stay: %v", pins)
	}
}
