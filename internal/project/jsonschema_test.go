package project

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJSONSchema: every schema is JSON, its references resolve, and every key
// has a sentence.
func TestJSONSchema(t *testing.T) {
	for _, name := range SchemaNames() {
		text, err := JSONSchema(name)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := JSONSchema(name)
		if string(text) != string(again) {
			t.Errorf("%s differs from call to call", name)
		}
		var root map[string]any
		if err := json.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		defs, _ := root["$defs"].(map[string]any)
		walkJSON(root, func(m map[string]any) {
			if ref, ok := m["$ref"].(string); ok {
				if defs[strings.TrimPrefix(ref, "#/$defs/")] == nil {
					t.Errorf("%s: %s leads nowhere", name, ref)
				}
			}
			if properties, ok := m["properties"].(map[string]any); ok {
				for key, p := range properties {
					doc, _ := p.(map[string]any)["description"].(string)
					if _, isTest := builtinTests[key]; !isTest && !strings.HasSuffix(doc, ".") {
						t.Errorf("%s: the key %s has no sentence", name, key)
					}
				}
			}
		})
	}
	text, _ := JSONSchema("model")
	for _, want := range []string{`"materialized"`, `"#/$defs/tests"`, `"accepted_values"`, `"root_by"`, `"enforced"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the schema of models lacks %s", want)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), ""), `"null",null`) {
		t.Error("the schema of models lacks null, which type_mismatch takes bare")
	}
	if _, err := JSONSchema("nope"); err == nil {
		t.Error("no error")
	}
}

func walkJSON(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, c := range v {
			walkJSON(c, visit)
		}
	case []any:
		for _, c := range v {
			walkJSON(c, visit)
		}
	}
}

// TestTables: every table that a key names exists, and no name stands twice.
func TestTables(t *testing.T) {
	for _, table := range []*keyTable{projectTable, modelTable, ymlTable, singularTable} {
		for _, k := range table.keys {
			if k.sub != "" {
				tableNamed(k.sub)
			}
		}
		n := 0
		for _, k := range table.keys {
			n += 1 + len(k.aliases)
		}
		if n != len(table.index) {
			t.Errorf("%s: a name stands twice", table.name)
		}
	}
}
