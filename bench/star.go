package main

import (
	"fmt"
	"path/filepath"
)

// starTables are the raw tables of the star schema, for so many sales.
func starTables(sales int) map[string]string {
	customers, products, stores := max(100, sales/50), max(50, sales/500), max(10, sales/20_000)
	return map[string]string{
		"sales": fmt.Sprintf(`SELECT i AS sale_id, %s AS customer_id, %s AS product_id, %s AS store_id,
			TIMESTAMP '2023-01-01' + to_seconds(%s) AS sold_at, (1 + %s)::BIGINT AS qty, (100 + %s)::BIGINT AS unit_cents,
			%s AS discount_pct, %s AS payment FROM range(%d) t(i)`,
			rnd(11, customers), rnd(12, products), rnd(13, stores), rnd(14, 94_000_000), rnd(15, 6), rnd(16, 20_000),
			rnd(17, 30), pick(18, "card", "cash", "invoice", "voucher"), sales),
		"customers": fmt.Sprintf(`SELECT i AS customer_id, 'customer ' || i AS customer_name, %s AS segment, %s AS country,
			DATE '2015-01-01' + %s::INTEGER AS joined_on FROM range(%d) t(i)`,
			pick(19, "consumer", "small business", "enterprise", "public"),
			pick(20, "DE", "FR", "IT", "ES", "PL", "NL", "SE", "AT", "DK", "BE"), rnd(21, 2900), customers),
		"products": fmt.Sprintf(`SELECT i AS product_id, 'product ' || i AS product_name, %s AS category, 'brand ' || %s AS brand,
			(50 + %s)::BIGINT AS cost_cents FROM range(%d) t(i)`,
			pick(22, "food", "tools", "toys", "books", "garden", "sport"), rnd(23, 80), rnd(24, 9_000), products),
		"stores": fmt.Sprintf(`SELECT i AS store_id, 'store ' || i AS store_name, %s AS region, (50 + %s)::BIGINT AS square_metres
			FROM range(%d) t(i)`, pick(25, "north", "south", "east", "west", "centre"), rnd(26, 4000), stores),
		"returns": fmt.Sprintf(`SELECT i * 20 AS sale_id, TIMESTAMP '2023-01-05' + to_seconds(%s) AS returned_at, %s AS reason
			FROM range(%d) t(i)`, rnd(27, 94_000_000), pick(28, "broken", "late", "wrong size", "other"), max(1, sales/20)),
	}
}

// starGroups are what the marts of the star schema group by, with the table
// that has it.
func starGroups() []struct{ name, column, join string } {
	const (
		byProduct  = "join {{ ref('dim_products') }} d on d.product_id = f.product_id"
		byStore    = "join {{ ref('dim_stores') }} d on d.store_id = f.store_id"
		byCustomer = "join {{ ref('dim_customers') }} d on d.customer_id = f.customer_id"
	)
	return []struct{ name, column, join string }{
		{"category", "d.category", byProduct}, {"brand", "d.brand", byProduct}, {"margin_band", "d.margin_band", byProduct},
		{"region", "d.region", byStore}, {"store_size", "d.store_size", byStore}, {"segment", "d.segment", byCustomer},
		{"country", "d.country", byCustomer}, {"payment", "f.payment", ""},
	}
}

