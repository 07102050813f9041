-- A test is a query of rows that should not be.
select * from {{ ref('order_log') }} where ordered_at > now()
