package materialize

import (
	"fmt"
	"strconv"
	"strings"
)

// kind tells the shapes of types apart.
type kind int

const (
	scalar kind = iota
	decimal
	list
	array
	structure
	mapping
	union
	enum
	untyped // the type of a bare NULL
)

// dataType is a type of DuckDB. Types are compared as trees, never as text, so
// that quoting and aliases do not matter.
type dataType struct {
	kind         kind
	name         string      // of a scalar, canonical
	width, scale int         // of a decimal
	size         int         // of an array
	key, elem    *dataType   // key of a map; element of a list or array, value of a map
	fields       []typeField // of a struct or union
	values       []string    // of an enum
}

// typeField is a field of a struct; name is "" in an unnamed one (row(1, 2)).
type typeField struct {
	name string
	typ  *dataType
}

// canonical gives every spelling of a scalar type that DuckDB 1.5 knows the name
// that DESCRIBE prints.
var canonical = map[string]string{
	"BOOLEAN": "BOOLEAN", "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN",
	"TINYINT": "TINYINT", "INT1": "TINYINT",
	"SMALLINT": "SMALLINT", "INT2": "SMALLINT", "INT16": "SMALLINT", "SHORT": "SMALLINT",
	"INTEGER": "INTEGER", "INT4": "INTEGER", "INT32": "INTEGER", "INT": "INTEGER", "SIGNED": "INTEGER", "INTEGRAL": "INTEGER",
	"BIGINT": "BIGINT", "INT8": "BIGINT", "INT64": "BIGINT", "LONG": "BIGINT", "OID": "BIGINT",
	"HUGEINT": "HUGEINT", "INT128": "HUGEINT",
	"UTINYINT": "UTINYINT", "UINT8": "UTINYINT",
	"USMALLINT": "USMALLINT", "UINT16": "USMALLINT",
	"UINTEGER": "UINTEGER", "UINT32": "UINTEGER",
	"UBIGINT": "UBIGINT", "UINT64": "UBIGINT",
	"UHUGEINT": "UHUGEINT", "UINT128": "UHUGEINT",
	"BIGNUM": "BIGNUM", "VARINT": "BIGNUM",
	"FLOAT": "FLOAT", "FLOAT4": "FLOAT", "REAL": "FLOAT",
	"DOUBLE": "DOUBLE", "FLOAT8": "DOUBLE", "DOUBLE PRECISION": "DOUBLE",
	"VARCHAR": "VARCHAR", "CHAR": "VARCHAR", "BPCHAR": "VARCHAR", "TEXT": "VARCHAR", "STRING": "VARCHAR",
	"CHARACTER VARYING": "VARCHAR", "CHARACTER": "VARCHAR", "NVARCHAR": "VARCHAR",
	"BLOB": "BLOB", "BYTEA": "BLOB", "BINARY": "BLOB", "VARBINARY": "BLOB",
	"BIT": "BIT", "BITSTRING": "BIT",
	"DATE": "DATE",
	"TIME": "TIME", "TIME WITHOUT TIME ZONE": "TIME", "TIME_NS": "TIME_NS",
	"TIMETZ": "TIME WITH TIME ZONE", "TIME WITH TIME ZONE": "TIME WITH TIME ZONE",
	"TIMESTAMP": "TIMESTAMP", "DATETIME": "TIMESTAMP", "TIMESTAMP_US": "TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
	"TIMESTAMP_S": "TIMESTAMP_S", "TIMESTAMP_MS": "TIMESTAMP_MS", "TIMESTAMP_NS": "TIMESTAMP_NS",
	"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
	"INTERVAL": "INTERVAL", "UUID": "UUID", "GUID": "UUID", "JSON": "JSON", "VARIANT": "VARIANT",
}

// String gives the type as DuckDB reads it; names of fields are always quoted,
// so that no list of DuckDB's keywords is needed here.
func (t *dataType) String() string {
	switch t.kind {
	case decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.width, t.scale)
	case list:
		return t.elem.String() + "[]"
	case array:
		return fmt.Sprintf("%s[%d]", t.elem, t.size)
	case mapping:
		return fmt.Sprintf("MAP(%s, %s)", t.key, t.elem)
	case structure, union:
		parts := make([]string, len(t.fields))
		for i, f := range t.fields {
			parts[i] = f.typ.String()
			if f.name != "" {
				parts[i] = QuoteIdent(f.name) + " " + parts[i]
			}
		}
		word := "STRUCT("
		if t.kind == union {
			word = "UNION("
		}
		return word + strings.Join(parts, ", ") + ")"
	case enum:
		parts := make([]string, len(t.values))
		for i, v := range t.values {
			parts[i] = QuoteText(v)
		}
		return "ENUM(" + strings.Join(parts, ", ") + ")"
	case untyped:
		return `"NULL"`
	default:
		return t.name
	}
}

