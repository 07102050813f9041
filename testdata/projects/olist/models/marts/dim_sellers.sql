---
columns:
  seller_id: {tests: [not_null, unique]}
  revenue: {tests: [not_null]}
tests:
  - row_count: {equal_to: stg_sellers}
---
select
    s.seller_id,
    s.zip_prefix,
    s.city,
    s.state,
    count(i.order_id) as items_sold,
    coalesce(sum(i.price), 0) as revenue
from {{ ref('stg_sellers') }} as s
left join {{ ref('stg_order_items') }} as i using (seller_id)
group by all
order by s.seller_id
