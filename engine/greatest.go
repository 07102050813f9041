package engine

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// Most increments ask for the greatest value of a column of what is published, and
// the engine opens every part to answer: that is what an append costs more with each
// part. The receipt says it, else the footers of the parts do, for a third of that; so
// where the tokens show that a query in parentheses wants nothing but greatest values, it is asked of one row
// that holds them. Whatever the engine says against that, it is asked again about the
// text itself.

// greatest gives the text of an increment in which every mention of the model itself
// is one row of greatest values; nil where that cannot be, or is not known.
func (b *builder) greatest(st statement) *inPlace {
	if !b.step.Incremental || !b.compiled.This || !st.replaceable() {
		return nil
	}
	this := project.Ref{Node: b.step.Node.Name}
	places, asked := st.onlyGreatest(this.Relation())
	pub, ok, err := b.run.publishedNode(b.step.Node)
	if len(places) == 0 || err != nil || !ok || pub.foreign || pub.damage != nil || pub.receipt.Form != lake.FormIncremental || len(pub.receipt.Outputs) != 1 {
		return nil
	}
	o := pub.receipt.Outputs[0]
	row, ok := greatestRow(o.GreatestValues(), pub.files(o.Relation), o.Columns, asked)
	if !ok {
		return nil
	}
	at := map[int]string{}
	for _, i := range places {
		at[i] = "(" + row + ")"
	}
	return &inPlace{text: st.text, copied: st.replaced(at), stays: true, bind: func(ctx context.Context) error {
		read, err := b.run.catalog.bindRefs(ctx, b.session, []project.Ref{this})
		b.reads = append(b.reads, read...)
		return err
	}}
}

// greatestWords are the words that may stand in the list of a query for greatest
// values: they name no column.
var greatestWords = set("max", "coalesce", "cast", "as", "date", "timestamp", "bigint", "integer", "interval", "day", "days", "hour", "hours", "minute", "minutes")

// onlyGreatest gives the tokens at which schema.name is read and the columns, in
// lower case, whose greatest values are asked of it: each time by a query in
// parentheses that reads nothing else, has no condition and takes of its columns
// nothing but max(column). None where the name stands anywhere else.
func (s statement) onlyGreatest(schema, name string) (places []int, columns []string) {
	places = s.onlyRead(schema, name)
	for _, i := range places {
		found, ok := s.greatestAsked(i)
		if !ok {
			return nil, nil
		}
		columns = append(columns, found...)
	}
	slices.Sort(columns)
	return places, slices.Compact(columns)
}

// greatestAsked gives the columns whose greatest values the query around the name at
// token i asks for: "(" SELECT … FROM name ")".
func (s statement) greatestAsked(i int) (columns []string, ok bool) {
	const behind = 3 // schema, dot and name
	if i < 1 || i+behind >= len(s.tokens) || s.wordAt(i-1) != "from" || s.wordAt(i+behind) != ")" {
		return nil, false
	}
	depth := 0
	for k := i - 2; k > 0; k-- {
		t, text := s.tokens[k], s.wordAt(k)
		word, isName := identifier(s.text, t)
		switch {
		case text == ")":
			depth++
		case text == "(":
			if depth--; depth < 0 {
				return nil, false
			}
		case text == "select":
			return columns, depth == 0 && s.wordAt(k-1) == "(" && len(columns) > 0
		case !isName:
			// A number, a literal, an operator or a comma.
		case k > 1 && s.wordAt(k-1) == "(" && s.wordAt(k-2) == "max" && s.wordAt(k+1) == ")":
			columns = append(columns, strings.ToLower(word))
		case t.kind != tokWord || !greatestWords[text]:
			return nil, false
		}
	}
	return nil, false
}

