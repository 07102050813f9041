---
description: one row per line of an order
tests:
  - unique: [order_id, line_no]
  - not_null: [order_id, line_no, sku]
  - relationships: {column: sku, to: stg_products, field: sku}
  - expression: quantity > 0
---
select
    order_id,
    line_no,
    sku,
    quantity,
    unit_price,
    (quantity * unit_price)::decimal(18, 2) as amount
from {{ source('raw', 'order_lines') }}
