package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
)

// where gives for each test of a plan where it runs.
func where(p *Plan) map[string]string {
	got := map[string]string{}
	for _, s := range p.Steps {
		for _, gate := range s.Gates {
			got[gate.Name] = "gates " + s.Node.Name
		}
		for _, u := range s.UnitTests {
			got[u.Name] = "before " + s.Node.Name
		}
	}
	for _, l := range p.Late {
		text := "late"
		if len(l.After) > 0 {
			text += " after"
		}
		for _, number := range l.After {
			text += " " + p.Steps[number-1].Node.Name
		}
		if len(l.Reasons) > 0 {
			text += ": " + strings.Join(l.Reasons, "; ")
		}
		got[l.Test.Name] = text
	}
	for _, u := range p.UnitTests {
		got[u.Name] = "by itself"
	}
	return got
}

func stepNames(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Node.Name)
	}
	return out
}

func TestWhereTestsRun(t *testing.T) {
	const a = "---\ntests:\n  - fewer_than: {name: few, other: ref('b')}\n  - expression: {name: expr, sql: \"id in (select id from {{ ref('v') }})\"}\n" +
		"unit_tests:\n  - {name: unit, given: [{input: \"source('raw', 't')\", rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}\n---\n" +
		"select * from {{ source('raw', 't') }}\n"
	w := newWorld(t, map[string]string{
		"project.yml":                "name: shop\nsources:\n  - name: raw\n    tables:\n      - name: t\n        path: t.csv\n        columns: {id: {type: BIGINT, tests: [not_null]}}\n",
		"models/a.sql":               a,
		"models/b.sql":               "select * from {{ ref('a') }}\n",
		"models/v.sql":               "---\nmaterialization: view\n---\nselect * from {{ ref('c') }}\n",
		"models/c.sql":               "select 1 as id\n",
		"tests/generic/fewer.sql":    "{% test fewer_than(model, other) %}select 1 from {{ model }} join {{ other }} using (id){% endtest %}\n",
		"tests/clock.sql":            "select * from c where id > now()\n",
		"tests/about_the_source.sql": "select * from {{ source('raw', 't') }} where id < 0\n",
	})
	w.files["raw.t"] = map[string]lake.FileStamp{"t.csv": {}}
	if diff := cmp.Diff(map[string]string{
		"few": "late after a b", "expr": "gates a", "unit": "before a", "not_null_raw_t_id": "late: a is built",
		"clock": "gates c", "about_the_source": "late: selected",
	}, where(w.plan())); diff != "" {
		t.Error(diff)
	}
	// Only a is built: what is not in the run is read as published, and tests
	// of what was never published are left out.
	if diff := cmp.Diff(map[string]string{
		"few": "gates a", "expr": "gates a", "unit": "before a", "not_null_raw_t_id": "late: a is built", "about_the_source": "late: selected",
	}, where(w.plan("a", "source:raw"))); diff != "" {
		t.Error(diff)
	}
	w.run()
	if diff := cmp.Diff(map[string]string{
		"few": "gates a", "expr": "gates a", "unit": "before a", "not_null_raw_t_id": "late",
		"clock": "late after c: it uses the clock", "about_the_source": "late: selected",
	}, where(w.plan())); diff != "" {
		t.Error(diff)
	}
	// Nothing is built anew: each test is one of its node again, but that of the clock,
	// which is asked whatever is built.
	if diff := cmp.Diff(map[string]string{
		"few": "gates a", "expr": "gates a", "unit": "before a", "not_null_raw_t_id": "late", "clock": "late after c: it uses the clock",
	}, where(w.plan("a", "c", "test_name:not_null"))); diff != "" {
		t.Error(diff)
	}
	// A view that became a table is read as it is published, a view.
	w.write(map[string]string{"models/v.sql": "select * from {{ ref('c') }}\n"})
	w.write(map[string]string{"models/a.sql": strings.Replace(a, "select *", "select id", 1), "models/c.sql": "select 2 as id\n"})
	p := w.plan("a", "c")
	if diff := cmp.Diff("gates a", where(p)["expr"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"c", "a"}, stepNames(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{1}, p.Steps[1].Looks); diff != "" {
		t.Error(diff)
	}
	w.run("v")
	w.write(map[string]string{"models/v.sql": "---\nmaterialization: view\n---\nselect * from {{ ref('c') }}\n"})
	p = w.plan("a", "c")
	if diff := cmp.Diff("gates a", where(p)["expr"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "c"}, stepNames(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"unit": "by itself"}, where(w.plan("unit"))); diff != "" {
		t.Error(diff)
	}
}

func TestIngest(t *testing.T) {
	const head = "---\nmaterialization: ingest\ninput: {path: raw/x.ndjson}\nrecords:\n  crystal:\n    fields: {id: varchar}\n    children:\n      tags: {type: varchar}\n"
	w := newWorld(t, map[string]string{
		"models/crystals.sql": head + "workers: 2\n---\n",
		"models/b.sql":        "select * from {{ ref('crystals.tags') }}\n",
		"models/c.sql":        "select * from crystals__tags join crystals using (id)\n",
	})
	w.files["crystals"] = map[string]lake.FileStamp{"raw/x.ndjson": {Size: 1}}
	p := w.run()
	if diff := cmp.Diff("crystals run: new\nb run: new\nc run: new\n", lines(p)); diff != "" {
		t.Error(diff)
	}
	g := p.Graph
	if diff := cmp.Diff([]string{"crystals__tags"}, g.Reads(g.Lookup("crystals"), g.Lookup("b"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"", "crystals__tags"}, g.Reads(g.Lookup("crystals"), g.Lookup("c"))); diff != "" {
		t.Error(diff)
	}
	w.write(map[string]string{"models/crystals.sql": head + "workers: 4\n---\n"})
	if diff := cmp.Diff("crystals unchanged: nothing changed\n", lines(w.plan("crystals__tags"))); diff != "" {
		t.Error(diff)
	}
	w.files["crystals"] = map[string]lake.FileStamp{"raw/x.ndjson": {Size: 2}}
	if diff := cmp.Diff("crystals run: source file raw/x.ndjson changed\nb run_if_parents_change: if crystals__tags changes\n"+
		"c run_if_parents_change: if crystals or 1 other parent changes\n", lines(w.plan())); diff != "" {
		t.Error(diff)
	}
	w.content["crystals__tags"] = "same"
	w.run()
	w.files["crystals"] = map[string]lake.FileStamp{"raw/x.ndjson": {Size: 3}}
	w.run()
	if diff := cmp.Diff([]string{"crystals", "c"}, w.ran); diff != "" {
		t.Error(diff)
	}
}

func TestStateOfNodes(t *testing.T) {
	w := newJaffle(t)
	prints := func() map[string]Print {
		g, diags := Load(t.Context(), w.load(), &fakeParser{}, w.opts)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return g.Prints(w.opts.SeedHash)
	}
	w.write(map[string]string{"models/clock.sql": "select '{{ run_started_at }}' as a\n"})
	before := prints()
	w.opts.RunStartedAt = w.opts.RunStartedAt.AddDate(0, 0, 1)
	w.write(map[string]string{
		"models/orders.sql":             "-- a comment\nselect * from {{ ref('paid') }}\n",
		"models/by_country.sql":         "---\ntags: [gold]\n---\n" + jaffle()["models/by_country.sql"],
		"models/daily.sql":              "---\nmaterialization: incremental\n---\nselect 1 as id from {{ ref('orders') }}\n",
		"models/staging/stg_orders.sql": "---\nmaterialization: view\ndescription: d\n---\nselect * from {{ source('raw', 'orders') }}\n",
		"models/more.sql":               "select 1 as a\n",
		"seeds/countries.csv":           "code\nfr\n",
		"project.yml":                   strings.Replace(jaffle()["project.yml"], "DOUBLE", "BIGINT", 1),
	})
	want := map[string]Change{
		"model.shop.by_country":  {Configs: true},
		"model.shop.daily":       {Body: true},
		"model.shop.more":        {New: true},
		"model.shop.stg_orders":  {Configs: true}, // what the source declares is part of it
		"seed.shop.countries":    {Body: true},
		"source.shop.raw.orders": {Body: true},
	}
	if diff := cmp.Diff(want, Changed(prints(), before)); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":  "name: shop\nsources:\n  - name: raw\n    tables:\n      - {name: t, path: \"raw/{{ env_var('RBT_SECRET_KEY') }}/t.csv\", columns: {id: BIGINT}}\n",
		"models/a.sql": "select * from {{ source('raw', 't') }}\n",
	})
	w.env = map[string]string{"RBT_SECRET_KEY": "s3cr3t-0001"}
	w.files["raw.t"] = map[string]lake.FileStamp{"raw/s3cr3t-0001/t.csv": {Size: 1}}
	w.run()
	if diff := cmp.Diff(map[string]lake.FileStamp{"raw/*****/t.csv": {Size: 1}}, w.state.Nodes["a"].Receipt.Inputs.Sources); diff != "" {
		t.Error(diff)
	}
	w.env["RBT_SECRET_KEY"] = "other-0002"
	w.files["raw.t"] = map[string]lake.FileStamp{"raw/other-0002/t.csv": {Size: 1}}
	if diff := cmp.Diff("a unchanged: nothing changed\n", lines(w.plan())); diff != "" {
		t.Error(diff)
	}
}