// greatestRow is a query of one row with the greatest values of columns of files, or
// with NULL where a column has none; false where neither what is known already nor the
// footers tell them.
func greatestRow(known map[string]string, files []string, columns []lake.Column, asked []string) (string, bool) {
	var wanted, unknown []lake.Column
	for _, name := range asked {
		at := slices.IndexFunc(columns, func(c lake.Column) bool { return strings.EqualFold(c.Name, name) })
		if at < 0 {
			return "", false
		}
		wanted = append(wanted, columns[at])
		if _, ok := known[columns[at].Name]; !ok {
			unknown = append(unknown, columns[at])
		}
	}
	var read map[string]string
	if len(unknown) > 0 {
		read = greatestOf(files, unknown)
	}
	var list []string
	for _, c := range wanted {
		digits, ok := known[c.Name]
		if !ok {
			digits, ok = read[c.Name]
		}
		value := greatestText(c.Type, digits)
		if !ok || value == "" {
			return "", false
		}
		list = append(list, "CAST("+value+" AS "+c.Type+") AS "+quoteIdent(c.Name))
	}
	return "SELECT " + strings.Join(list, ", "), true
}

// greatestText writes a value as greatestValue does, or NULL where there are no digits.
func greatestText(typ, digits string) string {
	if digits == "" {
		return "NULL"
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return ""
	}
	return greatestValue(typ, n)
}

// greatestValue writes the value of a type that Parquet keeps as this number; "" of
// another type, or of a value beyond those that have a number of their own (infinity
// is one of them).
func greatestValue(typ string, n *big.Int) string {
	// Some thousands of years.
	const days, micros = 2_000_000, 100_000_000_000_000_000
	switch typ {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
		return n.String()
	case "DATE":
		if n.CmpAbs(big.NewInt(days)) <= 0 {
			return "DATE '1970-01-01' + CAST(" + n.String() + " AS INTEGER)"
		}
	case "TIMESTAMP":
		if n.CmpAbs(big.NewInt(micros)) <= 0 {
			return "make_timestamp(CAST(" + n.String() + " AS BIGINT))"
		}
	}
	return ""
}

// greatestOf gives the greatest values of those columns over files of which the footers
// say it for certain: the digits of the number that Parquet keeps, "" of a column that
// holds nothing but NULLs.
func greatestOf(files []string, columns []lake.Column) map[string]string {
	values := make([]*big.Int, len(columns))
	sure := make([]bool, len(columns))
	for i, c := range columns {
		sure[i] = len(files) > 0 && greatestValue(c.Type, new(big.Int)) != ""
	}
	for _, file := range files {
		if !slices.Contains(sure, true) {
			return nil
		}
		meta, err := readParquetFooter(file)
		if err != nil || !strings.HasPrefix(meta.GetCreatedBy()+" ", "DuckDB version "+mapping.LibraryVersion()+" ") {
			return nil
		}
		for i, c := range columns {
			sure[i] = sure[i] && greatestIn(meta, c, &values[i])
		}
	}
	out := map[string]string{}
	for i, c := range columns {
		switch {
		case !sure[i]:
		case values[i] == nil:
			out[c.Name] = ""
		default:
			out[c.Name] = values[i].String()
		}
	}
	return out
}

// greatestIn raises a value to the greatest of a column of one file.
func greatestIn(meta *metadata.FileMetaData, c lake.Column, value **big.Int) bool {
	at := meta.Schema.ColumnIndexByName(c.Name)
	if at < 0 || !keptAs(meta.Schema.Column(at), c.Type) {
		return false
	}
	for g := range meta.RowGroups {
		chunk, err := meta.RowGroup(g).ColumnChunk(at)
		if err != nil {
			return false
		}
		stats, err := chunk.Statistics()
		if err != nil || stats == nil || !stats.HasNullCount() {
			return false
		}
		if stats.NullCount() == chunk.NumValues() {
			continue
		}
		_, high, ok := boundsOf(stats, meta.Schema.Column(at))
		number, isNumber := high.(*big.Int)
		if !ok || !isNumber {
			return false
		}
		if *value == nil || number.Cmp(*value) > 0 {
			*value = number
		}
	}
	return true
}

// keptAs reports whether the numbers of a column of a file are those of a type.
func keptAs(column *schema.Column, typ string) bool {
	if len(column.ColumnPath()) != 1 {
		return false
	}
	switch logical := column.LogicalType().(type) {
	case schema.DateLogicalType:
		return typ == "DATE"
	case schema.TimestampLogicalType:
		return typ == "TIMESTAMP" && !logical.IsAdjustedToUTC() && logical.TimeUnit() == schema.TimeUnitMicros
	case schema.IntLogicalType, schema.NoLogicalType:
		return strings.HasSuffix(typ, "INT") || strings.HasSuffix(typ, "INTEGER")
	}
	return false
}
