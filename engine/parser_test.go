package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/plan"
	"rbt/internal/project"
)

func testParser(t *testing.T) *parser {
	t.Helper()
	d, err := openDatabase(context.Background(), project.Engine{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return &parser{open: func(context.Context) (*database, error) { return d, nil }, cache: newParseCache(t.TempDir(), "", func(s string) string { return s })}
}

func TestTables(t *testing.T) {
	p := testParser(t)
	tests := []struct {
		name, sql string
		want      []string
		volatile  string
		refused   bool
	}{
		{"plain", "select * from a join main.b using (id), s.t", []string{"a", "main.b", "s.t"}, "", false},
		{"unknown functions", "select foo(x) from a natural join b", []string{"a", "b"}, "", false},
		{"columns and unpivot", "select columns(*) from (unpivot a on x, y)", []string{"a"}, "", false},
		{"pivot with in", "pivot a on x in (1, 2) using sum(y)", []string{"a"}, "", false},
		{"pivot without in", "pivot a on x using sum(y)", nil, "the engine cannot show its parse tree", true},
		{"cte hides", "with a as (select 1) select * from a", nil, "", false},
		{"cte of its own name", "with orders as (select * from orders) select * from orders", []string{"orders"}, "", false},
		{"qualified is no cte", "with orders as (select * from main.orders) select * from orders", []string{"main.orders"}, "", false},
		{"cte in any case", `with "A" as (select 1) select * from a`, nil, "", false},
		{"later cte sees earlier", "with a as (from x), b as (from a) from b", []string{"x"}, "", false},
		{"earlier cte does not see later", "with a as (from b), b as (select 1) from a", []string{"b"}, "", false},
		{"cte ends with its query", "select * from (with a as (from x) from a), a", []string{"x", "a"}, "", false},
		{"recursive", "with recursive t as (select 1 as i union all select i + 1 from t where i < 5) from t", nil, "", false},
		{"sub-queries everywhere", "select (select max(i) from a) from b where exists (from c where i in (select j from d)) order by (select 1 from e) limit (select 1 from f)",
			[]string{"a", "b", "c", "d", "e", "f"}, "", false},
		{"lateral", "select * from a, lateral (select * from b where b.i = a.i)", []string{"a", "b"}, "", false},
		{"set operations", "from a union all by name from b except from c", []string{"a", "b", "c"}, "", false},
		{"alias is no table", "select x.i from a as x, b as a", []string{"a", "b"}, "", false},
		{"comments and strings", "select 'from z' from a -- from y", []string{"a"}, "", false},
		{"infinite constants", `select 1e400 as x, -1e400 as y, 'Infinity "NaN \' as "Infinity", "a\" from a where z < 1e999`, []string{"a"}, "", false},
		{"describe", "describe a", []string{"a"}, "", false},
		{"now", "select now() from a", []string{"a"}, "calls now()", false},
		{"bare clock", "select current_date from a", []string{"a"}, "reads current_date", false},
		{"column of that name", "select a.current_date from a", []string{"a"}, "", false},
		{"age of one", "select age(x) from a", []string{"a"}, "calls age()", false},
		{"age of two", "select age(x, y) from a", []string{"a"}, "", false},
		{"sample", "from a using sample 5 rows", []string{"a"}, "takes a sample", false},
		{"tablesample", "from a tablesample 10%", []string{"a"}, "takes a sample", false},
		{"reader", "from read_csv('x.csv')", nil, "reads read_csv()", false},
		{"file", "from 'x.csv'", []string{"x.csv"}, "reads the file x.csv", false},
		{"series", "from range(10) r(i), generate_series(1, 3), unnest([1])", nil, "", false},
		{"catalog", "from other.s.t", []string{"other.s.t"}, "reads the catalog other", false},
		{"information schema", "from information_schema.tables", []string{"information_schema.tables"}, "reads the schema information_schema", false},
		{"show", "show tables", nil, "", false},
		{"error gives no value", "select case when x > 1 then error('no') end from a", []string{"a"}, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "show" {
				if _, err := p.Tables(test.sql); err == nil {
					t.Error("SHOW is accepted as a model")
				}
				return
			}
			got, err := p.Tables(test.sql)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range got.Names {
				full := n.Name
				if n.Schema != "" {
					full = n.Schema + "." + full
				}
				if n.Catalog != "" {
					full = n.Catalog + "." + full
				}
				names = append(names, full)
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if got.Volatile != test.volatile || got.Refused != test.refused {
				t.Errorf("volatile %q, refused %v; want %q, %v", got.Volatile, got.Refused, test.volatile, test.refused)
			}
		})
	}
}

func TestTablesOffset(t *testing.T) {
	p := testParser(t)
	got, err := p.Tables("/* ä */ select ä from\u00a0日x")
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.TableName{{Name: "日x", Offset: 25}}
	if diff := cmp.Diff(want, got.Names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScan(t *testing.T) {
	got, err := (&parser{}).Scan(`select "A b", x.y from X -- from z` + "\n where 'q' = e'r'")
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Scan{Identifiers: map[string]int{"select": 0, "a b": 7, "x": 14, "y": 16, "from": 18, "where": 36}, Normalized: `select "A b" , x . y from X where 'q' = e'r'`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLexicalVolatility(t *testing.T) {
	tests := []struct{ sql, want string }{
		{"select a from t", ""},
		{"select random from t", ""},
		{"select t.current_date from t", ""},
		{"select 'now()' from t -- random()", ""},
		{"select random() from t", "calls random()"},
		{"select x.random() from t", "calls random()"},
		{"select current_date", "reads current_date"},
		{"select age(f(a, b))", "calls age()"},
		{"select age(a, b)", ""},
		{"from t using sample 5", "takes a sample"},
		{"from read_parquet('x')", "reads read_parquet()"},
		{"select * from t join 'x.csv' using (a)", "reads the file x.csv"},
	}
	for _, test := range tests {
		st, err := oneQuery(test.sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.lexicalVolatility(); got != test.want {
			t.Errorf("%s: %q, want %q", test.sql, got, test.want)
		}
	}
}

// TestVolatileListIsWhole: every function that DuckDB itself calls volatile, and
// every macro over one, is in the list.
func TestVolatileListIsWhole(t *testing.T) {
	s := testSession(t)
	exempt := map[string]bool{"error": true}
	err := s.Query(context.Background(), "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT' OR "+
		"function_type = 'macro' AND regexp_matches(macro_definition, '(current_|localtime|now|random|uuid|transaction_)')", func(v []any) error {
		if name := v[0].(string); !volatileFunctions[name] && !exempt[name] {
			t.Errorf("%s is not in the list", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Query(context.Background(), "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table' AND "+
		"(function_name LIKE 'read%' OR function_name LIKE 'parquet%' OR function_name LIKE '%scan%')", func(v []any) error {
		if name := v[0].(string); !readers[name] && name != "parquet_bloom_probe" && name != "arrow_scan_dumb" {
			t.Errorf("%s is not among the readers", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
