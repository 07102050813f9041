package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// writeFiles makes files under a new folder; names may have folders.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rowsOf runs a query and gives its columns and rows as text, NULL as "∅".
func rowsOf(t testing.TB, s *session, query string) []string {
	t.Helper()
	var out []string
	columns, err := s.query(context.Background(), query, func(v []any) error {
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = "∅"
			if v[i] != nil {
				parts[i] = fmt.Sprint(v[i])
			}
		}
		out = append(out, strings.Join(parts, "|"))
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return append([]string{strings.Join(columns, "|")}, out...)
}

func cols(text string) []project.Column {
	var out []project.Column
	for _, f := range strings.Split(text, ";") {
		name, typ, _ := strings.Cut(strings.TrimSpace(f), ":")
		if name != "" {
			out = append(out, project.Column{Name: name, Type: strings.TrimSpace(typ)})
		}
	}
	return out
}

type csvCase struct {
	name    string
	files   map[string]string
	columns string
	options map[string]string
	extra   string
	want    []string // header and rows, all cast to VARCHAR
	err     string   // first diagnostic, with its place
}

func TestCSVTable(t *testing.T) {
	tests := []csvCase{
		{name: "undeclared is text", files: map[string]string{"a.csv": "id,n\n007,70000000000000000123\n"}, want: []string{"id|n", "007|70000000000000000123"}},
		{name: "declared", files: map[string]string{"a.csv": "id,n\n1,x\n"}, columns: "id: BIGINT", want: []string{"id|n", "1|x"}},
		{name: "order of the file differs", files: map[string]string{"a.csv": "b,a\n1,2\n", "b.csv": "a,b\n3,4\n"}, columns: "a: BIGINT; b: BIGINT",
			want: []string{"a|b", "2|1", "3|4"}},
		{name: "names in any case", files: map[string]string{"a.csv": "ID\n1\n"}, columns: "id: BIGINT", want: []string{"id", "1"}},
		{name: "a column more in one file", files: map[string]string{"a.csv": "a\n1\n", "b.csv": "a,b\n2,x\n"}, want: []string{"a|b", "1|∅", "2|x"}},
		{name: "ignore extra", files: map[string]string{"a.csv": "a,b,\n1,2,3\n"}, columns: "a: BIGINT", extra: "ignore", want: []string{"a", "1"}},
		{name: "error on extra", files: map[string]string{"a.csv": "a,b\n1,2\n"}, columns: "a: BIGINT", extra: "error", err: "a.csv:1: column b is not declared [RBT4021]"},
		{name: "declared column missing", files: map[string]string{"a.csv": "id,x\n1,2\n", "b.csv": "id\n1\n"}, columns: "id: BIGINT; x: BIGINT",
			err: "b.csv:1: the declared column x is missing [RBT4021]"},
		{name: "twice the same column", files: map[string]string{"a.csv": "a,A\n1,2\n"}, err: "a.csv:1: two columns are called A [RBT4021]"},
		{name: "column without a name", files: map[string]string{"a.csv": "a,\n1,2\n"}, err: "a.csv:1: column 2 has no name [RBT4021]"},
		{name: "empty file", files: map[string]string{"a.csv": ""}, err: "a.csv: the file is empty: it has no header [RBT4021]"},
		{name: "header only", files: map[string]string{"a.csv": "a,b\n"}, want: []string{"a|b"}},
		{name: "empty, quoted empty, NA, null, line break", files: map[string]string{"a.csv": "id,t\n1,\n2,\"\"\n3,NA\n4,null\n5,\"line1\nline2\"\n"},
			want: []string{"id|t", "1|∅", "2|∅", "3|NA", "4|null", "5|line1\nline2"}},
		{name: "one column with another delimiter in it", files: map[string]string{"a.csv": "tag\nred\nblue;dark\n"}, want: []string{"tag", "red", "blue;dark"}},
		{name: "too few values", files: map[string]string{"a.csv": "id,a,b\n1,x\n2,y,z\n"}, err: "a.csv:2: 3 values are expected and 2 are there [RBT4022]"},
		{name: "two values for one", files: map[string]string{"a.csv": "id\n1,x\n"}, err: "a.csv:2: 1 value is expected and 2 are there [RBT4022]"},
		{name: "too many values", files: map[string]string{"a.csv": "id,tags\n1,x\n2,y,extra\n"}, err: "a.csv:3: 2 values are expected and 3 are there [RBT4022]"},
		{name: "text with boolean-like values", files: map[string]string{"a.csv": "ok,txt\ntrue,True\nfalse,False\n"}, columns: "ok: BOOLEAN; txt: VARCHAR",
			want: []string{"ok|txt", "true|True", "false|False"}},
		{name: "underscores in a decimal", files: map[string]string{"a.csv": "n\n1_000\n"}, columns: "n: DECIMAL(9,2)", err: "a.csv:2: column n: \"1_000\" is not DECIMAL(9,2) [RBT4022]"},
		{name: "underscores in a double", files: map[string]string{"a.csv": "n\n1_0.5\n"}, columns: "n: DOUBLE", err: "a.csv:2: column n: \"1_0.5\" is not DOUBLE [RBT4022]"},
		{name: "beyond the range of a double", files: map[string]string{"a.csv": "n\n1\n1e400\n"}, columns: "n: DOUBLE", err: "a.csv:3: column n: \"1e400\" is not DOUBLE [RBT4022]"},
		{name: "beyond the range of a float", files: map[string]string{"a.csv": "n\n-1e39\n"}, columns: "n: REAL", err: "a.csv:2: column n: \"-1e39\" is not REAL [RBT4022]"},
		{name: "doubles", files: map[string]string{"a.csv": "n\ninf\n-Infinity\nNaN\n 1.5 \n1e300\n"}, columns: "n: DOUBLE", want: []string{"n", "inf", "-inf", "nan", "1.5", "1e+300"}},
		{name: "a time with too many digits", files: map[string]string{"a.csv": "n\n10:00:00.1234567\n"}, columns: "n: TIME", err: "a.csv:2: column n: \"10:00:00.1234567\" is not TIME [RBT4022]"},
		{name: "long ids", files: map[string]string{"a.csv": "v\n70000000000000000123\n80000000000000000456\n"}, columns: "v: HUGEINT",
			want: []string{"v", "70000000000000000123", "80000000000000000456"}},
		{name: "bom and crlf", files: map[string]string{"a.csv": "\ufeffid,t\r\n1,ä\r\n2,\"x,\"\"y\"\"\"\r\n"}, columns: "id: BIGINT", want: []string{"id|t", "1|ä", "2|x,\"y\""}},
		{name: "no header", files: map[string]string{"a.csv": "1,x\n2,y\n"}, columns: "a: BIGINT; b: VARCHAR", options: map[string]string{"header": "false"},
			want: []string{"a|b", "1|x", "2|y"}},
		{name: "no header, too many", files: map[string]string{"a.csv": "1,x\n2,y,z\n"}, columns: "a: BIGINT; b: VARCHAR", options: map[string]string{"header": "false"},
			err: "a.csv:2: 2 values are expected and 3 are there [RBT4022]"},
		{name: "options", files: map[string]string{"a.csv": "junk\n#note\na;b\n'x;1';1,5\n#c\n-;2\n"}, columns: "a: VARCHAR; b: DOUBLE",
			options: map[string]string{"delimiter": ";", "quote": "'", "comment": "#", "skip": "1", "decimal_separator": ",", "nullstr": "-"},
			want:    []string{"a|b", "x;1|1.5", "∅|2.0"}},
		{name: "no quote", files: map[string]string{"a.csv": "a,b\n\"x,y\"\n"}, options: map[string]string{"quote": ""}, want: []string{"a|b", `"x|y"`}},
		{name: "dates by format", files: map[string]string{"a.csv": "d\n31.12.2024\n"}, columns: "d: DATE", options: map[string]string{"dateformat": "%d.%m.%Y"}, want: []string{"d", "2024-12-31"}},
		{name: "names that need quotes", files: map[string]string{"a.csv": "\"a b\",\"x\"\"y\",Ä\n1,2,3\n"}, columns: "a b: BIGINT", want: []string{`a b|x"y|Ä`, "1|2|3"}},
		{name: "value does not fit", files: map[string]string{"a.csv": "id\n1\n", "b.csv": "x,id\n\"a\nb\",2\n,abc\n"}, columns: "id: BIGINT",
			err: `b.csv:4: column id: "abc" is not BIGINT [RBT4022]`},
		{name: "fraction is not rounded", files: map[string]string{"a.csv": "id\n1.7\n"}, columns: "id: BIGINT", err: `a.csv:2: column id: "1.7" is not BIGINT [RBT4022]`},
		{name: "exact fraction", files: map[string]string{"a.csv": "id\n1.00\n-5.\n"}, columns: "id: BIGINT", want: []string{"id", "1", "-5"}},
		{name: "decimal is not rounded", files: map[string]string{"a.csv": "v\n1.230\n1.239\n"}, columns: "v: DECIMAL(10,2)", err: `a.csv:3: column v: "1.239" is not DECIMAL(10,2) [RBT4022]`},
		{name: "decimals", files: map[string]string{"a.csv": "v\n1.230\n.5\n-7\n"}, columns: "v: DECIMAL(10,2)", want: []string{"v", "1.23", "0.50", "-7.00"}},
		{name: "time of a date", files: map[string]string{"a.csv": "d\n2024-01-01 10:00:00\n"}, columns: "d: DATE", err: `a.csv:2: column d: "2024-01-01 10:00:00" is not DATE [RBT4022]`},
		{name: "midnight of a date", files: map[string]string{"a.csv": "d\n2024-01-01 00:00:00\n2024-01-02\n"}, columns: "d: DATE", want: []string{"d", "2024-01-01", "2024-01-02"}},
		{name: "offset of a timestamp", files: map[string]string{"a.csv": "t\n2024-01-01 10:00:00+05\n"}, columns: "t: TIMESTAMP", err: `a.csv:2: column t: "2024-01-01 10:00:00+05" is not TIMESTAMP [RBT4022]`},
		{name: "timestamps", files: map[string]string{"a.csv": "t\n2024-01-01\n2024-01-01 10:00:00\n2024-01-01T10:00:00Z\n2024-01-01 10:00:00.123456000\n2024-01-01 10:00:00+00:00\n"}, columns: "t: TIMESTAMP",
			want: []string{"t", "2024-01-01 00:00:00", "2024-01-01 10:00:00", "2024-01-01 10:00:00", "2024-01-01 10:00:00.123456", "2024-01-01 10:00:00"}},
		{name: "nanoseconds", files: map[string]string{"a.csv": "t\n2024-01-01 10:00:00.123456789\n"}, columns: "t: TIMESTAMP", err: `a.csv:2: column t: "2024-01-01 10:00:00.123456789" is not TIMESTAMP [RBT4022]`},
		{name: "zoned", files: map[string]string{"a.csv": "t\n2024-01-01 10:00:00+05\n"}, columns: "t: TIMESTAMPTZ", want: []string{"t", "2024-01-01 05:00:00+00"}},
		{name: "not utf-8", files: map[string]string{"a.csv": "a,b\n1,\xff\n"}, err: "a.csv:2: the text is not UTF-8 [RBT4022]"},
		{name: "latin-1", files: map[string]string{"a.csv": "a\nM\xfcller\n"}, options: map[string]string{"encoding": "latin-1"}, want: []string{"a", "Müller"}},
		{name: "quote never closed", files: map[string]string{"a.csv": "a,b\n1,x\n2,\"y\n"}, err: "a.csv:3: a quoted value is never closed [RBT4022]"},
		{name: "text after 30000 numbers", files: map[string]string{"a.csv": "v\n" + strings.Repeat("1\n", 30000) + "abc\n"}, columns: "v: BIGINT", err: `a.csv:30002: column v: "abc" is not BIGINT [RBT4022]`},
		{name: "empty lines", files: map[string]string{"a.csv": "a,b\n1,2\n\n3,4\n\n"}, want: []string{"a|b", "1|2", "3|4"}},
		{name: "empty lines of one column", files: map[string]string{"a.csv": "a\n1\n\n3\n"}, want: []string{"a", "1", "∅", "3"}},
	}
	s := testSession(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.check(t, s) })
	}
}

func (c csvCase) check(t *testing.T, s *session) {
	dir := writeFiles(t, c.files)
	files, err := expandPatterns([]string{filepath.Join(dir, "*")})
	if err != nil {
		t.Fatal(err)
	}
	if c.extra == "" {
		c.extra = "keep"
	}
	table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: files, options: c.options, columns: cols(c.columns), extra: c.extra}
	query, err := table.csvQuery()
	var got []string
	if err == nil {
		got = append(got, strings.Join(mustColumns(t, s, query), "|"))
		_, err = s.query(context.Background(), "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (\n"+query+"\n)", func(v []any) error {
			row := make([]string, len(v))
			for i := range v {
				if row[i] = "∅"; v[i] != nil {
					row[i] = v[i].(string)
				}
			}
			got = append(got, strings.Join(row, "|"))
			return nil
		})
	}
	if err != nil {
		err = table.explain(err)
	}
	if c.err != "" {
		first := ""
		if err != nil {
			first, _, _ = strings.Cut(err.Error(), "\n")
		}
		if first != c.err {
			t.Errorf("error %q, want %q", first, c.err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func mustColumns(t *testing.T, s *session, query string) []string {
	t.Helper()
	columns, err := s.Describe(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

var _ = diag.SourceColumn
