---
description: only old ones
materialization: ephemeral
---
select id from {{ ref('orders') }} where state = 'old'
