package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// reachable is the slow and plain meaning of "waits for": whether to comes, by
// edges and by further ones, after from.
func reachable(g *Graph, extra map[int][]int, from, to int) bool {
	seen := map[int]bool{}
	for todo := []int{from}; len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if i == to {
			return true
		}
		if !seen[i] {
			todo = append(append(todo, g.children[i]...), extra[i]...)
		}
		seen[i] = true
	}
	return false
}

// TestSettle: whatever is read and looked at, the order is one, each node comes after
// what it reads, and a test is not waited for only where all such waits together
// close a circle through it, or it looks at what is built from its own node.
func TestSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(2, 14).Draw(t, "count")
		var nodes []*Node
		var edges []edge
		for i := range count {
			nodes = append(nodes, model("", fmt.Sprintf("n%02d", i)))
			for range rapid.IntRange(0, min(i, 2)).Draw(t, "parents") {
				edges = append(edges, reads(nodes[i], nodes[rapid.IntRange(0, i-1).Draw(t, "parent")], 1))
			}
		}
		g, diags := newGraph("shop", "", nodes, edges)
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		draw := func() []attachment {
			var all []attachment
			for range rapid.IntRange(0, 12).Draw(t, "tests") {
				a := attachment{step: rapid.IntRange(0, count-1).Draw(t, "step"), waits: rapid.IntRange(0, 9).Draw(t, "waits") > 0}
				for range rapid.IntRange(1, 2).Draw(t, "looks") {
					if i := rapid.IntRange(0, count-1).Draw(t, "look"); i != a.step && !slices.Contains(a.live, i) {
						a.live = append(a.live, i)
					}
				}
				slices.Sort(a.live)
				all = append(all, a)
			}
			return all
		}
		all := draw()
		again := slices.Clone(all)
		order := g.settle(all)
		if diff := cmp.Diff(order, g.settle(again)); diff != "" {
			t.Fatalf("two orders: %s", diff)
		}
		if order == nil {
			order = g.order
		}
		at := make([]int, count)
		for k, i := range order {
			at[i] = k
		}
		if sorted := slices.Sorted(slices.Values(order)); len(sorted) != count || len(slices.Compact(sorted)) != count {
			t.Fatalf("not every node once: %v", order)
		}
		wants, late := map[int][]int{}, 0
		for _, a := range all {
			below := slices.ContainsFunc(a.live, func(i int) bool { return reachable(g, nil, a.step, i) })
			if a.circle && !below {
				t.Fatalf("marked as a circle: %v", a)
			}
			if a.waits && !below {
				for _, i := range a.live {
					wants[i] = append(wants[i], a.step)
				}
			}
		}
		for i := range count {
			for _, p := range g.parents[i] {
				if at[p] > at[i] {
					t.Fatalf("n%02d comes before n%02d, which it reads", i, p)
				}
			}
		}
		circles := 0
		for _, a := range all {
			if !a.waits || slices.ContainsFunc(a.live, func(i int) bool { return reachable(g, nil, a.step, i) }) {
				continue
			}
			for _, i := range a.live {
				circle := reachable(g, wants, a.step, i)
				if circle {
					circles++
				}
				if at[i] < at[a.step] {
					continue
				}
				if late++; !circle {
					t.Fatalf("n%02d does not wait for n%02d, which closes no circle: order %v", a.step, i, order)
				}
			}
		}
		if circles > 0 && late == circles {
			t.Fatalf("of a circle nobody waits: order %v", order)
		}
	})
}

