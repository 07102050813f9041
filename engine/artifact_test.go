package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

func artifactFiles() map[string]string {
	return map[string]string{
		"project.yml":       "name: shop\nsources: [{name: raw, tables: [{name: orders, path: raw/*.csv, columns: {id: {type: BIGINT, tests: [not_null]}}, freshness: {warn_after: 36 hours}}]}]\n",
		"raw/a.csv":         "id,state\n1,new\n2,old\n",
		"seeds/states.csv":  "code,label\nnew,New\nold,Old\n",
		"macros/money.sql":  "{% macro cents(c) %}{{ c }} * 100{% endmacro %}\n{% macro unused() %}1{% endmacro %}\n",
		"models/orders.sql": "---\ndescription: one row an order\ntags: [daily]\nmeta: {owner: ann}\ncolumns:\n  id: {type: BIGINT, tests: [not_null, unique]}\n  state: {tests: [{accepted_values: {values: [new], severity: warn}}]}\n---\nselect * from {{ source('raw', 'orders') }}\n",
		"models/report.sql": "---\nmaterialization: view\ntests: [{relationships: {column: state, to: states, field: code}}]\n---\nselect state, {{ cents('count(*)') }} as n from {{ ref('orders') }} group by all\n",
		"models/events.sql": "---\nmaterialization: incremental\n---\nselect id from {{ ref('orders') }} {% if is_incremental() %}where false{% endif %}\n",
		"tests/none.sql":    "select * from {{ ref('report') }} where n < 0\n",
		"models/unit.yml":   "unit_tests:\n  - name: counts\n    model: report\n    given: [{input: ref('orders'), rows: [{id: 1, state: new}]}]\n    expect: {rows: [{state: new, n: 100}]}\n",
	}
}

