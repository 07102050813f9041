package engine

import (
	"bytes"
	"encoding/json"
	"strings"
)

// jsonPlan says which values below a place become text in a rewritten file: those
// whose type is JSON. The engine would read them as doubles, and casts of text to
// whole lists and structs neither keep digits nor escapes.
type jsonPlan struct {
	text   bool // the value itself
	plain  bool // a string is that text already
	elem   *jsonPlan
	each   *jsonPlan // values of a map
	fields map[string]*jsonPlan
}

// planOf gives the plan for values of a shape and the type by which the engine
// then reads them; nil and the type of the shape where nothing becomes text.
func planOf(s *shape) (plan *jsonPlan, read string) {
	typ := s.typeOf()
	if typ == "JSON" {
		return &jsonPlan{text: true}, "VARCHAR"
	}
	switch s.kinds &^ jsonNull {
	case jsonArray:
		if elem, read := planOf(s.elem); elem != nil {
			return &jsonPlan{elem: elem}, read + "[]"
		}
	case jsonObject:
		if fields, read := planOfFields(s.order, func(i int) (*jsonPlan, string) { return planOf(s.fields[s.order[i]]) }); fields != nil {
			return fields, read
		}
	}
	return nil, typ
}

// planOfFields is the plan of an object whose keys have plans of their own, and the
// type to read it as; nil where none has one.
func planOfFields(keys []string, of func(i int) (*jsonPlan, string)) (plan *jsonPlan, read string) {
	fields := map[string]*jsonPlan{}
	parts := make([]string, len(keys))
	for i, key := range keys {
		field, read := of(i)
		if field != nil {
			fields[key] = field
		}
		parts[i] = quoteIdent(key) + " " + read
	}
	if len(fields) == 0 {
		return nil, ""
	}
	return &jsonPlan{fields: fields}, "STRUCT(" + strings.Join(parts, ", ") + ")"
}

// rewrite writes a value, which was scanned before, as the plan has it.
func (p *jsonPlan) rewrite(b *bytes.Buffer, value []byte) {
	if p == nil || string(value) == "null" {
		b.Write(value)
		return
	}
	if p.text && p.plain && value[0] == '"' {
		b.Write(value)
		return
	}
	if p.text {
		var compact bytes.Buffer
		_ = json.Compact(&compact, value)            // it was scanned before
		encoded, _ := json.Marshal(compact.String()) // a string always can
		b.Write(encoded)
		return
	}
	if value[0] != '[' && p.elem != nil || value[0] != '{' && p.elem == nil {
		b.Write(value) // not of the declared type, which the engine will say
		return
	}
	at := 0
	if p.elem != nil {
		for _, f := range elementsOf(value) {
			b.Write(value[at:f.start])
			p.elem.rewrite(b, f.value)
			at = f.end
		}
	} else {
		for _, f := range fieldsOf(value) {
			b.Write(value[at:f.start])
			if p.each != nil {
				p.each.rewrite(b, f.value)
			} else {
				p.fields[f.key].rewrite(b, f.value)
			}
			at = f.end
		}
	}
	b.Write(value[at:])
}
