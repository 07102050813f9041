package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// fileTable is a source or seed over files, turned into a query.
type fileTable struct {
	project *project.Project
	name    string // as messages call it: source raw.orders, seed countries
	pos     diag.Pos
	pathPos diag.Pos
	format  string
	files   []string // absolute, sorted
	options map[string]string
	columns []project.Column // declared
	extra   string           // keep | ignore | error
	ordered bool             // rows in the order of the file
	tempDir string           // where files may be rewritten for the engine
	// origin gives, for a file that was converted, the one that it was made of.
	origin map[string]string
	// asStored are the columns that stand in every Parquet file as they are read.
	asStored map[string]bool
	schemas  *schemas // of Parquet files, from one command to the next; nil where none are remembered
}

// csvGroup is a number of files that one read_csv reads: equal header, equal
// compression.
type csvGroup struct {
	header      []string
	compression string
	files       []string
}

// problem is a diagnostic at a place in a data file; line 0 is the whole file.
func (t *fileTable) problem(code diag.Code, file string, line int, format string, args ...any) diag.Diagnostic {
	return diag.Errorf(code, diag.Pos{File: t.shown(file), Line: line}, format, args...).
		WithNote(t.pos, "%s is declared here", t.name)
}

// shown is the name of a file in messages.
func (t *fileTable) shown(file string) string {
	if from, ok := t.origin[file]; ok {
		file = from
	}
	return shownPath(t.project, file)
}

// without is the text of an error about a file, the file called as in messages.
func (t *fileTable) without(file string, err error) string {
	return strings.ReplaceAll(err.Error(), file, t.shown(file))
}

// csvQuery gives a query over CSV files whose columns are matched by name. Every
// value reaches the query as text, and is converted by an expression that loses
// nothing; so nothing is sniffed, rounded or cut.
func (t *fileTable) csvQuery() (string, error) {
	d := dialectOf(t.options)
	groups, err := t.csvGroups(d)
	if err != nil {
		return "", err
	}
	names, problems := t.csvColumns(groups, d)
	if len(problems) > 0 {
		return "", problems.Err()
	}
	selects := make([]string, len(groups))
	for i, g := range groups {
		selects[i] = t.csvSelect(g, d, names)
	}
	return strings.Join(selects, "\nUNION ALL\n"), nil
}

// csvGroups reads the header of every file and puts together what is alike, in
// the order of files.
func (t *fileTable) csvGroups(d csvDialect) ([]*csvGroup, error) {
	var groups []*csvGroup
	at := map[string]*csvGroup{}
	var problems diag.List
	for _, f := range t.files {
		compression := compressionOf(f, t.options)
		header, err := t.csvHeader(f, compression, d)
		if err != nil {
			var p diag.Diagnostic
			if !errors.As(err, &p) {
				return nil, err
			}
			problems = append(problems, p)
			continue
		}
		key := compression + "\x00" + strings.Join(header, "\x00")
		g := at[key]
		if g == nil {
			g = &csvGroup{header: header, compression: compression}
			at[key] = g
			groups = append(groups, g)
		}
		g.files = append(g.files, f)
	}
	return groups, problems.Err()
}

// csvHeader gives the names of a file's columns: those of its header, or the
// declared ones where it has none.
func (t *fileTable) csvHeader(file, compression string, d csvDialect) ([]string, error) {
	if !d.header {
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.Name
		}
		return names, nil
	}
	r, err := openCSV(file, compression, d)
	if err != nil {
		p := t.problem(diag.SourceMissing, file, 0, "cannot be read: %s", t.without(file, err))
		if compression != "none" && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			p.Hint = "the file is cut off or not what its name says: write it again, or say `options: {compression: none}`"
		}
		return nil, p
	}
	defer r.Close()
	header, line, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, t.problem(diag.SourceColumn, file, 0, "the file is empty: it has no header").
			WithHint("remove it, or write the line with the names of its columns; header: false says that files have none")
	}
	if err != nil {
		return nil, t.problem(diag.SourceValue, file, line, "the header cannot be read: %v", err)
	}
	return header, nil
}

// csvColumns gives the columns of the table, declared ones first, then the
// others in the order in which files bring them, and reports every file that
// does not fit.
func (t *fileTable) csvColumns(groups []*csvGroup, d csvDialect) ([]string, diag.List) {
	var problems diag.List
	var names []string
	known := map[string]bool{}
	for _, c := range t.columns {
		names = append(names, c.Name)
		known[strings.ToLower(c.Name)] = true
	}
	declared := len(names)
	for _, g := range groups {
		file := g.files[0]
		seen := map[string]bool{}
		for i, h := range g.header {
			lower := strings.ToLower(h)
			used := known[lower] || t.extra != "ignore"
			switch {
			case used && h == "":
				problems = append(problems, t.problem(diag.SourceColumn, file, 1+d.skip, "column %d has no name", i+1).
					WithHint("name it in the file, or write `extra_columns: ignore`"))
				continue
			case used && seen[lower]:
				problems = append(problems, t.problem(diag.SourceColumn, file, 1+d.skip, "two columns are called %s", h))
			case !known[lower] && t.extra == "error":
				p := t.problem(diag.SourceColumn, file, 1+d.skip, "column %s is not declared", h)
				p.Hint = "declare it, or write `extra_columns: keep` or `ignore`"
				if near := diag.Nearest(h, names[:declared]); near != "" {
					p.Hint = fmt.Sprintf("did you mean the declared column %s?", near)
				}
				problems = append(problems, p)
			case !known[lower] && t.extra != "ignore":
				known[lower] = true
				names = append(names, h)
			}
			seen[lower] = true
		}
		for _, c := range t.columns {
			if seen[strings.ToLower(c.Name)] {
				continue
			}
			problems = append(problems, t.problem(diag.SourceColumn, file, 1+d.skip, "the declared column %s is missing", c.Name).
				WithHint("%s", t.missingHint(file, c.Name, headerHint(c.Name, g.header, d))))
		}
	}
	return names, problems
}

