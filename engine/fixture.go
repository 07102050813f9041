package engine

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// fixtureRows are the rows of a unit test that are written as YAML or CSV: text,
// numbers in their spelling, true and false, lists, mappings, and nil for NULL.
type fixtureRows struct {
	columns []string
	rows    [][]any // in the order of columns; nil where a row does not give one
}

// readFixture gives the rows of a fixture that is not SQL.
func readFixture(f project.Fixture) (fixtureRows, error) {
	if f.CSV != nil {
		return readFixtureCSV(f)
	}
	out := fixtureRows{columns: f.Columns}
	for _, r := range f.Rows {
		row := make([]any, len(f.Columns))
		for i, c := range f.Columns {
			row[i] = r[c]
		}
		out.rows = append(out.rows, row)
	}
	return out, nil
}

// readFixtureCSV reads CSV with a header. An empty field is NULL, as in seeds;
// blanks around one count where it is quoted.
func readFixtureCSV(f project.Fixture) (fixtureRows, error) {
	text := strings.TrimPrefix(*f.CSV, "\ufeff")
	lines := strings.Split(text, "\n")
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	var out fixtureRows
	wrong := func(format string, args ...any) error {
		return diag.Errorf(diag.UnitFixture, f.Pos, "the CSV of a unit test: "+format, args...)
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, wrong("%v", err)
		}
		if out.columns == nil {
			seen := map[string]bool{}
			for _, name := range record {
				name = strings.TrimSpace(name)
				if seen[strings.ToLower(name)] {
					return out, wrong("its header names the column %q twice", name)
				}
				seen[strings.ToLower(name)] = true
				out.columns = append(out.columns, name)
			}
			continue
		}
		row := make([]any, len(record))
		for i, field := range record {
			if line, column := r.FieldPos(i); !strings.HasPrefix(lines[line-1][min(column-1, len(lines[line-1])):], `"`) {
				field = strings.TrimRight(field, " \t")
			}
			if field != "" {
				row[i] = field
			}
		}
		out.rows = append(out.rows, row)
	}
	return out, nil
}

// query is the rows as a query with exactly these columns; what the rows do not
// give is NULL. The rows' own columns are all among them.
func (f fixtureRows) query(columns []lake.Column) (string, error) {
	if len(f.rows) == 0 {
		return emptyRelation(columns), nil
	}
	at := map[string]int{}
	for i, name := range f.columns {
		at[strings.ToLower(name)] = i
	}
	lines := make([]string, len(f.rows))
	for n, row := range f.rows {
		values := make([]string, len(columns))
		for i, c := range columns {
			var v any
			if k, ok := at[strings.ToLower(c.Name)]; ok {
				v = row[k]
			}
			literal, err := fixtureLiteral(v, c.Type)
			if err != nil {
				return "", fmt.Errorf("row %d, column %s: %w", n+1, c.Name, err)
			}
			values[i] = literal
		}
		lines[n] = "(" + strings.Join(values, ", ") + ")"
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = quoteIdent(c.Name)
	}
	return "SELECT * FROM (VALUES\n" + strings.Join(lines, ",\n") + "\n) AS fixture(" + strings.Join(names, ", ") + ")", nil
}

// typed gives the columns of rows about whose relation nothing is known, with
// types that hold every value.
func (f fixtureRows) typed() []lake.Column {
	out := make([]lake.Column, len(f.columns))
	for i, name := range f.columns {
		typ := ""
		for _, row := range f.rows {
			typ = commonType(typ, valueType(row[i]))
		}
		if typ == "" {
			typ = "VARCHAR"
		}
		out[i] = lake.Column{Name: name, Type: typ}
	}
	return out
}

var wholeNumber = regexp.MustCompile(`^[+-]?\d{1,18}$`)

// valueType is the type of a value as it is written; "" of NULL.
func valueType(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return "BOOLEAN"
	case project.Number:
		if wholeNumber.MatchString(string(v)) {
			return "BIGINT"
		}
		return "DOUBLE"
	case *jinja.List, *jinja.Dict:
		return "JSON"
	}
	return "VARCHAR"
}

func commonType(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	case a == "BIGINT" && b == "DOUBLE", a == "DOUBLE" && b == "BIGINT":
		return "DOUBLE"
	}
	return "VARCHAR"
}

