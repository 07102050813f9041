---
description: how many are old
---
select count(*) as n from {{ ref('old') }}