// artifacts runs a project and reads back what WriteArtifacts left. The folder
// is kept where RBT_KEEP_ARTIFACTS names one, for readers outside of this test.
func artifacts(t *testing.T) (manifest, results map[string]any, dir string) {
	w := newWorld(t, artifactFiles())
	r, err := w.do(command{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	p, problems := project.Load(ctx, project.Options{Dir: w.dir})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if keep := os.Getenv("RBT_KEEP_ARTIFACTS"); keep != "" {
		p.TargetDir = keep
	}
	l, err := lake.Open(p.LakeDir, lake.OS())
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(ctx, Options{Project: p, Lake: l})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	state, err := l.ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pl, list := plan.Build(ctx, p, &state, e.Parser(), plan.Options{EngineIdentity: e.Identity(), SourceFiles: e.SourceFiles, SeedHash: e.SeedHash})
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	inv := Invocation{ID: "0f1e2d3c", Command: "run", Started: at, Generated: at.Add(time.Second), Args: map[string]any{"select": []string{"orders+"}, "target": "default"}}
	if err := e.WriteArtifacts(ctx, pl, r, inv); err != nil {
		t.Fatal(err)
	}
	read := func(name string) (doc map[string]any) {
		content, err := os.ReadFile(filepath.Join(p.TargetDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	return read(ManifestFile), read(RunResultsFile), p.TargetDir
}

func TestArtifacts(t *testing.T) {
	manifest, results, dir := artifacts(t)
	nodes := manifest["nodes"].(map[string]any)
	if diff := cmp.Diff([]string{"model.shop.events", "model.shop.orders", "model.shop.report", "seed.shop.states"}, withoutTests(sortedKeys(nodes))); diff != "" {
		t.Error(diff)
	}
	if n := len(nodes) - 4; n != 6 {
		t.Errorf("%d tests in the manifest, want 6: %v", n, sortedKeys(nodes))
	}
	orders := nodes["model.shop.orders"].(map[string]any)
	for key, want := range map[string]any{
		"description": "one row an order", "relation_name": `"main"."orders"`, "tags": []any{"daily"}, "meta": map[string]any{"owner": "ann"},
		"primary_key": []any{"id"}, "depends_on": map[string]any{"macros": []any{}, "nodes": []any{"source.shop.raw.orders"}}, "compiled_code": "select * from \"raw\".\"orders\"",
	} {
		if diff := cmp.Diff(want, orders[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	children := manifest["child_map"].(map[string]any)["model.shop.orders"].([]any)
	if !slices.Contains(children, any("model.shop.report")) || !slices.Contains(children, any("model.shop.events")) {
		t.Errorf("children of orders: %v", children)
	}
	if diff := cmp.Diff([]string{"macro.shop.cents", "macro.shop.unused"}, sortedKeys(manifest["macros"].(map[string]any))); diff != "" {
		t.Error(diff)
	}
	status := map[string]any{}
	for _, r := range results["results"].([]any) {
		r := r.(map[string]any)
		status[r["unique_id"].(string)] = r["status"]
	}
	if status["model.shop.orders"] != "success" || status["seed.shop.states"] != "success" || status["test.shop.none"] != "pass" {
		t.Errorf("statuses: %v", status)
	}
	past, err := ReadResults(filepath.Join(dir, LastRunFile))
	if err != nil {
		t.Fatal(err)
	}
	if past.Command != "run" || past.Status["model.shop.orders"] != "success" || past.Args["target"] != "default" {
		t.Errorf("past results: %+v", past)
	}
	before, err := ReadManifest(filepath.Join(dir, ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	if before.Project != "shop" || before.Lake == "" || before.Prints["model.shop.orders"].Body == "" || before.Prints["source.shop.raw.orders"].Body == "" {
		t.Errorf("past manifest: %+v", before)
	}
}

func withoutTests(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return strings.HasPrefix(id, "test.") })
}

func TestReadArtifactsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest.json")
	if _, err := ReadManifest(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v9.json"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(path); err == nil || !strings.Contains(err.Error(), "v9.json") {
		t.Errorf("another version: %v", err)
	}
}

func TestManifestSelectors(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/m.sql": "select 1 as id",
		"selectors.yml": `selectors:
  - name: words
    description: as on the command line
    default: true
    definition: "tag:daily,+m+2 @config.materialized:view models/x m.sql"
  - name: parts
    definition:
      union:
        - {method: tag, value: daily, parents: true, parents_depth: 2, children: true}
        - {tag: hourly}
        - intersection: ["selector:one", m]
        - exclude: [{method: fqn, value: old, childrens_parents: true}]
  - {name: one, definition: {method: path, value: models, exclude: [{tag: slow}]}}
  - {name: other, definition: "selector:one"}
  - {name: circle, definition: "selector:round"}
  - {name: round, definition: {method: selector, value: circle}}
`,
	})
	p, problems := project.Load(t.Context(), project.Options{Dir: w.dir})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(manifestWriter{p: p}.selectors(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]struct{ Definition json.RawMessage }
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	one := `{"exclude":[{"method":"tag","value":"slow"}],"method":"path","value":"models"}`
	want := map[string]string{
		"words": `{"union":[{"intersection":[{"method":"tag","value":"daily"},{"children":true,"children_depth":"2","method":"fqn","parents":true,"value":"m"}]},` +
			`{"childrens_parents":true,"method":"config.materialized","value":"view"},{"method":"path","value":"models/x"},{"method":"file","value":"m.sql"}]}`,
		"parts": `{"union":[{"children":true,"method":"tag","parents":true,"parents_depth":2,"value":"daily"},{"method":"tag","value":"hourly"},` +
			`{"intersection":[` + one + `,{"method":"fqn","value":"m"}]},{"exclude":[{"childrens_parents":true,"method":"fqn","value":"old"}]}]}`,
		"one": one, "other": one,
		"circle": `{"method":"selector","value":"circle"}`, "round": `{"method":"selector","value":"round"}`,
	}
	for _, name := range sortedKeys(got) {
		var b bytes.Buffer
		if err := json.Compact(&b, got[name].Definition); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[name], b.String()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if !strings.Contains(string(text), `"description": "as on the command line"`) || strings.Count(string(text), `"default": true`) != 1 {
		t.Errorf("description and default are missing:\n%s", text)
	}
}
