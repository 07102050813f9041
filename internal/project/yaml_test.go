package project

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// TestSyntaxErrorPlaces checks line, column and message of texts that are not
// YAML. The text begins on line 2 of its file.
func TestSyntaxErrorPlaces(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"colon in a value", "a: 1\nb: x: y\n", "f:3:5: this is not YAML: mapping values are not allowed in this context"},
		{"tab", "a:\n\tb: 1\n", "f:3:1: this is not YAML: found character that cannot start any token"},
		{"open quote", "a: 1\nb: \"x\nc: 2\n", "f:3:4: this is not YAML: found unexpected end of stream"},
		{"open bracket", "a: 1\nb: [x, y\nc: 2\n", "f:3:4: this is not YAML: did not find expected ',' or ']'"},
		{"unknown anchor", "a: 1\nb: *x\n", "f:3:4: this is not YAML: unknown anchor 'x' referenced"},
		{"dedent", "a:\n    b: 1\n  c: 2\n", "f:4:3: this is not YAML: did not find expected key"},
		{"text behind a quote", "a: 'x' y\n", "f:2:8: this is not YAML: did not find expected key"},
		{"control character", "a: 1\nb: \x01\n", "f:3:4: this is not YAML: control characters are not allowed"},
		{"invalid UTF-8", "a: 1\nb: x\xffy\n", "f:3:5: the text is not UTF-8"},
		{"second document", "a: 1\n---\nb: 2\n", "f:3:1: a second YAML document begins here"},
		{"self reference", "a: &x\n  b: *x\n", "f:3:6: the anchor \"x\" contains itself"},
		{"foreign tag", "a: !ruby/object x\n", "f:2:4: the YAML tag !ruby/object is not supported"},
		{"binary", "a: !!binary aGk=\n", "f:2:4: the YAML tag !!binary is not supported"},
		{"deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), "f:2:101: values are nested more than 100 deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, list := yamlText{file: "f", text: tt.text, line: 2}.parse()
			if len(list) != 1 {
				t.Fatalf("got %d problems: %v", len(list), list)
			}
			if d := cmp.Diff(tt.want+" [RBT1001]", list[0].Error()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	_, list := yamlText{file: "f", text: b.String(), line: 1}.parse()
	if len(list) != 1 || !strings.Contains(list[0].Msg, "aliases make this more than 200000 values") {
		t.Fatalf("got %v", list)
	}
}

func TestMergeKeys(t *testing.T) {
	p := good(t, `
-- project.yml --
name: shop
vars:
  base: &base {a: 1, b: 2}
  more: &more {c: 3}
  one: {<<: *base, b: 20}
  two: {<<: [*more, *base], d: 4}
`)
	got := map[string]string{}
	for _, name := range []string{"one", "two"} {
		var parts []string
		for k, v := range p.Vars[name].(*jinja.Dict).All() {
			parts = append(parts, fmt.Sprintf("%v=%v", k, v))
		}
		got[name] = strings.Join(parts, " ")
	}
	if d := cmp.Diff(map[string]string{"one": "b=20 a=1", "two": "d=4 c=3 a=1 b=2"}, got); d != "" {
		t.Error(d)
	}
}

// TestScalarValues: what a template prints is what was written.
func TestScalarValues(t *testing.T) {
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	tests := []struct {
		text string
		want any
	}{
		{"12", int64(12)}, {"-3", int64(-3)}, {"0", int64(0)}, {"123456789012345678901234567890", huge},
		{"1.5", 1.5}, {"0.1", 0.1}, {"1.50", "1.50"}, {"1e3", "1e3"}, {"1_000", "1_000"}, {"012", "012"}, {"00123", "00123"},
		{"08", "08"}, {"0x1F", "0x1F"}, {"0o17", "0o17"}, {"+1", "+1"}, {"-0", "-0"}, {"1.", "1."}, {".5", ".5"}, {".inf", ".inf"},
		{".nan", ".nan"}, {"12:30:45", "12:30:45"}, {"2024-01-01", "2024-01-01"}, {"2024-01-01 10:00:00", "2024-01-01 10:00:00"},
		{"yes", "yes"}, {"no", "no"}, {"on", "on"}, {"off", "off"}, {"y", "y"}, {"true", true}, {"False", false},
		{"null", nil}, {"~", nil}, {"", nil}, {"'null'", "null"}, {"\"12\"", "12"}, {"!!str 12", "12"}, {"9007199254740993.0", "9007199254740993.0"},
	}
	for _, tt := range tests {
		root, list := yamlText{file: "f", text: "v: " + tt.text, line: 1}.parse()
		if list != nil {
			t.Fatalf("%q: %v", tt.text, list)
		}
		d := &decoder{}
		got := d.pairs(root)[0].value
		if diff := cmp.Diff(tt.want, d.value(got), cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

func TestParseVars(t *testing.T) {
	got, err := ParseVars("{start: 2024-01-01, n: 3, zip: 00123, on: no, list: [1, x]}")
	if err != nil {
		t.Fatal(err)
	}
	list := got["list"].(*jinja.List)
	delete(got, "list")
	if d := cmp.Diff(map[string]any{"start": "2024-01-01", "n": int64(3), "zip": "00123", "on": "no"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]any{int64(1), "x"}, list.Items()); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"":                "",
		"{}":              "",
		"a":               "--vars:1:1: the variables must be a mapping, not a text [RBT1004]",
		"{a: 1, a: 2}":    "--vars:1:8: the key \"a\" stands twice, in columns 2 and 8 of the line [RBT1003]",
		"a: 1\na: 2":      "--vars:2:1: the key \"a\" stands twice, on lines 1 and 2 [RBT1003]",
		"{a: 1":           "--vars:1:1: this is not YAML: did not find expected ',' or '}' [RBT1001]",
		"a: 1\n---\nb: 2": "--vars:2:1: a second YAML document begins here [RBT1001]",
	} {
		_, err := ParseVars(text)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestParseVar(t *testing.T) {
	for text, want := range map[string]any{
		"start=2024-01-01": "2024-01-01", "n=3": int64(3), "zip=00123": "00123", "e=": "", "q='3'": "3", "x=a: b": "a: b",
		"eq=a=b": "a=b", "t=true": true, "at=2024-01-01 10:00:00": "2024-01-01 10:00:00",
	} {
		name, value, err := ParseVar(text)
		if wantName, _, _ := strings.Cut(text, "="); err != nil || name != wantName || value != want {
			t.Errorf("%q: got %q %#v %v", text, name, value, err)
		}
	}
	if _, value, err := ParseVar("l=[a, b]"); err != nil || value.(*jinja.List).Len() != 2 {
		t.Errorf("a list: %v %v", value, err)
	}
	for _, text := range []string{"novalue", "=x", "l=[a"} {
		if _, _, err := ParseVar(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestOddLineEnds: lines count as editors count them.
func TestOddLineEnds(t *testing.T) {
	for _, text := range []string{"a: \"x\u0085y\"\nbad_key: 1\n", "a: \"x\u2028y\"\nbad_key: 1\n", "x: 1\rbad_key: 1\n", "x: 1\r\nbad_key: 1\r"} {
		root, list := yamlText{file: "f", text: text, line: 1}.parse()
		if list != nil {
			t.Fatalf("%q: %v", text, list)
		}
		for _, p := range (&decoder{}).pairs(root) {
			if p.name == "bad_key" && p.key.Line != 2 {
				t.Errorf("%q: line %d", text, p.key.Line)
			}
		}
	}
}

// checkDecode holds for every text: decoding ends, and every problem has a place
// within the text.
func checkDecode(t interface{ Fatalf(string, ...any) }, text string) {
	y := yamlText{file: "f", text: text, line: 2}
	root, list := y.parse()
	d := &decoder{file: "f"}
	if list == nil && root != nil {
		for _, table := range []*keyTable{modelTable, projectTable, ymlTable} {
			if f, ok := d.fields(root, table); ok {
				readAll(f)
			}
		}
	}
	lines := strings.Count(text, "\n") + 3
	for _, p := range append(list, d.diags...) {
		if p.Pos.File != "f" || p.Pos.Line < 1 || p.Pos.Line > lines || p.Msg == "" || p.Code == "" {
			t.Fatalf("%q: %+v", text, p)
		}
		diag.Render(p, func(string) (string, bool) { return "\n" + text, true })
	}
}

// readAll reads every key of a mapping in the way of its kind.
func readAll(f fields) {
	kinds := newTestKinds(nil)
	p := newProject(Options{})
	for _, k := range f.t.keys {
		switch k.kind {
		case kindText:
			f.text(k.name)
		case kindBool:
			f.boolean(k.name, false)
		case kindInt:
			f.integer(k.name, 0)
		case kindTexts:
			f.texts(k.name)
		case kindTextMap:
			f.textMap(k.name)
		case kindDuration:
			f.duration(k.name)
		case kindColumns:
			for _, c := range f.columns(k.name) {
				(&testReader{d: f.d, kinds: kinds}).read(c.tests, c.Name, nil)
			}
		case kindTests:
			(&testReader{d: f.d, kinds: kinds}).read(f.node(k.name), "", nil)
		case kindTable:
			if n := f.node(k.name); n != nil && n.Kind == yaml.MappingNode {
				readAll(f.table(k.name))
			}
		case kindList:
			for _, n := range f.items(k.name) {
				if sub, ok := f.d.fields(n, tableNamed(k.sub)); ok {
					readAll(sub)
				}
			}
		case kindMap:
			for _, e := range f.entries(k.name) {
				if sub, ok := f.d.fields(e.value, tableNamed(k.sub)); ok {
					readAll(sub)
				}
			}
		default:
			f.values(k.name)
		}
	}
	if f.t == modelTable {
		c := defaultConfig()
		c.apply(f)
		f.records(p)
		f.unitTests("m")
	}
}

func TestDecodeProperties(t *testing.T) {
	pieces := []string{"tests", "columns", "unique", "not_null", ": ", "- ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: ",
		"materialization", "view", "null", "1e3", "\"", "'", "#", "|\n  x", "records", "fields", "given", "unit_tests", "!!str ", "é", "\t"}
	rapid.Check(t, func(t *rapid.T) {
		checkDecode(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "parts"), ""))
	})
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{
		"materialization: view\ncolumns: {id: {type: BIGINT, tests: [not_null, {unique: {where: x}}]}}\n",
		"tests:\n  - relationships: {to: ref('x'), field: id}\n  - accepted_values: {values: [a, null]}\n",
		"a: &x {b: 1}\nc: {<<: *x}\n", "records: {r: {fields: {a: int}, children: {c: {fields: {d: int}}}}}\ninput: data\n",
		"unit_tests: [{name: t, given: [{input: ref('a'), rows: [{a: 1}]}], expect: {csv: a}}]\n", "\ufeffa: 1\r\n", "- a\n- b", "a:\n\tb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkDecode(t, text) })
}
