---
columns:
  payment_id: {tests: [not_null, unique]}
  payment_method:
    tests:
      - accepted_values: {values: [credit_card, coupon, bank_transfer, gift_card]}
---
-- the file holds cents
select id as payment_id, order_id, payment_method, (amount * 0.01)::decimal(18, 2) as amount
from {{ source('raw', 'payments') }}
