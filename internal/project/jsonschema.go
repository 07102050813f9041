package project

import (
	"encoding/json"
	"fmt"
	"slices"
)

// schema is a JSON Schema, whose keys JSON sorts.
type schema = map[string]any

// SchemaNames lists the files for which JSONSchema has a schema: project.yml,
// a model's frontmatter, a .yml file under models/, the frontmatter of a
// singular test, and selectors.yml.
func SchemaNames() []string {
	return []string{"project", "model", "properties", "test", "selectors"}
}

// JSONSchema gives the schema of one kind of file as editors take it, made from
// the tables by which rbt itself decodes. The error names an unknown kind.
func JSONSchema(name string) ([]byte, error) {
	var root *keyTable
	switch name {
	case "project":
		root = projectTable
	case "model":
		root = modelTable
	case "properties":
		root = ymlTable
	case "test":
		root = singularTable
	case "selectors":
		root = selectorsTable
	default:
		return nil, fmt.Errorf("write schema %q: it is none of %v", name, SchemaNames())
	}
	b := &schemaBuilder{defs: schema{}}
	out := b.table(root)
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["title"] = "rbt " + name
	if len(b.defs) > 0 {
		out["$defs"] = b.defs
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema %q: %w", name, err)
	}
	return append(text, '\n'), nil
}

type schemaBuilder struct{ defs schema }

// ref points to the schema of a table and makes it where it is new.
func (b *schemaBuilder) ref(t *keyTable) schema {
	if _, ok := b.defs[t.name]; !ok {
		b.defs[t.name] = nil // ends recursion
		b.defs[t.name] = b.table(t)
	}
	return schema{"$ref": "#/$defs/" + t.name}
}

func (b *schemaBuilder) table(t *keyTable) schema {
	properties := schema{}
	var required []string
	for _, k := range t.keys {
		s := b.value(k)
		s["description"] = k.doc
		properties[k.name] = s
		for _, alias := range k.aliases {
			other := b.value(k)
			other["description"] = "The same as " + k.name + "."
			properties[alias] = other
		}
		if k.required {
			required = append(required, k.name)
		}
	}
	out := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// scalar is text as YAML spells it: editors see numbers and booleans.
func scalar() schema { return schema{"type": []string{"string", "number", "boolean", "null"}} }

func oneOf(options ...schema) schema { return schema{"anyOf": options} }

func list(of schema) schema { return schema{"type": "array", "items": of} }

func mapOf(of schema) schema { return schema{"type": "object", "additionalProperties": of} }

func (b *schemaBuilder) value(k mapKey) schema {
	switch k.kind {
	case kindBool:
		return schema{"type": []string{"boolean", "null"}}
	case kindInt:
		return schema{"type": []string{"integer", "null"}, "minimum": 0}
	case kindTexts:
		return oneOf(scalar(), list(scalar()))
	case kindTextMap:
		return mapOf(scalar())
	case kindTable:
		return b.shortened(k, b.ref(tableNamed(k.sub)))
	case kindList:
		return list(b.ref(tableNamed(k.sub)))
	case kindMap:
		return mapOf(b.shortened(k, b.ref(tableNamed(k.sub))))
	case kindColumns:
		column := b.ref(columnTable)
		return oneOf(mapOf(oneOf(scalar(), column)), list(column))
	case kindTests:
		return b.tests()
	case kindDuration:
		return oneOf(schema{"type": "string"}, b.ref(durationTable))
	case kindAny:
		return schema{}
	}
	if k.enum != nil {
		words := make([]any, 0, len(k.enum)+1)
		for _, w := range k.enum {
			words = append(words, w)
			if w == "null" { // which YAML takes for no value
				words = append(words, nil)
			}
		}
		return schema{"enum": words}
	}
	return scalar()
}

// shortened lets a scalar, or for a path a list, stand for a mapping.
func (b *schemaBuilder) shortened(k mapKey, s schema) schema {
	if k.short {
		return oneOf(scalar(), list(scalar()), s)
	}
	return s
}

// tests describes assertions: a list or a mapping. Kinds that are not built in
// are {% test %} blocks.
func (b *schemaBuilder) tests() schema {
	if _, ok := b.defs["tests"]; !ok {
		b.defs["tests"] = nil
		properties := schema{}
		var names []string
		for kind, t := range builtinTests {
			names = append(names, kind)
			argument := b.ref(t)
			properties[kind] = oneOf(scalar(), list(oneOf(scalar(), argument)), argument)
		}
		slices.Sort(names)
		one := schema{"type": "object", "properties": properties}
		b.defs["tests"] = oneOf(list(oneOf(schema{"type": "string", "examples": names}, one)), one, schema{"type": "null"})
	}
	return schema{"$ref": "#/$defs/tests"}
}
