package jinja

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// TestErrorMessages compares what a user reads with testdata/jinja/errors.golden,
// which holds the templates too. UPDATE=1 writes the messages anew.
func TestErrorMessages(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "jinja", "errors.golden")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, shows = "=== template\n", "--- message\n"
	var want, got strings.Builder
	for _, part := range strings.Split(string(data), begin)[1:] {
		src, message, ok := strings.Cut(part, shows)
		if !ok {
			t.Fatalf("a template without a message:\n%s", part)
		}
		want.WriteString(begin + src + shows + message)
		got.WriteString(begin + src + shows + messageOf(t, src) + "\n")
	}
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want.String(), got.String()); d != "" {
		t.Fatalf("messages (-want +got):\n%s", d)
	}
}

func messageOf(t *testing.T, src string) string {
	t.Helper()
	lib, problems := Parse("macros/money.sql", errorMacros, 1)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	l, problems := NewLibrary(lib)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	tmpl, problems := Parse("models/m.sql", src, 1)
	err := problems.Err()
	if err == nil {
		_, err = Render(context.Background(), tmpl, Options{Globals: oracleGlobals(), Library: l})
	}
	var list diag.List
	var one diag.Diagnostic
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = diag.List{one}
	default:
		t.Fatalf("%s\nerror %v is no diagnostic", src, err)
	}
	return diag.RenderList(list, func(file string) (string, bool) {
		if file == "macros/money.sql" {
			return errorMacros, true
		}
		return src, file == "models/m.sql"
	})
}

// errorMacros are the macros that the templates of errors.golden call.
const errorMacros = `{% macro cents(col, scale=2) %}
  round({{ col }} / 100.0, {{ scale + 0 }})
{% endmacro %}

{% macro total(cols) %}
  {% for c in cols %}{{ cents(c, scale='two') }}{{ ' + ' if not loop.last }}{% endfor %}
{% endmacro %}

{% macro forever() %}{{ forever() }}{% endmacro %}

{% macro needs_model(model) %}
  select * from {{ model }}
{% endmacro %}
`
