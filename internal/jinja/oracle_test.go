package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// recorded is a template with what Python Jinja2 3.1.6 made of it. An output
// "ERR <type> line=<n>: <message>" is an error on that line.
type recorded struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	Output   string `json:"jinja2_output"`
}

func readRecorded(t *testing.T, path string) []recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decodeRecorded(t, data)
}

func decodeRecorded(t testing.TB, data []byte) []recorded {
	t.Helper()
	var list []recorded
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// relation is a host object as ref() gives it.
type relation struct{ schema, name string }

func (r relation) String() string { return `"` + r.schema + `"."` + r.name + `"` }

func (r relation) Named() {}

func (r relation) Attr(name string) (any, bool) {
	switch name {
	case "schema":
		return r.schema, true
	case "identifier":
		return r.name, true
	}
	return nil, false
}

// dbtUtils stands for a package of the host.
type dbtUtils struct{}

func (dbtUtils) String() string { return "dbt_utils" }

func (dbtUtils) Attr(name string) (any, bool) {
	if name != "star" {
		return nil, false
	}
	return Func(func(c *Call) (any, error) {
		r := newRun(context.Background(), Options{})
		if len(c.Args) == 0 {
			return nil, errors.New("one argument is needed")
		}
		except, ok := c.Kwarg("except")
		if !ok {
			except = NewList()
		}
		s, err := r.reprText(except)
		if err != nil {
			return nil, err
		}
		first, err := r.str(c.Args[0])
		return "star(" + first + "," + s + ")", err
	}), true
}

// oracleGlobals is the context in which the recorded templates were rendered.
func oracleGlobals() map[string]any {
	row := func(name, kind string) *Dict { return NewDict().put("name", name).put("type", kind) }
	value := func(v any) Func { return func(*Call) (any, error) { return v, nil } }
	fallback := func(c *Call) (any, error) {
		if len(c.Args) > 1 {
			return c.Args[1], nil
		}
		v, _ := c.Kwarg("d")
		return v, nil
	}
	atLeast := func(n int, fn Func) Func {
		return func(c *Call) (any, error) {
			if len(c.Args) < n {
				return nil, fmt.Errorf("%d arguments are needed", n)
			}
			return fn(c)
		}
	}
	return map[string]any{
		"ref": atLeast(1, func(c *Call) (any, error) {
			name := fmt.Sprint(c.Args[len(c.Args)-1])
			if v, ok := c.Kwarg("v"); ok && v != nil {
				s, err := newRun(c.Ctx, Options{}).str(v)
				if err != nil {
					return nil, err
				}
				name += "_v" + s
			}
			return relation{"main", name}, nil
		}),
		"source": atLeast(2, func(c *Call) (any, error) {
			return relation{fmt.Sprint(c.Args[0]), fmt.Sprint(c.Args[1])}, nil
		}),
		"config":         value(""),
		"is_incremental": value(true),
		"log":            atLeast(1, value("")),
		"fail": atLeast(1, func(c *Call) (any, error) {
			return nil, diag.Errorf(diag.TemplateRaised, diag.Pos{}, "%v", c.Args[0])
		}),
		"var":       atLeast(1, fallback),
		"env_var":   atLeast(1, fallback),
		"return":    Func(Return),
		"this":      relation{"main", "m"},
		"target":    NewDict().put("name", "dev").put("schema", "main"),
		"rows":      NewList(row("a", "int"), row("b", "str"), row("c", "int")),
		"dbt_utils": dbtUtils{},
	}
}

var errLine = regexp.MustCompile(`^ERR (\w+) line=(\d+|None)`)

func checkRecorded(t *testing.T, list []recorded) {
	for _, c := range list {
		t.Run(c.Name, func(t *testing.T) {
			tmpl, problems := Parse("m.sql", c.Template, 1)
			var res *Result
			err := problems.Err()
			if err == nil {
				res, err = Render(context.Background(), tmpl, Options{Globals: oracleGlobals()})
			}
			m := errLine.FindStringSubmatch(c.Output)
			if m == nil {
				if err != nil {
					t.Fatalf("%s\nerror: %v\nwant:  %q", c.Template, err, c.Output)
				}
				if d := cmp.Diff(c.Output, res.Text); d != "" {
					t.Fatalf("%s\noutput (-want +got):\n%s", c.Template, d)
				}
				checkSpans(t, res)
				return
			}
			if err == nil {
				t.Fatalf("%s\ngot %q, want an error: %s", c.Template, res.Text, c.Output)
			}
			var d diag.Diagnostic
			var l diag.List
			if errors.As(err, &l) {
				d = l[0]
			} else if !errors.As(err, &d) {
				t.Fatalf("%s\nerror %v is no diagnostic", c.Template, err)
			}
			if want, _ := strconv.Atoi(m[2]); m[2] != "None" && d.Pos.Line != want {
				t.Fatalf("%s\nerror %v on line %d, want %s", c.Template, err, d.Pos.Line, c.Output)
			}
			if d.Pos.Col == 0 {
				t.Fatalf("%s\nerror %v has no column", c.Template, err)
			}
		})
	}
}

// checkSpans checks that spans follow each other and cover the text.
func checkSpans(t interface {
	Helper()
	Fatalf(string, ...any)
}, r *Result) {
	t.Helper()
	end := 0
	for i, s := range r.Spans {
		if s.Start != end || s.End <= s.Start {
			t.Fatalf("span %d is %d..%d after %d", i, s.Start, s.End, end)
		}
		end = s.End
	}
	if end != len(r.Text) {
		t.Fatalf("spans end at %d of %d", end, len(r.Text))
	}
}

func sharedFile(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("RBT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the shared data is not here: %v (set RBT_SHARED)", err)
	}
	return path
}

func TestSharedOracle(t *testing.T) {
	checkRecorded(t, readRecorded(t, sharedFile(t, "jinja-oracle.json")))
}

func TestRecorded(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "jinja", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded templates: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			checkRecorded(t, readRecorded(t, f))
		})
	}
}
