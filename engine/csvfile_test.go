package engine

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/project"
)

func readerOf(text string, d csvDialect) *csvReader {
	return &csvReader{d: d, r: bufio.NewReader(strings.NewReader(text)), line: 1, file: io.NopCloser(nil)}
}

func allRecords(r *csvReader) (records [][]string, lines []int, err error) {
	for {
		fields, line, err := r.next()
		if errors.Is(err, io.EOF) {
			return records, lines, nil
		}
		if err != nil {
			return records, lines, err
		}
		records, lines = append(records, fields), append(lines, line)
	}
}

func TestCSVReader(t *testing.T) {
	plain := dialectOf(nil)
	tests := []struct {
		name, text string
		d          csvDialect
		want       [][]string
		lines      []int
		err        string
	}{
		{"lines", "a,b\n1,2\n", plain, [][]string{{"a", "b"}, {"1", "2"}}, []int{1, 2}, ""},
		{"no final newline", "a,b\r\n1,", plain, [][]string{{"a", "b"}, {"1", ""}}, []int{1, 2}, ""},
		{"lone carriage returns", "a\rb\r", plain, [][]string{{"a"}, {"b"}}, []int{1, 2}, ""},
		{"quotes", "\"a\"\"b\",\"c\nd\"\nx,y\n", plain, [][]string{{`a"b`, "c\nd"}, {"x", "y"}}, []int{1, 3}, ""},
		{"quote inside", "a\"b,c\n", plain, [][]string{{`a"b`, "c"}}, []int{1}, ""},
		{"empty lines", "a,b\n\n\n1,2\n", plain, [][]string{{"a", "b"}, {"1", "2"}}, []int{1, 4}, ""},
		{"delimiter of two characters", "a||b|c\n", dialectOf(map[string]string{"delimiter": "||"}), [][]string{{"a", "b|c"}}, []int{1}, ""},
		{"escape", "'it\\'s',x\n", dialectOf(map[string]string{"quote": "'", "escape": "\\"}), [][]string{{"it's", "x"}}, []int{1}, ""},
		{"comments", "#c\na\n# x\nb\n", dialectOf(map[string]string{"comment": "#"}), [][]string{{"a"}, {"b"}}, []int{2, 4}, ""},
		{"never closed", "a\n\"b\n", plain, [][]string{{"a"}}, []int{1}, "a quoted value is never closed"},
		{"text behind a quote", "\"a\"b\n", plain, nil, nil, "text follows the closing quote of a value"},
	}
	for _, test := range tests {
		got, lines, err := allRecords(readerOf(test.text, test.d))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(test.lines, lines); diff != "" {
			t.Errorf("%s lines (-want +got):\n%s", test.name, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%s: %v, want %q", test.name, err, test.err)
		}
	}
}

// TestCSVRoundTrip: what any writer of CSV wrote, this reader and the engine read
// alike: odd texts keep their places and their characters.
func TestCSVRoundTrip(t *testing.T) {
	s := testSession(t)
	cell := rapid.StringMatching(`[a-z0-9,;"' \nä-]{0,6}`)
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(2, 4).Draw(rt, "columns")
		header := make([]string, width)
		for i := range header {
			header[i] = string(rune('a'+i)) + rapid.StringMatching(`[,;"' ä]{0,2}`).Draw(rt, "header")
		}
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 0, 6).Draw(rt, "rows")
		var b strings.Builder
		w := csv.NewWriter(&b)
		w.UseCRLF = rapid.Bool().Draw(rt, "crlf")
		if err := w.WriteAll(append([][]string{header}, rows...)); err != nil {
			rt.Fatal(err)
		}
		records, _, err := allRecords(readerOf(b.String(), dialectOf(nil)))
		if err != nil {
			rt.Fatal(err)
		}
		want := append([][]string{header}, rows...)
		for i, row := range want { // the writer turns line breaks in values into its own
			for k := range row {
				if w.UseCRLF {
					want[i][k] = strings.ReplaceAll(row[k], "\n", "\r\n")
				}
			}
		}
		if diff := cmp.Diff(want, records); diff != "" {
			rt.Fatalf("%q (-want +got):\n%s", b.String(), diff)
		}
		dir := writeFiles(t, map[string]string{"a.csv": b.String()})
		table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: []string{filepath.Join(dir, "a.csv")}, format: "csv", extra: "keep", ordered: true}
		query, err := table.csvQuery()
		if err != nil {
			rt.Fatal(err)
		}
		got := [][]string{header}
		if err := s.Query(t.Context(), query, func(v []any) error {
			row := make([]string, len(v))
			for i := range v {
				row[i], _ = v[i].(string) // NULL for an empty value
			}
			got = append(got, row)
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("the engine: %q (-want +got):\n%s", b.String(), diff)
		}
	})
}

