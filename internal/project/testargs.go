package project

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// argument is a test whose own arguments are being read.
type argument struct {
	f       fields
	at      *yaml.Node // the kind
	t       *Test
	column  string       // where the test stands at a column
	scalars []*yaml.Node // of a short argument
	each    []*yaml.Node // columns that get a test each
	broken  bool         // reported; there is no test
}

// readers read the arguments of each kind.
var readers = map[string]func(*argument){
	"not_null":        (*argument).perColumn,
	"not_constant":    (*argument).perColumn,
	"unique":          (*argument).unique,
	"accepted_values": (*argument).acceptedValues,
	"relationships":   (*argument).relationships,
	"range":           (*argument).bounds,
	"row_count":       (*argument).rowCount,
	"expression":      (*argument).expression,
	"matches":         (*argument).matches,
	"freshness":       (*argument).freshness,
	"sequence":        (*argument).sequence,
}

func (a *argument) fail(d diag.Diagnostic) {
	a.f.d.add(d)
	a.broken = true
}

// missing reports an argument that must be there.
func (a *argument) missing(name string) {
	a.fail(diag.Errorf(diag.MissingKey, a.f.d.pos(a.at), "the test %s needs `%s`", a.t.Kind, name))
}

// columns reads column or columns, or takes the column at which the test stands.
func (a *argument) columns() {
	names := a.f.texts("columns")
	if one := a.f.text("column"); one != "" {
		names = append(names, one)
	}
	switch {
	case a.column == "":
		a.t.Columns = names
	case len(names) > 0 && (len(names) > 1 || names[0] != a.column):
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(a.at), "the test %s stands at the column %q and names another", a.t.Kind, a.column).
			WithHint("move it to the `tests` of the model"))
	default:
		a.t.Columns = []string{a.column}
	}
}

// take gives the short argument where one is allowed, and reports it elsewhere.
func (a *argument) take(what string) []*yaml.Node {
	if a.scalars != nil && what == "" {
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(a.scalars[0]), "the test %s takes no such argument, write a mapping", a.t.Kind))
		return nil
	}
	return a.scalars
}

// one gives a short argument that must be a single text.
func (a *argument) one(what string) *yaml.Node {
	s := a.take(what)
	if len(s) > 1 {
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(s[1]), "the test %s takes one %s", a.t.Kind, what))
		return nil
	}
	if len(s) == 0 || isNull(s[0]) {
		return nil
	}
	return s[0]
}

// onColumn reports a test that needs exactly one column and has none or more.
func (a *argument) onColumn() {
	if !a.broken && len(a.t.Columns) != 1 {
		a.missing("column")
	}
}

// perColumn is for kinds that check each of their columns by itself.
func (a *argument) perColumn() {
	if a.column != "" {
		a.take("")
		return
	}
	a.each = a.take("columns")
	for _, c := range a.each {
		if isNull(c) {
			a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(c), "a column of the test %s has no name", a.t.Kind))
			return
		}
	}
	if len(a.each) == 0 && len(a.t.Columns) > 1 {
		for _, c := range a.t.Columns {
			a.each = append(a.each, &yaml.Node{Kind: yaml.ScalarNode, Value: c, Line: a.at.Line, Column: a.at.Column})
		}
	}
	if len(a.each) == 0 && len(a.t.Columns) == 0 {
		a.missing("column")
	}
}

func (a *argument) unique() {
	if a.column != "" {
		a.take("")
		return
	}
	for _, c := range a.take("columns") {
		a.t.Columns = append(a.t.Columns, c.Value)
	}
	if len(a.t.Columns) == 0 {
		a.missing("columns")
	}
	seen := map[string]bool{}
	for _, c := range a.t.Columns {
		if seen[folded(c)] {
			a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(a.at), "the test unique names the column %q twice", c))
		}
		seen[folded(c)] = true
	}
}

