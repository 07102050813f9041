---
description: one row per order with amount, payments and tax
columns:
  order_id: {tests: [not_null, unique]}
  customer_id:
    tests:
      - relationships: {to: stg_customers, field: customer_id}
  status:
    tests:
      - accepted_values: {values: [placed, shipped, delivered, cancelled, returned]}
tests:
  - expression: paid_amount = amount
  - expression: tax_amount >= 0
  - row_count: {equal_to: stg_orders}
---
select
    o.order_id,
    o.customer_id,
    o.ordered_at,
    o.status,
    o.channel,
    t.lines,
    t.pieces,
    t.amount,
    (t.amount - t.amount / (1 + n.vat_rate))::decimal(18, 2) as tax_amount,
    p.card_amount,
    p.paypal_amount,
    p.invoice_amount,
    p.voucher_amount,
    p.paid_amount,
    p.last_paid_at
from {{ ref('stg_orders') }} as o
join {{ ref('stg_customers') }} as c using (customer_id)
left join {{ ref('countries') }} as n on n.code = c.country
left join {{ ref('int_order_totals') }} as t using (order_id)
left join {{ ref('int_order_payments') }} as p using (order_id)
order by o.order_id
