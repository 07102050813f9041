---
description: orders by state
materialization: view
unit_tests:
  - name: counts
    given: [{input: ref('orders'), rows: [{id: 1, state: new}]}]
    expect: {rows: [{state: new, n: 100}]}
---
select state, {{ cents('count(*)') }} as n from {{ ref('orders') }} group by all
