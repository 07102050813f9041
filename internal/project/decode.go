package project

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// decoder turns YAML trees into typed values and collects every problem. It is
// strict: what no table names is an error.
type decoder struct {
	file  string
	diags diag.List
}

func (d *decoder) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: d.file, Line: n.Line, Col: n.Column}
}

func (d *decoder) add(diagnostic diag.Diagnostic) { d.diags = append(d.diags, diagnostic) }

// bad reports a value of the wrong kind or outside what is allowed.
func (d *decoder) bad(n *yaml.Node, format string, args ...any) {
	d.add(diag.Errorf(diag.BadValue, d.pos(n), format, args...))
}

// badHint is bad with what to do about it.
func (d *decoder) badHint(n *yaml.Node, hint, format string, args ...any) {
	d.add(diag.Errorf(diag.BadValue, d.pos(n), format, args...).WithHint("%s", hint))
}

// bothPlaces says where two keys stand.
func bothPlaces(first, second *yaml.Node) string {
	if first.Line == second.Line {
		return fmt.Sprintf("in columns %d and %d of the line", first.Column, second.Column)
	}
	return fmt.Sprintf("on lines %d and %d", first.Line, second.Line)
}

// resolved follows an alias. Cycles were refused when the text was parsed.
func resolved(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// describe names what stands there, for messages.
func describe(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	default:
		return strconv.Quote(n.Value)
	}
}

// looksLikeTemplate reports whether a flow mapping is in truth an unquoted
// {{ … }}.
func looksLikeTemplate(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 && len(n.Content) > 0 &&
		resolved(n.Content[0]).Kind == yaml.MappingNode
}

// expected reports that something else had to stand there.
func (d *decoder) expected(n *yaml.Node, what, kind string) {
	if looksLikeTemplate(n) {
		d.badHint(n, "put it in quotes: \"{{ … }}\"", "%s must be %s; an unquoted {{ is a mapping in YAML", what, kind)
		return
	}
	d.badHint(n, shapeHint(kind), "%s must be %s, not %s", what, kind, describe(n))
}

// shapeHint says how a mapping or a list is written; "" for all else.
func shapeHint(kind string) string {
	switch kind {
	case "a mapping":
		return "a mapping is written as `key: value`, each on a line of its own, or {key: value}"
	case "a list":
		return "a list is written as `- value`, each on a line of its own, or [value, value]"
	}
	return ""
}

// pair is one key of a mapping with its value.
type pair struct {
	key   *yaml.Node
	name  string
	value *yaml.Node
	inner bool // came through a merge key
}

// pairs lists the keys of a mapping in order, merge keys expanded (a key that
// is written wins), and reports keys that are no scalars and keys that stand
// twice.
func (d *decoder) pairs(n *yaml.Node) []pair {
	out := make([]pair, 0, len(n.Content)/2)
	var seen map[string]int
	if len(n.Content) > 16 {
		seen = make(map[string]int, len(n.Content)/2)
	}
	find := func(name string) int {
		if seen != nil {
			if i, ok := seen[name]; ok {
				return i
			}
			return -1
		}
		for i := range out {
			if out[i].name == name {
				return i
			}
		}
		return -1
	}
	push := func(p pair) {
		if seen != nil {
			seen[p.name] = len(out)
		}
		out = append(out, p)
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), resolved(n.Content[i+1])
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			d.expected(key, "a key", "text")
			continue
		}
		if j := find(key.Value); j >= 0 {
			d.add(diag.Errorf(diag.DuplicateKey, d.pos(key), "the key %q stands twice, %s",
				key.Value, bothPlaces(out[j].key, key)).WithNote(d.pos(out[j].key), "the first one"))
			continue
		}
		push(pair{key: key, name: key.Value, value: value})
	}
	for _, m := range merges {
		for _, p := range d.merged(m) {
			if find(p.name) < 0 {
				p.inner = true
				push(p)
			}
		}
	}
	return out
}

// merged gives the pairs that a merge key brings.
func (d *decoder) merged(n *yaml.Node) []pair {
	switch n.Kind {
	case yaml.MappingNode:
		return d.pairs(n)
	case yaml.SequenceNode:
		var out []pair
		for _, c := range n.Content {
			if c = resolved(c); c.Kind == yaml.MappingNode {
				out = append(out, d.pairs(c)...)
			} else {
				d.expected(c, "a merged value", "a mapping")
			}
		}
		return out
	default:
		d.expected(n, "a merged value", "a mapping")
		return nil
	}
}

// fields is a mapping read against its table. The zero value is an empty
// mapping.
type fields struct {
	d     *decoder
	t     *keyTable
	at    *yaml.Node
	found []pair  // the keys that are there, in order
	where []uint8 // by index of the table's key: its place in found, from 1; 0 where it is absent
}

