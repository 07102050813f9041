---
description: one row per article put into a cart, opened from the nested list
columns:
  sku:
    tests:
      - not_null
      - relationships: {to: dim_products, field: sku}
---
select e.event_id, e.occurred_at, i.item.sku as sku, i.item.qty as quantity
from {{ ref('fct_events') }} as e, unnest(e.items) as i(item)
order by e.event_id, sku, quantity
