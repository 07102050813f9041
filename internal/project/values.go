package project

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// Number is a scalar of a unit test's rows that is spelled like a number. It
// keeps its spelling, because only the column's type says what it means.
type Number string

var (
	// plainInt is a whole number that prints as it is spelled.
	plainInt = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	// plainFloat is a decimal that prints as it is spelled, if it is exact.
	plainFloat = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)
	anyNumber  = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
)

// scalarValue gives a scalar as a template value. What is spelled like a date,
// a number that would print otherwise (00123, 1_000, 1e3, 1.50) or YAML 1.1's
// yes and no stays text, so that a template prints what was written; only plain
// numbers become numbers, so that templates can count with them.
func scalarValue(n *yaml.Node) any {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 ||
		n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str" {
		return n.Value
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	return numberValue(n.Value)
}

// numberValue gives a number where the text is one that prints as spelled, else
// the text.
func numberValue(text string) any {
	switch {
	case plainInt.MatchString(text):
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i
		}
		if b, ok := new(big.Int).SetString(text, 10); ok && len(text) < 1000 {
			return b
		}
	case plainFloat.MatchString(text):
		f, err := strconv.ParseFloat(text, 64)
		if err == nil && printsAs(f, text) {
			return f
		}
	}
	return text
}

// printsAs reports whether a float prints as the text, in Python's spelling.
func printsAs(f float64, text string) bool {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s == text
}

// value gives a tree as a template value: mappings and lists are references, as
// in Python.
func (d *decoder) value(n *yaml.Node) any {
	n = resolved(n)
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.MappingNode:
		dict := jinja.NewDict()
		for _, p := range d.pairs(n) {
			// Text is always a valid key.
			_ = dict.Set(p.name, d.value(p.value))
		}
		return dict
	case n.Kind == yaml.SequenceNode:
		list := jinja.NewList()
		for _, c := range n.Content {
			list.Append(d.value(c))
		}
		return list
	default:
		return scalarValue(n)
	}
}

// rowValue is value for the rows of unit tests, in which a number keeps its
// spelling.
func (d *decoder) rowValue(n *yaml.Node) any {
	n = resolved(n)
	if n != nil && n.Kind == yaml.SequenceNode {
		list := jinja.NewList()
		for _, c := range n.Content {
			list.Append(d.rowValue(c))
		}
		return list
	}
	if n != nil && n.Kind == yaml.MappingNode {
		dict := jinja.NewDict()
		for _, p := range d.pairs(n) {
			// Text is always a valid key.
			_ = dict.Set(p.name, d.rowValue(p.value))
		}
		return dict
	}
	if isNull(n) {
		return nil
	}
	v := scalarValue(n)
	if _, isBool := v.(bool); isBool {
		return v
	}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0
	if !quoted && anyNumber.MatchString(n.Value) {
		return Number(n.Value)
	}
	return n.Value
}

// values gives a mapping with free names as template values.
func (f fields) values(name string) map[string]any {
	entries := f.entries(name)
	if entries == nil {
		return nil
	}
	out := make(map[string]any, len(entries))
	for _, p := range entries {
		out[p.name] = f.d.value(p.value)
	}
	return out
}

// cliFile names the command line in places.
const cliFile = "--vars"

// ParseVars reads the text of --vars: a YAML mapping. Values keep their
// spelling. The error is a diag.List with places in the text, whose file is
// "--vars".
func ParseVars(text string) (map[string]any, error) {
	y := yamlText{file: cliFile, text: text, line: 1}
	root, list := y.parse()
	if list != nil {
		return nil, withoutWords(list)
	}
	if root == nil {
		return map[string]any{}, nil
	}
	d := &decoder{file: cliFile}
	if root.Kind != yaml.MappingNode {
		what := "a text" // which is not repeated: it may be a password
		if root.Kind != yaml.ScalarNode || isNull(root) {
			what = describe(root)
		}
		d.badHint(root, "write --vars '{name: value}'", "the variables must be a mapping, not %s", what)
		return nil, d.diags
	}
	out := map[string]any{}
	for _, p := range d.pairs(root) {
		out[p.name] = d.value(p.value)
	}
	if err := d.diags.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// ParseVar reads the text of --var: name=value. The value keeps its spelling;
// one that begins with a bracket or a quote is YAML. The error is a diag.List.
func ParseVar(text string) (name string, value any, err error) {
	const file = "--var"
	name, spelled, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !ok { // the text is not repeated: it may be a password
		return "", nil, diag.List{diag.Errorf(diag.BadValue, diag.Pos{File: file}, "a variable is written name=value, and here is no =")}
	}
	if name == "" {
		return "", nil, diag.List{diag.Errorf(diag.BadValue, diag.Pos{File: file}, "a variable is written name=value, and nothing stands before the =")}
	}
	if spelled == "" || !strings.ContainsRune(`[{"'`, rune(spelled[0])) {
		return name, scalarValue(&yaml.Node{Kind: yaml.ScalarNode, Value: spelled, Style: emptyStyle(spelled)}), nil
	}
	root, list := yamlText{file: file, text: spelled, line: 1}.parse()
	if list != nil {
		return "", nil, withoutWords(list)
	}
	d := &decoder{file: file}
	value = d.value(root)
	if err := d.diags.Err(); err != nil {
		return "", nil, err
	}
	return name, value, nil
}

// emptyStyle makes `name=` the empty text rather than none.
func emptyStyle(spelled string) yaml.Style {
	if spelled == "" {
		return yaml.DoubleQuotedStyle
	}
	return 0
}

// spelledWords are the places of messages about YAML that repeat a piece of the
// text.
var spelledWords = regexp.MustCompile(`^(this is not YAML: unknown anchor|the YAML tag) \S+`)

// withoutWords are problems of a text of the command line, without words of it:
// what is typed there may be a password.
func withoutWords(list diag.List) diag.List {
	for i := range list {
		list[i].Msg = spelledWords.ReplaceAllString(list[i].Msg, "$1")
	}
	return list
}
