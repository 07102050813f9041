package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"rbt/internal/diag"
)

// problemsFile is the file of a golden that holds what is expected.
const problemsFile = "problems"

// TestMistakes loads each archive of testdata/mistakes and compares everything
// that rbt says with its last file, which UPDATE=1 writes.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			kept := archive.Files[:0:0]
			for _, f := range archive.Files {
				if f.Name == problemsFile {
					want = string(f.Data)
				} else {
					kept = append(kept, f)
				}
			}
			archive.Files = kept
			p, list := loadWith(t, string(txtar.Format(archive)), Options{Env: env("RBT_SECRET_KEY", "s3cr3t-0001")})
			got := strings.ReplaceAll(diag.RenderList(list, p.SourceText), p.Dir, "$DIR")
			if os.Getenv("UPDATE") == "1" {
				archive.Files = append(kept, txtar.File{Name: problemsFile, Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			for _, problem := range list {
				if problem.Pos.IsZero() {
					t.Errorf("a problem without a place: %s", problem.Msg)
				}
			}
		})
	}
}

// TestPackageHints checks what is said of names that dbt, or a package of it, has.
func TestPackageHints(t *testing.T) {
	p := good(t, small)
	for text, want := range map[string]string{
		"{{ audit_helper.compare() }}":                  "rbt has no packages; what it has of them are dbt.… and dbt_utils.…; copy the macro into macros/ and call it without audit_helper.",
		"{{ graph.nodes }}":                             "dbt gives graph to templates, rbt does not",
		"{{ dbt_utils.stars(ref('base')) }}":            "did you mean 'star'?",
		"{{ target.nmae }}":                             "did you mean 'name'?",
		"{{ run_query('select 1').columns[0] }}":        "nothing is read while the project is only compiled: put it between {% if execute %} and {% endif %}",
		"{% set x = run_query('a') %}{{ x.rows.nope }}": "",
		"{{ wholly_unknown_thing }}":                    "give it a value before, with {% set wholly_unknown_thing = … %}, or read it with var('wholly_unknown_thing')",
		"{{ modules.pytz.utc }}":                        "modules has datetime and re; all times are in UTC",
		"{{ dbt_utils.surrogate_key(['a']) }}":          "did you mean 'generate_surrogate_key'?",
	} {
		_, list := compileText(&rendering{p: p, m: p.model(t, "base")}, text)
		if len(list) != 1 || list[0].Hint != want {
			t.Errorf("%s: got %v", text, list)
		}
	}
}
