package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/plan"
	"rbt/internal/project"
)

// check runs Engine.Check on every node of a project in which nothing was ever
// published.
func (w *world) check() []string {
	w.t.Helper()
	ctx := context.Background()
	p, problems := project.Load(ctx, project.Options{Dir: w.dir})
	if err := problems.Err(); err != nil {
		w.t.Fatal(err)
	}
	e, err := Open(ctx, Options{Project: p, Now: func() time.Time { return w.now }})
	if err != nil {
		w.t.Fatal(err)
	}
	defer e.Close()
	g, list := plan.Load(ctx, p, e.Parser(), plan.Options{})
	if err := list.Err(); err != nil {
		w.t.Fatal(err)
	}
	found, err := e.Check(ctx, g, g.Nodes())
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, d := range found {
		out = append(out, d.Error())
	}
	return out
}

func TestCheck(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/s.yml": "sources:\n  - name: r\n    tables:\n      - {name: declared, path: none/*.csv, columns: {id: BIGINT, day: DATE}}\n" +
			"      - {name: header, path: data/*.csv, columns: {id: BIGINT}}\n      - {name: open, path: data/*.ndjson}\n",
		"data/a.csv":          "id,name\n1,x\n",
		"data/b.ndjson":       `{"x":1}`,
		"seeds/c.csv":         "code,n\nDE,1\n",
		"models/good.sql":     "select d.id, h.name, sum(c.n) as total from {{ source('r', 'declared') }} d join {{ source('r', 'header') }} h using (id) join {{ ref('c') }} c on c.code = h.name group by all",
		"models/bad.sql":      "select id, nmae from {{ ref('good') }}",
		"models/below.sql":    "select whatever from {{ ref('bad') }}",
		"models/types.sql":    "select * from {{ source('r', 'declared') }} d join {{ ref('c') }} c on d.day = c.n",
		"models/func.sql":     "select kount(total) as n from {{ ref('good') }}",
		"models/open.sql":     "select anything from {{ source('r', 'open') }}",
		"models/inc.sql":      "---\nmaterialization: incremental\n---\nselect id from {{ ref('good') }} {% if is_incremental() %} where id > (select max(idd) from {{ this }}) {% endif %}",
		"models/contract.sql": "---\ncolumns: {id: {type: VARCHAR}}\n---\nselect id from {{ ref('good') }}",
		"models/wide.sql":     "select total + 1 as t from {{ ref('good') }}",
		"models/eph.sql":      "---\nmaterialization: ephemeral\n---\nselect name from {{ ref('good') }}",
		"models/usee.sql":     "select nam from {{ ref('eph') }}",
	})
	want := []string{
		`models/bad.sql:1:12: Referenced column "nmae" not found in FROM clause [RBT4006]`,
		`models/contract.sql:2:22: column id is declared as VARCHAR, and the query gives BIGINT [RBT5007]`,
		`models/func.sql:1:8: Scalar Function with name kount does not exist [RBT4008]`,
		`models/inc.sql:4:83: Referenced column "idd" not found in FROM clause [RBT4006]`,
		`models/types.sql:1:80: a value of type BIGINT can never be taken for a DATE [RBT4009]`,
		`models/usee.sql:1:8: Referenced column "nam" not found in FROM clause [RBT4006]`,
	}
	if diff := cmp.Diff(want, w.check()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.exists("lake") {
		t.Error("the check made a lake")
	}
}

// TestCheckByName: a model is bound right also where the name of what it reads
// stands for more than its rows, and mistakes are told as they are written.
func TestCheckByName(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql":         "select 1 as id, 'x' as name, {'k': 1} as s",
		"models/b.sql":         "select 1 as id, date '2024-01-01' as day",
		"models/qualified.sql": "select a.id, A.name, \"a\".s.k from {{ ref('a') }}",
		"models/row.sql":       "select a from {{ ref('a') }}",
		"models/star.sql":      "select b.*, a.name from {{ ref('a') }} join {{ ref('b') }} using (id)",
		"models/shadow.sql":    "with a as (select id from {{ ref('a') }}) select a.id from a",
		"models/comma.sql":     "select a.id, b.day from {{ ref('a') }}, {{ ref('b') }} where a.id = b.id",
		"models/self.sql":      "select x.id, y.name from {{ ref('a') }} x join {{ ref('a') }} y on x.id = y.id",
		"models/sub.sql":       "select (select max(day) from {{ ref('b') }}) as d, name from {{ ref('a') }} where id in (select id from {{ ref('b') }})",
		"models/bad1.sql":      "select a.nme from {{ ref('a') }}",
		"models/bad2.sql":      "select 1 as one,\n  nme from {{ ref('a') }}",
		"models/bad3.sql":      "select x.id from {{ ref('a') }} x join {{ ref('b') }} y on x.id = y.day",
		"models/bad4.sql":      "select sum(name) as n from {{ ref('a') }}",
		"models/bad5.sql":      "select id from {{ ref('star') }} where dya > 1",
	})
	want := []string{
		`models/bad1.sql:1:10: "a" has no column "nme" [RBT4006]`,
		`models/bad2.sql:2:3: Referenced column "nme" not found in FROM clause [RBT4006]`,
		`models/bad3.sql:1:60: a value of type INTEGER can never be taken for a DATE [RBT4009]`,
		`models/bad4.sql:1:8: No function matches the given name and argument types 'sum(VARCHAR)'. You might need to add explicit type casts [RBT4008]`,
		`models/bad5.sql:1:40: Referenced column "dya" not found in FROM clause [RBT4006]`,
	}
	if diff := cmp.Diff(want, w.check()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkCheck(b *testing.B) {
	files := map[string]string{
		"models/s.yml":  "sources:\n  - name: r\n    tables:\n      - {name: t, path: none/*.csv, columns: {id: BIGINT, day: DATE, name: VARCHAR}}\n",
		"models/m0.sql": "select * from {{ source('r', 't') }}",
	}
	for i := 1; i < 1000; i++ {
		files[fmt.Sprintf("models/m%d.sql", i)] = fmt.Sprintf("select a.id, a.day, upper(b.name) as name from {{ ref('m%d') }} a join {{ ref('m%d') }} b using (id) where a.day > '2024-01-01'%s", i/2, i/3, strings.Repeat(" ", i%5))
	}
	w := newWorld(b, files)
	for b.Loop() {
		if err := os.RemoveAll(filepath.Join(w.dir, "target")); err != nil { // nothing is remembered
			b.Fatal(err)
		}
		if found := w.check(); len(found) > 0 {
			b.Fatal(found[0])
		}
	}
}
