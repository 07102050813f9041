package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// jaffle is a project with one of each: a source, a seed, a view, an ephemeral,
// tables, an incremental.
func jaffle() map[string]string {
	return map[string]string{
		"project.yml": `name: shop
sources:
  - name: raw
    tables:
      - name: orders
        path: raw/orders.csv
        columns: {id: BIGINT, amount: DOUBLE}
`,
		"raw/orders.csv":                "id,amount\n1,2\n",
		"seeds/countries.csv":           "code\nde\n",
		"models/staging/stg_orders.sql": "---\nmaterialization: view\n---\nselect * from {{ source('raw', 'orders') }}\n",
		"models/staging/paid.sql":       "---\nmaterialization: ephemeral\n---\nselect * from {{ ref('stg_orders') }} where amount > 0\n",
		"models/orders.sql":             "select * from {{ ref('paid') }}\n",
		"models/daily.sql": "---\nmaterialization: incremental\n---\nselect * from {{ ref('orders') }}" +
			"{% if is_incremental() %} where id > (select max(id) from {{ this }}){% endif %}\n",
		"models/by_country.sql": "select * from {{ ref('orders') }} join countries using (code)\n",
	}
}

func newJaffle(t *testing.T) *world {
	w := newWorld(t, jaffle())
	w.files["raw.orders"] = map[string]lake.FileStamp{"raw/orders.csv": {Size: 14, Mtime: 1, Ctime: 1}}
	return w
}

func TestFirstRun(t *testing.T) {
	w := newJaffle(t)
	p := w.run()
	want := "stg_orders run: new\norders run: new\ncountries run: new\nby_country run: new\ndaily run: new\n"
	if diff := cmp.Diff(want, lines(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("stg_orders unchanged: nothing changed\norders unchanged: nothing changed\ncountries unchanged: nothing changed\n"+
		"by_country unchanged: nothing changed\ndaily unchanged: already in part-0000000000005\n", lines(w.plan())); diff != "" {
		t.Error(diff)
	}
	after := map[string][]int{}
	for _, s := range p.Steps {
		after[s.Node.Name] = s.After
	}
	// orders reads stg_orders through the ephemeral.
	if diff := cmp.Diff(map[string][]int{"stg_orders": nil, "orders": {1}, "countries": nil, "by_country": {2, 3}, "daily": {2}}, after); diff != "" {
		t.Error(diff)
	}
}

func TestReferences(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml": "name: shop\nsources:\n  - name: erp\n    tables:\n      - {name: invoice, path: a.csv, columns: {a: BIGINT}}\n",
		// A CTE of the name of a model does not hide what it reads, and is nothing itself.
		"models/invoice.sql": "with invoice as (select * from {{ source('erp', 'invoice') }}), old as (select * from legacy) select * from invoice\n",
		"models/legacy.sql":  "select 1 as a\n",
		"models/Plain.sql":   "select legacy.a from main.LEGACY join erp.invoice using (a)\n",
		"models/both.sql": "---\nmaterialization: incremental\n---\nselect * from {{ ref('legacy') }}" +
			"{% if is_incremental() %} where a in (select a from {{ ref('plain') }} union all from {{ this }}){% endif %}\n",
		"models/none.sql":   "select 'legacy' as legacy -- legacy\n",
		"models/hinted.sql": "-- {{ ref('none') }}\nselect 1 as a\n",
	})
	g, diags := Load(t.Context(), w.load(), &fakeParser{}, w.opts)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got := map[string]string{}
	for _, n := range g.Nodes() {
		got[n.Name] = strings.Join(names(n.Parents), " ")
	}
	want := map[string]string{"invoice": "legacy erp.invoice", "legacy": "", "Plain": "legacy erp.invoice", "both": "Plain legacy",
		"none": "", "hinted": "none", "erp.invoice": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReferenceErrors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"itself by ref", map[string]string{"models/x.sql": "select *\nfrom {{ ref('x') }}\n"},
			"models/x.sql:2:9: model \"x\" (models/x.sql) reads itself [RBT3002]"},
		{"itself by name", map[string]string{"models/x.sql": "select * from x\n"},
			"models/x.sql:1:15: model \"x\" (models/x.sql) reads itself [RBT3002]"},
		{"a circle of both kinds", map[string]string{"models/a.sql": "select * from b\n", "models/b.sql": "select * from {{ ref('a') }}\n"},
			"models/a.sql:1:15: cycle: a -> b -> a [RBT3001]"},
		{"a name in a query that cannot be read", map[string]string{"models/a.sql": "select 1 as x\n", "models/b.sql": "pivot {{ ref('a') }} on a\n"},
			"models/b.sql:1:25: \"a\" is also the name of a model, and whether it is meant here cannot be told in this query [RBT3003]"},
		{"no SQL", map[string]string{"models/a.sql": "select 1,\n  BAD\n"}, "models/a.sql:2:3: bad SQL [RBT4005]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, diags := newWorld(t, tc.files).tryPlan()
			if diff := cmp.Diff(tc.want, diags.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// unknownRefs gives file and message of diagnostics: where exactly an unknown
// name is pointed at is for the project to say.
func unknownRefs(diags diag.List) []string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Pos.File+": "+d.Msg)
	}
	return out
}

