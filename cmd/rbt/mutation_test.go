package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mutationProject has one node of every kind that passes changes on.
func mutationProject() map[string]string {
	return map[string]string{
		"project.yml": `name: shop
vars: {used: 1, unused: 2}
engine: {settings: {default_null_order: nulls_last}}
sources:
  - name: raw
    tables: [{name: orders, path: raw/*.csv, columns: {id: BIGINT, v: BIGINT}}]
`,
		"raw/a.csv":             "id,v\n1,10\n2,20\n",
		"seeds/codes.csv":       "code\na\n",
		"macros/used.sql":       "{% macro twice(c) %}({{ c }} * 2){% endmacro %}\n",
		"macros/unused.sql":     "{% macro thrice(c) %}({{ c }} * 3){% endmacro %}\n",
		"models/base.sql":       "---\ndescription: the base\ntags: [daily]\ncolumns: {id: {tests: [not_null]}}\n---\nselect id, {{ twice('v') }} as v, {{ var('used') }} as u, 'a  b' as lit\nfrom {{ source('raw', 'orders') }}\n",
		"models/eph.sql":        "---\nmaterialization: ephemeral\n---\nselect id, v from {{ ref('base') }} where id > 0\n",
		"models/from_eph.sql":   "select sum(v) as v from {{ ref('eph') }}\n",
		"models/vw.sql":         "---\nmaterialization: view\n---\nselect id, v from {{ ref('base') }}\n",
		"models/from_vw.sql":    "select count(*) as n from {{ ref('vw') }}\n",
		"models/from_base.sql":  "select max(v) as v from {{ ref('base') }}\n",
		"models/log.sql":        "---\nmaterialization: incremental\n---\nselect id from {{ ref('base') }}{% if is_incremental() %} where false{% endif %}\n",
		"models/alone.sql":      "select 1 as x\n",
		"models/from_codes.sql": "select code from {{ ref('codes') }}\n",
	}
}

// below are the nodes that read base, directly or not.
func below(reason string) map[string]string {
	return map[string]string{"from_base": reason, "from_eph": reason, "from_vw": reason, "log": reason, "vw": reason}
}

// baseChanged is what becomes of these when base has other content.
func baseChanged() map[string]string {
	return with(below("parent base changed"), map[string]string{"from_eph": "parent eph changed", "from_vw": "parent vw changed"})
}

// with lays nodes over others.
func with(lots ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, lot := range lots {
		for name, reason := range lot {
			all[name] = reason
		}
	}
	return all
}

// mutationLab is a project in a folder, and commands on it.
type mutationLab struct {
	t   *testing.T
	dir string
	env map[string]string
}

