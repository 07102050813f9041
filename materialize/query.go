package materialize

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// Declared is a column as the user declared it. Type is "" where only the name
// is declared. Pos is where the type stands, for messages.
type Declared struct {
	Name string
	Type string
	Pos  diag.Pos
}

// Query is the Source of one SELECT: its result, cast to the declared types
// where nothing can be lost, in types that Parquet keeps.
type Query struct {
	sql      string
	declared []Declared
	contract bool
	into     []lake.Column // columns of the published parts, for an increment
	view     bool          // only described, never written
}

// NewQuery makes a Source of a query without a final semicolon. Under a
// contract the result must have exactly the declared columns.
func NewQuery(sql string, declared []Declared, contract bool) *Query {
	return &Query{sql: sql, declared: declared, contract: contract}
}

// Select gives the query as it is run and the columns of its result. It equals
// the query that was given where nothing has to be cast. Errors about columns
// are a diag.List; drift of an increment is a *DriftError.
func (q *Query) Select(ctx context.Context, s Session) (string, []lake.Column, error) {
	columns, err := s.Describe(ctx, q.sql)
	if err != nil {
		return "", nil, err
	}
	c, err := q.casts(columns)
	if err != nil {
		return "", nil, err
	}
	if !c.changed {
		return q.sql, columns, nil
	}
	sql := c.wrap(q.sql)
	columns, err = s.Describe(ctx, sql)
	return sql, columns, err
}

// Stage implements Source: one file named after the folder.
func (q *Query) Stage(ctx context.Context, s Session, dir string) (Staged, error) {
	sql, columns, err := q.Select(ctx, s)
	if err != nil {
		return Staged{}, err
	}
	out := StagedOutput{Columns: columns}
	if q.view {
		return Staged{SQL: sql, Outputs: []StagedOutput{out}}, nil
	}
	files, err := s.CopyTo(ctx, sql, filepath.Join(dir, filepath.Base(dir)+stagedSuffix), nil)
	if err != nil {
		return Staged{}, err
	}
	out.Files = files
	for _, f := range files {
		out.Rows += f.Rows
	}
	return Staged{Outputs: []StagedOutput{out}}, nil
}

// increment gives the same query cast to the columns of published parts.
func (q *Query) increment(columns []lake.Column) *Query {
	c := *q
	c.into = columns
	return &c
}

// asView gives the same query, only described.
func (q *Query) asView() *Query {
	c := *q
	c.view = true
	return &c
}

// selection is how the columns of a query become those that are stored.
type selection struct {
	exprs   []string
	changed bool
}

func (c selection) wrap(sql string) string {
	return "SELECT " + strings.Join(c.exprs, ", ") + "\nFROM (\n" + sql + "\n) AS rbt_q"
}

// casts decides for every column; all problems are reported at once.
func (q *Query) casts(columns []lake.Column) (selection, error) {
	problems := sameNames(columns)
	types, unknown := parsed(columns)
	problems = append(problems, unknown...)
	wanted := make([]*dataType, len(columns))
	var differ []string // columns that are not of their declared type, in lower case
	if q.into == nil {
		for i, c := range columns {
			if types[i] == nil {
				continue
			}
			t, d := q.wanted(c, types[i])
			switch {
			case d == nil:
				wanted[i] = t
			case q.contract && d.differs:
				differ = append(differ, strings.ToLower(c.Name)) // the contract says it
			default:
				problems = append(problems, d.Diagnostic)
			}
		}
	}
	if q.contract {
		problems = append(problems, q.broken(columns, differ)...)
	}
	if len(problems) > 0 {
		return selection{}, problems.Sort()
	}
	if q.into != nil {
		return q.drifted(columns, types)
	}
	var out selection
	for i, c := range columns {
		out.add(c.Name, c.Name, types[i], wanted[i])
	}
	return out, nil
}

func (c *selection) add(name, as string, from, to *dataType) {
	column := "rbt_q." + QuoteIdent(name)
	cast := caster{column: as}
	e := cast.convert(column, from, to)
	c.changed = c.changed || e != column || name != as
	c.exprs = append(c.exprs, e+" AS "+QuoteIdent(as))
}

// unwanted says why a column cannot be stored as it shall be; differs is true
// where that is only because its type is not the declared one.
type unwanted struct {
	diag.Diagnostic
	differs bool
}

// wanted is the type in which a column is stored: the declared one where there
// is one and nothing is lost, else what the rules say.
func (q *Query) wanted(c lake.Column, from *dataType) (*dataType, *unwanted) {
	for _, d := range q.declared {
		if d.Type == "" || !strings.EqualFold(d.Name, c.Name) {
			continue
		}
		to, err := parseType(d.Type)
		if err != nil {
			return nil, &unwanted{Diagnostic: diag.Errorf(diag.DeclaredType, d.Pos, "column %s: %v", c.Name, err)}
		}
		to, p := stored(to, c.Name, storing{})
		if p != nil {
			p.Pos = d.Pos
			return nil, &unwanted{Diagnostic: *p}
		}
		kept, p := stored(from, c.Name, storing{untyped: true})
		if p != nil {
			return nil, &unwanted{Diagnostic: *p}
		}
		if lossless(kept, to) {
			return to, nil
		}
		mismatch := diag.Errorf(diag.DeclaredType, d.Pos, "column %s is declared as %s, and the query gives %s", c.Name, d.Type, c.Type).
			WithHint("cast it in the SQL, where it can be seen what is lost, or declare it as %s", c.Type)
		return nil, &unwanted{mismatch, true}
	}
	t, p := stored(from, c.Name, storing{})
	if p != nil {
		return nil, &unwanted{Diagnostic: *p}
	}
	return t, nil
}

