package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// shop is the graph of the selection tests:
//
//	raw.orders    -> stg_orders    -> orders -> customers -> Größe
//	raw.customers -> stg_customers -> customers; orders -> revenue
//	countries (seed) -> revenue; erp.orders is read by nothing
func shop(t *testing.T) *Graph {
	t.Helper()
	source := func(group, table string) *Node {
		return &Node{ID: "source.shop." + group + "." + table, Name: group + "." + table, Kind: KindSource, File: "models/staging/sources.yml",
			Source: &project.Source{Group: group, Name: table, Tags: []string{"raw"}}}
	}
	rawOrders, rawCustomers, erp := source("raw", "orders"), source("raw", "customers"), source("erp", "orders")
	stgOrders, stgCustomers := model("staging", "stg_orders"), model("staging", "stg_customers")
	orders, customers := model("marts", "orders"), model("marts", "customers")
	revenue, size := model("marts/finance", "revenue"), model("", "Größe")
	countries := &Node{ID: "seed.shop.countries", Name: "countries", Kind: KindSeed, File: "seeds/geo/countries.csv", Folder: []string{"geo"},
		Seed: &project.Seed{Name: "countries", Tags: []string{"daily"}}}
	stgOrders.Model.Materialization = project.View
	stgOrders.Model.Tags = []string{"daily", "a/b"}
	orders.Model.Tags = []string{"daily", "gold"}
	orders.Model.Meta = map[string]any{"owner": "ann", "team": map[string]any{"lead": "bob"}, "pii": true, "sla": []any{"gold", "1"}}
	orders.Model.Config = map[string]any{"sort_key": "id"}
	customers.Model.Materialization = project.Incremental
	g, diags := newGraph("shop", "/home/me/shop",
		[]*Node{rawOrders, rawCustomers, erp, stgOrders, stgCustomers, orders, customers, revenue, size, countries},
		[]edge{reads(stgOrders, rawOrders, 1), reads(stgCustomers, rawCustomers, 1), reads(orders, stgOrders, 1),
			reads(customers, stgCustomers, 1), reads(customers, orders, 2), reads(revenue, orders, 1), reads(revenue, countries, 2),
			reads(size, customers, 1)})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	generic := func(name, kind string, about *Node, others ...*Node) *TestNode {
		return &TestNode{ID: "test.shop." + name, Name: name, Kind: KindTest, File: about.File, Folder: about.Folder, About: about,
			Test: &project.Test{Name: name, Kind: kind, Node: about.Name}, Reads: append(others, about)}
	}
	g.outputs = map[int][]string{countries.index: {"countries__codes"}}
	g.hang([]*TestNode{
		generic("not_null_orders_id", "not_null", orders),
		generic("not_null_raw_orders_id", "not_null", rawOrders),
		generic("relationships_orders_customers", "relationships", orders, customers),
		{ID: "test.shop.positive_total", Name: "positive_total", Kind: KindTest, File: "tests/money/positive_total.sql", Folder: []string{"money"},
			Test: &project.Test{Name: "positive_total", Kind: "singular", Tags: []string{"slow"}}, Reads: []*Node{revenue}},
		{ID: "unit_test.shop.customers.adds_up", Name: "adds_up", Kind: KindUnitTest, File: customers.File, Folder: []string{"marts", "customers"},
			About: customers, Unit: &project.UnitTest{Name: "adds_up", Model: "customers"}, Reads: []*Node{customers}},
	})
	return g
}

// short gives a selection in few words: names of nodes; then tests.
func short(sel Selection) string {
	nodes, tests := names(sel.Nodes), []string{}
	for _, t := range sel.Tests {
		tests = append(tests, t.Name)
	}
	slices.Sort(nodes)
	slices.Sort(tests)
	return strings.Join(nodes, " ") + " | " + strings.Join(tests, " ")
}

