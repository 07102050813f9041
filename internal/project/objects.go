package project

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// printed gives a plain value as a template prints it.
func printed(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return v
	case float64:
		return printedFloat(v)
	default:
		return fmt.Sprint(v)
	}
}

// printedFloat writes a float as Python's repr does.
func printedFloat(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+")
	case size != 0 && (size < 1e-4 || size >= 1e16):
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// object is a host value with fixed attributes.
type object struct {
	name  string
	attrs map[string]any
	lacks string // the hint where an attribute is not there; "" the nearest one
}

// String gives the name, as Python prints modules.
func (o *object) String() string { return "<" + o.name + ">" }

// Attr gives an attribute.
func (o *object) Attr(name string) (any, bool) {
	v, ok := o.attrs[name]
	return v, ok
}

// Described gives the name and what the object has.
func (o *object) Described() (string, []string) { return o.name, sortedKeys(o.attrs) }

// Missing says what to do about an attribute that is not there.
func (o *object) Missing() string { return o.lacks }

func exceptionsObject() *object {
	raise := func(c *jinja.Call) (any, error) {
		msg := "the template raised an error"
		if len(c.Args) > 0 {
			var err error
			if msg, err = c.Text(c.Args[0]); err != nil {
				return nil, err
			}
		}
		return nil, diag.Errorf(diag.TemplateRaised, c.Pos, "%s", seen(c).p.Mask(msg))
	}
	return &object{name: "exceptions", attrs: map[string]any{
		"raise_compiler_error":  jinja.Func(raise),
		"raise_not_implemented": jinja.Func(raise),
		"warn": jinja.Func(func(c *jinja.Call) (any, error) {
			r := seen(c)
			if len(c.Args) == 0 {
				return "", nil
			}
			msg, err := c.Text(c.Args[0])
			if err != nil {
				return nil, err
			}
			msg = r.p.Mask(msg)
			if r.o.Log != nil {
				r.o.Log("warning: "+msg, true, c.Pos)
				return "", nil
			}
			d := diag.Diagnostic{Code: diag.TemplateRaised, Severity: diag.Warning, Pos: c.Pos, Msg: msg}
			for _, pos := range c.Callers {
				d = d.WithNote(pos, "called here")
			}
			r.said = append(r.said, d)
			return "", nil
		}),
	}}
}

func (p *Project) targetObject() *object {
	return &object{name: "target", attrs: map[string]any{
		"name": p.Target, "target_name": p.Target, "profile_name": p.Name, "schema": "main", "type": "duckdb",
		"threads": int64(p.Engine.Threads), "database": "memory", "path": ":memory:",
	}}
}

// modelObject is `model`: what a template may know of the model it makes.
type modelObject struct {
	m *Model
	p *Project
}

// String gives the unique id.
func (o *modelObject) String() string { return "model." + o.p.Name + "." + o.m.Name }

// Attr gives dbt's names for the parts of a model.
func (o *modelObject) Attr(name string) (any, bool) {
	switch name {
	case "name", "alias", "identifier":
		return o.m.Name, true
	case "schema":
		return "main", true
	case "resource_type":
		return "model", true
	case "unique_id":
		return o.String(), true
	case "package_name":
		return o.p.Name, true
	case "path", "original_file_path":
		return o.m.File, true
	case "description":
		return o.m.Description, true
	case "tags":
		return goValue(o.m.Tags), true
	case "meta":
		return goValue(o.m.Meta), true
	case "raw_code", "raw_sql":
		return o.m.Body, true
	case "config":
		d := jinja.NewDict()
		for _, k := range sortedKeys(o.m.Config) {
			// Text is always a valid key.
			_ = d.Set(k, goValue(o.m.Config[k]))
		}
		return d, true
	case "columns":
		d := jinja.NewDict()
		for _, c := range o.m.Columns {
			col := jinja.NewDict()
			_ = col.Set("name", c.Name)
			_ = col.Set("description", c.Description)
			_ = col.Set("data_type", c.Type)
			_ = d.Set(c.Name, col)
		}
		return d, true
	}
	return nil, false
}

// goValue turns configuration into a value of a template, detached from it.
func goValue(v any) any {
	switch v := v.(type) {
	case []string:
		out := jinja.NewList()
		for _, s := range v {
			out.Append(s)
		}
		return out
	case map[string]any:
		out := jinja.NewDict()
		for _, k := range sortedKeys(v) {
			// Text is always a valid key.
			_ = out.Set(k, goValue(v[k]))
		}
		return out
	default:
		return detached(v)
	}
}

// clock is run_started_at: whoever looks at it makes a text that differs from
// run to run.
type clock struct{ r *rendering }

func (c *clock) touch() moment { return moment{c.r.now("run_started_at"), true} }

// String prints the time as Python does.
func (c *clock) String() string { return c.touch().String() }

// Attr gives the parts and methods of a datetime.
func (c *clock) Attr(name string) (any, bool) {
	return c.touch().Attr(name)
}

func adapterObject() *object {
	return &object{name: "adapter", attrs: map[string]any{
		"quote": jinja.Func(func(c *jinja.Call) (any, error) {
			if len(c.Args) != 1 {
				return nil, badCall(c, "adapter.quote takes a name")
			}
			name, err := c.Text(c.Args[0])
			return quoteName(name), err
		}),
		"get_columns_in_relation": jinja.Func(callColumns),
		"dispatch":                refused("adapter.dispatch", "rbt has one engine: call the macro itself"),
		"get_relation":            refused("adapter.get_relation", "write ref(), source() or this"),
		"execute":                 refused("adapter.execute", "run_query() reads published relations"),
		"create_schema":           refused("adapter.create_schema", "rbt makes what it needs"),
		"drop_relation":           refused("adapter.drop_relation", "models only read"),
	}}
}

// refused is a function of dbt that rbt does not have.
func refused(name, instead string) jinja.Func {
	return func(c *jinja.Call) (any, error) {
		return nil, diag.Errorf(diag.TemplateUnsupported, c.Pos, "%s() is not supported", name).WithHint("%s", instead)
	}
}
