---
columns:
  order_id: {tests: [not_null]}
  category: {tests: [not_null]}
  seller_id: {tests: [{relationships: {to: dim_sellers, field: seller_id}}]}
tests:
  - unique: [order_id, item_no]
  - row_count: {equal_to: stg_order_items}
---
select i.order_id, i.item_no, i.product_id, i.seller_id, p.category, o.purchased_at, i.price, i.freight
from {{ ref('stg_order_items') }} as i
join {{ ref('stg_orders') }} as o using (order_id)
join {{ ref('stg_products') }} as p using (product_id)
order by i.order_id, i.item_no
