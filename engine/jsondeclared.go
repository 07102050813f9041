package engine

import (
	"strings"

	"rbt/internal/diag"
)

// declaredPlan says which values of a declared type become text in a rewritten
// file, and the type by which the engine then reads them: those that hold a text
// as it stands, and decimals, which the engine would read through doubles. It is
// nil where nothing becomes text.
func declaredPlan(t *typeTree) (plan *jsonPlan, read string) {
	switch {
	case t.elem != nil:
		if elem, read := declaredPlan(t.elem); elem != nil {
			return &jsonPlan{elem: elem}, read + t.suffix
		}
	case t.value != nil:
		if value, read := declaredPlan(t.value); value != nil {
			return &jsonPlan{each: value}, "MAP(" + t.key + ", " + read + ")"
		}
	case len(t.names) > 0:
		if fields, read := planOfFields(t.names, func(i int) (*jsonPlan, string) { return declaredPlan(t.fields[i]) }); fields != nil {
			return fields, read
		}
	case t.isJSON():
		return &jsonPlan{text: true}, "VARCHAR"
	case t.isText() || decimalType.MatchString(strings.ToUpper(t.text)):
		return &jsonPlan{text: true, plain: true}, "VARCHAR"
	}
	return nil, t.text
}

// respells reports whether the engine would spell a number otherwise than it is
// written, in a place whose type holds a text as it stands.
func (t *typeTree) respells(s *shape) bool {
	switch {
	case s == nil:
		return false
	case t.elem != nil:
		return t.elem.respells(s.elem)
	case t.nested() && s.odd:
		return true // under a key that is not kept
	case t.value != nil:
		for _, key := range s.order {
			if t.value.respells(s.fields[key]) {
				return true
			}
		}
		return false
	case len(t.names) > 0:
		for i, name := range t.names {
			if t.fields[i].respells(s.fields[name]) {
				return true
			}
		}
		return false
	}
	return t.isText() && s.respelt()
}

// mayLack reports whether values of a shape may have keys for which the type has
// no place. Of a shape with too many keys not all are known.
func (t *typeTree) mayLack(s *shape) bool {
	switch {
	case s == nil:
		return false
	case t.elem != nil:
		return t.elem.mayLack(s.elem)
	case t.value == nil && len(t.names) == 0:
		return false
	case s.wide:
		return true
	}
	for _, key := range s.order {
		of := t.value
		if of == nil {
			of = t.field(key)
		}
		if of == nil || of.mayLack(s.fields[key]) {
			return true
		}
	}
	return false
}

// lacking calls found with the path of every key of a value for which the type
// has no place, and the names that there are in its stead.
func (t *typeTree) lacking(value []byte, at string, found func(path string, names []string)) {
	switch {
	case len(value) == 0:
	case t.elem != nil && value[0] == '[':
		for _, f := range elementsOf(value) {
			t.elem.lacking(f.value, at+"[]", found)
		}
	case t.value != nil && value[0] == '{':
		for _, f := range fieldsOf(value) {
			t.value.lacking(f.value, at+"[]", found)
		}
	case len(t.names) > 0 && value[0] == '{':
		for _, f := range fieldsOf(value) {
			if of := t.field(f.key); of != nil {
				of.lacking(f.value, at+"."+f.key, found)
			} else {
				found(at+"."+f.key, t.names)
			}
		}
	}
}

// maxKeysTold is how many keys without a place are told of one column of a file.
const maxKeysTold = 20

// innerKeys finds keys inside of a declared column for which its type has no
// place: the engine would drop them without a word. Left out on purpose they are
// with `extra_columns: ignore`.
func (t *fileTable) innerKeys(file string, c jsonColumn, key string, f *jsonFile) diag.List {
	if !c.declared || t.extra == "ignore" || !c.tree.mayLack(f.root.fields[key]) {
		return nil
	}
	var problems diag.List
	told := map[string]bool{}
	_, err := scanJSON(file, compressionOf(file, t.options), t.format == "ndjson", func(record []byte, line int) {
		for _, field := range fieldsOf(record) {
			if field.key != key {
				continue
			}
			c.tree.lacking(field.value, c.name, func(path string, names []string) {
				if told[path] || len(told) == maxKeysTold {
					return
				}
				told[path] = true
				p := t.problem(diag.SourceColumn, file, line, "%s is not declared: the type of the column %s has no place for it", path, c.name)
				p.Hint = "name it in the type, declare the column as JSON to keep all, or write `extra_columns: ignore` to leave it out"
				if near := diag.Nearest(path[strings.LastIndexByte(path, '.')+1:], names); near != "" {
					p.Hint = "did you mean " + near + "? Else " + p.Hint
				}
				problems = append(problems, p)
			})
		}
	})
	if err != nil {
		return append(problems, t.problem(diag.SourceMissing, file, 0, "cannot be read: %v", err))
	}
	return problems
}
