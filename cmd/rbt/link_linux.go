package main

// The binding of DuckDB links a program so that all of DuckDB's symbols, sixty
// thousand, are there by name for libraries that are loaded later. Nothing needs
// them: the extensions that DuckDB publishes bring what they use of it. The names
// would be 6 MB more to load at each start, and longer to find one's own by.

// #cgo LDFLAGS: -Wl,--no-export-dynamic
import "C"
