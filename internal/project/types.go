package project

import (
	"slices"
	"strings"
)

// typeNames are the words with which DuckDB's types begin, sorted; the list is
// never changed. What follows a word, as in TIME WITH TIME ZONE, is left to the
// engine.
var typeNames = []string{
	"ARRAY", "BIGINT", "BIGNUM", "BINARY", "BIT", "BITSTRING", "BLOB", "BOOL", "BOOLEAN", "BPCHAR", "BYTEA", "CHAR", "CHARACTER",
	"DATE", "DATETIME", "DEC", "DECIMAL", "DOUBLE", "ENUM", "FLOAT", "FLOAT4", "FLOAT8", "GEOMETRY", "GUID", "HUGEINT",
	"INT", "INT1", "INT128", "INT16", "INT2", "INT32", "INT4", "INT64", "INT8", "INTEGER", "INTEGRAL", "INTERVAL", "JSON",
	"LIST", "LOGICAL", "LONG", "MAP", "NULL", "NUMERIC", "NVARCHAR", "OID", "REAL", "ROW", "SHORT", "SIGNED",
	"SMALLINT", "STRING", "STRUCT", "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_S",
	"TIMESTAMP_US", "TIMETZ", "TIME_NS", "TINYINT", "TYPE", "UBIGINT", "UHUGEINT", "UINT128", "UINT16", "UINT32", "UINT64", "UINT8",
	"UINTEGER", "UNION", "USMALLINT", "UTINYINT", "UUID", "VARBINARY", "VARCHAR", "VARIANT", "VARINT",
}

// typeWords walks over a type that typeProblem accepts.
type typeWords struct {
	text    string
	pos     int
	unknown string // the first word that is no type
}

// unknownType gives the first word of a type that stands where DuckDB expects a
// type's name and is none, "" if there is none. Quoted names may be types that
// the user made, and where the shape is not understood nothing is said: the
// engine has the last word.
func unknownType(text string) string {
	w := typeWords{text: text}
	w.typ()
	return w.unknown
}

// next gives the next word, quoted text or sign, "" at the end.
func (w *typeWords) next() string {
	for w.pos < len(w.text) && w.text[w.pos] == ' ' {
		w.pos++
	}
	start := w.pos
	switch {
	case start == len(w.text):
		return ""
	case strings.IndexByte("()[],", w.text[start]) >= 0:
		w.pos++
	case w.text[start] == '"' || w.text[start] == '\'':
		w.pos = quotedEnd(w.text, start) + 1
	default:
		for w.pos < len(w.text) && strings.IndexByte(" ()[],\"'", w.text[w.pos]) < 0 {
			w.pos++
		}
	}
	return w.text[start:w.pos]
}

// peek is next without moving on.
func (w *typeWords) peek() string {
	pos := w.pos
	defer func() { w.pos = pos }()
	return w.next()
}

// typ walks over a type, up to the comma or bracket that ends it.
func (w *typeWords) typ() {
	word := strings.ToUpper(w.next())
	if word == "" {
		return
	}
	if w.unknown == "" && isWord(word) && !slices.Contains(typeNames, word) {
		w.unknown = word
	}
	nested := (word == "STRUCT" || word == "ROW" || word == "UNION" || word == "MAP") && w.peek() == "("
	if nested {
		w.parts(word != "MAP")
	}
	for depth := 0; ; {
		switch w.peek() {
		case "":
			return
		case "(", "[":
			depth++
		case ",":
			if depth == 0 {
				return
			}
		case ")", "]":
			if depth == 0 {
				return
			}
			depth--
		}
		w.next()
	}
}

// parts walks over the types in brackets, each behind the name of a field where
// there is one.
func (w *typeWords) parts(fields bool) {
	w.next() // (
	for {
		if fields {
			pos := w.pos
			name := w.next()
			// A type alone has no name; neither has TIME WITH TIME ZONE, whose second
			// word is no type.
			after := strings.ToUpper(w.peek())
			if !isName(name) || !isName(after) || after == "WITH" || after == "WITHOUT" || after == "PRECISION" || after == "VARYING" {
				w.pos = pos
			}
		}
		w.typ()
		if w.next() != "," {
			return
		}
	}
}

// isWord reports whether a token is a bare word, isName whether it is one or a
// quoted name.
func isWord(token string) bool {
	return token != "" && !strings.ContainsAny(token[:1], `()[],"'`)
}

func isName(token string) bool { return isWord(token) || strings.HasPrefix(token, `"`) }
