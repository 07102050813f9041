---
columns:
  zip_prefix: {type: VARCHAR, tests: [not_null]}
tests:
  - expression: latitude between -90 and 90
  - expression: longitude between -180 and 180
---
select
    geolocation_zip_code_prefix as zip_prefix,
    geolocation_lat as latitude,
    geolocation_lng as longitude,
    geolocation_city as city,
    geolocation_state as state
from {{ source('olist', 'geolocation') }}
