package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// relation is where a side left one result: Parquet files, or a table in a
// DuckDB file.
type relation struct {
	files    []string
	database string // DuckDB file
	table    string // "schema.table" in it
	columns  []string
	// of a comparison; nil all
}

func (r relation) allFiles() []string {
	if r.database != "" {
		return []string{r.database}
	}
	return r.files
}

// sql names the relation in a query.
func (r relation) sql() string {
	if r.database != "" {
		return r.table
	}
	quoted := make([]string, len(r.files))
	for i, f := range r.files {
		quoted[i] = quote(globLiteral(f))
	}
	return "read_parquet([" + strings.Join(quoted, ", ") + "])"
}

// globLiteral writes a path so that DuckDB reads it as that path and not as a
// pattern.
func globLiteral(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

// digest is what a relation comes to: its rows, and a hash that the order of
// rows and columns does not change.
type digest struct {
	columns []string
	rows    string
	hash    string
}

// checkSides compares the outputs of the last runs with those of the first
// side and says in words whether they are the same.
func (b *bench) checkSides(c comparison, ran []sideResult) string {
	var want map[string]digest
	var first string
	var problems []string
	equal := 0
	for i, s := range c.sides {
		if s.outputs == nil || len(ran[i].Runs) == 0 {
			continue
		}
		outputs, err := s.outputs()
		var found map[string]digest
		if err == nil {
			found, err = b.digests(outputs, c.check)
		}
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("NOT COMPARED: %s: %v", s.name, err))
		case want == nil:
			want, first = found, s.name
		default:
			if d := difference(want, found, c.check); d != "" {
				problems = append(problems, fmt.Sprintf("DIFFERENT: %s against %s: %s", s.name, first, d))
			} else {
				equal++
			}
		}
	}
	if len(problems) > 0 {
		return strings.Join(problems, "; ")
	}
	if equal == 0 {
		return "nothing to compare with"
	}
	kind := map[compareBy]string{byValue: "rows and values", byText: "rows and values as text", byCount: "row counts"}[c.check]
	return fmt.Sprintf("equal (%s of %d relations, %d sides)", kind, len(want), equal+1)
}

func difference(want, got map[string]digest, by compareBy) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w, g := want[name], got[name]
		switch {
		case g.rows == "":
			return name + " is missing"
		case w.rows != g.rows:
			return fmt.Sprintf("%s has %s rows, not %s", name, g.rows, w.rows)
		case by != byCount && !slices.Equal(w.columns, g.columns):
			return fmt.Sprintf("%s has the columns %v, not %v", name, g.columns, w.columns)
		case by != byCount && w.hash != g.hash:
			return name + " has other values"
		}
	}
	return ""
}

// digests reads relations in a child process and digests each.
func (b *bench) digests(outputs map[string]relation, by compareBy) (map[string]digest, error) {
	names := slices.Sorted(maps.Keys(outputs))
	found := map[string]digest{}
	if len(names) == 0 {
		return found, nil
	}
	dir, err := b.dir("check")
	if err != nil {
		return nil, err
	}
	settings := plainSettings(dir)
	database := outputs[names[0]].database
	if database != "" {
		database += "?access_mode=read_only"
	}
	describe := job{Database: database, Settings: settings}
	for _, name := range names {
		describe.Steps = append(describe.Steps, step{Ask: "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM " + outputs[name].sql() + ") ORDER BY 1"})
	}
	columns, _, err := b.ask(dir, "describe", describe)
	if err != nil {
		return nil, err
	}
	count := job{Database: database, Settings: settings}
	for i, name := range names {
		d := digest{}
		kept := [][]string{}
		for _, row := range columns[i].Rows {
			if only := outputs[name].columns; only == nil || slices.Contains(only, row[0]) {
				kept = append(kept, row)
				d.columns = append(d.columns, row[0])
			}
		}
		found[name] = d
		count.Steps = append(count.Steps, step{Ask: digestQuery(outputs[name].sql(), kept, by)})
	}
	answers, _, err := b.ask(dir, "digest", count)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		d := found[name]
		d.rows, d.hash = answers[i].Rows[0][0], answers[i].Rows[0][1]
		found[name] = d
	}
	return found, nil
}

// digestQuery counts rows and sums a hash of each; columns come sorted.
func digestQuery(from string, columns [][]string, by compareBy) string {
	if by == byCount || len(columns) == 0 {
		return "SELECT count(*), '' FROM " + from
	}
	values := make([]string, len(columns))
	for i, c := range columns {
		name := `"` + strings.ReplaceAll(c[0], `"`, `""`) + `"`
		values[i] = name
		if by == byText {
			values[i] = textOf(name, c[1])
		}
	}
	return fmt.Sprintf("SELECT count(*), sum(hash(%s)::HUGEINT) FROM %s", strings.Join(values, ", "), from)
}

// textOf spells a value so that tools that store it in another type agree: all
// whole numbers alike, all times in microseconds, all texts as VARCHAR.
func textOf(name, typ string) string {
	switch {
	case strings.HasPrefix(typ, "TIMESTAMP"):
		return "epoch_us(" + name + "::TIMESTAMP)::VARCHAR"
	case typ == "DATE":
		return "epoch_us(" + name + "::TIMESTAMP)::VARCHAR"
	default:
		return name + "::VARCHAR"
	}
}

// parquetOf is the relation of one file each, by model name.
func parquetOf(dir string, names []string) func() (map[string]relation, error) {
	return func() (map[string]relation, error) {
		out := map[string]relation{}
		for _, name := range names {
			out[name] = relation{files: []string{filepath.Join(dir, name+".parquet")}}
		}
		return out, nil
	}
}