func TestProblemsOfAllFilesAreTold(t *testing.T) {
	_, diags := newWorld(t, map[string]string{"models/a.sql": "select * from {{ ref('nope') }}\n", "models/b.sql": "select * from {{ ref('nada') }}\n"}).tryPlan()
	want := []string{"models/a.sql: there is no model, seed or ingest output called \"nope\"", "models/b.sql: there is no model, seed or ingest output called \"nada\""}
	if diff := cmp.Diff(want, unknownRefs(diags)); diff != "" {
		t.Error(diff)
	}
}

func TestTestsAreNoEdges(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql":       "---\ntests:\n  - relationships: {column: id, to: b, field: id}\n  - not_null: [id]\n---\nselect 1 as id\n",
		"models/b.sql":       "---\ntests:\n  - relationships: {column: id, to: a, field: id}\n  - expression: id in (select id from a)\n---\nselect * from {{ ref('a') }}\n",
		"models/c.sql":       "---\ntests:\n  - relationships: {column: id, to: ref('b'), field: id}\n---\nselect 1 as id\n",
		"tests/positive.sql": "select * from {{ ref('b') }} join a using (id) where id < 0\n",
	})
	p := w.plan()
	got := map[string]string{}
	for _, s := range p.Steps {
		for _, gate := range s.Gates {
			got[gate.Name] = "gates " + s.Node.Name
		}
	}
	for _, l := range p.Late {
		var after []string
		for _, number := range l.After {
			after = append(after, p.Steps[number-1].Node.Name)
		}
		got[l.Test.Name] = "late after " + strings.Join(after, " ") + ", remembered by " + l.Owner.Name
	}
	want := map[string]string{
		"not_null_a_id":                        "gates a",
		"relationships_a_id__b_id":             "late after a b, remembered by a",
		"relationships_b_id__a_id":             "gates b",
		"relationships_c_id__b_id":             "gates c",
		"expression_b__id_in_select_id_from_a": "gates b",
		"positive":                             "gates b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnselectedParents(t *testing.T) {
	w := newJaffle(t)
	_, diags := w.tryPlan("by_country", "daily")
	want := "error[RBT3020]: model \"by_country\" reads \"orders\", which was never published and is not selected\n" +
		"  --> models/by_country.sql:1:18\n" +
		"  help: select it too: +by_country builds by_country with all that it reads\n\n" +
		"error[RBT3020]: model \"by_country\" reads \"countries\", which was never published and is not selected\n" +
		"  --> models/by_country.sql:1:40\n" +
		"  help: select it too: +by_country builds by_country with all that it reads\n\n" +
		"error[RBT3020]: model \"daily\" reads \"orders\", which was never published and is not selected\n" +
		"  --> models/daily.sql:4:18\n" +
		"  help: select it too: +daily builds daily with all that it reads\n"
	if diff := cmp.Diff(want, diag.RenderList(diags, nil)); diff != "" {
		t.Error(diff)
	}
	_, diags = w.tryPlan("orders")
	want = "models/orders.sql:1:18: model \"orders\" reads \"stg_orders\" through the ephemeral model \"paid\", which was never published and is not selected [RBT3020]"
	if diff := cmp.Diff(want, diags.Error()); diff != "" {
		t.Error(diff)
	}
	w.run("stg_orders")
	if diff := cmp.Diff("orders run: new\n", lines(w.run("orders"))); diff != "" {
		t.Error(diff)
	}
	// A view is used as it is published, and the ephemeral as it stands.
	w.write(map[string]string{"models/staging/stg_orders.sql": "---\nmaterialization: view\n---\nselect id from {{ source('raw', 'orders') }}\n"})
	if diff := cmp.Diff("orders unchanged: nothing changed\n", lines(w.run("orders"))); diff != "" {
		t.Error(diff)
	}
	w.write(map[string]string{"models/staging/paid.sql": "---\nmaterialization: ephemeral\n---\nselect id from {{ ref('stg_orders') }}\n"})
	if diff := cmp.Diff("orders run: parent paid changed\n", lines(w.run("orders"))); diff != "" {
		t.Error(diff)
	}
}

