---
description: one row per customer, as last exported
columns:
  customer_id: {tests: [not_null, unique]}
  email:
    tests:
      # the shop lets people order without an address: known, counted, no reason to stop
      - not_null: {severity: warn}
      - trimmed
  country:
    tests:
      - relationships: {to: ref('countries'), field: code}
---
select
    customer_id,
    full_name,
    lower(trim(email)) as email,
    country,
    signed_up_on
from {{ source('raw', 'customers') }}
{{ latest_per('customer_id', 'exported_at') }}
