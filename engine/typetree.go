package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// typeTree is a type as it was declared, or as the engine prints it, taken apart
// as far as values lie in each other.
type typeTree struct {
	text   string    // the type itself
	elem   *typeTree // of a list or array; suffix is its brackets
	suffix string
	key    string // of a map
	value  *typeTree
	names  []string // of the fields of a struct
	fields []*typeTree
}

// treeOf takes a type apart. What it does not know is a leaf.
func treeOf(typ string) *typeTree {
	typ = strings.TrimSpace(typ)
	t := &typeTree{text: typ}
	if elem, ok := elementType(typ); ok {
		t.elem, t.suffix = treeOf(elem), typ[len(elem):]
		return t
	}
	word, rest, ok := strings.Cut(typ, "(")
	if !ok {
		return t
	}
	word = strings.ToUpper(strings.TrimSpace(word))
	args, ok := typeArguments(word+"("+rest, word)
	switch {
	case !ok:
	case word == "MAP" && len(args) == 2:
		t.key, t.value = args[0], treeOf(args[1])
	case word == "STRUCT" || word == "ROW":
		for _, a := range args {
			name, of := fieldOf(a)
			t.names = append(t.names, name)
			t.fields = append(t.fields, treeOf(of))
		}
	}
	return t
}

func (t *typeTree) nested() bool { return t.elem != nil || t.value != nil || len(t.names) > 0 }

// field gives the type of a field, nil where there is none of exactly that name:
// the engine drops a key that is spelled otherwise.
func (t *typeTree) field(name string) *typeTree {
	if i := slices.Index(t.names, name); i >= 0 {
		return t.fields[i]
	}
	return nil
}

// isText reports whether a leaf holds a text as it stands.
func (t *typeTree) isText() bool {
	return textTypes[strings.ToUpper(t.text)] || t.isJSON()
}

func (t *typeTree) isJSON() bool { return strings.EqualFold(t.text, "JSON") }

// without gives the paths of fields that another type of the same value has and
// this one has no place for, and the other type without them.
func (t *typeTree) without(other *typeTree, at string) (paths []string, rest string) {
	switch {
	case t.elem != nil && other.elem != nil:
		paths, rest = t.elem.without(other.elem, at+"[]")
		return paths, rest + other.suffix
	case t.value != nil && other.value != nil:
		paths, rest = t.value.without(other.value, at+"[]")
		return paths, "MAP(" + other.key + ", " + rest + ")"
	case len(t.names) == 0 || len(other.names) == 0:
		return nil, other.text
	}
	var parts []string
	for i, name := range other.names {
		own := slices.IndexFunc(t.names, func(n string) bool { return strings.EqualFold(n, name) })
		if own < 0 {
			paths = append(paths, at+"."+name)
			continue
		}
		more, typ := t.fields[own].without(other.fields[i], at+"."+name)
		paths = append(paths, more...)
		parts = append(parts, quoteIdent(name)+" "+typ)
	}
	return paths, "STRUCT(" + strings.Join(parts, ", ") + ")"
}

// wholeDigit is a type with the same values whose decimals have a digit before the
// point: of DECIMAL(1,1) DuckDB 1.5.6 prints .1, which no JSON reader takes. A
// decimal of 38 digits has no room for one more.
func (t *typeTree) wholeDigit() string {
	switch {
	case t.elem != nil:
		return t.elem.wholeDigit() + t.suffix
	case t.value != nil:
		return "MAP(" + treeOf(t.key).wholeDigit() + ", " + t.value.wholeDigit() + ")"
	case len(t.names) > 0:
		parts := make([]string, len(t.names))
		for i, name := range t.names {
			if t.fields[i].text == "" {
				return t.text // made by row()
			}
			parts[i] = quoteIdent(name) + " " + t.fields[i].wholeDigit()
		}
		return "STRUCT(" + strings.Join(parts, ", ") + ")"
	}
	if m := decimalType.FindStringSubmatch(t.text); m != nil && m[1] == m[2] && m[1] != "38" {
		scale, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("DECIMAL(%d,%d)", scale+1, scale)
	}
	return t.text
}

// shownAs is an expression of a type, and its type, whose text is that of its
// values with a digit before the point of every decimal.
func shownAs(e, typ string) (shown, as string) {
	if !strings.Contains(typ, "DECIMAL(") {
		return e, typ
	}
	as = treeOf(typ).wholeDigit()
	if as == typ {
		return e, typ
	}
	return "CAST(" + e + " AS " + as + ")", as
}

// textOf is the text of a value. Where its type is a decimal with no room for a
// digit before the point, the text gets one.
func textOf(e, typ string) string {
	text := "CAST(" + e + " AS VARCHAR)"
	if m := decimalType.FindStringSubmatch(typ); m != nil && m[1] == m[2] && m[1] != "" {
		return "regexp_replace(" + text + `, '^(-?)\.', '\10.')`
	}
	return text
}
