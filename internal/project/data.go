package project

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"

	"rbt/internal/jinja"
)

// dataFunctions are the functions that only turn values into values.
func dataFunctions() map[string]any {
	return map[string]any{
		"zip":      jinja.Func(callZip),
		"set":      jinja.Func(callSet),
		"fromjson": jinja.Func(callFromJSON),
		"tojson":   jinja.Func(callToJSON),
		"fromyaml": jinja.Func(callFromYAML),
		"toyaml":   jinja.Func(callToYAML),
	}
}

// callMD5 is local_md5(): the MD5 of a text in hex, for names and not for
// safety.
func callMD5(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, badCall(c, "local_md5 takes a text")
	}
	text, err := c.Text(c.Args[0])
	if err != nil {
		return nil, err
	}
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:]), nil
}

// items gives the items of a list, tuple or dict; false for anything else.
func items(v any) ([]any, bool) {
	switch v := v.(type) {
	case *jinja.List:
		return v.Items(), true
	case jinja.Tuple:
		return v, true
	case *jinja.Dict:
		return v.Keys(), true
	default:
		return nil, false
	}
}

// callZip is zip(): tuples of items at the same place.
func callZip(c *jinja.Call) (any, error) {
	out := jinja.NewList()
	var rows [][]any
	for _, a := range c.Args {
		row, ok := items(a)
		if !ok {
			if v, given := c.Kwarg("default"); given {
				return v, nil
			}
			return nil, badCall(c, "zip takes lists")
		}
		rows = append(rows, row)
	}
	for i := 0; len(rows) > 0; i++ {
		tuple := make(jinja.Tuple, len(rows))
		for j, row := range rows {
			if i >= len(row) {
				return out, nil
			}
			tuple[j] = row[i]
		}
		out.Append(tuple)
	}
	return out, nil
}

// callSet is set(): the items of a list, each once, in their order.
func callSet(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 {
		return jinja.NewList(), nil
	}
	row, ok := items(c.Args[0])
	if !ok {
		if len(c.Args) > 1 {
			return c.Args[1], nil
		}
		return nil, badCall(c, "set takes a list")
	}
	seen := jinja.NewDict()
	for _, v := range row {
		if err := seen.Set(v, nil); err != nil {
			return nil, err
		}
	}
	return jinja.NewList(seen.Keys()...), nil
}

// fallback gives the default of the from… functions, or the error.
func fallback(c *jinja.Call, err error) (any, error) {
	if len(c.Args) > 1 {
		return c.Args[1], nil
	}
	if v, ok := c.Kwarg("default"); ok {
		return v, nil
	}
	return nil, err
}

func callFromJSON(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, badCall(c, "fromjson takes a text")
	}
	text, ok := textArg(c.Args[0])
	if !ok {
		return fallback(c, badCall(c, "fromjson takes a text"))
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	v, err := decodeJSON(dec)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = badCall(c, "the text goes on after its JSON")
		}
	}
	if err != nil {
		return fallback(c, badCall(c, "the text is not JSON: %s", err))
	}
	return v, nil
}

// decodeJSON reads one value, keeping the order of keys.
func decodeJSON(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			return decodeJSONList(dec)
		}
		return decodeJSONDict(dec)
	case json.Number:
		return jsonNumber(t.String()), nil
	default:
		return t, nil
	}
}

func decodeJSONList(dec *json.Decoder) (any, error) {
	out := jinja.NewList()
	for dec.More() {
		v, err := decodeJSON(dec)
		if err != nil {
			return nil, err
		}
		out.Append(v)
	}
	_, err := dec.Token()
	return out, err
}

func decodeJSONDict(dec *json.Decoder) (any, error) {
	out := jinja.NewDict()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeJSON(dec)
		if err != nil {
			return nil, err
		}
		if err := out.Set(key, v); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return out, err
}

func jsonNumber(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if b, ok := new(big.Int).SetString(text, 10); ok {
		return b
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return f
}

func callToJSON(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, badCall(c, "tojson takes a value")
	}
	sorted := len(c.Args) > 2 && c.Args[2] == true
	if v, ok := c.Kwarg("sort_keys"); ok {
		sorted = v == true
	}
	var b strings.Builder
	if !writeJSON(&b, c.Args[0], sorted, 0) {
		return fallback(c, badCall(c, "the value cannot be written as JSON"))
	}
	return b.String(), nil
}

// maxValueDepth bounds recursion over values that may hold themselves.
const maxValueDepth = 200

// writeJSON writes a value as Python's json.dumps does; false where it cannot.
func writeJSON(b *strings.Builder, v any, sorted bool, depth int) bool {
	if depth > maxValueDepth {
		return false
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		writeJSONText(b, v)
	case int64, *big.Int:
		b.WriteString(printed(v))
	case float64:
		text, special := map[string]string{"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[printedFloat(v)]
		if !special {
			text = printedFloat(v)
		}
		b.WriteString(text)
	case *jinja.Dict:
		return writeJSONDict(b, v, sorted, depth)
	default:
		list, ok := items(v)
		if !ok {
			return false
		}
		b.WriteByte('[')
		for i, item := range list {
			if i > 0 {
				b.WriteString(", ")
			}
			if !writeJSON(b, item, sorted, depth+1) {
				return false
			}
		}
		b.WriteByte(']')
	}
	return true
}

func writeJSONDict(b *strings.Builder, d *jinja.Dict, sorted bool, depth int) bool {
	keys := d.Keys()
	if sorted {
		keys = sortedValues(keys)
	}
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		name, isText := k.(string)
		if !isText {
			var key strings.Builder
			if !writeJSON(&key, k, sorted, depth+1) {
				return false
			}
			name = key.String()
		}
		writeJSONText(b, name)
		b.WriteString(": ")
		v, _ := d.Get(k)
		if !writeJSON(b, v, sorted, depth+1) {
			return false
		}
	}
	b.WriteByte('}')
	return true
}

// writeJSONText writes a text in ASCII, as Python does.
func writeJSONText(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			writeEscape(b, hi)
			writeEscape(b, lo)
		default:
			writeEscape(b, r)
		}
	}
	b.WriteByte('"')
}

func writeEscape(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&15])
	}
}

func callFromYAML(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, badCall(c, "fromyaml takes a text")
	}
	text, ok := textArg(c.Args[0])
	if !ok {
		return fallback(c, badCall(c, "fromyaml takes a text"))
	}
	root, list := yamlText{file: c.Pos.File, text: text, line: 1}.parse()
	d := &decoder{}
	v := d.value(root)
	if list = append(list, d.diags...); len(list) > 0 {
		return fallback(c, badCall(c, "the text is not YAML: %s", strings.TrimPrefix(list[0].Msg, "this is not YAML: ")))
	}
	return v, nil
}
