---
columns:
  product_id: {tests: [not_null, unique]}
  category: {tests: [not_null]}
tests:
  - expression: weight_g >= 0
  - expression: photos > 0
---
-- the file writes whole numbers as 44.0
select
    product_id,
    coalesce(product_category_name, 'sem_categoria') as category,
    product_photos_qty::integer as photos,
    product_weight_g::integer as weight_g,
    product_length_cm::integer as length_cm,
    product_height_cm::integer as height_cm,
    product_width_cm::integer as width_cm
from {{ source('olist', 'products') }}
