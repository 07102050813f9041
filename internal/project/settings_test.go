package project

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

const targets = `
-- project.yml --
name: shop
lake: base_lake
target: out
vars: {a: base, b: base}
engine: {threads: 3, memory_limit: 2GB, settings: {TimeZone: UTC, x: 1}}
folders: {staging: {materialization: view, tags: [s]}}
targets:
  dev: {lake: dev_lake, vars: {b: dev}}
  prod:
    lake: /srv/lake
    engine: {threads: 7, settings: {x: 2}}
    folders: {staging: {materialization: table}}
default_target: dev
-- models/staging/a.sql --
select 1
`

// TestPrecedence: flag, environment, target, project.yml, default.
func TestPrecedence(t *testing.T) {
	type state struct {
		Target, Lake, Out string
		Threads           int
		Memory, X, A, B   string
		Mat               Materialization
	}
	tests := []struct {
		name string
		o    Options
		want state
	}{
		{"default target", Options{}, state{"dev", "$DIR/dev_lake", "$DIR/out", 3, "2GB", "1", "base", "dev", View}},
		{"flag", Options{Target: "prod"}, state{"prod", "/srv/lake", "$DIR/out", 7, "2GB", "2", "base", "base", Table}},
		{"environment", Options{Env: env("RBT_TARGET", "prod", "RBT_LAKE", "env_lake", "RBT_TARGET_PATH", "/tmp/t", "RBT_THREADS", "9", "RBT_MEMORY_LIMIT", "50%")},
			state{"prod", "$DIR/env_lake", "/tmp/t", 9, "50%", "2", "base", "base", Table}},
		{"flag before environment", Options{Target: "dev", Lake: "/l", TargetPath: "tp", Threads: 2, Vars: map[string]any{"a": "flag"},
			Env: env("RBT_TARGET", "prod", "RBT_LAKE", "env_lake", "RBT_TARGET_PATH", "/tmp/t", "RBT_THREADS", "9")},
			state{"dev", "/l", "$DIR/tp", 2, "2GB", "1", "flag", "dev", View}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, list := loadWith(t, targets, tt.o)
			if len(list) > 0 {
				t.Fatal(diag.RenderList(list, p.SourceText))
			}
			short := func(s string) string { return strings.ReplaceAll(s, p.Dir, "$DIR") }
			got := state{p.Target, short(p.LakeDir), short(p.TargetDir), p.Engine.Threads, p.Engine.MemoryLimit, p.Engine.Settings["x"],
				p.Vars["a"].(string), p.Vars["b"].(string), p.model(t, "a").Materialization}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	for o, want := range map[*Options]string{
		{Target: "prd"}:                                        `--target: there is no target "prd" [RBT1011]`,
		{Env: env("RBT_TARGET", "x")}:                          `RBT_TARGET: there is no target "x" [RBT1011]`,
		{Env: env("RBT_THREADS", "many")}:                      `RBT_THREADS: it must be a whole number, 0 or more, not "many" [RBT1004]`,
		{Env: env("RBT_MEMORY_LIMIT", "")}:                     ``,
		{Target: "prod", Env: env("RBT_MEMORY_LIMIT", "lots")}: `RBT_MEMORY_LIMIT: it cannot be "lots": write a number and a unit, as 4GB or 80% [RBT1004]`,
	} {
		_, list := loadWith(t, targets, *o)
		if list.Error() != want {
			t.Errorf("got %q, want %q", list.Error(), want)
		}
	}
}

func TestNoProject(t *testing.T) {
	dir := t.TempDir()
	p, list := Load(context.Background(), Options{Dir: dir})
	want := `project.yml: there is no project.yml in ` + dir + ` [RBT1010]`
	if p == nil || list.Error() != want {
		t.Errorf("got %q, want %q", list.Error(), want)
	}
	_, list = load(t, "-- project.yml --\n")
	if want := `project.yml:1:1: project.yml needs the key "name" [RBT1005]`; list.Error() != want {
		t.Errorf("an empty file: got %q", list.Error())
	}
}

// TestSecrets: a secret is in no text that rbt gives out.
func TestSecrets(t *testing.T) {
	const secret = `s3cr3t'0"1<`
	archive := `
-- project.yml --
name: shop
roots: {landing: "/data/{{ env_var('RBT_SECRET_KEY') }}"}
vars: {token: "{{ env_var('RBT_SECRET_KEY') }}", plain: "{{ env_var('USER') }}", none: "{{ env_var('NOPE', 'd') }}"}
sources:
  - name: raw
    tables:
      - {name: t, path: "$landing/x.csv"}
      - {name: u, path: "/other/{{ env_var('RBT_SECRET_KEY') }}/x.csv"}
      - {name: v, path: "{{ env_var('MISSING') }}/x.csv"}
-- models/a.sql --
select {{ var('nope_' ~ var('token')) }}
`
	p, list := loadWith(t, archive, Options{Env: env("RBT_SECRET_KEY", secret, "USER", "me")})
	got := strings.Split(list.Error(), "\n")
	if d := cmp.Diff([]string{
		`project.yml:8:25: the path "/other/*****/x.csv" leads out of the project [RBT1009]`,
		`project.yml:9:29: the environment variable MISSING is not set [RBT2023]`,
	}, got); d != "" {
		t.Error(d)
	}
	if p.Vars["plain"] != "me" || p.Vars["none"] != "d" || p.Vars["token"] != secret {
		t.Errorf("vars %v", p.Vars)
	}
	if strings.Contains(diag.RenderList(list, p.SourceText), secret) {
		t.Error("the secret is shown")
	}
	for text, want := range map[string]string{
		"x " + secret + " y":         "x ***** y",
		`'s3cr3t''0"1<'`:             `'*****'`,
		`"s3cr3t'0""1<"`:             `"*****"`,
		"s3cr3t%270%221%3C":          "*****",
		"/data/" + secret + "/x":     "/data/*****/x",
		"nothing":                    "nothing",
		`{"k": "s3cr3t'0\"1\u003c"}`: `{"k": "*****"}`,
		`{"k": "s3cr3t'0\"1<"}`:      `{"k": "*****"}`,
	} {
		if got := p.Mask(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	_, problems := p.CompileText(context.Background(), "--inline", "select {{ var('nope_' ~ var('token')) }}", 1, CompileOptions{})
	if strings.Contains(problems.Error(), secret) || !strings.Contains(problems.Error(), "holds a secret") {
		t.Errorf("got %v", problems)
	}
}

// TestLinks: symbolic links are followed in the project and its roots only.
func TestLinks(t *testing.T) {
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "secret.sql"), "select 1")
	writeFile(t, filepath.Join(outside, "data/x.csv"), "a\n1\n")
	dir := write(t, `
-- project.yml --
name: shop
sources:
  - name: raw
    tables: [{name: t, path: data/x.csv}, {name: u, path: data/*.csv}]
-- models/a.sql --
select 1
-- shared/b.sql --
select 2
`)
	link := func(from, to string) {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	link("models/inside", filepath.Join(dir, "shared"))
	link("models/outside", outside)
	link("models/secret.sql", filepath.Join(outside, "secret.sql"))
	link("models/loop", filepath.Join(dir, "models"))
	link("models/nowhere.sql", filepath.Join(dir, "gone"))
	link("data", filepath.Join(outside, "data"))
	p, list := Load(context.Background(), Options{Dir: dir})
	if d := cmp.Diff([]string{
		`models/loop: the link leads to a folder around it [RBT1009]`,
		`models/nowhere.sql: the link leads nowhere [RBT1009]`,
		`models/outside: the link leads out of the project [RBT1009]`,
		`models/secret.sql: the link leads out of the project [RBT1009]`,
		`project.yml:4:30: the path "data/x.csv" leads out of the project [RBT1009]`,
		`project.yml:4:59: the path "data/*.csv" leads out of the project [RBT1009]`,
	}, strings.Split(list.Error(), "\n")); d != "" {
		t.Error(d)
	}
	p.model(t, "b")
	writeFile(t, filepath.Join(dir, "project.yml"), "name: shop\nroots: {o: "+outside+"}\nsources:\n  - name: raw\n    tables: [{name: t, path: data/x.csv}]\n")
	for _, name := range []string{"models/loop", "models/nowhere.sql"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, list := Load(context.Background(), Options{Dir: dir}); list.HasErrors() && strings.Contains(list.Error(), "out of the project") {
		t.Errorf("a declared root: %v", list)
	}
}

// TestUnicodeNames: both forms of one name are one model.
func TestUnicodeNames(t *testing.T) {
	p := good(t, "-- models/größe.sql --\n---\ndescription: \"Größe \\U0001F600 Ж\"\n---\nselect 1\n-- models/b.sql --\nselect * from {{ ref('gro\u0308ße') }}\n")
	if got := p.sql(t, "b", CompileOptions{}); got != `select * from "main"."größe"` {
		t.Errorf("got %s", got)
	}
	if got := p.model(t, "größe").Description; got != "Größe 😀 Ж" {
		t.Errorf("got %q", got)
	}
	_, list := load(t, "-- models/größe.sql --\nselect 1\n-- models/x/gro\u0308ße.sql --\nselect 1\n")
	if len(list) != 1 || list[0].Code != diag.NameClash {
		t.Errorf("got %v", list)
	}
}
