---
description: orders as they came
materialization: incremental
---
select id from {{ ref('orders') }}{% if is_incremental() %} where false{% endif %}
