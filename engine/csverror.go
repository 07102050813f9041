package engine

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// mark is an error of one of rbt's own expressions, taken apart.
type mark struct {
	table, column, typ, value string
}

// markOf reads the mark in an engine's message; false where there is none.
func markOf(message string) (mark, bool) {
	_, rest, ok := strings.Cut(message, markStart)
	if !ok {
		return mark{}, false
	}
	parts := strings.SplitN(rest, markSep, 4)
	if len(parts) < 4 {
		return mark{}, false
	}
	return mark{parts[0], parts[1], parts[2], parts[3]}, true
}

var (
	csvErrorFile = regexp.MustCompile(`(?m)^\s*file = (.*)$`)
	csvErrorLine = regexp.MustCompile(`CSV Error on Line: (\d+)`)
)

// csvInvalidState is what DuckDB 1.5.6 says, without a file, of lines that do not
// all end alike.
const csvInvalidState = "state machine reached an invalid state"

// explain turns an error of reading the table into one with file and line. Errors
// that are of something else come back as they are.
func (t *fileTable) explain(err error) error {
	var e *EngineError
	if !errors.As(err, &e) {
		return err
	}
	if m, ok := markOf(e.Message); ok && m.table == t.name {
		return t.locateValue(m)
	}
	if e.NameType == "Type" && e.Name != "" {
		return t.unknownType(e, err)
	}
	if strings.Contains(e.Message, csvInvalidState) {
		if p, found := t.mixedLineEnds(t.files); found {
			return p
		}
		return err
	}
	line := csvErrorLine.FindStringSubmatch(e.Message)
	file := csvErrorFile.FindStringSubmatch(e.Message)
	if line == nil || file == nil {
		return err
	}
	for _, f := range t.files {
		if f == file[1] {
			return t.locateRecord(f, e.Message, line[1])
		}
	}
	return err
}

// unknownType finds the declared column whose type does not exist.
func (t *fileTable) unknownType(e *EngineError, err error) error {
	for _, c := range t.columns {
		if !strings.Contains(strings.ToLower(c.Type), strings.ToLower(e.Name)) {
			continue
		}
		d := diag.Errorf(diag.BadValue, c.TypePos, "column %s of %s: there is no type %s", c.Name, t.name, e.Name)
		if near := diag.Nearest(strings.ToUpper(e.Name), typeNames()); near != "" {
			return d.WithHint("did you mean %s?", near)
		}
		return d
	}
	return err
}

// typeNames are the types that users may have meant.
func typeNames() []string {
	names := []string{"BLOB", "JSON", "UUID", "INTERVAL", "TIME", "DECIMAL", "DATE"}
	for _, set := range []map[string]bool{integerTypes, floatTypes, timestampTypes, zonedTypes, textTypes} {
		names = append(names, sortedKeys(set)...)
	}
	return append(names, "BOOLEAN")
}

// locateValue finds the first place of a value that could not be read.
func (t *fileTable) locateValue(m mark) error {
	d := dialectOf(t.options)
	if t.format == "parquet" || t.format == "arrow_ipc" {
		return t.locateCell(m)
	}
	fallback := diag.Errorf(diag.SourceValue, t.pos, "%s, column %s: %q is not %s", t.name, m.column, firstRunes(m.value, 100), m.typ)
	if t.format == "json" || t.format == "ndjson" {
		if p, ok := t.locateJSON(m); ok {
			return p
		}
		return fallback
	}
	for _, f := range t.files {
		p, found := t.searchFile(f, d, func(header, fields []string, line int) *diag.Diagnostic {
			for i, h := range header {
				if i < len(fields) && strings.EqualFold(h, m.column) && fields[i] == m.value {
					p := t.problem(diag.SourceValue, f, line, "column %s: %q is not %s", m.column, firstRunes(m.value, 100), m.typ).
						WithHint("%s", valueHint(m.typ, d))
					return &p
				}
			}
			return nil
		})
		if found {
			return p
		}
	}
	return fallback
}

// locateCell tells of a value of a Parquet file.
func (t *fileTable) locateCell(m mark) error {
	file, row, value := splitPlace(m.value)
	what := fmt.Sprintf("column %s: %q is not %s", m.column, firstRunes(value, 100), m.typ)
	if file == "" {
		return diag.Errorf(diag.SourceValue, t.pos, "%s, %s", t.name, what)
	}
	return t.problem(diag.SourceValue, file, 0, "row %s, %s", row, what).
		WithHint("declare a type that holds every value, or none and convert the column in a model")
}

