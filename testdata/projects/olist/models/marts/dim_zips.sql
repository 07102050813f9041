---
description: one place a zip prefix, the middle of what was measured
columns:
  zip_prefix: {type: VARCHAR, tests: [not_null, unique]}
tests:
  - expression: points > 0
---
select
    zip_prefix,
    count(*) as points,
    median(latitude) as latitude,
    median(longitude) as longitude
from {{ ref('stg_geolocation') }}
group by zip_prefix
order by zip_prefix
