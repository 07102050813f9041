package main

import (
	"os"
	"strings"
	"testing"
)

// What is said, and how commands end, where something in the lake is not as rbt
// left it; and what is said to do works.
func TestDamagedLake(t *testing.T) {
	const manifest, part = "lake/inc.parts/_rbt_manifest.json", "lake/inc.parts/part-0000000000001.parquet"
	edit := func(rel string, change func(string) string) func(d durable) {
		return func(d durable) {
			text, err := os.ReadFile(d.path(rel))
			if err != nil {
				d.t.Fatal(err)
			}
			d.write(rel, change(string(text)))
		}
	}
	remove := func(rels ...string) func(d durable) {
		return func(d durable) {
			for _, rel := range rels {
				if err := os.Remove(d.path(rel)); err != nil {
					d.t.Fatal(err)
				}
			}
		}
	}
	half := func(s string) string { return s[:len(s)/2] }
	for _, tc := range []struct {
		name   string
		damage func(d durable)
		code   int      // of the next run
		says   []string // by it
		show   int      // exit code of show over the node's child
		mend   []string // the command that puts it right
	}{
		{"manifest cut off", edit(manifest, half), 1, []string{"RBT5002", "NO-OP table model t ", "inc.parts/_rbt_manifest.json", "not complete JSON", "--full-refresh"}, 1, []string{"run", "-f", "-s", "inc"}},
		{"manifest empty", edit(manifest, func(string) string { return "" }), 1, []string{"RBT5002", "NO-OP table model t ", "empty (0 bytes)", "--full-refresh"}, 1, []string{"run", "-f", "-s", "inc"}},
		{"manifest gone", remove(manifest), 1, []string{"RBT5002", "NO-OP table model t ", "the manifest is missing", "--full-refresh"}, 1, []string{"run", "-f", "-s", "inc"}},
		{"manifest of a later version", edit(manifest, func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 9`, 1) }), 1, []string{"RBT5002", "NO-OP table model t ", "version 9"}, 1, []string{"run", "-f", "-s", "inc"}},
		{"part gone", remove(part), 1, []string{"RBT5002", "NO-OP table model t ", "part-0000000000001.parquet", "it is missing", "--full-refresh"}, 1, []string{"run", "-f", "-s", "inc"}},
		{"part cut off", edit(part, half), 1, []string{"RBT5002", "NO-OP table model t ", "bytes, and its manifest says", "--full-refresh"}, 1, []string{"run", "-f", "-s", "inc"}},
		{"pointer gone", remove("lake/inc.rbt_incremental.json"), 0, nil, 0, nil},
		{"receipt of a table cut off", edit("lake/.rbt/state/t.json", half), 1, []string{"RBT5002", ".rbt/state/t.json", "not complete JSON", "--full-refresh -s t"}, 0, []string{"run", "-f", "-s", "t"}},
		{"table gone", remove("lake/t.parquet"), 0, []string{"OK created table model t"}, 0, nil},
		{"table and receipt gone", remove("lake/t.parquet", "lake/.rbt/state/t.json"), 0, []string{"OK created table model t"}, 0, nil},
		{"another file in the place of a table", func(d durable) {
			text, err := os.ReadFile(d.path("lake/child.parquet"))
			if err != nil {
				d.t.Fatal(err)
			}
			d.write("lake/t.parquet", string(text))
		}, 2, []string{"RBT5003", "t.parquet", "move it away", "--full-refresh"}, 0, []string{"run", "-f", "-s", "t"}},
		{"no receipts at all", remove("lake/.rbt/state/t.json", "lake/.rbt/state/inc.json", "lake/.rbt/state/child.json"), 0, nil, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDurable(t, map[string]string{
				"project.yml":      "name: shop\n",
				"models/t.sql":     "select 1 as a",
				"models/inc.sql":   "---\nmaterialization: incremental\n---\nselect 1 as a",
				"models/child.sql": "select a from {{ ref('inc') }}",
			})
			d.rbt(0, "run")
			tc.damage(d)
			show := d.rbt(tc.show, "show", "-s", "child")
			if tc.show != 0 {
				says(t, show.stderr, "RBT5002", "--full-refresh")
			}
			run := d.rbt(tc.code, "run")
			says(t, run.stdout+run.stderr, tc.says...)
			if tc.mend != nil {
				d.rbt(0, tc.mend...)
			}
			d.rbt(0, "run")
			d.rbt(0, "run")
			if got := d.query("select (select count(*) from {{ ref('t') }}), (select count(*) from {{ ref('inc') }}), (select count(*) from {{ ref('child') }})"); got != "1,1,1" {
				t.Errorf("rows: %s", got)
			}
			if got, want := strings.Join(d.files("lake"), "\n"), strings.Join(d.documented(), "\n"); got != want {
				t.Errorf("files of the lake:\n%s\ndocumented:\n%s", got, want)
			}
		})
	}
}
