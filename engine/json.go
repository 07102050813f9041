package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"rbt/internal/diag"
)

// jsonGroup is a number of files that one read_json reads.
type jsonGroup struct {
	key    string
	files  []string
	layout string
	packed string            // compression, in DuckDB's word
	keys   map[string]string // column in lower case -> key as these files spell it
	quoted map[string]bool   // columns, in lower case, whose values were made text
}

// jsonQuery gives a query over JSON files. Every file is read once before the
// engine does, strictly: DuckDB 1.5.6 samples, rounds long decimals, takes wide
// objects for maps and miscounts lines in messages.
func (t *fileTable) jsonQuery(ctx context.Context) (string, error) {
	files, err := t.scanJSONFiles(ctx)
	if err != nil {
		return "", err
	}
	all := &shape{}
	for _, f := range files {
		all.merge(&f.root)
	}
	columns, problems := t.jsonColumns(files, all)
	if len(problems) > 0 {
		return "", problems.Err()
	}
	groups, err := t.jsonGroups(files, columns)
	if err != nil {
		return "", err
	}
	selects := make([]string, len(groups))
	for i, g := range groups {
		selects[i] = t.jsonSelect(g, columns)
	}
	if len(columns) == 0 {
		return "", t.problem(diag.SourceColumn, t.files[0], 0, "no file has a record, and no column is declared")
	}
	return strings.Join(selects, "\nUNION ALL\n"), nil
}

