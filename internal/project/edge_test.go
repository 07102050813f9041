package project

import (
	"strings"
	"testing"

	"rbt/internal/diag"
)

// TestFileForms: CR LF, byte order marks and other encodings.
func TestFileForms(t *testing.T) {
	p := good(t, "-- project.yml --\n\ufeffname: shop\r\nvars: {a: 1}\r\n"+
		"-- models/a.sql --\n---\r\nmaterialized: incremental\r\n---\r\nselect 1 as a\r\n"+
		"-- models/b.sql --\n\ufeffselect 1\n"+
		"-- models/empty.yml --\n"+
		"-- models/comment.yml --\n# nothing\n"+
		"-- models/null.yml --\n~\n"+
		"-- models/c.SQL --\n---\n---\nselect 2\n")
	if m := p.model(t, "a"); m.Materialization != Incremental || m.Body != "select 1 as a\r\n" || m.BodyLine != 4 {
		t.Errorf("got %+v", m)
	}
	if got := p.sql(t, "b", CompileOptions{}); got != "select 1" {
		t.Errorf("got %q", got)
	}
	if m := p.model(t, "c"); m.BodyLine != 3 {
		t.Errorf("got line %d", m.BodyLine)
	}
	for text, want := range map[string]string{
		"-- models/a.sql --\nselect 1\nselect '\xff'\n":                               "models/a.sql:2:9: the text is not UTF-8 [RBT1001]",
		"-- models/a.yml --\nx: \xff\n":                                               "models/a.yml:1:4: the text is not UTF-8 [RBT1001]",
		"-- macros/a.sql --\n\xff\n":                                                  "macros/a.sql:1:1: the text is not UTF-8 [RBT1001]",
		"-- models/a.sql --\n--- \nmaterialized: view\n---\nselect 1\n":               "models/a.sql:1:1: this line does not open frontmatter: it is not exactly --- [RBT1015]",
		"-- models/a.py --\nx\n":                                                      "models/a.py: rbt has no Python models [RBT1006]",
		"-- project.yml --\nname: shop\nmodels: {shop: {+materialized: view}}\n":      "project.yml:2:1: `models` names a folder; dbt's mapping of defaults does not stand here [RBT1006]",
		"-- project.yml --\nname: shop\nseeds: data\n":                                "project.yml:2:8: there is no folder \"data\" [RBT1009]",
		"-- project.yml --\nname: shop\nlake: models\n-- models/a.sql --\nselect 1\n": "project.yml:2:7: the lake must not hold the folder `models` [RBT1009]",
		"-- project.yml --\nname: shop\nlake: target/lake\n":                          "project.yml:2:7: the lake and the target folder must not lie in each other [RBT1009]",
	} {
		_, list := load(t, text)
		if list.Error() != want {
			t.Errorf("%q:\ngot  %s\nwant %s", text, list.Error(), want)
		}
	}
}

// TestSecretVariable: a variable may carry a secret within project.yml only.
func TestSecretVariable(t *testing.T) {
	p, list := loadWith(t, "-- project.yml --\nname: shop\nvars: {deep: [{k: \"x{{ env_var('RBT_SECRET_A') }}y\"}], plain: a}\n-- models/m.sql --\nselect 1\n",
		Options{Env: env("RBT_SECRET_A", "hush")})
	if list != nil {
		t.Fatal(list)
	}
	_, list = compileText(&rendering{p: p}, "{{ var('deep') }}")
	if want := `t.sql:1:4: the variable "deep" holds a secret, which may be used in project.yml only [RBT2025]`; list.Error() != want {
		t.Errorf("got %s", list.Error())
	}
	if _, list := compileText(&rendering{p: p}, "{{ var('plain') }}"); list != nil {
		t.Error(list)
	}
}

// TestManyUnknown: all problems are found at once, in the order of their places.
func TestManyUnknown(t *testing.T) {
	p, list := load(t, "-- models/b.sql --\n{{ config(tags=nope) }}\n-- models/a.sql --\n---\nx: 1\ny: 2\n---\n{% if %}\n-- models/c.yml --\nz: 1\n")
	var got []string
	for _, d := range list {
		got = append(got, d.Pos.String())
	}
	if want := "models/a.sql:2:1 models/a.sql:3:1 models/a.sql:5:7 models/b.sql:1:16 models/c.yml:1:1"; strings.Join(got, " ") != want {
		t.Errorf("got %v\n%s", got, diag.RenderList(list, p.SourceText))
	}
}
