{% macro cents(c) %}{{ c }} * 100{% endmacro %}
