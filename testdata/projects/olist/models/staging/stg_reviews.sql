---
columns:
  review_id: {tests: [not_null]}
  order_id: {tests: [not_null, {relationships: {to: stg_orders, field: order_id}}]}
  score:
    tests:
      - not_null
      - accepted_values: {values: [1, 2, 3, 4, 5]}
tests:
  - unique: [review_id, order_id]
  - expression: answered_at >= created_on
---
select
    review_id,
    order_id,
    review_score as score,
    review_comment_title as title,
    review_comment_message as message,
    review_creation_date::date as created_on,
    review_answer_timestamp as answered_at
from {{ source('olist', 'order_reviews') }}
