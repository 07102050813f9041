{# Keeps the newest row of each key: exports repeat what changed. #}
{% macro latest_per(key, newest_by) -%}
qualify row_number() over (partition by {{ key }} order by {{ newest_by }} desc) = 1
{%- endmacro %}

{# Whole cents as an amount with two decimals, exactly. #}
{% macro amount(cents) -%}
({{ cents }} * 0.01)::decimal(18, 2)
{%- endmacro %}
