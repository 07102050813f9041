package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rbt/internal/project"
)

// parquetFiles writes a file for each query.
func parquetFiles(t *testing.T, s *session, queries map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, q := range queries {
		if _, err := s.CopyTo(context.Background(), q, filepath.Join(dir, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestParquetTable(t *testing.T) {
	s := testSession(t)
	tests := []struct {
		name    string
		files   map[string]string
		columns string
		extra   string
		types   string
		rows    []string
		err     string
	}{
		{name: "order differs", files: map[string]string{"a.parquet": "select 1 as a, 'x' as b", "b.parquet": "select 'y' as b, 2 as a"}, types: "a INTEGER, b VARCHAR", rows: []string{"1|x", "2|y"}},
		{name: "a column more", files: map[string]string{"a.parquet": "select 1 as a", "b.parquet": "select 2 as a, 'y' as b"}, types: "a INTEGER, b VARCHAR", rows: []string{"1|∅", "2|y"}},
		{name: "types differ", files: map[string]string{"a.parquet": "select 1 as a", "b.parquet": "select 2::bigint as a"}, err: "b.parquet: column a is BIGINT here and INTEGER in a.parquet [RBT4024]"},
		{name: "types differ but declared", files: map[string]string{"a.parquet": "select 1 as a", "b.parquet": "select 2::bigint as a"}, columns: "a: BIGINT", types: "a BIGINT", rows: []string{"1", "2"}},
		{name: "a struct key more", files: map[string]string{"a.parquet": "select {'x': 1} as s", "b.parquet": "select {'x': 2, 'y': 'q'} as s"}, err: "b.parquet: column s is STRUCT(x INTEGER, y VARCHAR) here and STRUCT(x INTEGER) in a.parquet [RBT4024]"},
		{name: "declared missing", files: map[string]string{"a.parquet": "select 1 as a"}, columns: "b: BIGINT", err: "a.parquet: the declared column b is missing [RBT4021]"},
		{name: "extra refused", files: map[string]string{"a.parquet": "select 1 as a, 2 as bb"}, columns: "a: INTEGER", extra: "error", err: "a.parquet: column bb is not declared [RBT4021]"},
		{name: "extra ignored", files: map[string]string{"a.parquet": "select 1 as a, 2 as bb"}, columns: "a: INTEGER", extra: "ignore", types: "a INTEGER", rows: []string{"1"}},
		{name: "cast that loses", files: map[string]string{"a.parquet": "select 1.7 as a"}, columns: "a: BIGINT", err: `a.parquet: row 1, column a: "1.7" is not BIGINT [RBT4022]`},
		{name: "cast that keeps", files: map[string]string{"a.parquet": "select '12' as a, 3.0 as b"}, columns: "a: BIGINT; b: INTEGER", types: "a BIGINT, b INTEGER", rows: []string{"12|3"}},
		{name: "leading zeros", files: map[string]string{"a.parquet": "select '012' as a"}, columns: "a: BIGINT", err: `a.parquet: row 1, column a: "012" is not BIGINT [RBT4022]`},
		{name: "the row of a later file", files: map[string]string{"a.parquet": "select 1::bigint as a", "b.parquet": "select unnest([2, 3, 5000000000]) as a"}, columns: "a: INTEGER",
			err: `b.parquet: row 3, column a: "5000000000" is not INTEGER [RBT4022]`},
		{name: "a row of a file with such names", files: map[string]string{"a.parquet": "select 5000000000 as a, 'x' as filename"}, columns: "a: INTEGER",
			err: `source s.t, column a: "5000000000" is not INTEGER [RBT4022]`},
		{name: "a field that the type lacks", files: map[string]string{"a.parquet": "select {'x': 1, 'z': 2} as a"}, columns: "a: STRUCT(x INTEGER)", extra: "error",
			err: "a.parquet: a.z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "fields in lists and maps", files: map[string]string{"a.parquet": "select [{'x': 1, 'y': {'z': 2}}] as a"}, columns: "a: STRUCT(x INTEGER, y STRUCT(q INTEGER))[]",
			err: "a.parquet: a[].y.z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "fields of values of a map", files: map[string]string{"a.parquet": "select MAP{'k': {'x': 1, 'z': 2}} as a"}, columns: "a: MAP(VARCHAR, STRUCT(x INTEGER))",
			err: "a.parquet: a[].z is not declared: the type of the column a has no place for it [RBT4021]"},
		{name: "fields left out", files: map[string]string{"a.parquet": "select [{'x': 1, 'z': 2}] as a, MAP{'k': {'X': 1, 'z': 2}} as m"}, columns: "a: STRUCT(x BIGINT)[]; m: MAP(VARCHAR, STRUCT(x BIGINT))", extra: "ignore",
			types: "a STRUCT(x BIGINT)[], m MAP(VARCHAR, STRUCT(x BIGINT))", rows: []string{"[{'x': 1}]|{k={'x': 1}}"}},
		{name: "a field less", files: map[string]string{"a.parquet": "select {'x': 1} as a"}, columns: "a: STRUCT(x INTEGER, y INTEGER)", types: "a STRUCT(x INTEGER, y INTEGER)", rows: []string{"{'x': 1, 'y': NULL}"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := parquetFiles(t, s, test.files)
			files, err := expandPatterns([]string{filepath.Join(dir, "*")})
			if err != nil {
				t.Fatal(err)
			}
			if test.extra == "" {
				test.extra = "keep"
			}
			table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: files, format: "parquet", columns: cols(test.columns), extra: test.extra}
			types, rows, err := readTable(s, table)
			first := ""
			if err != nil {
				first, _, _ = strings.Cut(err.Error(), "\n")
			}
			if first != test.err {
				t.Fatalf("error %q, want %q", first, test.err)
			}
			if types != test.types && test.err == "" {
				t.Errorf("types %s, want %s", types, test.types)
			}
			if diff := cmp.Diff(test.rows, rows); test.err == "" && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestParquetSchema: files are told apart by their footers exactly where the
// engine finds other columns in them.
func TestParquetSchema(t *testing.T) {
	s := testSession(t)
	queries := []string{
		"select 1 as a", "select 2 as a", "select 1::bigint as a", "select 1 as b", "select 1.5 as a", "select 1.25 as a", "select 'x' as a",
		"select '1'::json as a", "select '2'::json as a", "select [1] as a", "select [1::bigint] as a", "select {'x': 1} as a", "select {'x': 1, 'y': 2} as a", "select {'z': 1} as a",
		"select map {'k': 1} as a", "select timestamp '2024-01-01' as a", "select timestamptz '2024-01-01' as a", "select date '2024-01-01' as a",
		"select uuid '00000000-0000-0000-0000-000000000000' as a", "select 'x'::blob as a", "select 1::utinyint as a", "select 1::tinyint as a",
		"select interval 1 day as a", "select time '01:00' as a", "select 1 as a, 2 as b", "select 2 as b, 1 as a",
	}
	files := map[string]string{}
	for i, q := range queries {
		files[fmt.Sprintf("%02d.parquet", i)] = q
	}
	dir := parquetFiles(t, s, files)
	byFooter, byColumns := map[string]string{}, map[string]string{}
	for i := range queries {
		path := filepath.Join(dir, fmt.Sprintf("%02d.parquet", i))
		footer := parquetSchema(path)
		columns, err := s.Describe(context.Background(), "SELECT * FROM read_parquet("+quoteText(path)+")")
		if err != nil || footer == "" {
			t.Fatalf("%s: %v, footer %q", queries[i], err, footer)
		}
		text := fmt.Sprint(columns)
		if seen, ok := byFooter[footer]; ok && seen != text {
			t.Errorf("%s: one footer for %s and %s", queries[i], seen, text)
		}
		if seen, ok := byColumns[text]; ok && seen != footer {
			t.Errorf("%s: two footers for %s", queries[i], text)
		}
		byFooter[footer], byColumns[text] = text, footer
	}
	if got := parquetSchema(filepath.Join(dir, "none.parquet")); got != "" {
		t.Errorf("a missing file has the schema %q", got)
	}
}

func TestBrokenParquet(t *testing.T) {
	s := testSession(t)
	dir := writeFiles(t, map[string]string{"a.parquet": "no parquet"})
	table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: []string{filepath.Join(dir, "a.parquet")}, format: "parquet", extra: "keep"}
	_, _, err := readTable(s, table)
	if err == nil || !strings.HasPrefix(err.Error(), "a.parquet: cannot be read as Parquet: ") {
		t.Errorf("%v", err)
	}
}

func compressed(t *testing.T, text, how string) string {
	t.Helper()
	var b strings.Builder
	switch how {
	case "gz":
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	case "zst":
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	default:
		return text
	}
	return b.String()
}

// TestCompressedFiles: .gz and .zst are read like plain files, in one table, and
// errors in them have their line.
func TestCompressedFiles(t *testing.T) {
	s := testSession(t)
	for _, format := range []string{"csv", "ndjson", "json"} {
		text := map[string]string{"csv": "id,n\n%d,x\n", "ndjson": "{\"id\":%d,\"n\":\"x\"}\n", "json": "[{\"id\":%d,\"n\":\"x\"}]"}[format]
		bad := map[string]string{"csv": "id,n\n1,x\nq,y\n", "ndjson": "{\"id\":1,\"n\":\"x\"}\n{\"id\":\"q\",\"n\":\"x\"}\n", "json": "[{\"id\":1,\"n\":\"x\"},\n {\"id\":\"q\",\"n\":\"x\"}]"}[format]
		files := map[string]string{}
		for i, how := range []string{"plain", "gz", "zst"} {
			name := "a." + format
			if how != "plain" {
				name += "." + how
			}
			files[name] = compressed(t, fmt.Sprintf(text, i), how)
		}
		dir := writeFiles(t, files)
		table := func() *fileTable {
			found, err := expandPatterns([]string{filepath.Join(dir, "*")})
			if err != nil {
				t.Fatal(err)
			}
			return &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: found, format: format, columns: cols("id: BIGINT; n: VARCHAR"), extra: "error", tempDir: t.TempDir()}
		}
		_, rows, err := readTable(s, table())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"0|x", "1|x", "2|x"}, rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
		if err := os.WriteFile(filepath.Join(dir, "b."+format+".gz"), []byte(compressed(t, bad, "gz")), 0o666); err != nil {
			t.Fatal(err)
		}
		_, _, err = readTable(s, table())
		line := map[string]string{"csv": "3", "ndjson": "2", "json": "2"}[format]
		if want := fmt.Sprintf("b.%s.gz:%s: column id: \"q\" is not BIGINT [RBT4022]", format, line); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", format, err, want)
		}
	}
}

func TestExpandPatterns(t *testing.T) {
	dir := writeFiles(t, map[string]string{"w [1].csv": "", "w 1.csv": "", "star*.csv": "", "starfish.csv": "", "sub/deep/x.csv": "", ".hidden/h.csv": "", ".h.csv": "", "b.txt": ""})
	tests := []struct {
		patterns []string
		want     []string
	}{
		{[]string{"w [1].csv"}, []string{"w [1].csv"}},
		{[]string{"w [0-9].csv"}, []string{"w 1.csv"}},
		{[]string{"star*.csv"}, []string{"star*.csv"}},
		{[]string{"sta*.csv"}, []string{"star*.csv", "starfish.csv"}},
		{[]string{"**/*.csv"}, []string{"star*.csv", "starfish.csv", "sub/deep/x.csv", "w 1.csv", "w [1].csv"}},
		{[]string{"b.txt", "**/x.csv", "b.txt"}, []string{"b.txt", "sub/deep/x.csv"}},
		{[]string{"none/*.csv"}, nil},
	}
	for _, test := range tests {
		var patterns []string
		for _, p := range test.patterns {
			patterns = append(patterns, filepath.Join(dir, p))
		}
		files, err := expandPatterns(patterns)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			rel, _ := filepath.Rel(dir, f)
			got = append(got, filepath.ToSlash(rel))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.patterns, diff)
		}
	}
	if _, err := expandPatterns([]string{filepath.Join(dir, "sub")}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
}

// TestUTF16 and other encodings of CSV files.
func TestEncodings(t *testing.T) {
	s := testSession(t)
	utf16 := "\xff\xfe"
	for _, r := range "a,b\n1,Müller\n" {
		utf16 += string([]byte{byte(r), byte(r >> 8)})
	}
	for encoding, text := range map[string]string{"utf-16": utf16, "latin-1": "a,b\n1,M\xfcller\n", "utf-8": "a,b\n1,Müller\n"} {
		dir := writeFiles(t, map[string]string{"a.csv": text})
		table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: []string{filepath.Join(dir, "a.csv")}, format: "csv", options: map[string]string{"encoding": encoding}, extra: "keep"}
		types, rows, err := readTable(s, table)
		if err != nil {
			t.Errorf("%s: %v", encoding, err)
			continue
		}
		if diff := cmp.Diff([]string{"1|Müller"}, rows); diff != "" || types != "a VARCHAR, b VARCHAR" {
			t.Errorf("%s: %s (-want +got):\n%s", encoding, types, diff)
		}
	}
}

func TestLongLines(t *testing.T) {
	s := testSession(t)
	dir := writeFiles(t, map[string]string{"a.csv": "id,t\n1,\"" + strings.Repeat("x", 3<<20) + "\"\n", "b.csv": "id,t\n1,y\n2,\"" + strings.Repeat("x", 17<<20) + "\"\n"})
	table := func(name string) *fileTable {
		return &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: []string{filepath.Join(dir, name)}, format: "csv", extra: "keep"}
	}
	_, rows, err := readTable(s, table("a.csv"))
	if err != nil || len(rows) != 1 || len(rows[0]) != 2+(3<<20) {
		t.Errorf("three megabytes: %d rows, %v", len(rows), err)
	}
	_, _, err = readTable(s, table("b.csv"))
	if want := "b.csv:3: the line is longer than 16 MiB [RBT4022]"; err == nil || err.Error() != want {
		t.Errorf("%.200v, want %s", err, want)
	}
}