// scanJSONFiles reads every file, several at once; all files that are not JSON
// are reported.
func (t *fileTable) scanJSONFiles(ctx context.Context) ([]*jsonFile, error) {
	files := make([]*jsonFile, len(t.files))
	problems := make([]*diag.Diagnostic, len(t.files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range t.files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			found, err := scanJSON(file, compressionOf(file, t.options), t.format == "ndjson", nil)
			var bad *jsonProblem
			switch {
			case errors.As(err, &bad):
				p := t.problem(diag.SourceValue, file, bad.line, "%s", bad.msg)
				problems[i] = &p
			case err != nil:
				p := t.problem(diag.SourceMissing, file, 0, "cannot be read: %v", err)
				problems[i] = &p
			}
			files[i] = found
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var list diag.List
	for _, p := range problems {
		if p != nil {
			list = append(list, *p)
		}
	}
	return files, list.Err()
}

// jsonColumn is a column of the table.
type jsonColumn struct {
	name, typ string
	declared  bool
	tree      *typeTree
	plan      *jsonPlan // of a list, map or struct with values in it that become text
	planned   string    // the type by which values are read that were rewritten so
}

// jsonColumns gives the columns, declared ones first, then the keys in the order
// in which files bring them, and reports every file that does not fit.
func (t *fileTable) jsonColumns(files []*jsonFile, all *shape) ([]jsonColumn, diag.List) {
	var problems diag.List
	var columns []jsonColumn
	known := map[string]bool{}
	var names []string
	for _, c := range t.columns {
		if c.Type == "" {
			columns = append(columns, t.inferred(all, c.Name))
		} else {
			column := jsonColumn{name: c.Name, typ: c.Type, declared: true, tree: treeOf(c.Type)}
			if column.tree.nested() {
				column.plan, column.planned = declaredPlan(column.tree)
			}
			columns = append(columns, column)
		}
		known[strings.ToLower(c.Name)] = true
		names = append(names, c.Name)
	}
	for i, f := range files {
		seen := map[string]string{}
		for _, key := range f.root.order {
			lower := strings.ToLower(key)
			if other, twice := seen[lower]; twice && (known[lower] || t.extra != "ignore") {
				problems = append(problems, t.problem(diag.SourceColumn, t.files[i], 0, "the keys %q and %q cannot both be columns: they differ in case only", other, key))
				continue
			}
			seen[lower] = key
			switch {
			case known[lower]:
			case t.extra == "error":
				p := t.problem(diag.SourceColumn, t.files[i], 0, "the key %q is not declared", key)
				p.Hint = "declare it, or write `extra_columns: keep` or `ignore`"
				if near := diag.Nearest(key, names); near != "" {
					p.Hint = fmt.Sprintf("did you mean the declared column %s?", near)
				}
				problems = append(problems, p)
			case t.extra != "ignore" && key == "":
				problems = append(problems, t.problem(diag.SourceColumn, t.files[i], 0, "a key is empty and cannot be a column"))
			case t.extra != "ignore":
				known[lower] = true
				columns = append(columns, t.inferred(all, key))
			}
		}
		if f.root.wide && t.extra != "ignore" {
			problems = append(problems, t.problem(diag.SourceColumn, t.files[i], 0, "records have more than %d keys", maxStructKeys).
				WithHint("declare the columns that you need and write `extra_columns: ignore`"))
		}
		for at, c := range t.columns {
			if key := seen[strings.ToLower(c.Name)]; key != "" {
				problems = append(problems, t.innerKeys(t.files[i], columns[at], key, f)...)
			} else if f.records > 0 && !f.root.wide {
				problems = append(problems, t.problem(diag.SourceColumn, t.files[i], 0, "the declared column %s is missing: no record has it", c.Name).
					WithHint("%s", t.missingHint(t.files[i], c.Name, itHas("the records have ", c.Name, f.root.order))))
			}
		}
	}
	return columns, problems
}

// inferred is a column of the type that all values under a key, in whatever case
// it is spelled, allow without loss.
func (t *fileTable) inferred(all *shape, name string) jsonColumn {
	one := &shape{}
	for _, key := range all.order {
		if strings.EqualFold(key, name) {
			one.merge(all.fields[key])
		}
	}
	typ := one.sqlType()
	c := jsonColumn{name: name, typ: typ, tree: treeOf(typ)}
	if c.typ != "JSON" {
		c.plan, c.planned = planOf(one)
	}
	return c
}

// jsonGroups puts files together that can be read alike. Files that the engine
// would not read exactly are rewritten first.
func (t *fileTable) jsonGroups(files []*jsonFile, columns []jsonColumn) ([]*jsonGroup, error) {
	var groups []*jsonGroup
	at := map[string]*jsonGroup{}
	for i, f := range files {
		g := &jsonGroup{layout: f.layout, packed: compressionOf(t.files[i], t.options), keys: map[string]string{}, quoted: map[string]bool{}}
		for _, key := range f.root.order {
			g.keys[strings.ToLower(key)] = key
		}
		quote := map[string]bool{} // by key
		asJSON := map[string]bool{}
		plans := map[string]*jsonPlan{}
		for _, c := range columns {
			key, ok := g.keys[strings.ToLower(c.name)]
			if !ok || floatTypes[strings.ToUpper(c.typ)] {
				continue
			}
			if s := f.root.fields[key]; s.loses() || c.tree.respells(s) {
				quote[key], g.quoted[strings.ToLower(c.name)] = true, true
				asJSON[key], plans[key] = c.tree.isJSON(), c.plan
			}
		}
		file := t.files[i]
		if f.bom || len(quote) > 0 {
			copied, err := t.rewriteJSON(file, quote, asJSON, plans)
			if err != nil {
				return nil, err
			}
			file, g.layout, g.packed = copied, "newline_delimited", "none"
		}
		g.key = fmt.Sprint(g.layout, g.packed, g.keys, g.quoted)
		if same := at[g.key]; same != nil {
			same.files = append(same.files, file)
			continue
		}
		g.files = []string{file}
		at[g.key] = g
		groups = append(groups, g)
	}
	return groups, nil
}

// jsonSelect is the query over one group.
func (t *fileTable) jsonSelect(g *jsonGroup, columns []jsonColumn) string {
	d := dialectOf(t.options)
	var struc, exprs []string
	for _, c := range columns {
		lower := strings.ToLower(c.name)
		key, ok := g.keys[lower]
		if !ok {
			exprs = append(exprs, "CAST(NULL AS "+c.typ+") AS "+quoteIdent(c.name))
			continue
		}
		read, e := c.typ, "j."+quoteIdent(key)
		nested := strings.ContainsAny(c.typ, "([") && !decimalType.MatchString(strings.ToUpper(c.typ)) || strings.EqualFold(c.typ, "JSON")
		switch {
		case g.quoted[lower] && c.plan != nil:
			read, e = c.planned, "CAST("+e+" AS "+c.typ+")"
		case g.quoted[lower] && nested:
			read, e = "VARCHAR", "CAST("+e+" AS "+c.typ+")"
		case g.quoted[lower] || c.declared && !nested:
			// As text, with the same care as text of csv files.
			read, e = "VARCHAR", t.conversion(e, c.name, c.typ, d)
		}
		struc = append(struc, quoteIdent(key)+": "+quoteText(read))
		exprs = append(exprs, e+" AS "+quoteIdent(c.name))
	}
	if len(struc) == 0 {
		struc = append(struc, "rbt_nothing: 'JSON'")
	}
	packed := g.packed
	if packed == "none" {
		packed = "uncompressed"
	}
	args := []string{fileList(g.files), "columns = {" + strings.Join(struc, ", ") + "}", "format = " + quoteText(g.layout), "records = true",
		"compression = " + quoteText(packed), "ignore_errors = false", "hive_partitioning = false", "union_by_name = false"}
	if v := t.options["maximum_object_size"]; v != "" {
		args = append(args, "maximum_object_size = "+v)
	}
	if d.date != "" {
		args = append(args, "dateformat = "+quoteText(d.date))
	}
	if d.time != "" {
		args = append(args, "timestampformat = "+quoteText(d.time))
	}
	return "SELECT " + strings.Join(exprs, ", ") + "\nFROM read_json(" + strings.Join(args, ", ") + ") AS j"
}

// locateJSON finds the first record in which a column has a value that could not
// be read.
func (t *fileTable) locateJSON(m mark) (diag.Diagnostic, bool) {
	for _, f := range t.files {
		at := 0
		_, err := scanJSON(f, compressionOf(f, t.options), t.format == "ndjson", func(record []byte, line int) {
			if at > 0 {
				return
			}
			for _, field := range fieldsOf(record) {
				if strings.EqualFold(field.key, m.column) && slices.Contains(field.texts(), m.value) {
					at = line + strings.Count(string(record[:field.start]), "\n")
				}
			}
		})
		if err == nil && at > 0 {
			return t.problem(diag.SourceValue, f, at, "column %s: %q is not %s", m.column, firstRunes(m.value, 100), m.typ).
				WithHint("mend the file, or declare the column as VARCHAR and convert it in a model"), true
		}
	}
	return diag.Diagnostic{}, false
}
