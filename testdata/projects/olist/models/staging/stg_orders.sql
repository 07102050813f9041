---
columns:
  order_id: {tests: [not_null, unique]}
  customer_id: {tests: [not_null, unique]}
  status:
    tests:
      - not_null
      - accepted_values:
          values: [created, approved, invoiced, processing, shipped, delivered, unavailable, canceled]
  purchased_at: {tests: [not_null]}
  estimated_delivery_on: {tests: [not_null]}
tests:
  - expression: approved_at >= purchased_at
  - row_count: {min: 1}
---
select
    order_id,
    customer_id,
    order_status as status,
    order_purchase_timestamp as purchased_at,
    order_approved_at as approved_at,
    order_delivered_carrier_date as handed_over_at,
    order_delivered_customer_date as delivered_at,
    order_estimated_delivery_date::date as estimated_delivery_on
from {{ source('olist', 'orders') }}
