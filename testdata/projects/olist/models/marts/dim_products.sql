---
columns:
  product_id: {tests: [not_null, unique]}
  reviews: {tests: [not_null]}
---
with scores as (
    select i.product_id, count(*) as reviews, avg(r.score) as score
    from {{ ref('stg_reviews') }} as r
    join (select distinct order_id, product_id from {{ ref('stg_order_items') }}) as i using (order_id)
    group by i.product_id
)

select
    p.product_id,
    p.category,
    p.weight_g,
    p.length_cm * p.height_cm * p.width_cm as volume_cm3,
    coalesce(s.reviews, 0) as reviews,
    s.score
from {{ ref('stg_products') }} as p
left join scores as s using (product_id)
order by p.product_id
