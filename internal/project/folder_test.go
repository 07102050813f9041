package project

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFolderConfigOfManyModels says that models without frontmatter, which are
// loaded on all cores, do not write into the configuration of their folder.
func TestFolderConfigOfManyModels(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, File), "name: shop\nfolders: {f: {materialization: view, meta: {owner: ann}}}\n")
	for i := range 200 {
		text := "select 1 as id\n"
		if i%2 == 1 {
			text = "{{ config(materialized='table', tags=['odd']) }}\n" + text
		}
		writeFile(t, filepath.Join(dir, fmt.Sprintf("models/f/m%03d.sql", i)), text)
	}
	p, list := Load(t.Context(), Options{Dir: dir})
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	for i, m := range p.Models {
		want := map[string]any{"materialization": "view", "materialized": "view"}
		if i%2 == 1 {
			want = map[string]any{"materialization": "table", "materialized": "table", "tags": []string{"odd"}}
		}
		got := map[string]any{}
		for k, v := range m.Config {
			if k != "meta" {
				got[k] = v
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || m.Config["meta"] == nil {
			t.Fatalf("%s: -want +got:\n%s", m.Name, diff)
		}
	}
}
