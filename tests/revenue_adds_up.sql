-- The days together are worth what the orders are worth.
with days as (select sum(revenue) as revenue from {{ ref('daily_revenue') }}),

orders as (
    select sum(amount) as revenue
    from {{ ref('fct_orders') }}
    where status not in ('cancelled', 'returned')
)

select days.revenue as of_days, orders.revenue as of_orders
from days, orders
where days.revenue is distinct from orders.revenue
