package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
)

// TestOnlyRead: a name is replaced only where each of its places is one at which
// rows are read.
func TestOnlyRead(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`select k from "main"."x"`, `select k from (Q)`},
		{`select k from main.x`, `select k from (Q)`},
		{`select k from MAIN."X" as a where a.k > 1`, `select k from (Q) as a where a.k > 1`},
		{`with a as (select * from "main"."x"), b as (select * from "main"."y") select * from a join b on a.k = b.k join "main"."x" c on true`,
			`with a as (select * from (Q)), b as (select * from "main"."y") select * from a join b on a.k = b.k join (Q) c on true`},
		{`from "main"."x"`, `from (Q)`},
		{`select x.k from "main"."x"`, ""},
		{`select x from "main"."x"`, ""},
		{`select "X".k from "main"."x"`, ""},
		{`select k as x from "main"."x"`, ""},
		{`with x as (select 1 as k) select * from "main"."x"`, ""},
		{`select main.x.k from "main"."x"`, ""},
		{`select k from x`, ""},
		{`select k from a, "main"."x"`, ""},
		{`select k from a where a.k is distinct from "main"."x"`, ""},
		{`select k from other.main.x`, ""},
		{`select k from raw.x where k > (select max(k) from main.x)`, `select k from raw.x where k > (select max(k) from (Q))`},
		{`select x.k from raw.x where k > (select max(k) from main.x)`, ""},
		{`select k from raw.x where k is distinct from raw.x or k > (select max(k) from main.x)`, ""},
		{`select 'x' as s from "main"."x"`, `select 'x' as s from (Q)`},
	} {
		st, err := oneQuery(test.text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if places := st.onlyRead("main", "x"); len(places) > 0 {
			at := map[int]string{}
			for _, i := range places {
				at[i] = "(Q)"
			}
			got = st.replaced(at)
		}
		if got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.text, got, test.want)
		}
	}
}

// statementsOf are the first words of what the engine was asked for a node in the
// last command.
func (w *world) statementsOf(node string) []string {
	var words []string
	for _, ev := range w.events {
		if ev.Kind == EventStatement && ev.Statement.Node == node && !ev.Statement.Done {
			words = append(words, strings.Join(strings.Fields(ev.Statement.SQL)[:2], " "))
		}
	}
	return words
}

// TestSmallModelIsOneStatement: what was bound before the run is only run when
// its turn comes, and reads its small parents in place.
func TestSmallModelIsOneStatement(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql": "select 1::bigint as k, 'x' as s, 5 as i",
		"models/b.sql": "select k, s, i from {{ ref('a') }} where k > 0",
		"models/c.sql": "select a.k, b.i from {{ ref('a') }} as a join {{ ref('b') }} as b on a.k = b.k",
	})
	w.must(command{trace: true})
	for node, want := range map[string][]string{
		"a": {"COPY ("}, "b": {"COPY ("},
		// A name that is used as another is left to the engine.
		"c": {"CREATE OR", "CREATE OR", "COPY ("},
	} {
		if diff := cmp.Diff(want, w.statementsOf(node)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", node, diff)
		}
	}
	if diff := cmp.Diff([]string{"k|s|i", "1|x|5"}, w.rows("select k, s, i from read_parquet('"+filepath.ToSlash(filepath.Join(w.dir, "lake", "b.parquet"))+"')")); diff != "" {
		t.Errorf("b: (-want +got)\n%s", diff)
	}
}

// TestInPlaceErrors: what fails when it reads files in place is told as if it had
// read them by their names.
func TestInPlaceErrors(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql": "select 'x' as s",
		"models/b.sql": "select\n  cast(s as bigint) as n\nfrom {{ ref('a') }}",
	})
	result := w.must(command{})
	err := result.Nodes[1].Err
	if err == nil || !strings.Contains(err.Error(), "models/b.sql:2:3") || !strings.Contains(err.Error(), "Could not convert string 'x' to INT64") {
		t.Errorf("b: %v", err)
	}
}

