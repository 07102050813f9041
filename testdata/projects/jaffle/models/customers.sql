---
description: one row per customer, with first and last order
columns:
  customer_id: {tests: [not_null, unique]}
---
-- two CTEs bear the names of models: they hide nothing, ref() is qualified
with customers as (
    select * from {{ ref('stg_customers') }}
),

orders as (
    select
        customer_id,
        min(order_date) as first_order,
        max(order_date) as most_recent_order,
        count(*) as number_of_orders,
        sum(amount) as customer_lifetime_value
    from {{ ref('orders') }}
    group by customer_id
)

select
    customers.customer_id,
    customers.first_name,
    customers.last_name,
    orders.first_order,
    orders.most_recent_order,
    coalesce(orders.number_of_orders, 0) as number_of_orders,
    coalesce(orders.customer_lifetime_value, 0) as customer_lifetime_value
from customers
left join orders using (customer_id)
order by customers.customer_id
