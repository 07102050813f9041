package materialize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

func TestParseType(t *testing.T) {
	for text, want := range map[string]string{
		"INTEGER":                            "INTEGER",
		"int4":                               "INTEGER",
		"text":                               "VARCHAR",
		"varchar(10)":                        "VARCHAR",
		"numeric(18,3)":                      "DECIMAL(18,3)",
		"decimal":                            "DECIMAL(18,3)",
		"DECIMAL(9)":                         "DECIMAL(9,0)",
		"timestamp with  time zone":          "TIMESTAMP WITH TIME ZONE",
		"timestamptz[]":                      "TIMESTAMP WITH TIME ZONE[]",
		"double precision":                   "DOUBLE",
		"INTEGER[3][]":                       "INTEGER[3][]",
		`STRUCT(a INTEGER, "b c" VARCHAR[])`: `STRUCT("a" INTEGER, "b c" VARCHAR[])`,
		`STRUCT("a""b" INTEGER)`:             `STRUCT("a""b" INTEGER)`,
		`STRUCT("NULL" INTEGER)`:             `STRUCT("NULL" INTEGER)`,
		`STRUCT(x "NULL")`:                   `STRUCT("x" "NULL")`,
		`STRUCT("NULL", INTEGER)`:            `STRUCT("NULL", INTEGER)`,
		`STRUCT(INTEGER, TIME WITH TIME ZONE, DECIMAL(3,1), INTEGER[2])`: `STRUCT(INTEGER, TIME WITH TIME ZONE, DECIMAL(3,1), INTEGER[2])`,
		`STRUCT(date DATE, "time" TIME)`:                                 `STRUCT("date" DATE, "time" TIME)`,
		`MAP(VARCHAR, MAP(INTEGER, "NULL"[]))`:                           `MAP(VARCHAR, MAP(INTEGER, "NULL"[]))`,
		`ENUM('a,b)', 'it''s', '"')`:                                     `ENUM('a,b)', 'it''s', '"')`,
		`UNION(a INTEGER, "b c" VARCHAR)`:                                `UNION("a" INTEGER, "b c" VARCHAR)`,
		`GEOMETRY('OGC:CRS84')`:                                          `GEOMETRY('OGC:CRS84')`,
	} {
		got, err := parseType(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got.String() != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"":                       `type "": a type is expected and "" found`,
		"INTEGR":                 `type "INTEGR": INTEGR is not a type that can be stored`,
		"INTEGER INTEGER":        `type "INTEGER INTEGER": "INTEGER" follows the type`,
		"STRUCT(a":               `type "STRUCT(a": A is not a type that can be stored`,
		"DECIMAL(39,0)":          `type "DECIMAL(39,0)": a DECIMAL has 1 to 38 digits, and no more of them after the point`,
		`"x`:                     `type "\"x": a type is expected and "an unclosed quote" found`,
		"INTEGER[0]":             `type "INTEGER[0]": the size of an array is expected and "0" found`,
		"INTEGER); DROP TABLE x": `type "INTEGER); DROP TABLE x": ")" follows the type`,
	} {
		_, err := parseType(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// anyType draws a type of any depth.
func anyType(depth int) *rapid.Generator[*dataType] {
	return rapid.Custom(func(t *rapid.T) *dataType {
		most := 8
		if depth == 0 {
			most = 3
		}
		name := rapid.StringMatching(`[a-zA-Z"' ,()é]{1,6}`)
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return &dataType{name: rapid.SampledFrom([]string{"INTEGER", "HUGEINT", "VARCHAR", "TIME WITH TIME ZONE", "INTERVAL", "GEOMETRY('x''y')"}).Draw(t, "scalar")}
		case 1:
			w := rapid.IntRange(1, 38).Draw(t, "width")
			return &dataType{kind: decimal, width: w, scale: rapid.IntRange(0, w).Draw(t, "scale")}
		case 2:
			return &dataType{kind: untyped}
		case 3:
			return &dataType{kind: enum, values: rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "values")}
		case 4:
			return &dataType{kind: list, elem: anyType(depth-1).Draw(t, "elem")}
		case 5:
			return &dataType{kind: array, size: rapid.IntRange(1, 9).Draw(t, "size"), elem: anyType(depth-1).Draw(t, "elem")}
		case 6:
			return &dataType{kind: mapping, key: anyType(depth-1).Draw(t, "key"), elem: anyType(depth-1).Draw(t, "value")}
		default:
			out := &dataType{kind: rapid.SampledFrom([]kind{structure, union}).Draw(t, "struct")}
			named := out.kind == union || rapid.Bool().Draw(t, "named")
			for range rapid.IntRange(1, 4).Draw(t, "fields") {
				f := typeField{typ: anyType(depth-1).Draw(t, "field")}
				if named {
					f.name = name.Draw(t, "name")
				}
				out.fields = append(out.fields, f)
			}
			return out
		}
	})
}

func TestParseTypeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyType(3).Draw(t, "type")
		got, err := parseType(want.String())
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() || !got.equal(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"INTEGER", `STRUCT("a""b" ENUM('x','y')[3])`, "MAP(VARCHAR, DECIMAL(3,2))[]", "STRUCT(STRUCT STRUCT(", "TIME WITH TIME ZONE", "((((", `"NULL"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := parseType(text)
		if err != nil {
			return
		}
		again, err := parseType(typ.String())
		if err != nil || !again.equal(typ) {
			t.Fatalf("%q became %s: %v", text, typ, err)
		}
	})
}

// storedTypes is every type of DuckDB with a value of it, and the type that is
// kept. The text of the value must be the same before and after.
var storedTypes = []struct{ value, want string }{
	{"true", "BOOLEAN"},
	{"1::TINYINT", "TINYINT"}, {"1::SMALLINT", "SMALLINT"}, {"1::INTEGER", "INTEGER"}, {"(-9223372036854775808)::BIGINT", "BIGINT"},
	{"1::UTINYINT", "UTINYINT"}, {"1::USMALLINT", "USMALLINT"}, {"1::UINTEGER", "UINTEGER"}, {"18446744073709551615::UBIGINT", "UBIGINT"},
	{"99999999999999999999999999999999999999::HUGEINT", "DECIMAL(38,0)"},
	{"(-99999999999999999999999999999999999999)::HUGEINT", "DECIMAL(38,0)"},
	{"9007199254740993::UHUGEINT", "DECIMAL(38,0)"},
	{"1.5::FLOAT", "FLOAT"}, {"0.1::DOUBLE", "DOUBLE"}, {"'nan'::DOUBLE", "DOUBLE"}, {"'-inf'::FLOAT", "FLOAT"},
	{"1.5::DECIMAL(4,1)", "DECIMAL(4,1)"}, {"1.5::DECIMAL(9,2)", "DECIMAL(9,2)"}, {"1.5::DECIMAL(18,3)", "DECIMAL(18,3)"}, {"1.5::DECIMAL(38,10)", "DECIMAL(38,10)"},
	{"'é''\"'", "VARCHAR"}, {"'\\x00ab'::BLOB", "BLOB"},
	{"'0101'::BIT", "VARCHAR"}, {"123456789012345678901234567890123456789012345::BIGNUM", "VARCHAR"},
	{"'b''c'::ENUM('a', 'b''c')", "VARCHAR"},
	{"'2024-02-29'::DATE", "DATE"}, {"'infinity'::DATE", "DATE"},
	{"'12:34:56.123456'::TIME", "TIME"}, {"'12:34:56.123456789'::TIME_NS", "TIME_NS"}, {"'12:34:56+02'::TIMETZ", "VARCHAR"},
	{"'2024-01-01 12:34:56'::TIMESTAMP_S", "TIMESTAMP"}, {"'2024-01-01 12:34:56.123'::TIMESTAMP_MS", "TIMESTAMP"},
	{"'2024-01-01 12:34:56.123456'::TIMESTAMP", "TIMESTAMP"}, {"'-infinity'::TIMESTAMP", "TIMESTAMP"}, {"'infinity'::TIMESTAMP_S", "TIMESTAMP"},
	{"'2024-01-01 12:34:56.123456789'::TIMESTAMP_NS", "TIMESTAMP_NS"},
	{"'2024-01-01 12:34:56.123456+02'::TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"},
	{"INTERVAL '1 month 3 days 4.5 seconds'", "INTERVAL"}, {"INTERVAL '14 months 40 days 1000 hours'", "INTERVAL"},
	{"'550e8400-e29b-41d4-a716-446655440000'::UUID", "UUID"}, {`'{"a": [1, null]}'::JSON`, "JSON"},
	{"'POINT(1 2)'::GEOMETRY", "GEOMETRY('OGC:CRS84')"},
	{"1.50::DECIMAL(4,2)::VARIANT", "VARIANT"}, {"{'a': 1, 'b': [1, 2]}::VARIANT", "VARIANT"},
	{"[1, NULL]", "INTEGER[]"}, {"[]::VARCHAR[]", "VARCHAR[]"}, {"[1, 2]::INTEGER[2]", "INTEGER[]"}, {"[[1, 2], NULL]::INTEGER[2][]", "INTEGER[][]"},
	{"{'a': 1, 'b c': 'x'}", `STRUCT(a INTEGER, "b c" VARCHAR)`}, {"row(1, 'x')", "STRUCT(INTEGER, VARCHAR)"},
	{"MAP {'k': 1, 'l': NULL}", "MAP(VARCHAR, INTEGER)"}, {"MAP {}::MAP(VARCHAR, INTEGER)", "MAP(VARCHAR, INTEGER)"},
	{"[9007199254740993::HUGEINT]", "DECIMAL(38,0)[]"},
	{"{'a': 9007199254740993::HUGEINT, 'e': 'x'::ENUM('x')}", "STRUCT(a DECIMAL(38,0), e VARCHAR)"},
	{"MAP {9007199254740993::HUGEINT: ['101'::BIT]}", "MAP(DECIMAL(38,0), VARCHAR[])"},
	{"row(9007199254740993::HUGEINT, row('x'::ENUM('x'), INTERVAL '1 day'))", "STRUCT(DECIMAL(38,0), STRUCT(VARCHAR, INTERVAL))"},
	{"[row(1::HUGEINT, 2), NULL]", "STRUCT(DECIMAL(38,0), INTEGER)[]"},
	{"[INTERVAL '1 month', NULL]", "INTERVAL[]"},
	{"[INTERVAL '1 month', NULL]::INTERVAL[2]", "INTERVAL[]"},
	{"{'i': INTERVAL '1 day', 'h': 1::HUGEINT, 'A b': [1]::INTEGER[1]}", `STRUCT(i INTERVAL, h DECIMAL(38,0), "A b" INTEGER[])`},
	{"MAP {'k': INTERVAL '1 day', 'l': NULL}", "MAP(VARCHAR, INTERVAL)"},
	{"[{'t': '2024-01-01 00:00:01'::TIMESTAMP_S, 'z': '01:00:00+03'::TIMETZ}]", "STRUCT(t TIMESTAMP, z VARCHAR)[]"},
	{"{'a': {'b': [MAP {1::HUGEINT: {'c': [1::UHUGEINT]::UHUGEINT[1]}}]}}", "STRUCT(a STRUCT(b MAP(DECIMAL(38,0), STRUCT(c DECIMAL(38,0)[]))[]))"},
}

func TestTypesRoundTrip(t *testing.T) {
	s := openDB(t).session(t)
	ctx := context.Background()
	for i, c := range storedTypes {
		l := newLake(t, t.TempDir(), lake.OS())
		// A NULL of the type beside the value, in both orders of rows and in an
		// increment too.
		sql := fmt.Sprintf("SELECT 1 AS n, %[1]s AS \"Odd name\" UNION ALL SELECT 2, NULL", c.value)
		tg := target(l, "m", lake.FormIncremental, i)
		if _, err := Publish(ctx, s, tg, NewQuery(sql, nil, false), pass); err != nil {
			t.Errorf("%s: %v", c.value, err)
			continue
		}
		tg = target(l, "m", lake.FormIncremental, i+1000)
		tg.Append = true
		p, err := Publish(ctx, s, tg, NewQuery(sql, nil, false), pass)
		if err != nil {
			t.Errorf("%s: second part: %v", c.value, err)
			continue
		}
		if got := p.Manifest.Columns[1].Type; got != c.want {
			t.Errorf("%s: kept as %s, want %s", c.value, got, c.want)
		}
		for _, part := range p.Manifest.Parts {
			checkPart(t, s, l, "gold/m.parts/"+part, c.value, c.want)
		}
	}
}

func checkPart(t *testing.T, s Session, l *lake.Lake, rel, value, want string) {
	t.Helper()
	abs, _ := l.Abs(rel)
	err := s.Query(context.Background(), fmt.Sprintf(
		`SELECT typeof("Odd name"), "Odd name"::VARCHAR, (SELECT (%s)::VARCHAR) FROM read_parquet(%s) WHERE n = 1`, value, QuoteText(abs)),
		func(v []any) error {
			if v[0] != want || v[1] != v[2] {
				t.Errorf("%s: read back as %v %v, want %s %v", value, v[0], v[1], want, v[2])
			}
			return nil
		})
	if err != nil {
		t.Errorf("%s: %v", value, err)
	}
	footer, err := l.ReadFooter(rel)
	if err != nil {
		t.Errorf("%s: %v", value, err)
		return
	}
	a, err := parseType(footer.Columns[1].Type)
	if err != nil {
		t.Errorf("%s: footer says %s: %v", value, footer.Columns[1].Type, err)
		return
	}
	if b, _ := parseType(want); !a.equal(b) {
		t.Errorf("%s: footer says %s, want %s", value, a, b)
	}
}

func TestTypesRefused(t *testing.T) {
	s := openDB(t).session(t)
	for sql, want := range map[string]string{
		"SELECT 1 AS id, NULL AS x":                           "x has no type: all that is known of it is NULL [RBT5008]",
		"SELECT [] AS x, {'y': NULL} AS s":                    "s.y has no type: all that is known of it is NULL [RBT5008]\nx[] has no type: all that is known of it is NULL [RBT5008]",
		"SELECT MAP {} AS m":                                  "m.key has no type: all that is known of it is NULL [RBT5008]",
		"SELECT union_value(k := 1) AS u":                     `u has type UNION("k" INTEGER), which Parquet cannot hold [RBT5006]`,
		"SELECT [union_value(k := 1)] AS u":                   `u[] has type UNION("k" INTEGER), which Parquet cannot hold [RBT5006]`,
		"SELECT ['POINT(1 2)'::GEOMETRY] AS g":                "g[] has type GEOMETRY inside another type, which Parquet cannot hold [RBT5006]",
		"SELECT {'v': 1::VARIANT} AS v":                       "v.v has type VARIANT inside another type, which Parquet cannot hold [RBT5006]",
		"SELECT row(1, [2]) AS r":                             "r has type STRUCT(INTEGER, INTEGER[]), which cannot be read back: a struct without field names around a list or map [RBT5006]",
		"SELECT 1 AS a, 2 AS A":                               "two columns are called a and A, which readers cannot tell apart [RBT5009]",
		"SELECT 1 AS a, 2 AS a":                               "two columns are called a and a, which readers cannot tell apart [RBT5009]",
		"SELECT 170141183460469231731687303715884105727 AS h": "Could not cast value 170141183460469231731687303715884105727 to DECIMAL(38,0)",
		"SELECT INTERVAL '-1 day' AS i":                       "column i: Parquet cannot hold this INTERVAL",
		"SELECT INTERVAL '1.000001 seconds' AS i":             "column i: Parquet cannot hold this INTERVAL",
		"SELECT to_hours(1194) AS i":                          "column i: Parquet cannot hold this INTERVAL",
		"SELECT [to_hours(1194)] AS i":                        "column i: Parquet cannot hold this INTERVAL",
		"SELECT {'x': to_hours(-1)} AS i":                     "column i: Parquet cannot hold this INTERVAL",
	} {
		l := newLake(t, t.TempDir(), lake.OS())
		_, err := Publish(context.Background(), s, target(l, "m", lake.FormFile, 1), NewQuery(sql, nil, false), pass)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", sql, err, want)
		}
		if got := tree(t, l); len(got) > 1 || len(got) == 1 && got[0] != "gold/" {
			t.Errorf("%s: left %v", sql, got)
		}
	}
}

func TestDeclaredTypes(t *testing.T) {
	s := openDB(t).session(t)
	declared := func(pairs ...string) (out []Declared) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, Declared{Name: pairs[i], Type: pairs[i+1], Pos: diag.Pos{File: "models/m.sql", Line: i/2 + 3, Col: 5}})
		}
		return out
	}
	for _, c := range []struct {
		sql      string
		declared []Declared
		contract bool
		want     []lake.Column
		err      string
	}{
		{sql: "SELECT NULL AS x, [] AS l, {'a': NULL} AS s", declared: declared("X", "varchar", "l", "int[]", "s", "STRUCT(a DATE)"),
			want: []lake.Column{{Name: "x", Type: "VARCHAR"}, {Name: "l", Type: "INTEGER[]"}, {Name: "s", Type: "STRUCT(a DATE)"}}},
		{sql: "SELECT 1::SMALLINT AS a, 1::UINTEGER AS b, 1.5::DECIMAL(4,1) AS c", declared: declared("a", "int8", "b", "BIGINT", "c", "numeric(10,1)"),
			want: []lake.Column{{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "BIGINT"}, {Name: "c", Type: "DECIMAL(10,1)"}}},
		{sql: "SELECT 1::HUGEINT AS a, 'x'::ENUM('x') AS b, sum(1::INTEGER) AS c", declared: declared("a", "HUGEINT", "b", "VARCHAR", "c", "DECIMAL(38,0)"),
			want: []lake.Column{{Name: "a", Type: "DECIMAL(38,0)"}, {Name: "b", Type: "VARCHAR"}, {Name: "c", Type: "DECIMAL(38,0)"}}},
		{sql: "SELECT [1::SMALLINT] AS a", declared: declared("a", "BIGINT[]"), want: []lake.Column{{Name: "a", Type: "BIGINT[]"}}},
		{sql: "SELECT {'b': 1::SMALLINT, 'a': 'x'} AS s", declared: declared("s", "STRUCT(a VARCHAR, b BIGINT)"), want: []lake.Column{{Name: "s", Type: "STRUCT(a VARCHAR, b BIGINT)"}}},
		{sql: "SELECT 1.7::DOUBLE AS a", declared: declared("a", "INTEGER"), err: "models/m.sql:3:5: column a is declared as INTEGER, and the query gives DOUBLE [RBT5007]"},
		{sql: "SELECT 1::BIGINT AS a", declared: declared("a", "INTEGER"), err: "models/m.sql:3:5: column a is declared as INTEGER, and the query gives BIGINT [RBT5007]"},
		{sql: "SELECT 1::BIGINT AS a", declared: declared("a", "FLOAT"), err: "models/m.sql:3:5: column a is declared as FLOAT, and the query gives BIGINT [RBT5007]"},
		{sql: "SELECT 1.55::DECIMAL(5,2) AS a", declared: declared("a", "DECIMAL(6,1)"), err: "models/m.sql:3:5: column a is declared as DECIMAL(6,1), and the query gives DECIMAL(5,2) [RBT5007]"},
		{sql: "SELECT {'a': 1, 'b': 2} AS s", declared: declared("s", "STRUCT(a INTEGER)"), err: "models/m.sql:3:5: column s is declared as STRUCT(a INTEGER), and the query gives STRUCT(a INTEGER, b INTEGER) [RBT5007]"},
		{sql: "SELECT '1' AS a", declared: declared("a", "INTEGER"), err: "models/m.sql:3:5: column a is declared as INTEGER, and the query gives VARCHAR [RBT5007]"},
		{sql: "SELECT 1 AS a", declared: declared("a", "INTEGR"), err: `models/m.sql:3:5: column a: type "INTEGR": INTEGR is not a type that can be stored [RBT5007]`},
		{sql: "SELECT 1 AS a, 2 AS b", declared: declared("a", "INTEGER"), want: []lake.Column{{Name: "a", Type: "INTEGER"}, {Name: "b", Type: "INTEGER"}}},
		{sql: "SELECT 1 AS a, 2 AS b", declared: declared("a", "INTEGER", "c", "DATE"), contract: true,
			err: "models/m.sql:4:5: the result does not keep the contract: c is missing, b is not declared [RBT5010]"},
		{sql: "SELECT 'x' AS a, 2 AS b", declared: declared("b", "BIGINT", "a", "DATE"), contract: true,
			err: "models/m.sql:4:5: the result does not keep the contract: a has another type [RBT5010]"},
		{sql: "SELECT 'x' AS a", declared: declared("a", "DATUM"), contract: true,
			err: `models/m.sql:3:5: column a: type "DATUM": DATUM is not a type that can be stored [RBT5007]`},
		{sql: "SELECT 1 AS a", declared: declared("A", ""), contract: true, want: []lake.Column{{Name: "a", Type: "INTEGER"}}},
	} {
		_, got, err := NewQuery(c.sql, c.declared, c.contract).Select(context.Background(), s)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v, want %s", c.sql, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.sql, diff)
		}
	}
}

func TestDrift(t *testing.T) {
	s := openDB(t).session(t)
	for _, c := range []struct{ first, second, want string }{
		{"SELECT 1::INT AS id", "SELECT 5000000000::BIGINT AS id", "id is BIGINT, and INTEGER in the published parts"},
		{"SELECT {'x': 1} AS s", "SELECT {'x': 2, 'y': 'q'} AS s", "s.y is new"},
		{"SELECT {'x': 1, 'y': 2} AS s", "SELECT {'x': 2} AS s", "s.y is missing"},
		{"SELECT [{'x': 1}] AS s", "SELECT [{'x': 'a'}] AS s", "s[].x is VARCHAR, and INTEGER in the published parts"},
		{"SELECT MAP {'a': 1} AS s", "SELECT MAP {'a': 1.5::DOUBLE} AS s", "s.value is DOUBLE, and INTEGER in the published parts"},
		{"SELECT 1 AS a, 2 AS b", "SELECT 1 AS a, 2 AS c", "b is missing; c (INTEGER) is new"},
		{"SELECT 1.5::DECIMAL(4,1) AS a", "SELECT 1.55::DECIMAL(5,2) AS a", "a is DECIMAL(5,2), and DECIMAL(4,1) in the published parts"},
		{"SELECT 'x' AS a", "SELECT 1 AS a", "a is INTEGER, and VARCHAR in the published parts"},
		{"SELECT 1::FLOAT AS a", "SELECT 1::DOUBLE AS a", "a is DOUBLE, and FLOAT in the published parts"},
		{"SELECT row(1, 2) AS a", "SELECT row(1, 2, 3) AS a", "a is STRUCT(INTEGER, INTEGER, INTEGER), and STRUCT(INTEGER, INTEGER) in the published parts"},
	} {
		l := newLake(t, t.TempDir(), lake.OS())
		mustPublish(t, s, target(l, "m", lake.FormIncremental, 1), c.first)
		before := rows(t, s, l, "m")
		tg := target(l, "m", lake.FormIncremental, 2)
		tg.Append = true
		_, err := Publish(context.Background(), s, tg, NewQuery(c.second, nil, false), pass)
		var drift *DriftError
		if !errors.As(err, &drift) || strings.Join(drift.Differences, "; ") != c.want || drift.Node != "m" {
			t.Errorf("%s: got %v, want %s", c.second, err, c.want)
		}
		if diff := cmp.Diff(before, rows(t, s, l, "m")); diff != "" {
			t.Error(diff)
		}
		tg.Rebuild = func() (Source, error) { return NewQuery(c.first+" UNION ALL "+c.first, nil, false), nil }
		p, err := Publish(context.Background(), s, tg, NewQuery(c.second, nil, false), pass)
		if err != nil {
			t.Error(err)
		} else if p.Appended || p.Rows != 2 || p.Manifest.Parts[0] != lake.PartName(2) || !strings.Contains(p.Rebuilt, c.want) {
			t.Errorf("%+v", p)
		}
	}
	for _, c := range []struct {
		first, second string
		want          []string
	}{
		{"SELECT 1::int4 AS a, 2::bigint AS b, 3.0::numeric(18,3) AS c, 'x'::text AS d", "SELECT 'x'::text AS d, 1::int4 AS a, 2::bigint AS b, 3.0::numeric(18,3) AS c",
			[]string{"{'a': 1, 'b': 2, 'c': 3.000, 'd': x}", "{'a': 1, 'b': 2, 'c': 3.000, 'd': x}"}},
		{"SELECT {'x': 1, 'y': 'q'} AS s", "SELECT {'Y': NULL, 'x': 7::TINYINT} AS S", []string{"{'s': {'x': 1, 'y': q}}", "{'s': {'x': 7, 'y': NULL}}"}},
		{"SELECT 1 AS id, 'abc' AS x", "SELECT 2 AS id, NULL AS x", []string{"{'id': 1, 'x': abc}", "{'id': 2, 'x': NULL}"}},
		{"SELECT sum(1::INTEGER) AS n", "SELECT 5::BIGINT AS n", []string{"{'n': 1}", "{'n': 5}"}},
		{"SELECT [1::BIGINT] AS l", "SELECT [] AS l", []string{"{'l': [1]}", "{'l': []}"}},
		{"SELECT INTERVAL '1 day' AS i", "SELECT NULL AS i", []string{"{'i': 1 day}", "{'i': NULL}"}},
	} {
		l := newLake(t, t.TempDir(), lake.OS())
		mustPublish(t, s, target(l, "m", lake.FormIncremental, 1), c.first)
		tg := target(l, "m", lake.FormIncremental, 2)
		tg.Append = true
		mustPublish(t, s, tg, c.second)
		if diff := cmp.Diff(c.want, rows(t, s, l, "m")); diff != "" {
			t.Error(c.second, diff)
		}
	}
}

func TestSumIsExact(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	p := mustPublish(t, s, target(l, "m", lake.FormFile, 1),
		"SELECT sum(x) AS s, count(*)::hugeint AS c FROM (VALUES (9007199254740993::BIGINT), (0)) t(x)")
	want := []lake.Column{{Name: "s", Type: "DECIMAL(38,0)"}, {Name: "c", Type: "DECIMAL(38,0)"}}
	if diff := cmp.Diff(want, p.Receipt.Outputs[0].Columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"{'s': 9007199254740993, 'c': 2}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
}
