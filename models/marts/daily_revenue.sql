---
description: orders and revenue by day
columns:
  day: {tests: [not_null, unique]}
---
select
    ordered_at::date as day,
    count(*) as orders,
    sum(amount) as revenue,
    sum(tax_amount) as tax
from {{ ref('fct_orders') }}
where status not in ('cancelled', 'returned')
    and ordered_at >= date '{{ var("shop_opened_on") }}'
group by 1
order by 1
