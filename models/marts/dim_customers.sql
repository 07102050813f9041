---
description: one row per customer with the orders so far
columns:
  customer_id: {tests: [not_null, unique]}
  country_name: {tests: [not_null]}
tests:
  - row_count: {min: 500, max: 100000}
---
with orders as (
    select
        customer_id,
        count(*) as orders,
        min(ordered_at) as first_ordered_at,
        max(ordered_at) as last_ordered_at,
        sum(amount) as revenue
    from {{ ref('fct_orders') }}
    where status <> 'cancelled'
    group by customer_id
)

select
    c.customer_id,
    c.full_name,
    c.email,
    c.country,
    n.name as country_name,
    c.signed_up_on,
    coalesce(o.orders, 0) as orders,
    o.first_ordered_at,
    o.last_ordered_at,
    coalesce(o.revenue, 0) as revenue
from {{ ref('stg_customers') }} as c
left join {{ ref('countries') }} as n on n.code = c.country
left join orders as o using (customer_id)
order by c.customer_id
