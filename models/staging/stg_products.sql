---
description: one row per article
columns:
  sku: {tests: [not_null, unique]}
  category:
    tests:
      - accepted_values: {values: [tea, coffee, cups, books, sweets]}
tests:
  - expression: price > 0
---
select sku, title, category, price, weight_g
from {{ source('raw', 'products') }}
