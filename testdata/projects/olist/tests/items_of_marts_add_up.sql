-- what the items come to is the same by order and by category
select a.amount as by_order, b.amount as by_category
from
    (select sum(items_amount) as amount from {{ ref('fct_orders') }}) as a,
    (select sum(revenue) as amount from {{ ref('revenue_by_category') }}) as b
where a.amount is distinct from b.amount
