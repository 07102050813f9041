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

// types gives the types of the fields of a struct, and whether they have no names,
// as those of row() have none: then what treeOf took for names are the types.
func (t *typeTree) types() (fields []*typeTree, unnamed bool) {
	if !slices.ContainsFunc(t.fields, func(f *typeTree) bool { return f.text == "" }) {
		return t.fields, false
	}
	args, _ := typeArguments(t.text, "STRUCT")
	for _, a := range args {
		fields = append(fields, treeOf(a))
	}
	return fields, true
}

// unnamed reports whether a struct whose fields have no names lies in the type.
func (t *typeTree) unnamed() bool {
	switch {
	case t.elem != nil:
		return t.elem.unnamed()
	case t.value != nil:
		return treeOf(t.key).unnamed() || t.value.unnamed()
	}
	fields, unnamed := t.types()
	return unnamed || slices.ContainsFunc(fields, (*typeTree).unnamed)
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

// shownAs is an expression of a type, and its type, whose text, as textOf gives it,
// is that of its values with a digit before the point of every decimal.
func shownAs(e, typ string) (shown, as string) {
	if !strings.Contains(typ, "DECIMAL(") {
		return e, typ
	}
	tree := treeOf(typ)
	if tree.unnamed() {
		return e, typ // no cast can name that type
	}
	if as = tree.wholeDigit(); as == typ {
		return e, typ
	}
	return "CAST(" + e + " AS " + as + ")", as
}

// textOf is the text of a value. Where its type holds decimals with no room for a
// digit before the point, their text gets one.
func textOf(e, typ string) string {
	if strings.Contains(typ, "DECIMAL(") {
		e = treeOf(typ).decimalsAsText(e, 0)
	}
	return "CAST(" + e + " AS VARCHAR)"
}

// decimalsAsText is an expression with the values of e in which decimals that are
// printed without a digit before the point are texts that have one; e itself where
// there are none. depth tells the variables of nested lists apart.
func (t *typeTree) decimalsAsText(e string, depth int) string {
	variable := fmt.Sprintf("d%d", depth)
	each := func(list, value string) string {
		return "list_transform(" + list + ", lambda " + variable + ": " + value + ")"
	}
	switch {
	case t.elem != nil:
		if value := t.elem.decimalsAsText(variable, depth+1); value != variable {
			return each(e, value)
		}
	case t.value != nil:
		k, v := variable+".key", variable+".value"
		if key, value := treeOf(t.key).decimalsAsText(k, depth+1), t.value.decimalsAsText(v, depth+1); key != k || value != v {
			return "CASE WHEN " + e + " IS NOT NULL THEN map_from_entries(" + each("map_entries("+e+")", "{k: "+key+", v: "+value+"}") + ") END"
		}
	case len(t.names) > 0:
		return t.fieldsAsText(e, depth)
	default:
		if m := decimalType.FindStringSubmatch(t.text); m != nil && m[1] == m[2] && m[1] != "" {
			return "regexp_replace(CAST(" + e + ` AS VARCHAR), '^(-?)\.', '\10.')`
		}
	}
	return e
}

// fieldsAsText is decimalsAsText of a struct.
func (t *typeTree) fieldsAsText(e string, depth int) string {
	fields, unnamed := t.types()
	parts, same := make([]string, len(fields)), true
	for i, f := range fields {
		value := fmt.Sprintf("struct_extract_at(%s, %d)", e, i+1)
		parts[i] = f.decimalsAsText(value, depth+1)
		same = same && parts[i] == value
		if !unnamed {
			parts[i] = quoteIdent(t.names[i]) + " := " + parts[i]
		}
	}
	if same {
		return e
	}
	made := "struct_pack"
	if unnamed {
		made = "row"
	}
	return "CASE WHEN " + e + " IS NOT NULL THEN " + made + "(" + strings.Join(parts, ", ") + ") END"
}
