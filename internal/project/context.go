package project

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// rendering is what one render has seen. Functions of the template context find
// it through the context of the call, so that they are made once a project.
type rendering struct {
	p        *Project
	m        *Model // nil for text that belongs to no model
	o        CompileOptions
	refs     []Ref
	this     bool
	volatile string
	queried  bool
	env      bool // the environment was read
	said     diag.List
	vars     map[string]bool
	cfg      *configCalls // while loading: takes what config() says
	// configured says that the template looked at the configuration of its model.
	configured bool
}

type renderingKey struct{}

func seen(c *jinja.Call) *rendering {
	// Every render of this package puts it there.
	return c.Ctx.Value(renderingKey{}).(*rendering)
}

// baseGlobals are the names that all templates of a project see alike.
func (p *Project) baseGlobals() map[string]any {
	g := map[string]any{
		"ref":            jinja.Func(callRef),
		"source":         jinja.Func(callSource),
		"var":            jinja.Func(callVar),
		"env_var":        jinja.Func(p.envVar(false)),
		"is_incremental": jinja.Func(callIsIncremental),
		"config":         configObject{},
		"log":            jinja.Func(callLog),
		"print":          jinja.Func(callPrint),
		"return":         jinja.Func(jinja.Return),
		"exceptions":     exceptionsObject(),
		"modules":        modulesObject(),
		"adapter":        adapterObject(),
		"run_query":      jinja.Func(callRunQuery),
		"target":         p.targetObject(),
		"project_name":   p.Name,
		"local_md5":      jinja.Func(callMD5),
		"load_result":    refused("load_result", "run_query() gives its result"),
		"statement":      refused("statement", "run_query() reads published relations"),
		"doc":            refused("doc", "write the text into the description"),
		"builtins": &object{name: "builtins", attrs: map[string]any{
			"ref": jinja.Func(callRef), "source": jinja.Func(callSource), "config": configObject{}, "var": jinja.Func(callVar),
		}},
		"none": nil,
	}
	maps.Copy(g, dataFunctions())
	return g
}

// options are what the templates of a render see: what all see alike, and what
// differs from model to model.
func (r *rendering) options() jinja.Options {
	g := map[string]any{
		"run_started_at": &clock{r: r},
		"invocation_id": jinja.Lazy(func() any {
			r.volatile = cmp.Or(r.volatile, "invocation_id")
			return r.o.InvocationID
		}),
		// What a template does only when it runs is not known before.
		"execute": jinja.Lazy(func() any {
			r.queried = true
			return r.o.Query != nil
		}),
	}
	if r.m != nil {
		g["this"] = &Relation{Schema: "main", Name: r.m.Name, This: true}
		g["model"] = jinja.Lazy(func() any {
			r.configured = true
			return &modelObject{m: r.m, p: r.p}
		})
	}
	for i, name := range sortedKeys(r.o.Overrides) {
		g[overrideGlobal(i)] = r.o.Overrides[name]
	}
	return jinja.Options{Globals: r.p.globals, Own: g, Library: r.library()}
}

// Relation is what ref(), source() and this give to a template. Printed it is
// the quoted name; spans of a result hold it as their Value.
type Relation struct {
	Schema, Name string
	Ref          Ref
	This         bool // {{ this }} rather than a reference
}

// String gives the relation as SQL takes it.
func (r *Relation) String() string { return quoteName(r.Schema) + "." + quoteName(r.Name) }

// Named makes relations of one name equal.
func (r *Relation) Named() {}

// Attr gives the parts of the name, unquoted.
func (r *Relation) Attr(name string) (any, bool) {
	switch name {
	case "schema":
		return r.Schema, true
	case "identifier", "name", "table":
		return r.Name, true
	case "type":
		return "table", true
	case "render":
		return jinja.Func(func(*jinja.Call) (any, error) { return r.String(), nil }), true
	}
	return nil, false
}

// Described gives the name and what a relation has.
func (r *Relation) Described() (string, []string) {
	return r.String(), []string{"identifier", "name", "render", "schema", "table", "type"}
}

// Missing knows nothing.
func (r *Relation) Missing() string { return "" }

// textArg gives an argument that must be text.
func textArg(v any) (string, bool) {
	s, ok := v.(string)
	return s, ok
}

func badCall(c *jinja.Call, format string, args ...any) error {
	return diag.Errorf(diag.BadCall, c.Pos, format, args...)
}

// kwargsOnly reports named arguments that a function does not have.
func kwargsOnly(c *jinja.Call, function string, allowed ...string) error {
	if c.Kwargs == nil {
		return nil
	}
	for _, k := range c.Kwargs.Keys() {
		name, _ := k.(string)
		if !slices.Contains(allowed, name) {
			d := diag.Errorf(diag.BadCall, c.Pos, "%s has no argument %q", function, name)
			if hint := suggestion(name, allowed); hint != "" {
				d = d.WithHint("%s", hint)
			}
			return d
		}
	}
	return nil
}

