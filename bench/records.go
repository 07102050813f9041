package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// recordWriter writes generated records, one a line, from a fixed seed.
type recordWriter struct {
	out    *bufio.Writer
	rnd    *rand.Rand
	salt   uint64
	line   []byte
	broken int // every so many lines one is cut short; 0 none
	lines  int
}

// writeRecords makes one file of n lines by calling one for each.
func writeRecords(path string, n int, w *recordWriter, one func(w *recordWriter, i int)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make records: %w", err)
	}
	w.out = bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		w.line = w.line[:0]
		one(w, i)
		w.lines++
		if w.broken > 0 && w.lines%w.broken == 0 {
			w.line = w.line[:len(w.line)/2]
		}
		w.line = append(w.line, '\n')
		if _, err := w.out.Write(w.line); err != nil {
			f.Close()
			return fmt.Errorf("make records: %w", err)
		}
	}
	if err := w.out.Flush(); err != nil {
		f.Close()
		return fmt.Errorf("make records: %w", err)
	}
	return f.Close()
}

// as makes what follows depend on the number alone, so that equal numbers make
// equal records.
func (w *recordWriter) as(n uint64) { w.rnd = rand.New(rand.NewPCG(n, seed+w.salt)) }

func (w *recordWriter) raw(s string) { w.line = append(w.line, s...) }

func (w *recordWriter) int(n int) { w.line = strconv.AppendInt(w.line, int64(n), 10) }

// fixed is a number with so many digits after the point.
func (w *recordWriter) fixed(most, digits int) {
	w.line = strconv.AppendFloat(w.line, float64(w.rnd.IntN(most*1_000_000))/1e6, 'f', digits, 64)
}

func (w *recordWriter) text(prefix string, n int) {
	w.line = append(w.line, '"')
	w.line = append(w.line, prefix...)
	w.int(w.rnd.IntN(n))
	w.line = append(w.line, '"')
}

// crystal is a nested record of about 1.1 KB: a reference, owned rows in it, a
// list of references and a list of scalars. Half of the numbers repeat.
func crystal(half int) func(w *recordWriter, i int) {
	return func(w *recordWriter, i int) { w.crystal(i%half, 8) }
}

func (w *recordWriter) crystal(n, sites int) {
	w.as(uint64(n))
	w.raw(`{"material_id": "mat-`)
	w.int(n)
	w.raw(`", "formula": `)
	w.text("Fe2O", 5000)
	w.raw(`, "energy": -`)
	w.fixed(40, 6)
	w.raw(`, "band_gap": `)
	w.fixed(9, 9)
	w.raw(`, "lattice": {"a": `)
	w.fixed(20, 6)
	w.raw(`}, "tags": [`)
	w.list(3, func() { w.text("tag ", 200) })
	w.raw(`], "authors": [`)
	w.list(2+w.rnd.IntN(3), func() {
		id := w.rnd.IntN(20_000)
		w.raw(`{"name": "Author Number `)
		w.int(id)
		w.raw(`", "orcid": "0000-0001-`)
		w.int(100_000 + id)
		w.raw(`"}`)
	})
	w.raw(`], "structure": {"spacegroup": `)
	w.int(1 + w.rnd.IntN(230))
	w.raw(`, "sites": [`)
	w.list(sites, func() {
		w.raw(`{"x": `)
		w.fixed(1, 6)
		w.raw(`, "y": `)
		w.fixed(1, 6)
		w.raw(`, "z": `)
		w.fixed(1, 6)
		w.raw(`, "label": "a site of the cell that nothing reads"}`)
	})
	w.raw(`]}}`)
}

func (w *recordWriter) list(n int, one func()) {
	for i := range n {
		if i > 0 {
			w.raw(", ")
		}
		one()
	}
}

// flat is a record of ten scalars.
func (w *recordWriter) flat(n int) {
	w.as(uint64(n))
	w.raw(`{"id": `)
	w.int(n)
	w.raw(`, "user": `)
	w.text("user-", 100_000)
	w.raw(`, "kind": `)
	w.text("kind ", 12)
	w.raw(`, "amount": `)
	w.fixed(1000, 2)
	w.raw(`, "score": `)
	w.fixed(1, 6)
	w.raw(`, "count": `)
	w.int(w.rnd.IntN(1000))
	w.raw(`, "flag": `)
	w.raw([]string{"true", "false"}[w.rnd.IntN(2)])
	w.raw(`, "city": `)
	w.text("city ", 3000)
	w.raw(`, "day": "2024-0`)
	w.int(1 + w.rnd.IntN(9))
	w.raw(`-1`)
	w.int(w.rnd.IntN(9))
	w.raw(`", "comment": `)
	w.text("some words that a person may have written, number ", 1_000_000)
	w.raw(`}`)
}

// wide is a record of 200 whole numbers and texts.
func (w *recordWriter) wide(n int) {
	w.as(uint64(n))
	w.raw(`{"id": `)
	w.int(n)
	for c := 1; c < wideFields; c++ {
		w.raw(`, "c`)
		w.int(c)
		w.raw(`": `)
		if c%4 == 0 {
			w.text("t", 1000)
		} else {
			w.int(w.rnd.IntN(1_000_000))
		}
	}
	w.raw(`}`)
}

// wideFields is how many fields a wide record has.
const wideFields = 200

// flatFields are the fields of a flat record with their types.
func flatFields() [][2]string {
	return [][2]string{
		{"id", "bigint"}, {"user", "varchar"}, {"kind", "varchar"}, {"amount", "decimal(12,2)"}, {"score", "double"},
		{"count", "bigint"}, {"flag", "boolean"}, {"city", "varchar"}, {"day", "date"}, {"comment", "varchar"},
	}
}

// wideFieldTypes are those of a wide record.
func wideFieldTypes() [][2]string {
	fields := [][2]string{{"id", "bigint"}}
	for c := 1; c < wideFields; c++ {
		typ := "bigint"
		if c%4 == 0 {
			typ = "varchar"
		}
		fields = append(fields, [2]string{"c" + strconv.Itoa(c), typ})
	}
	return fields
}

// columnsOf writes fields as the columns of DuckDB's JSON reader.
func columnsOf(fields [][2]string) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = fmt.Sprintf("%q: %s", f[0], quote(f[1]))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// fieldNames are the names alone.
func fieldNames(fields [][2]string) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f[0]
	}
	return names
}

// recordFront is the frontmatter that ingests flat records of such fields.
func recordFront(path, dedup string, fields [][2]string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "materialization: ingest\ninput: {path: %s}\nroot: record\nrecords:\n  record:\n    dedup: %s\n    fields:\n", path, dedup)
	for _, f := range fields {
		fmt.Fprintf(&out, "      %s: %s\n", f[0], f[1])
	}
	return out.String()
}
