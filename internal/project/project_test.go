package project

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"rbt/internal/diag"
)

// write puts the files of a txtar text into a new folder and gives the folder.
func write(t testing.TB, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(f.Name)), string(f.Data))
	}
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// load loads a project from a txtar text; project.yml may be left out.
func load(t testing.TB, archive string) (*Project, diag.List) {
	t.Helper()
	return loadWith(t, archive, Options{})
}

func loadWith(t testing.TB, archive string, o Options) (*Project, diag.List) {
	t.Helper()
	o.Dir = write(t, archive)
	if !exists(filepath.Join(o.Dir, File)) {
		writeFile(t, filepath.Join(o.Dir, File), "name: shop\n")
	}
	return Load(context.Background(), o)
}

// good loads a project that has no problems.
func good(t testing.TB, archive string) *Project {
	t.Helper()
	p, list := load(t, archive)
	if len(list) > 0 {
		t.Fatalf("unexpected problems:\n%s", diag.RenderList(list, p.SourceText))
	}
	return p
}

func (p *Project) model(t testing.TB, name string) *Model {
	t.Helper()
	for _, m := range p.Models {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("there is no model %s", name)
	return nil
}

func (p *Project) test(t testing.TB, name string) *Test {
	t.Helper()
	var names []string
	for _, test := range p.Tests {
		if test.Name == name {
			return test
		}
		names = append(names, test.Name)
	}
	t.Fatalf("there is no test %s in %s", name, strings.Join(names, ", "))
	return nil
}

// sql compiles a model that has no problems.
func (p *Project) sql(t testing.TB, name string, o CompileOptions) string {
	t.Helper()
	c, list := p.Compile(context.Background(), p.model(t, name), o)
	if list != nil {
		t.Fatalf("compile %s:\n%s", name, diag.RenderList(list, p.SourceText))
	}
	return c.SQL
}

// env makes an environment of pairs.
func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}
