select * from {{ ref('report') }} where n < 0