// fixtureLiteral writes a value as SQL of a type, and refuses one that the type
// cannot hold as it stands: a cast of DuckDB 1.5.6 would round 1.7 to an integer
// and drop a field that a struct does not have.
func fixtureLiteral(v any, typ string) (string, error) {
	switch v := v.(type) {
	case nil:
		return "CAST(NULL AS " + typ + ")", nil
	case *jinja.List:
		return listLiteral(v, typ)
	case *jinja.Dict:
		return dictLiteral(v, typ)
	case bool:
		if typ != "BOOLEAN" && typ != "VARCHAR" && typ != "JSON" {
			return "", noValue(fmt.Sprint(v), typ)
		}
		return scalarLiteral(fmt.Sprint(v), typ)
	case project.Number:
		return scalarLiteral(string(v), typ)
	case string:
		if typ == "JSON" && !json.Valid([]byte(v)) {
			text, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			return scalarLiteral(string(text), typ)
		}
		return scalarLiteral(v, typ)
	}
	return "", noValue(fmt.Sprint(v), typ)
}

func noValue(text, typ string) error {
	return fmt.Errorf("%q is no value of the type %s", text, typ)
}

var (
	dateAlone  = regexp.MustCompile(`^\d+-\d+-\d+([ T]00:00(:00(\.0+)?)?)?$`)
	withOffset = regexp.MustCompile(`\d\d:\d\d.*([+-]\d\d(:?\d\d)?)$`)
	zeroOffset = regexp.MustCompile(`[+-]00(:?00)?$`)
)

// scalarLiteral writes text as SQL of a type that is no list, struct or map, or
// of one whose own text form is given.
func scalarLiteral(text, typ string) (string, error) {
	upper := strings.ToUpper(typ)
	switch {
	case textTypes[upper]:
		return quoteText(text) + "::VARCHAR", nil
	case isInteger(upper):
		if digits, ok := digitsOf(text, upper, true); !ok || !holdsInteger(upper, digits.Num()) {
			return "", noValue(text, typ)
		}
	case decimalType.MatchString(upper):
		if digits, ok := digitsOf(text, upper, true); !ok || exactLiteral(digits.Num(), upper) == "" {
			return "", noValue(text, typ)
		}
	case upper == "DATE":
		if len(text) > 10 && !dateAlone.MatchString(text) {
			return "", noValue(text, typ)
		}
	case timestampTypes[upper]:
		if withOffset.MatchString(text) && !zeroOffset.MatchString(text) {
			return "", noValue(text, typ)
		}
	}
	return "CAST(" + quoteText(text) + " AS " + typ + ")", nil
}

// integerBits are the bits of the integer types, without that of the sign.
var integerBits = map[string]int{
	"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 127,
	"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64, "UHUGEINT": 128,
}

// holdsInteger reports whether a type holds a number. That of a type under another
// name is left to the engine.
func holdsInteger(upper string, n *big.Int) bool {
	bits, known := integerBits[upper]
	switch {
	case !known:
		return true
	case n.Sign() < 0:
		return upper[0] != 'U' && new(big.Int).Not(n).BitLen() <= bits
	}
	return n.BitLen() <= bits
}

func decimalScale(upper string) int {
	m := decimalType.FindStringSubmatch(upper)
	scale := 3 // of DECIMAL without arguments
	if m[1] != "" {
		scale = 0
		_, _ = fmt.Sscan(m[2], &scale) // "" leaves 0, the scale of DECIMAL(9)
	}
	return scale
}