func callRef(c *jinja.Call) (any, error) {
	r := seen(c)
	if err := kwargsOnly(c, "ref", "v", "version"); err != nil {
		return nil, err
	}
	if len(c.Args) == 0 || len(c.Args) > 2 {
		return nil, badCall(c, "ref takes one name, or project and name")
	}
	call := refCall{}
	for _, a := range c.Args {
		name, ok := textArg(a)
		if !ok || name == "" {
			return nil, badCall(c, "ref takes a name in quotes")
		}
		call.args = append(call.args, name)
	}
	for _, key := range []string{"v", "version"} {
		if v, ok := c.Kwarg(key); ok && v != nil {
			switch v.(type) {
			case int64, string, float64:
				call.version = printed(v)
			default:
				return nil, badCall(c, "the version of ref is a number or text")
			}
		}
	}
	ref, problem := r.p.lookup(call)
	if problem != nil {
		return nil, r.atName(*problem, c, call.args[len(call.args)-1])
	}
	return r.refer(ref, c), nil
}

func callSource(c *jinja.Call) (any, error) {
	r := seen(c)
	if err := kwargsOnly(c, "source"); err != nil {
		return nil, err
	}
	if len(c.Args) != 2 {
		return nil, badCall(c, "source takes two names: source('group', 'table')")
	}
	group, ok1 := textArg(c.Args[0])
	table, ok2 := textArg(c.Args[1])
	if !ok1 || !ok2 {
		return nil, badCall(c, "source takes two names in quotes")
	}
	ref, problem := r.p.lookupSource(group, table)
	if problem != nil {
		name := table
		if !r.p.hasGroup(group) {
			name = group
		}
		return nil, r.atName(*problem, c, name)
	}
	return r.refer(ref, c), nil
}

// refer notes a reference and gives its relation.
func (r *rendering) refer(ref Ref, c *jinja.Call) *Relation {
	ref.Pos = c.Pos
	r.note(ref)
	schema, name := relationOf(ref)
	return &Relation{Schema: schema, Name: name, Ref: ref}
}

// note keeps each relation once.
func (r *rendering) note(ref Ref) {
	for _, other := range r.refs {
		if other.Node == ref.Node && other.Output == ref.Output && other.Source == ref.Source {
			return
		}
	}
	r.refs = append(r.refs, ref)
}

func callVar(c *jinja.Call) (any, error) {
	r := seen(c)
	if err := kwargsOnly(c, "var", "default"); err != nil {
		return nil, err
	}
	if len(c.Args) == 0 || len(c.Args) > 2 {
		return nil, badCall(c, "var takes a name and a default")
	}
	name, ok := textArg(c.Args[0])
	if !ok {
		return nil, badCall(c, "var takes a name in quotes")
	}
	if r.vars == nil {
		r.vars = map[string]bool{}
	}
	r.vars[name] = true
	for _, vars := range []map[string]any{r.o.Vars, r.p.Vars} {
		if v, ok := vars[name]; ok {
			if r.p.holdsSecret(v) {
				return nil, diag.Errorf(diag.SecretUsed, c.Pos, "the variable %q holds a secret, which may be used in project.yml only", name).
					WithHint("what a model says is kept in artifacts and receipts")
			}
			return detached(v), nil
		}
	}
	if len(c.Args) == 2 {
		return c.Args[1], nil
	}
	if v, ok := c.Kwarg("default"); ok {
		return v, nil
	}
	if r.p.lost.declared(name) {
		return nil, diag.Consequence(c.Pos)
	}
	d := diag.Errorf(diag.UnknownVar, c.Pos, "the variable %q is not set", name)
	names := slices.Collect(maps.Keys(r.p.Vars))
	d = r.atName(d, c, name)
	if hint := suggestion(name, names); hint != "" {
		return nil, d.WithHint("%s", hint)
	}
	return nil, d.WithHint("set it in project.yml under `vars:`, with --var %s=…, or give a default: var('%s', …)", name, name)
}

// atName moves a problem from the call to the name in quotes that is wrong; a
// name that is not written there as it is (a variable, a sum) leaves it at the
// call.
func (r *rendering) atName(d diag.Diagnostic, c *jinja.Call, name string) diag.Diagnostic {
	d.Pos = c.Pos
	text, ok := r.p.SourceText(c.Pos.File)
	if !ok {
		return d
	}
	at := offsetOf(text, c.Pos)
	if at < 0 {
		return d
	}
	rest := text[at:]
	// A call is closed where its arguments end; a name behind that is another's.
	if end := strings.IndexByte(rest, ')'); end >= 0 {
		rest = rest[:end]
	}
	for _, quote := range []string{"'", `"`} {
		if i := strings.Index(rest, quote+name+quote); i >= 0 {
			d.Pos.Line, d.Pos.Col = diag.LineCol(text, at+i+1)
			d.Width = utf8.RuneCountInString(name)
			return d
		}
	}
	return d
}