// get gives what stands at the i-th key of the table; its key is nil where it is
// absent.
func (f fields) get(i int) pair {
	if at := f.where[i]; at > 0 {
		return f.found[at-1]
	}
	return pair{}
}

// fields reads a mapping against a table and reports what does not belong
// there. ok is false where it is no mapping; nothing at all is an empty one.
func (d *decoder) fields(n *yaml.Node, t *keyTable) (f fields, ok bool) {
	f = fields{d: d, t: t, at: n, where: make([]uint8, len(t.keys))}
	if isNull(n) {
		return f, true
	}
	if n.Kind != yaml.MappingNode {
		d.expected(n, t.what, "a mapping")
		return f, false
	}
	for _, p := range d.pairs(n) {
		i, known := t.index[p.name]
		if !known {
			d.unknownKey(p, t)
			continue
		}
		if first := f.get(i).key; first != nil {
			d.add(diag.Errorf(diag.DuplicateKey, d.pos(p.key), "%q and %q are one key, %s",
				f.get(i).name, p.name, bothPlaces(first, p.key)).WithNote(d.pos(first), "the first one"))
			continue
		}
		f.found = append(f.found, p)
		f.where[i] = uint8(len(f.found))
	}
	for i, k := range t.keys {
		if k.required && (f.get(i).key == nil || isNull(f.get(i).value)) {
			d.add(diag.Errorf(diag.MissingKey, d.pos(n), "%s needs the key %q", t.what, k.name))
		}
	}
	return f, true
}

func (d *decoder) unknownKey(p pair, t *keyTable) {
	if instead, ok := t.foreign[p.name]; ok {
		diagnostic := diag.Errorf(diag.Unsupported, d.pos(p.key), "%q is a key of dbt that rbt does not have", p.name)
		if instead != "" {
			diagnostic = diagnostic.WithHint("%s", instead)
		}
		diagnostic.Width = len([]rune(p.name))
		d.add(diagnostic)
		return
	}
	if d.halfType(p) {
		return
	}
	diagnostic := diag.Errorf(diag.UnknownKey, d.pos(p.key), "unknown key %q in %s", p.name, t.what)
	if hint := keysElsewhere[t.name+"."+p.name]; hint != "" {
		diagnostic = diagnostic.WithHint("%s", hint)
	} else if near := diag.Nearest(p.name, t.names); near != "" {
		diagnostic = diagnostic.WithHint("did you mean %q?", near)
	} else {
		diagnostic = diagnostic.WithHint("known keys: %s", strings.Join(t.keyNames(), ", "))
	}
	diagnostic.Width = len([]rune(p.name))
	d.add(diagnostic)
}

// keysElsewhere says of keys that have their place elsewhere where that is, by the
// table in which they were met.
var keysElsewhere = map[string]string{
	"model.tables":  "tests of the outputs of an ingest stand under `tests`, as `tests: {tables: {lines: {not_null: sku}}}`; tables of a source in project.yml",
	"model.sources": "sources stand in project.yml, or in a .yml file under models/",
	"model.seeds":   "seeds stand in a .yml file under models/",
}

// keyNames lists the keys without their aliases, in the table's order.
func (t *keyTable) keyNames() []string {
	out := make([]string, len(t.keys))
	for i, k := range t.keys {
		out[i] = k.name
	}
	return out
}

// key gives the table's entry; asking for a key that the table does not have is
// a mistake in rbt, not in a file.
func (f fields) key(name string) int {
	i, ok := f.t.index[name]
	if !ok {
		panic(fmt.Sprintf("project: table %s has no key %q", f.t.name, name))
	}
	return i
}

// has reports whether the key is written, even with no value.
func (f fields) has(name string) bool { return f.get(f.key(name)).key != nil }

// node gives the value, nil where the key is absent or has none.
func (f fields) node(name string) *yaml.Node {
	n := f.get(f.key(name)).value
	if isNull(n) {
		return nil
	}
	return n
}

// pos gives the place of the value, else of the key, else of the mapping.
func (f fields) pos(name string) diag.Pos {
	p := f.get(f.key(name))
	switch {
	case p.key == nil && f.at == nil:
		return diag.Pos{File: f.d.file}
	case p.key == nil:
		return f.d.pos(f.at)
	case isNull(p.value):
		return f.d.pos(p.key)
	default:
		return f.d.pos(p.value)
	}
}

// keyPos gives the place of the key, zero where it is absent.
func (f fields) keyPos(name string) diag.Pos {
	if p := f.get(f.key(name)); p.key != nil {
		return f.d.pos(p.key)
	}
	return diag.Pos{}
}

// label names the key as it was written, for messages.
func (f fields) label(name string) string {
	if p := f.get(f.key(name)); p.key != nil {
		return "`" + p.name + "`"
	}
	return "`" + name + "`"
}

