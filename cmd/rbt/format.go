package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// cell is one value as it is printed: Text is exact (the engine's own text for
// decimals, times and nested values), JSON is the value as JSON.
type cell struct {
	text string
	json string
	null bool
}

// rowSet is the result of a query, ready to be printed.
type rowSet struct {
	columns []string
	rows    [][]cell
	more    bool // there are rows beyond the limit
}

var rowFormats = []string{"csv", "json", "markdown", "table"}

// writeRows prints rows in one of rowFormats. NULL is an empty field in CSV,
// null in JSON and NULL in tables.
func writeRows(w io.Writer, set rowSet, format string) error {
	switch format {
	case "csv":
		return writeCSV(w, set)
	case "json":
		return writeJSONRows(w, set)
	case "markdown":
		_, err := io.WriteString(w, markdownTable(set))
		return err
	default:
		_, err := io.WriteString(w, textTable(set.columns, texts(set))+foot(set))
		return err
	}
}

func texts(set rowSet) [][]string {
	rows := make([][]string, len(set.rows))
	for i, r := range set.rows {
		rows[i] = make([]string, len(r))
		for j, c := range r {
			rows[i][j] = c.text
			if c.null {
				rows[i][j] = "NULL"
			}
		}
	}
	return rows
}

func foot(set rowSet) string {
	n := count(int64(len(set.rows)), "row")
	if set.more {
		return "(the first " + n + "; --limit shows more)\n"
	}
	return "(" + n + ")\n"
}

// writeCSV writes RFC 4180 with \n. An empty text is quoted, so that it differs
// from NULL.
func writeCSV(w io.Writer, set rowSet) error {
	var b strings.Builder
	c := csv.NewWriter(&b)
	if err := c.Write(set.columns); err != nil {
		return err
	}
	c.Flush()
	for _, row := range set.rows {
		for i, v := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			switch {
			case v.null:
			case v.text == "", strings.ContainsAny(v.text, ",\"\r\n"), strings.TrimSpace(v.text) != v.text:
				b.WriteString(`"` + strings.ReplaceAll(v.text, `"`, `""`) + `"`)
			default:
				b.WriteString(v.text)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// onlyNames gives columns names of which no two are one, as the SQL engine does for
// what a subquery gives: a, a_1, a_2, past names that other columns have.
func onlyNames(columns []string) []string {
	taken := make(map[string]bool, len(columns))
	for _, c := range columns {
		taken[c] = true
	}
	names, next := make([]string, len(columns)), map[string]int{}
	for i, c := range columns {
		n := next[c]
		for names[i] = c; n > 0 && taken[names[i]]; n++ {
			names[i] = fmt.Sprintf("%s_%d", c, n)
		}
		taken[names[i]], next[c] = true, max(n, 1)
	}
	return names
}

// writeJSONRows writes a list of objects, one a line, keys in the order of the
// columns, no key twice.
func writeJSONRows(w io.Writer, set rowSet) error {
	keys := make([]string, len(set.columns))
	for i, c := range onlyNames(set.columns) {
		k, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("encode column %q: %w", c, err)
		}
		keys[i] = string(k)
	}
	var b strings.Builder
	b.WriteString("[")
	for i, row := range set.rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  {")
		for j, v := range row {
			if j > 0 {
				b.WriteString(", ")
			}
			value := v.json
			if v.null {
				value = "null"
			}
			b.WriteString(keys[j] + ": " + value)
		}
		b.WriteByte('}')
	}
	if len(set.rows) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownTable(set rowSet) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + strings.ReplaceAll(printable(c), "|", `\|`) + " |")
		}
		b.WriteByte('\n')
	}
	line(set.columns)
	rule := make([]string, len(set.columns))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range texts(set) {
		line(r)
	}
	return b.String()
}
