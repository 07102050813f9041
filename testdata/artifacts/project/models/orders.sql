---
description: one row an order
tags: [daily]
meta: {owner: ann}
columns:
  id: {type: BIGINT, description: number of the order, tests: [not_null, unique]}
  state: {description: where it stands, tests: [{accepted_values: {values: [new], severity: warn}}]}
tests: [{relationships: {column: state, to: states, field: code}}]
---
select id, state from {{ source('raw', 'orders') }}
