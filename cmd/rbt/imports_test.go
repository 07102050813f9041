package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowedImports is the direction of the house: which packages of rbt a package
// may import. Everything else is against it; a new arrow is a decision, made
// here.
var allowedImports = map[string][]string{
	"rbt/cmd/rbt":            {"rbt/engine", "rbt/internal/plan", "rbt/internal/project", "rbt/internal/lake", "rbt/internal/memory", "rbt/internal/diag"},
	"rbt/engine":             {"rbt/internal/plan", "rbt/internal/project", "rbt/internal/jinja", "rbt/internal/lake", "rbt/internal/memory", "rbt/internal/diag", "rbt/materialize", "rbt/materialize/ingest"},
	"rbt/materialize":        {"rbt/internal/lake", "rbt/internal/diag"},
	"rbt/materialize/ingest": {"rbt/materialize", "rbt/internal/lake", "rbt/internal/diag"},
	"rbt/internal/plan":      {"rbt/internal/project", "rbt/internal/lake", "rbt/internal/diag"},
	"rbt/internal/project":   {"rbt/internal/jinja", "rbt/internal/memory", "rbt/internal/diag"},
	"rbt/internal/jinja":     {"rbt/internal/diag"},
	"rbt/internal/lake":      {"rbt/internal/memory", "rbt/internal/diag"},
	"rbt/internal/memory":    {},
	"rbt/internal/diag":      {},
}

// libraryOwners are the libraries that one package alone may use. Benchmarks
// may use the driver too.
var libraryOwners = map[string][]string{
	"github.com/duckdb/duckdb-go":   {"rbt/engine", "rbt/bench"},
	"github.com/dominikbraun/graph": {"rbt/internal/plan"},
	"gopkg.in/yaml.v3":              {"rbt/internal/project"},
	"github.com/urfave/cli":         {"rbt/cmd/rbt"},
	"golang.org/x/term":             {"rbt/cmd/rbt"},
	"database/sql":                  {"rbt/engine", "rbt/bench"},
	// It links gRPC and all of protobuf: 9 MB, and 2 ms of every start.
	"github.com/apache/arrow-go/v18/parquet/pqarrow": {"tests"},
}

// testImports are arrows that only tests draw: a suite that needs a real engine
// under the publish protocol, data built for it, and by what files are known.
var testImports = map[string][]string{
	"rbt/materialize":        {"rbt/engine"},
	"rbt/materialize/ingest": {"rbt/engine"},
	"rbt/internal/plan":      {"rbt/internal/memory"},
}

// Imports go downwards only.
func TestImportDirection(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := "rbt/" + filepath.ToSlash(rel)
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if why := refused(pkg, imported, strings.HasSuffix(path, "_test.go")); why != "" {
				t.Errorf("%s imports %s: %s", path, imported, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range allowedImports {
		if !seen[pkg] {
			t.Errorf("%s stands in the table but not in the tree", pkg)
		}
	}
}

// refused says why an import is against the direction, or nothing.
func refused(pkg, imported string, isTest bool) string {
	if strings.HasPrefix(pkg, "rbt/bench") {
		return ""
	}
	if strings.HasPrefix(imported, "rbt/") {
		allowed, known := allowedImports[pkg]
		switch {
		case imported == pkg, slices.Contains(allowed, imported), isTest && slices.Contains(testImports[pkg], imported):
			return ""
		case !known:
			return "the package does not stand in the table of allowed imports"
		default:
			return "against the direction of imports"
		}
	}
	for library, owners := range libraryOwners {
		if (imported == library || strings.HasPrefix(imported, library+"/")) && !slices.Contains(owners, pkg) && !isTest {
			return "only " + strings.Join(owners, ", ") + " may use it"
		}
	}
	return ""
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		pkg, imported string
		isTest, want  bool
	}{
		{"rbt/engine", "rbt/materialize", false, false},
		{"rbt/materialize", "rbt/engine", false, true},
		{"rbt/materialize", "rbt/engine", true, false},
		{"rbt/materialize", "rbt/materialize/ingest", false, true},
		{"rbt/internal/lake", "rbt/internal/project", true, true},
		{"rbt/cmd/rbt", "rbt/materialize", false, true},
		{"rbt/internal/plan", "gopkg.in/yaml.v3", false, true},
		{"rbt/engine", "github.com/duckdb/duckdb-go/v2", false, false},
		{"rbt/cmd/rbt", "github.com/duckdb/duckdb-go/v2", false, true},
		{"rbt/bench/read", "rbt/engine", false, false},
		{"rbt/newcomer", "rbt/engine", false, true},
		{"rbt/newcomer", "fmt", false, false},
	} {
		if got := refused(tc.pkg, tc.imported, tc.isTest) != ""; got != tc.want {
			t.Errorf("refused(%s, %s, test %v) = %v, want %v", tc.pkg, tc.imported, tc.isTest, got, tc.want)
		}
	}
}
