package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// unreachable are the codes that no script can meet, and why.
var unreachable = map[string]string{
	"RBT4023": "every format that can be declared can be read",
	"RBT5001": "needs a second process that is still running: TestSecondRunIsRefused",
	"RBT5012": "needs a run that removes what another one reads: the suite of package materialize",
	"RBT5013": "needs a file system that refuses a step: the suite of package materialize",
	"RBT7104": "needs two records with one SHA-256",
	"RBT7106": "would be a defect of rbt",
	"RBT7107": "would be a defect of rbt",
	"RBT7108": "needs a worker that hangs: the suite of package ingest",
}

// Every code is unique, explained in docs/errors.md, and met by a script.
func TestCodes(t *testing.T) {
	root := filepath.Join("..", "..")
	codes := declaredCodes(t, filepath.Join(root, "internal", "diag", "codes.go"))
	docs, err := os.ReadFile(filepath.Join(root, "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	scripts := readScripts(t, filepath.Join(root, "testdata", "script"))
	seen := map[string]string{}
	for name, code := range codes {
		if other, twice := seen[code]; twice {
			t.Errorf("%s is both %s and %s", code, other, name)
		}
		seen[code] = name
		if n := strings.Count(string(docs), "| "+code+" |"); n != 1 {
			t.Errorf("docs/errors.md explains %s (%s) %d times", code, name, n)
		}
		met, why := strings.Contains(scripts, code), unreachable[code]
		switch {
		case !met && why == "":
			t.Errorf("no script meets %s (%s)", code, name)
		case met && why != "":
			t.Errorf("%s is met by a script, and listed as unreachable: %s", code, why)
		}
	}
	for code := range unreachable {
		if seen[code] == "" {
			t.Errorf("%s is listed as unreachable and does not exist", code)
		}
	}
}

// declaredCodes gives the constants of type Code, by name.
func declaredCodes(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok {
				code, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				codes[spec.Names[i].Name] = code
			}
		}
		return true
	})
	if len(codes) == 0 {
		t.Fatalf("%s declares no code", path)
	}
	return codes
}

func readScripts(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	var b strings.Builder
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}
