---
description: one row per article of an order of the market place
tests:
  - relationships: {column: sku, to: stg_products, field: sku}
  - expression: qty > 0
---
select
    o.order_id,
    l._idx + 1 as line_no,
    l.sku,
    l.qty,
    l.price,
    l.qty * l.price as amount
from {{ ref('market.lines') }} as l
join {{ ref('market') }} as o on o._sid = l._parent_sid