// equal compares types; names of struct fields compare without case, as in
// DuckDB.
func (t *dataType) equal(o *dataType) bool {
	if t.kind != o.kind || t.name != o.name || t.width != o.width || t.scale != o.scale || t.size != o.size ||
		len(t.fields) != len(o.fields) || len(t.values) != len(o.values) {
		return false
	}
	for i, v := range t.values {
		if v != o.values[i] {
			return false
		}
	}
	for i, f := range t.fields {
		if !strings.EqualFold(f.name, o.fields[i].name) || !f.typ.equal(o.fields[i].typ) {
			return false
		}
	}
	return (t.key == nil || t.key.equal(o.key)) && (t.elem == nil || t.elem.equal(o.elem))
}

// has reports whether the type, at any depth, satisfies is.
func (t *dataType) has(is func(*dataType) bool) bool {
	if is(t) {
		return true
	}
	for _, f := range t.fields {
		if f.typ.has(is) {
			return true
		}
	}
	return t.key != nil && t.key.has(is) || t.elem != nil && t.elem.has(is)
}

// QuoteIdent quotes a name for SQL.
func QuoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// QuoteText quotes a text value for SQL.
func QuoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// parseType reads the text of a type, as DuckDB prints it or as a user declares
// it. The error says what stands where a type was expected.
func parseType(text string) (*dataType, error) {
	p := typeParser{text: text}
	p.next()
	t, err := p.parse()
	if err == nil && p.tok.kind != tokEnd {
		err = fmt.Errorf("%q follows the type", p.tok.text)
	}
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", strconv.Quote(text), err)
	}
	return t, nil
}

type tokenKind int

const (
	tokEnd   tokenKind = iota
	tokWord            // a bare name or number
	tokName            // a quoted name, without its quotes
	tokText            // a quoted text, without its quotes
	tokPunct           // one of ( ) [ ] ,
	tokBad
)

type token struct {
	kind tokenKind
	text string
}

// maxTypeDepth bounds the nesting of a type; DuckDB's own limit is of this
// order, and a parser must not recurse without one.
const maxTypeDepth = 200

type typeParser struct {
	text  string
	pos   int
	tok   token
	depth int
}

func (p *typeParser) next() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos == len(p.text) {
		p.tok = token{}
		return
	}
	c := p.text[p.pos]
	switch {
	case strings.IndexByte("()[],", c) >= 0:
		p.tok = token{tokPunct, string(c)}
		p.pos++
	case c == '"':
		p.quoted('"', tokName)
	case c == '\'':
		p.quoted('\'', tokText)
	default:
		start := p.pos
		for p.pos < len(p.text) && strings.IndexByte(" \t\r\n()[],\"'", p.text[p.pos]) < 0 {
			p.pos++
		}
		p.tok = token{tokWord, p.text[start:p.pos]}
	}
}

func (p *typeParser) quoted(quote byte, k tokenKind) {
	var b strings.Builder
	for p.pos++; p.pos < len(p.text); p.pos++ {
		if p.text[p.pos] != quote {
			b.WriteByte(p.text[p.pos])
			continue
		}
		if p.pos+1 < len(p.text) && p.text[p.pos+1] == quote {
			b.WriteByte(quote)
			p.pos++
			continue
		}
		p.pos++
		p.tok = token{k, b.String()}
		return
	}
	p.tok = token{tokBad, "an unclosed quote"}
}

func (p *typeParser) isPunct(s string) bool { return p.tok.kind == tokPunct && p.tok.text == s }

func (p *typeParser) expect(s string) error {
	if !p.isPunct(s) {
		return fmt.Errorf("%q is expected and %q found", s, p.tok.text)
	}
	p.next()
	return nil
}

