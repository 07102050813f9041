package engine

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/project"
)

func seedFile(p *project.Project, s *project.Seed) string {
	return filepath.Join(p.Dir, filepath.FromSlash(s.File))
}

// seedQuery gives a query over a seed's file. Columns without a declared type
// get one only where every value agrees and nothing is lost.
func seedQuery(p *project.Project, s *project.Seed) (string, *fileTable, error) {
	t := &fileTable{
		project: p, name: "seed " + s.Name, pos: s.Pos, format: "csv", files: []string{seedFile(p, s)},
		options: s.Options, columns: s.Columns, extra: "keep",
		// The same bytes whenever it is loaded: rows in the order of the file.
		ordered: true,
	}
	if t.pos.IsZero() {
		t.pos = diag.Pos{File: s.File}
	}
	inferred, err := t.inferTypes()
	if err != nil {
		return "", t, err
	}
	t.columns = inferred
	query, err := t.csvQuery()
	return query, t, err
}

// seedType is what the values of a column may still be.
type seedType struct {
	name    string
	accepts func(string) bool
}

var (
	plainInteger = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,18})$`)
	plainNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

// seedTypes are tried in this order; what none of them accepts is text. Ones
// and zeros are integers, and never truth values; only ISO dates are dates.
var seedTypes = []seedType{
	{"BOOLEAN", func(v string) bool { return v == "true" || v == "false" }},
	{"BIGINT", func(v string) bool {
		_, err := strconv.ParseInt(v, 10, 64)
		return err == nil && plainInteger.MatchString(v)
	}},
	{"DOUBLE", func(v string) bool {
		// 15 digits are kept by every double.
		return plainNumber.MatchString(v) && v != "-0" && len(strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(v), "0")) <= 15
	}},
	{"DATE", func(v string) bool { return validTime(v, "2006-01-02") }},
	{"TIMESTAMP", func(v string) bool {
		return validTime(v, "2006-01-02 15:04:05") || validTime(v, "2006-01-02T15:04:05") ||
			len(v) <= 26 && (validTime(v, "2006-01-02 15:04:05.999999") || validTime(v, "2006-01-02T15:04:05.999999"))
	}},
}

func validTime(v, layout string) bool {
	_, err := time.Parse(layout, v)
	return err == nil
}

// inferTypes reads the whole file and gives the declared columns and all others
// with their types, in the order of the file.
func (t *fileTable) inferTypes() ([]project.Column, error) {
	d := dialectOf(t.options)
	file := t.files[0]
	header, err := t.csvHeader(file, compressionOf(file, t.options), d)
	if err != nil {
		return nil, err
	}
	possible := make([][]bool, len(header))
	filled := make([]bool, len(header))
	for i := range possible {
		possible[i] = make([]bool, len(seedTypes))
		for k := range possible[i] {
			possible[i][k] = true
		}
	}
	r, err := openCSV(file, compressionOf(file, t.options), d)
	if err != nil {
		return nil, t.problem(diag.SourceMissing, file, 0, "cannot be read: %v", err)
	}
	defer r.Close()
	r.width = len(header)
	for first := d.header; ; first = false {
		fields, line, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.problem(diag.SourceValue, file, line, "%v", err)
		}
		if first {
			continue
		}
		// The engine takes one empty value too many without a word.
		if len(fields) > len(header) {
			return nil, t.problem(diag.SourceValue, file, line, "%s expected and %s there", amount(len(header), "value "), amount(len(fields), "")).
				WithHint("mend the line; a value that holds the delimiter must stand in quotes")
		}
		for i, v := range fields {
			if v == d.nullText {
				continue
			}
			filled[i] = true
			for k, st := range seedTypes {
				possible[i][k] = possible[i][k] && st.accepts(v)
			}
		}
	}
	return t.settleTypes(header, possible, filled), nil
}

func (t *fileTable) settleTypes(header []string, possible [][]bool, filled []bool) []project.Column {
	var columns []project.Column
	in := map[string]bool{}
	for i, h := range header {
		lower := strings.ToLower(h)
		c := project.Column{Name: h}
		for _, declared := range t.columns {
			if strings.EqualFold(declared.Name, h) {
				c = declared
			}
		}
		for k := 0; c.Type == "" && filled[i] && k < len(seedTypes); k++ {
			if possible[i][k] {
				c.Type = seedTypes[k].name
			}
		}
		if h != "" && !in[lower] {
			columns = append(columns, c)
		}
		in[lower] = true
	}
	for _, c := range t.columns { // a declared column that the file lacks is reported by csvQuery
		if !in[strings.ToLower(c.Name)] {
			columns = append(columns, c)
		}
	}
	return columns
}