func (a *argument) acceptedValues() {
	a.onColumn()
	nodes := a.scalars
	if a.column == "" {
		nodes = a.take("")
	}
	at := a.at
	if n := a.f.node("values"); n != nil {
		at = n
		if n.Kind != yaml.SequenceNode {
			a.f.d.expected(n, "`values`", "a list")
			a.broken = true
			return
		}
		nodes = nil
		for _, c := range n.Content {
			nodes = append(nodes, resolved(c))
		}
	} else if nodes == nil && !a.f.has("values") {
		if !a.broken {
			a.missing("values")
		}
		return
	}
	some := false
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode {
			a.f.d.expected(n, "a value of `values`", "text")
			a.broken = true
			continue
		}
		if isNull(n) {
			a.t.Args.Values = append(a.t.Args.Values, nil)
			continue
		}
		some = true
		a.t.Args.Values = append(a.t.Args.Values, &n.Value)
	}
	if !some && !a.broken {
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(at), "the list of accepted values is empty: no row could pass"))
	}
}

func (a *argument) relationships() {
	a.take("")
	a.onColumn()
	if a.broken {
		return
	}
	n := a.f.node("to")
	if n == nil {
		a.missing("to")
		return
	}
	call, problem := parseReference(n)
	if problem != "" {
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(n), "`to` cannot be %q: %s", n.Value, problem).
			WithHint("write a name, ref('name') or source('group', 'table')"))
		return
	}
	a.t.Args.To, a.t.Args.ToSource = call.name(), call.source
	a.t.Args.toCall, a.t.Args.toPos = call, a.f.d.pos(n)
	a.t.Args.Field = a.f.text("field")
	if a.t.Args.Field == "" {
		a.t.Args.Field = a.t.Columns[0]
	}
}

// number reads an argument that must be spelled like a number, a date or a time.
func (a *argument) bound(name string) *string {
	n := a.f.node(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		a.f.d.expected(n, a.f.label(name), "a number, date or time")
		a.broken = true
		return nil
	}
	return &n.Value
}

func (a *argument) bounds() {
	a.take("")
	a.onColumn()
	a.t.Args.Min, a.t.Args.Max = a.bound("min"), a.bound("max")
	if a.broken {
		return
	}
	if a.t.Args.Min == nil && a.t.Args.Max == nil {
		a.missing("min` or `max")
		return
	}
	exclusive := a.f.text("exclusive")
	a.t.Args.ExclusiveMin = exclusive == "true" || exclusive == "min"
	a.t.Args.ExclusiveMax = exclusive == "true" || exclusive == "max"
	a.checkOrder()
}

// checkOrder reports bounds between which nothing lies.
func (a *argument) checkOrder() {
	args := a.t.Args
	if args.Min == nil || args.Max == nil || !anyNumber.MatchString(*args.Min) || !anyNumber.MatchString(*args.Max) {
		return
	}
	low, ok1 := new(big.Float).SetString(*args.Min)
	high, ok2 := new(big.Float).SetString(*args.Max)
	if !ok1 || !ok2 {
		return
	}
	order := low.Cmp(high)
	if order > 0 || order == 0 && (args.ExclusiveMin || args.ExclusiveMax) {
		a.fail(diag.Errorf(diag.BadValue, a.f.pos("max"), "nothing lies between %s and %s", *args.Min, *args.Max))
	}
}

// count reads a number of rows.
func (a *argument) count(name string) *string {
	n := a.f.node(name)
	if n == nil {
		return nil
	}
	return a.countOf(n, a.f.label(name))
}

func (a *argument) countOf(n *yaml.Node, what string) *string {
	if n.Kind == yaml.ScalarNode {
		if _, err := strconv.ParseUint(n.Value, 10, 63); err == nil {
			return &n.Value
		}
	}
	a.f.d.expected(n, what, "a number of rows")
	a.broken = true
	return nil
}

