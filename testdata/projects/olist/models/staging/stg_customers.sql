---
columns:
  customer_id: {tests: [not_null, unique]}
  person_id: {tests: [not_null]}
  zip_prefix: {type: VARCHAR, tests: [not_null]}
  state: {tests: [not_null]}
tests:
  - expression: len(state) = 2
  - expression: regexp_full_match(zip_prefix, '[0-9]{4,5}')
---
select
    customer_id,
    customer_unique_id as person_id,
    customer_zip_code_prefix as zip_prefix,
    customer_city as city,
    customer_state as state
from {{ source('olist', 'customers') }}
