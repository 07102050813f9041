package plan

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"rbt/internal/memory"
	"rbt/internal/project"
)

// recallWorld is a project that is edited and loaded, with what earlier loads
// found out and without it.
type recallWorld struct {
	dir     string
	files   map[string]string
	env     map[string]string
	vars    map[string]any
	program string
	target  string
	had     map[memory.Identity]bool // by files that were written
}

// What of the nodes' texts a command wants.
const (
	allTexts      = "all"
	withoutTexts  = "none"
	renderedTexts = "those it asks for"
)

// loaded is all that commands see of a project that was compiled.
type loaded struct {
	Diags     string
	Models    []project.Model
	Tests     []project.Test
	UnitTests int
	Nodes     []loadedNode
	TestNodes []string
	Steps     string
}

type loadedNode struct {
	ID, SQLHash, Volatile string
	Refs                  []project.Ref
	Shape                 map[string]string
	Parents               []string
	Print                 Print
	SQL                   string
	Full, Increment       string // as Render leaves them
}

func (w *recallWorld) options(recall bool) project.Options {
	o := project.Options{Dir: w.dir, Target: w.target, Vars: w.vars, RecallFrom: 1, Now: time.Now().Add(time.Hour),
		Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }}
	if recall {
		o.Program = w.program
	}
	return o
}

// load loads and compiles the project and gives what came of it, and how many
// models were recalled.
func (w *recallWorld) load(t *rapid.T, recall bool, texts string) (loaded, int) {
	p, diags := project.Load(t.Context(), w.options(recall))
	out := loaded{Diags: diags.Error()}
	if diags.HasErrors() {
		// What is told of the rest must not depend on what was recalled.
		if _, more := Load(t.Context(), p, &fakeParser{}, Options{EngineIdentity: "e", NoTexts: texts == withoutTexts}); p.Checkable() {
			out.Diags += more.Error()
		}
		return out, 0
	}
	known := 0
	for _, m := range p.Models {
		if _, ok := p.Recall(m); ok {
			known++
		}
		out.Models = append(out.Models, *m)
	}
	for _, test := range p.Tests {
		shown := *test
		shown.Template = nil
		out.Tests = append(out.Tests, shown)
	}
	out.UnitTests = len(p.UnitTests)
	o := Options{EngineIdentity: "e", NoTexts: texts == withoutTexts, Recall: texts == renderedTexts}
	g, diags := Load(t.Context(), p, &fakeParser{}, o)
	out.Diags += diags.Error()
	if g == nil {
		return out, known
	}
	prints := g.Prints(func(*project.Seed) (string, error) { return "", nil })
	if texts == renderedTexts {
		out.Diags += g.Render(t.Context(), g.Nodes()).Error()
	}
	for _, n := range g.Nodes() {
		shown := loadedNode{ID: n.ID, SQLHash: n.SQLHash, Volatile: n.Volatile, Refs: n.Refs, Shape: n.Shape, Print: prints[n.ID]}
		for _, parent := range n.Parents {
			shown.Parents = append(shown.Parents, parent.ID)
		}
		if n.Model != nil {
			c, list := p.Compile(t.Context(), n.Model, project.CompileOptions{})
			shown.SQL = list.Error()
			if c != nil {
				shown.SQL += c.SQL
			}
		}
		if n.Full != nil {
			shown.Full = n.Full.SQL
		}
		if n.Increment != nil {
			shown.Increment = n.Increment.SQL
		}
		out.Nodes = append(out.Nodes, shown)
	}
	for _, n := range g.Tests() {
		out.TestNodes = append(out.TestNodes, fmt.Sprint(n.ID, n.Hash, n.Volatile, len(n.Reads)))
	}
	pl, list := g.Plan(p, nil, o)
	out.Diags += list.Error()
	if pl != nil {
		out.Steps = lines(pl)
	}
	if recall {
		if err := p.SaveRecall(); err != nil {
			t.Fatal(err)
		}
	}
	return out, known
}

