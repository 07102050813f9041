package ingest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kind is the shape of a scalar value inside a worker.
type kind uint8

const (
	kBool kind = iota + 1
	kInt
	kUint
	kFloat
	kDouble
	kDecimal
	kText
	kDate
	kTime
	kTimestamp
	kTimestampTZ
	kUUID
	kJSON
)

// scalar is a declared type: a kind with its width, and how many times [] it
// is wrapped in.
type scalar struct {
	kind  kind
	bits  uint8 // kInt, kUint
	prec  uint8 // kDecimal
	scale uint8
	lists uint8  // nesting of []
	sql   string // DuckDB's name of the element type
}

// maxLists is the deepest [] nesting of one column: a matrix of matrices is
// beyond what anyone keeps in a column.
const maxLists = 4

// SQL gives DuckDB's name of the whole type.
func (s scalar) SQL() string { return s.sql + strings.Repeat("[]", int(s.lists)) }

func (s scalar) elem() scalar { s.lists = 0; return s }

func (s scalar) isFloat() bool { return s.kind == kFloat || s.kind == kDouble }

var decimalPattern = regexp.MustCompile(`^(?:decimal|numeric)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)$`)

// typeNames lists the words that parseType takes, for hints.
func typeNames() []string {
	return []string{
		"boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint",
		"float", "double", "decimal(18,3)", "varchar", "date", "time", "timestamp", "timestamptz", "uuid", "json",
	}
}

// parseType reads a declared type; the error says what is wrong with it.
func parseType(text string) (scalar, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	lists := 0
	for strings.HasSuffix(t, "[]") {
		t = strings.TrimSpace(strings.TrimSuffix(t, "[]"))
		lists++
	}
	if lists > maxLists {
		return scalar{}, fmt.Errorf("type %s nests lists deeper than %d", text, maxLists)
	}
	s, ok := namedType(t)
	if !ok {
		m := decimalPattern.FindStringSubmatch(t)
		switch {
		case m != nil:
			prec, _ := strconv.Atoi(m[1])
			scale := 0
			if m[2] != "" {
				scale, _ = strconv.Atoi(m[2])
			}
			if prec < 1 || prec > 38 || scale > prec {
				return scalar{}, fmt.Errorf("type %s is outside decimal(1..38, 0..precision)", text)
			}
			s = scalar{kind: kDecimal, prec: uint8(prec), scale: uint8(scale), sql: fmt.Sprintf("DECIMAL(%d,%d)", prec, scale)}
		case t == "hugeint" || t == "uhugeint" || t == "int128":
			return scalar{}, fmt.Errorf("type %s has no exact form in Parquet; use decimal(38,0)", text)
		default:
			return scalar{}, fmt.Errorf("unknown type %q", text)
		}
	}
	s.lists = uint8(lists)
	return s, nil
}

func namedType(t string) (scalar, bool) {
	switch t {
	case "boolean", "bool":
		return scalar{kind: kBool, sql: "BOOLEAN"}, true
	case "tinyint", "int1":
		return scalar{kind: kInt, bits: 8, sql: "TINYINT"}, true
	case "smallint", "int2", "short":
		return scalar{kind: kInt, bits: 16, sql: "SMALLINT"}, true
	case "integer", "int", "int4":
		return scalar{kind: kInt, bits: 32, sql: "INTEGER"}, true
	case "bigint", "int8", "long":
		return scalar{kind: kInt, bits: 64, sql: "BIGINT"}, true
	case "utinyint":
		return scalar{kind: kUint, bits: 8, sql: "UTINYINT"}, true
	case "usmallint":
		return scalar{kind: kUint, bits: 16, sql: "USMALLINT"}, true
	case "uinteger":
		return scalar{kind: kUint, bits: 32, sql: "UINTEGER"}, true
	case "ubigint":
		return scalar{kind: kUint, bits: 64, sql: "UBIGINT"}, true
	case "float", "real", "float4":
		return scalar{kind: kFloat, sql: "FLOAT"}, true
	case "double", "float8":
		return scalar{kind: kDouble, sql: "DOUBLE"}, true
	case "varchar", "text", "string":
		return scalar{kind: kText, sql: "VARCHAR"}, true
	case "date":
		return scalar{kind: kDate, sql: "DATE"}, true
	case "time":
		return scalar{kind: kTime, sql: "TIME"}, true
	case "timestamp", "datetime":
		return scalar{kind: kTimestamp, sql: "TIMESTAMP"}, true
	case "timestamptz", "timestamp with time zone":
		return scalar{kind: kTimestampTZ, sql: "TIMESTAMP WITH TIME ZONE"}, true
	case "uuid":
		return scalar{kind: kUUID, sql: "UUID"}, true
	case "json":
		return scalar{kind: kJSON, sql: "JSON"}, true
	case "decimal", "numeric":
		return scalar{kind: kDecimal, prec: 18, scale: 3, sql: "DECIMAL(18,3)"}, true
	}
	return scalar{}, false
}
