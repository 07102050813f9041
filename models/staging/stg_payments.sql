---
description: one row per payment; the provider's export repeats some of them
columns:
  payment_id: {tests: [not_null, unique]}
  method:
    tests:
      - accepted_values: {values: [card, paypal, invoice, voucher]}
  order_id: {tests: [not_null]}
---
select distinct
    payment_id,
    order_id,
    method,
    {{ amount('amount_cents') }} as amount,
    paid_at
from {{ source('raw', 'payments') }}