// rbt runs a command in the process.
func (l mutationLab) rbt(want int, args ...string) (stdout, stderr string) {
	l.t.Helper()
	var out, errOut bytes.Buffer
	sys := newSystem()
	sys.stdout, sys.stderr = &out, &errOut
	sys.workDir = func() (string, error) { return l.dir, nil }
	sys.env = func(name string) (string, bool) { v, ok := l.env[name]; return v, ok }
	sys.terminal = func() (int, int, bool) { return 0, 0, false }
	if code := realMain(args, sys); code != want {
		l.t.Fatalf("rbt %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

func (l mutationLab) path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

func (l mutationLab) write(name, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.path(name)), 0o777); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(l.path(name), []byte(text), 0o666); err != nil {
		l.t.Fatal(err)
	}
}

func (l mutationLab) read(name string) string {
	l.t.Helper()
	text, err := os.ReadFile(l.path(name))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func (l mutationLab) replace(name, old, now string) {
	l.t.Helper()
	text := l.read(name)
	if !strings.Contains(text, old) {
		l.t.Fatalf("%s does not contain %q", name, old)
	}
	l.write(name, strings.ReplaceAll(text, old, now))
}

// results gives status and reason of every node and test of the last command.
func (l mutationLab) results() (status, reason map[string]string) {
	l.t.Helper()
	var doc struct {
		Results []struct {
			ID      string `json:"unique_id"`
			Status  string
			Adapter struct{ Reason *string } `json:"adapter_response"`
		}
	}
	if err := json.Unmarshal([]byte(l.read("target/run_results.json")), &doc); err != nil {
		l.t.Fatal(err)
	}
	status, reason = map[string]string{}, map[string]string{}
	for _, r := range doc.Results {
		name := r.ID
		if parts := strings.SplitN(r.ID, ".", 3); parts[0] == "model" || parts[0] == "seed" {
			name = parts[2]
		}
		status[name] = r.Status
		if r.Adapter.Reason != nil {
			reason[name] = *r.Adapter.Reason
		}
	}
	return status, reason
}

// rebuilt gives what the last run built, with the reasons.
func (l mutationLab) rebuilt() map[string]string {
	status, reason := l.results()
	out := map[string]string{}
	for name, s := range status {
		if s == "success" {
			out[name] = reason[name]
		}
	}
	return out
}

// newLab writes a project and publishes it.
func newLab(t *testing.T, files map[string]string) mutationLab {
	t.Helper()
	l := mutationLab{t: t, dir: t.TempDir()}
	for name, text := range files {
		l.write(name, text)
	}
	l.rbt(0, "run", "-q")
	return l
}

// mutation is an edit and what it makes a run build.
type mutation struct {
	name string
	edit func(l mutationLab)
	args []string
	want map[string]string // node -> reason
	// tests are those that the run asked again.
	tests []string
}

func mutations() []mutation {
	edit := func(name, old, now string) func(mutationLab) {
		return func(l mutationLab) { l.replace(name, old, now) }
	}
	return []mutation{
		{name: "nothing", edit: func(mutationLab) {}},
		{name: "comment", edit: edit("models/base.sql", "select id,", "-- why\nselect /* this */ id,")},
		{name: "template comment", edit: edit("models/base.sql", "select id,", "{# why #}select id,")},
		{name: "white space outside a literal", edit: edit("models/base.sql", "select id,", "select\n\n   id ,")},
		{name: "white space inside a literal", edit: edit("models/base.sql", "'a  b'", "'a   b'"),
			want: with(map[string]string{"base": "sql changed"}, baseChanged())},
		{name: "alias", edit: edit("models/from_base.sql", "as v", "as w"), want: map[string]string{"from_base": "sql changed"}},
		{name: "config that shapes data", edit: edit("models/from_base.sql", "select max", "---\npath: gold\n---\nselect max"),
			want: map[string]string{"from_base": "config changed: path"}},
		{name: "materialization", edit: edit("models/vw.sql", "materialization: view", "materialization: table"),
			want: map[string]string{"vw": "published as view before, table now", "from_vw": "parent vw changed"}},
		{name: "macro that is used", edit: edit("macros/used.sql", "* 2", "* 4"), want: with(map[string]string{"base": "sql changed"}, baseChanged())},
		{name: "macro that is not used", edit: edit("macros/unused.sql", "* 3", "* 9")},
		{name: "variable that is used", edit: func(mutationLab) {}, args: []string{"--var", "used=5"},
			want: with(map[string]string{"base": "sql changed"}, baseChanged())},
		{name: "variable that is not used", edit: func(mutationLab) {}, args: []string{"--var", "unused=5"}},
		{name: "source file touched", edit: func(l mutationLab) {
			at := time.Now().Add(time.Hour)
			if err := os.Chtimes(l.path("raw/a.csv"), at, at); err != nil {
				l.t.Fatal(err)
			}
		}, want: map[string]string{"base": "source file raw/a.csv changed"}},
		{name: "source file appended", edit: func(l mutationLab) { l.write("raw/a.csv", l.read("raw/a.csv")+"3,30\n") },
			want: with(map[string]string{"base": "source file raw/a.csv changed"}, baseChanged())},
		{name: "source file replaced, of the same size and time", edit: func(l mutationLab) {
			info, err := os.Stat(l.path("raw/a.csv"))
			if err != nil {
				l.t.Fatal(err)
			}
			l.write("raw/new", strings.ReplaceAll(l.read("raw/a.csv"), "20", "21"))
			if err := os.Chtimes(l.path("raw/new"), info.ModTime(), info.ModTime()); err != nil {
				l.t.Fatal(err)
			}
			if err := os.Rename(l.path("raw/new"), l.path("raw/a.csv")); err != nil {
				l.t.Fatal(err)
			}
		}, want: with(map[string]string{"base": "source file raw/a.csv changed"}, baseChanged())},
		{name: "source file added", edit: func(l mutationLab) { l.write("raw/b.csv", "id,v\n7,70\n") },
			want: with(map[string]string{"base": "source file raw/b.csv added"}, baseChanged())},
		{name: "source file removed", edit: func(l mutationLab) {
			if err := os.Rename(l.path("raw/a.csv"), l.path("raw/z.csv")); err != nil {
				l.t.Fatal(err)
			}
		}, want: map[string]string{"base": "source file raw/a.csv removed; source file raw/z.csv added"}},
		{name: "source declaration", edit: edit("project.yml", "v: BIGINT", "v: INTEGER"),
			want: with(map[string]string{"base": "declaration of source raw.orders changed"}, baseChanged())},
		{name: "seed", edit: func(l mutationLab) { l.write("seeds/codes.csv", "code\nb\n") },
			want: map[string]string{"codes": "seed file changed", "from_codes": "parent codes changed"}},
		{name: "description", edit: edit("models/base.sql", "the base", "the first")},
		{name: "tag", edit: edit("models/base.sql", "[daily]", "[hourly]")},
		{name: "meta and docs", edit: edit("models/base.sql", "tags: [daily]", "tags: [daily]\nmeta: {owner: ann}\ndocs: {show: false}")},
		{name: "line ends", edit: func(l mutationLab) { l.replace("models/base.sql", "\n", "\r\n") }},
		{name: "final semicolon", edit: edit("models/from_base.sql", "ref('base') }}", "ref('base') }};")},
		{name: "tag of config() in the body", edit: edit("models/from_base.sql", "select max", "{{ config(tags=['x']) }}select max")},
		{name: "path of config() in the body", edit: edit("models/from_base.sql", "select max", "{{ config(path='gold') }}select max"),
			want: map[string]string{"from_base": "config changed: path"}},
		{name: "path of a folder's configuration", edit: func(l mutationLab) {
			l.write("models/marts/from_base.sql", l.read("models/from_base.sql"))
			if err := os.Remove(l.path("models/from_base.sql")); err != nil {
				l.t.Fatal(err)
			}
			l.write("project.yml", l.read("project.yml")+"folders: {marts: {path: gold}}\n")
		}, want: map[string]string{"from_base": "config changed: path"}},
		{name: "moved to another folder", edit: func(l mutationLab) {
			l.write("models/marts/from_base.sql", l.read("models/from_base.sql"))
			if err := os.Remove(l.path("models/from_base.sql")); err != nil {
				l.t.Fatal(err)
			}
		}},
		{name: "declared type", edit: edit("models/alone.sql", "select 1", "---\ncolumns: {x: {type: BIGINT}}\n---\nselect 1"),
			want: map[string]string{"alone": "config changed: types"}},
		{name: "contract", edit: edit("models/base.sql", "tags: [daily]", "tags: [daily]\ncontract: false")},
		{name: "layout", edit: edit("models/alone.sql", "select 1", "---\nlayout: parts\n---\nselect 1"),
			want: map[string]string{"alone": "published as table before, table in parts now"}},
		{name: "what is done about drift", edit: edit("models/log.sql", "materialization: incremental", "materialization: incremental\non_schema_change: full_refresh")},
		{name: "text of an increment", edit: edit("models/log.sql", "where false", "where 1 = 0"), want: map[string]string{"log": "sql changed"}},
		{name: "parent added", edit: edit("models/alone.sql", "select 1", "-- depends_on: {{ ref('codes') }}\nselect 1"),
			want: map[string]string{"alone": "parent codes added"}},
		{name: "test removed", edit: edit("models/base.sql", "{tests: [not_null]}", "{}")},
		{name: "condition of a test", edit: edit("models/base.sql", "[not_null]", "[{not_null: {where: v > id}}]"), tests: []string{"not_null_base_id__where_v_gt_id"}},
		{name: "test added", edit: edit("models/base.sql", "[not_null]", "[not_null, unique]"), tests: []string{"unique_base_id"}},
		{name: "unit test added", edit: edit("models/from_base.sql", "select max",
			"---\nunit_tests: [{name: largest, given: [{input: ref('base'), rows: [{v: 1}, {v: 3}]}], expect: {rows: [{v: 3}]}}]\n---\nselect max"),
			tests: []string{"from_base.largest"}},
		{name: "view parent", edit: edit("models/vw.sql", "select id,", "select id + 0 as id,"),
			want: map[string]string{"vw": "sql changed", "from_vw": "parent vw changed"}},
		{name: "ephemeral parent", edit: edit("models/eph.sql", "id > 0", "id > 1"), want: map[string]string{"from_eph": "parent eph changed"}},
		{name: "parent without effect on its data", edit: edit("models/base.sql", "select id,", "select 0 + id as id,"),
			want: map[string]string{"base": "sql changed"}},
		{name: "engine setting", edit: edit("project.yml", "nulls_last", "nulls_first"), want: everything("engine version or settings changed")},
		{name: "time zone", edit: edit("project.yml", "default_null_order: nulls_last", "default_null_order: nulls_last, TimeZone: Europe/Paris"),
			want: everything("engine version or settings changed")},
		{name: "threads", edit: edit("project.yml", "engine: {", "engine: {threads: 1, memory_limit: 1GB, ")},
		{name: "output missing", edit: func(l mutationLab) {
			if err := os.Remove(l.path("lake/alone.parquet")); err != nil {
				l.t.Fatal(err)
			}
		}, want: map[string]string{"alone": "output missing: lake file alone.parquet: the published file is missing"}},
		{name: "forced", edit: func(mutationLab) {}, args: []string{"--force"}, want: everything("forced")},
	}
}

// everything gives all nodes that a run publishes one reason.
func everything(reason string) map[string]string {
	return with(below(reason), map[string]string{"alone": reason, "base": reason, "codes": reason, "from_codes": reason})
}

// TestMutations: for every kind of edit exactly what it changes is built again,
// with the reason, and a run that builds and asks nothing opens no database.
func TestMutations(t *testing.T) {
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			l := newLab(t, mutationProject())
			m.edit(l)
			_, debug := l.rbt(0, append([]string{"run", "--debug"}, m.args...)...)
			want := m.want
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, l.rebuilt()); diff != "" {
				t.Error(diff)
			}
			if len(want) == 0 {
				if diff := cmp.Diff(m.tests, l.asked()); diff != "" {
					t.Error(diff)
				}
			}
			if quiet := len(want)+len(m.tests) == 0; quiet == strings.Contains(debug, "the SQL engine was opened: true") {
				t.Errorf("nothing to do is %v: %s", quiet, debug)
			}
			// What a run did needs no second one.
			l.rbt(0, append([]string{"run", "-q"}, withoutForce(m.args)...)...)
			if diff := cmp.Diff(map[string]string{}, l.rebuilt()); diff != "" {
				t.Error("again: " + diff)
			}
		})
	}
}

