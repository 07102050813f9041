package ingest

import "rbt/internal/diag"

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

// Spec is the declaration of one ingest model as it was written, every piece
// with its place. It is plain data: Compile finds out whether it means
// anything. Lists keep the declared order.
type Spec struct {
	Model         string   // name of the model; prefix of every relation
	Pos           diag.Pos // of the declaration as a whole
	Input         Input
	Root          Text
	RootBy        *RootBy
	Records       []Record
	Families      []Family
	OnBadRecord   Text // quarantine (default) | fail
	MaxRejects    Text // a count (default 1000) or a share such as 0.1%
	UnknownFields Text // ignore (default) | fail | quarantine | capture
	TypeMismatch  Text // quarantine (default) | fail | null
	Occurrences   Text // count (default) | none | table
	Mode          Text // full_refresh (default) | append
	OnChangedFile Text // fail (default) | ignore
}

// Input says what is read and how. Paths and globs are the caller's to expand
// (Discover); here only what changes the meaning of the bytes is checked.
type Input struct {
	Format      Text // auto (default) | ndjson | json | csv | parquet | arrow_ipc
	Compression Text // auto (default) | none | gzip | zstd
	RecordPath  Text // $ (default), $.data[*], …
	CSV         CSVOptions
}

// CSVOptions say how CSV files are written. Quote and Null are nil where they
// are not given; an empty one means something else.
type CSVOptions struct {
	Delimiter Text  // one character; default a comma
	Quote     *Text // one ASCII character, or empty for none; default a double quote
	Null      *Text // the text that means NULL; default the empty one
	NoHeader  Flag  // the columns are the root's fields in their order
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

// Record is the declaration of one record type.
type Record struct {
	Name     Text
	Identity Text // name inside the hash; default the record's name
	Dedup    Text // content_id (default) | by_value | none
	Entries  Flag
	Members
	Metadata           Members
	OnMetadataConflict Text // fail (default) | first | last | quarantine
	ID                 *ID
}

// Members are the parts of a record or of an owned row.
type Members struct {
	Fields     []Field
	References []Reference
	Children   []Child
}

// Field is a scalar (or a list of scalars kept in one column).
type Field struct {
	Name     Text
	Type     Text
	Path     Text // keys joined with dots, "quoted" where a key holds a dot; default the name as one key
	Required Flag
}

// Reference is a nested object that is a record of its own.
type Reference struct {
	Name     Text
	Record   Text
	Path     Text
	Required Flag
}

// Child is a nested array: of scalars (Type), of links to records (Record) or
// of owned rows (Row). Exactly one of the three is set.
type Child struct {
	Name     Text
	Path     Text
	Required Flag
	Type     Text
	Record   Text
	Row      *Members
}

// ID asks for an _id column: base-series-number, or the value of a field.
type ID struct {
	Pos    diag.Pos
	Base   Text
	Series Text
	From   Text
	// Repeats is set where the user wrote unique: false.
	Repeats bool
}

// Family is a union of record types under one name.
type Family struct {
	Name    Text
	Members []Text
}
