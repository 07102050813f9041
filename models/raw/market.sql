---
description: >
  orders of a market place, nested, one a line; the buyer stands in every order
  and is stored once; what cannot be read is set aside in market._rejects
materialization: ingest
path: bronze
tags: [raw]
input:
  path: [$landing/market, $inbox/market]
  glob: ["*.ndjson"]
root: order
records:
  order:
    fields:
      order_id: {type: varchar, required: true}
      placed_at: timestamptz
      total: decimal(9,2)
    references:
      buyer: {record: buyer, required: true}
    children:
      tags: varchar
      lines: {fields: {sku: varchar, qty: integer, price: "decimal(9,2)"}}
  buyer:
    fields:
      name: varchar
      email: varchar
      city: {type: varchar, path: address.city}
      country: {type: varchar, path: address.country}
max_rejects: 5%
tests:
  unique: order_id
  tables:
    buyer: {unique: email}
    lines: {not_null: [sku, qty, price]}
    _rejects:
      accepted_values: {column: reason, values: [syntax, type_mismatch]}
---
