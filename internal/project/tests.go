package project

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// testReader turns the assertions of one relation into Tests, in any of the
// shapes that a `tests:` key may have.
type testReader struct {
	d      *decoder
	kinds  *testKinds
	node   string
	output string
	out    []*Test
}

// read takes the value of a `tests:` key: a list of tests, or a mapping from
// test to argument. column is "" for those of the whole relation.
func (r *testReader) read(n *yaml.Node, column string, tags []string) {
	if isNull(n) {
		return
	}
	first := len(r.out)
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			r.item(resolved(item), column)
		}
	case yaml.MappingNode:
		for _, p := range r.d.pairs(n) {
			r.named(p.key, p.name, p.value, nil, column)
		}
	default:
		r.d.expected(n, "`tests`", "a list of tests or a mapping from test to argument")
	}
	for _, t := range r.out[first:] {
		t.Tags = append(t.Tags, tags...)
	}
}

// item takes one element of a list of tests.
func (r *testReader) item(n *yaml.Node, column string) {
	switch {
	case isNull(n):
		r.d.expected(n, "a test", "a name or a mapping")
	case n.Kind == yaml.ScalarNode:
		r.named(n, n.Value, nil, nil, column)
	case n.Kind == yaml.MappingNode:
		r.mapping(n, column)
	default:
		r.d.expected(n, "a test", "a name or a mapping")
	}
}

// mapping takes a test with arguments: {kind: arguments}, with dbt's keys beside
// it, or dbt's {test_name: kind, …}.
func (r *testReader) mapping(n *yaml.Node, column string) {
	var kinds, beside []pair
	var named *pair
	pairs := r.d.pairs(n)
	for i, p := range pairs {
		switch {
		case p.name == "test_name":
			named = &pairs[i]
		case r.kinds.knows(p.name):
			kinds = append(kinds, p)
		default:
			beside = append(beside, p)
		}
	}
	switch {
	case named != nil && named.value.Kind == yaml.ScalarNode:
		r.named(named.value, named.value.Value, nil, append(kinds, beside...), column)
	case len(kinds) == 1:
		r.named(kinds[0].key, kinds[0].name, kinds[0].value, beside, column)
	case len(kinds) > 1:
		r.d.add(diag.Errorf(diag.BadValue, r.d.pos(kinds[1].key), "one element of a list holds one test, here are %q and %q",
			kinds[0].name, kinds[1].name).WithHint("begin a new element with `- %s`", kinds[1].name))
	case len(beside) > 0:
		r.unknown(r.kindKey(beside).key)
	default:
		r.d.expected(n, "a test", "a name or a mapping with one")
	}
}

// kindKey picks the key that was meant to be the kind: the one that says
// nothing that any test may say.
func (r *testReader) kindKey(pairs []pair) pair {
	for _, p := range pairs {
		if _, common := builtinTests["not_null"].index[p.name]; !common && p.name != "config" {
			return p
		}
	}
	return pairs[0]
}

func (k *testKinds) knows(kind string) bool {
	_, foreign := foreignTests[kind]
	return builtinTests[kind] != nil || k.own[kind] != nil || foreign
}

// unknown reports a kind that is none.
func (r *testReader) unknown(n *yaml.Node) {
	if r.kinds.lost != nil && r.kinds.lost.macro(n.Value) {
		return
	}
	d := diag.Errorf(diag.UnknownTest, r.d.pos(n), "unknown test %q", n.Value)
	d.Width = len([]rune(n.Value))
	if near := diag.Nearest(n.Value, r.kinds.names); near != "" {
		d = d.WithHint("did you mean %q?", near)
	} else if n.Value == "tables" {
		d = d.WithHint("`tables` are the outputs of an ingest: %s is none", r.node)
	} else {
		d = d.WithHint("tests: %s", strings.Join(r.kinds.names, ", "))
	}
	r.d.add(d)
}

