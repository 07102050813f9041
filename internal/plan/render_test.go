package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/project"
)

// A plan names the nodes whose texts carrying it out can need: what is not unchanged
// and all above it, also where it is only tested.
func TestRendered(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":       "name: shop\n",
		"models/a.sql":      "select 1 as id\n",
		"models/e.sql":      "---\nmaterialization: ephemeral\n---\nselect 1 as id\n",
		"models/v.sql":      "---\nmaterialization: ephemeral\n---\nselect * from {{ ref('e') }}\n",
		"models/b.sql":      "select * from {{ ref('v') }}\n",
		"models/c.sql":      "select * from {{ ref('b') }}\n",
		"models/other.sql":  "select 2 as id\n",
		"models/tested.sql": "---\ntests: [{relationships: {column: id, to: other, field: id}}]\n---\nselect 1 as id\n",
	})
	for _, c := range []struct {
		selected string
		want     []string
	}{
		{"b", []string{"b", "e", "v"}},
		{"a", []string{"a"}},
		{"tested", []string{"other", "tested"}},
	} {
		p, diags := project.Load(t.Context(), project.Options{Dir: w.dir})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		o := Options{EngineIdentity: "e", Selectors: Selectors{Select: []string{c.selected}}}
		g, diags := Load(t.Context(), p, &fakeParser{}, o)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		pl, diags := g.Plan(p, nil, o)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		var got []string
		for _, n := range pl.Rendered() {
			got = append(got, n.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.selected, diff)
		}
	}
}
