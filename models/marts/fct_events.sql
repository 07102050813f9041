---
description: >
  every event once, appended as it arrives; the time of arrival decides what is
  new, so that an event that happened earlier and was sent late is not lost
materialization: incremental
strategy: append
columns:
  event_id: {type: VARCHAR, tests: [not_null, unique]}
  received_at: {type: TIMESTAMP, tests: [not_null]}
tests:
  - expression: occurred_at <= received_at
  - expression:
      name: carts_hold_something
      sql: len(items) > 0 or event_type in ('page_view', 'search')
---
select *
from {{ ref('stg_events') }}
{% if is_incremental() -%}
where received_at > (select max(received_at) from {{ this }})
{%- endif %}
order by received_at, event_id