// text gives a scalar as spelled, "" where it is absent. Where the table lists
// words, spaces and case are forgiven and anything else is an error.
func (f fields) text(name string) string {
	n := f.node(name)
	k := f.t.keys[f.key(name)]
	if n == nil {
		// In YAML the bare word null is no value; where it is a word of the key, it means itself.
		if v := f.get(f.key(name)).value; v != nil && v.Value != "" && slices.Contains(k.enum, strings.ToLower(v.Value)) {
			return strings.ToLower(v.Value)
		}
		if k.enum != nil && f.has(name) {
			f.d.add(diag.Errorf(diag.BadValue, f.pos(name), "%s has no value", f.label(name)).
				WithHint("allowed: %s", strings.Join(k.enum, ", ")))
		}
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		f.d.expected(n, f.label(name), "text")
		return ""
	}
	if k.enum == nil {
		return n.Value
	}
	return f.d.word(n, f.label(name), k.enum)
}

// word gives one of the allowed words, "" after reporting anything else.
func (d *decoder) word(n *yaml.Node, what string, allowed []string) string {
	word := strings.ToLower(strings.TrimSpace(n.Value))
	for _, a := range allowed {
		if a == word {
			return a
		}
	}
	diagnostic := diag.Errorf(diag.BadValue, d.pos(n), "%s cannot be %q", what, n.Value)
	if near := diag.Nearest(word, allowed); near != "" {
		diagnostic = diagnostic.WithHint("did you mean %q? Allowed: %s", near, strings.Join(allowed, ", "))
	} else {
		diagnostic = diagnostic.WithHint("allowed: %s", strings.Join(allowed, ", "))
	}
	d.add(diagnostic)
	return ""
}

// boolean gives true or false; yes, no, on and off are taken too, because the
// key can mean nothing else.
func (f fields) boolean(name string, def bool) bool {
	n := f.node(name)
	if n == nil {
		if f.has(name) {
			f.d.add(diag.Errorf(diag.BadValue, f.pos(name), "%s has no value", f.label(name)).WithHint("allowed: true, false"))
		}
		return def
	}
	v, ok := f.d.boolean(n, f.label(name))
	if !ok {
		return def
	}
	return v
}

func (d *decoder) boolean(n *yaml.Node, what string) (value, ok bool) {
	if n.Kind == yaml.ScalarNode {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on":
			return true, true
		case "false", "no", "off":
			return false, true
		}
	}
	d.expected(n, what, "true or false")
	return false, false
}

// integer gives a whole number that is not negative, def where it is absent.
func (f fields) integer(name string, def int) int {
	n := f.node(name)
	if n == nil {
		return def
	}
	if n.Kind == yaml.ScalarNode {
		if v, err := strconv.Atoi(n.Value); err == nil && v >= 0 {
			return v
		}
	}
	f.d.expected(n, f.label(name), "a whole number, 0 or more")
	return def
}

// texts gives a scalar or a list of scalars.
func (f fields) texts(name string) []string {
	n := f.node(name)
	if n == nil {
		return nil
	}
	nodes := f.d.scalars(n, f.label(name))
	out := make([]string, len(nodes))
	for i, s := range nodes {
		out[i] = s.Value
	}
	return out
}

// scalars gives the scalars of one scalar or a list of them; what is no scalar
// is reported and left out.
func (d *decoder) scalars(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind == yaml.ScalarNode {
		return []*yaml.Node{n}
	}
	if n.Kind != yaml.SequenceNode {
		d.expected(n, what, "text or a list of texts")
		return nil
	}
	out := make([]*yaml.Node, 0, len(n.Content))
	for _, c := range n.Content {
		c = resolved(c)
		if c.Kind != yaml.ScalarNode || isNull(c) {
			d.expected(c, "a value of "+what, "text")
			continue
		}
		out = append(out, c)
	}
	return out
}

// items gives the elements of a list.
func (f fields) items(name string) []*yaml.Node {
	n := f.node(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		f.d.expected(n, f.label(name), "a list")
		return nil
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out[i] = resolved(c)
	}
	return out
}

// entries gives the pairs of a mapping with free names.
func (f fields) entries(name string) []pair {
	n := f.node(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		f.d.expected(n, f.label(name), "a mapping")
		return nil
	}
	return f.d.pairs(n)
}

// textMap gives a mapping of scalars as spelled.
func (f fields) textMap(name string) map[string]string {
	var out map[string]string
	for _, p := range f.entries(name) {
		if p.value.Kind != yaml.ScalarNode || isNull(p.value) {
			f.d.expected(p.value, "`"+p.name+"`", "text")
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[p.name] = p.value.Value
	}
	return out
}

// table reads a mapping against its table; absent is an empty one.
func (f fields) table(name string) fields {
	sub, _ := f.d.fields(f.node(name), tableNamed(f.t.keys[f.key(name)].sub))
	return sub
}
