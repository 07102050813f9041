---
columns:
  category: {tests: [not_null, unique]}
tests:
  - expression: {sql: revenue > 0}
---
select category, count(*) as items, sum(price) as revenue
from {{ ref('fct_order_items') }}
group by category
order by revenue desc, category
