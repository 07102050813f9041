package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// TestBuiltins checks the SQL of rbt's own macros. The query stands for a
// published relation with the columns id, "Name" and amount.
func TestBuiltins(t *testing.T) {
	p := good(t, small)
	query := func(sql string) ([]string, [][]any, error) {
		if strings.HasPrefix(sql, "describe") {
			return []string{"column_name", "column_type"}, [][]any{{"id", "INTEGER"}, {"Name", "VARCHAR"}, {"amount", "DOUBLE"}}, nil
		}
		return []string{"value"}, [][]any{{"card"}, {"it's"}, {int32(3)}}, nil
	}
	tests := []struct{ text, want string }{
		{"{{ dbt_utils.generate_surrogate_key(['a', 'b']) }}",
			`md5(coalesce(cast(a as varchar), '_dbt_utils_surrogate_key_null_') || '-' || coalesce(cast(b as varchar), '_dbt_utils_surrogate_key_null_'))`},
		{"select {{ dbt_utils.star(ref('base')) }}", "select \"id\",\n  \"Name\",\n  \"amount\""},
		{"select {{ dbt_utils.star(from=ref('base'), except=['NAME'], relation_alias='b', prefix='p_', suffix='_s') }}",
			"select b.\"id\" as \"p_id_s\",\n  b.\"amount\" as \"p_amount_s\""},
		{"{{ dbt_utils.star(ref('base'), quote_identifiers=false) }}", "id,\n  Name,\n  amount"},
		{"{{ dbt_utils.date_spine('day', \"date '2024-01-01'\", \"date '2024-01-03'\") }}",
			"select date_day from (\nselect (cast(date '2024-01-01' as timestamp) + interval (n) day) as date_day\n" +
				"from (select unnest(range(date_diff('day', cast(date '2024-01-01' as timestamp), cast(date '2024-01-03' as timestamp)))) as n)\n) where date_day <= date '2024-01-03'"},
		{"{{ dbt_utils.union_relations([ref('base'), ref('base_v2')], exclude=['x'], where='a > 1') }}",
			"select cast('\"main\".\"base\"' as varchar) as \"_dbt_source_relation\", columns(c -> lower(c) not in ('x')) from \"main\".\"base\" where a > 1\n" +
				"union all by name\n" +
				"select cast('\"main\".\"base_v2\"' as varchar) as \"_dbt_source_relation\", columns(c -> lower(c) not in ('x')) from \"main\".\"base_v2\" where a > 1"},
		{"{{ dbt_utils.union_relations([ref('base')], column_override={'a': 'bigint'}, source_column_name=none) }}",
			`select * replace (cast("a" as bigint) as "a") from "main"."base"`},
		{"{{ dbt_utils.pivot('m', ['card', \"it's\"], agg='count', then_value='x') }}",
			"count(case when m = 'card' then x else 0 end) as \"card\",\n  count(case when m = 'it''s' then x else 0 end) as \"it's\""},
		{"{{ dbt_utils.pivot('m', dbt_utils.get_column_values(ref('base'), 'm')) }}",
			"sum(case when m = 'card' then 1 else 0 end) as \"card\",\n  sum(case when m = 'it''s' then 1 else 0 end) as \"it's\",\n  sum(case when m = '3' then 1 else 0 end) as \"3\""},
		{"{{ dbt_utils.unpivot(ref('base'), exclude=['Id'], remove=['x'], field_name='f', value_name='v') }}",
			"select * from (\nselect \"Id\", cast(columns(c -> lower(c) not in ('id', 'x')) as varchar)\nfrom \"main\".\"base\"\n) unpivot include nulls (\n" +
				"\"v\" for \"f\" in (columns(c -> lower(c) not in ('id')))\n)"},
		{"{{ dbt_utils.group_by(3) }}", "group by 1, 2, 3"},
		{"{{ dbt_utils.safe_divide('a', 'b + 1') }}", "(a) / nullif((b + 1), 0)"},
		{"{{ dbt_utils.get_column_values(ref('base'), 'm') }}", "['card', \"it's\", 3]"},
		{"{{ dbt_utils.slugify('1 Ab-c!') }}", "_1_ab_c"},
		{"{{ dbt.date_trunc('month', 'd') }} {{ date_trunc('day', 'd') }}", "date_trunc('month', d) date_trunc('day', d)"},
		{"{{ dbt.dateadd('day', -1, 'd') }} {{ dbt.dateadd(datepart='months', interval='n', from_date_or_timestamp='d') }}", "(d + interval (-1) day) (d + interval (n) month)"},
		{"{{ datediff('a', 'b', 'day') }}", "date_diff('day', cast(a as timestamp), cast(b as timestamp))"},
		{"{{ dbt.safe_cast('a', api) if false else safe_cast('a', type_numeric()) }}", "try_cast(a as decimal(28,6))"},
		{"{{ dbt.last_day('d', 'month') }}", "cast(date_trunc('month', cast(d as timestamp)) + interval 1 month - interval 1 day as date)"},
		{"{{ dbt.listagg('a', \"', '\", 'order by a') }}", "string_agg(cast(a as varchar), ', ' order by a)"},
		{"{{ dbt.concat(['a', 'b']) }} {{ dbt.string_literal(\"it's\") }} {{ dbt.split_part('a', \"','\", 1) }}", "a || b 'it''s' split_part(a, ',', 1)"},
		{"{{ dbt.type_timestamp() }} {{ dbt.type_boolean() }} {{ dbt.type_float() }} {{ dbt.type_bigint() }}", "timestamp boolean double bigint"},
	}
	for _, tt := range tests {
		c, list := compileText(&rendering{p: p, m: p.model(t, "base"), o: CompileOptions{Query: query}}, tt.text)
		if list != nil {
			t.Errorf("%s:\n%s", tt.text, diag.RenderList(list, p.SourceText))
			continue
		}
		if d := cmp.Diff(tt.want, c.SQL); d != "" {
			t.Errorf("%s: %s", tt.text, d)
		}
	}
	// Without a database nothing is known of columns and values.
	for text, want := range map[string]string{
		"select {{ dbt_utils.star(ref('base')) }} from x":                    "select * from x",
		"{{ dbt_utils.get_column_values(ref('base'), 'm', default=['d']) }}": "['d']",
	} {
		c, list := compileText(&rendering{p: p}, text)
		if list != nil || c.SQL != want || !c.Queried {
			t.Errorf("%s: got %+v %v", text, c, list)
		}
	}
	for text, want := range map[string]string{
		"{{ dbt_utils.generate_surrogate_key('a') }}": "generate_surrogate_key takes a list of columns: ['a']",
		"{{ dbt.datediff('a', 'b') }}":                "datediff(): the parameter 'datepart' was not given",
		"{{ dbt.datediff(nope, 'b', 'day') }}":        "'nope' is undefined",
		"{{ dbt_utils.group_by('x') }}":               "group_by(): ",
		"{{ dbt_utils.star('x') }}":                   "star(): it takes a relation: ref(), source() or this",
		"{{ dbt.dateadd('fortnight', 1, 'd') }}":      "there is no date part 'fortnight'",
		"{{ dbt_utils.safe_add('a') }}":               "safe_add takes a list of columns, as ['a', 'b']",
		"{{ dbt_utils.deduplicate() }}":               "",
	} {
		_, list := compileText(&rendering{p: p}, text)
		if len(list) != 1 || !strings.Contains(list[0].Msg, want) {
			t.Errorf("%s: got %v", text, list)
		}
		if text := diag.RenderList(list, p.SourceText); strings.Contains(text, builtinPrefix) {
			t.Errorf("%s: the place is not the user's:\n%s", text, text)
		}
	}
}
