package engine

import (
	"fmt"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// subject is the relation that an assertion looks at: its text in SQL and the
// columns that it has, nil where they are not known before the query runs.
// footers are those of its files where it is nothing but files of the lake.
// field is the type of the column of a relationship's other side, "" where it is
// not known.
type subject struct {
	from    string
	columns []lake.Column
	footers *footers
	field   string
}

// check is an assertion as SQL. Rows selects what violates it, one row a
// violation; Checked counts what was looked at ("" where a count means nothing).
// Expected is what should hold, as the end of "expected …".
type check struct {
	Rows     string
	Checked  string
	Expected string
	// proof is how it can be shown to hold without a scan; nil where it cannot.
	// from is what it looks at, the test's where applied, and set the one column
	// that must be set in the rows that are looked at; nil where it is not one.
	proof *proof
	from  string
	set   *lake.Column
}

// Count is the query that gives the number of violations, at most limit where
// that is not 0.
func (c check) Count(limit int) string {
	if limit > 0 {
		return fmt.Sprintf("SELECT count(*) FROM (%s\nLIMIT %d)", c.Rows, limit)
	}
	return "SELECT count(*) FROM (" + c.Rows + "\n)"
}

// isRowWise reports whether a violation is a property of its row alone, so that
// an increment needs to be asked only about its new part.
func isRowWise(kind string) bool {
	switch kind {
	case "not_null", "accepted_values", "range", "matches", "expression", "relationships":
		return true
	}
	return false
}

// genericCheck turns a built-in assertion into SQL over a relation. parent is
// the text of the other relation of relationships and of row_count's equal_to;
// now is the clock of the run. A column that does not exist, and a value that
// the column's type cannot hold, are diagnostics at the test's place.
func genericCheck(t *project.Test, s subject, parent string, now time.Time) (check, error) {
	a := assertion{test: t, from: restricted(t, s.from), field: s.field}
	for _, name := range t.Columns {
		column, err := findColumn(t, name, s.columns)
		if err != nil {
			return check{}, err
		}
		a.columns = append(a.columns, column)
	}
	c, err := a.build(parent, now)
	if err != nil {
		return check{}, err
	}
	c.proof, c.from = a.proof(c.Checked != ""), a.from
	if c.Checked != "" && len(a.columns) == 1 {
		c.set = &a.columns[0]
	}
	if c.Checked == "" {
		c.Checked = "SELECT count(*) FROM " + a.from
	}
	return c, nil
}

// restricted is a relation as the test looks at it: with its where, if it has one.
func restricted(t *project.Test, from string) string {
	if t.Where == "" {
		return from
	}
	return "(SELECT * FROM " + from + " WHERE (" + t.Where + "\n))"
}

// findColumn finds a column whatever its case, as DuckDB does.
func findColumn(t *project.Test, name string, columns []lake.Column) (lake.Column, error) {
	if columns == nil {
		return lake.Column{Name: name}, nil
	}
	for _, c := range columns {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
	}
	return lake.Column{}, diag.Errorf(diag.TestColumn, t.Pos, "test %s: %s has no column %q", t.Kind, outputName(t.Node, t.Output), name).WithHint("%s", columnsHint(name, columns))
}

// findField finds the column of the other side of a relationship.
func findField(t *project.Test, columns []lake.Column) (lake.Column, error) {
	other := *t
	other.Node, other.Output = t.Args.Ref.Node, t.Args.Ref.Output
	return findColumn(&other, t.Args.Field, columns)
}

// outputName is a relation as it is spoken of: an output of an ingest, given in
// its __ spelling, with a dot.
func outputName(node, output string) string {
	if rest, ok := strings.CutPrefix(output, node+"__"); ok {
		return node + "." + rest
	}
	return node
}

// columnsHint says which columns there are instead of one that there is not.
func columnsHint(name string, columns []lake.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	list := strings.Join(names, ", ")
	if near := diag.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q? Columns: %s", near, list)
	}
	return "columns: " + list
}

// assertion is a test being turned into SQL: from is the relation with the
// test's where, columns are the test's.
type assertion struct {
	test    *project.Test
	from    string
	columns []lake.Column
	field   string // as that of subject
}

