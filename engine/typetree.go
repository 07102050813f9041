package engine

import (
	"slices"
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
