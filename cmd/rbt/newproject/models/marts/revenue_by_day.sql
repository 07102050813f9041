---
description: what each day brought in, by country
tests:
  - unique: [day, country]
  - expression: revenue > 0
---
select
    o.ordered_at::date as day,
    c.name as country,
    count(*) as orders,
    sum(o.amount) as revenue
from {{ ref('stg_orders') }} as o
join {{ ref('countries') }} as c on c.code = o.country
where o.status <> 'cancelled'
group by all
order by all
