---
description: one row per order with its newest status
columns:
  order_id: {tests: [not_null, unique]}
  customer_id:
    tests:
      - not_null
      - relationships: {to: stg_customers, field: customer_id}
  status:
    tests:
      - accepted_values: {values: [placed, shipped, delivered, cancelled, returned]}
tests:
  - expression: updated_at >= ordered_at
---
select
    order_id,
    customer_id,
    ordered_at,
    status,
    updated_at,
    coalesce(channel, 'unknown') as channel
from {{ source('raw', 'orders') }}
{{ latest_per('order_id', 'updated_at') }}
