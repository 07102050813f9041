package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// newSourceTable looks for the files of a source.
func newSourceTable(p *project.Project, src *project.Source, tempDir string) (*fileTable, error) {
	t := &fileTable{
		project: p, name: "source " + src.Group + "." + src.Name, pos: src.Pos, pathPos: src.PathPos,
		options: src.Options, columns: src.Columns, extra: src.ExtraColumns, format: src.Format, tempDir: tempDir,
	}
	files, err := expandPatterns(src.Patterns)
	if err != nil {
		return nil, diag.Errorf(diag.SourceMissing, src.PathPos, "%s: %v", t.name, err)
	}
	t.files = files
	if len(files) == 0 && src.OnMissing != "empty" {
		shown := make([]string, len(src.Patterns))
		for i, pattern := range src.Patterns {
			shown[i] = shownPath(p, pattern)
		}
		return nil, diag.Errorf(diag.SourceMissing, src.PathPos, "%s has no file: nothing matches %s", t.name, strings.Join(shown, ", ")).
			WithHint("mend the path, or write `on_missing: empty` where no file means no rows")
	}
	return t, nil
}

// query is a query over the files of the table.
func (t *fileTable) query(ctx context.Context, s *session) (string, error) {
	if len(t.files) == 0 {
		return emptyRelation(t.typedColumns()), nil
	}
	switch t.format {
	case "csv":
		return t.csvQuery()
	case "parquet":
		return t.parquetQuery(ctx, s)
	case "json", "ndjson":
		return t.jsonQuery(ctx)
	case "arrow_ipc":
		return t.arrowQuery(ctx, s)
	}
	return "", diag.Errorf(diag.SourceOption, t.pos, "%s: rbt cannot read files of format %s", t.name, t.format)
}

// typedColumns are the declared columns, text where no type is declared.
func (t *fileTable) typedColumns() []lake.Column {
	columns := make([]lake.Column, len(t.columns))
	for i, c := range t.columns {
		columns[i] = lake.Column{Name: c.Name, Type: t.declaredType(c.Name)}
	}
	return columns
}

// parquetQuery gives a query over Parquet files whose columns are matched by
// name. Files that disagree on the type of a column are an error, and so is a
// declared type that not every value can take.
func (t *fileTable) parquetQuery(ctx context.Context, s *session) (string, error) {
	kinds, err := t.parquetKinds(ctx, s)
	if err != nil {
		return "", err
	}
	names, types, problems := t.parquetColumns(kinds)
	if len(problems) > 0 {
		return "", problems.Err()
	}
	t.asStored = asStored(kinds, names, types)
	selects := make([]string, len(kinds))
	for i, k := range kinds {
		has := map[string]lake.Column{}
		for _, c := range k.columns {
			has[strings.ToLower(c.Name)] = c
		}
		place := rowPlace(k.columns)
		exprs := make([]string, len(names))
		for j, n := range names {
			lower := strings.ToLower(n)
			column, ok := has[lower]
			exprs[j] = "CAST(NULL AS " + types[lower] + ")"
			if ok {
				exprs[j] = t.checkedCast(column, n, types[lower], place)
			}
			exprs[j] += " AS " + quoteIdent(n)
		}
		selects[i] = "SELECT " + strings.Join(exprs, ", ") + "\nFROM read_parquet(" + fileList(k.files) + ", hive_partitioning = false)"
	}
	return strings.Join(selects, "\nUNION ALL\n"), nil
}

// asStored gives the columns that have the table's name and type in all files.
func asStored(kinds []*parquetKind, names []string, types map[string]string) map[string]bool {
	found := map[string]int{}
	for _, k := range kinds {
		for _, c := range k.columns {
			if types[strings.ToLower(c.Name)] == c.Type {
				found[c.Name]++
			}
		}
	}
	out := map[string]bool{}
	for _, n := range names {
		out[n] = found[n] == len(kinds)
	}
	return out
}

// parquetKind is a number of files with the same columns.
type parquetKind struct {
	columns []lake.Column
	files   []string
}

// parquetKinds describes every file, those with one schema together. A file whose
// footer has the schema of one before it is not shown to the engine: opening a
// footer costs a tenth of that, and a folder may hold thousands of files. One that is
// remembered is not opened at all.
func (t *fileTable) parquetKinds(ctx context.Context, s *session) ([]*parquetKind, error) {
	var kinds []*parquetKind
	at, byFooter := map[string]*parquetKind{}, map[string]*parquetKind{}
	var problems diag.List
	kindOf := func(columns []lake.Column) *parquetKind {
		key := fmt.Sprint(columns)
		k := at[key]
		if k == nil {
			k = &parquetKind{columns: columns}
			at[key] = k
			kinds = append(kinds, k)
		}
		return k
	}
	recalled := t.schemas.recall(t.name, t.files)
	for i, f := range t.files {
		if columns, ok := recalled.of(i); ok {
			k := kindOf(columns)
			k.files = append(k.files, f)
			continue
		}
		footer := ""
		if len(t.files) > 1 {
			footer = parquetSchema(f)
		}
		if k := byFooter[footer]; k != nil {
			k.files = append(k.files, f)
			continue
		}
		columns, err := s.Describe(ctx, "SELECT * FROM read_parquet("+quoteText(literalPath(f))+", hive_partitioning = false)")
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, t.problem(diag.SourceValue, f, 0, "cannot be read as Parquet: %s", t.without(f, err)))
			continue
		}
		k := kindOf(columns)
		if footer != "" {
			byFooter[footer] = k
		}
		k.files = append(k.files, f)
	}
	if len(problems) == 0 {
		t.schemas.keep(t.name, t.files, recalled, kinds)
	}
	return kinds, problems.Err()
}