// TestMutations edits a project that was run, and says what the next run would
// do and why. Steps that are not named are unchanged.
func TestMutations(t *testing.T) {
	const view = "---\nmaterialization: view\n---\n"
	for _, tc := range []struct {
		name  string
		edit  func(*world)
		steps map[string]string
	}{
		{"nothing", func(*world) {}, nil},
		{"a comment, and white space outside literals", func(w *world) {
			w.write(map[string]string{"models/orders.sql": "select *  -- all\n\n  from {{ ref('paid') }}\n"})
		}, nil},
		{"white space in a literal", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "select *, ' ' as a from {{ ref('orders') }} join countries using (code)\n"})
			w.run()
			w.write(map[string]string{"models/by_country.sql": "select *, '  ' as a from {{ ref('orders') }} join countries using (code)\n"})
		}, map[string]string{"by_country": "run: sql changed"}},
		{"an alias", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "select 1 as a from {{ ref('orders') }} join countries using (code)\n"})
		}, map[string]string{"by_country": "run: sql changed"}},
		{"a bare name made a ref", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "select * from {{ ref('orders') }} join {{ ref('countries') }} using (code)\n"})
		}, map[string]string{"by_country": "run: sql changed"}},
		{"description, tags, meta, tests of another", func(w *world) {
			w.write(map[string]string{"models/orders.sql": "---\ndescription: d\ntags: [t]\nmeta: {a: b}\ndocs: {show: false}\n---\nselect * from {{ ref('paid') }}\n"})
		}, nil},
		{"a config key", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "---\npath: gold\n---\nselect * from {{ ref('orders') }} join countries using (code)\n"})
		}, map[string]string{"by_country": "run: config changed: path"}},
		{"a declared type", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "---\ncolumns: {a: BIGINT}\n---\nselect * from {{ ref('orders') }} join countries using (code)\n"})
		}, map[string]string{"by_country": "run: config changed: types"}},
		{"a declared column without a type", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "---\ncolumns: {a: {description: x}}\n---\nselect * from {{ ref('orders') }} join countries using (code)\n"})
		}, nil},
		{"the materialization", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": view + "select * from {{ ref('orders') }} join countries using (code)\n"})
		}, map[string]string{"by_country": "run: published as table before, view now"}},
		{"the layout", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "---\nlayout: parts\n---\nselect * from {{ ref('orders') }} join countries using (code)\n"})
		}, map[string]string{"by_country": "run: published as table before, table in parts now"}},
		{"a source file touched", func(w *world) {
			w.files["raw.orders"] = map[string]lake.FileStamp{"raw/orders.csv": {Size: 14, Mtime: 2, Ctime: 2}}
		}, map[string]string{
			"stg_orders": "run: source file raw/orders.csv changed", "orders": "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"a source file replaced with the same size and mtime", func(w *world) {
			w.files["raw.orders"] = map[string]lake.FileStamp{"raw/orders.csv": {Size: 14, Mtime: 1, Ctime: 2}}
		}, map[string]string{
			"stg_orders": "run: source file raw/orders.csv changed", "orders": "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"a source file more", func(w *world) {
			w.files["raw.orders"] = map[string]lake.FileStamp{"raw/orders.csv": {Size: 14, Mtime: 1, Ctime: 1}, "raw/orders2.csv": {Size: 1}}
		}, map[string]string{
			"stg_orders": "run: source file raw/orders2.csv added", "orders": "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"many source files", func(w *world) {
			w.files["raw.orders"] = map[string]lake.FileStamp{"a": {}, "b": {}, "c": {}, "d": {}, "e": {}}
		}, map[string]string{
			"stg_orders": "run: source file a added; source file b added; source file c added; 3 more source files changed",
			"orders":     "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"source files that cannot be seen", func(w *world) { delete(w.files, "raw.orders") }, map[string]string{
			"stg_orders": "run: source file raw/orders.csv removed; files of raw.orders: no file matches",
			"orders":     "run: parent paid: parent stg_orders: files of raw.orders: no file matches",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"how a source is declared", func(w *world) {
			w.write(map[string]string{"project.yml": strings.Replace(jaffle()["project.yml"], "DOUBLE", "BIGINT", 1)})
		}, map[string]string{
			"stg_orders": "run: declaration of source raw.orders changed", "orders": "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"a view parent", func(w *world) {
			w.write(map[string]string{"models/staging/stg_orders.sql": view + "select id from {{ source('raw', 'orders') }}\n"})
		}, map[string]string{
			"stg_orders": "run: sql changed", "orders": "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"an ephemeral parent", func(w *world) {
			w.write(map[string]string{"models/staging/paid.sql": "---\nmaterialization: ephemeral\n---\nselect id from {{ ref('stg_orders') }}\n"})
		}, map[string]string{
			"orders":     "run: parent paid changed",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"a seed", func(w *world) { w.write(map[string]string{"seeds/countries.csv": "code\nfr\n"}) }, map[string]string{
			"countries": "run: seed file changed", "by_country": "run_if_parents_change: if countries changes"}},
		{"the engine", func(w *world) { w.opts.EngineIdentity = "duckdb 1.6.0" }, map[string]string{
			"stg_orders": "run: engine version or settings changed", "orders": "run: parent paid changed; engine version or settings changed",
			"countries": "run: engine version or settings changed", "by_country": "run: engine version or settings changed",
			"daily": "run: engine version or settings changed"}},
		{"forced", func(w *world) { w.opts.Force = true }, map[string]string{
			"stg_orders": "run: forced", "orders": "run: forced", "countries": "run: forced", "by_country": "run: forced", "daily": "run: forced"}},
		{"full refresh", func(w *world) { w.opts.FullRefresh = true }, map[string]string{
			"stg_orders": "run: full refresh", "orders": "run: full refresh", "countries": "run: full refresh",
			"by_country": "run: full refresh", "daily": "run: full refresh"}},
		{"a clock in a view", func(w *world) {
			w.write(map[string]string{"models/staging/stg_orders.sql": view + "select now() as at, * from {{ source('raw', 'orders') }}\n"})
			w.run()
		}, map[string]string{
			"stg_orders": "run: volatile: now()", "orders": "run: volatile: now() in stg_orders in paid",
			"by_country": "run_if_parents_change: if orders changes", "daily": "run_if_parents_change: if orders changes"}},
		{"the time of the run", func(w *world) {
			w.write(map[string]string{"models/by_country.sql": "select '{{ run_started_at }}' as at from {{ ref('orders') }} join countries using (code)\n"})
			w.run()
		}, map[string]string{"by_country": "run: volatile: run_started_at"}},
		{"a volatility that the engine found", func(w *world) {
			n := w.state.Nodes["by_country"]
			v := "reads a literal path"
			n.Receipt.Volatile = &v
			w.state.Nodes["by_country"] = n
		}, map[string]string{"by_country": "run: volatile: reads a literal path"}},
		{"a table that is gone", func(w *world) {
			n := w.state.Nodes["by_country"]
			n.Damage = &lake.DamageError{Node: "by_country", Path: "by_country.parquet", Err: errGone}
			w.state.Nodes["by_country"] = n
		}, map[string]string{"by_country": "run: output missing: " + (&lake.DamageError{Node: "by_country", Path: "by_country.parquet", Err: errGone}).Error()}},
		{"a crash before the receipt", func(w *world) {
			n := w.state.Nodes["by_country"]
			n.Adopted, n.Receipt.Fingerprint, n.Receipt.Inputs = true, "", lake.Inputs{}
			w.state.Nodes["by_country"] = n
		}, map[string]string{"by_country": "run: what it was made from is not known"}},
		{"a receipt of an rbt that hashed otherwise", func(w *world) {
			n := w.state.Nodes["by_country"]
			n.Receipt.Fingerprint = "0123"
			w.state.Nodes["by_country"] = n
		}, map[string]string{"by_country": "run: what it was made from is not known"}},
		{"a test added", func(w *world) {
			w.write(map[string]string{"models/orders.sql": "---\ntests: [{not_null: [id]}]\n---\nselect * from {{ ref('paid') }}\n"})
		}, map[string]string{"orders": "audit: the test not_null_orders_id is new, changed or did not pass"}},
		{"a test described", func(w *world) {
			w.write(map[string]string{"models/orders.sql": "---\ntests: [{not_null: {columns: [id]}}]\n---\nselect * from {{ ref('paid') }}\n"})
			w.run()
			w.write(map[string]string{"models/orders.sql": "---\ntests: [{not_null: {columns: [id], description: d, name: n, tags: [t]}}]\n---\nselect * from {{ ref('paid') }}\n"})
		}, nil},
		{"a singular test added", func(w *world) {
			w.write(map[string]string{"tests/t.sql": "select * from {{ ref('orders') }} where id < 0\n"})
		}, map[string]string{"orders": "audit: the test t is new, changed or did not pass"}},
		{"a test with the clock", func(w *world) {
			w.write(map[string]string{"models/orders.sql": "---\ntests: [{freshness: {column: at, max_age: 1 day}}]\n---\nselect * from {{ ref('paid') }}\n"})
			w.run()
		}, map[string]string{"orders": "audit: the test freshness_orders_at__24h0m0s uses the clock"}},
		{"a test that failed late", func(w *world) {
			w.write(map[string]string{"tests/t.sql": "select * from {{ ref('orders') }} where id < 0\n"})
			w.run()
			n := w.state.Nodes["orders"]
			n.Receipt.TestsHash = ""
			w.state.Nodes["orders"] = n
		}, map[string]string{"orders": "audit: the test t is new, changed or did not pass"}},
		{"a node renamed", func(w *world) {
			w.remove("models/by_country.sql")
			w.write(map[string]string{"models/by_land.sql": jaffle()["models/by_country.sql"]})
		}, map[string]string{"by_land": "run: new"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newJaffle(t)
			w.run()
			tc.edit(w)
			got := map[string]string{}
			for _, line := range strings.Split(strings.TrimSpace(lines(w.plan())), "\n") {
				if name, what, _ := strings.Cut(line, " "); !strings.HasPrefix(what, "unchanged") {
					got[name] = what
				}
			}
			if diff := cmp.Diff(tc.steps, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var errGone = errors.New("the published file is missing")

func TestParentOfEqualContent(t *testing.T) {
	w := newJaffle(t)
	w.content["orders"] = "c1"
	w.run()
	edit := func(amount string) {
		w.write(map[string]string{"models/orders.sql": "select * from {{ ref('paid') }} where amount > " + amount + "\n"})
	}
	edit("1") // without effect
	w.run()
	if diff := cmp.Diff([]string{"orders"}, w.ran); diff != "" {
		t.Error(diff)
	}
	w.content["orders"] = "c2"
	edit("2")
	p := w.run()
	if diff := cmp.Diff([]string{"orders", "by_country", "daily"}, w.ran); diff != "" {
		t.Error(diff)
	}
	settler := p.NewSettler()
	for _, s := range p.Steps {
		if s.Node.Name == "orders" {
			r := w.state.Nodes["orders"].Receipt
			settler.Done(s, &r)
		}
	}
	for _, s := range p.Steps {
		if s.Node.Name == "by_country" {
			if diff := cmp.Diff([]string{"parent orders changed"}, settler.Decide(s).Reasons); diff != "" {
				t.Error(diff)
			}
		}
	}
	// Without content hashes a new commit is enough, also of a run of its own.
	w.content = map[string]string{}
	edit("3")
	w.run("orders")
	if diff := cmp.Diff("by_country run: parent orders republished\n", lines(w.plan("by_country"))); diff != "" {
		t.Error(diff)
	}
}

func TestAppendTwice(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql": "select 1 as a\n",
		"models/m.sql": "---\nmaterialization: incremental\n---\nselect '{{ var('day', '1') }}' as day from {{ ref('a') }}\n",
	})
	day := func(value string) {
		w.write(map[string]string{"project.yml": "name: shop\nvars: {day: '" + value + "'}\n"})
	}
	day("1")
	w.run()
	day("2")
	p := w.run()
	if diff := cmp.Diff("a unchanged: nothing changed\nm run: sql changed\n", lines(p)); diff != "" {
		t.Error(diff)
	}
	if !p.Steps[1].Incremental {
		t.Error("the second run appends nothing")
	}
	day("1")
	if diff := cmp.Diff("m unchanged: already in part-0000000000002\n", lines(w.plan("m"))); diff != "" {
		t.Error(diff)
	}
	w.opts.Force = true
	if p := w.plan("m"); lines(p) != "m run: forced\n" || !p.Steps[0].Incremental {
		t.Errorf("forced: %s, appends %v", lines(p), p.Steps[0].Incremental)
	}
	w.opts.Force, w.opts.FullRefresh = false, true
	if p := w.run("m"); p.Steps[0].Incremental {
		t.Error("a full refresh appends")
	}
	w.opts.FullRefresh = false
	day("2")
	if diff := cmp.Diff("m run: sql changed\n", lines(w.plan("m"))); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	incremental := map[string]string{"models/m.sql": "---\nmaterialization: incremental\n---\nselect 1 as a\n"}
	for _, tc := range []struct {
		name string
		edit func(*world)
		want string
	}{
		{"moved", func(w *world) {
			w.write(map[string]string{"models/m.sql": "---\nmaterialization: incremental\npath: gold\n---\nselect 1 as a\n"})
		}, "models/m.sql:3:7: incremental model \"m\" is published in m.parts and would move to gold/m.parts [RBT5011]"},
		{"foreign", func(w *world) {
			w.state.Nodes["m"] = lake.Node{Foreign: true, Receipt: lake.Receipt{Name: "m", Form: lake.FormFile, Path: "m.parquet", Commit: "f"}}
		}, "models/m.sql: model \"m\": no run of rbt published m.parquet in the lake [RBT5003]"},
		{"foreign beside", func(w *world) {
			w.write(map[string]string{"models/m.sql": "select 1 as a\n"})
			n := w.state.Nodes["m"]
			n.Others = []string{"m.parquet"}
			w.state.Nodes["m"] = n
		}, "models/m.sql: model \"m\": no run of rbt published m.parquet in the lake [RBT5003]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, incremental)
			w.run()
			tc.edit(w)
			_, diags := w.tryPlan()
			if diff := cmp.Diff(tc.want, diags.Error()); diff != "" {
				t.Error(diff)
			}
			w.opts.FullRefresh = true
			if p := w.plan(); p.Steps[0].Action != ActionRun || p.Steps[0].Incremental {
				t.Errorf("full refresh: %s, appends %v", lines(p), p.Steps[0].Incremental)
			}
		})
	}
}

// TestDamagedIsRefusedAlone: an incremental model whose data is damaged keeps no
// other step from its turn, and a full refresh mends it.
func TestDamagedIsRefusedAlone(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql": "---\nmaterialization: incremental\n---\nselect 1 as a\n", "models/n.sql": "select * from {{ ref('m') }}\n", "models/o.sql": "select 1 as a\n",
	})
	w.run()
	n := w.state.Nodes["m"]
	n.Damage = errGone
	w.state.Nodes["m"] = n
	w.opts.Force = true
	p := w.plan()
	if len(p.Steps) != 3 {
		t.Fatal(lines(p))
	}
	for _, s := range p.Steps {
		want := ""
		if s.Node.Name == "m" {
			want = "models/m.sql: model \"m\" appends to what is damaged: the published file is missing [RBT5002]"
		}
		got := ""
		if s.Refused != nil {
			got = s.Refused.Error()
		}
		if got != want || s.Action != ActionRun {
			t.Errorf("%s %s: refused %q, want %q", s.Node.Name, s.Action, got, want)
		}
	}
	w.opts.Force, w.opts.FullRefresh = false, true
	if p := w.plan("m"); p.Steps[0].Refused != nil || p.Steps[0].Action != ActionRun {
		t.Errorf("full refresh: %s, refused %v", lines(p), p.Steps[0].Refused)
	}
}