// TestColumnsAreThoseOfTheRun: what a run changes under a model is seen by it, by
// whatever way it is read.
func TestColumnsAreThoseOfTheRun(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/a.sql":       "select 1::bigint as k",
		"models/file.sql":    "-- depends_on: {{ ref('a') }}\nselect * from '{{ var('lake') }}/a.parquet'",
		"models/v.sql":       "---\nmaterialization: view\n---\nselect * from {{ source('raw', 'o') }}",
		"models/over.sql":    "select * from {{ ref('v') }}",
		"models/sources.yml": "sources:\n  - name: raw\n    tables:\n      - name: o\n        path: data/o.csv\n",
		"data/o.csv":         "x\n1\n",
	})
	w.vars = map[string]any{"lake": filepath.ToSlash(filepath.Join(w.dir, "lake"))}
	w.must(command{})
	w.write("models/a.sql", "select 1::bigint as k, 'new' as s")
	w.write("data/o.csv", "x,y\n1,2\n")
	w.must(command{sel: []string{"a", "file", "over"}})
	for name, want := range map[string]string{"file": "k BIGINT, s VARCHAR", "over": "x VARCHAR, y VARCHAR"} {
		var stored, noted []string
		for _, c := range w.rows("describe from 'LAKE/" + name + ".parquet'")[1:] {
			cells := strings.Split(c, "|")
			stored = append(stored, cells[0]+" "+cells[1])
		}
		for _, c := range w.receipt(name).Outputs[0].Columns {
			noted = append(noted, c.Name+" "+c.Type)
		}
		if got := strings.Join(stored, ", "); got != want {
			t.Errorf("%s holds %s, want %s", name, got, want)
		}
		if got := strings.Join(noted, ", "); got != want {
			t.Errorf("the receipt of %s says %s, want %s", name, got, want)
		}
	}
}

func (w *world) receipt(name string) lake.Receipt {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.dir, "lake", ".rbt", "state", name+".json"))
	var r lake.Receipt
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// TestWholeFile: a file that is read by a call gives the columns that were stored
// and no others, by whatever way they are named.
func TestWholeFile(t *testing.T) {
	files := map[string]string{
		"models/a.sql": "---\npath: y=1\n---\nselect 2::bigint as k, 'a' as s union all select 1, 'b'",
		"models/o.sql": "select 1::bigint as k, 'outer' as filename, 7 as file_row_number",
	}
	a, o := "{{ ref('a') }}", "{{ ref('o') }}"
	tests := map[string]struct {
		sql    string
		called bool // by calls alone
		want   []string
	}{
		"star":    {"select * from " + a + " x", true, []string{"k|s", "1|b", "2|a"}},
		"stars":   {"select y.*, x.k as n from " + a + " as x join " + a + " as y on x.k = y.k where x.s = 'a'", true, []string{"k|s|n", "2|a|2"}},
		"struct":  {"select x from " + a + " x where x.k = 1", true, []string{"x", "map[k:1 s:b]"}},
		"unnamed": {"select k from " + a + " where s = 'a'", false, []string{"k", "2"}},
		"first":   {"from " + a + " select k", false, []string{"k", "1", "2"}},
		"outer":   {"select p.k, (select max(s) from " + a + " x where filename = 'outer') as m from " + o + " p", false, []string{"k|m", "1|b"}},
		"row":     {"select p.k, (select max(s) from " + a + " x where x.k + 6 = File_Row_Number) as m from " + o + " p", false, []string{"k|m", "1|b"}},
		"alias":   {"select x.k as file_index from " + a + " x where file_index > 1", false, []string{"file_index", "2"}},
		"natural": {"select s from " + a + " x natural join " + o + " p", false, []string{"s", "b"}},
	}
	for name, test := range tests {
		files["models/m_"+name+".sql"] = test.sql
	}
	w := newWorld(t, files)
	for _, n := range w.must(command{trace: true}).Nodes {
		if n.Err != nil {
			t.Errorf("%s: %v", n.Name, n.Err)
		}
	}
	for name, test := range tests {
		for _, ev := range w.events {
			if ev.Kind != EventStatement || ev.Statement.Node != "m_"+name || ev.Statement.Done {
				continue
			}
			if called := !strings.Contains(ev.Statement.SQL, "(SELECT "); !strings.HasPrefix(ev.Statement.SQL, "COPY") || called != test.called {
				t.Errorf("%s: %s", name, ev.Statement.SQL)
			}
		}
		if diff := cmp.Diff(test.want, w.rows("select * from 'LAKE/m_"+name+".parquet' order by all")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestWholeFileHidesNoColumn: no call of read_parquet has columns besides those of
// its files that a text could name and hidesNothing does not look for.
func TestWholeFileHidesNoColumn(t *testing.T) {
	s := testSession(t)
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := s.Exec(t.Context(), "COPY (SELECT 1 AS k) TO "+quoteText(path)+" (FORMAT parquet)"); err != nil {
		t.Fatal(err)
	}
	// The engine's advice names whatever is like a name.
	for _, name := range append([]string{"filename", "file_index", "file_row_number", "rowid"}, strings.Fields(
		"file file_name path row_number row_group row_group_id file_size file_path snapshot_id last_modified bucket partition "+
			"schema columns row_id rownum ctid tableoid oid index position size offset version empty virtual name input_file_name")...) {
		st, err := oneQuery("select " + quoteIdent(name) + " from t")
		if err != nil {
			t.Fatal(err)
		}
		if s.Query(t.Context(), "SELECT "+quoteIdent(name)+" FROM "+wholeFile(path), func([]any) error { return nil }) == nil && st.hidesNothing() {
			t.Errorf("%s is a column of %s", name, wholeFile(path))
		}
	}
}
