---
description: every order, appended as it comes; old parts are never rewritten
materialization: incremental
columns:
  order_id: {tests: [not_null, unique]}
---
select order_id, ordered_at, amount
from {{ ref('stg_orders') }}
{% if is_incremental() %}
-- this is what is published of this very model
where ordered_at > (select max(ordered_at) from {{ this }})
{% endif %}
order by ordered_at, order_id