func TestForeignParent(t *testing.T) {
	w := newWorld(t, map[string]string{"models/a.sql": "select 1 as a\n", "models/b.sql": "select * from a\n"})
	w.state.Nodes["a"] = lake.Node{Foreign: true, Receipt: lake.Receipt{Name: "a", Form: lake.FormFile, Path: "a.parquet", Commit: "f1"}}
	w.state.Foreign = []string{"a.parquet"}
	w.run("b")
	p := w.plan("b")
	if diff := cmp.Diff("b unchanged: nothing changed\n", lines(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.parquet"}, p.Foreign); diff != "" {
		t.Error(diff)
	}
	n := w.state.Nodes["a"]
	n.Receipt.Commit = "f2"
	w.state.Nodes["a"] = n
	if diff := cmp.Diff("b run: parent a republished\n", lines(w.plan("b"))); diff != "" {
		t.Error(diff)
	}
}

func TestWarningsAreInThePlan(t *testing.T) {
	w := newWorld(t, map[string]string{"models/a.sql": "select 1 as a\n"})
	w.opts.Exclude = []string{"tag:none"}
	p, diags := w.tryPlan()
	if diags != nil {
		t.Errorf("a plan with a list: %v", diags)
	}
	if diff := cmp.Diff("selector \"tag:none\" matches nothing: nothing has this tag; tags are compared exactly [RBT3012]", p.Warnings.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestOneModelAlone(t *testing.T) {
	w := newWorld(t, map[string]string{"models/a.sql": "select 1 as a\n", "models/b.sql": "select * from {{ ref('a') }}\n", "models/c.sql": "select * from {{ ref('b') }}\n"})
	w.run()
	if diff := cmp.Diff("b unchanged: nothing changed\n", lines(w.plan("b"))); diff != "" {
		t.Error(diff)
	}
}

func TestTestsOfPartOfTheProject(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql": "---\ntests: [{not_null: [id]}]\n---\nselect 1 as id\n",
		"models/b.sql": "select * from {{ ref('a') }}\n",
		"tests/s.sql":  "select * from {{ ref('a') }} join {{ ref('b') }} using (id)\n",
	})
	w.run()
	remembered := w.state.Nodes["a"].Receipt.TestsHash
	for _, words := range []string{"a", "b", "s", "not_null_a_id", ""} {
		p := w.run(strings.Fields(words)...)
		for _, s := range p.Steps {
			if s.Action != ActionUnchanged {
				t.Errorf("run -s %q: %s", words, lines(p))
			}
		}
	}
	if diff := cmp.Diff(remembered, w.state.Nodes["a"].Receipt.TestsHash); diff != "" {
		t.Error(diff)
	}
	// Built without its singular test, b has yet to pass it.
	w.write(map[string]string{"models/b.sql": "select id from {{ ref('a') }}\n"})
	w.opts.Exclude = []string{"s"}
	w.run("b")
	w.opts.Exclude = nil
	if diff := cmp.Diff("a unchanged: nothing changed\nb audit: the test s is new, changed or did not pass\n", lines(w.run())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("a unchanged: nothing changed\nb unchanged: nothing changed\n", lines(w.run())); diff != "" {
		t.Error(diff)
	}
}

func TestOrphans(t *testing.T) {
	w := newWorld(t, map[string]string{"models/old.sql": "select 1 as a\n", "models/m.sql": "select * from {{ ref('old') }}\n"})
	w.run()
	w.remove("models/old.sql")
	w.write(map[string]string{"models/new.sql": "select 1 as a\n"})
	_, diags := w.tryPlan()
	if diff := cmp.Diff([]string{"models/m.sql: there is no model, seed or ingest output called \"old\""}, unknownRefs(diags)); diff != "" {
		t.Error(diff)
	}
	w.write(map[string]string{"models/m.sql": "select * from {{ ref('new') }}\n"})
	if diff := cmp.Diff([]string{"old"}, w.plan().Orphans); diff != "" {
		t.Error(diff)
	}
}

func TestNamesIgnoreCase(t *testing.T) {
	w := newWorld(t, map[string]string{"models/FOO.sql": "select 1 as a\n", "models/b.sql": "select * from {{ ref('foo') }}\n"})
	w.run()
	if diff := cmp.Diff("FOO unchanged: nothing changed\nb unchanged: nothing changed\n", lines(w.plan())); diff != "" {
		t.Error(diff)
	}
	w.remove("models/FOO.sql")
	w.write(map[string]string{"models/Foo.sql": "select 1 as a\n"})
	p := w.plan()
	if diff := cmp.Diff("Foo unchanged: nothing changed\nb run: sql changed; parent FOO removed; parent Foo added\n", lines(p)); diff != "" {
		t.Error(diff)
	}
	if len(p.Orphans) > 0 {
		t.Errorf("orphans: %v", p.Orphans)
	}
}

func TestDefer(t *testing.T) {
	w := newJaffle(t)
	w.run()
	prod := w.state
	w.state = lake.State{Nodes: map[string]lake.Node{}}
	if _, diags := w.tryPlan("by_country"); !diags.HasErrors() {
		t.Error("unpublished parents are no error")
	}
	w.opts.Defer = &prod
	p := w.run("by_country")
	if diff := cmp.Diff([]string{"orders", "countries"}, names(p.Deferred)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("by_country unchanged: nothing changed\n", lines(w.plan("by_country"))); diff != "" {
		t.Error(diff)
	}
	p = w.plan("daily", "orders")
	if diff := cmp.Diff([]string{"stg_orders"}, names(p.Deferred)); diff != "" {
		t.Error(diff)
	}
}

func TestPlanOfTests(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql": "---\ntests: [{not_null: [id]}, {unique: [id]}]\n---\nselect 1 as id\n",
		"models/b.sql": "---\ntests: [{relationships: {column: id, to: a, field: id}}]\n---\nselect * from a\n",
		"tests/s.sql":  "select * from b where id < 0\n",
	})
	w.opts.Tests = true
	for _, tc := range []struct{ words, want string }{
		{"", "not_null_a_id relationships_b_id__a_id s unique_a_id"},
		{"a", "not_null_a_id relationships_b_id__a_id unique_a_id"},
		{"b", "relationships_b_id__a_id s"},
		{"s", "s"},
		{"test_type:singular", "s"},
		{"test_name:unique", "unique_a_id"},
	} {
		t.Run(tc.words, func(t *testing.T) {
			p := w.plan(strings.Fields(tc.words)...)
			var got []string
			for _, l := range p.Late {
				got = append(got, l.Test.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if len(p.Steps) > 0 {
				t.Errorf("something is built: %s", lines(p))
			}
		})
	}
}

func TestSourcesAreNotBuilt(t *testing.T) {
	w := newJaffle(t)
	_, diags := w.tryPlan("source:raw")
	want := "error[RBT3013]: --select \"source:raw\" picks sources only, and sources are not built\n  help: write source:<name>+ for what reads them\n"
	if diff := cmp.Diff(want, diag.RenderList(diags, nil)); diff != "" {
		t.Error(diff)
	}
	if p := w.plan("paid"); len(p.Steps) > 0 || len(p.Selected.Nodes) != 1 {
		t.Errorf("an ephemeral is built: %s", lines(p))
	}
}
