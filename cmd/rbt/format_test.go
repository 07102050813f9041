package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWriteRows(t *testing.T) {
	set := rowSet{
		columns: []string{"id", `a "b"`, "x,y"},
		rows: [][]cell{
			{{text: "170141183460469231731687303715884105727", json: "170141183460469231731687303715884105727"}, {text: "", json: `""`}, {null: true}},
			{{text: "inf", json: `"Infinity"`}, {text: "line\nbreak | pipe", json: `"line\nbreak | pipe"`}, {text: " a", json: `" a"`}},
		},
	}
	for format, want := range map[string]string{
		"csv": "id,\"a \"\"b\"\"\",\"x,y\"\n" +
			"170141183460469231731687303715884105727,\"\",\n" +
			"inf,\"line\nbreak | pipe\",\" a\"\n",
		"json": "[\n" +
			`  {"id": 170141183460469231731687303715884105727, "a \"b\"": "", "x,y": null},` + "\n" +
			`  {"id": "Infinity", "a \"b\"": "line\nbreak | pipe", "x,y": " a"}` + "\n]\n",
		"markdown": "| id | a \"b\" | x,y |\n| --- | --- | --- |\n" +
			"| 170141183460469231731687303715884105727 |  | NULL |\n" +
			"| inf | line\\nbreak \\| pipe |  a |\n",
		"table": "id                                      | a \"b\"              | x,y\n" +
			"----------------------------------------+--------------------+-----\n" +
			"170141183460469231731687303715884105727 |                    | NULL\n" +
			"inf                                     | line\\nbreak | pipe |  a\n" +
			"(2 rows)\n",
	} {
		var b strings.Builder
		if err := writeRows(&b, set, format); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", format, diff)
		}
	}
}

// No rows are an empty list and a bare header.
func TestWriteRowsEmpty(t *testing.T) {
	for format, want := range map[string]string{"csv": "a\n", "json": "[]\n", "markdown": "| a |\n| --- |\n", "table": "a\n-\n(0 rows)\n"} {
		var b strings.Builder
		if err := writeRows(&b, rowSet{columns: []string{"a"}}, format); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: %q, want %q", format, b.String(), want)
		}
	}
}

// What is written as CSV and JSON is read back as it was.
func TestWriteRowsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z ",\n]{1,5}`), 1, 4, rapid.ID[string]).Draw(t, "columns")
		set := rowSet{columns: columns}
		n := rapid.IntRange(0, 4).Draw(t, "rows")
		var want [][]string
		for range n {
			var row []cell
			var texts []string
			for range columns {
				text := rapid.StringMatching(`[a-z ",\n|é]{0,6}`).Draw(t, "text")
				j, _ := json.Marshal(text)
				row = append(row, cell{text: text, json: string(j)})
				texts = append(texts, text)
			}
			set.rows = append(set.rows, row)
			want = append(want, texts)
		}
		var c, j strings.Builder
		if err := writeRows(&c, set, "csv"); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(strings.NewReader(c.String())).ReadAll()
		if err != nil {
			t.Fatalf("%q: %v", c.String(), err)
		}
		if diff := cmp.Diff(append([][]string{columns}, want...), records); diff != "" {
			t.Fatalf("csv (-want +got)\n%s", diff)
		}
		if err := writeRows(&j, set, "json"); err != nil {
			t.Fatal(err)
		}
		var objects []map[string]string
		if err := json.Unmarshal([]byte(j.String()), &objects); err != nil {
			t.Fatalf("%q: %v", j.String(), err)
		}
		for i, o := range objects {
			for k, name := range columns {
				if o[name] != want[i][k] {
					t.Fatalf("json row %d: %q is %q, want %q", i, name, o[name], want[i][k])
				}
			}
		}
	})
}

// Columns keep their names but for those that came before.
func TestOnlyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a_1", "a_1_1", "a_2", "A", ""}), 0, 9).Draw(t, "columns")
		names := onlyNames(columns)
		seen, came := map[string]bool{}, map[string]bool{}
		for i, name := range names {
			if seen[name] {
				t.Fatalf("%q of %q stands twice in %q", name, columns, names)
			}
			if !came[columns[i]] && name != columns[i] || !strings.HasPrefix(name, columns[i]) {
				t.Fatalf("%q became %q among %q", columns[i], name, names)
			}
			seen[name], came[columns[i]] = true, true
		}
	})
}
