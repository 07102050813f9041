---
# Between the two lines of dashes stands YAML: what the model is and what must
# hold. A test that fails stops the model before anyone sees it.
description: orders as the shop exports them, one row each
columns:
  order_id: {tests: [not_null, unique]}
  status:
    tests:
      - accepted_values: {values: [placed, shipped, cancelled]}
  country:
    tests:
      - relationships: {to: countries, field: code}
---
-- source() names raw files, ref() names models and seeds
select order_id, country, ordered_at, status, amount
from {{ source('raw', 'orders') }}
where ordered_at >= date '{{ var("first_day") }}'
