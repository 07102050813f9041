package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/project"
)

func TestJSONTable(t *testing.T) {
	nd := func(lines ...string) map[string]string {
		return map[string]string{"a.ndjson": strings.Join(lines, "\n") + "\n"}
	}
	type jsonCase struct {
		name    string
		files   map[string]string
		columns string
		format  string
		extra   string
		types   string
		rows    []string
		err     string
	}
	tests := []jsonCase{
		{name: "types of all values", files: nd(`{"i":1,"f":2.5,"b":true,"s":"x","n":null}`, `{"i":-3,"f":4,"b":false,"s":"2020-01-01"}`),
			types: "i BIGINT, f DOUBLE, b BOOLEAN, s VARCHAR, n JSON", rows: []string{"-3|4.0|false|2020-01-01|∅", "1|2.5|true|x|∅"}},
		{name: "unsigned and huge integers", files: nd(`{"u":9300000000000000001,"h":-9300000000000000001}`, `{"u":18000000000000000003,"h":170000000000000000000000000000000000}`),
			types: "u UBIGINT, h HUGEINT", rows: []string{"18000000000000000003|170000000000000000000000000000000000", "9300000000000000001|-9300000000000000001"}},
		{name: "beyond every integer", files: nd(`{"n":1234567890123456789012345678901234567890}`), types: "n JSON", rows: []string{"1234567890123456789012345678901234567890"}},
		{name: "late fractions and booleans", files: nd(strings.Repeat("{\"q\":40}\n", 20480) + `{"q":2.7}` + "\n" + `{"q":false}`), types: "q JSON"},
		{name: "integers that no double holds beside fractions", files: nd(`{"q":9007199254740993}`, `{"q":0.5}`), types: "q JSON", rows: []string{"0.5", "9007199254740993"}},
		{name: "long decimals stay", files: nd(`{"q":1.12345678901234567890123}`, `{"q":2}`), types: "q JSON", rows: []string{"1.12345678901234567890123", "2"}},
		{name: "long decimals declared", files: nd(`{"q":1.12345678901234567890}`, `{"q":"2.5"}`), columns: "q: DECIMAL(38,20)", types: "q DECIMAL(38,20)",
			rows: []string{"1.12345678901234567890", "2.50000000000000000000"}},
		{name: "long decimals in a list", files: nd(`{"l":[12345678901234567890.5, null,-1]}`), types: "l JSON[]", rows: []string{"[12345678901234567890.5, NULL, -1]"}},
		{name: "long decimals in a mixed list", files: nd(`{"mix":[1,{"z":123456789012345678901234567890.25}, "a"]}`), types: "mix JSON[]",
			rows: []string{`[1, {"z":123456789012345678901234567890.25}, "a"]`}},
		{name: "long decimals deep inside, beside escapes", files: nd(`{"o":{"k":"a\tb, \u00e9","l":[{"z":1.12345678901234567890123,"s":"x"},{"z":2}]}}`, `{"o":{"l":[]}}`),
			types: "o STRUCT(k VARCHAR, l STRUCT(z JSON, s VARCHAR)[])",
			rows:  []string{"{'k': 'a\tb, é', 'l': [{'z': 1.12345678901234567890123, 's': x}, {'z': 2, 's': NULL}]}", "{'k': NULL, 'l': []}"}},
		{name: "structs and lists", files: nd(`{"s":{"a":1,"b":"x"},"l":[1,2]}`, `{"s":{"a":2.5,"c":[{"d":null}]},"l":[]}`, `{"s":null}`),
			types: "s STRUCT(a DOUBLE, b VARCHAR, c STRUCT(d JSON)[]), l BIGINT[]",
			rows:  []string{"{'a': 1.0, 'b': x, 'c': NULL}|[1, 2]", "{'a': 2.5, 'b': NULL, 'c': [{'d': NULL}]}|[]", "∅|∅"}},
		{name: "object or number", files: nd(`{"v":{"a":1}}`, `{"v":2}`), types: "v JSON", rows: []string{"2", `{"a":1}`}},
		{name: "keys in two cases inside", files: nd(`{"v":{"a":1,"A":2}}`), types: "v JSON", rows: []string{`{"a":1,"A":2}`}},
		{name: "keys in two cases on top", files: nd(`{"a":1,"A":2}`), err: `a.ndjson: the keys "a" and "A" cannot both be columns: they differ in case only [RBT4021]`},
		{name: "keys with odd characters", files: nd(`{"co$t":"x","co#t":"y","a.b":1,"a b\"c":2}`), types: `co$t VARCHAR, co#t VARCHAR, a.b BIGINT, a b"c BIGINT`, rows: []string{"x|y|1|2"}},
		{name: "null first, list later", files: map[string]string{"a.ndjson": `{"id":1,"c":null}`, "b.ndjson": `{"id":2,"c":[{"x":1},{"x":2}]}`},
			types: "id BIGINT, c STRUCT(x BIGINT)[]", rows: []string{"1|∅", "2|[{'x': 1}, {'x': 2}]"}},
		{name: "mixed timestamps stay text", files: nd(`{"t":"2031-01-02 03:04:05"}`, `{"t":"2031-01-02 03:04:05.678"}`), types: "t VARCHAR",
			rows: []string{"2031-01-02 03:04:05", "2031-01-02 03:04:05.678"}},
		{name: "bom, crlf and blank lines", files: map[string]string{"a.ndjson": "\ufeff{\"a\":1}\r\n\r\n  \r\n{\"a\":2}\r\n"}, types: "a BIGINT", rows: []string{"1", "2"}},
		{name: "truncated", files: map[string]string{"a.ndjson": "{\"a\":1}\n{\"a\":2}\n{\"a\":"}, err: "a.ndjson:3: a value is missing at the end of the text [RBT4022]"},
		{name: "empty with declared columns", files: map[string]string{"a.ndjson": ""}, columns: "a: BIGINT", types: "a BIGINT"},
		{name: "duplicate key", files: nd(`{"id":1}`, `{"qty":5,"qty":6}`), err: `a.ndjson:2: the key "qty" stands twice in one object [RBT4022]`},
		{name: "duplicate key inside", files: nd(`{"o":[{"qty":5,"x":1,"q\u0074y":6}]}`), err: `a.ndjson:1: the key "qty" stands twice in one object [RBT4022]`},
		{name: "not an object", files: nd(`{"a":1}`, `[1]`), err: `a.ndjson:2: a record is an object; here stands "[1]" [RBT4022]`},
		{name: "two on a line", files: nd(`{"a":1} {"a":2}`), err: `a.ndjson:1: text follows the record on its line: "{\"a\":2}" [RBT4022]`},
		{name: "nan", files: nd(`{"a":NaN}`), err: `a.ndjson:1: no JSON value begins with "NaN}" [RBT4022]`},
		{name: "leading zero", files: nd(`{"a":007}`), err: `a.ndjson:1: no number is written like "007" [RBT4022]`},
		{name: "half a pair", files: nd(`{"a":"\ud800"}`), err: "a.ndjson:1: half of a surrogate pair stands alone [RBT4022]"},
		{name: "not utf-8", files: nd("{\"a\":\"\xff\"}"), err: `a.ndjson:1: a text is not UTF-8: "\"\xff\"" [RBT4022]`},
		{name: "array", format: "json", files: map[string]string{"a.json": "[{\"a\":1},\n {\"a\":2}]\n"}, types: "a BIGINT", rows: []string{"1", "2"}},
		{name: "empty array", format: "json", columns: "a: BIGINT", files: map[string]string{"a.json": "[]"}, types: "a BIGINT"},
		{name: "objects in a row", format: "json", files: map[string]string{"a.json": "{\"a\":\n1}\n\n{\"a\":2} {\"a\":3}"}, types: "a BIGINT", rows: []string{"1", "2", "3"}},
		{name: "array never closed", format: "json", files: map[string]string{"a.json": "[{\"a\":1},\n {\"a\":2}\n"}, err: "a.json:3: the array is never closed [RBT4022]"},
		{name: "comma missing", format: "json", files: map[string]string{"a.json": "[{\"a\":1}\n {\"a\":2}]"}, err: `a.json:2: a comma or ] is expected before "{\"a\":2}]" [RBT4022]`},
		{name: "declared", files: nd(`{"ID":"7","x":1.50,"t":"2024-01-01T00:00:00Z","o":{"a":[1]}}`), columns: "id: BIGINT; x: DECIMAL(9,2); t: TIMESTAMP; o: JSON",
			types: "id BIGINT, x DECIMAL(9,2), t TIMESTAMP, o JSON", rows: []string{`7|1.50|2024-01-01 00:00:00|{"a":[1]}`}},
		{name: "declared type that does not fit", files: nd(`{"id":1}`, `{"id":2.7}`), columns: "id: BIGINT", err: `a.ndjson:2: column id: "2.7" is not BIGINT [RBT4022]`},
		{name: "declared column missing", files: nd(`{"ident":1}`), columns: "id: BIGINT", err: "a.ndjson: the declared column id is missing: no record has it [RBT4021]"},
		{name: "extra ignored", files: nd(`{"id":1,"x":2}`), columns: "id: BIGINT", extra: "ignore", types: "id BIGINT", rows: []string{"1"}},
		{name: "extra refused", files: nd(`{"id":1,"x":2}`), columns: "id: BIGINT", extra: "error", err: `a.ndjson: the key "x" is not declared [RBT4021]`},
		{name: "a key inside that its type lacks", files: nd(`{"a":{"x":1}}`, `{"a":{"x":1,"z":2}}`), columns: "a: STRUCT(x BIGINT)", extra: "error",
			err: "a.ndjson:2: a.z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "a key inside is not kept either", files: nd(`{"a":{"x":1,"z":null}}`), columns: "a: STRUCT(x BIGINT)",
			err: "a.ndjson:1: a.z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "a key inside, spelled otherwise", files: nd(`{"A":{"X":1}}`), columns: "a: struct (x BIGINT)",
			err: "a.ndjson:1: a.X is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "a key in a list of structs", files: nd(`{"a":[{"x":{"y":1}},{"x":{"z":2}}]}`), columns: "a: STRUCT(x STRUCT(y BIGINT))[]",
			err: "a.ndjson:1: a[].x.z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "a key in a map of structs", files: nd(`{"a":{"k":{"x":1},"l":{"z":2}}}`), columns: "a: MAP(VARCHAR, STRUCT(x BIGINT))",
			err: "a.ndjson:1: a[].z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "a key far inside a wide map", files: nd(`{"a":{` + wideKeys(300) + `,"last":{"z":2}}}`), columns: "a: MAP(VARCHAR, STRUCT(x BIGINT))",
			err: "a.ndjson:1: a[].z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "keys inside left out", files: nd(`{"a":{"x":1,"z":2}}`), columns: "a: STRUCT(x BIGINT)", extra: "ignore", types: "a STRUCT(x BIGINT)", rows: []string{"{'x': 1}"}},
		{name: "keys of maps and of JSON are values", files: nd(`{"m":{"z":1},"j":{"q":{"z":2}},"s":{"j":{"z":3}}}`), columns: "m: MAP(VARCHAR, BIGINT); j: JSON; s: STRUCT(j JSON)", extra: "error",
			types: "m MAP(VARCHAR, BIGINT), j JSON, s STRUCT(j JSON)", rows: []string{`{z=1}|{"q":{"z":2}}|{'j': '{"z":3}'}`}},
		{name: "numbers in texts as they are written", files: nd(`{"v":1.10,"j":1.10,"l":[1.10, "x", null],"s":{"t":-0,"k":{"q": 1.0e0},"d":2.50},"m":{"a":[100.00]}}`, `{"v":"1.10","j":"1.10","l":[],"s":{},"m":{}}`),
			columns: "v: VARCHAR; j: JSON; l: VARCHAR[]; s: STRUCT(t VARCHAR, k JSON, d DOUBLE); m: MAP(VARCHAR, JSON[])",
			types:   "v VARCHAR, j JSON, l VARCHAR[], s STRUCT(t VARCHAR, k JSON, d DOUBLE), m MAP(VARCHAR, JSON[])",
			rows:    []string{`1.10|"1.10"|[]|{'t': NULL, 'k': NULL, 'd': NULL}|{}`, `1.10|1.10|[1.10, x, NULL]|{'t': -0, 'k': '{"q":1.0e0}', 'd': 2.5}|{a=[100.00]}`}},
		{name: "long decimals in a declared list", files: nd(`{"l":[1.12345678901234567890, 2]}`), columns: "l: DECIMAL(38,20)[]", types: "l DECIMAL(38,20)[]",
			rows: []string{"[1.12345678901234567890, 2.00000000000000000000]"}},
		{name: "numbers far inside a wide object", files: nd(`{"j":{` + wideKeys(300) + `,"last":1.10}}`), columns: "j: JSON", types: "j JSON", rows: []string{`{` + wideKeys(300) + `,"last":1.10}`}},
		{name: "long numbers far inside a wide object", files: nd(`{"j":{` + wideKeys(300) + `,"last":1.12345678901234567890123}}`), types: "j JSON", rows: []string{`{` + wideKeys(300) + `,"last":1.12345678901234567890123}`}},
		{name: "depth", files: nd(`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}"), types: "a JSON"},
		{name: "too deep", files: nd(`{"a":` + strings.Repeat("[", 100000)), err: "a.ndjson:1: more than 1000 values lie in each other [RBT4022]"},
	}
	s := testSession(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, test.files)
			files, err := expandPatterns([]string{filepath.Join(dir, "*")})
			if err != nil {
				t.Fatal(err)
			}
			if test.format == "" {
				test.format = "ndjson"
			}
			if test.extra == "" {
				test.extra = "keep"
			}
			table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: files, format: test.format, columns: cols(test.columns), extra: test.extra, tempDir: t.TempDir()}
			types, rows, err := readTable(s, table)
			if test.err != "" {
				first := ""
				if err != nil {
					first, _, _ = strings.Cut(err.Error(), "\n")
				}
				if first != test.err {
					t.Errorf("error %q, want %q", first, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if types != test.types {
				t.Errorf("types %s, want %s", types, test.types)
			}
			if diff := cmp.Diff(test.rows, rows); test.rows != nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// wideKeys are members of an object, more of them than a STRUCT has fields.
func wideKeys(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":{"x":1}`, i)
	}
	return strings.Join(members, ",")
}

// TestJSONNumbersAsWritten: in columns that hold texts a number is spelled as in
// the file.
func TestJSONNumbersAsWritten(t *testing.T) {
	s := testSession(t)
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,6}0{0,3})?([eE][+-]?[0-9]{1,2})?`), 1, 5).Draw(rt, "numbers")
		var text strings.Builder
		var want []string
		for _, n := range numbers {
			fmt.Fprintf(&text, `{"v":%[1]s,"j":%[1]s,"l":[%[1]s],"s":{"j":{"q":%[1]s}}}`+"\n", n)
			want = append(want, fmt.Sprintf(`%[1]s|%[1]s|[%[1]s]|{'j': '{"q":%[1]s}'}`, n))
		}
		dir := writeFiles(t, map[string]string{"a.ndjson": text.String()})
		table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: []string{filepath.Join(dir, "a.ndjson")}, format: "ndjson",
			columns: cols("v: VARCHAR; j: JSON; l: VARCHAR[]; s: STRUCT(j JSON)"), extra: "error", tempDir: t.TempDir()}
		_, rows, err := readTable(s, table)
		if err != nil {
			rt.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(rows)
		if diff := cmp.Diff(want, rows); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// readTable gives the types of a table's columns and its sorted rows as text.
func readTable(s *session, table *fileTable) (types string, rows []string, err error) {
	ctx := context.Background()
	query, err := table.query(ctx, s)
	if err != nil {
		return "", nil, err
	}
	columns, err := s.Describe(ctx, query)
	if err != nil {
		return "", nil, err
	}
	var parts []string
	for _, c := range columns {
		parts = append(parts, c.Name+" "+c.Type)
	}
	_, err = s.query(ctx, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (\n"+query+"\n) ORDER BY ALL", func(v []any) error {
		row := make([]string, len(v))
		for i := range v {
			if row[i] = "∅"; v[i] != nil {
				row[i] = v[i].(string)
			}
		}
		rows = append(rows, strings.Join(row, "|"))
		return nil
	})
	if err != nil {
		err = table.explain(err)
	}
	return strings.Join(parts, ", "), rows, err
}

// TestJSONSuite: what must be accepted as JSON is, what must not is not. A value
// that is no object stands in one here, as it could in a record.
func TestJSONSuite(t *testing.T) {
	dir := sharedData(t, "data", "json-suite", "test_parsing")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		s := &jsonScanner{text: text, line: 1}
		s.blank()
		err = s.value(nil)
		if s.blank(); err == nil && s.pos < len(s.text) {
			err = errors.New("text follows")
		}
		switch {
		case strings.HasPrefix(e.Name(), "y_") && err != nil && e.Name() != "y_object_duplicated_key.json" && e.Name() != "y_object_duplicated_key_and_value.json":
			t.Errorf("%s: %v", e.Name(), err)
		case strings.HasPrefix(e.Name(), "n_") && err == nil:
			t.Errorf("%s is accepted", e.Name())
		}
	}
}

// sharedData is a folder of the data that stands beside the repository.
func sharedData(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("RBT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	dir := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared data: %v", err)
	}
	return dir
}

// TestRewriteKeepsRecords: a rewritten record has the same keys and values, the
// quoted ones as text.
func TestRewriteKeepsRecords(t *testing.T) {
	values := []string{"1", "1.50", "-2e5", `"x y"`, `"a\nb\"c"`, "null", "true", "[1, 2.25]", "{\"k\":\n \"v\"}", "{}"}
	// The engine writes lists and objects without blanks, in a file that is not rewritten too.
	asText := map[string]string{"[1, 2.25]": "[1,2.25]", "{\"k\":\n \"v\"}": `{"k":"v"}`}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5).Draw(t, "keys")
		var b strings.Builder
		quote, asJSON := map[string]bool{}, map[string]bool{}
		var want []string
		b.WriteString("{")
		for i := range n {
			key := string(rune('a' + i))
			v := rapid.SampledFrom(values).Draw(t, "value")
			quote[key], asJSON[key] = rapid.Bool().Draw(t, "quote"), rapid.Bool().Draw(t, "json")
			if i > 0 {
				b.WriteString(" ,\n ")
			}
			b.WriteString(`"` + key + `" : ` + v)
			switch {
			case !quote[key] || v == "null" || v[0] == '"' && !asJSON[key]:
				want = append(want, key+"="+strings.ReplaceAll(v, "\n", " "))
			default:
				text, blanks := asText[v]
				if !blanks {
					text = v
				}
				want = append(want, key+" text "+text)
			}
		}
		b.WriteString("}")
		out := rewriteRecord([]byte(b.String()), quote, asJSON, nil)
		var got []string
		for _, f := range fieldsOf(out) {
			if !quote[f.key] || f.value[0] != '"' || string(f.value) == `"x y"` && !asJSON[f.key] || string(f.value) == `"a\nb\"c"` && !asJSON[f.key] {
				got = append(got, f.key+"="+string(f.value))
				continue
			}
			got = append(got, f.key+" text "+f.texts()[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n(-want +got):\n%s", b.String(), diff)
		}
	})
}

func FuzzJSONScan(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x\u00e9",{"b":null}]}`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := &jsonScanner{text: []byte(text), line: 1}
		var at shape
		if s.value(&at) == nil && s.pos > len(text) {
			t.Fatalf("the scanner ran over the end of %q", text)
		}
		_ = at.sqlType()
	})
}