// TestSiblings: a model waits for what its tests look at, and the order shows it.
func TestSiblings(t *testing.T) {
	relates := func(name, to, more string) string {
		return fmt.Sprintf("---\ntests: [{relationships: {name: %s, column: id, to: %s, field: id%s}}]\n---\nselect 1 as id\n", name, to, more)
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a sibling", map[string]string{"a": relates("to_b", "b", ""), "b": "select 1 as id"}, "b; a [to_b] looks 1"},
		{"what is above", map[string]string{"a": "select 1 as id", "b": "---\ntests: [{relationships: {name: to_a, column: id, to: a, field: id}}]\n---\nselect * from a"},
			"a; b [to_a]"},
		{"what is below", map[string]string{"a": relates("to_b", "b", ""), "b": "select * from a"}, "a; b; late to_b"},
		{"each other", map[string]string{"a": relates("to_b", "b", ""), "b": relates("to_a", "a", "")}, "a; b [to_a] looks 1; late to_b"},
		{"three in a circle", map[string]string{"a": relates("to_b", "b", ""), "b": relates("to_c", "c", ""), "c": relates("to_a", "a", "")},
			"a; c [to_a] looks 1; b [to_c] looks 2; late to_b"},
		{"behind a circle", map[string]string{"a": relates("to_c", "c", ""), "c": relates("to_d", "d", ""), "d": relates("back", "c", "")},
			"c; a [to_c] looks 1; d [back] looks 1; late to_d"},
		{"a chain", map[string]string{"a": relates("to_b", "b", ""), "b": relates("to_c", "c", ""), "c": "select 1 as id"}, "c; b [to_c] looks 1; a [to_b] looks 2"},
		{"a child of a sibling", map[string]string{"a": relates("to_c", "c", ""), "b": "select 1 as id", "c": "select * from b"}, "b; c; a [to_c] looks 2"},
		{"what is below keeps nobody from waiting", map[string]string{"a": relates("to_d", "d", ""), "b": "---\ntests: [{relationships: {name: to_c, column: id, to: c, field: id}}]\n---\nselect * from a",
			"c": "select * from a", "d": "select * from b join c using (id)"}, "a; c; b [to_c] looks 2; d; late to_d"},
		{"a warning", map[string]string{"a": relates("to_b", "b", ", severity: warn"), "b": "select 1 as id"}, "a; b; late to_b"},
		{"a view between", map[string]string{"a": relates("to_v", "v", ""), "v": "---\nmaterialization: view\n---\nselect * from b", "b": "select 1 as id"}, "b; v; a [to_v] looks 2"},
		{"an ephemeral between", map[string]string{"a": relates("to_v", "v", ""), "v": "---\nmaterialization: ephemeral\n---\nselect * from b", "b": "select 1 as id"}, "b; a [to_v] looks 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{}
			for name, sql := range tc.files {
				files["models/"+name+".sql"] = sql + "\n"
			}
			w := newWorld(t, files)
			if diff := cmp.Diff(tc.want, gatesOf(w.plan())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// gatesOf gives the steps of a plan in order with their gates and waits, and the
// late tests.
func gatesOf(p *Plan) string {
	var out []string
	for _, s := range p.Steps {
		text := s.Node.Name
		if len(s.Gates) > 0 {
			var gates []string
			for _, g := range s.Gates {
				gates = append(gates, g.Name)
			}
			slices.Sort(gates)
			text += fmt.Sprintf(" %v", gates)
		}
		if len(s.Looks) > 0 {
			text += " looks " + strings.Trim(fmt.Sprint(s.Looks), "[]")
		}
		out = append(out, text)
	}
	for _, l := range p.Late {
		out = append(out, "late "+l.Test.Name)
	}
	return strings.Join(out, "; ")
}

// TestWhatChangesIsGated: what a test is about does not change, but what it looks at
// does: that is what the test keeps from being published.
func TestWhatChangesIsGated(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/orders.sql":    "---\ntests: [{relationships: {name: known, column: id, to: customers, field: id}}]\n---\nselect 1 as id\n",
		"models/customers.sql": "select 1 as id\n",
		"models/stage.sql":     "select 1 as id\n",
		"models/mart.sql":      "select * from stage\n",
		"tests/both.sql":       "select * from orders join mart using (id) where id < 0\n",
		"tests/siblings.sql":   "select * from orders join customers using (id) where id < 0\n",
	})
	if diff := cmp.Diff("stage; customers; mart; orders [known] looks 2; late both; late siblings", gatesOf(w.run())); diff != "" {
		t.Error(diff)
	}
	w.write(map[string]string{"models/customers.sql": "select 2 as id\n"})
	p := w.plan()
	if diff := cmp.Diff("stage; customers [known siblings]; mart; orders; late both", gatesOf(p)); diff != "" {
		t.Fatal(diff)
	}
	for _, test := range p.Steps[1].Gates {
		if owner := p.Steps[1].OwnerOf(test).Name; owner != "orders" {
			t.Errorf("%s is remembered by %s", test.Name, owner)
		}
	}
	// Also where what it is about is not selected.
	if diff := cmp.Diff("customers [known siblings]", gatesOf(w.plan("customers"))); diff != "" {
		t.Error(diff)
	}
	// A test that has not passed on what is published does not keep it from changing:
	// the change may be what mends it.
	w.write(map[string]string{"models/orders.sql": "---\ntests: [{relationships: {name: known, column: id, to: customers, field: id, where: id > 0}}]\n---\nselect 1 as id\n"})
	p = w.plan("customers", "orders")
	if diff := cmp.Diff("customers [siblings]; orders [known] looks 1; late both", gatesOf(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("customers run: sql changed\norders audit: the test known is new, changed or did not pass\n", lines(p)); diff != "" {
		t.Error(diff)
	}
}

func TestSingularTests(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql":      "select 1 as id\n",
		"models/b.sql":      "select * from a\n",
		"models/c.sql":      "select * from a\n",
		"models/d.sql":      "select * from b join c using (id)\n",
		"tests/one.sql":     "select * from b where id < 0\n",
		"tests/line.sql":    "select * from a join b using (id) where id < 0\n",
		"tests/beside.sql":  "select * from b join c using (id) where id < 0\n",
		"tests/nothing.sql": "select 1 where false\n",
	})
	p := w.plan()
	if diff := cmp.Diff("a; b [line one]; c; d; late beside; late nothing", gatesOf(p)); diff != "" {
		t.Error(diff)
	}
	var guards []string
	for _, g := range p.Guards {
		for _, k := range g.Tests {
			for _, number := range g.Steps {
				guards = append(guards, p.Steps[number-1].Node.Name+" waits for "+p.Late[k].Test.Name)
			}
		}
	}
	if diff := cmp.Diff([]string{"d waits for beside"}, guards); diff != "" {
		t.Error(diff)
	}
}

// waitsOf gives what every step, relay, late test and guard of a plan waits for, by
// number: late tests and guards count on from the last relay.
func waitsOf(p *Plan) [][]int {
	waits := [][]int{nil}
	for _, s := range p.Steps {
		waits = append(waits, slices.Concat(s.After, s.Looks))
	}
	for _, r := range p.Relays {
		waits = append(waits, r.After)
	}
	first := len(waits)
	for _, l := range p.Late {
		waits = append(waits, l.After)
	}
	for _, g := range p.Guards {
		for _, s := range g.Steps {
			waits[s] = append(waits[s], len(waits))
		}
		var tests []int
		for _, k := range g.Tests {
			tests = append(tests, first+k)
		}
		waits = append(waits, tests)
	}
	return waits
}

// TestWaitsAreNoCircle: whatever reads and looks at what, and whatever of it changed
// or is selected, a plan waits in no circle, each step comes after what it waits for,
// every selected test is somewhere, and the same plan is made again.
func TestWaitsAreNoCircle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(2, 9).Draw(rt, "count")
		sql := func(value int, refs []int) string {
			text := fmt.Sprintf("select %d as id\n", value)
			for k, r := range refs {
				text += fmt.Sprintf("%s m%d\n", []string{"from", "join"}[min(k, 1)], r)
			}
			return text
		}
		heads, refs := make([]string, count), make([][]int, count)
		files := map[string]string{}
		for i := range count {
			heads[i] = "---\nmaterialization: " + rapid.SampledFrom([]string{"table", "table", "view", "ephemeral"}).Draw(rt, "kind") + "\n"
			if strings.Contains(heads[i], "ephemeral") {
				heads[i] += "---\n"
			} else {
				heads[i] += "tests:\n  - not_null: [id]\n"
				for k := range rapid.IntRange(0, 3).Draw(rt, "tests") {
					heads[i] += fmt.Sprintf("  - relationships: {name: t%d_%d, column: id, to: m%d, field: id, severity: %s}\n", i, k,
						rapid.IntRange(0, count-1).Draw(rt, "to"), rapid.SampledFrom([]string{"error", "error", "error", "warn"}).Draw(rt, "severity"))
				}
				heads[i] += "---\n"
			}
			for range rapid.IntRange(0, min(i, 2)).Draw(rt, "parents") {
				refs[i] = append(refs[i], rapid.IntRange(0, i-1).Draw(rt, "parent"))
			}
			files[fmt.Sprintf("models/m%d.sql", i)] = heads[i] + sql(0, refs[i])
		}
		for k := range rapid.IntRange(0, 3).Draw(rt, "singular") {
			files[fmt.Sprintf("tests/s%d.sql", k)] = fmt.Sprintf("select * from m%d join m%d using (id)\n",
				rapid.IntRange(0, count-1).Draw(rt, "reads"), rapid.IntRange(0, count-1).Draw(rt, "reads"))
		}
		w := newWorld(t, files)
		check := func(words ...string) *Plan {
			p := w.plan(words...)
			if diff := cmp.Diff(gatesOf(p), gatesOf(w.plan(words...))); diff != "" {
				rt.Fatal(diff)
			}
			waits := waitsOf(p)
			for i, s := range p.Steps {
				for _, number := range waits[s.Number] {
					if s.Number != i+1 || number <= len(p.Steps) && number >= s.Number {
						rt.Fatalf("step %d has the number %d and waits for %d", i+1, s.Number, number)
					}
				}
			}
			children, parents := make([][]int, len(waits)), waits
			for i, after := range waits {
				for _, a := range after {
					children[a] = append(children[a], i)
				}
			}
			if len(kahn(parents, children)) < len(waits) {
				rt.Fatalf("a circle: %s\n%v", gatesOf(p), waits)
			}
			return p
		}
		w.act(check())
		check()
		for i := range count {
			if rapid.Bool().Draw(rt, "changes") {
				w.write(map[string]string{fmt.Sprintf("models/m%d.sql", i): heads[i] + sql(1, refs[i])})
			}
		}
		p := check()
		placed := len(p.Late) + len(p.UnitTests)
		for _, s := range p.Steps {
			placed += len(s.Gates)
		}
		if placed != len(p.Selected.Tests) {
			rt.Fatalf("%d of %d tests have a place: %s", placed, len(p.Selected.Tests), gatesOf(p))
		}
		var some []string
		for i := range count {
			if rapid.Bool().Draw(rt, "selected") {
				some = append(some, fmt.Sprintf("m%d", i))
			}
		}
		if len(some) > 0 {
			check(some...)
		}
	})
}
