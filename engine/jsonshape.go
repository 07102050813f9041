package engine

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// jsonKind is a set of kinds of JSON values.
type jsonKind uint8

const (
	jsonNull jsonKind = 1 << iota
	jsonBool
	jsonInteger
	jsonFraction // a number with a point or an exponent
	jsonString
	jsonObject
	jsonArray
)

// Limits of what becomes a STRUCT or a list; what goes beyond stays JSON.
const (
	maxStructKeys  = 200 // DuckDB 1.5 itself takes more for a MAP
	maxDepthOfType = 24
)

// shape is what all values of one place in JSON documents have in common. It
// grows with the keys, never with the number of values.
type shape struct {
	kinds    jsonKind
	negative bool
	digits   int // bits of the largest integer, without sign; 64 stands for exactly up to 2^64-1
	beyond   bool
	inexact  bool // an integer that no double holds
	long     bool // a fraction with more digits than a double keeps
	odd      bool // a number that the engine would spell otherwise, or one under a key that is not kept
	fields   map[string]*shape
	order    []string
	wide     bool // too many keys, or keys that differ in case only
	elem     *shape
	serial   int // of the last object in which this key stood
}

// merge adds what another shape knows.
func (s *shape) merge(o *shape) {
	s.kinds |= o.kinds
	s.negative = s.negative || o.negative
	s.digits = max(s.digits, o.digits)
	s.beyond, s.inexact, s.long, s.wide = s.beyond || o.beyond, s.inexact || o.inexact, s.long || o.long, s.wide || o.wide
	s.odd = s.odd || o.odd
	for _, key := range o.order {
		if f := s.field(key); f != nil {
			f.merge(o.fields[key])
		}
	}
	if o.elem != nil {
		if s.elem == nil {
			s.elem = &shape{}
		}
		s.elem.merge(o.elem)
	}
}

// field gives the shape under a key, a new one where there is none; nil where
// there are too many.
func (s *shape) field(key string) *shape {
	if f := s.fields[key]; f != nil {
		return f
	}
	if s.fields == nil {
		s.fields = map[string]*shape{}
	}
	if len(s.order) > maxStructKeys {
		s.wide = true
		return nil
	}
	f := &shape{}
	s.fields[key] = f
	s.order = append(s.order, key)
	return f
}

// integer notes an integer as it is written.
func (s *shape) integer(text []byte) {
	s.kinds |= jsonInteger
	digits := text
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
		s.negative = true
		s.odd = s.odd || digits[0] == '0'
	}
	if len(digits) <= 15 { // below 2^53, the common case
		s.digits = max(s.digits, 53)
		return
	}
	n, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		s.beyond = true
		return
	}
	bits := n.BitLen()
	if negative && n.TrailingZeroBits() == uint(bits-1) {
		bits-- // -2^63 fits 63 bits
	}
	s.digits = max(s.digits, bits)
	s.beyond = s.beyond || bits > 126
	if _, acc := new(big.Float).SetInt(n).Float64(); acc != big.Exact {
		s.inexact = true
	}
}

// fraction notes a number with a point or an exponent.
func (s *shape) fraction(text []byte) {
	s.kinds |= jsonFraction
	s.odd = s.odd || !usuallySpelt(text)
	if len(text) > 17 && significant(text) > 17 {
		s.long = true
	}
	if f, err := strconv.ParseFloat(string(text), 64); err != nil && f != 0 {
		s.long = true // out of the range of a double
	}
}

// usuallySpelt reports whether the engine, which reads a fraction as a double, is
// sure to spell it as it is written. What is left out is only slower.
func usuallySpelt(text []byte) bool {
	const most = 15 // digits that every double keeps
	whole, part, ok := bytes.Cut(bytes.TrimPrefix(text, []byte("-")), []byte("."))
	switch {
	case !ok || len(whole)+len(part) > most || bytes.ContainsAny(part, "eE"):
		return false
	case len(part) == 1:
		return true
	}
	return part[len(part)-1] != '0' && (whole[0] != '0' || part[0] != '0')
}

// respelt reports whether the engine would spell a number at this place or below
// otherwise than it is written.
func (s *shape) respelt() bool {
	if s.odd || s.elem != nil && s.elem.respelt() {
		return true
	}
	for _, key := range s.order {
		if s.fields[key].respelt() {
			return true
		}
	}
	return false
}

// significant counts the digits of a number that matter.
func significant(text []byte) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(string(text)), "e")
	return len(strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0"))
}

// sqlType is the type that holds every value without loss; JSON where there is
// no other.
func (s *shape) sqlType() string {
	if s.depth() > maxDepthOfType {
		return "JSON"
	}
	return s.typeOf()
}

// depth is how many objects and arrays lie in each other here.
func (s *shape) depth() int {
	deepest := 0
	if s.elem != nil {
		deepest = 1 + s.elem.depth()
	}
	for _, f := range s.fields {
		deepest = max(deepest, 1+f.depth())
	}
	return deepest
}

func (s *shape) typeOf() string {
	switch s.kinds &^ jsonNull {
	case jsonBool:
		return "BOOLEAN"
	case jsonString:
		return "VARCHAR"
	case jsonInteger:
		return s.integerType()
	case jsonFraction:
		return s.fractionType()
	case jsonFraction | jsonInteger:
		if s.inexact {
			return "JSON"
		}
		return s.fractionType()
	case jsonArray:
		if s.elem == nil || s.elem.kinds&^jsonNull == 0 {
			return "JSON"
		}
		return s.elem.typeOf() + "[]"
	case jsonObject:
		return s.structType()
	}
	return "JSON"
}

func (s *shape) integerType() string {
	switch {
	case s.beyond:
		return "JSON"
	case s.digits <= 63:
		return "BIGINT"
	case s.digits <= 64 && !s.negative:
		return "UBIGINT"
	}
	return "HUGEINT"
}

func (s *shape) fractionType() string {
	if s.long {
		return "JSON"
	}
	return "DOUBLE"
}

func (s *shape) structType() string {
	if s.wide || len(s.order) == 0 {
		return "JSON"
	}
	seen := map[string]bool{}
	parts := make([]string, len(s.order))
	for i, key := range s.order {
		lower := strings.ToLower(key)
		if key == "" || seen[lower] {
			return "JSON"
		}
		seen[lower] = true
		parts[i] = quoteIdent(key) + " " + s.fields[key].typeOf()
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")"
}

// loses reports whether the engine, which reads fractions as doubles, would lose
// digits of a value at this place or below.
func (s *shape) loses() bool {
	if s.long || s.elem != nil && s.elem.loses() {
		return true
	}
	for _, key := range s.order {
		if s.fields[key].loses() {
			return true
		}
	}
	return false
}

// jsonProblem is what is wrong with a JSON text, at a line of its file.
type jsonProblem struct {
	line int
	msg  string
}

// Error gives the problem.
func (p *jsonProblem) Error() string { return fmt.Sprintf("line %d: %s", p.line, p.msg) }