// named takes a test of a kind with its argument and the keys that stand beside
// it.
func (r *testReader) named(at *yaml.Node, kind string, arg *yaml.Node, beside []pair, column string) {
	if instead, ok := foreignTests[kind]; ok {
		r.d.add(diag.Errorf(diag.Unsupported, r.d.pos(at), "the test %s belongs to a dbt package that rbt does not have", kind).
			WithHint("%s", instead))
		return
	}
	own := r.kinds.own[kind]
	if builtinTests[kind] == nil && own == nil {
		r.unknown(at)
		return
	}
	arg = resolved(arg)
	if !isNull(arg) && arg.Kind == yaml.SequenceNode && len(arg.Content) > 0 &&
		resolved(arg.Content[0]).Kind == yaml.MappingNode {
		for _, item := range arg.Content {
			r.named(at, kind, item, beside, column)
		}
		return
	}
	if own != nil {
		r.own(at, own, arg, beside, column)
		return
	}
	r.builtin(at, kind, arg, beside, column)
}

// flatten makes one mapping of a test's argument: `arguments:` and `config:`
// are opened, as dbt nests them, and the keys beside the test are added.
// A scalar or list argument is left to the caller.
func flatten(at, arg *yaml.Node, beside []pair) *yaml.Node {
	flat := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
	add := func(key, value *yaml.Node) {
		value = resolved(value)
		if (key.Value == "config" || key.Value == "arguments") && value.Kind == yaml.MappingNode {
			flat.Content = append(flat.Content, value.Content...)
			return
		}
		flat.Content = append(flat.Content, key, value)
	}
	if !isNull(arg) && arg.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(arg.Content); i += 2 {
			add(arg.Content[i], arg.Content[i+1])
		}
	}
	for _, p := range beside {
		add(p.key, p.value)
	}
	return flat
}

// builtin takes a built-in assertion.
func (r *testReader) builtin(at *yaml.Node, kind string, arg *yaml.Node, beside []pair, column string) {
	f, ok := r.d.fields(flatten(at, arg, beside), builtinTests[kind])
	if !ok {
		return
	}
	t := &Test{Kind: kind, Node: r.node, Output: r.output, Pos: r.d.pos(at)}
	if !f.common(t) {
		return
	}
	a := argument{f: f, at: at, t: t, column: column}
	if !isNull(arg) && arg.Kind != yaml.MappingNode {
		a.scalars = r.d.argScalars(arg, kind)
		if a.scalars == nil {
			return
		}
	}
	a.columns()
	readers[kind](&a)
	if a.broken {
		return
	}
	if len(a.each) == 0 {
		r.out = append(r.out, t)
		return
	}
	for _, c := range a.each {
		one := *t
		one.snippets = slices.Clone(t.snippets)
		for i, s := range one.snippets {
			if s.text == &t.Where {
				one.snippets[i].text = &one.Where
			}
		}
		one.Columns = []string{c.Value}
		one.Pos = r.d.pos(c)
		r.out = append(r.out, &one)
	}
}