func (a *argument) rowCount() {
	if a.column != "" {
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(a.at), "the test row_count is about a whole relation").
			WithHint("move it to the `tests` of the model"))
		return
	}
	args := &a.t.Args
	if n := a.one("number of rows"); n != nil {
		args.Equal = a.countOf(n, "`row_count`")
	}
	if a.f.has("equal") {
		args.Equal = a.count("equal")
	}
	args.Min, args.Max = a.count("min"), a.count("max")
	if n := a.f.node("equal_to"); n != nil && n.Kind == yaml.ScalarNode {
		if plainInt.MatchString(n.Value) {
			args.Equal = a.countOf(n, "`equal_to`")
		} else if call, problem := parseReference(n); problem != "" {
			a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(n), "`equal_to` cannot be %q: %s", n.Value, problem))
		} else {
			args.EqualTo, args.toCall, args.toPos = call.name(), call, a.f.d.pos(n)
		}
	} else if n != nil {
		a.f.d.expected(n, "`equal_to`", "the name of a model")
		a.broken = true
	}
	if a.broken {
		return
	}
	if args.Min == nil && args.Max == nil && args.Equal == nil && args.EqualTo == "" {
		a.missing("min`, `max`, `equal` or `equal_to")
		return
	}
	a.checkOrder()
}

func (a *argument) expression() {
	nodes := a.take("conditions")
	if n := a.f.node("sql"); n != nil {
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		if !a.broken {
			a.missing("sql")
		}
		return
	}
	if len(nodes) > 1 {
		a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(nodes[1]), "the test expression takes one condition").
			WithHint("join them with `and`, or write a list element for each: `- expression: …`"))
		return
	}
	if nodes[0].Kind != yaml.ScalarNode || strings.TrimSpace(nodes[0].Value) == "" {
		a.f.d.expected(nodes[0], "the condition of the test expression", "SQL")
		a.broken = true
		return
	}
	a.t.Args.SQL = nodes[0].Value
	a.t.snippets = append(a.t.snippets, snippet{&a.t.Args.SQL, nodes[0], a.f.d.file})
}