// maxColumnsShown is how many columns of a file a message names.
const maxColumnsShown = 20

// headerHint says what the header of a file that misses a column may have to do
// with it.
func headerHint(missing string, header []string, d csvDialect) string {
	first := header[0]
	if d.encoding == "" && (strings.HasPrefix(first, "\xff\xfe") || strings.HasPrefix(first, "\xfe\xff")) {
		return "the file is UTF-16: write `options: {encoding: utf-16}`"
	}
	if len(header) == 1 {
		for _, delim := range []string{";", "\t", "|", ","} {
			if delim != d.delim && strings.Contains(first, delim) {
				return fmt.Sprintf("the header is one name, %s; if %[2]q separates them, write `options: {delimiter: %[2]q}`", printable(first), delim)
			}
		}
	}
	return itHas("the file has ", missing, header)
}

// printable is a name as a terminal can show it.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// missingHint is the hint about a column that a file lacks, or what a folder whose
// name looks like that column has to do with it.
func (t *fileTable) missingHint(file, column, otherwise string) string {
	for _, folder := range strings.Split(t.shown(file), "/") {
		if name, _, ok := strings.Cut(folder, "="); ok && strings.EqualFold(name, column) {
			return fmt.Sprintf("the folder %s makes no column: take %s out of the declaration, and where it is needed write the value into the files", folder, column)
		}
	}
	return otherwise
}

// itHas says which columns a file has that misses one, the likeliest first.
func itHas(says, missing string, columns []string) string {
	hint := ""
	if near := diag.Nearest(missing, columns); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near)
	}
	more := ""
	if n := len(columns) - maxColumnsShown; n > 0 {
		columns, more = columns[:maxColumnsShown], fmt.Sprintf(" and %d more", n)
	}
	shown := make([]string, len(columns))
	for i, c := range columns {
		shown[i] = printable(c)
	}
	return hint + says + strings.Join(shown, ", ") + more
}

// csvSelect is the query over one group. Inside it columns are called c0, c1 …,
// so that no name of a file is ever a name that the engine has to agree with.
func (t *fileTable) csvSelect(g *csvGroup, d csvDialect, names []string) string {
	at := map[string]int{}
	struc := make([]string, len(g.header))
	for i, h := range g.header {
		if _, twice := at[strings.ToLower(h)]; !twice {
			at[strings.ToLower(h)] = i
		}
		struc[i] = fmt.Sprintf("c%d: 'VARCHAR'", i)
	}
	exprs := make([]string, len(names))
	for i, n := range names {
		column, ok := at[strings.ToLower(n)]
		switch {
		case !ok:
			exprs[i] = "CAST(NULL AS VARCHAR)"
		default:
			exprs[i] = t.conversion(fmt.Sprintf("c%d", column), n, t.declaredType(n), d)
		}
		exprs[i] += " AS " + quoteIdent(n)
	}
	args := []string{
		fileList(g.files), "columns = {" + strings.Join(struc, ", ") + "}", "auto_detect = false",
		"delim = " + quoteText(d.delim), "quote = " + quoteText(byteText(d.quote)), "escape = " + quoteText(byteText(d.escape)),
		fmt.Sprintf("header = %v", d.header), fmt.Sprintf("skip = %d", d.skip), "nullstr = " + quoteText(d.nullText),
		"compression = " + quoteText(g.compression), "strict_mode = true",
		// Lines of up to 16 MiB in buffers of the usual size: by itself DuckDB 1.5.6
		// takes two million bytes, and buffers of sixteen lines.
		"max_line_size = 16777216", "buffer_size = 33554432", "null_padding = false", "ignore_errors = false",
		"hive_partitioning = false", "union_by_name = false",
	}
	if t.ordered {
		args = append(args, "parallel = false")
	}
	if d.comment != 0 {
		args = append(args, "comment = "+quoteText(byteText(d.comment)))
	}
	if d.encoding != "" {
		args = append(args, "encoding = "+quoteText(d.encoding))
	}
	return "SELECT " + strings.Join(exprs, ", ") + "\nFROM read_csv(" + strings.Join(args, ", ") + ")"
}

// declaredType is the type that was declared for a column, VARCHAR where none
// was.
func (t *fileTable) declaredType(name string) string {
	for _, c := range t.columns {
		if strings.EqualFold(c.Name, name) && c.Type != "" {
			return c.Type
		}
	}
	return "VARCHAR"
}

func byteText(b byte) string {
	if b == 0 {
		return ""
	}
	return string(rune(b))
}

// fileList is a list of files as a table function takes it.
func fileList(files []string) string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = quoteText(literalPath(f))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
