package project

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDrawn: what is rendered for config() while a project is loaded is what a
// later rendering gives, also where the template looks at what config() says.
func TestDrawn(t *testing.T) {
	tests := []struct {
		name, body, want string
		drawn            bool // the first compile needs no rendering
	}{
		{"plain", "{{ config(tags=['x']) }}select * from {{ ref('base') }}", `select * from "main"."base"`, true},
		{"increment", "{{ config(tags=['x']) }}{% if is_incremental() %}a{% else %}b{% endif %}", "b", true},
		{"config.get", "{{ config(materialized='view') }}{{ config.get('materialized') }}", "view", false},
		{"config.get in a macro", "{{ config(materialized='view') }}{{ kind() }}", "view", false},
		{"model", "{{ config(tags=['x']) }}{{ model.tags | join }}", "x", false},
		{"model in a macro", "{{ config(tags=['x']) }}{{ tags() }}", "x", false},
		{"the run", "{{ config(tags=['x']) }}{{ invocation_id }}", "run", false},
		{"execute", "{{ config(tags=['x']) }}{{ execute }}", "False", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := good(t, "-- project.yml --\nname: shop\n-- macros/m.sql --\n"+
				"{% macro kind() %}{{ config.get('materialized') }}{% endmacro %}{% macro tags() %}{{ model.tags | join }}{% endmacro %}\n"+
				"-- models/base.sql --\nselect 1 as id\n-- models/m.sql --\n"+test.body+"\n")
			m := p.model(t, "m")
			if _, ok := p.drawn.compiled[m]; ok != test.drawn {
				t.Errorf("drawn is %t", ok)
			}
			first := p.sql(t, "m", CompileOptions{InvocationID: "run"})
			again := p.sql(t, "m", CompileOptions{InvocationID: "run"})
			if diff := cmp.Diff([]string{test.want, test.want}, []string{first, again}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("a parent disabled by config()", func(t *testing.T) {
		p := good(t, "-- project.yml --\nname: shop\n-- models/base.sql --\n{{ config(enabled=false) }}select 1 as id\n"+
			"-- models/m.sql --\n{{ config(tags=['x']) }}select * from {{ ref('base') }}\n")
		if _, list := p.Compile(t.Context(), p.model(t, "m"), CompileOptions{}); len(list) != 1 || list[0].Msg != `"base" is disabled` {
			t.Errorf("got %v", list)
		}
	})
}
