---
description: one row per event, as it first arrived; the nested visitor is opened
columns:
  event_id: {tests: [not_null, unique]}
  received_at: {tests: [not_null]}
  event_type:
    tests:
      - accepted_values: {values: [page_view, search, add_to_cart, checkout]}
---
select
    event_id,
    type as event_type,
    occurred_at,
    received_at,
    visitor.customer_id as customer_id,
    visitor.device.os as device_os,
    visitor.device.app as in_app,
    items,
    search_term
from {{ source('raw', 'events') }}
qualify row_number() over (partition by event_id order by received_at) = 1