func (a assertion) build(parent string, now time.Time) (check, error) {
	switch a.test.Kind {
	case "not_null":
		return check{Rows: a.where(a.column() + " IS NULL"), Expected: a.label() + " to be set on every row"}, nil
	case "unique":
		return a.unique(), nil
	case "accepted_values":
		return a.acceptedValues()
	case "relationships":
		return a.relationships(parent), a.comparable()
	case "range":
		return a.inRange()
	case "row_count":
		return a.rowCount(parent), nil
	case "expression":
		return a.expression(), nil
	case "matches":
		return a.matches(), nil
	case "freshness":
		return a.freshness(now)
	case "not_constant":
		return a.notConstant(), nil
	case "sequence":
		return a.sequence()
	}
	return check{}, fmt.Errorf("assertion %s is no built-in one", a.test.Kind)
}

func (a assertion) column() string { return quoteIdent(a.columns[0].Name) }

func (a assertion) label() string {
	names := make([]string, len(a.columns))
	for i, c := range a.columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

func (a assertion) where(condition string) string {
	return "SELECT * FROM " + a.from + " WHERE " + condition
}

// unlessNull is a condition on rows whose column is set, or with `nulls: fail`
// on every row.
func (a assertion) unlessNull(condition string) string {
	if a.test.FailNulls {
		return fmt.Sprintf("(%s IS NULL OR (%s))", a.column(), condition)
	}
	return fmt.Sprintf("(%s IS NOT NULL AND (%s))", a.column(), condition)
}

// orNull adds to a query about values the rows whose column is NULL, where those
// are violations. columns are as many as the query has.
func (a assertion) orNull(columns string) string {
	if !a.test.FailNulls {
		return ""
	}
	return "\nUNION ALL SELECT " + columns + " FROM " + a.from + " WHERE " + a.column() + " IS NULL"
}

// checkedRows counts the rows that an assertion on one column looks at.
func (a assertion) checkedRows() string {
	if a.test.FailNulls {
		return ""
	}
	return "SELECT count(" + a.column() + ") FROM " + a.from
}

// unique gives a row for every key that occurs more than once. A key with a
// NULL in it is ignored, or with `nulls: fail` a violation.
func (a assertion) unique() check {
	keys := make([]string, len(a.columns))
	set := make([]string, len(a.columns))
	for i, c := range a.columns {
		keys[i] = quoteIdent(c.Name)
		set[i] = keys[i] + " IS NOT NULL"
	}
	list, allSet := strings.Join(keys, ", "), strings.Join(set, " AND ")
	c := check{Expected: a.label() + " to be unique"}
	if a.test.FailNulls {
		c.Rows = fmt.Sprintf("SELECT %s, count(*) AS n_rows FROM %s GROUP BY ALL HAVING count(*) > 1 OR NOT (%s)", list, a.from, allSet)
		return c
	}
	c.Rows = fmt.Sprintf("SELECT %s, count(*) AS n_rows FROM %s WHERE %s GROUP BY ALL HAVING count(*) > 1", list, a.from, allSet)
	c.Checked = fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", a.from, allSet)
	return c
}

func (a assertion) acceptedValues() (check, error) {
	var literals, shown []string
	for _, v := range a.test.Args.Values {
		if v == nil {
			continue
		}
		literal, err := a.literal(*v)
		if err != nil {
			return check{}, err
		}
		if shown = append(shown, *v); literal != "" {
			literals = append(literals, literal)
		}
	}
	if len(shown) == 0 {
		return check{}, diag.Errorf(diag.TestArgument, a.test.Pos, "accepted_values: the list of values is empty, so no row could ever pass")
	}
	other := "true"
	if len(literals) > 0 {
		other = a.column() + " NOT IN (" + strings.Join(literals, ", ") + ")"
	}
	return check{
		Rows:     a.where(a.unlessNull(other)),
		Checked:  a.checkedRows(),
		Expected: a.label() + " to be one of " + shorten(shown),
	}, nil
}

// shorten lists the first values, so that a list of thousands stays a line.
func shorten(values []string) string {
	const most = 10
	if len(values) <= most {
		return strings.Join(values, ", ")
	}
	return fmt.Sprintf("%s, … (%d values)", strings.Join(values[:most], ", "), len(values))
}

// relationships is an anti-join, which a NULL among the parent's keys does not
// disturb as it would NOT IN. Where one side is text, it counts as what the other
// side's type makes of it without loss: DuckDB would round '1.4' to the key 1, and
// end the query at a text that is no number. Likewise numbers of two types that it
// would compare as doubles.
func (a assertion) relationships(parent string) check {
	child, field := "child."+a.column(), quoteIdent(a.test.Args.Field)
	own, other := strings.ToUpper(a.columns[0].Type), strings.ToUpper(a.field)
	switch {
	case own == "" || other == "":
	case comparesRounded(own, other) && isFloat(own):
		child = comesBack(child, own, other)
	case comparesRounded(own, other):
		field = comesBack(field, other, own)
	case textTypes[own] == textTypes[other]:
	case textTypes[own]:
		child = exactCast(child, other, a.field)
	default:
		field = exactCast(field, own, a.columns[0].Type)
	}
	rows := fmt.Sprintf("SELECT child.* FROM (SELECT * FROM %s WHERE %s IS NOT NULL) AS child ANTI JOIN (SELECT %s AS parent_key FROM %s) AS parent ON %s = parent.parent_key",
		a.from, a.column(), field, parent, child)
	return check{
		Rows:     rows + a.orNull("*"),
		Checked:  a.checkedRows(),
		Expected: fmt.Sprintf("every %s to be a %s of %s", a.label(), a.test.Args.Field, a.test.Args.To),
	}
}

// comparesRounded reports whether DuckDB 1.5.6 may round numbers of two types to
// compare them: it takes BIGINT and DOUBLE, and HUGEINT and UHUGEINT, for doubles,
// and decimals of more than 38 digits together for shorter ones.
func comparesRounded(a, b string) bool {
	switch {
	case a == b || !isExact(a) && !isFloat(a) || !isExact(b) && !isFloat(b):
		return false
	case isFloat(a) || isFloat(b):
		return isExact(a) || isExact(b)
	}
	return !isInteger(a) || !isInteger(b) || a == "UHUGEINT" || b == "UHUGEINT"
}

// comesBack is a number of type from as one of type to; NULL where that is not the
// number that it was.
func comesBack(e, from, to string) string {
	return fmt.Sprintf("CASE WHEN TRY_CAST(TRY_CAST(%[1]s AS %[3]s) AS %[2]s) = %[1]s THEN TRY_CAST(%[1]s AS %[3]s) END", e, from, to)
}

func (a assertion) inRange() (check, error) {
	args := a.test.Args
	var outside, said []string
	bound := func(text *string, least, exclusive bool, words string) error {
		if text == nil {
			return nil
		}
		condition, err := a.beyond(*text, least, exclusive)
		if err != nil {
			return err
		}
		if !exclusive {
			words += "="
		}
		outside, said = append(outside, condition), append(said, words+" "+*text)
		return nil
	}
	if err := bound(args.Min, true, args.ExclusiveMin, ">"); err != nil {
		return check{}, err
	}
	if err := bound(args.Max, false, args.ExclusiveMax, "<"); err != nil {
		return check{}, err
	}
	if args.Min != nil && args.Max != nil {
		low, ok := digitsOf(*args.Min, a.columns[0].Type, false)
		high, ok2 := digitsOf(*args.Max, a.columns[0].Type, false)
		if ok && ok2 && (low.Cmp(high) > 0 || low.Cmp(high) == 0 && (args.ExclusiveMin || args.ExclusiveMax)) {
			return check{}, diag.Errorf(diag.TestArgument, a.test.Pos, "range: nothing lies between %s and %s", *args.Min, *args.Max)
		}
	}
	if isFloat(a.columns[0].Type) {
		// NaN sorts above every number, so that a lower bound alone would let it pass.
		outside = append(outside, "isnan("+a.column()+")")
	}
	return check{
		Rows:     a.where(a.unlessNull(strings.Join(outside, " OR "))),
		Checked:  a.checkedRows(),
		Expected: a.label() + " to be " + strings.Join(said, " and "),
	}, nil
}

// rowCount gives one row with the count where it is wrong.
func (a assertion) rowCount(parent string) check {
	args := a.test.Args
	var wrong, said []string
	add := func(value *string, op, words string) {
		if value != nil {
			wrong = append(wrong, "n_rows "+op+" "+quoteText(*value)+"::HUGEINT")
			said = append(said, words+" "+*value)
		}
	}
	add(args.Min, "<", "at least")
	add(args.Max, ">", "at most")
	add(args.Equal, "<>", "exactly")
	from := fmt.Sprintf("(SELECT count(*) AS n_rows FROM %s) AS counted", a.from)
	if args.EqualTo != "" {
		from += fmt.Sprintf(", (SELECT count(*) AS n_expected FROM %s) AS other", parent)
		wrong = append(wrong, "n_rows <> n_expected")
		said = append(said, "as many as "+args.EqualTo)
	}
	return check{
		Rows:     "SELECT * FROM " + from + " WHERE " + strings.Join(wrong, " OR "),
		Expected: "the number of rows to be " + strings.Join(said, " and "),
	}
}

// expression casts to BOOLEAN, so that the texts 'false' and 'true' and the
// numbers 0 and 1 mean what they say.
func (a assertion) expression() check {
	held := "true"
	if a.test.FailNulls {
		held = "false"
	}
	sql := a.test.Args.SQL
	return check{
		Rows:     a.where(fmt.Sprintf("NOT coalesce(CAST((%s\n) AS BOOLEAN), %s)", sql, held)),
		Expected: strings.Join(strings.Fields(sql), " ") + " on every row",
	}
}

func (a assertion) matches() check {
	pattern := a.test.Args.Pattern
	return check{
		Rows:     a.where(a.unlessNull(fmt.Sprintf("NOT regexp_matches(CAST(%s AS VARCHAR), %s)", a.column(), quoteText(pattern)))),
		Checked:  a.checkedRows(),
		Expected: a.label() + " to match " + pattern,
	}
}

// freshness compares with the clock of the run; a table without any value is
// not fresh.
func (a assertion) freshness(now time.Time) (check, error) {
	if typ := a.columns[0].Type; typ != "" && typ != "DATE" && !strings.HasPrefix(typ, "TIMESTAMP") {
		return check{}, a.wrongType("only dates and timestamps have an age", "cast it to TIMESTAMP in the SQL of the model, or declare that type where it is a source's or a seed's")
	}
	oldest := now.UTC().Add(-a.test.Args.MaxAge)
	none := "newest IS NULL"
	if a.test.FailNulls { // each NULL is a violation, not that there is nothing else
		none = "n_rows = 0"
	}
	return check{
		Rows: fmt.Sprintf("SELECT newest FROM (SELECT max(%s) AS newest, count(*) AS n_rows FROM %s) AS latest WHERE %s OR CAST(newest AS TIMESTAMPTZ) < %s::TIMESTAMPTZ",
			a.column(), a.from, none, quoteText(oldest.Format("2006-01-02 15:04:05.999999")+"+00")) + a.orNull(a.column()),
		Expected: fmt.Sprintf("the newest %s to be at most %s old", a.label(), a.test.Args.MaxAge),
	}, nil
}

// notConstant fails where there is exactly one value; a table without values
// has none that could be constant.
func (a assertion) notConstant() check {
	return check{
		Rows:     fmt.Sprintf("SELECT * FROM (SELECT count(DISTINCT %s) AS n_values, any_value(%s) AS the_value FROM %s) AS counted WHERE n_values = 1", a.column(), a.column(), a.from) + a.orNull("NULL, "+a.column()),
		Checked:  a.checkedRows(),
		Expected: a.label() + " to have more than one value",
	}
}

// sequence compares each value with the one before it in order. Where the step
// leads beyond what the type can hold, what follows is no next value.
func (a assertion) sequence() (check, error) {
	step := "1"
	if a.test.Args.Value != nil {
		// Rows have no order: a sequence that falls is one that rises.
		step = strings.TrimPrefix(*a.test.Args.Value, "-")
	}
	literal, err := a.step(step)
	if err != nil {
		return check{}, err
	}
	breaks := "this_value <> previous_value + " + literal
	if literal == "" {
		breaks = "true"
	}
	if a.columns[0].Type == "TIMESTAMP_NS" {
		// DuckDB 1.5.6 adds intervals to microseconds only.
		breaks = "CAST(this_value AS TIMESTAMP) <> CAST(previous_value AS TIMESTAMP) + " + literal + " OR epoch_ns(this_value) % 1000 <> epoch_ns(previous_value) % 1000"
	}
	return check{
		Rows: fmt.Sprintf("SELECT previous_value, this_value FROM (SELECT %[1]s AS this_value, lag(%[1]s) OVER (ORDER BY %[1]s) AS previous_value FROM %[2]s WHERE %[1]s IS NOT NULL) AS pairs WHERE previous_value IS NOT NULL AND coalesce(TRY(%[3]s), true)",
			a.column(), a.from, breaks) + a.orNull("NULL, "+a.column()),
		Checked:  a.checkedRows(),
		Expected: fmt.Sprintf("each %s to be the one before plus %s", a.label(), step),
	}, nil
}
