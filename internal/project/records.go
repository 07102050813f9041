package project

import (
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// Text is a word that the user wrote and its place. An empty Value means that
// the key is absent and the default holds.
type Text struct {
	Value string
	Pos   diag.Pos
}

// Flag is a yes or no that the user wrote and its place.
type Flag struct {
	Set bool
	Pos diag.Pos
}

// Records is the declaration of an ingest model as written, every piece with its
// place. What it means is for the ingest package to find out. Lists keep the
// declared order.
type Records struct {
	Pos           diag.Pos
	Input         RecordInput
	Root          Text
	RootBy        *RootBy
	Types         []RecordType
	Families      []Family
	OnBadRecord   Text
	MaxRejects    Text
	UnknownFields Text
	TypeMismatch  Text
	Occurrences   Text
	Mode          Text
	OnChangedFile Text
	Workers       int    // 0 is the number of cores
	MemoryLimit   string // as DuckDB spells sizes; "" is a quarter of the engine's
}

// RecordInput says what files are read. Patterns are absolute, as in Source.
type RecordInput struct {
	Patterns    []string
	Globs       []string // which files of a folder; none is all
	Format      Text
	Compression Text
	RecordPath  Text
	Options     InputOptions
	OnMissing   string // error | empty
	Pos         diag.Pos
}

// InputOptions say how CSV files are written. Quote and Null are nil where they
// are not given, since an empty one means something else.
type InputOptions struct {
	Delimiter Text
	Quote     *Text
	Null      *Text
	NoHeader  Flag
}

// RootBy picks the type of a top-level record by the text of one field.
type RootBy struct {
	Field Text
	Map   []RootCase
	Pos   diag.Pos
}

// RootCase maps one text of the deciding field to a record type.
type RootCase struct {
	Value  Text
	Record Text
}

// RecordType is the declaration of one record type.
type RecordType struct {
	Name     Text
	Identity Text
	Dedup    Text
	Entries  Flag
	Members
	Metadata           Members
	OnMetadataConflict Text
	ID                 *RecordID
}

// Members are the parts of a record or of an owned row.
type Members struct {
	Fields     []RecordField
	References []RecordReference
	Children   []RecordChild
}

// RecordField is a scalar, or a list of scalars kept in one column.
type RecordField struct {
	Name     Text
	Type     Text
	Path     Text
	Required Flag
}

// RecordReference is a nested object that is a record of its own.
type RecordReference struct {
	Name     Text
	Record   Text
	Path     Text
	Required Flag
}

// RecordChild is a nested array: of scalars (Type), of links to records (Record)
// or of owned rows (Row).
type RecordChild struct {
	Name     Text
	Path     Text
	Required Flag
	Type     Text
	Record   Text
	Row      *Members
}

// RecordID asks for an _id column: base-series-number, or the value of a field.
type RecordID struct {
	Pos     diag.Pos
	Base    Text
	Series  Text
	From    Text
	Repeats bool // `unique: false` is written
}

// Family is a union of record types under one name.
type Family struct {
	Name    Text
	Members []Text
}

// word gives a text with its place.
func (f fields) word(name string) Text {
	if v := f.text(name); v != "" {
		return Text{Value: v, Pos: f.pos(name)}
	}
	return Text{}
}

func (f fields) flag(name string) Flag {
	if !f.has(name) {
		return Flag{}
	}
	return Flag{Set: f.boolean(name, false), Pos: f.pos(name)}
}

// records reads the keys of an ingest model.
func (f fields) records(p *Project) *Records {
	r := &Records{
		Pos: f.pos("records"), Root: f.word("root"), OnBadRecord: f.word("on_bad_record"), MaxRejects: f.word("max_rejects"),
		UnknownFields: f.word("unknown_fields"), TypeMismatch: f.word("type_mismatch"), Occurrences: f.word("occurrences"),
		Mode: f.word("mode"), OnChangedFile: f.word("on_changed_file"), Workers: f.integer("workers", 0), MemoryLimit: f.text("memory_limit"),
	}
	for _, key := range []string{"input", "records"} {
		if f.node(key) == nil {
			f.d.add(diag.Errorf(diag.MissingKey, f.pos("materialization"), "`materialization: ingest` needs the key %q", key))
		}
	}
	r.Input = f.recordInput(p)
	if f.node("root_by") != nil {
		by := f.table("root_by")
		r.RootBy = &RootBy{Field: by.word("field"), Pos: f.pos("root_by")}
		for _, c := range by.entries("map") {
			if v, ok := f.d.pairText(c); ok {
				r.RootBy.Map = append(r.RootBy.Map, RootCase{Value: f.d.keyText(c), Record: v})
			}
		}
	}
	for _, item := range f.entries("records") {
		if t, ok := f.d.fields(item.value, recordTable); ok {
			r.Types = append(r.Types, t.recordType(item))
		}
	}
	for _, item := range f.entries("families") {
		family := Family{Name: f.d.keyText(item)}
		for _, m := range f.d.scalars(item.value, "the family `"+item.name+"`") {
			family.Members = append(family.Members, Text{Value: m.Value, Pos: f.d.pos(m)})
		}
		r.Families = append(r.Families, family)
	}
	return r
}

func (d *decoder) keyText(p pair) Text { return Text{Value: p.name, Pos: d.pos(p.key)} }

func (d *decoder) pairText(p pair) (Text, bool) {
	if isNull(p.value) || p.value.Kind != yaml.ScalarNode {
		d.expected(p.value, "`"+p.name+"`", "text")
		return Text{}, false
	}
	return Text{Value: p.value.Value, Pos: d.pos(p.value)}, true
}

func (f fields) recordInput(p *Project) RecordInput {
	n := f.node("input")
	if n == nil {
		return RecordInput{}
	}
	in := fields{}
	if n.Kind == yaml.MappingNode {
		in = f.table("input")
	} else {
		// A short input is its path.
		in, _ = f.d.fields(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: "path", Line: n.Line, Column: n.Column}, n}}, inputTable)
	}
	out := RecordInput{
		Globs: in.texts("glob"), Format: in.word("format"), Compression: in.word("compression"), RecordPath: in.word("record_path"),
		OnMissing: "error", Pos: in.pos("path"),
	}
	if in.node("options") != nil {
		out.Options = in.table("options").inputOptions()
	}
	if v := in.text("on_missing"); v != "" {
		out.OnMissing = v
	}
	for _, g := range out.Globs {
		if isAbs(slashed(g)) || hasParent(slashed(g)) {
			f.d.add(diag.Errorf(diag.BadPath, in.pos("glob"), "the glob %q leads out of the folder", g))
		}
	}
	if path := in.node("path"); path != nil {
		for _, one := range f.d.scalars(path, "`path`") {
			if pattern, ok := p.inputPath(f.d, one); ok {
				out.Patterns = append(out.Patterns, pattern)
			}
		}
	}
	return out
}

