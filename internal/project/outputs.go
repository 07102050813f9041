package project

import "strings"

// Output is one relation of an ingest model. Ref is what follows the model's
// name in ref() ("structure.sites"), "" for the root; Relation is the name under
// which the engine knows it, and Node the model.
type Output struct {
	Node     string
	Ref      string
	Relation string
}

// Outputs lists the relations of an ingest model, the root first; a model of
// another materialization has one, itself.
func (m *Model) Outputs() []Output {
	out := []Output{{Node: m.Name, Relation: m.Name}}
	if m.Records == nil {
		return out
	}
	add := func(ref string) {
		out = append(out, Output{Node: m.Name, Ref: ref, Relation: m.Name + "__" + strings.ReplaceAll(ref, ".", "__")})
	}
	root := m.Records.root()
	for _, t := range m.Records.Types {
		prefix := t.Name.Value + "."
		if folded(t.Name.Value) == folded(root) {
			prefix = ""
		} else {
			add(t.Name.Value)
		}
		childOutputs(t.Members, prefix, add)
		childOutputs(t.Metadata, prefix, add)
	}
	for _, f := range m.Records.Families {
		add(f.Name.Value)
	}
	add("_rejects")
	if m.Records.Occurrences.Value == "table" {
		add("_occurrences")
	}
	add("_loads")
	return out
}

// root names the record type that the model's bare name means, "" where root_by
// makes it the family of all roots.
func (r *Records) root() string {
	switch {
	case r.RootBy != nil:
		return ""
	case r.Root.Value != "":
		return r.Root.Value
	case len(r.Types) == 1:
		return r.Types[0].Name.Value
	default:
		return ""
	}
}

func childOutputs(m Members, prefix string, add func(string)) {
	for _, c := range m.Children {
		add(prefix + c.Name.Value)
		if c.Row != nil {
			childOutputs(*c.Row, prefix+c.Name.Value+".", add)
		}
	}
}

// HasOutput reports whether ref() finds a relation of an ingest model by what is
// written after the model's name and a dot.
func (m *Model) HasOutput(ref string) bool {
	_, ok := m.output(ref)
	return ok && m.Records != nil
}

// output finds a relation of an ingest model by what users write: the reference
// with dots or with __, the root by its record name too.
func (m *Model) output(ref string) (Output, bool) {
	outputs := m.Outputs()
	want := folded(strings.ReplaceAll(ref, ".", "__"))
	for _, o := range outputs {
		if folded(strings.ReplaceAll(o.Ref, ".", "__")) == want {
			return o, true
		}
	}
	if m.Records != nil && want != "" && want == folded(m.Records.root()) {
		return outputs[0], true
	}
	return Output{}, false
}