func (p *typeParser) parse() (*dataType, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxTypeDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxTypeDepth)
	}
	t, err := p.base()
	if err != nil {
		return nil, err
	}
	for wraps := 0; p.isPunct("["); wraps++ {
		if wraps > maxTypeDepth {
			return nil, fmt.Errorf("it is nested more than %d deep", maxTypeDepth)
		}
		p.next()
		if p.isPunct("]") {
			t = &dataType{kind: list, elem: t}
		} else {
			n, err := strconv.Atoi(p.tok.text)
			if p.tok.kind != tokWord || err != nil || n < 1 {
				return nil, fmt.Errorf("the size of an array is expected and %q found", p.tok.text)
			}
			t = &dataType{kind: array, size: n, elem: t}
			p.next()
		}
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (p *typeParser) base() (*dataType, error) {
	switch p.tok.kind {
	case tokName:
		if p.tok.text == "NULL" {
			p.next()
			return &dataType{kind: untyped}, nil
		}
		return nil, fmt.Errorf("%q is not a type that can be stored", p.tok.text)
	case tokWord:
	default:
		return nil, fmt.Errorf("a type is expected and %q found", p.tok.text)
	}
	word := strings.ToUpper(p.tok.text)
	p.next()
	switch word {
	case "STRUCT", "ROW", "UNION":
		return p.fields(word)
	case "MAP":
		return p.mapping()
	case "ENUM":
		return p.enum()
	case "LIST":
		return nil, fmt.Errorf("write a list as the element's type followed by []")
	case "DECIMAL", "NUMERIC", "DEC":
		return p.decimal()
	case "GEOMETRY":
		return p.geometry()
	}
	for _, more := range []string{"WITH TIME ZONE", "WITHOUT TIME ZONE", "PRECISION", "VARYING"} {
		p.optional(more, &word)
	}
	name, ok := canonical[word]
	if !ok {
		return nil, fmt.Errorf("%s is not a type that can be stored", word)
	}
	if p.isPunct("(") && (name == "VARCHAR" || name == "TIMESTAMP" || name == "BIT") {
		if _, err := p.numbers(1); err != nil { // VARCHAR(10): DuckDB ignores the length
			return nil, err
		}
	}
	return &dataType{name: name}, nil
}

// optional adds further words of a type's name where all of them follow.
func (p *typeParser) optional(words string, to *string) {
	saved := *p
	for _, w := range strings.Fields(words) {
		if p.tok.kind != tokWord || !strings.EqualFold(p.tok.text, w) {
			*p = saved
			return
		}
		p.next()
	}
	*to += " " + words
}

func (p *typeParser) numbers(most int) ([]int, error) {
	p.next()
	var list []int
	for {
		n, err := strconv.Atoi(p.tok.text)
		if p.tok.kind != tokWord || err != nil || n < 0 {
			return nil, fmt.Errorf("a number is expected and %q found", p.tok.text)
		}
		list = append(list, n)
		p.next()
		if !p.isPunct(",") || len(list) == most {
			return list, p.expect(")")
		}
		p.next()
	}
}

func (p *typeParser) decimal() (*dataType, error) {
	t := &dataType{kind: decimal, width: 18, scale: 3} // DuckDB's DECIMAL without arguments
	if !p.isPunct("(") {
		return t, nil
	}
	n, err := p.numbers(2)
	if err != nil {
		return nil, err
	}
	t.width, t.scale = n[0], 0
	if len(n) == 2 {
		t.scale = n[1]
	}
	if t.width < 1 || t.width > 38 || t.scale > t.width {
		return nil, fmt.Errorf("a DECIMAL has 1 to 38 digits, and no more of them after the point")
	}
	return t, nil
}

func (p *typeParser) geometry() (*dataType, error) {
	if p.isPunct("(") {
		p.next()
		crs := p.tok
		p.next()
		if crs.kind != tokText || !p.isPunct(")") {
			return nil, fmt.Errorf("a coordinate system is expected and %q found", crs.text)
		}
		p.next()
		return &dataType{name: "GEOMETRY(" + QuoteText(crs.text) + ")"}, nil
	}
	return &dataType{name: "GEOMETRY"}, nil
}

func (p *typeParser) mapping() (*dataType, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	key, err := p.parse()
	if err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	value, err := p.parse()
	if err != nil {
		return nil, err
	}
	return &dataType{kind: mapping, key: key, elem: value}, p.expect(")")
}

func (p *typeParser) enum() (*dataType, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	t := &dataType{kind: enum}
	for {
		if p.tok.kind != tokText {
			return nil, fmt.Errorf("a value of the ENUM is expected and %q found", p.tok.text)
		}
		t.values = append(t.values, p.tok.text)
		p.next()
		if !p.isPunct(",") {
			return t, p.expect(")")
		}
		p.next()
	}
}

// fields reads the fields of a STRUCT or UNION. A field of a struct may have no
// name; then its first word is a type and what follows it is no type.
func (p *typeParser) fields(word string) (*dataType, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	t := &dataType{kind: structure}
	if word == "UNION" {
		t.kind = union
	}
	for {
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		t.fields = append(t.fields, f)
		if !p.isPunct(",") {
			return t, p.expect(")")
		}
		p.next()
	}
}

func (p *typeParser) field() (typeField, error) {
	saved := *p
	var named error
	if p.tok.kind == tokWord || p.tok.kind == tokName {
		name := p.tok.text
		p.next()
		if p.tok.kind == tokWord || p.tok.kind == tokName {
			typ, err := p.parse()
			if err == nil {
				return typeField{name, typ}, nil
			}
			named = err
		}
	}
	// Not a name and a type: a type alone, such as TIME WITH TIME ZONE.
	*p = saved
	typ, err := p.parse()
	if err != nil && named != nil {
		err = named
	}
	return typeField{typ: typ}, err
}
