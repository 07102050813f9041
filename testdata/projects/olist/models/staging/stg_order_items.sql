---
columns:
  order_id: {tests: [not_null, {relationships: {to: stg_orders, field: order_id}}]}
  item_no: {tests: [not_null]}
  product_id: {tests: [not_null, {relationships: {to: stg_products, field: product_id}}]}
  seller_id: {tests: [not_null, {relationships: {to: stg_sellers, field: seller_id}}]}
  price: {tests: [not_null]}
  freight: {tests: [not_null]}
tests:
  - unique: [order_id, item_no]
  - expression: price > 0
  - expression: freight >= 0
---
select
    order_id,
    order_item_id as item_no,
    product_id,
    seller_id,
    shipping_limit_date as ship_by,
    price,
    freight_value as freight
from {{ source('olist', 'order_items') }}
