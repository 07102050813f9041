package project

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// configCalls collects what config() says while a model is loaded.
type configCalls struct{ calls []*jinja.Call }

// configObject is `config`: called it configures the model, and it has get.
type configObject struct{}

// String prints nothing, as a call does.
func (configObject) String() string { return "" }

// Call takes the configuration. It counts once, when the project is loaded.
func (configObject) Call(c *jinja.Call) (any, error) {
	r := seen(c)
	if len(c.Args) > 1 {
		return nil, badCall(c, "config takes named arguments")
	}
	if r.cfg != nil {
		r.cfg.calls = append(r.cfg.calls, c)
	}
	return "", nil
}

// Attr gives get and require.
func (configObject) Attr(name string) (any, bool) {
	switch name {
	case "get":
		return jinja.Func(func(c *jinja.Call) (any, error) { return configGet(c, false) }), true
	case "require":
		return jinja.Func(func(c *jinja.Call) (any, error) { return configGet(c, true) }), true
	}
	return nil, false
}

func configGet(c *jinja.Call, required bool) (any, error) {
	r := seen(c)
	if len(c.Args) == 0 {
		return nil, badCall(c, "config.get takes a key")
	}
	name, _ := textArg(c.Args[0])
	r.configured = true
	if r.m != nil {
		if v, ok := r.m.Config[name]; ok {
			return goValue(v), nil
		}
	}
	if required && r.m != nil && r.p.lost.vague[r.m] {
		return nil, diag.Consequence(c.Pos)
	}
	if required {
		return nil, diag.Errorf(diag.MissingKey, c.Pos, "the configuration has no key %q", name)
	}
	if len(c.Args) > 1 {
		return c.Args[1], nil
	}
	if v, ok := c.Kwarg("default"); ok {
		return v, nil
	}
	return nil, nil
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// configTable is what config() takes: what folders may say too.
var configTable = newTable("config", "config()", foreignModelKeys, modelKeys()...)

// configureModels parses the bodies, evaluates config() in those that call it and
// merges it with the frontmatter. Bodies are not parsed earlier, since the trees of
// all at once take more memory than all else that is known of a project.
func (l *loader) configureModels() {
	words := l.configWords()
	each(len(l.models), func(i int) {
		mf := l.models[i]
		if !mf.cfg.enabled || !mf.whole {
			return
		}
		t, list := jinja.Parse(mf.rel, mf.m.Body, mf.m.BodyLine)
		mf.d.diags = append(mf.d.diags, list...)
		mf.parsed, mf.failed = t != nil, list.HasErrors()
		mf.unsteady = mf.unsteady || len(list) > 0
		if t == nil || mf.failed {
			return
		}
		mf.cfg.fill(mf.m)
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(mf.m.Body, w) }) {
			l.configure(mf, t)
		}
	})
}

// configWords gives the words of which a body holds one if it may call config():
// the name itself, and the macros of files that do, directly or through others.
// Bodies without any need not be rendered while loading.
func (l *loader) configWords() []string {
	words := []string{"config"}
	taken := make([]bool, len(l.p.macros))
	for more := true; more; {
		more = false
		for i, t := range l.p.macros {
			text := l.macroTexts[i]
			if taken[i] || !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) }) {
				continue
			}
			taken[i], more = true, true
			for _, m := range t.Macros() {
				if m.Kind == "macro" {
					words = append(words, m.Name)
				}
			}
		}
	}
	return words
}

// configure renders one model for its config(); it runs beside others.
func (l *loader) configure(mf *modelFile, t *jinja.Template) {
	calls := &configCalls{}
	r := &rendering{p: l.p, m: mf.m, cfg: calls}
	res, err := r.render(l.ctx, t)
	if err != nil {
		mf.d.diags = append(mf.d.diags, asList(err, diag.Pos{File: mf.rel})...)
		mf.failed = true
		return
	}
	if r.lasting() {
		mf.drawn = r.compiled(res)
	}
	mf.unsteady = mf.unsteady || r.env || r.volatile != ""
	if len(calls.calls) == 0 {
		return
	}
	written := map[string]diag.Pos{}
	for _, k := range mf.written {
		if pos, ok := mf.cfg.pos[k.name]; ok {
			written[k.name] = pos
		}
	}
	for _, c := range calls.calls {
		mf.applyCall(c, written)
	}
}

