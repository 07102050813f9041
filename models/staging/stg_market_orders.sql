---
description: one row per order of the market place with its buyer
columns:
  order_id: {tests: [not_null, unique]}
  email: {tests: [not_null]}
---
select
    o._sid as market_sid,
    o.order_id,
    o.placed_at,
    o.total,
    b.name as buyer,
    b.email,
    b.country,
    coalesce(o.tags_count, 0) as tags
from {{ ref('market') }} as o
join {{ ref('market.buyer') }} as b on b._sid = o.buyer_sid
