package main

import (
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// TestNoEngineSymbols: DuckDB is not in the table of names that is loaded with the
// program.
func TestNoEngineSymbols(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	own, total := 0, len(symbols)
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && strings.Contains(s.Name, "duckdb") {
			own++
		}
	}
	if total == 0 || own > 0 {
		t.Errorf("of %d symbols %d are DuckDB's", total, own)
	}
}
