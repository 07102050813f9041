package engine

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
)

// bindingRelations are what the texts of these tests read.
const bindingRelations = `
create view t as select 1::bigint as k, 2 as i, 'x' as s, 1.5::decimal(10,2) as d, 2.5::double as f, true as b, 3::utinyint as u where false;
create view o as select 1::bigint as k, date '2024-01-01' as day, timestamp '2024-01-01' as at_time, interval 1 day as span where false;
create view n as select null as nothing, [1] as list, {'a': 1} as struct, '{}'::json as j where false`

func bindingSession(t *testing.T) *session {
	t.Helper()
	s := testSession(t)
	for _, q := range strings.Split(bindingRelations, ";") {
		if err := s.Exec(context.Background(), q); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// bindingTexts are queries of all kinds; told says whether a prepared statement
// tells their columns.
var bindingTexts = []struct {
	text string
	told bool
}{
	{"select k, i, s, d, f, b, u from t", true},
	{"select * from t", true},
	{"select k as a, k as a from t", true},
	{"select k, k from t", true},
	{`select k as "K", s as "a b", i as "x""y" from t`, true},
	{"select sum(k) as total, count(*) as n, avg(f) as mean, min(s) as first, sum(d) as money from t group by b", true},
	{"select count(*), sum(i) from t", true},
	{"select cast(k as hugeint) h, cast(k as uhugeint) uh from t", false},
	{"select day, at_time from o", true},
	{"select span from o", false},
	{"select i from t where s is null or s is not null", true},
	{"select null as x", false},
	{"select i, null as x from t", false},
	{"select i, case when b then null end as x from t", false},
	{"select coalesce(null, null) as x from t", false},
	{`select cast(k as "NULL") as x from t`, false},
	{"select nothing from n", false},
	{"select coalesce(nothing) as x from n", false},
	{"select list from n", false},
	{"select struct from n", false},
	{"select j from n", false},
	{"select unnest([]) as x", false},
	{"select list_extract([], 1) as x", false},
	{"select s::blob as x, s::uuid as y from t", false},
	{"with a as (select k, d from t) select a.k, sum(d) over (partition by a.k) as run from a join o on a.k = o.k", true},
	{"select k from t union all select d from t", true},
	{"values (1, 'a', 2.5)", true},
	{"from t", true},
	{"describe select * from t", false},
	{"pivot t on b in (true, false) using sum(k) group by s", false},
	{"select try_cast(s as smallint) as x, u + 1 as y from t", true},
	{"select k // 2 as half, k / 2 as q, k % 2 as rest from t", true},
}

// TestPreparedColumns: what a prepared statement tells is what the engine says
// when it is asked for the types, NULL columns included.
func TestPreparedColumns(t *testing.T) {
	ctx, s := context.Background(), bindingSession(t)
	for _, test := range bindingTexts {
		st, err := oneQuery(test.text)
		if err != nil {
			t.Fatal(test.text, err)
		}
		var read []lake.Column
		for _, name := range []string{"t", "o", "n"} {
			if st.mentions(name) {
				columns, err := s.Describe(ctx, "select * from "+name)
				if err != nil {
					t.Fatal(err)
				}
				read = append(read, columns...)
			}
		}
		want, err := s.Describe(ctx, st.text)
		if err != nil {
			t.Fatal(test.text, err)
		}
		got, err := s.bindQuery(ctx, st, !st.plain() || st.untyped(read))
		if err != nil {
			t.Fatal(test.text, err)
		}
		if got == nil == test.told {
			t.Errorf("%s: told %v, want told: %v", test.text, got, test.told)
		}
		if diff := cmp.Diff(want, got); got != nil && diff != "" {
			t.Errorf("%s: (-described +prepared)\n%s", test.text, diff)
		}
	}
}

// TestPreparedColumnsAreExact asks for the type of everything that stands in the
// table of types.
func TestPreparedColumnsAreExact(t *testing.T) {
	ctx, s := context.Background(), testSession(t)
	for _, typ := range append(sortedKeys(map[string]bool{"DECIMAL(38,0)": true, "DECIMAL(4,4)": true}), exactNames()...) {
		text := "select cast('1' as " + typ + ") as x"
		err := s.prepare(ctx, statement{text: text}, func(prepared driver.Stmt) error {
			if got, want := preparedColumns(prepared, false), []lake.Column{{Name: "x", Type: typ}}; !cmp.Equal(got, want) {
				t.Errorf("%s: %v, want %v", text, got, want)
			}
			return nil
		})
		if want := typ == "DATE" || typ == "TIMESTAMP" || typ == "DECIMAL(4,4)"; err != nil && !want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func exactNames() []string {
	var names []string
	for _, name := range exactTypes {
		names = append(names, name)
	}
	return names
}

// TestPlain: a text whose tokens show that it is plain is what the parse tree
// calls readable and not volatile.
func TestPlain(t *testing.T) {
	s := testSession(t)
	plain := []string{
		"select k, sum(v) as v from main.t group by k",
		`select a.k, a.v + b.v as v from "main"."x" a join "main"."y" b on a.k = b.k`,
		"with a as (select 1 as k), b as materialized (select k from a) select * from b order by k limit (3)",
		"select case when k in (1, 2) then 'yes' else 'no' end as w from t where not exists (select 1 from u where u.k = t.k)",
		"select cast(x as decimal(10, 2)) as d, x::bigint as b, count(*) filter (where x > 1) over (partition by k) as n from t",
		"values (1, 'a')", "from t", "select distinct on (k) * from t", "select * from t where s like 'a%' and n != 3",
		"select a from t union all (select b from u) except select c from w",
	}
	other := []string{
		"select random() as r", "select now()", "select current_date", `select "current_date"`, "select k from t where d < today()",
		"select * from 'a.parquet'", `select * from "a.parquet"`, "select * from read_csv('a.csv')", "select * from range(3)",
		"select * from t tablesample 10%", "select * from t using sample 3", "select * from other.main.t", "select * from information_schema.tables",
		"select * from duckdb_tables", "select * from duckdb_tables()", "select user", "select getenv('HOME')", "select age(d) from t",
		"pivot t on k using sum(v)", "select * from (pivot t on k using sum(v))", "select * from (show tables)", "select * from (describe t)",
		"select list_transform(l, x -> random()) from t", "select [random() for x in l] from t", "select (random)() from t",
		"select x.random() from t", "select columns(*) from t", "select nextval('s')", `select "random"() from t`, "select query_table('t')",
		"select * from query('select 1')", "select rowid from t", "select e'a' from t", "select $$a$$ from t", "select localtime", "from 'x/y'", "table 'a.b'",
		"select setseed(0.5)", "select current_setting('threads')", "select main.t.k from main.t", "select * from glob('*')",
	}
	for _, text := range plain {
		st, err := oneQuery(text)
		if err != nil {
			t.Fatal(text, err)
		}
		if !st.plain() {
			t.Errorf("%s: not plain", text)
		}
		tables, err := parseTables(context.Background(), s.db, st)
		if err != nil || tables.Refused || tables.Volatile != "" {
			t.Errorf("%s: refused %v, volatile %q, %v", text, tables.Refused, tables.Volatile, err)
		}
	}
	for _, text := range other {
		if st, err := oneQuery(text); err == nil && st.plain() {
			t.Errorf("%s: plain", text)
		}
	}
}

// TestPlainCallsAreWhatTheySay: none of the functions is volatile, is a table
// function, or gives a time for what is none. nullif is a macro of CASE.
func TestPlainCallsAreWhatTheySay(t *testing.T) {
	s := testSession(t)
	names := make([]string, 0, len(plainCalls))
	for _, name := range sortedKeys(plainCalls) {
		names = append(names, quoteText(name))
	}
	err := s.Query(context.Background(), `select function_name, function_type, stability, return_type, parameter_types::varchar from duckdb_functions()
		where function_name in (`+strings.Join(names, ", ")+`) and (function_type not in ('scalar', 'aggregate') and function_name <> 'nullif' or stability <> 'CONSISTENT'
		or regexp_matches(return_type, 'DATE|TIME|INTERVAL') and not regexp_matches(parameter_types::varchar, 'DATE|TIME|INTERVAL'))`, func(v []any) error {
		t.Errorf("%v", v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUntimed: where the tokens show that nothing is a time, the plan has no cast
// between numbers and times; where it has one, they do not.
func TestUntimed(t *testing.T) {
	ctx, s := context.Background(), bindingSession(t)
	columns := map[string][]lake.Column{}
	for _, name := range []string{"t", "o"} {
		var err error
		if columns[name], err = s.Describe(ctx, "select * from "+name); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		text    string
		untimed bool
	}{
		{"select k from t where i = s", true},
		{"select k + d as x, f * u as y from t", true},
		{"select k from t where s > 'a' and b", true},
		{"select k from o where day > 3", false},
		{"select k from t where date '2024-01-01' > i", false},
		{"select k from t where cast(s as timestamp) > k", false},
		{"select k from t join o using (k) where t.i = o.day", false},
	} {
		st, err := oneQuery(test.text)
		if err != nil {
			t.Fatal(err)
		}
		var read []lake.Column
		for _, name := range sortedKeys(columns) {
			if st.mentions(name) {
				read = append(read, columns[name]...)
			}
		}
		if got := st.plain() && st.untimed(read); got != test.untimed {
			t.Errorf("%s: untimed %v, want %v", test.text, got, test.untimed)
		}
		if err := s.checkCasts(ctx, st, false); err != nil && test.untimed {
			t.Errorf("%s: %v", test.text, err)
		}
	}
}

// TestJoins: where the tokens show that nothing is joined by conditions, the plan
// has none, so that no text can be taken for a number in one.
func TestJoins(t *testing.T) {
	ctx, s := context.Background(), bindingSession(t)
	for _, test := range []struct {
		text  string
		joins bool
	}{
		{"with p as (select * from t) select k, (i + 3) as x from p where k > 10", false},
		{"with p as materialized (select * from t) select k from (from p) as q where (k = 1 or s = 'a')", false},
		{"select t.k from t, o where t.i = o.k", false},
		{"select k from t union all select k from o", false},
		{"select k from t except select k from o", false},
		{"select t.k from t join o on t.s = o.k", true},
		{"select t.k from t left join o using (k)", true},
		{"select k from t where i in (select k from o)", true},
		{"select k from t where exists (select 1 from o where o.k = t.s)", true},
		{"select k from t where s = (select max(k) from o)", true},
		{"select (select max(k) from o where o.k = t.s) as m from t", true},
		{"select coalesce((from o select max(k)), 1) as m from t", true},
		{"select k from t where i >= all (select k from o)", true},
		{"select k + ((with q as (from o) select max(k) from q)) as m from t", true},
	} {
		st, err := oneQuery(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.joins(); got != test.joins || !st.plain() {
			t.Errorf("%s: joins %v, want %v; plain %v", test.text, got, test.joins, st.plain())
		}
		plan := ""
		if err := s.Query(ctx, "select cast(json_serialize_plan("+quoteText(test.text)+") as varchar)", func(v []any) error {
			plan, _ = v[0].(string)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(plan, `"error":true`) {
			t.Fatalf("%s: %s", test.text, plan)
		}
		if strings.Contains(plan, `"conditions":[{`) && !test.joins {
			t.Errorf("%s: the plan has conditions: %s", test.text, plan)
		}
	}
}
