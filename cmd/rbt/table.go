package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"rbt/engine"
)

// textTable lays out a header and rows in columns. Control characters are
// written as escapes, so that data can neither break the lines nor drive a
// terminal.
func textTable(columns []string, rows [][]string) string {
	if len(columns) == 0 {
		return ""
	}
	widths := make([]int, len(columns))
	shown := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{columns}, rows...) {
		cells := make([]string, len(columns))
		for i := range columns {
			if i < len(row) {
				cells[i] = printable(row[i])
			}
			widths[i] = max(widths[i], cellWidth(cells[i]))
		}
		shown = append(shown, cells)
	}
	var b strings.Builder
	for n, cells := range shown {
		writeRow(&b, cells, widths)
		if n == 0 {
			for i, w := range widths {
				if i > 0 {
					b.WriteString("-+-")
				}
				b.WriteString(strings.Repeat("-", w))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// maxSampleCell is the width of a value of a violating row, in terminal cells.
const maxSampleCell = 80

// sampleShown is the sample of a test as it is printed: of a long value how it
// begins, so that a document in a column does not hide the other columns. A unit
// test shows what differs, which its rows have cut out already.
func sampleShown(t *engine.TestResult) [][]string {
	if t.Kind == "unit_test" {
		return t.Sample
	}
	rows := make([][]string, len(t.Sample))
	for i, row := range t.Sample {
		rows[i] = make([]string, len(row))
		for k, cell := range row {
			rows[i][k] = fit(printable(cell), maxSampleCell)
		}
	}
	return rows
}

func writeRow(b *strings.Builder, cells []string, widths []int) {
	var line strings.Builder
	for i, c := range cells {
		if i > 0 {
			line.WriteString(" | ")
		}
		line.WriteString(c)
		line.WriteString(strings.Repeat(" ", widths[i]-cellWidth(c)))
	}
	b.WriteString(strings.TrimRight(line.String(), " "))
	b.WriteByte('\n')
}

// cellWidth is the number of terminal cells that a text takes.
func cellWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// printable escapes what a terminal would obey.
func printable(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsControl(r):
			const hex = "0123456789abcdef"
			b.WriteString(`\x`)
			b.WriteByte(hex[r>>4&15])
			b.WriteByte(hex[r&15])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
