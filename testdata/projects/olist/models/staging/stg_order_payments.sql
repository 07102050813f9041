---
columns:
  order_id: {tests: [not_null, {relationships: {to: stg_orders, field: order_id}}]}
  sequence: {tests: [not_null]}
  payment_type:
    tests:
      - not_null
      - accepted_values: {values: [credit_card, debit_card, boleto, voucher, not_defined]}
  amount: {tests: [not_null]}
tests:
  - unique: [order_id, sequence]
  - expression: amount >= 0
---
select
    order_id,
    payment_sequential as sequence,
    payment_type,
    payment_installments as installments,
    payment_value as amount
from {{ source('olist', 'order_payments') }}
