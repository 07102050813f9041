package engine

import "github.com/duckdb/duckdb-go/v2/mapping"

// Version is the version of DuckDB that is linked in, as "v1.5.6".
func Version() string { return mapping.LibraryVersion() }