// addsUp are keys of which two places may each say a part.
var addsUp = []string{"tags", "meta", "docs"}

// applyCall lays one config() over the configuration. written is where earlier
// ones and the frontmatter said something.
func (mf *modelFile) applyCall(c *jinja.Call, written map[string]diag.Pos) {
	d := &decoder{file: c.Pos.File}
	f, ok := d.fields(mf.callNode(d, c), configTable)
	if ok {
		before := map[string]any{}
		for name := range written {
			if v, ok := mf.cfg.values[name]; ok {
				before[name] = v
			}
		}
		mf.cfg.apply(f)
		for _, k := range configTable.keys {
			if !f.has(k.name) || slices.Contains(addsUp, k.name) {
				continue
			}
			first, twice := written[k.name]
			if old, was := before[k.name]; twice && was && fmt.Sprint(old) != fmt.Sprint(mf.cfg.values[k.name]) {
				d.add(diag.Errorf(diag.Contradicted, f.keyPos(k.name), "%s is %v here and %v there", f.label(k.name), mf.cfg.values[k.name], old).
					WithNote(first, "the other place").WithHint("say it once"))
			}
			written[k.name] = f.keyPos(k.name)
		}
	}
	mf.d.diags = append(mf.d.diags, d.diags...)
}

// callNode gives the arguments of config() as YAML, each at its place where the
// call stands in the model itself.
func (mf *modelFile) callNode(d *decoder, c *jinja.Call) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: c.Pos.Line, Column: c.Pos.Col}
	add := func(dict *jinja.Dict) {
		for k, v := range dict.All() {
			name, _ := k.(string)
			at := mf.argumentPos(c.Pos, name)
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: at.Line, Column: at.Col}
			n.Content = append(n.Content, key, valueNode(v, at))
		}
	}
	for _, a := range c.Args {
		if dict, ok := a.(*jinja.Dict); ok {
			add(dict)
		} else {
			d.bad(n, "config takes named arguments")
		}
	}
	if c.Kwargs != nil {
		add(c.Kwargs)
	}
	return n
}

// argumentPos finds a named argument in the text behind the call; the call's own
// place where it is not found.
func (mf *modelFile) argumentPos(call diag.Pos, name string) diag.Pos {
	if call.File != mf.rel || name == "" {
		return call
	}
	start := offsetOf(mf.m.Body, diag.Pos{Line: call.Line - mf.m.BodyLine + 1, Col: call.Col})
	if start < 0 {
		return call
	}
	at := namedArgument(mf.m.Body[start:], name)
	if at < 0 {
		return call
	}
	line, col := diag.LineCol(mf.m.Body, start+at)
	return diag.Pos{File: mf.rel, Line: mf.m.BodyLine + line - 1, Col: col}
}

// namedArgument gives the offset of `name =` or of a quoted name with a colon,
// -1 if there is none.
func namedArgument(text, name string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return -1
		}
		i += from
		after := strings.TrimLeft(strings.TrimLeft(text[i+len(name):], `'"`), " \t\r\n")
		before := byte(' ')
		if i > 0 {
			before = text[i-1]
		}
		boundary := before != '_' && before != '.' && (before < '0' || before > '9') && (before|32 < 'a' || before|32 > 'z')
		if boundary && (strings.HasPrefix(after, "=") || strings.HasPrefix(after, ":")) {
			return i
		}
		from = i + len(name)
	}
}

// valueNode gives a value of a template as YAML.
func valueNode(v any, at diag.Pos) *yaml.Node {
	n := &yaml.Node{Line: at.Line, Column: at.Col, Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case nil:
		n.Tag = "!!null"
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case *jinja.List:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for i := range v.Len() {
			n.Content = append(n.Content, valueNode(v.At(i), at))
		}
	case jinja.Tuple:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v {
			n.Content = append(n.Content, valueNode(item, at))
		}
	case *jinja.Dict:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for k, item := range v.All() {
			n.Content = append(n.Content, valueNode(printed(k), at), valueNode(item, at))
		}
	default:
		n.Tag, n.Value = "!!str", printed(v)
	}
	return n
}

// sortedValues sorts keys of a dict by how they print.
func sortedValues(keys []any) []any {
	out := slices.Clone(keys)
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(printed(a), printed(b)) })
	return out
}
