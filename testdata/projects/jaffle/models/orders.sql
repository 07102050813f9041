---
description: one row per order, with one amount a payment method
columns:
  order_id: {tests: [not_null, unique]}
  customer_id:
    tests:
      - not_null
      - relationships: {to: ref('customers'), field: customer_id}
  status:
    tests:
      - accepted_values: {values: [placed, shipped, completed, return_pending, returned]}
  amount: {tests: [not_null]}
  credit_card_amount: {tests: [not_null]}
  coupon_amount: {tests: [not_null]}
  bank_transfer_amount: {tests: [not_null]}
  gift_card_amount: {tests: [not_null]}
---
{%- set payment_methods = ['credit_card', 'coupon', 'bank_transfer', 'gift_card'] %}
with orders as (
    select * from {{ ref('stg_orders') }}
),

payments as (
    select
        order_id,
        {%- for method in payment_methods %}
        sum(case when payment_method = '{{ method }}' then amount else 0 end) as {{ method }}_amount,
        {%- endfor %}
        sum(amount) as amount
    from {{ ref('stg_payments') }}
    group by order_id
)

select
    orders.order_id,
    orders.customer_id,
    orders.order_date,
    orders.status,
    {%- for method in payment_methods %}
    coalesce(payments.{{ method }}_amount, 0) as {{ method }}_amount,
    {%- endfor %}
    coalesce(payments.amount, 0) as amount
from orders
left join payments using (order_id)
order by orders.order_id
