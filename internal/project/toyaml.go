package project

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/jinja"
)

func callToYAML(c *jinja.Call) (any, error) {
	if len(c.Args) == 0 {
		return nil, badCall(c, "toyaml takes a value")
	}
	sorted := len(c.Args) > 2 && c.Args[2] == true
	if v, ok := c.Kwarg("sort_keys"); ok {
		sorted = v == true
	}
	w := yamlWriter{sorted: sorted}
	if !w.value(c.Args[0], 0, atTop, 0) {
		return fallback(c, badCall(c, "the value cannot be written as YAML"))
	}
	return w.b.String(), nil
}

// yamlWriter writes values as PyYAML's safe_dump does, with its defaults: in
// blocks, lines of 80 characters, ASCII.
type yamlWriter struct {
	b      strings.Builder
	column int
	sorted bool // keys of dicts
}

// yamlPlace is what a value stands behind.
type yamlPlace int

const (
	atTop yamlPlace = iota
	afterKey
	afterDash
)

// yamlWidth is the column behind which a text is broken at a space.
const yamlWidth = 80

func (w *yamlWriter) write(s string) {
	w.b.WriteString(s)
	w.column += utf8.RuneCountInString(s)
}

func (w *yamlWriter) line(indent int) {
	w.b.WriteString("\n" + strings.Repeat(" ", indent))
	w.column = indent
}

// value writes a value whose block stands at indent; false where it cannot be
// written.
func (w *yamlWriter) value(v any, indent int, place yamlPlace, depth int) bool {
	if depth > maxValueDepth {
		return false
	}
	list, isList := items(v)
	d, isDict := v.(*jinja.Dict)
	switch {
	case isDict && d.Len() > 0:
		return w.mapping(d, indent, place, depth)
	case isList && len(list) > 0:
		return w.sequence(list, indent, place, depth)
	}
	if place != atTop {
		w.write(" ")
	}
	switch {
	case isDict:
		w.write("{}")
	case isList:
		w.write("[]")
	default:
		if place == atTop {
			indent = 2
		}
		plain, ok := w.scalar(v, indent, false)
		if !ok {
			return false
		}
		if place == atTop && plain {
			w.b.WriteString("\n...")
		}
	}
	if place == atTop {
		w.b.WriteByte('\n')
	}
	return true
}

func (w *yamlWriter) mapping(d *jinja.Dict, indent int, place yamlPlace, depth int) bool {
	keys := d.Keys()
	if w.sorted {
		keys = sortedValues(keys)
	}
	for i, k := range keys {
		switch {
		case i == 0 && place == afterDash:
			w.write(" ")
		case i > 0 || place == afterKey:
			w.line(indent)
		}
		text, isText := k.(string)
		// PyYAML writes a key that is long, or no single value, in another form.
		const longest = 122
		if isSequence(k) || isText && (text == "" || utf8.RuneCountInString(text) > longest || strings.ContainsAny(text, "\n\u0085\u2028\u2029")) {
			return false
		}
		if _, ok := w.scalar(k, indent, true); !ok {
			return false
		}
		w.write(":")
		item, _ := d.Get(k)
		at := indent + 2
		if _, isDict := item.(*jinja.Dict); !isDict && isSequence(item) {
			at = indent // a list stands below its key, not behind it
		}
		if !w.value(item, at, afterKey, depth+1) {
			return false
		}
	}
	if place == atTop {
		w.b.WriteByte('\n')
	}
	return true
}

func (w *yamlWriter) sequence(list []any, indent int, place yamlPlace, depth int) bool {
	for i, item := range list {
		switch {
		case i == 0 && place == afterDash:
			w.write(" ")
		case i > 0 || place == afterKey:
			w.line(indent)
		}
		w.write("-")
		if !w.value(item, indent+2, afterDash, depth+1) {
			return false
		}
	}
	if place == atTop {
		w.b.WriteByte('\n')
	}
	return true
}

func isSequence(v any) bool {
	_, ok := items(v)
	return ok
}

// scalar writes a single value and reports whether it stands there without
// quotes; key says that it may not be broken.
func (w *yamlWriter) scalar(v any, indent int, key bool) (plain, ok bool) {
	switch v := v.(type) {
	case nil:
		w.write("null")
	case bool:
		w.write(strconv.FormatBool(v))
	case int64, *big.Int:
		w.write(printed(v))
	case float64:
		w.write(yamlFloat(v))
	case string:
		return w.text(v, indent, key), true
	default:
		return false, false
	}
	return true, true
}

func yamlFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return ".nan"
	case math.IsInf(v, 1):
		return ".inf"
	case math.IsInf(v, -1):
		return "-.inf"
	}
	s := printedFloat(v)
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok && !strings.Contains(mantissa, ".") {
		s = mantissa + ".0e" + exponent
	}
	return s
}