const (
	allTests    = "adds_up not_null_orders_id not_null_raw_orders_id positive_total relationships_orders_customers"
	ordersTests = "not_null_orders_id relationships_orders_customers"
	custTests   = "adds_up relationships_orders_customers"
	bothTests   = "adds_up not_null_orders_id relationships_orders_customers"
)

func TestSelect(t *testing.T) {
	for _, tc := range []struct{ words, want string }{
		{"orders", "orders | " + ordersTests},
		{"ORDERS", "orders | " + ordersTests},
		{"größe", "Größe | "},
		{"Größe", "Größe | "},
		{"gro\u0308ße", "Größe | "}, // as a terminal of macOS sends it
		{"orders customers", "customers orders | " + bothTests},
		{"+orders", "orders raw.orders stg_orders | not_null_orders_id not_null_raw_orders_id relationships_orders_customers"},
		{"1+orders", "orders stg_orders | " + ordersTests},
		{"0+orders", "orders | " + ordersTests},
		{"orders+", "Größe customers orders revenue | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"orders+1", "customers orders revenue | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"1+orders+1", "customers orders revenue stg_orders | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"99999999999999999999+orders", "orders raw.orders stg_orders | not_null_orders_id not_null_raw_orders_id relationships_orders_customers"},
		{"@orders", "Größe countries customers orders raw.customers raw.orders revenue stg_customers stg_orders | " + allTests},
		{"@Größe", "Größe customers orders raw.customers raw.orders stg_customers stg_orders | adds_up not_null_orders_id not_null_raw_orders_id relationships_orders_customers"},
		{"+orders,tag:daily", "orders stg_orders | " + ordersTests},
		{"orders,customers", " | relationships_orders_customers"},
		{"tag:daily", "countries orders stg_orders | " + ordersTests},
		{"tag:gold+", "Größe customers orders revenue | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"tag:d*", "countries orders stg_orders | " + ordersTests},
		{"tag:a/b", "stg_orders | "},
		{"tag:a*b", "stg_orders | "},
		{"tag:slow", " | positive_total"},
		{"staging", "stg_customers stg_orders | "},
		{"staging.stg_orders", "stg_orders | "},
		{"shop.staging.stg_orders", "stg_orders | "},
		{"shop.staging", "stg_customers stg_orders | "},
		{"shop.*", "Größe countries customers orders revenue stg_customers stg_orders | " + allTests},
		{"marts.*", "customers orders revenue | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"marts.finance", "revenue | positive_total"},
		{"stg_*", "stg_customers stg_orders | "},
		{"STG_?rders", "stg_orders | "},
		{"[oc]*rs", "customers orders | " + bothTests},
		{"[!s]*.orders", "orders | " + ordersTests},
		{"*", "Größe countries customers orders revenue stg_customers stg_orders | " + allTests},
		{"fqn:orders", "orders | " + ordersTests},
		{"countries__codes", "countries | "},
		{"geo", "countries | "},
		{"path:models/staging", "erp.orders raw.customers raw.orders stg_customers stg_orders | not_null_raw_orders_id"},
		{"path:./models/staging/", "erp.orders raw.customers raw.orders stg_customers stg_orders | not_null_raw_orders_id"},
		{"models/marts/orders.sql", "orders | " + ordersTests},
		{`models\marts\orders.sql`, "orders | " + ordersTests},
		{"+models/marts/orders.sql", "orders raw.orders stg_orders | not_null_orders_id not_null_raw_orders_id relationships_orders_customers"},
		{"/home/me/shop/models/marts/finance", "revenue | positive_total"},
		{"models/*/stg_o*", "stg_orders | "},
		{"models/**/rev*.sql", "revenue | positive_total"},
		{"models/m*", "customers orders revenue | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"path:tests", " | positive_total"},
		{"orders.sql", "orders | " + ordersTests},
		{"file:stg_orders", "stg_orders | "},
		{"file:countries.CSV", "countries | "},
		{"source:raw", "raw.customers raw.orders | not_null_raw_orders_id"},
		{"source:RAW.Orders", "raw.orders | not_null_raw_orders_id"},
		{"source:*.orders", "erp.orders raw.orders | not_null_raw_orders_id"},
		{"source:shop.erp.orders", "erp.orders | "},
		{"source:raw.orders+1", "raw.orders stg_orders | not_null_raw_orders_id"},
		{"config.materialized:view", "stg_orders | "},
		{"config.materialization:incremental", "customers | " + custTests},
		{"config.tags:gold", "orders | " + ordersTests},
		{"config.meta.owner:ann", "orders | " + ordersTests},
		{"config.meta.team.lead:b?b", "orders | " + ordersTests},
		{"config.meta.pii:True", "orders | " + ordersTests},
		{"config.meta.sla:gold", "orders | " + ordersTests},
		{"config.meta.team:lead", "orders | " + ordersTests},
		{"config.sort_key:id", "orders | " + ordersTests},
		{"resource_type:seed", "countries | "},
		{"resource_type:source", "erp.orders raw.customers raw.orders | not_null_raw_orders_id"},
		{"resource_type:unit_test", " | adds_up"},
		{"test_type:singular", " | positive_total"},
		{"test_type:unit", " | adds_up"},
		{"test_type:generic,orders", " | " + ordersTests},
		{"test_type:data", " | not_null_orders_id not_null_raw_orders_id positive_total relationships_orders_customers"},
		{"test_name:not_null", " | not_null_orders_id not_null_raw_orders_id"},
		{"positive_total", " | positive_total"},
		{"+positive_total", "countries orders raw.orders revenue stg_orders | not_null_orders_id not_null_raw_orders_id positive_total relationships_orders_customers"},
		{"1+positive_total", "revenue | positive_total"},
		{"1+test_name:relationships", "customers orders | " + bothTests},
		{"1+marts.orders", "orders stg_orders | " + ordersTests},
		{"@money", "countries orders raw.orders revenue stg_orders | not_null_orders_id not_null_raw_orders_id positive_total relationships_orders_customers"},
	} {
		t.Run(tc.words, func(t *testing.T) {
			sel, diags := shop(t).Select(Selectors{Select: []string{tc.words}})
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(tc.want, short(sel)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSelectWithFlags(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    Selectors
		want string
	}{
		{"no words are everything", Selectors{},
			"Größe countries customers erp.orders orders raw.customers raw.orders revenue stg_customers stg_orders | " + allTests},
		{"words of several flags", Selectors{Select: []string{"orders", "stg_orders revenue"}},
			"orders revenue stg_orders | not_null_orders_id positive_total relationships_orders_customers"},
		{"exclude", Selectors{Select: []string{"marts"}, Exclude: []string{"customers"}}, "orders revenue | not_null_orders_id positive_total"},
		{"exclude alone", Selectors{Exclude: []string{"+customers", "source:erp"}}, "Größe countries revenue | positive_total"},
		{"exclude a test", Selectors{Select: []string{"orders"}, Exclude: []string{"test_name:not_null"}}, "orders | relationships_orders_customers"},
		{"kinds", Selectors{ResourceTypes: []string{"seed", "source"}}, "countries erp.orders raw.customers raw.orders | "},
		{"kinds of a selection", Selectors{Select: []string{"+orders"}, ResourceTypes: []string{"test"}},
			" | not_null_orders_id not_null_raw_orders_id relationships_orders_customers"},
		{"all kinds", Selectors{Select: []string{"orders"}, ResourceTypes: []string{"all"}}, "orders | " + ordersTests},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sel, diags := shop(t).Select(tc.s)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(tc.want, short(sel)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A model called like the project is that model alone.
func TestSelectProjectName(t *testing.T) {
	g, diags := newGraph("shop", "", []*Node{model("", "shop"), model("", "b"), model("x", "c")}, nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	for words, want := range map[string]string{"shop": "shop | ", "shop.shop": "shop | ", "shop.b": "b | ", "shop.x": "c | ", "shop.*": "b c shop | "} {
		sel, diags := g.Select(Selectors{Select: []string{words}})
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		if diff := cmp.Diff(want, short(sel)); diff != "" {
			t.Errorf("%s: %s", words, diff)
		}
	}
}

func TestSelectErrors(t *testing.T) {
	for _, tc := range []struct {
		words, exclude string
		want           string
	}{
		{"no_such_model", "", "error[RBT3012]: selector \"no_such_model\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: `rbt ls` lists what there is\n"},
		{"shop", "", "error[RBT3012]: selector \"shop\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: the project has this name; shop.* selects all of it\n"},
		{"stg_oders+", "", "error[RBT3012]: selector \"stg_oders+\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: did you mean stg_orders?\n"},
		{"orders a,bb", "", "error[RBT3012]: selector \"a\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: `rbt ls` lists what there is\n\n" +
			"error[RBT3012]: selector \"bb\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: `rbt ls` lists what there is\n"},
		{"raw.orders", "", "error[RBT3012]: selector \"raw.orders\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: a source is selected with source:raw.orders\n"},
		{"tag:Daily", "", "error[RBT3012]: selector \"tag:Daily\" matches nothing: nothing has this tag; tags are compared exactly\n" +
			"  help: did you mean tag:daily?\n"},
		{"tag:dail", "", "error[RBT3012]: selector \"tag:dail\" matches nothing: nothing has this tag; tags are compared exactly\n" +
			"  help: did you mean tag:daily?\n"},
		{"models/stagin", "", "error[RBT3012]: selector \"models/stagin\" matches nothing: no file of the project lies there\n" +
			"  help: did you mean path:models/staging?\n"},
		{"source:row", "", "error[RBT3012]: selector \"source:row\" matches nothing: no source has this name\n  help: did you mean source:raw?\n"},
		{"config.materialized:tabel", "", "error[RBT3012]: selector \"config.materialized:tabel\" matches nothing: no node has this value of materialized\n" +
			"  help: did you mean config.materialized:table?\n"},
		{"test_name:notnull", "", "error[RBT3012]: selector \"test_name:notnull\" matches nothing: no test of this name is declared\n" +
			"  help: did you mean test_name:not_null?\n"},
		{"[orders", "", "error[RBT3012]: selector \"[orders\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: did you mean orders?\n"},
		{"a+,+ c", "", "error[RBT3010]: selector \"+\" in \"a+,+\" is an operator without a name\n" +
			"  help: an operator stands at its name without blanks: +m, m+, 2+m+1, @m\n"},
		{"+", "", "error[RBT3010]: selector \"+\" is an operator without a name\n" +
			"  help: an operator stands at its name without blanks: +m, m+, 2+m+1, @m\n"},
		{"3+", "", "error[RBT3010]: selector \"3+\" is an operator without a name\n" +
			"  help: an operator stands at its name without blanks: +m, m+, 2+m+1, @m\n"},
		{"", "", "error[RBT3010]: --select \"\" is empty\n  help: write a name, or leave the flag out\n"},
		{" \t", "", "error[RBT3010]: --select \" \\t\" is empty\n  help: write a name, or leave the flag out\n"},
		{"@", "", "error[RBT3010]: selector \"@\" is an operator without a name\n" +
			"  help: an operator stands at its name without blanks: +m, m+, 2+m+1, @m\n"},
		{"@orders+", "", "error[RBT3010]: selector \"@orders+\" joins @ with +\n" +
			"  help: @m is m, everything below it and everything that these need; write it without +\n"},
		{"++orders", "", "error[RBT3010]: selector \"++orders\" has a stray \"+\"\n" +
			"  help: +m, m+, 2+m+1 and @m are what there is; a blank between two selectors means either, a comma both\n"},
		{"orders+customers", "", "error[RBT3010]: selector \"orders+customers\" has a stray \"+\"\n" +
			"  help: +m, m+, 2+m+1 and @m are what there is; a blank between two selectors means either, a comma both\n"},
		{"or@ders", "", "error[RBT3010]: selector \"or@ders\" has a stray \"@\"\n" +
			"  help: +m, m+, 2+m+1 and @m are what there is; a blank between two selectors means either, a comma both\n"},
		{"orders, customers", "", "error[RBT3010]: selector \"orders,\" has nothing on one side of a comma\n" +
			"  help: a comma joins two selectors without blanks (a,b: what both select); a blank means either\n"},
		{"tag:", "", "error[RBT3010]: selector \"tag:\" has no value after \"tag:\"\n  help: write what to look for after the colon\n"},
		{"tags:daily", "", "error[RBT3011]: selector \"tags:daily\": there is no method \"tags:\"\n  help: did you mean tag:?\n"},
		{"zzz:daily", "", "error[RBT3011]: selector \"zzz:daily\": there is no method \"zzz:\"\n" +
			"  help: methods are config, file, fqn, path, resource_type, result, selector, source, source_status, state, tag, test_name, test_type\n"},
		{"package:x", "", "error[RBT3011]: selector \"package:x\": \"package:\" is a method of dbt that rbt does not have\n" +
			"  help: a project of rbt is one package: leave the method out\n"},
		{"config:view", "", "error[RBT3011]: selector \"config:view\": the method \"config:\" needs a key\n" +
			"  help: write config.<key>:<value>, for instance config.materialization:view\n"},
		{"tag.x:view", "", "error[RBT3011]: selector \"tag.x:view\": the method \"tag:\" has no keys\n  help: write tag:view\n"},
		{"resource_type:models", "", "error[RBT3011]: selector \"resource_type:models\": there is no resource type \"models\"\n" +
			"  help: did you mean resource_type:model? resource_type: takes model, seed, source, test, unit_test\n"},
		{"state:modified", "", "error[RBT3014]: selector \"state:modified\" has nothing to compare with\n" +
			"  help: state: compares with another manifest: add --state DIR or --state git:REF\n"},
		{"result:fail+", "", "error[RBT3014]: selector \"result:fail+\" has nothing to compare with\n" +
			"  help: result: looks at target/run_results.json of the last run: run first\n"},
		{"source_status:fresher+", "", "error[RBT3014]: selector \"source_status:fresher+\" has nothing to compare with\n" +
			"  help: source_status: compares with target/sources.json: run `rbt source freshness` first\n"},
		{"stg_orders,marts", "", "error[RBT3013]: --select \"stg_orders,marts\" selects nothing\n" +
			"  help: a comma means both, a blank either: no node is selected by all of what the commas join\n"},
		{"orders", "+customers", "error[RBT3013]: --exclude +customers leaves nothing of the selection\n"},
		{"orders", "custmers", "error[RBT3012]: selector \"custmers\" matches nothing: no model, seed, test or folder has this name\n" +
			"  help: did you mean customers?\n"},
	} {
		t.Run(tc.words+" "+tc.exclude, func(t *testing.T) {
			s := Selectors{Select: []string{tc.words}}
			if tc.exclude != "" {
				s.Exclude = []string{tc.exclude}
			}
			sel, diags := shop(t).Select(s)
			if diff := cmp.Diff(tc.want, diag.RenderList(diags, nil)); diff != "" {
				t.Error(diff)
			}
			if len(sel.Nodes)+len(sel.Tests) > 0 || sel.Nothing {
				t.Errorf("something is selected: %s", short(sel))
			}
		})
	}
}

func TestSelectKindErrors(t *testing.T) {
	_, diags := shop(t).Select(Selectors{ResourceTypes: []string{"models"}})
	want := "--resource-type \"models\" does not exist [RBT3011]"
	if diff := cmp.Diff(want, diags.Error()); diff != "" {
		t.Error(diff)
	}
	_, diags = shop(t).Select(Selectors{Select: []string{"orders"}, ResourceTypes: []string{"seed"}})
	want = "--resource-type seed leaves nothing of the selection [RBT3013]"
	if diff := cmp.Diff(want, diags.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestSelectWarnings(t *testing.T) {
	for _, tc := range []struct {
		name string
		s    Selectors
		want string
	}{
		{"a method that excludes nothing", Selectors{Select: []string{"orders"}, Exclude: []string{"tag:slwo"}},
			"warning[RBT3012]: selector \"tag:slwo\" matches nothing: nothing has this tag; tags are compared exactly\n  help: did you mean tag:slow?\n"},
		{"an intersection of nothing beside others", Selectors{Select: []string{"orders stg_orders,marts"}},
			"warning[RBT3013]: selector \"stg_orders,marts\" selects nothing\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sel, diags := shop(t).Select(tc.s)
			if diff := cmp.Diff(tc.want, diag.RenderList(diags, nil)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff("orders | "+ordersTests, short(sel)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSelectPast(t *testing.T) {
	asked := 0
	past := Past{
		State: func(*Graph) (map[string]Change, error) {
			asked++
			return map[string]Change{"model.shop.orders": {Body: true}, "model.shop.revenue": {New: true}, "model.shop.customers": {Configs: true}}, nil
		},
		Results: func() (map[string]string, error) {
			return map[string]string{"model.shop.orders": "error", "model.shop.customers": "skipped", "test.shop.positive_total": "fail"}, nil
		},
		Sources: func() (map[string]string, error) { return map[string]string{"source.shop.raw.orders": "fresher"}, nil },
	}
	for _, tc := range []struct{ words, want string }{
		{"state:modified", "customers orders revenue | adds_up not_null_orders_id positive_total relationships_orders_customers"},
		{"state:modified.body", "orders revenue | not_null_orders_id positive_total relationships_orders_customers"},
		{"state:modified.configs,marts", "customers revenue | adds_up positive_total relationships_orders_customers"},
		{"state:new+", "revenue | positive_total"},
		{"state:unmodified,staging", "stg_customers stg_orders | "},
		{"state:new,staging", "nothing"},
		{"result:error result:skipped", "customers orders | " + bothTests},
		{"1+result:fail", "revenue | positive_total"},
		{"result:warn", "nothing"},
		{"result:warn,result:error", "nothing"},
		{"source_status:fresher+1", "raw.orders stg_orders | not_null_raw_orders_id"},
	} {
		t.Run(tc.words, func(t *testing.T) {
			sel, diags := shop(t).Select(Selectors{Select: []string{tc.words}, Past: past})
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if sel.Nothing {
				tc.want = strings.Replace(tc.want, "nothing", " | ", 1)
			}
			if diff := cmp.Diff(tc.want, short(sel)); diff != "" {
				t.Error(diff)
			}
		})
	}
	sel, diags := shop(t).Select(Selectors{Select: []string{"orders"}, Exclude: []string{"result:error"}, Past: past})
	if len(diags) > 0 || !sel.Nothing {
		t.Errorf("excluding a result: %v, %v", sel.Nothing, diags)
	}
	asked = 0
	shop(t).Select(Selectors{Select: []string{"state:new state:modified+ @state:old"}, Past: past})
	if asked != 1 {
		t.Errorf("the state was read %d times", asked)
	}
	past.Results = func() (map[string]string, error) {
		return nil, errors.New("open target/run_results.json: no such file")
	}
	_, diags = shop(t).Select(Selectors{Select: []string{"result:fail"}, Past: past})
	want := "selector \"result:fail\" has nothing to compare with: open target/run_results.json: no such file [RBT3014]"
	if diff := cmp.Diff(want, diags.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestSelectInAnEmptyProject(t *testing.T) {
	g, diags := newGraph("shop", "", nil, nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if sel, diags := g.Select(Selectors{}); len(diags) > 0 || len(sel.Nodes) > 0 || sel.Nothing {
		t.Errorf("%v, %v", sel, diags)
	}
	_, diags = g.Select(Selectors{Select: []string{"tag:x"}})
	if diff := cmp.Diff("nothing in this project has a tag", diags[0].Hint); diff != "" {
		t.Error(diff)
	}
}

// naive evaluates a term over a set-of-names model of the graph.
type naive struct {
	nodes []*Node
	reach map[string]map[string]bool // by one edge
}

func (n naive) step(set map[string]bool, up bool) map[string]bool {
	out := map[string]bool{}
	for a := range n.reach {
		for b := range n.reach[a] {
			if up && set[b] {
				out[a] = true
			}
			if !up && set[a] {
				out[b] = true
			}
		}
	}
	return out
}

func (n naive) walk(set map[string]bool, steps int, up bool) map[string]bool {
	out := union(set, nil)
	for front := set; steps > 0; steps-- {
		front = n.step(front, up)
		out = union(out, front)
	}
	return out
}

func union(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

func TestSelectProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 10).Draw(t, "nodes")
		nodes := make([]*Node, count)
		for i := range nodes {
			nodes[i] = model("", fmt.Sprintf("m%d", i))
			if rapid.Bool().Draw(t, "tagged") {
				nodes[i].Model.Tags = []string{"t"}
			}
		}
		ref := naive{nodes: nodes, reach: map[string]map[string]bool{}}
		var edges []edge
		for to := range nodes {
			for from := range to {
				if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
					edges = append(edges, reads(nodes[to], nodes[from], 1))
					if ref.reach[nodes[from].Name] == nil {
						ref.reach[nodes[from].Name] = map[string]bool{}
					}
					ref.reach[nodes[from].Name][nodes[to].Name] = true
				}
			}
		}
		g, diags := newGraph("shop", "", nodes, edges)
		if len(diags) > 0 {
			t.Fatalf("%v", diags)
		}
		include, wantIn := drawWords(t, ref, "select")
		exclude, wantOut := drawWords(t, ref, "exclude")
		want := []string{}
		for name := range wantIn {
			if !wantOut[name] {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		sel, diags := g.Select(Selectors{Select: include, Exclude: exclude})
		if len(want) == 0 {
			if !diags.HasErrors() {
				t.Fatalf("select %q exclude %q: an empty result is no error", include, exclude)
			}
			return
		}
		if diags.HasErrors() {
			t.Fatalf("select %q exclude %q: %v", include, exclude, diags)
		}
		if diff := cmp.Diff(want, names(sel.Nodes)); diff != "" {
			t.Fatalf("select %q exclude %q: %s", include, exclude, diff)
		}
	})
}

// drawWords draws words of a selector and says by sets what they pick.
func drawWords(t *rapid.T, ref naive, label string) ([]string, map[string]bool) {
	var words []string
	picked := map[string]bool{}
	for range rapid.IntRange(1, 3).Draw(t, label+" words") {
		var terms []string
		var both map[string]bool
		for i := range rapid.IntRange(1, 3).Draw(t, label+" terms") {
			text, set := drawTerm(t, ref, label)
			terms = append(terms, text)
			if i == 0 {
				both = set
				continue
			}
			for name := range both {
				if !set[name] {
					delete(both, name)
				}
			}
		}
		words = append(words, strings.Join(terms, ","))
		picked = union(picked, both)
	}
	return words, picked
}

func drawTerm(t *rapid.T, ref naive, label string) (string, map[string]bool) {
	core := map[string]bool{}
	var text string
	name := rapid.SampledFrom(ref.nodes).Draw(t, label+" node").Name
	tagged := func(n *Node) bool { return len(n.Model.Tags) > 0 }
	switch rapid.IntRange(0, 2).Draw(t, label+" method") {
	case 0:
		text = "m*"
		for _, n := range ref.nodes {
			core[n.Name] = true
		}
	case 1:
		if slices.ContainsFunc(ref.nodes, tagged) {
			text = "tag:t"
			for _, n := range ref.nodes {
				if tagged(n) {
					core[n.Name] = true
				}
			}
			break
		}
		fallthrough
	default:
		text, core = name, map[string]bool{name: true}
	}
	all := len(ref.nodes)
	if rapid.IntRange(0, 4).Draw(t, label+" family") == 0 {
		return "@" + text, ref.walk(ref.walk(core, all, false), all, true)
	}
	picked := core
	if up := rapid.IntRange(-2, 3).Draw(t, label+" up"); up == -1 {
		text, picked = "+"+text, union(picked, ref.walk(core, all, true))
	} else if up >= 0 {
		text, picked = fmt.Sprintf("%d+%s", up, text), union(picked, ref.walk(core, up, true))
	}
	if down := rapid.IntRange(-2, 3).Draw(t, label+" down"); down == -1 {
		text, picked = text+"+", union(picked, ref.walk(core, all, false))
	} else if down >= 0 {
		text, picked = fmt.Sprintf("%s+%d", text, down), union(picked, ref.walk(core, down, false))
	}
	return text, union(picked, nil)
}

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{"", "a", "+a", "a+", "2+a+1", "@a", "a,b c", "a+,+ c", "tag:x", "config.meta.a:b:c", "path:a+b", "@+", "3+", "ä*[", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, diags := parseSelector("--select", []string{text})
		if diags.HasErrors() {
			return
		}
		if len(s.words) == 0 {
			t.Fatalf("%q has no words and no error", text)
		}
		for _, w := range s.words {
			if len(w.terms) != strings.Count(w.text, ",")+1 {
				t.Errorf("%q has %d terms", w.text, len(w.terms))
			}
			for _, term := range w.terms {
				if term.value == "" || !strings.Contains(w.text, term.text) || term.up < 0 || term.down < 0 {
					t.Errorf("%q has the term %+v", w.text, term)
				}
				again, diags := parseSelector("--select", []string{term.text})
				if diags.HasErrors() || len(again.words) != 1 || again.words[0].terms[0] != term {
					t.Errorf("%q alone is %+v, in %q %+v", term.text, again, w.text, term)
				}
			}
		}
	})
}

func TestSelectAmongManyNodes(t *testing.T) {
	nodes, edges := manyNodes(10_000, 5)
	g, diags := newGraph("shop", "", nodes, edges)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	var tests []*TestNode
	words := make([]string, 0, len(nodes))
	for _, n := range nodes {
		words = append(words, n.Name)
		tests = append(tests, &TestNode{ID: "test.shop.t_" + n.Name, Name: "t_" + n.Name, Kind: KindTest, About: n, Reads: []*Node{n},
			Test: &project.Test{Name: "t_" + n.Name, Kind: "not_null", Node: n.Name}})
	}
	g.hang(tests)
	for _, tc := range []struct {
		name        string
		words       []string
		nodes, most int
	}{
		{"every name", words, 10_000, 10_000},
		{"folder", []string{"f3"}, 500, 500},
		{"wildcard", []string{"m0000?"}, 10, 10},
		{"below the first", []string{"m00000+"}, 2, 10_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sel, diags := g.Select(Selectors{Select: tc.words})
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if got := len(sel.Nodes); got < tc.nodes || got > tc.most {
				t.Errorf("%d nodes", got)
			}
			if len(sel.Tests) != len(sel.Nodes) {
				t.Errorf("%d tests of %d nodes", len(sel.Tests), len(sel.Nodes))
			}
		})
	}
}
