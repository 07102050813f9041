---
description: how far visitors came, by day; written without any template
tests:
  - unique: [day, event_type]
---
select occurred_at::date as day, event_type, count(*) as events, count(distinct customer_id) as customers
from fct_events
group by all
order by all