// argScalars gives a short argument: one scalar or a list of them, nulls kept.
// nil means that it was reported.
func (d *decoder) argScalars(n *yaml.Node, kind string) []*yaml.Node {
	if n.Kind == yaml.ScalarNode {
		return []*yaml.Node{n}
	}
	out := make([]*yaml.Node, 0, len(n.Content))
	for _, c := range n.Content {
		c = resolved(c)
		if c.Kind != yaml.ScalarNode {
			d.expected(c, "an argument of the test "+kind, "text")
			return nil
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		d.bad(n, "the list of the test %s is empty", kind)
		return nil
	}
	return out
}

// common reads what every assertion may say; false where it is not enabled.
func (f fields) common(t *Test) bool {
	t.Name = strings.TrimSpace(f.text("name"))
	if n := f.node("name"); n != nil {
		if problem := nameProblem(t.Name); problem != "" {
			f.d.bad(n, "%q cannot be the name of a test: %s", t.Name, problem)
			t.Name = ""
		}
	}
	t.Description = f.text("description")
	// Mappings were opened when the test was flattened.
	for _, key := range []string{"config", "arguments"} {
		if n := f.node(key); n != nil {
			f.d.expected(n, f.label(key), "a mapping")
		}
	}
	f.testConfig(t)
	return f.boolean("enabled", true)
}

// testConfig reads severity, thresholds and the like.
func (f fields) testConfig(t *Test) {
	t.Severity = diag.Error
	if f.text("severity") == "warn" {
		t.Severity = diag.Warning
	}
	t.said = f
	t.WarnIf, t.ErrorIf = f.threshold("warn_if"), f.threshold("error_if")
	t.Where = strings.TrimSpace(f.text("where"))
	t.snippets = append(t.snippets, snippet{&t.Where, f.node("where"), f.d.file})
	t.Limit = f.integer("limit", 0)
	t.FailNulls = f.text("nulls") == "fail"
	t.Tags = append(t.Tags, f.texts("tags")...)
}

var thresholdText = regexp.MustCompile(`^(=|==|!=|<>|<|<=|>|>=)\s*(\d+(?:\.\d+)?)\s*(%)?$`)

// threshold reads warn_if or error_if.
func (f fields) threshold(name string) *Threshold {
	n := f.node(name)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		f.d.expected(n, f.label(name), "text")
		return nil
	}
	text := strings.TrimSpace(n.Value)
	m := thresholdText.FindStringSubmatch(text)
	if m == nil {
		f.d.badHint(n, "write a comparison with a count or a percentage: \">10\", \"!= 0\", \">= 5%\"",
			"%s cannot be %q", f.label(name), n.Value)
		return nil
	}
	number, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		f.d.bad(n, "%s: %q is no number", f.label(name), m[2])
		return nil
	}
	t := &Threshold{Op: m[1], Number: number, Percent: m[3] != "", Text: text}
	if t.Percent && number > 100 {
		f.d.badHint(n, "a percentage of the rows is between 0% and 100%", "%s cannot be %q", f.label(name), n.Value)
		return nil
	}
	return t
}

var durationPart = regexp.MustCompile(`^(\d{1,9})\s*(seconds?|s|minutes?|mins?|m|hours?|h|days?|d|weeks?|w)\b[\s,]*`)

// units gives the length of a unit by its first letter; words and abbreviations
// of durationPart never share one.
var units = map[byte]time.Duration{
	's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
}

// durationTable is dbt's form of a duration.
var durationTable = newTable("duration", "a duration", nil,
	mapKey{name: "count", kind: kindInt, required: true, doc: "How many."},
	mapKey{name: "period", kind: kindText, required: true, enum: []string{"second", "minute", "hour", "day", "week"}, doc: "Of what."},
)

// duration reads "1 day", "2 hours 30 minutes", "90m" or {count: 1, period: day};
// 0 where it is absent or wrong.
func (f fields) duration(name string) time.Duration {
	n := f.node(name)
	if n == nil {
		return 0
	}
	if n.Kind == yaml.MappingNode {
		sub, _ := f.d.fields(n, durationTable)
		period := sub.text("period")
		if period == "" {
			return 0
		}
		return f.d.positive(n, f.label(name), time.Duration(sub.integer("count", 0))*units[period[0]])
	}
	if n.Kind != yaml.ScalarNode {
		f.d.expected(n, f.label(name), "a duration such as 1 day")
		return 0
	}
	return f.d.durationText(n, f.label(name))
}

func (d *decoder) durationText(n *yaml.Node, what string) time.Duration {
	var sum time.Duration
	rest := strings.ToLower(strings.TrimSpace(n.Value))
	for rest != "" {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			d.badHint(n, "write a number and a unit: 30 minutes, 12 hours, 1 day", "%s cannot be %q", what, n.Value)
			return 0
		}
		count, _ := strconv.Atoi(m[1])
		sum += time.Duration(count) * units[m[2][0]]
		rest = rest[len(m[0]):]
	}
	return d.positive(n, what, sum)
}

// positive reports durations that are 0 or too long to count.
func (d *decoder) positive(n *yaml.Node, what string, v time.Duration) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	if v <= 0 || v > century {
		d.bad(n, "%s must be longer than 0 and shorter than a hundred years", what)
		return 0
	}
	return v
}

func newTestKinds(own map[string]*ownTest) *testKinds {
	names := slices.Collect(maps.Keys(builtinTests))
	names = slices.AppendSeq(names, maps.Keys(own))
	slices.Sort(names)
	return &testKinds{own: own, names: names}
}
