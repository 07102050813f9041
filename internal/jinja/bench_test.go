package jinja

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

const benchModel = `{{ config(materialized='incremental', tags=['daily']) }}
select
  o.order_id,
  {{ cents('o.amount') }} as amount,
  o.status
from {{ ref('stg_orders') }} o
where o.status <> '{{ var('skip', 'none') }}'
{% if is_incremental() %}
  and o.ordered_at > (select max(ordered_at) from {{ this }})
{% endif %}
`

func benchLibrary(b testing.TB) *Library {
	var src strings.Builder
	for i := range 50 {
		fmt.Fprintf(&src, "{%% macro m%d(col, scale=2) %%}round({{ col }} / 100.0, {{ scale }}){%% endmacro %%}\n", i)
	}
	src.WriteString("{% macro cents(col) %}({{ col }} / 100)::decimal(18, 2){% endmacro %}\n")
	t, problems := Parse("macros/all.sql", src.String(), 1)
	if problems.HasErrors() {
		b.Fatal(problems)
	}
	l, problems := NewLibrary(t)
	if problems.HasErrors() {
		b.Fatal(problems)
	}
	return l
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Parse("m.sql", benchModel, 1); problems.HasErrors() {
			b.Fatal(problems)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	t, _ := Parse("m.sql", benchModel, 1)
	o := Options{Globals: oracleGlobals(), Library: benchLibrary(b)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(context.Background(), t, o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoop(b *testing.B) {
	t, _ := Parse("m.sql", `{% set xs = [] %}{% for i in range(10000) %}{% do xs.append(i * 2 + 1) %}{% if i % 3 == 0 %}{{ i }},{% endif %}{% endfor %}`, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(context.Background(), t, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseLarge shows that parsing is linear: bytes per second do not
// depend on the size.
func BenchmarkParseLarge(b *testing.B) {
	for _, n := range []int{10, 1000} {
		src := strings.Repeat(benchModel, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := Parse("m.sql", src, 1); problems.HasErrors() {
					b.Fatal(problems)
				}
			}
		})
	}
}