// starProject is 40 models: 5 staged tables, 4 dimensions, 2 facts, 29 marts.
// Names keep to prefixes that every measured tool allows, and the SQL to what
// each of their engines means alike.
func starProject(data string) neutral {
	p := neutral{name: "star", data: data}
	for _, name := range []string{"sales", "customers", "products", "stores", "returns"} {
		p.sources = append(p.sources, source{name: name, path: filepath.Join(data, name+".parquet")})
	}
	add := func(level int, folder, name, sql string) {
		p.models = append(p.models, model{name: name, folder: folder, sql: sql, level: level})
	}
	add(0, "staging", "stg_sales", `select sale_id, customer_id, product_id, store_id, sold_at, cast(sold_at as date) as sold_on, qty, unit_cents, discount_pct, payment,
  qty * unit_cents * (100 - discount_pct) as net_hundredths
from {{ source('raw', 'sales') }}
where qty > 0`)
	add(0, "staging", "stg_customers", "select customer_id, customer_name, segment, country, joined_on from {{ source('raw', 'customers') }}")
	add(0, "staging", "stg_products", "select product_id, product_name, category, brand, cost_cents from {{ source('raw', 'products') }}")
	add(0, "staging", "stg_stores", "select store_id, store_name, region, square_metres from {{ source('raw', 'stores') }}")
	add(0, "staging", "stg_returns", "select sale_id, cast(returned_at as date) as returned_on, reason from {{ source('raw', 'returns') }}")
	add(1, "marts", "dim_customers", "select customer_id, customer_name, segment, country, joined_on, case when joined_on < date '2019-01-01' then 'old' else 'new' end as tenure from {{ ref('stg_customers') }}")
	add(1, "marts", "dim_products", "select product_id, product_name, category, brand, cost_cents, case when cost_cents > 6000 then 'high' when cost_cents > 2000 then 'mid' else 'low' end as margin_band from {{ ref('stg_products') }}")
	add(1, "marts", "dim_stores", "select store_id, store_name, region, square_metres, case when square_metres > 2000 then 'large' else 'small' end as store_size from {{ ref('stg_stores') }}")
	add(1, "marts", "dim_dates", "select sold_on, cast(date_trunc('month', sold_on) as date) as month_start, cast(date_trunc('week', sold_on) as date) as week_start from (select distinct sold_on from {{ ref('stg_sales') }}) d")
	add(2, "marts", "fct_sales", `select s.sale_id, s.customer_id, s.product_id, s.store_id, s.sold_on, d.month_start, d.week_start, s.payment, s.qty, s.net_hundredths,
  s.net_hundredths - s.qty * p.cost_cents * 100 as profit_hundredths,
  case when r.sale_id is null then 0 else 1 end as returned
from {{ ref('stg_sales') }} s
join {{ ref('dim_products') }} p on p.product_id = s.product_id
join {{ ref('dim_dates') }} d on d.sold_on = s.sold_on
left join {{ ref('stg_returns') }} r on r.sale_id = s.sale_id`)
	add(2, "marts", "fct_returns", `select r.sale_id, r.returned_on, r.reason, s.customer_id, s.product_id, s.store_id, s.qty, s.net_hundredths
from {{ ref('stg_returns') }} r
join {{ ref('stg_sales') }} s on s.sale_id = r.sale_id`)
	for _, group := range starGroups() {
		for _, grain := range []string{"sold_on", "week_start", "month_start"} {
			add(3, "marts", "obt_"+group.name+"_by_"+grain, fmt.Sprintf(`select f.%s as period, %s as %s, cast(count(*) as bigint) as sales, cast(sum(f.qty) as bigint) as qty,
  cast(sum(f.net_hundredths) as bigint) as net, cast(sum(f.profit_hundredths) as bigint) as profit, cast(sum(f.returned) as bigint) as returned
from {{ ref('fct_sales') }} f %s
group by f.%s, %s`, grain, group.column, group.name, group.join, grain, group.column))
		}
	}
	addStarSpecials(add)
	return p
}

// addStarSpecials adds the five marts that are more than a GROUP BY.
func addStarSpecials(add func(level int, folder, name, sql string)) {
	add(3, "marts", "obt_customers", `select c.customer_id, c.customer_name, c.segment, c.country, c.tenure, cast(count(*) as bigint) as sales, cast(sum(f.net_hundredths) as bigint) as net,
  min(f.sold_on) as first_on, max(f.sold_on) as last_on
from {{ ref('fct_sales') }} f
join {{ ref('dim_customers') }} c on c.customer_id = f.customer_id
group by c.customer_id, c.customer_name, c.segment, c.country, c.tenure`)
	add(3, "marts", "obt_top_products", `select store_id, product_id, net, place from (
  select store_id, product_id, net, row_number() over (partition by store_id order by net desc, product_id) as place
  from (select store_id, product_id, cast(sum(net_hundredths) as bigint) as net from {{ ref('fct_sales') }} group by store_id, product_id) a
) b where place <= 10`)
	add(4, "marts", "obt_cohorts", `select c.first_month, f.month_start, cast(count(distinct f.customer_id) as bigint) as customers
from {{ ref('fct_sales') }} f
join (select customer_id, cast(date_trunc('month', first_on) as date) as first_month from {{ ref('obt_customers') }}) c on c.customer_id = f.customer_id
group by c.first_month, f.month_start`)
	add(3, "marts", "obt_return_reasons", `select r.reason, p.category, s.region, cast(count(*) as bigint) as returns, cast(sum(r.net_hundredths) as bigint) as net
from {{ ref('fct_returns') }} r
join {{ ref('dim_products') }} p on p.product_id = r.product_id
join {{ ref('dim_stores') }} s on s.store_id = r.store_id
group by r.reason, p.category, s.region`)
	add(4, "marts", "obt_monthly_growth", `select period, category, net, lag(net) over (partition by category order by period) as net_before
from {{ ref('obt_category_by_month_start') }}`)
}

// runStar is scenario d.
func runStar(b *bench) error {
	rows := b.size(10_000_000, 20_000)
	var p neutral
	var at string
	sides := func(n int) ([]side, error) {
		dir, err := b.dir("star")
		if err != nil {
			return nil, err
		}
		at = dir
		if err := b.makeParquet(dir, starTables(n)); err != nil {
			return nil, err
		}
		p = starProject(dir)
		return b.pair(dir, p, 1)
	}
	if b.opt.growth {
		return b.grow("star schema", "rows of sales", rows, sides)
	}
	all, err := sides(rows)
	if err != nil {
		return err
	}
	peers, goals := b.peerSides(at, p)
	return b.compare(comparison{
		name: "40 models over " + count(rows, "row"), base: "bare", sides: append(all, peers...), check: byText,
		targets: append([]target{
			{side: "rbt", metric: cpu, against: "bare", max: 1.10},
			{side: "rbt", metric: wall, against: "bare", max: 1.00},
		}, goals...),
		notes: []string{"bare: the sum of the same COPYs one after the other on one connection, each with all threads"},
	})
}
