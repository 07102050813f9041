package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// shapes are the inputs of scenario g.
func (b *bench) shapes() []shape {
	flat := shape{
		input:  "flat.ndjson",
		front:  func(path string) string { return recordFront(path, "none", flatFields()) },
		plain:  func(input, out string) []step { return numberRecords(input, out, flatFields()) },
		tables: map[string][]string{"record": append(fieldNames(flatFields()), "_sid", "_occurrences")},
	}
	plainFlat := flat
	plainFlat.name, plainFlat.records = "flat", b.size(2_000_000, 2000)
	plainFlat.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "flat.ndjson"), n, &recordWriter{}, (*recordWriter).flat)
	}
	plainFlat.flatten = func(input, out string) []step { return copyRecords(input, out, flatFields()) }
	plainFlat.targets = []target{{side: "rbt", metric: cpu, against: "duckdb", max: 1}, {side: "rbt", metric: wall, against: "duckdb", max: 1}}

	small := flat
	small.name, small.input, small.records = "5,000 small files", "small/*.ndjson", b.size(500_000, 5000)
	small.make = func(dir string, n int) error { return writeSmallFiles(filepath.Join(dir, "small"), n) }

	broken := flat
	broken.name, broken.records = "one line in a thousand broken", b.size(1_000_000, 5000)
	broken.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "flat.ndjson"), n, &recordWriter{broken: 1000}, (*recordWriter).flat)
	}
	broken.front = func(path string) string { return recordFront(path, "none", flatFields()) + "max_rejects: 1%\n" }
	broken.plain = func(input, out string) []step {
		return numberRows(readValidLines(input, flatFields()), out, flatFields(), false)
	}

	same := flat
	same.name, same.records = "all the same", b.size(5_000_000, 5000)
	same.make = func(dir string, n int) error {
		return writeRecords(filepath.Join(dir, "flat.ndjson"), n, &recordWriter{}, func(w *recordWriter, _ int) { w.flat(1) })
	}
	same.front = func(path string) string { return recordFront(path, "content_id", flatFields()) }
	same.plain = func(input, out string) []step {
		from := fmt.Sprintf("read_ndjson(%s, columns = %s)", quote(input), columnsOf(flatFields()))
		list := strings.Join(fieldNames(flatFields()), ", ")
		return []step{
			{Exec: "SET preserve_insertion_order = true"},
			{Query: "SELECT row_number() OVER (ORDER BY pos) AS _sid, md5(row(" + list + ")::VARCHAR)::UUID AS _content_id, " + list +
				", n AS _occurrences, true AS _is_entry, 'flat.ndjson' AS _file, pos AS _line, 1::BIGINT AS _load_id FROM (SELECT " + list +
				", count(*) AS n, min(pos) AS pos FROM (SELECT *, row_number() OVER () AS pos FROM " + from + ") GROUP BY " + list + ")",
				To: filepath.Join(out, "record.parquet")},
		}
	}

	wide := shape{
		name: "200 fields each", input: "wide.ndjson", records: b.size(100_000, 500),
		make: func(dir string, n int) error {
			return writeRecords(filepath.Join(dir, "wide.ndjson"), n, &recordWriter{}, (*recordWriter).wide)
		},
		front:  func(path string) string { return recordFront(path, "none", wideFieldTypes()) },
		plain:  func(input, out string) []step { return numberRecords(input, out, wideFieldTypes()) },
		tables: map[string][]string{"record": fieldNames(wideFieldTypes())},
	}
	return append(b.nestedShapes(), plainFlat, same, wide, small, broken)
}

// nestedShapes are the inputs with references and lists.
func (b *bench) nestedShapes() []shape {
	nested := shape{
		name: "nested, half of them repeats", input: "nested.ndjson", records: b.size(200_000, 1000), nested: true, flatten: nestedNoIDs,
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
	skewed.name, skewed.nested, skewed.flatten, skewed.targets = "nested, one in a thousand 100 times as large", false, nil, nil
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

// numberRecords is the plain SQL that makes of flat records what rbt makes: the
// fields, dense numbers in the order of the lines, content ids, and the place.
func numberRecords(input, out string, fields [][2]string) []step {
	from := fmt.Sprintf("read_ndjson(%s, columns = %s, filename = true)", quote(input), columnsOf(fields))
	return numberRows(from, out, fields, strings.Contains(input, "*"))
}

func numberRows(from, out string, fields [][2]string, manyFiles bool) []step {
	list := strings.Join(fieldNames(fields), ", ")
	line := "row_number() OVER ()"
	if manyFiles {
		line = "row_number() OVER (PARTITION BY filename)"
	}
	return []step{
		{Exec: "SET preserve_insertion_order = true"}, // numbers must follow the lines
		{
			Query: "SELECT row_number() OVER () AS _sid, md5(row(" + list + ")::VARCHAR)::UUID AS _content_id, " + list +
				", true AS _is_entry, 1::BIGINT AS _occurrences, parse_filename(filename) AS _file, " + line + " AS _line, 1::BIGINT AS _load_id FROM " + from,
			To: filepath.Join(out, "record.parquet"),
		},
	}
}

// readValidLines reads the lines that are JSON and leaves out the others. The
// option ignore_errors of DuckDB's reader would not do: it loses lines beside
// broken ones where its buffers meet.
func readValidLines(input string, fields [][2]string) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = fmt.Sprintf("%q: %q", f[0], f[1])
	}
	return "(SELECT unnest(from_json(line, " + quote("{"+strings.Join(list, ", ")+"}") + ")), filename FROM read_csv(" + quote(input) +
		", columns = {'line': 'VARCHAR'}, header = false, auto_detect = false, delim = '\x01', quote = '', escape = '', filename = true) WHERE json_valid(line))"
}

// copyRecords is the plain SQL for flat records without any of that.
func copyRecords(input, out string, fields [][2]string) []step {
	from := fmt.Sprintf("read_ndjson(%s, columns = %s)", quote(input), columnsOf(fields))
	return []step{{Query: "SELECT * FROM " + from, To: filepath.Join(out, "record.parquet")}}
}
