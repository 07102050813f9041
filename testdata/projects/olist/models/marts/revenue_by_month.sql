---
columns:
  month: {tests: [not_null, unique]}
  revenue: {tests: [not_null]}
tests:
  - expression: revenue >= 0
---
select
    date_trunc('month', purchased_at)::date as month,
    count(*) as orders,
    sum(payments_amount) as revenue,
    sum(freight_amount) as freight
from {{ ref('fct_orders') }}
where status <> 'canceled'
group by 1
order by 1
