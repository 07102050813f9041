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