// asked lists the tests of the last run.
func (l mutationLab) asked() []string {
	status, _ := l.results()
	var out []string
	for id := range status {
		if rest, ok := strings.CutPrefix(id, "test.shop."); ok {
			name, _, _ := strings.Cut(rest, ".")
			out = append(out, name)
		}
		if rest, ok := strings.CutPrefix(id, "unit_test.shop."); ok {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

func withoutForce(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--force" })
}

// TestVolatile: what reads the clock or files that no fingerprint knows is built
// again every time, and so is what reads it through a view.
func TestVolatile(t *testing.T) {
	files := mutationProject()
	files["models/vw.sql"] = "---\nmaterialization: view\n---\nselect id, v, now() as at from {{ ref('base') }}\n"
	files["models/alone.sql"] = "select * from 'raw/a.csv'\n"
	l := mutationLab{t: t, dir: t.TempDir()}
	for name, text := range files {
		l.write(name, text)
	}
	l.replace("models/alone.sql", "raw/a.csv", filepath.ToSlash(l.path("raw/a.csv")))
	l.rbt(0, "run", "-q")
	l.rbt(0, "run", "-q")
	want := map[string]string{
		"vw":      "volatile: calls now()",
		"from_vw": "volatile: calls now() in vw",
		"alone":   "volatile: reads the file " + filepath.ToSlash(l.path("raw/a.csv")),
	}
	if diff := cmp.Diff(want, l.rebuilt()); diff != "" {
		t.Error(diff)
	}
}
