---
columns:
  order_id: {tests: [not_null, unique]}
  status:
    tests:
      - accepted_values: {values: [placed, shipped, completed, return_pending, returned]}
---
select id as order_id, user_id as customer_id, order_date, status
from {{ source('raw', 'orders') }}
