// Package materialize turns a SELECT, or any other Source, into published
// Parquet, all or nothing: stage, audit, publish, receipt. It owns the publish
// protocol, the strategies, the type rules and recovery. It must never make
// anything visible that was not audited, and never opens a database by itself:
// it reaches the engine through Session.
//
// Its words: to stage is to write where nobody reads; to audit is to ask the
// caller whether the staged data may be seen; to publish is to make it visible
// by one rename (the commit) and then to write the receipt.
package materialize

import (
	"context"
	"encoding/json"
	"errors"

	"rbt/internal/lake"
)

// ErrMemory is what an engine's error is where a statement did not get the
// memory that it needed: others that run at the same time may have had it.
var ErrMemory = errors.New("the engine has no memory left")

// Session is all that materialize and ingest ask of an SQL engine. It may be
// used by one goroutine at a time; ask Fork for more. A distributed engine that
// writes several files must fit behind it.
type Session interface {
	// Exec runs one statement of rbt's own making. Placeholders are not used:
	// the caller quotes with QuoteIdent and QuoteText.
	Exec(ctx context.Context, sql string) error
	// Query runs one query of rbt's own making and calls row for every row with
	// values as the driver gives them.
	Query(ctx context.Context, sql string, row func(values []any) error) error
	// Describe gives names and true types of a query's columns; a column of type
	// NULL, at any depth, is called "NULL" (and not INTEGER).
	Describe(ctx context.Context, sql string) ([]lake.Column, error)
	// CopyTo writes the query's result to path as Parquet with the key-value
	// metadata and returns the files that it made (one for an embedded engine),
	// each with rows and bytes. A failed or cancelled CopyTo leaves no file.
	CopyTo(ctx context.Context, sql, path string, metadata map[string]string) ([]StagedFile, error)
	// Relation makes name ("schema"."x" unquoted as schema, x) read exactly these
	// Parquet files (absolute paths) with these columns; no files means a typed
	// empty relation. It replaces what name meant before.
	Relation(ctx context.Context, schema, name string, files []string, columns []lake.Column) error
	// Fork returns a session on a connection of its own; Close gives it back.
	Fork(ctx context.Context) (Session, error)
	Close() error
}

// StagedFile is one file in staging. Path is absolute; Bytes is its size.
type StagedFile struct {
	Path  string
	Rows  int64
	Bytes int64
}

// StagedOutput is one relation as staged. Kept lists the published files
// (absolute paths) that stay part of the relation: the old parts of an
// increment, none for a full refresh. Rows counts Files only.
//
// Folder is where a relation of an ingest lies below the node's folder; "" takes
// the name of the staged file, or the folder of the kept ones.
type StagedOutput struct {
	Relation string
	Folder   string
	Files    []StagedFile
	Kept     []string
	KeptRows int64
	Columns  []lake.Column
	Rows     int64
	// ContentHash identifies the content of the whole relation where the Source
	// knows it, so that equal data does not rebuild what depends on it.
	ContentHash *string
	// rearranged says that the rows are the published ones in another order.
	rearranged bool
}

// Staged is what a Source wrote: nothing of it is visible yet. A node of one
// relation has one output; an ingest has one a table. SQL is set for a view,
// which has no files.
//
// An ingest adds keys of its own to the manifest of the node, takes out those
// whose value is nil, and adds figures to its receipt; its relations are called
// <node>__<table>.
type Staged struct {
	Outputs  []StagedOutput
	SQL      string
	Manifest map[string]json.RawMessage
	Stats    *json.RawMessage
}

// Source makes data. Stage writes into dir, an existing empty folder on the
// file system of the lake that is removed afterwards whatever happens. File
// names must not end in ".parquet", since readers' globs enter hidden folders.
type Source interface {
	Stage(ctx context.Context, s Session, dir string) (Staged, error)
}
