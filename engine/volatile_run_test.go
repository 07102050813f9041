package engine

import (
	"strings"
	"testing"
)

// TestNeverUnchanged: what no fingerprint knows is built again every time, and
// the reason is said; so is what reads it through views.
func TestNeverUnchanged(t *testing.T) {
	for sql, why := range map[string]string{
		"select now() as n":                                "volatile: calls now()",
		"select current_date as d":                         "volatile: reads current_date",
		"select * from range(10) t(i) using sample 3 rows": "volatile: takes a sample",
		"select '{{ run_started_at }}' as s":               "volatile: ",
		"select '{{ invocation_id }}' as s":                "volatile: ",
		"select 1 as a from information_schema.tables":     "volatile: reads the schema information_schema",
		"pivot (select 1 as a, 2 as b) on a using sum(b)":  "volatile: the engine cannot show its parse tree",
		"select age(timestamp '2020-01-01') as a":          "volatile: calls age()",
	} {
		w := newWorld(t, map[string]string{"models/m.sql": sql, "models/child.sql": "---\nmaterialization: view\n---\nselect * from {{ ref('m') }}"})
		if strings.HasPrefix(sql, "pivot") {
			w.write("models/child.sql", "select * from {{ ref('m') }}")
		}
		w.must(command{})
		r := w.must(command{})
		n := r.Nodes[0]
		if n.Status != StatusSuccess || !strings.Contains(n.Reason, why) {
			t.Errorf("%s: %s because %q, want %q", sql, n.Status, n.Reason, why)
		}
	}
	// Through a view and an ephemeral.
	w := newWorld(t, map[string]string{
		"models/v.sql": "---\nmaterialization: view\n---\nselect random() as r",
		"models/e.sql": "---\nmaterialization: ephemeral\n---\nselect * from {{ ref('v') }}",
		"models/m.sql": "select * from {{ ref('e') }}",
		"models/x.sql": "select 1 as x, case when 1 > 2 then error('no') else 2 end as e",
	})
	w.must(command{})
	w.wants(w.must(command{}), "v success", "m success 1", "x no-op")
}
