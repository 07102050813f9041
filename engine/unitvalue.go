package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unitValue is a value of a row, printed by the engine, and a text that is the
// same for equal values: of zeros with and without a sign, of maps and JSON
// objects whose keys stand in another order.
type unitValue struct {
	text, equal string
	null        bool
}

func sameValue(a, b unitValue) bool {
	return a.null == b.null && a.equal == b.equal
}

// unitValueOf takes what the engine gave for a value: nil, or its text; equal is
// the text by which it is compared.
func unitValueOf(text, equal any, typ string) unitValue {
	shown, ok := text.(string)
	if !ok {
		return unitValue{null: true}
	}
	v := unitValue{text: shown, equal: shown}
	if e, ok := equal.(string); ok {
		v.equal = e
	}
	if typ == "JSON" {
		v.equal = jsonInOrder(v.equal)
	}
	return v
}

// jsonInOrder is a JSON text with the keys of its objects in order, every number
// as it is written; the text itself where it is no JSON, or has a key twice.
func jsonInOrder(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if d.Decode(&value) != nil || e.Encode(value) != nil {
		return text
	}
	ordered := strings.TrimSuffix(out.String(), "\n")
	var whole bytes.Buffer
	if json.Compact(&whole, []byte(text)) != nil || strings.Count(whole.String(), ":") != strings.Count(ordered, ":") {
		return text
	}
	return ordered
}

// equalValue is a value of a type as SQL that prints the same for equal values; e
// itself where its text does so already. depth tells the variables of nested lists
// apart.
func equalValue(e string, t *typeTree, depth int) string {
	v := fmt.Sprintf("v%d", depth)
	switch {
	case isFloat(t.text):
		return fmt.Sprintf("CASE WHEN %s = 0 THEN CAST(0 AS %s) ELSE %[1]s END", e, t.text)
	case t.elem != nil:
		if each := equalValue(v, t.elem, depth+1); each != v {
			return fmt.Sprintf("list_transform(%s, lambda %s: %s)", e, v, each)
		}
	case t.value != nil:
		return fmt.Sprintf("map_from_entries(list_sort(list_transform(map_entries(%s), lambda %s: struct_pack(key := %s, value := %s))))",
			e, v, equalValue(v+".key", treeOf(t.key), depth+1), equalValue(v+".value", t.value, depth+1))
	case len(t.names) > 0:
		fields, changed := make([]string, len(t.names)), false
		for i, name := range t.names {
			if t.fields[i].text == "" {
				return e // made by row()
			}
			field := fmt.Sprintf("struct_extract_at(%s, %d)", e, i+1)
			value := equalValue(field, t.fields[i], depth+1)
			fields[i], changed = quoteIdent(name)+" := "+value, changed || value != field
		}
		if changed {
			return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN struct_pack(%s) END", e, strings.Join(fields, ", "))
		}
	}
	return e
}

// longText is how many characters a text may have of which the whole is marked
// where it differs; of a longer one it is the part that does.
const longText = 24

// marked is a value with stars around what differs from another.
func (v unitValue) marked(other unitValue) string {
	text, than := v.shown(), other.shown()
	if norm.NFC.String(text) == norm.NFC.String(than) { // nobody could see the difference
		return "*" + strconv.QuoteToASCII(text) + "*"
	}
	if v.null || other.null || utf8.RuneCountInString(text) <= longText && utf8.RuneCountInString(than) <= longText {
		return "*" + text + "*"
	}
	// That keys stand in another order is nothing that differs.
	runes := []rune(v.equal)
	start, end := differing(runes, []rune(other.equal))
	return string(runes[:start]) + "*" + string(runes[start:end]) + "*" + string(runes[end:])
}

// differing is where a text begins and ends to differ from another, in whole words.
func differing(text, than []rune) (start, end int) {
	for start < min(len(text), len(than)) && text[start] == than[start] {
		start++
	}
	end = len(text)
	for other := len(than); end > start && other > start && text[end-1] == than[other-1]; other-- {
		end--
	}
	lacks := start == end // what the other has more
	for start > 0 && isWordRune(text[start-1]) && (lacks || isWordRune(text[start])) {
		start--
	}
	for end < len(text) && isWordRune(text[end]) && (lacks || isWordRune(text[end-1])) {
		end++
	}
	return start, end
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-+:", r)
}

// shown is a value as it is printed. A text that reads as NULL is quoted.
func (v unitValue) shown() string {
	switch {
	case v.null:
		return "NULL"
	case v.text == "NULL":
		return "'NULL'"
	}
	return v.text
}
