---
description: what each order comes to
columns:
  order_id: {tests: [not_null, unique]}
tests:
  - expression: amount > 0
---
select
    order_id,
    count(*) as lines,
    sum(quantity) as pieces,
    sum(amount) as amount
from {{ ref('stg_order_lines') }}
group by order_id
order by order_id