// sync makes the files what they are said to be. A file that does not change keeps its
// identity, and one that does gets one that none had before.
func (w *recallWorld) sync(t *rapid.T) {
	for _, below := range []string{"models", "macros", "seeds"} {
		err := filepath.WalkDir(filepath.Join(w.dir, below), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if rel, _ := filepath.Rel(w.dir, path); !slices.Contains(slices.Collect(maps.Keys(w.files)), filepath.ToSlash(rel)) {
				return os.Remove(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range w.files {
		path := filepath.Join(w.dir, filepath.FromSlash(name))
		if content, err := os.ReadFile(path); err == nil && string(content) == text {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		id := memory.Identity{}
		for fresh := false; !fresh; fresh = !w.had[id] || id == (memory.Identity{}) {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			id = memory.Stat(path)
		}
		w.had[id] = true
	}
}

// cacheFiles are the files that hold what is recalled.
func (w *recallWorld) cacheFiles() []string {
	names, _ := filepath.Glob(filepath.Join(w.dir, "target", "cache", "*"))
	return names
}

// heads and bodies make models; %s is another model.
func recallHeads() []string {
	return []string{
		"", "---\ndescription: one\ntags: [x]\n---\n", "---\ntests:\n  - not_null: [id]\n  - relationships: {column: id, to: %s, field: id}\n---\n",
		"---\nmaterialization: incremental\nmeta: {a: [1, 2.5, 007, {b: yes}], n: ~}\ncolumns:\n  id: {type: BIGINT, tests: [not_null, unique]}\n---\n",
		"---\nenabled: false\n---\n", "{{ config(materialized='view', tags=[var('tag')]) }}\n", "{{ config(enabled=var('on') == 'yes') }}\n",
		"---\nmaterialized: view\n---\n", "---\nunit_tests:\n  - name: u_%s\n    given: []\n    expect: {rows: []}\n---\n", "---\ntests: [{small: {least: 3}}]\n---\n",
		"{{ config(tags=[env_var('WHO', 'nobody')]) }}\n", "---\ntests: [{expression: \"id > {{ var('least') }}\"}]\n---\n", " ---\nselect 1\n---\n", "---\nmaterialization: tabel\n---\n",
	}
}

func recallBodies() []string {
	return []string{
		"select 1 as id", "select * from {{ ref('%s') }}", "select * from %s", "select {{ twice('id') }} as id from {{ ref('%s') }}",
		"select '{{ var('tag') }}' as t, now() as n", "select '{{ env_var('WHO', 'nobody') }}' as w", "select '{{ run_started_at }}' as at",
		"select * from {{ source('raw', 't') }}{% if is_incremental() %} where id > (select max(id) from {{ this }}){% endif %}",
		"select '{{ target.name }}' as t", "select {{ model.description | length }} as d", "select * from s", "select {{ 1 + }} as id", "-- ref {{ ref('%s') }}\nselect 2 as id",
	}
}

// edit changes something that a user may change.
func (w *recallWorld) edit(t *rapid.T) string {
	names := []string{"a", "b", "c", "d", "e"}
	name := rapid.SampledFrom(names).Draw(t, "model")
	folder := rapid.SampledFrom([]string{"", "f/"}).Draw(t, "folder")
	path := "models/" + folder + name + ".sql"
	fill := func(text string) string {
		return strings.ReplaceAll(text, "%s", rapid.SampledFrom(names).Draw(t, "other"))
	}
	kind := rapid.SampledFrom([]string{"write", "write", "write", "write", "remove", "rename", "touch", "macro", "project", "env", "var", "source",
		"seed", "damage", "program", "target", "drop"}).Draw(t, "edit")
	switch kind {
	case "write":
		w.files[path] = fill(rapid.SampledFrom(recallHeads()).Draw(t, "head")) + fill(rapid.SampledFrom(recallBodies()).Draw(t, "body")) + "\n"
	case "remove":
		delete(w.files, path)
	case "rename":
		if text, ok := w.files[path]; ok {
			delete(w.files, path)
			w.files["models/f/"+rapid.SampledFrom(names).Draw(t, "to")+".sql"] = text
		}
	case "macro":
		w.files["macros/m.sql"] = rapid.SampledFrom([]string{
			"{% macro twice(x) %}{{ x }} * 2{% endmacro %}", "{% macro twice(x) %}{{ x }}", "{% macro twice(x) %}{{ x }} + {{ x }}{% endmacro %}",
			"{% macro twice(x) %}{{ config(tags=['m']) }}{{ x }}{% endmacro %}{% test small(model, least) %}select * from {{ model }} where id < {{ least }}{% endtest %}",
		}).Draw(t, "macro")
	case "project":
		w.files["project.yml"] = rapid.SampledFrom(recallProjects()).Draw(t, "project")
	case "env":
		w.env[rapid.SampledFrom([]string{"WHO", "TAG", "RBT_THREADS", "RBT_TARGET"}).Draw(t, "name")] = rapid.SampledFrom([]string{"1", "2", "dev"}).Draw(t, "value")
	case "var":
		w.vars = map[string]any{"on": rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "on"), "least": int64(rapid.IntRange(1, 2).Draw(t, "least"))}
	case "source":
		w.files["models/s.yml"] = fmt.Sprintf("sources:\n  - name: %s\n    tables:\n      - {name: t, path: t.csv, columns: {id: BIGINT}}\n", rapid.SampledFrom([]string{"raw", "rew"}).Draw(t, "group"))
	case "seed":
		w.files["seeds/s.csv"] = "id\n1\n"
		if rapid.Bool().Draw(t, "gone") {
			delete(w.files, "seeds/s.csv")
		}
	case "damage":
		for _, file := range w.cacheFiles() {
			content, err := os.ReadFile(file)
			if err != nil || len(content) == 0 {
				t.Fatal(err)
			}
			at := rapid.IntRange(0, len(content)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "cut") {
				content = content[:at]
			} else {
				content[at] ^= 0x10
			}
			if err := os.WriteFile(file, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	case "program":
		w.program += "+"
	case "target":
		w.target = rapid.SampledFrom([]string{"", "dev", "prod"}).Draw(t, "target")
	case "drop":
		for _, file := range w.cacheFiles() {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kind
}

func recallProjects() []string {
	const head = "name: shop\ntargets: {dev: {lake: lake_dev}, prod: {lake: lake_prod}}\n"
	return []string{
		head + "vars: {tag: t, on: 'yes', least: 0}\n", head + "vars: {tag: u, on: 'yes', least: 0}\n",
		head + "vars: {tag: \"{{ env_var('TAG', 'none') }}\", on: 'no', least: 0}\n",
		head + "vars: {tag: t, on: 'yes', least: 0}\nfolders: {f: {materialization: view, tags: [g], enabled: true}}\n",
		head + "vars: {tag: t, on: 'yes', least: 0}\nfolders: {f: {enabled: false}}\n",
		head + "vars: {tag: t, on: 'yes', least: 0}\nengine: {memory_limit: \"{{ env_var('RBT_SECRET_X', '1GB') }}\"}\n",
	}
}

// TestRecalledProject says that what is recalled is what loading anew gives,
// whatever was edited before.
func TestRecalledProject(t *testing.T) {
	options := cmp.Options{
		cmpopts.IgnoreUnexported(project.Model{}, project.Test{}, project.TestArgs{}), cmpopts.EquateEmpty(),
		cmp.Exporter(func(of reflect.Type) bool {
			return strings.HasSuffix(of.PkgPath(), "/jinja")
		}),
	}
	recalledOnce := 0
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		run, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		w := &recallWorld{dir: run, had: map[memory.Identity]bool{}, env: map[string]string{}, program: "p", files: map[string]string{
			"project.yml": recallProjects()[0], "macros/m.sql": "{% macro twice(x) %}{{ x }} * 2{% endmacro %}",
			"models/a.sql": "select 1 as id\n", "models/b.sql": "---\ntests: [{not_null: id}]\n---\nselect * from {{ ref('a') }}\n",
		}}
		for range rapid.IntRange(2, 5).Draw(t, "edits") {
			w.sync(t)
			texts := rapid.SampledFrom([]string{allTexts, withoutTexts, renderedTexts}).Draw(t, "texts")
			with, known := w.load(t, true, texts)
			without, _ := w.load(t, false, texts)
			recalledOnce += known
			if diff := cmp.Diff(without, with, options); diff != "" {
				t.Fatalf("%d models recalled, of %v; -anew +recalled:\n%s", known, slices.Sorted(maps.Keys(w.files)), diff)
			}
			w.edit(t)
		}
	})
	if recalledOnce == 0 {
		t.Error("nothing was ever recalled")
	}
	t.Logf("%d models were recalled", recalledOnce)
}

// TestRecallWarm says which models a second command recalls, and that a lone
// edit costs one.
func TestRecallWarm(t *testing.T) {
	w := newWorld(t, map[string]string{
		"project.yml":  "name: shop\nvars: {v: 1}\n",
		"models/a.sql": "select 1 as id\n", "models/b.sql": "select * from {{ ref('a') }}\n", "models/c.sql": "select * from a where x = '{{ var('v') }}'\n",
		"models/env.sql": "select '{{ env_var('E', '') }}' as e\n", "models/run.sql": "select '{{ invocation_id }}' as e\n",
		"models/tested.sql": "---\ntests: [{not_null: id}]\n---\nselect 1 as id\n",
		// What they say must be said each time.
		"models/says.sql": "select 1 as id {{ log('x', info=true) }}\n", "models/warns.sql": "select 1 as id {{ exceptions.warn('x') }}\n",
	})
	names := func(program string) []string {
		p, diags := project.Load(t.Context(), project.Options{Dir: w.dir, Program: program, RecallFrom: 1})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		var known []string
		for _, m := range p.Models {
			if _, ok := p.Recall(m); ok {
				known = append(known, m.Name)
			}
		}
		if _, diags := Load(t.Context(), p, &fakeParser{}, Options{NoTexts: true}); diags.HasErrors() {
			t.Fatal(diags)
		}
		if err := p.SaveRecall(); err != nil {
			t.Fatal(err)
		}
		return known
	}
	steps := []struct {
		what  string
		files map[string]string
		want  []string
	}{
		{"at first", nil, nil},
		{"again", nil, []string{"a", "b", "c", "tested"}},
		{"after an edit", map[string]string{"models/b.sql": "select 2 as id from {{ ref('a') }}\n"}, []string{"a", "c", "tested"}},
		{"again", nil, []string{"a", "b", "c", "tested"}},
		{"with a further name", map[string]string{"models/d.sql": "select 3 as id\n"}, nil},
		{"again", nil, []string{"a", "b", "c", "d", "tested"}},
		{"with a macro", map[string]string{"macros/m.sql": "{% macro m() %}{% endmacro %}"}, nil},
	}
	for _, s := range steps {
		w.write(s.files)
		if diff := cmp.Diff(s.want, names("p")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", s.what, diff)
		}
	}
	if got := names("another program"); got != nil {
		t.Errorf("another program recalls %v", got)
	}
	// A secret in use: nothing may be kept.
	w.write(map[string]string{"project.yml": "name: shop\nvars: {v: 1}\nroots: {r: \"/{{ env_var('RBT_SECRET_R') }}\"}\n"})
	before, _ := filepath.Glob(filepath.Join(w.dir, "target/cache/*"))
	for _, o := range []project.Options{
		{Env: func(name string) (string, bool) { return "hush", name == "RBT_SECRET_R" }},
		{Env: func(string) (string, bool) { return "", true }, Secrets: []string{"hush and hush"}},
	} {
		o.Dir, o.Program, o.RecallFrom = w.dir, "p", 1
		p, diags := project.Load(t.Context(), o)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if _, diags := Load(t.Context(), p, &fakeParser{}, Options{NoTexts: true}); diags.HasErrors() {
			t.Fatal(diags)
		}
		if err := p.SaveRecall(); err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := filepath.Glob(filepath.Join(w.dir, "target/cache/*")); len(after) != len(before) {
		t.Errorf("a project with secrets keeps %v", after)
	}
}

// TestRecallSurroundings changes, one after the other, all that models see besides
// their own text, and says that hashes follow.
func TestRecallSurroundings(t *testing.T) {
	const head = "name: shop\ntargets: {dev: {lake: lake_dev}, prod: {lake: lake_prod}}\ndefault_target: dev\n"
	const folders = "folders: {f: {materialization: \"{{ env_var('KIND', 'table') }}\"}}\n"
	w := newWorld(t, map[string]string{
		"project.yml":         head + folders + "vars: {tag: t, other: \"{{ env_var('TAG', 'none') }}\"}\n",
		"macros/m.sql":        "{% macro twice(x) %}{{ x }} * 2{% endmacro %}",
		"models/var.sql":      "select '{{ var('tag') }}' as t\n",
		"models/env.sql":      "select '{{ var('other') }}' as t\n",
		"models/macro.sql":    "select {{ twice(1) }} as t\n",
		"models/target.sql":   "select '{{ target.name }}' as t\n",
		"models/f/folder.sql": "select 1 as t\n",
	})
	w.env = map[string]string{}
	o := project.Options{Dir: w.dir, RecallFrom: 1, Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }}
	prints := func(program string) (map[string]Print, int) {
		o.Program = program
		p, diags := project.Load(t.Context(), o)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		known := 0
		for _, m := range p.Models {
			if _, ok := p.Recall(m); ok {
				known++
			}
		}
		g, diags := Load(t.Context(), p, &fakeParser{}, Options{NoTexts: true})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if err := p.SaveRecall(); err != nil {
			t.Fatal(err)
		}
		return g.Prints(nil), known
	}
	before, _ := prints("p")
	for _, change := range []struct {
		what string
		do   func()
		want string // the node that changes
	}{
		{"a variable of project.yml", func() {
			w.write(map[string]string{"project.yml": head + folders + "vars: {tag: u, other: \"{{ env_var('TAG', 'none') }}\"}\n"})
		}, "var"},
		{"a variable of the command line", func() { o.Vars = map[string]any{"tag": "v"} }, "var"},
		{"the environment", func() { w.env["TAG"] = "some" }, "env"},
		// No variable tells this one: the environment itself must.
		{"the environment of a folder's configuration", func() { w.env["KIND"] = "view" }, "folder"},
		{"a macro", func() {
			w.write(map[string]string{"macros/m.sql": "{% macro twice(x) %}{{ x }} + {{ x }}{% endmacro %}"})
		}, "macro"},
		{"the target", func() { o.Target = "prod" }, "target"},
		{"a folder's configuration", func() {
			w.write(map[string]string{"project.yml": head + "vars: {tag: u, other: \"{{ env_var('TAG', 'none') }}\"}\nfolders: {f: {materialization: table}}\n"})
		}, "folder"},
	} {
		if _, known := prints("p"); known != 5 {
			t.Fatalf("%s: %d models are recalled before it", change.what, known)
		}
		change.do()
		after, _ := prints("p")
		var changed []string
		for id := range Changed(after, before) {
			changed = append(changed, id)
		}
		if diff := cmp.Diff([]string{"model.shop." + change.want}, changed); diff != "" {
			t.Errorf("%s: -want +got:\n%s", change.what, diff)
		}
		before = after
	}
}
