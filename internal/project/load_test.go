package project

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

const shop = `
-- project.yml --
name: shop
folders:
  staging: {materialization: view, path: silver, tags: [daily]}
  staging/raw: {path: bronze}
vars: {start: 2024-01-01, at: 2024-01-01 10:00:00, n: 3, zip: 00123}
sources:
  - name: raw
    tables:
      - name: orders
        path: data/orders/*.csv
        columns: {id: BIGINT, zip: {type: VARCHAR, tests: [not_null]}}
-- seeds/methods.csv --
id,name
1,card
-- models/staging/stg_orders.sql --
---
description: one row per order
columns:
  id: {type: BIGINT, tests: [not_null, unique]}
---
select * from {{ source('raw', 'orders') }}
-- models/staging/raw/stg_raw.sql --
select * from {{ ref('stg_orders') }} where d >= '{{ var('start') }}' and t > '{{ var('at') }}' and z = '{{ var('zip') }}' and n = {{ var('n') + 1 }}
-- models/marts/orders.sql --
---
materialized: " Incremental "
tests:
  - unique: [id, day]
  - relationships: {column: id, to: stg_orders, field: id}
  - expression: amount >= 0
  - row_count: {min: 1}
---
select * from {{ ref('stg_orders') }} join {{ ref('METHODS') }} using (id)
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
`

func TestLoad(t *testing.T) {
	p := good(t, shop)
	type row struct {
		Name, Path string
		Mat        Materialization
		Tags       []string
	}
	var got []row
	for _, m := range p.Models {
		got = append(got, row{m.Name, m.Path, m.Materialization, m.Tags})
	}
	want := []row{
		{"orders", "", Incremental, nil},
		{"stg_orders", "silver", View, []string{"daily"}},
		{"stg_raw", "bronze", View, []string{"daily"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var tests []string
	for _, x := range p.Tests {
		tests = append(tests, x.Name)
	}
	if d := cmp.Diff([]string{
		"unique_orders_id_day", "relationships_orders_id__stg_orders_id", "expression_orders__amount_ge_0", "row_count_orders__1",
		"not_null_raw_orders_zip", "not_null_stg_orders_id", "unique_stg_orders_id",
	}, tests); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{filepath.Join(p.Dir, "data/orders/*.csv")}, p.Sources[0].Patterns); d != "" {
		t.Error(d)
	}
	if p.Sources[0].Format != "csv" || p.LakeDir != filepath.Join(p.Dir, "lake") || p.Target != "default" {
		t.Errorf("format %s, lake %s, target %s", p.Sources[0].Format, p.LakeDir, p.Target)
	}
}

func TestCompile(t *testing.T) {
	p := good(t, shop)
	if got, want := p.sql(t, "stg_orders", CompileOptions{}), `select * from "raw"."orders"`; got != want {
		t.Errorf("got %q", got)
	}
	want := `select * from "main"."stg_orders" where d >= '2024-01-01' and t > '2024-01-01 10:00:00' and z = '00123' and n = 4`
	if got := p.sql(t, "stg_raw", CompileOptions{}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	c, list := p.Compile(context.Background(), p.model(t, "orders"), CompileOptions{Incremental: true})
	if list != nil {
		t.Fatal(list)
	}
	if !c.This || c.Volatile != "" || c.Queried {
		t.Errorf("this %v, volatile %q, queried %v", c.This, c.Volatile, c.Queried)
	}
	if d := cmp.Diff([]Ref{
		{Node: "stg_orders", Pos: diag.Pos{File: "models/marts/orders.sql", Line: 9, Col: 18}},
		{Node: "methods", Pos: diag.Pos{File: "models/marts/orders.sql", Line: 9, Col: 47}},
	}, c.Refs); d != "" {
		t.Error(d)
	}
	c, list = p.Compile(context.Background(), p.model(t, "orders"), CompileOptions{})
	if list != nil || c.This {
		t.Errorf("this %v, list %v", c.This, list)
	}
}
