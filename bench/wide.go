package main

import "path/filepath"

// wideSQL makes 17 columns of the raw orders' 11.
const wideSQL = `select
  id, customer_id, product_id, status, upper(channel) as channel, quantity, price, discount,
  cast(price * quantity as decimal(18,2)) as gross,
  cast(price * quantity * (1 - discount) as decimal(18,4)) as net,
  ordered_at, cast(ordered_at as date) as order_day, cast(year(ordered_at) as integer) as order_year,
  cast(month(ordered_at) as integer) as order_month, country,
  case when quantity >= 7 then 'bulk' when quantity >= 3 then 'several' else 'single' end as basket,
  note
from {{ source('raw', 'orders') }}`

// wideProject is one model over raw orders.
func wideProject(data string, engine ...string) neutral {
	return neutral{
		name: "wide", data: data, engine: engine,
		sources: []source{{name: "orders", path: filepath.Join(data, "orders.parquet")}},
		models:  []model{{name: "wide", sql: wideSQL}},
	}
}

// pair writes a project and is its two sides: the bare COPYs and rbt.
func (b *bench) pair(dir string, p neutral, connections int, settings ...string) ([]side, error) {
	project := filepath.Join(dir, "project")
	if err := p.writeRbt(project); err != nil {
		return nil, err
	}
	return []side{b.bareSide("bare", dir, p, connections, settings...), b.rbtSide("rbt", project, p)}, nil
}

// runWide is scenario a.
func runWide(b *bench) error {
	rows := b.size(20_000_000, 10_000)
	sides := func(n int) ([]side, error) {
		dir, err := b.dir("wide")
		if err != nil {
			return nil, err
		}
		if err := b.makeParquet(dir, map[string]string{"orders": ordersTable(n)}); err != nil {
			return nil, err
		}
		return b.pair(dir, wideProject(dir), 1)
	}
	if b.opt.growth {
		return b.grow("one wide model", "rows", rows, sides)
	}
	both, err := sides(rows)
	if err != nil {
		return err
	}
	return b.compare(comparison{
		name: count(rows, "row") + " x 17 columns to Parquet", base: "bare", sides: both, check: byValue,
		targets: []target{
			{side: "rbt", metric: wall, against: "bare", max: 1.05},
			{side: "rbt", metric: cpu, against: "bare", max: 1.05},
			{side: "rbt", metric: peak, against: "bare", max: 1.1},
		},
	})
}

// joinSQL sorts and joins more than a small memory limit holds.
const joinSQL = `select
  o.id, o.customer_id, c.orders, c.spent, p.sold, o.price, o.quantity, o.note,
  row_number() over (partition by o.customer_id order by o.ordered_at, o.id) as nth
from {{ source('raw', 'orders') }} o
join (
  select customer_id, count(*) as orders, cast(sum(price * quantity) as decimal(18,2)) as spent
  from {{ source('raw', 'orders') }} group by customer_id
) c on c.customer_id = o.customer_id
join (
  select product_id, country, cast(sum(quantity) as bigint) as sold
  from {{ source('raw', 'orders') }} group by product_id, country
) p on p.product_id = o.product_id and p.country = o.country`

// memoryLimit is what scenario h allows DuckDB; memoryRoom is how much more
// the process may take.
const (
	memoryLimit = 1_000_000_000
	memoryRoom  = 300_000_000
)

// runMemory is scenario h.
func runMemory(b *bench) error {
	rows := b.size(20_000_000, 10_000)
	dir, err := b.dir("data")
	if err != nil {
		return err
	}
	if err := b.makeParquet(dir, map[string]string{"orders": ordersTable(rows)}); err != nil {
		return err
	}
	join := wideProject(dir, "memory_limit: 1GB")
	join.name, join.models = "joins", []model{{name: "joined", sql: joinSQL}}
	for _, c := range []struct {
		name string
		p    neutral
	}{
		{"the wide model, memory_limit 1GB", wideProject(dir, "memory_limit: 1GB")},
		{"joins and a window that spill, memory_limit 1GB", join},
	} {
		at, err := b.dir(c.p.name)
		if err != nil {
			return err
		}
		sides, err := b.pair(at, c.p, 1, "SET memory_limit = '1GB'")
		if err != nil {
			return err
		}
		if b.opt.growth {
			continue
		}
		if err := b.compare(comparison{
			name: c.name + ", " + count(rows, "row"), base: "bare", sides: sides, check: byValue,
			targets: []target{{side: "rbt", metric: peak, max: memoryLimit + memoryRoom}},
		}); err != nil {
			return err
		}
	}
	return nil
}
