package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTablesScope compares what stands outside of all scopes, in the order of the
// text; a blank stands between names.
func TestTablesScope(t *testing.T) {
	p := testParser(t)
	tests := []struct{ name, sql, want string }{
		{"nested with", "with a as (with b as (from x) from b) from a, b", "x b"},
		{"inner name sees the outer of its own name", "with x as (from y) select * from (with x as (from x) from x)", "y"},
		{"inner name ends with its query", "select * from (with x as (from y) from x) q, x", "y x"},
		{"a name in a sub-query of a select list", "with x as (from y) select (select max(i) from x), (with z as (from x) select 1 from z) from z", "y z"},
		{"a name in a join and a lateral", "with x as (from y) select * from x join lateral (from x where i = x.i) l on true asof join z on l.i >= z.i", "y z"},
		{"set operations see the names", "with a as (from x) from a union all from a union from b intersect from a", "x b"},
		{"a branch with names of its own", "(with a as (from x) from a) union all (from a)", "x a"},
		{"column aliases and materialized", "with a(i, j) as materialized (from x), b as not materialized (from a) from b", "x"},
		{"recursive in its first part", "with recursive t as (select * from t0 union all select i + 1 from t where i < 5) from t", "t0"},
		{"recursive with a neighbour", "with recursive a as (from x), t as (select 1 as i from a union all select i + 1 from t, a, b) from t", "x b"},
		{"recursive inside", "select * from (with recursive t as (select 1 as i union select i + 1 from t) from t) join t using (i)", "t"},
		{"recurring", "with recursive t(a, b) using key (a) as (select 1, 2 from s union select a, b + 1 from recurring.t) from t", "s"},
		{"quoted name", `with "A b" as (from "X y") select * from "a B", "Q""q"`, `X y Q"q`},
		{"schema in any case", `from MAIN.X join "main"."Y" using (i)`, "MAIN.X main.Y"},
		{"an alias is no table", "select x.y, y.z.w from t as x, u y", "t u"},
		{"struct access is no table", "select raw.orders.id, main.x.y from t as raw, v as main", "t v"},
		{"lambda is no table", "select list_transform(l, x -> x + y.z) from y", "y"},
		{"columns of a table", "select y.* exclude (a), columns(y.*) from x y", "x"},
		{"from first", "from a", "a"},
		{"from first with select", "from a, b select a.x where a.x in (from c select i)", "a b c"},
		{"table", "table a", "a"},
		{"values", "values ((select max(i) from a)), (2)", "a"},
		{"values in from", "select * from (values (1), ((select 1 from b))) v(a)", "b"},
		{"summarize", "select * from (summarize a)", "a"},
		{"describe", "select * from (describe a)", "a"},
		{"describe a query", "select * from (describe select * from a)", "a"},
		{"every clause", "select count(*) filter (where exists (from a)), sum(x) over (partition by (select 1 from b) order by (select 1 from c)) from d " +
			"where x > all (select 1 from e) group by (select 1 from f) having count(*) > (select 1 from g) qualify row_number() over () < (select 1 from h) " +
			"order by (select 1 from i) limit (select 1 from j) offset (select 1 from k)", "a b c d e f g h i j k"},
		{"case, in, between, array", "select case when exists (from a) then (select 1 from b) else [1, (select 1 from c)][1] end, x in (from d), x between (select 1 from e) and {'k': (select 1 from f)}['k'] from g", "a b c d e f g"},
		{"array of a query", "select array(select x from a), map {'k': (select 1 from b)}", "a b"},
		{"joins of all kinds", "from a natural join b left join c using (x) positional join d semi join e using (x) anti join f using (x) cross join g asof left join h using (x)", "a b c d e f g h"},
		{"join in brackets", "from (a join b using (x)) join (c cross join d) on true", "a b c d"},
		{"condition of a join", "from a join b on a.x in (select x from c)", "a b c"},
		{"table function with a query", "select * from range((select max(i) from a)) r, unnest((select list(x) from b)) u", "a b"},
		{"pivot in from", "from a pivot (sum(x) for y in ('p', 'q') group by z)", "a"},
		{"pivot of a name", "with a as (from b) pivot a on x in (1, 2) using sum(y)", "b"},
		{"pivot of a query", "pivot (from a join b using (i)) on x in (1) using sum(y) group by z", "a b"},
		{"unpivot", "unpivot a on columns(* exclude (i)) into name n value v", "a"},
		{"unpivot in from", "from a unpivot include nulls (v for n in (x, y))", "a"},
		{"unpivot of a name", "with a as (from b) from a unpivot (v for n in (x, y))", "b"},
		{"names beyond ascii", "with größe as (from Ärger) select * from größe, 表, \"naïve\"", "Ärger 表 naïve"},
		{"one name twice", "from a union all from a union all from main.a", "a main.a"},
		{"strings and comments", "select 'from a', $$ from b $$, e'\\' from c' /* from d /* from e */ */ from f -- from g", "f"},
		{"grouping sets", "select x, count(*) from a group by grouping sets ((x), rollup (y), ())", "a"},
		{"distinct on and window names", "select distinct on (x) x, sum(y) over w from a window w as (partition by (select 1 from b))", "a b"},
		{"collate and cast", "select x::varchar collate nocase, try_cast((select 1 from b) as int) from a", "b a"},
		{"prefix alias", "select i: x, j: (select 1 from b) from t: a", "b a"},
		{"correlated", "select * from a where exists (select 1 from b where b.x = a.x and a.y in (select y from a c))", "a b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := p.Tables(test.sql)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range got.Names {
				names = append(names, strings.TrimPrefix(n.Schema+"."+n.Name, "."))
			}
			if diff := cmp.Diff(test.want, strings.Join(names, " ")); diff != "" || got.Refused {
				t.Errorf("refused %v (-want +got):\n%s", got.Refused, diff)
			}
		})
	}
}
