package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"rbt/internal/project"
)

// threadsSeen runs everything and gives, by node, whether one thread was all that a
// query had when the node was done, and what the threads are after the run.
func threadsSeen(t *testing.T, w *world, nodes ...string) (one map[string]bool, after int64) {
	t.Helper()
	one = map[string]bool{}
	w.must(command{sel: nodes, workers: 1, force: true, events: func(ev Event) {
		if ev.Kind == EventNodeFinished {
			db, err := w.last.database(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			one[ev.Node.Name] = threadsOf(t, db) == 1
			if db.breadth.narrow != one[ev.Node.Name] {
				t.Errorf("%s: the engine has one thread: %t, and it is noted as %t", ev.Node.Name, one[ev.Node.Name], db.breadth.narrow)
			}
		}
		if ev.Kind == EventRunFinished {
			db, err := w.last.database(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.widen(context.Background()); err != nil {
				t.Error(err)
			}
			after = threadsOf(t, db)
		}
	}})
	return one, after
}

func threadsOf(t *testing.T, d *database) (n int64) {
	t.Helper()
	if err := d.db.QueryRow("SELECT current_setting('threads')").Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// TestBreadth: one thread does for steps that read little, and none has to do with
// one from the first on that may read much.
func TestBreadth(t *testing.T) {
	const little = "select 1 as a union all select 2 as a"
	for name, tc := range map[string]struct {
		files map[string]string
		alone string // what is run, once all is there; "" is everything
		one   map[string]bool
	}{
		"little": {
			map[string]string{"models/a.sql": little, "models/b.sql": "select a, a + 1 as b from {{ ref('a') }}",
				"models/c.sql": "---\ncolumns: {a: {tests: [not_null, unique]}}\n---\nselect a from {{ ref('b') }}"},
			"", map[string]bool{"a": true, "b": true, "c": true},
		},
		"a seed and a source": {
			map[string]string{
				"project.yml": "name: shop\nsources: [{name: raw, tables: [{name: t, path: raw.csv, columns: {k: BIGINT}}]}]\n",
				"raw.csv":     "k\n1\n2\n", "seeds/s.csv": "k\n1\n", "models/t.sql": "select k from {{ source('raw', 't') }} where k in (select k from {{ ref('s') }})"},
			"", map[string]bool{"s": true, "t": true},
		},
		"rows out of nothing": {
			map[string]string{"models/a.sql": little, "models/b.sql": "select range as a from range(3)"},
			"", map[string]bool{"a": true, "b": false},
		},
		"many rows": {
			map[string]string{"models/a.sql": fmt.Sprintf("select range as a from range(%d)", narrowRows+1), "models/b.sql": "select a from {{ ref('a') }}"},
			"b", map[string]bool{"b": false},
		},
		"as many rows as are few": {
			map[string]string{"models/a.sql": fmt.Sprintf("select range as a from range(%d)", narrowRows), "models/b.sql": "select a from {{ ref('a') }}"},
			"b", map[string]bool{"b": true},
		},
		"a large source": {
			map[string]string{
				"project.yml": "name: shop\nsources: [{name: raw, tables: [{name: t, path: raw.csv, columns: {k: BIGINT}}]}]\n",
				"raw.csv":     "k\n" + strings.Repeat("1\n", narrowRows+1), "models/a.sql": little, "models/t.sql": "select k from {{ source('raw', 't') }}"},
			"", map[string]bool{"a": true, "t": false},
		},
		"a view": {
			map[string]string{"models/a.sql": "---\nmaterialization: view\n---\n" + little, "models/b.sql": "select a from {{ ref('a') }}"},
			"", map[string]bool{"a": true, "b": false},
		},
		"a test of another": {
			map[string]string{"models/a.sql": little,
				"models/b.sql": "---\ntests: [{relationships: {column: a, to: a, field: a}}]\n---\nselect a from {{ ref('a') }}"},
			"", map[string]bool{"a": true, "b": false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.files)
			w.write("project.yml", tc.files["project.yml"]+"engine: {duckdb_threads: 3}\n")
			w.must(command{})
			var nodes []string
			if tc.alone != "" {
				nodes = []string{tc.alone}
			}
			one, after := threadsSeen(t, w, nodes...)
			for node, want := range tc.one {
				if got, ok := one[node]; !ok || got != want {
					t.Errorf("%s: one thread: %t (built: %t), want %t", node, got, ok, want)
				}
			}
			if after != 3 {
				t.Errorf("after the run the engine has %d threads, want 3", after)
			}
		})
	}
}

// TestBreadthOfTheMachine: where the project says nothing, the engine's own number of
// threads is there again.
func TestBreadthOfTheMachine(t *testing.T) {
	d, err := openDatabase(context.Background(), project.Engine{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	before := threadsOf(t, d)
	d.narrow(context.Background())
	if got := threadsOf(t, d); got != 1 {
		t.Errorf("narrow: %d threads", got)
	}
	if err := d.widen(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := threadsOf(t, d); got != before {
		t.Errorf("wide again: %d threads, before %d", got, before)
	}
}