// sameNames reports columns whose names are equal but for case: Parquet would
// hold both, and no reader could tell them apart.
func sameNames(columns []lake.Column) diag.List {
	var problems diag.List
	first := make(map[string]string, len(columns))
	for _, c := range columns {
		key := strings.ToLower(c.Name)
		other, ok := first[key]
		if !ok {
			first[key] = c.Name
			continue
		}
		problems = append(problems, diag.Errorf(diag.ColumnNames, diag.Pos{}, "two columns are called %s and %s, which readers cannot tell apart", other, c.Name).
			WithHint("rename one of them: ... AS another_name"))
	}
	return problems
}

// broken reports what an enforced contract does not allow, as a table of the
// columns that differ: one that is declared and not there, one that is there and
// not declared, and one whose type differs from the declared one and cannot be
// made it without loss.
func (q *Query) broken(columns []lake.Column, differ []string) diag.List {
	found := make(map[string]string, len(columns))
	for _, c := range columns {
		found[strings.ToLower(c.Name)] = c.Type
	}
	var pos diag.Pos
	lines := [][3]string{{"column", "declared", "found"}}
	differs := func(name, declared, found string, at diag.Pos) {
		if pos.IsZero() {
			pos = at
		}
		lines = append(lines, [3]string{name, declared, found})
	}
	declared := make(map[string]bool, len(q.declared))
	for _, d := range q.declared {
		declared[strings.ToLower(d.Name)] = true
		typ, ok := found[strings.ToLower(d.Name)]
		switch {
		case !ok:
			differs(d.Name, orAny(d.Type), "-", d.Pos)
		case slices.Contains(differ, strings.ToLower(d.Name)):
			differs(d.Name, d.Type, typ, d.Pos)
		}
	}
	for _, c := range columns {
		if !declared[strings.ToLower(c.Name)] {
			differs(c.Name, "-", c.Type, diag.Pos{})
		}
	}
	if len(lines) == 1 {
		return nil
	}
	hint := contractTable(lines)
	if len(differ) > 0 {
		hint += "\na type: cast the column in the SQL, where it can be seen what is lost, or declare it as it is found"
	}
	return diag.List{diag.Errorf(diag.ContractBroken, pos, "the result does not keep the contract: %s", differing(lines)).WithHint("%s", hint)}
}

func orAny(typ string) string {
	if typ == "" {
		return "any type"
	}
	return typ
}

// differing names the columns of the table's lines.
func differing(lines [][3]string) string {
	words := make([]string, 0, len(lines))
	for _, l := range lines[1:] {
		switch {
		case l[2] == "-":
			words = append(words, l[0]+" is missing")
		case l[1] == "-":
			words = append(words, l[0]+" is not declared")
		default:
			words = append(words, l[0]+" has another type")
		}
	}
	return strings.Join(words, ", ")
}

func contractTable(lines [][3]string) string {
	var width [3]int
	for _, l := range lines {
		for i, cell := range l {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	pad := func(text string, to int) string { return text + strings.Repeat(" ", to-utf8.RuneCountInString(text)) }
	var out []string
	for n, l := range lines {
		out = append(out, strings.TrimRight(pad(l[0], width[0])+" | "+pad(l[1], width[1])+" | "+l[2], " "))
		if n == 0 {
			out = append(out, strings.Repeat("-", width[0])+"-+-"+strings.Repeat("-", width[1])+"-+-"+strings.Repeat("-", width[2]))
		}
	}
	return strings.Join(out, "\n")
}

// DriftError says that an increment does not fit the published parts. Each
// difference names a column, or a field inside one.
type DriftError struct {
	Node        string
	Differences []string
}

// Error lists the differences.
func (e *DriftError) Error() string {
	return "the columns differ from those of the published parts: " + strings.Join(e.Differences, "; ")
}

// Diagnostic gives the drift with what to do about it.
func (e *DriftError) Diagnostic() diag.Diagnostic {
	return diag.Errorf(diag.SchemaDrift, diag.Pos{}, "%s", e.Error()).
		WithHint("rebuild the model with its new columns: rbt run --full-refresh -s %s; or let it rebuild by itself: on_schema_change: full_refresh", e.Node)
}

// drifted casts to the columns of the published parts, by name and in their
// order, or names everything that cannot be cast without loss.
func (q *Query) drifted(columns []lake.Column, types []*dataType) (selection, error) {
	targets, unknown := parsed(q.into)
	if len(unknown) > 0 {
		return selection{}, unknown.Sort()
	}
	at := make(map[string]int, len(columns))
	for i, c := range columns {
		at[strings.ToLower(c.Name)] = i
	}
	var out selection
	var diffs []string
	used := make(map[int]bool, len(columns))
	for i, target := range q.into {
		j, ok := at[strings.ToLower(target.Name)]
		if !ok {
			diffs = append(diffs, target.Name+" is missing")
			continue
		}
		used[j] = true
		kept, d := stored(types[j], columns[j].Name, storing{untyped: true})
		if d != nil {
			return selection{}, diag.List{*d}
		}
		diffs = append(diffs, differences(target.Name, kept, targets[i])...)
		if lossless(kept, targets[i]) {
			out.add(columns[j].Name, target.Name, types[j], targets[i])
		}
		out.changed = out.changed || i != j
	}
	for j, c := range columns {
		if !used[j] {
			diffs = append(diffs, fmt.Sprintf("%s (%s) is new", c.Name, c.Type))
		}
	}
	if len(diffs) > 0 {
		return selection{}, &DriftError{Differences: diffs}
	}
	return out, nil
}
