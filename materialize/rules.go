package materialize

import (
	"fmt"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// Parquet as DuckDB 1.5 writes it loses something of these types; every other
// type comes back as it was. The table is applied at every depth before data is
// written:
//
//	HUGEINT, UHUGEINT          DECIMAL(38,0); a value that does not fit is an error (Parquet would hold DOUBLE)
//	BIGNUM, BIT, ENUM          VARCHAR (what Parquet would hold, said openly)
//	TIME WITH TIME ZONE        VARCHAR (Parquet keeps the instant and loses the offset)
//	TIMESTAMP_S, TIMESTAMP_MS  TIMESTAMP
//	T[n]                       T[]
//	INTERVAL                   INTERVAL; a value that Parquet cannot hold is an error
//	GEOMETRY                   GEOMETRY('OGC:CRS84'), not inside another type
//	VARIANT                    VARIANT, not inside another type
//	UNION, NULL                refused
//	STRUCT without field names kept, but refused around a list or map
var storedScalars = map[string]string{
	"HUGEINT":             "DECIMAL(38,0)",
	"UHUGEINT":            "DECIMAL(38,0)",
	"BIGNUM":              "VARCHAR",
	"BIT":                 "VARCHAR",
	"TIME WITH TIME ZONE": "VARCHAR",
	"TIMESTAMP_S":         "TIMESTAMP",
	"TIMESTAMP_MS":        "TIMESTAMP",
	"GEOMETRY":            "GEOMETRY('OGC:CRS84')",
}

// wide is the decimal in which HUGEINT and UHUGEINT are stored.
var wide = dataType{kind: decimal, width: 38, scale: 0}

// storing says where a type stands for which stored is asked.
type storing struct {
	nested  bool // inside another type
	untyped bool // NULL may stay, since it will be cast to a known type
}

// stored gives the type in which a value of type t is kept. at names the place
// inside the column ("x", "x.y", "x[]") for the error.
func stored(t *dataType, at string, in storing) (*dataType, *diag.Diagnostic) {
	within := storing{nested: true, untyped: in.untyped}
	switch t.kind {
	case untyped:
		if in.untyped {
			return t, nil
		}
		d := diag.Errorf(diag.UntypedColumn, diag.Pos{}, "%s has no type: all that is known of it is NULL", at)
		if in.nested {
			d = d.WithHint("give it one in the SQL ([]::VARCHAR[], NULL::VARCHAR) or declare the whole type of the column %s", columnOf(at))
		} else {
			d = d.WithHint("give it one in the SQL (NULL::VARCHAR) or declare it: columns: {%s: {type: VARCHAR}}", columnOf(at))
		}
		return nil, &d
	case union:
		d := diag.Errorf(diag.StoreType, diag.Pos{}, "%s has type %s, which Parquet cannot hold", at, t).
			WithHint("select its members as columns of their own (union_extract), or cast it to VARCHAR or JSON")
		return nil, &d
	case enum:
		return &dataType{name: "VARCHAR"}, nil
	case list, array:
		elem, d := stored(t.elem, at+"[]", within)
		return &dataType{kind: list, elem: elem}, d
	case mapping:
		key, d := stored(t.key, at+".key", within)
		if d != nil {
			return nil, d
		}
		value, d := stored(t.elem, at+".value", within)
		return &dataType{kind: mapping, key: key, elem: value}, d
	case structure:
		if unnamed(t) && t.has(func(u *dataType) bool { return u.kind == list || u.kind == array || u.kind == mapping }) {
			// DuckDB 1.5.6 writes it and cannot read it again ("Struct remap can
			// only remap named structs").
			d := diag.Errorf(diag.StoreType, diag.Pos{}, "%s has type %s, which cannot be read back: a struct without field names around a list or map", at, t).
				WithHint("name the fields: {'a': ..., 'b': ...} instead of row(...)")
			return nil, &d
		}
		out := &dataType{kind: structure, fields: make([]typeField, len(t.fields))}
		for i, f := range t.fields {
			name := f.name
			if name == "" {
				name = fmt.Sprint(i + 1)
			}
			typ, d := stored(f.typ, at+"."+name, within)
			if d != nil {
				return nil, d
			}
			out.fields[i] = typeField{f.name, typ}
		}
		return out, nil
	case decimal:
		return t, nil
	}
	if in.nested && (t.name == "VARIANT" || strings.HasPrefix(t.name, "GEOMETRY")) {
		d := diag.Errorf(diag.StoreType, diag.Pos{}, "%s has type %s inside another type, which Parquet cannot hold", at, t).
			WithHint("make it a column of its own, or cast it to VARCHAR")
		return nil, &d
	}
	to, ok := storedScalars[t.name]
	switch {
	case !ok:
		return t, nil
	case to == "DECIMAL(38,0)":
		return &wide, nil
	}
	return &dataType{name: to}, nil
}

// columnOf is the column of a place inside it.
func columnOf(at string) string {
	if i := strings.IndexAny(at, ".["); i > 0 {
		return at[:i]
	}
	return at
}

// widths ranks integers: a type holds every value of another of the same sign
// with fewer bits, and of an unsigned one with fewer bits.
var widths = map[string]struct {
	bits   int
	signed bool
}{
	"TINYINT": {8, true}, "SMALLINT": {16, true}, "INTEGER": {32, true}, "BIGINT": {64, true},
	"UTINYINT": {8, false}, "USMALLINT": {16, false}, "UINTEGER": {32, false}, "UBIGINT": {64, false},
}

// lossless reports whether every value of from, which is a stored type or
// untyped, is kept when cast to to: NULL to anything, an integer to a wider one,
// a decimal to a wider one of the same scale, and the same inside nested types.
func lossless(from, to *dataType) bool {
	switch {
	case from.kind == untyped:
		return true
	case from.kind != to.kind:
		_, integer := widths[from.name]
		return from.kind == scalar && integer && to.equal(&wide)
	}
	switch from.kind {
	case decimal:
		return from.scale == to.scale && from.width <= to.width
	case list:
		return lossless(from.elem, to.elem)
	case mapping:
		return lossless(from.key, to.key) && lossless(from.elem, to.elem)
	case structure:
		if len(from.fields) != len(to.fields) {
			return false
		}
		for i, f := range from.fields {
			other, ok := fieldNamed(to, f.name, i)
			if !ok || !lossless(f.typ, other.typ) {
				return false
			}
		}
		return true
	}
	if from.equal(to) {
		return true
	}
	a, ok := widths[from.name]
	b, also := widths[to.name]
	return ok && also && a.bits < b.bits && (a.signed == b.signed || b.signed)
}

// fieldNamed finds a field by name without case, or by place where it has none.
func fieldNamed(t *dataType, name string, i int) (typeField, bool) {
	if name == "" {
		return t.fields[i], t.fields[i].name == ""
	}
	for _, f := range t.fields {
		if strings.EqualFold(f.name, name) {
			return f, true
		}
	}
	return typeField{}, false
}

// differences names every place where from cannot become to, for messages:
// "s.y is new", "id is BIGINT and was INTEGER".
func differences(at string, from, to *dataType) []string {
	if lossless(from, to) {
		return nil
	}
	if from.kind == to.kind {
		switch from.kind {
		case list:
			return differences(at+"[]", from.elem, to.elem)
		case mapping:
			return append(differences(at+".key", from.key, to.key), differences(at+".value", from.elem, to.elem)...)
		case structure:
			return fieldDifferences(at, from, to)
		}
	}
	return []string{fmt.Sprintf("%s is %s, and %s in the published parts", at, from, to)}
}

func fieldDifferences(at string, from, to *dataType) []string {
	var out []string
	for i, f := range from.fields {
		if f.name == "" || i < len(to.fields) && to.fields[i].name == "" {
			return []string{fmt.Sprintf("%s is %s, and %s in the published parts", at, from, to)}
		}
		other, ok := fieldNamed(to, f.name, i)
		if !ok {
			out = append(out, fmt.Sprintf("%s.%s is new", at, f.name))
			continue
		}
		out = append(out, differences(at+"."+f.name, f.typ, other.typ)...)
	}
	for i, f := range to.fields {
		if _, ok := fieldNamed(from, f.name, i); !ok {
			out = append(out, fmt.Sprintf("%s.%s is missing", at, f.name))
		}
	}
	return out
}

// caster builds the SQL that turns values of one type into another.
type caster struct {
	column string // for messages at run time
	vars   int
}

// convert gives SQL for e, a value of type from, as type to; e itself where
// nothing is to be done. A plain CAST works at every depth but in two cases:
// intervals need a check, and a struct without field names has no type that can
// be written.
func (c *caster) convert(e string, from, to *dataType) string {
	interval := from.has(func(t *dataType) bool { return t.name == "INTERVAL" })
	same := from.equal(to)
	switch {
	case from.kind == untyped && to.has(unnamed):
		return "NULL"
	case same && !interval:
		return e
	case !interval && !to.has(unnamed):
		return fmt.Sprintf("CAST(%s AS %s)", e, to)
	}
	switch from.kind {
	case list, array:
		v := c.variable()
		return fmt.Sprintf("list_transform(%s, lambda %s: %s)", e, v, c.convert(v, from.elem, to.elem))
	case mapping:
		v := c.variable()
		return fmt.Sprintf("map_from_entries(list_transform(map_entries(%s), lambda %s: {'key': %s, 'value': %s}))", e, v,
			c.convert(v+".key", from.key, to.key), c.convert(v+".value", from.elem, to.elem))
	case structure:
		return c.structure(e, from, to)
	}
	return c.interval(e)
}

func unnamed(t *dataType) bool {
	return t.kind == structure && len(t.fields) > 0 && t.fields[0].name == ""
}

// NullOf is SQL for a NULL of a type, also of one with a struct without field
// names in it, which no CAST can name.
func NullOf(typ string) string {
	t, err := parseType(typ)
	if err != nil || !t.has(unnamed) {
		return "CAST(NULL AS " + typ + ")"
	}
	return "CASE WHEN false THEN " + t.sample() + " END"
}

// sample is SQL for a value of a type.
func (t *dataType) sample() string {
	switch t.kind {
	case structure:
		parts := make([]string, len(t.fields))
		for i, f := range t.fields {
			parts[i] = f.typ.sample()
			if f.name != "" {
				parts[i] = QuoteIdent(f.name) + " := " + parts[i]
			}
		}
		if unnamed(t) {
			return "row(" + strings.Join(parts, ", ") + ")"
		}
		return "struct_pack(" + strings.Join(parts, ", ") + ")"
	case list, array:
		return "[" + t.elem.sample() + "]"
	case mapping:
		return "map([" + t.key.sample() + "], [" + t.elem.sample() + "])"
	}
	return "CAST(NULL AS " + t.String() + ")"
}

func (c *caster) variable() string {
	c.vars++
	return fmt.Sprintf("rbt_v%d", c.vars)
}

func (c *caster) structure(e string, from, to *dataType) string {
	parts := make([]string, len(to.fields))
	for i, f := range to.fields {
		if f.name == "" {
			parts[i] = c.convert(fmt.Sprintf("struct_extract(%s, %d)", e, i+1), from.fields[i].typ, f.typ)
			continue
		}
		source, _ := fieldNamed(from, f.name, i)
		parts[i] = QuoteIdent(f.name) + " := " + c.convert(fmt.Sprintf("struct_extract(%s, %s)", e, QuoteText(source.name)), source.typ, f.typ)
	}
	build := "struct_pack("
	if unnamed(to) {
		build = "row("
	}
	return fmt.Sprintf("CASE WHEN %s IS NULL THEN NULL ELSE %s%s) END", e, build, strings.Join(parts, ", "))
}

// interval lets a value pass that Parquet can hold: months, days and
// milliseconds, each without sign and of 32 bits. DuckDB 1.5.6 refuses negative
// ones but cuts microseconds off and lets too many milliseconds wrap around
// without a word.
func (c *caster) interval(e string) string {
	micros := fmt.Sprintf("(datepart('hour', %[1]s)::HUGEINT * 3600000000 + datepart('minute', %[1]s) * 60000000 + datepart('microsecond', %[1]s))", e)
	message := QuoteText("column " + c.column + ": Parquet cannot hold this INTERVAL (a negative one, a part of a millisecond, or more than 1193 hours); cast the column to VARCHAR: ")
	return fmt.Sprintf("CASE WHEN %[1]s IS NULL OR (datepart('year', %[1]s) * 12 + datepart('month', %[1]s) >= 0 AND datepart('day', %[1]s) >= 0 "+
		"AND %[2]s BETWEEN 0 AND 4294967295999 AND %[2]s %% 1000 = 0) THEN %[1]s ELSE error(%[3]s || CAST(%[1]s AS VARCHAR)) END", e, micros, message)
}

// parsed reads the types of columns; a type that rbt does not know is reported
// with its column.
func parsed(columns []lake.Column) ([]*dataType, diag.List) {
	var problems diag.List
	types := make([]*dataType, len(columns))
	for i, c := range columns {
		t, err := parseType(c.Type)
		if err != nil {
			problems = append(problems, diag.Errorf(diag.StoreType, diag.Pos{}, "%s has type %s, which rbt cannot store", c.Name, c.Type).
				WithHint("cast it to a type of DuckDB's own, such as VARCHAR"))
			continue
		}
		types[i] = t
	}
	return types, problems
}
