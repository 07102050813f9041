{#- Macros that dbt projects call as dbt.… or by their bare name. -#}

{%- macro date_trunc(datepart, date) -%}
date_trunc('{{ datepart }}', {{ date }})
{%- endmacro -%}

{%- macro dateadd(datepart, interval, from_date_or_timestamp) -%}
({{ from_date_or_timestamp }} + interval ({{ interval }}) {{ _unit(datepart) }})
{%- endmacro -%}

{%- macro _unit(datepart) -%}
{%- set unit = datepart | lower | replace("'", "") | trim -%}
{%- if unit[-1:] == 's' -%}{%- set unit = unit[:-1] -%}{%- endif -%}
{%- if unit not in ['microsecond', 'millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'decade'] -%}
{{ exceptions.raise_compiler_error("there is no date part '" ~ datepart ~ "'") }}
{%- endif -%}
{{ return(unit) }}
{%- endmacro -%}

{%- macro datediff(first_date, second_date, datepart) -%}
date_diff('{{ datepart }}', cast({{ first_date }} as timestamp), cast({{ second_date }} as timestamp))
{%- endmacro -%}

{%- macro last_day(date, datepart) -%}
cast(date_trunc('{{ datepart }}', cast({{ date }} as timestamp)) + interval 1 {{ datepart }} - interval 1 day as date)
{%- endmacro -%}

{%- macro safe_cast(field, type) -%}
try_cast({{ field }} as {{ type }})
{%- endmacro -%}

{%- macro cast(field, type) -%}
cast({{ field }} as {{ type }})
{%- endmacro -%}

{%- macro type_string() -%}varchar{%- endmacro -%}
{%- macro type_int() -%}integer{%- endmacro -%}
{%- macro type_bigint() -%}bigint{%- endmacro -%}
{%- macro type_float() -%}double{%- endmacro -%}
{%- macro type_numeric() -%}decimal(28,6){%- endmacro -%}
{%- macro type_boolean() -%}boolean{%- endmacro -%}
{%- macro type_timestamp() -%}timestamp{%- endmacro -%}

{%- macro current_timestamp() -%}now(){%- endmacro -%}

{%- macro concat(fields) -%}
{{ fields | join(' || ') }}
{%- endmacro -%}

{%- macro length(expression) -%}
length({{ expression }})
{%- endmacro -%}

{%- macro replace(field, old_chars, new_chars) -%}
replace({{ field }}, {{ old_chars }}, {{ new_chars }})
{%- endmacro -%}

{%- macro right(string_text, length_expression) -%}
right({{ string_text }}, {{ length_expression }})
{%- endmacro -%}

{%- macro position(substring_text, string_text) -%}
position({{ substring_text }} in {{ string_text }})
{%- endmacro -%}

{%- macro split_part(string_text, delimiter_text, part_number) -%}
split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro -%}

{%- macro hash(field) -%}
md5(cast({{ field }} as varchar))
{%- endmacro -%}

{%- macro any_value(expression) -%}
any_value({{ expression }})
{%- endmacro -%}

{%- macro bool_or(expression) -%}
bool_or({{ expression }})
{%- endmacro -%}

{%- macro listagg(measure, delimiter_text="','", order_by_clause=none, limit_num=none) -%}
{%- if limit_num is not none -%}
list_aggregate(list_slice(list(cast({{ measure }} as varchar){{ ' ' ~ order_by_clause if order_by_clause }}), 1, {{ limit_num }}), 'string_agg', {{ delimiter_text }})
{%- else -%}
string_agg(cast({{ measure }} as varchar), {{ delimiter_text }}{{ ' ' ~ order_by_clause if order_by_clause }})
{%- endif -%}
{%- endmacro -%}

{%- macro escape_single_quotes(expression) -%}
{{ expression | replace("'", "''") }}
{%- endmacro -%}

{#- Quotes that are doubled already, as by escape_single_quotes, are left so: an
    odd number of them in a row would end the text. -#}
{%- macro string_literal(value) -%}
{%- set text = value | string -%}
'{{ text | replace("'", "''") if "'" in text | replace("''", '') else text }}'
{%- endmacro -%}

{%- macro except() -%}except{%- endmacro -%}
{%- macro intersect() -%}intersect{%- endmacro -%}
