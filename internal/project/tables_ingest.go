package project

// ingestKeys are the keys that only a model of materialization ingest has.
func ingestKeys() []mapKey {
	return []mapKey{
		{name: "input", kind: kindTable, sub: "input", short: true, doc: "Files to ingest."},
		{name: "root", kind: kindText, doc: "Record type of the top-level records."},
		{name: "root_by", kind: kindTable, sub: "root_by", doc: "A field whose text picks the type of a top-level record."},
		{name: "records", kind: kindMap, sub: "record", doc: "Record types by name."},
		{name: "families", kind: kindAny, doc: "Unions of record types by name."},
		{name: "on_bad_record", kind: kindText, enum: []string{"quarantine", "fail"}, doc: "What happens to a record that cannot be read."},
		{name: "max_rejects", kind: kindText, doc: "Rejected records that end the ingest: a count, or a share as 0.1%."},
		{name: "unknown_fields", kind: kindText, enum: []string{"ignore", "fail", "quarantine", "capture"}, doc: "What happens to fields that are not declared."},
		{name: "type_mismatch", kind: kindText, enum: []string{"quarantine", "fail", "null"}, doc: "What happens to a value of another type."},
		{name: "occurrences", kind: kindText, enum: []string{"count", "none", "table"}, doc: "What is kept of repeats."},
		{name: "mode", kind: kindText, enum: []string{"full_refresh", "append"}, doc: "Whether a run replaces the records or adds those of new files."},
		{name: "on_changed_file", kind: kindText, enum: []string{"fail", "ignore"}, doc: "What an append does where a known file has changed."},
		{name: "workers", kind: kindInt, doc: "Goroutines that encode; 0 is the number of cores."},
		{name: "memory_limit", kind: kindText, doc: "Memory for records on their way, as 2GB; a quarter of the engine's where it is absent."},
	}
}

var inputTable = newTable("input", "`input`", nil,
	mapKey{name: "path", kind: kindTexts, required: true, doc: "A file, folder or glob, or a list of them, in the project or under a root."},
	mapKey{name: "glob", kind: kindTexts, doc: "Which files of a folder are read."},
	mapKey{name: "format", kind: kindText, enum: []string{"auto", "ndjson", "json", "csv", "parquet", "arrow_ipc"}, doc: "Format of the files; auto is by extension, then first bytes."},
	mapKey{name: "compression", kind: kindText, enum: []string{"auto", "none", "gzip", "zstd"}, doc: "Compression of the files."},
	mapKey{name: "record_path", kind: kindText, doc: "Where records sit in a JSON document, as $.data[*]."},
	mapKey{name: "on_missing", kind: kindText, enum: []string{"error", "empty"}, doc: "What happens where there is no file."},
	mapKey{name: "options", kind: kindTable, sub: "input_options", doc: "How CSV files are written."},
)

// inputOptions are spelled as those of csv sources.
var inputOptions = newTable("input_options", "`options` of an ingest's csv files", nil,
	mapKey{name: "header", kind: kindBool, doc: "Whether the first line names the columns; false takes the root's fields in their order."},
	mapKey{name: "delimiter", aliases: []string{"delim", "sep"}, kind: kindText, doc: "The character between values."},
	mapKey{name: "quote", kind: kindText, doc: "The character that encloses values; empty for none."},
	mapKey{name: "nullstr", aliases: []string{"null"}, kind: kindText, doc: "The text that means NULL."},
)

var rootByTable = newTable("root_by", "`root_by`", nil,
	mapKey{name: "field", kind: kindText, required: true, doc: "The field that tells the type."},
	mapKey{name: "map", kind: kindTextMap, required: true, doc: "Record types by the field's text."},
)

// memberKeys are the parts of a record or of an owned row.
func memberKeys() []mapKey {
	return []mapKey{
		{name: "fields", kind: kindMap, sub: "field", short: true, doc: "Scalars by name."},
		{name: "references", kind: kindMap, sub: "reference", short: true, doc: "Nested objects that are records of their own."},
		{name: "children", kind: kindMap, sub: "child", short: true, doc: "Nested arrays."},
	}
}

var recordTable = newTable("record", "a record type", nil, append(memberKeys(),
	mapKey{name: "identity", kind: kindText, doc: "Name inside the identity; keep it when the record type is renamed."},
	mapKey{name: "dedup", kind: kindText, enum: []string{"content_id", "by_value", "none"}, doc: "What makes two records one."},
	mapKey{name: "entries", kind: kindBool, doc: "true makes every occurrence an entry."},
	mapKey{name: "metadata", kind: kindMap, sub: "child", short: true, doc: "Fields, references and lists that are stored but stand outside identity."},
	mapKey{name: "on_metadata_conflict", kind: kindText, enum: []string{"fail", "first", "last", "quarantine"}, doc: "What happens where equal records differ in metadata."},
	mapKey{name: "id", kind: kindTable, sub: "id", doc: "An _id column."},
)...)

var fieldTable = newTable("field", "a field", nil,
	mapKey{name: "type", kind: kindText, required: true, doc: "Type of the values."},
	mapKey{name: "path", kind: kindText, doc: "Where the value sits in the record, as a.b; the field's name where it is absent."},
	mapKey{name: "required", kind: kindBool, doc: "true rejects records without it."},
)

var referenceTable = newTable("reference", "a reference", nil,
	mapKey{name: "record", kind: kindText, required: true, doc: "Record type of the nested object."},
	mapKey{name: "path", kind: kindText, doc: "Where the object sits in the record."},
	mapKey{name: "required", kind: kindBool, doc: "true rejects records without it."},
)

var childTable = newTable("child", "a nested list", nil, append(memberKeys(),
	mapKey{name: "type", kind: kindText, doc: "Type of a list of scalars."},
	mapKey{name: "record", kind: kindText, doc: "Record type of a list of records."},
	mapKey{name: "list", kind: kindBool, doc: "In metadata: true where the values form a list."},
	mapKey{name: "path", kind: kindText, doc: "Where the list sits in the record."},
	mapKey{name: "required", kind: kindBool, doc: "true rejects records without it."},
)...)

var idTable = newTable("id", "`id`", nil,
	mapKey{name: "base", kind: kindText, doc: "First part of minted ids."},
	mapKey{name: "series", kind: kindText, doc: "Second part of minted ids."},
	mapKey{name: "from", kind: kindText, doc: "Field that holds the id."},
	mapKey{name: "unique", kind: kindBool, doc: "false allows an id to repeat."},
)
