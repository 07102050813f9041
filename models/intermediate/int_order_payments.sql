---
description: payments of each order, one column per method
materialization: ephemeral
---
{% set methods = ['card', 'paypal', 'invoice', 'voucher'] -%}
select
    order_id,
    {% for method in methods -%}
    sum(case when method = '{{ method }}' then amount else 0 end) as {{ method }}_amount,
    {% endfor -%}
    sum(amount) as paid_amount,
    max(paid_at) as last_paid_at
from {{ ref('stg_payments') }}
group by order_id
