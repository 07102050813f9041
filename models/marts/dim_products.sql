---
description: articles with what was sold of them
columns:
  sku: {description: the number on the label; leading zeros count, tests: [not_null, unique]}
tests:
  - row_count: {equal_to: stg_products}
---
select
    p.sku,
    p.title,
    p.category,
    p.price,
    p.weight_g,
    coalesce(sum(l.quantity), 0) as pieces_sold,
    coalesce(sum(l.amount), 0) as revenue
from {{ ref('stg_products') }} as p
left join {{ ref('stg_order_lines') }} as l using (sku)
group by all
order by sku
