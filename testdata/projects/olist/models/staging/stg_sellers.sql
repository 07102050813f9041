---
columns:
  seller_id: {tests: [not_null, unique]}
  zip_prefix: {type: VARCHAR, tests: [not_null]}
  state: {tests: [not_null]}
tests:
  - expression: len(state) = 2
---
select
    seller_id,
    seller_zip_code_prefix as zip_prefix,
    seller_city as city,
    seller_state as state
from {{ source('olist', 'sellers') }}
