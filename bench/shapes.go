package main

import (
	"fmt"
	"path/filepath"
)

// shapes are the inputs of scenario g.
func (b *bench) shapes() []shape {
	flat := shape{
		input:  "flat.ndjson",
		front:  func(path string) string { return recordFront(path, "none", flatFields()) },
		plain:  func(input, out string) []step { return copyRecords(input, out, flatFields(), "") },
		tables: map[string][]string{"record": fieldNames(flatFields())},
	}
	plainFlat := flat
	plainFlat.name, plainFlat.records = "flat", b.size(2_000_000, 2000)
	plainFlat.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "flat.ndjson"), n, &recordWriter{}, (*recordWriter).flat)
	}
	plainFlat.targets = []target{{side: "rbt", metric: cpu, against: "duckdb", max: 1}, {side: "rbt", metric: wall, against: "duckdb", max: 1}}

	small := plainFlat
	small.name, small.input, small.records, small.targets = "5,000 small files", "small/*.ndjson", b.size(500_000, 5000), nil
	small.make = func(dir string, n int) error { return writeSmallFiles(filepath.Join(dir, "small"), n) }

	broken := plainFlat
	broken.name, broken.records, broken.targets = "one line in a thousand broken", b.size(1_000_000, 5000), nil
	broken.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "flat.ndjson"), n, &recordWriter{broken: 1000}, (*recordWriter).flat)
	}
	broken.front = func(path string) string { return recordFront(path, "none", flatFields()) + "max_rejects: 1%\n" }
	broken.plain = func(input, out string) []step { return copyRecords(input, out, flatFields(), ", ignore_errors = true") }

	same := plainFlat
	same.name, same.records, same.targets = "all the same", b.size(5_000_000, 5000), nil
	same.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "flat.ndjson"), n, &recordWriter{}, func(w *recordWriter, _ int) { w.flat(1) })
	}
	same.front = func(path string) string { return recordFront(path, "content_id", flatFields()) }
	same.plain = func(input, out string) []step {
		from := fmt.Sprintf("read_ndjson(%s, columns = %s)", quote(input), columnsOf(flatFields()))
		return []step{{Query: "SELECT DISTINCT * FROM " + from, To: filepath.Join(out, "record.parquet")}}
	}

	wide := shape{
		name: "200 fields each", input: "wide.ndjson", records: b.size(100_000, 500),
		make: func(dir string, n int) error {
			return writeRecords(filepath.Join(dir, "wide.ndjson"), n, &recordWriter{}, (*recordWriter).wide)
		},
		front:  func(path string) string { return recordFront(path, "none", wideFieldTypes()) },
		plain:  func(input, out string) []step { return copyRecords(input, out, wideFieldTypes(), "") },
		tables: map[string][]string{"record": fieldNames(wideFieldTypes())},
	}
	return append(b.nestedShapes(), plainFlat, same, wide, small, broken)
}

// nestedShapes are the inputs with references and lists.
func (b *bench) nestedShapes() []shape {
	nested := shape{
		name: "nested, half of them repeats", input: "nested.ndjson", records: b.size(200_000, 1000), noIDs: true,
		make: func(dir string, n int) error {
			return writeRecords(filepath.Join(dir, "nested.ndjson"), n, &recordWriter{}, crystal(max(1, n/2)))
		},
		front:  func(path string) string { return fmt.Sprintf(nestedFront, path, "") },
		plain:  nestedPlain,
		tables: nestedTables(),
		targets: []target{
			{side: "rbt", metric: cpu, against: "duckdb", max: 0.6},
			{side: "rbt", metric: wall, against: "duckdb", max: 0.45},
			{side: "rbt", metric: wall, against: "duckdb, no ids", max: 1},
		},
	}
	skewed := nested
	skewed.name, skewed.noIDs, skewed.targets = "nested, one in a thousand 100 times as large", false, nil
	skewed.records = b.size(100_000, 2000)
	skewed.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "nested.ndjson"), n, &recordWriter{}, func(w *recordWriter, i int) {
			sites := 8
			if i%1000 == 7 {
				sites = 1500
			}
			w.crystal(i, sites)
		})
	}
	return []shape{nested, skewed}
}

// writeSmallFiles spreads n flat records over files of a hundred.
func writeSmallFiles(dir string, n int) error {
	const each = 100
	for f := range max(1, n/each) {
		path := filepath.Join(dir, fmt.Sprintf("%05d.ndjson", f))
		if err := writeRecords(path, each, &recordWriter{}, func(w *recordWriter, i int) { w.flat(f*each + i) }); err != nil {
			return err
		}
	}
	return nil
}

// copyRecords is the plain SQL for flat records. A broken line that is let pass
// comes out as a row of NULLs.
func copyRecords(input, out string, fields [][2]string, options string) []step {
	from := fmt.Sprintf("read_ndjson(%s, columns = %s%s)", quote(input), columnsOf(fields), options)
	return []step{{Query: "SELECT * FROM " + from + " WHERE id IS NOT NULL", To: filepath.Join(out, "record.parquet")}}
}