// yamlMeans matches texts that YAML 1.1 takes for something else than text.
var yamlMeans = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF` +
	`|~|null|Null|NULL||<<|=|[!&*]` +
	`|[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)` +
	`|[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+` +
	`|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`)

// text writes a text in the first of the three forms that can hold it.
func (w *yamlWriter) text(s string, indent int, key bool) (plain bool) {
	form := analyse(s)
	switch {
	case form.plain && !yamlMeans.MatchString(s):
		w.unquoted(s, indent, key)
		return true
	case form.single && !(key && form.lines):
		w.single(s, indent, key)
	default:
		w.double(s, indent, key)
	}
	return false
}

// yamlForm says in which forms a text can be written.
type yamlForm struct{ plain, single, lines bool }

func isYAMLBreak(r rune) bool { return strings.ContainsRune("\n\u0085\u2028\u2029", r) }

func isYAMLBlank(r rune) bool { return isYAMLBreak(r) || strings.ContainsRune("\x00 \t\r", r) }

func analyse(s string) yamlForm {
	runes := []rune(s)
	f := yamlForm{plain: true, single: true}
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		f.plain = false
	}
	blankAfter := func(i int) bool { return i+1 >= len(runes) || isYAMLBlank(runes[i+1]) }
	for i, r := range runes {
		first, last := i == 0, i == len(runes)-1
		switch {
		case first && strings.ContainsRune("#,[]{}&*!|>'\"%@`", r),
			first && strings.ContainsRune("?:-", r) && blankAfter(i),
			!first && r == ':' && blankAfter(i),
			!first && r == '#' && isYAMLBlank(runes[i-1]),
			(first || last) && (r == ' ' || isYAMLBreak(r)):
			f.plain = false
		}
		if isYAMLBreak(r) {
			f.plain, f.lines = false, true
		}
		if r != '\n' && (r < ' ' || r > '~') {
			f.plain, f.single = false, false
		}
		if i > 0 && (r == ' ' && isYAMLBreak(runes[i-1]) || isYAMLBreak(r) && runes[i-1] == ' ') {
			f.plain, f.single = false, false
		}
	}
	return f
}

// unquoted writes the text as it is, broken at single spaces.
func (w *yamlWriter) unquoted(s string, indent int, key bool) {
	w.words(s, indent, key, func(word string) { w.write(word) })
}

// words writes a text of one line and breaks it where a single space stands
// behind the width, neither at its begin nor at its end.
func (w *yamlWriter) words(s string, indent int, key bool, write func(word string)) {
	for i := 0; i < len(s); {
		end := i
		if s[i] != ' ' {
			if end = strings.IndexByte(s[i:], ' '); end < 0 {
				end = len(s)
			} else {
				end += i
			}
			write(s[i:end])
			i = end
			continue
		}
		for end < len(s) && s[end] == ' ' {
			end++
		}
		if end == i+1 && w.column > yamlWidth && !key && i > 0 && end < len(s) {
			w.line(indent)
		} else {
			w.write(s[i:end])
		}
		i = end
	}
}

// single writes the text between single quotes: a line break as an empty line.
func (w *yamlWriter) single(s string, indent int, key bool) {
	w.write("'")
	for i := 0; i < len(s); {
		end := strings.IndexByte(s[i:], '\n')
		if end != 0 {
			if end < 0 {
				end = len(s)
			} else {
				end += i
			}
			w.words(s[i:end], indent, key, func(word string) { w.write(strings.ReplaceAll(word, "'", "''")) })
			i = end
			continue
		}
		w.b.WriteByte('\n')
		for i < len(s) && s[i] == '\n' {
			w.b.WriteByte('\n')
			i++
		}
		w.b.WriteString(strings.Repeat(" ", indent))
		w.column = indent
	}
	w.write("'")
}

// yamlEscape writes a character by its number, or by the letter that it has.
func yamlEscape(r rune) string {
	const letters = `0abtnvfre"\N_LP`
	named := []rune("\x00\a\b\t\n\v\f\r\x1b\"\\\u0085\u00a0\u2028\u2029")
	switch at := slices.Index(named, r); {
	case at >= 0:
		return `\` + letters[at:at+1]
	case r <= 0xff:
		return `\x` + hexDigits(r, 2)
	case r <= 0xffff:
		return `\u` + hexDigits(r, 4)
	}
	return `\U` + hexDigits(r, 8)
}

func hexDigits(r rune, digits int) string {
	s := strings.ToUpper(strconv.FormatInt(int64(r), 16))
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// double writes the text between double quotes, in ASCII, broken anywhere before
// a space by a backslash.
func (w *yamlWriter) double(s string, indent int, key bool) {
	w.write(`"`)
	runes := []rune(s)
	start := 0
	for end := 0; end <= len(runes); end++ {
		atEnd := end == len(runes)
		var r rune
		if !atEnd {
			r = runes[end]
		}
		if atEnd || strings.ContainsRune("\"\\\u0085\u2028\u2029\ufeff", r) || r < ' ' || r > '~' {
			if start < end {
				w.write(string(runes[start:end]))
				start = end
			}
			if !atEnd {
				w.write(yamlEscape(r))
				start = end + 1
			}
		}
		if 0 < end && end < len(runes)-1 && (r == ' ' || start >= end) && w.column+(end-start) > yamlWidth && !key {
			w.write(string(runes[min(start, end):end]) + `\`)
			start = max(start, end)
			w.line(indent)
			if runes[start] == ' ' {
				w.write(`\`)
			}
		}
	}
	w.write(`"`)
}