// valueHint says what may be done about a value that is not of its type.
func valueHint(typ string, d csvDialect) string {
	upper := strings.ToUpper(typ)
	option := ""
	switch {
	case upper == "DATE" && d.date == "":
		option = "`options: {dateformat: \"%d.%m.%Y\"}` for dates that are not written 2024-12-31, "
	case timestampTypes[upper] && d.time == "":
		option = "`options: {timestampformat: \"%d.%m.%Y %H:%M\"}` for times that are not written 2024-12-31 23:59:00, "
	}
	if option == "" {
		option = "mend the file, "
	} else {
		option = "mend the file, write " + option
	}
	return option + "or declare the column as VARCHAR and convert it in a model"
}

// locateRecord finds the first record of a file that is not what its header
// promises. The engine's own words are used where this reader finds nothing.
func (t *fileTable) locateRecord(file, message, line string) error {
	d := dialectOf(t.options)
	p, found := t.searchFile(file, d, func(header, fields []string, line int) *diag.Diagnostic {
		if len(fields) != len(header) {
			p := t.problem(diag.SourceValue, file, line, "%s expected and %s there", amount(len(header), "value "), amount(len(fields), "")).
				WithHint("mend the line; a value that holds the delimiter must stand in quotes")
			return &p
		}
		for _, v := range fields {
			if d.encoding == "" && !utf8.ValidString(v) {
				p := t.problem(diag.SourceValue, file, line, "the text is not UTF-8").WithHint("write `options: {encoding: latin-1}` if that is what it is")
				return &p
			}
		}
		return nil
	})
	if !found {
		p, found = t.mixedLineEnds([]string{file})
	}
	if found {
		return p
	}
	n, _ := strconv.Atoi(line)
	text, _, _ := strings.Cut(message, "\nPossible")
	if strings.Contains(message, "Maximum line size") {
		return t.problem(diag.SourceValue, file, n, "the line is longer than 16 MiB")
	}
	return t.problem(diag.SourceValue, file, n, "%s", firstRunes(strings.Join(strings.Fields(text), " "), 300))
}

// mixedLineEnds finds the first line of files that does not end as the first line
// of its file does.
func (t *fileTable) mixedLineEnds(files []string) (diag.Diagnostic, bool) {
	if t.format != "csv" {
		return diag.Diagnostic{}, false
	}
	for _, f := range files {
		if line := mixedLine(f, compressionOf(f, t.options), dialectOf(t.options)); line > 0 {
			return t.problem(diag.SourceValue, f, line, "the file has mixed line ends: this line does not end as the first one does").
				WithHint("let all lines end with LF, or all with CRLF"), true
		}
	}
	return diag.Diagnostic{}, false
}

// mixedLine is the line of a file that ends otherwise than its first; 0 where
// there is none.
func mixedLine(file, compression string, d csvDialect) int {
	r, err := openCSV(file, compression, d)
	if err != nil {
		return 0
	}
	defer r.Close()
	for err == nil && r.mixed == 0 {
		_, _, err = r.next()
	}
	return r.mixed
}

// searchFile reads a file's records until look finds a problem.
func (t *fileTable) searchFile(file string, d csvDialect, look func(header, fields []string, line int) *diag.Diagnostic) (diag.Diagnostic, bool) {
	r, err := openCSV(file, compressionOf(file, t.options), d)
	if err != nil {
		return diag.Diagnostic{}, false
	}
	defer r.Close()
	header := make([]string, len(t.columns))
	for i, c := range t.columns {
		header[i] = c.Name
	}
	for first := d.header; ; first = false {
		fields, line, err := r.next()
		if errors.Is(err, io.EOF) {
			return diag.Diagnostic{}, false
		}
		if err != nil {
			return t.problem(diag.SourceValue, file, line, "%v", err), true
		}
		if first {
			header = fields
			r.width = len(header)
			continue
		}
		if p := look(header, fields, line); p != nil {
			return *p, true
		}
	}
}

// amount is a number with what is counted and its verb: 1 value is, 2 values are.
func amount(n int, singular string) string {
	if n == 1 {
		return "1 " + singular + "is"
	}
	return fmt.Sprintf("%d %sare", n, strings.Replace(singular, " ", "s ", 1))
}