func (f fields) inputOptions() InputOptions {
	given := f.optionTexts()
	text := func(name string) *Text {
		if v, ok := given[name]; ok {
			return &Text{Value: v, Pos: f.pos(name)}
		}
		return nil
	}
	out := InputOptions{Quote: text("quote"), Null: text("nullstr")}
	if d := text("delimiter"); d != nil {
		out.Delimiter = *d
	}
	if given["header"] == "false" {
		out.NoHeader = Flag{Set: true, Pos: f.pos("header")}
	}
	return out
}

func (f fields) recordType(item pair) RecordType {
	t := RecordType{
		Name: f.d.keyText(item), Identity: f.word("identity"), Dedup: f.word("dedup"), Entries: f.flag("entries"),
		OnMetadataConflict: f.word("on_metadata_conflict"), Members: f.members(),
	}
	for _, m := range f.entries("metadata") {
		f.d.metadata(m, &t.Metadata)
	}
	if f.node("id") != nil {
		id := f.table("id")
		t.ID = &RecordID{Pos: f.pos("id"), Base: id.word("base"), Series: id.word("series"), From: id.word("from"),
			Repeats: !id.boolean("unique", true)}
	}
	return t
}

// members reads fields, references and children.
func (f fields) members() Members {
	var m Members
	for _, item := range f.entries("fields") {
		if v, ok := f.d.short(item, fieldTable, "type"); ok {
			m.Fields = append(m.Fields, v.recordField(item))
		}
	}
	for _, item := range f.entries("references") {
		if v, ok := f.d.short(item, referenceTable, "record"); ok {
			m.References = append(m.References, v.recordReference(item))
		}
	}
	for _, item := range f.entries("children") {
		if v, ok := f.d.short(item, childTable, "type"); ok {
			m.Children = append(m.Children, v.recordChild(item))
		}
	}
	return m
}

// halfType refuses the second half of decimal(9, 2), which is a key of its own in a
// mapping of one line.
func (d *decoder) halfType(item pair) bool {
	if !isNull(item.value) || !strings.HasSuffix(item.name, ")") || strings.Contains(item.name, "(") {
		return false
	}
	d.badHint(item.key, "within {…} a type with a comma stands in quotes: \"decimal(9,2)\"", "`%s` is no key: it is the end of a type", item.name)
	return true
}

// short reads a mapping, or a scalar that stands for its key `as`.
func (d *decoder) short(item pair, t *keyTable, as string) (fields, bool) {
	n := item.value
	if isNull(n) {
		if d.halfType(item) {
			return fields{}, false
		}
		d.expected(n, "`"+item.name+"`", "a type or a mapping")
		return fields{}, false
	}
	if n.Kind == yaml.ScalarNode {
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: as, Line: n.Line, Column: n.Column}
		n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column, Content: []*yaml.Node{key, n}}
	}
	return d.fields(n, t)
}

func (f fields) recordField(item pair) RecordField {
	return RecordField{Name: f.d.keyText(item), Type: f.word("type"), Path: f.word("path"), Required: f.flag("required")}
}

func (f fields) recordReference(item pair) RecordReference {
	return RecordReference{Name: f.d.keyText(item), Record: f.word("record"), Path: f.word("path"), Required: f.flag("required")}
}

func (f fields) recordChild(item pair) RecordChild {
	c := RecordChild{Name: f.d.keyText(item), Path: f.word("path"), Required: f.flag("required"), Type: f.word("type"), Record: f.word("record")}
	if f.has("fields") || f.has("references") || f.has("children") {
		row := f.members()
		c.Row = &row
	}
	return c
}

// metadata reads one piece of metadata: a scalar (a type), a reference (a
// record), or with `list: true` or fields a list.
func (d *decoder) metadata(item pair, m *Members) {
	f, ok := d.short(item, childTable, "type")
	if !ok {
		return
	}
	owned := f.has("fields") || f.has("references") || f.has("children")
	switch {
	case owned, f.boolean("list", false):
		m.Children = append(m.Children, f.recordChild(item))
	case f.has("record"):
		m.References = append(m.References, f.recordReference(item))
	case f.has("type"):
		m.Fields = append(m.Fields, f.recordField(item))
	default:
		d.add(diag.Errorf(diag.MissingKey, d.pos(item.key), "the metadata %q needs `type` or `record`", item.name))
	}
}
