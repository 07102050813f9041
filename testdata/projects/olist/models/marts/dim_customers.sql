---
columns:
  customer_id: {tests: [not_null, unique]}
  zip_prefix: {type: VARCHAR, tests: [not_null]}
tests:
  - row_count: {equal_to: stg_customers}
---
select c.customer_id, c.person_id, c.zip_prefix, c.city, c.state, z.latitude, z.longitude
from {{ ref('stg_customers') }} as c
left join {{ ref('dim_zips') }} as z using (zip_prefix)
order by c.customer_id