// offsetOf gives the byte offset of a place in its text, -1 where the text has no
// such place.
func offsetOf(text string, pos diag.Pos) int {
	at := 0
	for range pos.Line - 1 {
		_, rest, ok := diag.CutLine(text[at:])
		if !ok {
			return -1
		}
		at = len(text) - len(rest)
	}
	for range pos.Col - 1 {
		if at >= len(text) {
			return -1
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// detached gives a copy of a list or dict, so that a template that changes it
// changes nothing for others.
func detached(v any) any {
	switch v := v.(type) {
	case *jinja.List:
		out := jinja.NewList()
		for i := range v.Len() {
			out.Append(detached(v.At(i)))
		}
		return out
	case *jinja.Dict:
		out := jinja.NewDict()
		for k, item := range v.All() {
			// The key was accepted before.
			_ = out.Set(k, detached(item))
		}
		return out
	default:
		return v
	}
}

// secretPrefix begins the names of environment variables whose values never
// leave the process.
const secretPrefix = "RBT_SECRET"

// leastUnasked is the number of bytes from which on a secret is masked that the
// project does not ask for: a short one stands in texts by chance.
const leastUnasked = 8

// SecretValues are the values of the secret variables among lines NAME=value, as
// os.Environ gives them.
func SecretValues(environ []string) []string {
	var values []string
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, secretPrefix) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// envVar is env_var(). Secrets are given only to project.yml.
func (p *Project) envVar(projectFile bool) func(*jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		if err := kwargsOnly(c, "env_var", "default"); err != nil {
			return nil, err
		}
		if len(c.Args) == 0 || len(c.Args) > 2 {
			return nil, badCall(c, "env_var takes a name and a default")
		}
		name, ok := textArg(c.Args[0])
		if !ok {
			return nil, badCall(c, "env_var takes a name in quotes")
		}
		secret := strings.HasPrefix(name, secretPrefix)
		if secret && !projectFile {
			return nil, diag.Errorf(diag.SecretUsed, c.Pos, "the secret %s may be used in project.yml only", name).
				WithHint("what a model says is kept in artifacts and receipts")
		}
		if !projectFile {
			seen(c).env = true
		}
		if v, ok := p.env(name); ok {
			if secret {
				p.mask.add(v)
			}
			return v, nil
		}
		if len(c.Args) == 2 {
			return c.Args[1], nil
		}
		if v, ok := c.Kwarg("default"); ok {
			return v, nil
		}
		return nil, diag.Errorf(diag.UnknownEnv, c.Pos, "the environment variable %s is not set", name).
			WithHint("set it, or give a default: env_var('%s', '…')", name)
	}
}

func callIsIncremental(c *jinja.Call) (any, error) {
	return seen(c).o.Incremental, nil
}

func callLog(c *jinja.Call) (any, error) {
	r := seen(c)
	if len(c.Args) == 0 {
		return nil, badCall(c, "log takes a message")
	}
	info := len(c.Args) > 1 && c.Args[1] == true
	if v, ok := c.Kwarg("info"); ok {
		info = v == true
	}
	msg, err := c.Text(c.Args[0])
	if err != nil {
		return nil, err
	}
	if msg = r.p.Mask(msg); r.o.Log != nil {
		r.o.Log(msg, info, c.Pos)
	} else if info {
		r.said = append(r.said, diag.Diagnostic{Severity: diag.Remark, Pos: c.Pos, Msg: msg})
	}
	return "", nil
}

// callPrint is print(): a message that is always shown.
func callPrint(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, badCall(c, "print takes a message")
	}
	said := *c
	said.Args = []any{c.Args[0], true}
	return callLog(&said)
}

// render renders a template and gives what it saw.
func (r *rendering) render(ctx context.Context, t *jinja.Template) (*jinja.Result, error) {
	res, err := jinja.Render(context.WithValue(ctx, renderingKey{}, r), t, r.options())
	return res, r.p.lost.follows(err)
}

// compiled gives the outcome of a render.
func (r *rendering) compiled(res *jinja.Result) *Compiled {
	c := &Compiled{SQL: res.Text, Result: res, Refs: r.refs, Volatile: r.volatile, Queried: r.queried, env: r.env, said: r.said}
	for _, s := range res.Spans {
		if rel, ok := s.Value.(*Relation); ok && rel.This {
			c.This = true
		}
	}
	c.This = c.This || r.this
	if len(r.vars) > 0 {
		c.VarsUsed = slices.Sorted(maps.Keys(r.vars))
	}
	return c
}
