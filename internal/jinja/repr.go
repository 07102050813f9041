package jinja

import (
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"rbt/internal/diag"
)

// comparable_ reports whether Go can compare the object without a panic.
func comparable_(o Object) bool { return reflect.TypeOf(o).Comparable() }

// isSpace is what Python counts as white space.
func isSpace(r rune) bool {
	return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f || r >= utf8.RuneSelf && unicode.IsSpace(r)
}

// typeName names the type of a value with an article, for messages.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a boolean"
	case int, int64, *big.Int:
		return "a whole number"
	case float64:
		return "a float"
	case string, *richText, markup:
		return "text"
	case *List:
		return "a list"
	case *Dict:
		return "a dict"
	case Tuple, *groupValue:
		return "a tuple"
	case rangeValue:
		return "a range"
	case dictView:
		return v.name()
	case *generator:
		return "the sequence of a filter"
	case *Undefined:
		return "an undefined value"
	case *macroValue:
		return "a macro"
	case *namespaceValue:
		return "a namespace"
	case *loopValue:
		return "the loop"
	case Func, builtin, *method, *joinerValue:
		return "a function"
	case *cyclerValue:
		return "a cycler"
	case *library:
		return "a collection of macros"
	}
	return fmt.Sprintf("the value %s", shorten(fmt.Sprint(v)))
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// str is Python's str of a value.
func (r *run) str(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case *richText:
		return v.text, nil
	case markup:
		return string(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case Object:
		return v.String(), nil
	case *Undefined:
		if v.lenient {
			return "", nil
		}
		return "", v.fault()
	}
	var b strings.Builder
	if err := r.repr(&b, v, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (r *run) reprText(v any) (string, error) {
	var b strings.Builder
	err := r.repr(&b, v, nil)
	return b.String(), err
}

// repr writes Python's repr of a value. open holds the lists and dicts that are
// being written, so that one that holds itself ends.
func (r *run) repr(b *strings.Builder, v any, open []any) error {
	if err := r.size(b.Len()); err != nil {
		return err
	}
	if err := r.step(4); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int, int64:
		b.WriteString(strconv.FormatInt(toInt64(v), 10))
	case *big.Int:
		s, err := formatBig(v)
		if err != nil {
			return err
		}
		b.WriteString(s)
	case float64:
		b.WriteString(formatFloat(v))
	case string:
		b.WriteString(reprString(v))
	case *richText:
		b.WriteString(reprString(v.text))
	case markup:
		b.WriteString("Markup(" + reprString(string(v)) + ")")
	case *groupValue:
		return r.reprContainer(b, v.tuple(), open)
	case *List, Tuple, *Dict, dictView:
		return r.reprContainer(b, v, open)
	case rangeValue:
		fmt.Fprintf(b, "range(%d, %d", v.start, v.stop)
		if v.step != 1 {
			fmt.Fprintf(b, ", %d", v.step)
		}
		b.WriteByte(')')
	case *namespaceValue:
		b.WriteString("<Namespace ")
		if err := r.repr(b, v.attrs, append(open, v)); err != nil {
			return err
		}
		b.WriteByte('>')
	case *macroValue:
		if v.def.kind == "call" {
			b.WriteString("<Macro anonymous>")
		} else {
			b.WriteString("<Macro " + reprString(v.def.name) + ">")
		}
	case *loopValue:
		n, err := v.length()
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "<LoopContext %d/%d>", v.index, n)
	case *Undefined:
		if v.lenient {
			b.WriteString("Undefined")
			return nil
		}
		return v.fault()
	default:
		return r.reprHost(b, v)
	}
	return nil
}

func (r *run) reprHost(b *strings.Builder, v any) error {
	switch v := v.(type) {
	case *generator:
		return failHint(diag.TemplateType, "add | list, or | join(', ')",
			"the filter '%s' gives a sequence that is made while it is read and has no text", v.name)
	case Func, builtin, *method:
		return failHint(diag.TemplateType, "a call has parentheses", "a function has no text: call it")
	case Named:
		b.WriteString(reprString(v.String()))
		return nil
	case Object:
		b.WriteString(v.String())
		return nil
	}
	return typeError("%s has no text", typeName(v))
}

func (r *run) reprContainer(b *strings.Builder, v any, open []any) error {
	if len(open) > maxDepth {
		return tooDeep()
	}
	for _, o := range open {
		if identical(o, v) {
			b.WriteString(map[bool]string{true: "{...}", false: "[...]"}[isDict(v)])
			return nil
		}
	}
	open = append(open, v)
	switch v := v.(type) {
	case *List:
		return r.reprItems(b, "[", v.items, "]", open)
	case Tuple:
		if len(v) == 1 {
			return r.reprItems(b, "(", v, ",)", open)
		}
		return r.reprItems(b, "(", v, ")", open)
	case dictView:
		v.dict.compact()
		list := make([]any, v.dict.Len())
		for i := range list {
			list[i] = v.at(i)
		}
		return r.reprItems(b, v.name()+"([", list, "])", open)
	case *Dict:
		b.WriteByte('{')
		n := 0
		for key, value := range v.All() {
			if n++; n > 1 {
				b.WriteString(", ")
			}
			if err := r.repr(b, key, open); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := r.repr(b, value, open); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	}
	return nil
}

func isDict(v any) bool {
	_, ok := v.(*Dict)
	return ok
}

func (r *run) reprItems(b *strings.Builder, begin string, list []any, end string, open []any) error {
	b.WriteString(begin)
	for i, item := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := r.repr(b, item, open); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

// reprString is Python's repr of text.
func reprString(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}