// listLiteral writes a list as SQL of a list type, or as JSON.
func listLiteral(l *jinja.List, typ string) (string, error) {
	if typ == "JSON" {
		return jsonLiteral(l)
	}
	elem, ok := elementType(typ)
	if !ok {
		return "", fmt.Errorf("a list is no value of the type %s", typ)
	}
	items := make([]string, l.Len())
	for i := range items {
		var err error
		if items[i], err = fixtureLiteral(l.At(i), elem); err != nil {
			return "", fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	return "CAST([" + strings.Join(items, ", ") + "] AS " + typ + ")", nil
}

// dictLiteral writes a mapping as SQL of a struct or map type, or as JSON. A
// field that is not given is NULL; one that the struct does not have is an error.
func dictLiteral(d *jinja.Dict, typ string) (string, error) {
	if typ == "JSON" {
		return jsonLiteral(d)
	}
	if inner, ok := typeArguments(typ, "MAP"); ok && len(inner) == 2 {
		return mapLiteral(d, typ, inner[0], inner[1])
	}
	inner, ok := typeArguments(typ, "STRUCT")
	if !ok {
		return "", fmt.Errorf("a mapping is no value of the type %s", typ)
	}
	given := map[string]any{}
	for k, v := range d.All() {
		given[strings.ToLower(fmt.Sprint(k))] = v
	}
	var parts, names []string
	for _, field := range inner {
		name, fieldType := fieldOf(field)
		names = append(names, name)
		literal, err := fixtureLiteral(given[strings.ToLower(name)], fieldType)
		if err != nil {
			return "", fmt.Errorf("field %s: %w", name, err)
		}
		parts = append(parts, quoteIdent(name)+" := "+literal)
		delete(given, strings.ToLower(name))
	}
	if left := sortedKeys(given); len(left) > 0 {
		name := left[0]
		if near := diag.Nearest(name, names); near != "" {
			return "", fmt.Errorf("%s has no field %q; did you mean %q?", typ, name, near)
		}
		return "", fmt.Errorf("%s has no field %q", typ, name)
	}
	return "CAST(struct_pack(" + strings.Join(parts, ", ") + ") AS " + typ + ")", nil
}

func mapLiteral(d *jinja.Dict, typ, keyType, valueType string) (string, error) {
	var keys, values []string
	for k, v := range d.All() {
		key, err := scalarLiteral(fmt.Sprint(k), keyType)
		if err != nil {
			return "", fmt.Errorf("key %v: %w", k, err)
		}
		value, err := fixtureLiteral(v, valueType)
		if err != nil {
			return "", fmt.Errorf("key %v: %w", k, err)
		}
		keys, values = append(keys, key), append(values, value)
	}
	return "CAST(map([" + strings.Join(keys, ", ") + "], [" + strings.Join(values, ", ") + "]) AS " + typ + ")", nil
}

func jsonLiteral(v any) (string, error) {
	text, err := json.Marshal(jsonValue(v))
	if err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return "CAST(" + quoteText(string(text)) + " AS JSON)", nil
}

// jsonValue keeps numbers as they are spelled.
func jsonValue(v any) any {
	switch v := v.(type) {
	case project.Number:
		if json.Valid([]byte(v)) {
			return json.Number(v)
		}
		return string(v)
	case *jinja.List:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = jsonValue(v.At(i))
		}
		return out
	case *jinja.Dict:
		out := object{}
		for k, item := range v.All() {
			out[fmt.Sprint(k)] = jsonValue(item)
		}
		return out
	}
	return v
}

// elementType is the type of the elements of a list or array type.
func elementType(typ string) (string, bool) {
	if !strings.HasSuffix(typ, "]") {
		return "", false
	}
	i := strings.LastIndexByte(typ, '[')
	return typ[:i], i > 0
}

// typeArguments takes STRUCT(a INTEGER, b VARCHAR) or MAP(VARCHAR, INTEGER)
// apart.
func typeArguments(typ, word string) ([]string, bool) {
	if len(typ) < len(word)+2 || !strings.EqualFold(typ[:len(word)], word) || typ[len(word)] != '(' || !strings.HasSuffix(typ, ")") {
		return nil, false
	}
	inner := typ[len(word)+1 : len(typ)-1]
	var parts []string
	depth, start := 0, 0
	var quote byte
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			parts, start = append(parts, strings.TrimSpace(inner[start:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(inner[start:])), true
}

// fieldOf takes `"a b" INTEGER` apart.
func fieldOf(field string) (name, typ string) {
	if strings.HasPrefix(field, `"`) {
		for i := 1; i < len(field); i++ {
			if field[i] != '"' {
				continue
			}
			if i+1 < len(field) && field[i+1] == '"' {
				i++
				continue
			}
			return strings.ReplaceAll(field[1:i], `""`, `"`), strings.TrimSpace(field[i+1:])
		}
	}
	name, typ, _ = strings.Cut(field, " ")
	return name, strings.TrimSpace(typ)
}