func (a *argument) matches() {
	a.onColumn()
	n := a.f.node("pattern")
	if n == nil && a.column != "" {
		n = a.one("pattern")
	} else {
		a.takeNone()
	}
	switch {
	case a.broken:
	case n == nil:
		a.missing("pattern")
	case n.Kind != yaml.ScalarNode:
		a.f.d.expected(n, "`pattern`", "a regular expression")
		a.broken = true
	default:
		a.t.Args.Pattern = n.Value
		// DuckDB's regular expressions are RE2, whose syntax is Go's.
		if _, err := regexp.Compile(n.Value); err != nil {
			a.fail(diag.Errorf(diag.BadValue, a.f.d.pos(n), "%q is no regular expression: %s", n.Value,
				strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
		}
	}
}

// takeNone reports a short argument beside the long one.
func (a *argument) takeNone() {
	if a.scalars != nil {
		a.take("")
	}
}

func (a *argument) freshness() {
	a.onColumn()
	if n := a.one("age"); n != nil && a.column != "" {
		a.t.Args.MaxAge = a.f.d.durationText(n, "the age of the test freshness")
		a.broken = a.broken || a.t.Args.MaxAge == 0
		return
	}
	if a.broken {
		return
	}
	if a.f.node("max_age") == nil {
		a.missing("max_age")
		return
	}
	a.t.Args.MaxAge = a.f.duration("max_age")
	a.broken = a.t.Args.MaxAge == 0
}

func (a *argument) sequence() {
	a.perColumn()
	n := a.f.node("step")
	if a.broken || n == nil {
		return
	}
	step, ok := new(big.Float).SetString(n.Value)
	isNumber := anyNumber.MatchString(n.Value) && ok && step.Sign() != 0
	if n.Kind != yaml.ScalarNode || !isNumber && !isInterval(n.Value) {
		a.f.d.expected(n, "`step`", "a number other than 0, or of dates and times an interval such as 1 day")
		a.broken = true
		return
	}
	a.t.Args.Value = &n.Value
}

var intervalText = regexp.MustCompile(`(?i)^(\d+ (microsecond|millisecond|second|minute|hour|day|week|month|quarter|year)s?\s*)+$`)

// isInterval reports whether a text is an interval as the engine reads it, and
// not an empty one.
func isInterval(text string) bool {
	return intervalText.MatchString(text) && strings.ContainsAny(text, "123456789")
}

// own takes a test of a {% test %} block: its parameters are its arguments.
func (r *testReader) own(at *yaml.Node, own *ownTest, arg *yaml.Node, beside []pair, column string) {
	flat := flatten(at, arg, beside)
	kept := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
	t := &Test{Kind: own.info.Name, Node: r.node, Output: r.output, Pos: r.d.pos(at), Args: TestArgs{Custom: map[string]any{}}}
	if column != "" {
		t.Columns = []string{column}
	}
	ok := true
	if !isNull(arg) && arg.Kind != yaml.MappingNode {
		r.d.expected(arg, "the argument of the test "+own.info.Name, "a mapping of its parameters")
		return
	}
	for _, p := range r.d.pairs(flat) {
		switch {
		case p.name == "column_name" && column == "":
			if p.value.Kind == yaml.ScalarNode {
				t.Columns = []string{p.value.Value}
			}
		case own.takes(p.name):
			t.Args.Custom[p.name] = r.d.value(p.value)
		case own.table.index[p.name] > 0 || own.table.has(p.name) || own.table.foreign[p.name] != "":
			kept.Content = append(kept.Content, p.key, p.value)
		default:
			r.d.add(own.unknownArgument(r.d, p))
			ok = false
		}
	}
	f, _ := r.d.fields(kept, own.table)
	if !f.common(t) {
		return
	}
	if len(t.Columns) > 0 && !own.has("column_name") {
		r.d.add(diag.Errorf(diag.BadValue, r.d.pos(at), "the test %s has no parameter column_name, and it stands at the column %q", own.info.Name, t.Columns[0]).
			WithHint("move it to the `tests` of the model").WithNote(own.info.Pos, "it is defined here"))
		ok = false
	}
	if d, missing := own.missingArgument(t); missing {
		d.Pos = r.d.pos(at)
		r.d.add(d)
		ok = false
	}
	if ok {
		r.out = append(r.out, t)
	}
}

func (t *keyTable) has(name string) bool {
	_, ok := t.index[name]
	return ok
}

// takes reports whether a parameter of that name can be given in YAML; the
// first parameter is the relation.
func (o *ownTest) takes(name string) bool {
	return name != "column_name" && o.has(name)
}

// has reports whether a parameter behind the relation has the name.
func (o *ownTest) has(name string) bool {
	for i, p := range o.info.Params {
		if i > 0 && p.Name == name {
			return true
		}
	}
	return false
}

func (o *ownTest) unknownArgument(d *decoder, p pair) diag.Diagnostic {
	var names []string
	for i, param := range o.info.Params {
		if i > 0 {
			names = append(names, param.Name)
		}
	}
	out := diag.Errorf(diag.UnknownKey, d.pos(p.key), "the test %s has no parameter %q", o.info.Name, p.name)
	out.Width = len([]rune(p.name))
	if near := diag.Nearest(p.name, append(names, o.table.names...)); near != "" {
		return out.WithHint("did you mean %q?", near)
	}
	if len(names) == 0 {
		return out.WithNote(o.info.Pos, "it has none")
	}
	return out.WithHint("parameters: %s", strings.Join(names, ", ")).WithNote(o.info.Pos, "it is defined here")
}

// missingArgument reports a parameter without a default that nothing gives.
func (o *ownTest) missingArgument(t *Test) (diag.Diagnostic, bool) {
	for i, p := range o.info.Params {
		if i == 0 || p.HasDefault {
			continue
		}
		if p.Name == "column_name" {
			if len(t.Columns) == 0 {
				return diag.Errorf(diag.MissingKey, diag.Pos{}, "the test %s needs a column", o.info.Name).
					WithHint("write it under a column, or give `column_name:`"), true
			}
			continue
		}
		if _, ok := t.Args.Custom[p.Name]; !ok {
			return diag.Errorf(diag.MissingKey, diag.Pos{}, "the test %s needs `%s`", o.info.Name, p.Name), true
		}
	}
	return diag.Diagnostic{}, false
}