// parquetSchema is all that settles the columns which the engine reads from a
// file: equal texts are equal columns. It is "" where the file cannot be read,
// which the engine then says better.
func parquetSchema(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	r, err := file.NewParquetReader(f)
	if err != nil {
		return ""
	}
	meta := r.MetaData()
	settles := []any{schema.ToThrift(meta.Schema.Root())}
	for _, kv := range meta.KeyValueMetadata() {
		// What pandas says holds the rows' own index, and what rbt says the
		// publish: both differ between files of one schema and say nothing of it.
		if kv.Key != "pandas" && !strings.HasPrefix(kv.Key, "rbt_") {
			settles = append(settles, kv)
		}
	}
	text, err := json.Marshal(settles)
	if err != nil {
		return ""
	}
	return string(text)
}

// parquetColumns gives names and types of the table's columns: declared ones
// first, then the others in the order in which files bring them.
func (t *fileTable) parquetColumns(kinds []*parquetKind) (names []string, types map[string]string, problems diag.List) {
	types = map[string]string{}
	from := map[string]string{} // file that settled an undeclared type
	for _, c := range t.columns {
		names = append(names, c.Name)
		types[strings.ToLower(c.Name)] = c.Type
	}
	declared := len(names)
	for _, k := range kinds {
		file := k.files[0]
		seen := map[string]bool{}
		for _, c := range k.columns {
			lower := strings.ToLower(c.Name)
			typ, known := types[lower]
			switch {
			case seen[lower]:
				problems = append(problems, t.problem(diag.SourceColumn, file, 0, "two columns are called %s", c.Name))
			case !known && t.extra == "ignore":
			case !known && t.extra == "error":
				p := t.problem(diag.SourceColumn, file, 0, "column %s is not declared", c.Name)
				p.Hint = "declare it, or write `extra_columns: keep` or `ignore`"
				if near := diag.Nearest(c.Name, names[:declared]); near != "" {
					p.Hint = fmt.Sprintf("did you mean the declared column %s?", near)
				}
				problems = append(problems, p)
			case !known:
				names = append(names, c.Name)
				types[lower], from[lower] = c.Type, file
			case typ == "":
				types[lower], from[lower] = c.Type, file
			case t.extra != "ignore" && from[lower] == "":
				problems = append(problems, t.innerFields(file, c, typ)...)
			case from[lower] != "" && typ != c.Type:
				problems = append(problems, t.problem(diag.SourceSchema, file, 0, "column %s is %s here and %s in %s", c.Name, c.Type, typ, t.shown(from[lower])).
					WithHint("declare the column's type"))
			}
			seen[lower] = true
		}
		for _, c := range t.columns {
			if !seen[strings.ToLower(c.Name)] {
				problems = append(problems, t.problem(diag.SourceColumn, file, 0, "the declared column %s is missing", c.Name).
					WithHint("%s", t.missingHint(file, c.Name, itHas("the file has ", c.Name, namesOf(k.columns)))))
			}
		}
	}
	return names, types, problems
}

// innerFields finds fields inside of a declared column for which its type has no
// place: a cast would drop them.
func (t *fileTable) innerFields(file string, c lake.Column, declared string) diag.List {
	var problems diag.List
	paths, _ := treeOf(declared).without(treeOf(c.Type), c.Name)
	for _, path := range paths {
		problems = append(problems, t.problem(diag.SourceColumn, file, 0, "%s is not declared: the type of the column %s has no place for it", path, c.Name).
			WithHint("name it in the type, or write `extra_columns: ignore` to leave it out"))
	}
	return problems
}

func namesOf(columns []lake.Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// checkedCast casts a column of a file to a declared type and raises an error for
// a value that does not come back when it is cast to its own type again. Fields
// for which the declared type has no place are left out before: whoever does not
// want that was told.
func (t *fileTable) checkedCast(c lake.Column, column, typ, place string) string {
	e := quoteIdent(c.Name)
	if t.declaredType(column) != typ || !t.isDeclared(column) || c.Type == typ {
		return e
	}
	if paths, rest := treeOf(typ).without(treeOf(c.Type), ""); len(paths) > 0 {
		e = "CAST(" + e + " AS " + rest + ")"
	}
	raise := "error(" + quoteText(markStart+t.name+markSep+column+markSep+typ+markSep) + " || " + place + " || CAST(" + e + " AS VARCHAR))"
	return fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN NULL WHEN cast_to_type(TRY_CAST(%[1]s AS %[2]s), %[1]s) IS NOT DISTINCT FROM %[1]s THEN TRY_CAST(%[1]s AS %[2]s) ELSE %[3]s END",
		e, typ, raise)
}

// rowPlace is the SQL text that says in which file, and in which row of it, a value
// stands, as splitPlace reads it. A column of a file may hide what the engine calls
// so; then nothing is said.
func rowPlace(columns []lake.Column) string {
	for _, c := range columns {
		if strings.EqualFold(c.Name, "filename") || strings.EqualFold(c.Name, "file_row_number") {
			return quoteText(markSep + markSep)
		}
	}
	return "filename || " + quoteText(markSep) + " || (file_row_number + 1) || " + quoteText(markSep)
}

// splitPlace takes a value of a mark apart that rowPlace stands before.
func splitPlace(text string) (file, row, value string) {
	parts := strings.SplitN(text, markSep, 3)
	if len(parts) < 3 {
		return "", "", text
	}
	return parts[0], parts[1], parts[2]
}

func (t *fileTable) isDeclared(column string) bool {
	for _, c := range t.columns {
		if strings.EqualFold(c.Name, column) && c.Type != "" {
			return true
		}
	}
	return false
}
