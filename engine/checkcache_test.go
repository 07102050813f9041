package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/memory"
)

// TestCheckRemembers: what was found right is believed, and looked at again when
// anything changed on which it depends.
func TestCheckRemembers(t *testing.T) {
	const columns = "sources:\n  - name: r\n    tables:\n      - {name: t, path: none/*.csv, columns: {id: BIGINT, day: DATE}}\n"
	first := map[string]string{
		"models/s.yml":     columns,
		"models/a.sql":     "select id, day from {{ source('r', 't') }}",
		"models/b.sql":     "select id + 1 as n, day from {{ ref('a') }}",
		"models/c.sql":     "---\ncolumns: {n: {type: BIGINT}}\n---\nselect sum(n) :: BIGINT as n from {{ ref('b') }} group by date_trunc('year', day)",
		"models/inc.sql":   "---\nmaterialization: incremental\n---\nselect n from {{ ref('b') }} {% if is_incremental() %} where n > (select max(n) from {{ this }}) {% endif %}",
		"models/file.sql":  "select x from read_csv('" + "$DIR/one.csv')",
		"one.csv":          "x\n1\n",
		"models/below.sql": "select x from {{ ref('file') }}",
	}
	tests := []struct {
		name  string
		edits map[string]string
		want  []string
	}{
		{"nothing", nil, nil},
		{"the type of a source", map[string]string{"models/s.yml": strings.Replace(columns, "id: BIGINT", "id: VARCHAR", 1)},
			[]string{`models/b.sql:1:11: No function matches the given name and argument types '+(VARCHAR, INTEGER_LITERAL)'. You might need to add explicit type casts [RBT4008]`}},
		{"a column of a source", map[string]string{"models/s.yml": strings.Replace(columns, "day", "dya", 1)},
			[]string{`models/a.sql:1:12: Referenced column "day" not found in FROM clause [RBT4006]`}},
		{"the type of a parent", map[string]string{"models/a.sql": "select id, day :: VARCHAR || '!' as day from {{ source('r', 't') }}"},
			[]string{`models/c.sql:4:59: No function matches the given name and argument types 'date_trunc(STRING_LITERAL, VARCHAR)'. You might need to add explicit type casts [RBT4008]`}},
		{"the type of a grandparent's column, through a star", map[string]string{
			"models/a.sql": "select * from {{ source('r', 't') }}", "models/b.sql": "select * replace (id :: VARCHAR as id), 1 as m from {{ ref('a') }}",
			"models/c.sql": "select m from {{ ref('b') }}", "models/inc.sql": "select sum(id) as n from {{ ref('b') }}"},
			[]string{`models/inc.sql:1:8: No function matches the given name and argument types 'sum(VARCHAR)'. You might need to add explicit type casts [RBT4008]`}},
		{"a declared type under contract", map[string]string{
			"models/c.sql": "---\ncontract: true\ncolumns: {n: {type: VARCHAR}}\n---\n" + strings.SplitN(first["models/c.sql"], "---\n", 3)[2]},
			[]string{`models/c.sql:3:21: the result does not keep the contract: n has another type [RBT5010]`}},
		{"a file that the text names", map[string]string{"one.csv": "y\n1\n"},
			[]string{`models/file.sql:1:8: Referenced column "x" not found in FROM clause [RBT4006]`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			put := func(files map[string]string) {
				for name, text := range files {
					w.write(name, strings.ReplaceAll(text, "$DIR", filepath.ToSlash(w.dir)))
				}
			}
			put(first)
			if found := w.check(); len(found) > 0 {
				t.Fatal(found)
			}
			put(test.edits)
			for range 2 { // what is wrong is not forgotten
				if diff := cmp.Diff(test.want, w.check()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			put(first)
			if found := w.check(); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

// TestCheckBelieves: the remembered columns are used, so that the engine is not
// asked again.
func TestCheckBelieves(t *testing.T) {
	w := newWorld(t, map[string]string{"models/a.sql": "select 1 as id", "models/b.sql": "select id from {{ ref('a') }}"})
	if found := w.check(); len(found) > 0 {
		t.Fatal(found)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "target", "cache", checkPrefix+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	body, ok := memory.Open(string(text), answersMark)
	if !ok {
		t.Fatal("what is kept is not whole")
	}
	edited := strings.ReplaceAll(body, `"id"`, `"other"`)
	if err := os.WriteFile(files[0], []byte(answersMark+edited+memory.Sum(edited)), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{`models/b.sql:1:8: Referenced column "id" not found in FROM clause [RBT4006]`}
	if diff := cmp.Diff(want, w.check()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "target")); err != nil {
		t.Fatal(err)
	}
	if found := w.check(); len(found) > 0 {
		t.Error(found)
	}
}
