---
columns:
  customer_id: {tests: [not_null, unique]}
---
select id as customer_id, first_name, last_name
from {{ source('raw', 'customers') }}
