package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestTellInOrder: whichever test is over first, each is told once, in order, and
// those after one that is never over at the end.
func TestTellInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(rt, "tests")
		var all, want []int
		for k := range n {
			switch rapid.SampledFrom([]string{"told", "silent", "stuck"}).Draw(rt, "kind") {
			case "told":
				all, want = append(all, k), append(want, k)
			case "silent":
				all = append(all, -k-1)
			}
		}
		var o tellInOrder
		var got []int
		for _, k := range rapid.Permutation(all).Draw(rt, "order") {
			if k < 0 {
				o.done(-k-1, nil)
				continue
			}
			o.done(k, func() { got = append(got, k) })
			if !slices.IsSorted(got) {
				rt.Fatalf("told %v", got)
			}
		}
		o.rest()
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestOrderOfTests: a command tells of the same tests in the same order for any
// number of workers, the slowest first.
func TestOrderOfTests(t *testing.T) {
	files := map[string]string{"models/m.sql": "---\ntests:\n  - expression: (select max(hash(r.range + v)) from range(3000000) as r) <> 0\n"}
	for i := range 20 {
		files["models/m.sql"] += fmt.Sprintf("  - expression: v <> %d\n", i)
		files[fmt.Sprintf("tests/t%02d.sql", i)] = "select * from {{ ref('m') }} where v < 0"
	}
	files["models/m.sql"] += "---\nselect 100 as v\n"
	w := newWorld(t, files)
	w.must(command{})
	w.write("tests/t07.sql", "select * from {{ ref('m') }}")
	var first string
	for _, workers := range []int{1, 2, 4, 8} {
		w.must(command{tests: true, workers: workers})
		var told []string
		for _, e := range w.events {
			if e.Kind == EventTestFinished {
				told = append(told, fmt.Sprintf("%d of %d %s %s", e.Number, e.Total, e.Test.Status, e.Test.Name))
			}
		}
		if got := strings.Join(told, "\n"); first == "" {
			first = got
		} else if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%d workers: %s", workers, diff)
		}
	}
	if !strings.Contains(first, "of 41 fail") {
		t.Errorf("told:\n%s", first)
	}
}
