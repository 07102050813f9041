{#- Macros that dbt projects call as dbt_utils.…; each gives SQL of DuckDB. -#}

{%- macro generate_surrogate_key(field_list) -%}
{%- if field_list is string -%}
{{ exceptions.raise_compiler_error("generate_surrogate_key takes a list of columns: ['" ~ field_list ~ "']") }}
{%- endif -%}
{%- if field_list | length == 0 -%}
{{ exceptions.raise_compiler_error("generate_surrogate_key needs at least one column") }}
{%- endif -%}
{%- set missing = '' if var('surrogate_key_treat_nulls_as_empty_strings', false) else '_dbt_utils_surrogate_key_null_' -%}
md5(
{%- for field in field_list -%}
{%- if not loop.first %} || '-' || {% endif -%}
coalesce(cast({{ field }} as varchar), '{{ missing }}')
{%- endfor -%}
)
{%- endmacro -%}

{%- macro _names(names) -%}
{%- set out = [] -%}
{%- for name in names -%}{%- do out.append(name | lower) -%}{%- endfor -%}
{{ return(out) }}
{%- endmacro -%}

{%- macro get_filtered_columns_in_relation(from, except=[]) -%}
{%- set left_out = _names(except) -%}
{%- set out = [] -%}
{%- for column in adapter.get_columns_in_relation(from) if column.name | lower not in left_out -%}
{%- do out.append(column.name) -%}
{%- endfor -%}
{{ return(out) }}
{%- endmacro -%}

{%- macro star(from, relation_alias=false, except=[], prefix='', suffix='', quote_identifiers=true) -%}
{%- set columns = get_filtered_columns_in_relation(from, except) -%}
{%- if columns | length == 0 -%}
{%- if execute -%}
{{ exceptions.raise_compiler_error("star: " ~ from ~ " has no column that is not left out") }}
{%- endif -%}
*
{%- endif -%}
{%- for column in columns -%}
{%- if relation_alias -%}{{ relation_alias }}.{%- endif -%}
{{ adapter.quote(column) if quote_identifiers else column }}
{%- if prefix or suffix %} as {{ adapter.quote(prefix ~ column ~ suffix) if quote_identifiers else prefix ~ column ~ suffix }}{% endif -%}
{%- if not loop.last -%},
  {% endif -%}
{%- endfor -%}
{%- endmacro -%}

{%- macro date_spine(datepart, start_date, end_date) -%}
{#- each date is counted from the start, so that the last of a month stays the last -#}
select date_{{ datepart }} from (
select {{ dbt.dateadd(datepart, 'n', 'cast(' ~ start_date ~ ' as timestamp)') }} as date_{{ datepart }}
from (select unnest(range({{ dbt.datediff(start_date, end_date, datepart) }})) as n)
) where date_{{ datepart }} <= {{ end_date }}
{%- endmacro -%}

{%- macro generate_series(upper_bound) -%}
select unnest(range(1, {{ upper_bound }} + 1)) as generated_number
{%- endmacro -%}

{%- macro union_relations(relations, column_override=none, include=[], exclude=[], source_column_name='_dbt_source_relation', where=none) -%}
{%- if include and exclude -%}
{{ exceptions.raise_compiler_error("union_relations takes include or exclude, not both") }}
{%- endif -%}
{%- set override = column_override or {} -%}
{%- for relation in relations -%}
{%- if not loop.first %}
union all by name
{% endif -%}
select
{%- if source_column_name is not none %} cast({{ _literal(relation) }} as varchar) as {{ adapter.quote(source_column_name) }},{% endif -%}
{#- a column that one relation lacks is NULL there -#}
{%- if include %} columns(c -> lower(c) in ({{ _texts(include) }}))
{%- elif exclude %} columns(c -> lower(c) not in ({{ _texts(exclude) }}))
{%- else %} *
{%- endif -%}
{%- if override and not include and not exclude %} replace (
{%- for column, kind in override.items() -%}
cast({{ adapter.quote(column) }} as {{ kind }}) as {{ adapter.quote(column) }}{{ ', ' if not loop.last }}
{%- endfor -%}
){%- elif override -%}
{{ exceptions.raise_compiler_error("union_relations takes column_override only without include and exclude") }}
{%- endif %} from {{ relation }}
{%- if where %} where {{ where }}{% endif -%}
{%- endfor -%}
{%- endmacro -%}

{%- macro _literal(value) -%}
'{{ value | string | replace("'", "''") }}'
{%- endmacro -%}

{%- macro _texts(names) -%}
{%- for name in names -%}
{{ _literal(name | lower) }}{{ ', ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}

{%- macro pivot(column, values, alias=true, agg='sum', cmp='=', prefix='', suffix='', then_value=1, else_value=0, quote_identifiers=true, distinct=false) -%}
{%- for value in values -%}
{{ agg }}({{ 'distinct ' if distinct }}case when {{ column }} {{ cmp }} {{ _literal(value) }} then {{ then_value }} else {{ else_value }} end)
{%- if alias %} as {{ adapter.quote(prefix ~ value ~ suffix) if quote_identifiers else slugify(prefix ~ value ~ suffix) }}{% endif -%}
{%- if not loop.last -%},
  {% endif -%}
{%- endfor -%}
{%- endmacro -%}

{%- macro unpivot(relation=none, cast_to='varchar', exclude=none, remove=none, field_name='field_name', value_name='value', quote_identifiers=true) -%}
{%- set kept = exclude or [] -%}
{%- set dropped = kept + (remove or []) -%}
select * from (
select
{%- for column in kept %} {{ adapter.quote(column) }},{% endfor %} cast(columns(c -> {{ "lower(c) not in (" ~ _texts(dropped) ~ ")" if dropped else "true" }}) as {{ cast_to }})
from {{ relation }}
) unpivot include nulls (
{{ adapter.quote(value_name) }} for {{ adapter.quote(field_name) }} in ({{ "columns(c -> lower(c) not in (" ~ _texts(kept) ~ "))" if kept else "*" }})
)
{%- endmacro -%}

{%- macro group_by(n) -%}
group by {% for i in range(1, n + 1) %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}
{%- endmacro -%}

{%- macro safe_divide(numerator, denominator) -%}
({{ numerator }}) / nullif(({{ denominator }}), 0)
{%- endmacro -%}

{%- macro safe_add(field_list) -%}
{%- if field_list is string or field_list is not iterable -%}
{{ exceptions.raise_compiler_error("safe_add takes a list of columns, as ['a', 'b']") }}
{%- endif -%}
{%- for field in field_list -%}
coalesce({{ field }}, 0){{ ' + ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}

{%- macro safe_subtract(field_list) -%}
{%- if field_list is string or field_list is not iterable -%}
{{ exceptions.raise_compiler_error("safe_subtract takes a list of columns, as ['a', 'b']") }}
{%- endif -%}
{%- for field in field_list -%}
coalesce({{ field }}, 0){{ ' - ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}

{%- macro get_column_values(table, column, order_by='count(*) desc', max_records=none, default=none, where=none) -%}
{%- if not execute -%}
{%- do run_query("select 1") -%}
{{ return(default if default is not none else []) }}
{%- endif -%}
{%- set sql -%}
select {{ column }} as value from {{ table }}
{%- if where %} where {{ where }}{% endif %} group by {{ column }} order by {{ order_by }}, 1
{%- if max_records is not none %} limit {{ max_records }}{% endif -%}
{%- endset -%}
{%- set values = run_query(sql).columns[0].values() | list -%}
{{ return(values if values or default is none else default) }}
{%- endmacro -%}

{%- macro slugify(string) -%}
{%- set text = modules.re.sub('[^a-z0-9_]', '', modules.re.sub('[ -]+', '_', string | lower)) -%}
{{ '_' ~ text if text[:1] in '0123456789' and text else text }}
{%- endmacro -%}

{%- macro pretty_time(format='%H:%M:%S') -%}
{{ modules.datetime.datetime.now().strftime(format) }}
{%- endmacro -%}