func FuzzCSVReader(f *testing.F) {
	f.Add("a,b\n\"x\"\"y\",z\r\n", ",", `"`)
	f.Add("a||b", "||", "")
	f.Fuzz(func(t *testing.T, text, delimiter, quote string) {
		if delimiter == "" || len(delimiter) > 4 || len(quote) > 1 {
			return
		}
		r := readerOf(text, dialectOf(map[string]string{"delimiter": delimiter, "quote": quote}))
		last := 0
		for {
			_, line, err := r.next()
			if err != nil {
				return
			}
			if line < last {
				t.Fatalf("line %d comes after line %d in %q", line, last, text)
			}
			last = line
		}
	})
}

// TestCSVRefused: what the engine would take otherwise than it is written, or
// without telling where it fails.
func TestCSVRefused(t *testing.T) {
	tests := []struct{ name, text, columns, err string }{
		{"a line end of its own kind, LF", "a,b\r\n1,2\n3,4\r\n", "a: BIGINT", "a.csv:2: the file has mixed line ends: this line does not end as the first one does [RBT4022]"},
		{"a line end of its own kind, CRLF", "a,b\n1,2\n3,4\r\n5,6\n", "", "a.csv:3: the file has mixed line ends: this line does not end as the first one does [RBT4022]"},
		{"CRLF behind a quote", "a,b\n1,\"2\"\r\n3,4\n", "", "a.csv:2: the file has mixed line ends: this line does not end as the first one does [RBT4022]"},
		{"line ends in quotes", "a,b\n1,\"2\r\n3\"\n", "", ""},
		{"underscore", "a\n1\n1_000\n", "a: INTEGER", `a.csv:3: column a: "1_000" is not INTEGER [RBT4022]`},
		{"underscore and point", "a\n1_0.0\n", "a: BIGINT", `a.csv:2: column a: "1_0.0" is not BIGINT [RBT4022]`},
		{"hexadecimal", "a\n0x1F\n", "a: BIGINT", `a.csv:2: column a: "0x1F" is not BIGINT [RBT4022]`},
		{"binary", "a\n0B11\n", "a: UINTEGER", `a.csv:2: column a: "0B11" is not UINTEGER [RBT4022]`},
		{"exponent", "a\n1e2\n", "a: HUGEINT", `a.csv:2: column a: "1e2" is not HUGEINT [RBT4022]`},
		{"fraction", "a\n1.5\n", "a: BIGINT", `a.csv:2: column a: "1.5" is not BIGINT [RBT4022]`},
		{"plain integers", "a,b\n7,x\n-7,x\n+7,x\n007,x\n 7 ,x\n7.0,x\n7.,x\n,x\n", "a: BIGINT", ""},
	}
	s := testSession(t)
	for _, test := range tests {
		dir := writeFiles(t, map[string]string{"a.csv": test.text})
		table := &fileTable{project: &project.Project{Dir: dir}, name: "source s.t", files: []string{filepath.Join(dir, "a.csv")}, format: "csv", columns: cols(test.columns), extra: "keep"}
		_, _, err := readTable(s, table)
		first := ""
		if err != nil {
			first, _, _ = strings.Cut(err.Error(), "\n")
		}
		if first != test.err {
			t.Errorf("%s: %q, want %q", test.name, first, test.err)
		}
	}
}
