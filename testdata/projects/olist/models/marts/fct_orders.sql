---
description: one row per order with payments, items and freight
columns:
  order_id: {tests: [not_null, unique]}
  customer_id: {tests: [not_null, {relationships: {to: dim_customers, field: customer_id}}]}
  status:
    tests:
      - accepted_values:
          values: [created, approved, invoiced, processing, shipped, delivered, unavailable, canceled]
  payments_amount: {tests: [not_null]}
  items_amount: {tests: [not_null]}
  freight_amount: {tests: [not_null]}
tests:
  - row_count: {equal_to: stg_orders}
  - expression: payments_amount >= 0
  - expression: items >= 0
  - expression: delivered_at >= purchased_at
---
{%- set types = ['credit_card', 'debit_card', 'boleto', 'voucher', 'not_defined'] %}
with items as (
    select order_id, count(*) as items, sum(price) as items_amount, sum(freight) as freight_amount
    from {{ ref('stg_order_items') }}
    group by order_id
),

payments as (
    select
        order_id,
        {%- for type in types %}
        sum(amount) filter (payment_type = '{{ type }}') as {{ type }}_amount,
        {%- endfor %}
        sum(amount) as payments_amount
    from {{ ref('stg_order_payments') }}
    group by order_id
)

select
    o.order_id,
    o.customer_id,
    o.status,
    o.purchased_at,
    o.delivered_at,
    o.delivered_at::date <= o.estimated_delivery_on as on_time,
    coalesce(i.items, 0) as items,
    coalesce(i.items_amount, 0) as items_amount,
    coalesce(i.freight_amount, 0) as freight_amount,
    {%- for type in types %}
    coalesce(p.{{ type }}_amount, 0) as {{ type }}_amount,
    {%- endfor %}
    coalesce(p.payments_amount, 0) as payments_amount
from {{ ref('stg_orders') }} as o
left join items as i using (order_id)
left join payments as p using (order_id)
order by o.order_id
