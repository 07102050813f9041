package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is the deepest nesting of objects and arrays that is read, inside
// skipped values as well. It bounds the recursion of the parser; data of a
// greater depth is an attack or a mistake, and becomes a reject.
const maxDepth = 1000

// Reasons of rejects, as they stand in _rejects.reason.
const (
	reasonSyntax     = "syntax"
	reasonUTF8       = "invalid_utf8"
	reasonSurrogate  = "lone_surrogate"
	reasonDuplicate  = "duplicate_key"
	reasonDepth      = "too_deep"
	reasonMismatch   = "type_mismatch"
	reasonRange      = "out_of_range"
	reasonNotFinite  = "not_finite"
	reasonRequired   = "missing_required"
	reasonUnknown    = "unknown_field"
	reasonUnknownRec = "unknown_type"
	reasonTooLarge   = "too_large"
	reasonConflict   = "metadata_conflict"
)

// fault is why a record cannot be loaded. path is built innermost first while
// the parser returns, so that good records pay nothing for it.
type fault struct {
	reason string
	msg    string
	at     int // offset in the parsed text
	path   []string
}

// parser reads one JSON text strictly as RFC 8259 has it, in one pass and
// without building values. It never reads outside b.
type parser struct {
	b       []byte
	i       int
	depth   int
	utf8OK  bool // b is known to be valid UTF-8
	lenient bool // duplicate keys in skipped values are let through
	fault   fault
	num     number   // the last that was read
	arena   []byte   // decoded strings; valid until the next reset
	keys    [][]byte // stack of unknown keys per open object
}

// reset starts a new text.
func (p *parser) reset(b []byte, utf8OK bool) {
	p.b, p.i, p.depth, p.utf8OK = b, 0, 0, utf8OK
	p.arena = p.arena[:0]
	p.keys = p.keys[:0]
}

// fail notes a fault; it returns false so that callers can return it.
func (p *parser) fail(reason, format string, args ...any) bool {
	p.fault = fault{reason: reason, msg: fmt.Sprintf(format, args...), at: p.i}
	return false
}

// under adds an outer path element to the fault.
func (p *parser) under(elem string) bool {
	p.fault.path = append(p.fault.path, elem)
	return false
}

func (p *parser) unexpected(want string) bool {
	if p.i >= len(p.b) {
		return p.fail(reasonSyntax, "the text ends where %s is expected", want)
	}
	r, n := utf8.DecodeRune(p.b[p.i:])
	if r == utf8.RuneError && n <= 1 {
		return p.fail(reasonUTF8, "byte 0x%02x is not UTF-8", p.b[p.i])
	}
	return p.fail(reasonSyntax, "found %q where %s is expected", r, want)
}

// space skips white space and returns the next byte, 0 at the end.
func (p *parser) space() byte {
	for p.i < len(p.b) {
		c := p.b[p.i]
		if c > ' ' || (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
			return c
		}
		p.i++
	}
	return 0
}

func (p *parser) enter() bool {
	p.depth++
	if p.depth > maxDepth {
		return p.fail(reasonDepth, "nested deeper than %d", maxDepth)
	}
	return true
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// stringEnd returns the index of the first byte at or after i that ends plain
// text in a string: a quote, a backslash or a control character; len(b) if none.
func stringEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		q := x ^ (lowBits * '"')
		s := x ^ (lowBits * '\\')
		m := ((q - lowBits) &^ q) | ((s - lowBits) &^ s) | ((x - lowBits*0x20) &^ x)
		if m &= highBits; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
		i++
	}
	return i
}

// str reads a string whose opening quote is at p.i. The result lies in the
// text itself or in the arena.
func (p *parser) str() ([]byte, bool) {
	start := p.i + 1
	end := stringEnd(p.b, start)
	if end < len(p.b) && p.b[end] == '"' {
		p.i = end + 1
		s := p.b[start:end]
		if !p.utf8OK && !utf8.Valid(s) {
			p.i = start
			return nil, p.fail(reasonUTF8, "a string is not valid UTF-8")
		}
		return s, true
	}
	return p.escaped(start, end)
}

// escaped goes on with a string that holds an escape at end, or is broken.
func (p *parser) escaped(start, end int) ([]byte, bool) {
	mark := len(p.arena)
	for {
		p.arena = append(p.arena, p.b[start:end]...)
		if end >= len(p.b) {
			p.i = end
			return nil, p.fail(reasonSyntax, "a string is not closed")
		}
		switch c := p.b[end]; {
		case c == '"':
			p.i = end + 1
			s := p.arena[mark:len(p.arena):len(p.arena)]
			if !p.utf8OK && !utf8.Valid(s) {
				return nil, p.fail(reasonUTF8, "a string is not valid UTF-8")
			}
			return s, true
		case c < 0x20:
			p.i = end
			return nil, p.fail(reasonSyntax, "control character 0x%02x in a string", c)
		}
		p.i = end
		if !p.escape() {
			return nil, false
		}
		start = p.i
		end = stringEnd(p.b, start)
	}
}

// escape decodes the escape at p.i into the arena.
func (p *parser) escape() bool {
	if p.i+1 >= len(p.b) {
		return p.fail(reasonSyntax, "a string ends in an escape")
	}
	c := p.b[p.i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicodeEscape()
	default:
		return p.fail(reasonSyntax, "unknown escape \\%c in a string", rune(c))
	}
	p.arena = append(p.arena, c)
	p.i += 2
	return true
}

func (p *parser) unicodeEscape() bool {
	r, ok := hex4(p.b, p.i+2)
	if !ok {
		return p.fail(reasonSyntax, "\\u is not followed by four hex digits")
	}
	next := p.i + 6
	if utf16.IsSurrogate(r) {
		if next+1 >= len(p.b) || p.b[next] != '\\' || p.b[next+1] != 'u' {
			return p.fail(reasonSurrogate, "\\u%04x is half of a surrogate pair", r)
		}
		low, ok := hex4(p.b, next+2)
		if !ok {
			return p.fail(reasonSyntax, "\\u is not followed by four hex digits")
		}
		both := utf16.DecodeRune(r, low)
		if both == utf8.RuneError {
			return p.fail(reasonSurrogate, "\\u%04x is half of a surrogate pair", r)
		}
		r, next = both, next+6
	}
	p.arena = utf8.AppendRune(p.arena, r)
	p.i = next
	return true
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// word reads true, false or null, given by its text.
func (p *parser) word(w string) bool {
	if len(p.b)-p.i < len(w) || string(p.b[p.i:p.i+len(w)]) != w {
		return p.fail(reasonSyntax, "unknown word; a JSON value is an object, an array, a string, a number, true, false or null")
	}
	p.i += len(w)
	return true
}

// skip reads any value and checks it wholly.
func (p *parser) skip() bool {
	switch c := p.space(); c {
	case '{':
		return p.skipObject()
	case '[':
		return p.skipArray()
	case '"':
		_, ok := p.str()
		return ok
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	default:
		if c == '-' || (c >= '0' && c <= '9') {
			_, ok := p.number()
			return ok
		}
		return p.unexpected("a value")
	}
}

func (p *parser) skipArray() bool {
	if !p.enter() {
		return false
	}
	p.i++
	if p.space() == ']' {
		p.i++
		p.depth--
		return true
	}
	for n := 0; ; n++ {
		if !p.skip() {
			return p.under(fmt.Sprintf("[%d]", n))
		}
		switch p.space() {
		case ',':
			p.i++
		case ']':
			p.i++
			p.depth--
			return true
		default:
			return p.unexpected("',' or ']'")
		}
	}
}

func (p *parser) skipObject() bool {
	if !p.enter() {
		return false
	}
	p.i++
	if p.space() == '}' {
		p.i++
		p.depth--
		return true
	}
	seen := p.newKeys()
	for {
		if p.space() != '"' {
			return p.unexpected("a key in double quotes")
		}
		key, ok := p.str()
		if !ok {
			return false
		}
		if !p.lenient && !seen.add(p, key) {
			return p.fail(reasonDuplicate, "the key %q stands twice in one object", key)
		}
		if p.space() != ':' {
			return p.unexpected("':'")
		}
		p.i++
		if !p.skip() {
			return p.under(string(key))
		}
		switch p.space() {
		case ',':
			p.i++
		case '}':
			p.i++
			p.depth--
			seen.done(p)
			return true
		default:
			return p.unexpected("',' or '}'")
		}
	}
}

// keySet finds repeated keys of one object: by comparing while there are few,
// by a map when there are many, so that no object costs a square.
type keySet struct {
	mark int
	big  map[string]struct{}
}

// fewKeys is where comparing key by key gets slower than a map.
const fewKeys = 24

func (p *parser) newKeys() keySet { return keySet{mark: len(p.keys)} }

func (s *keySet) add(p *parser, key []byte) bool {
	if s.big != nil {
		if _, ok := s.big[string(key)]; ok {
			return false
		}
		s.big[string(key)] = struct{}{}
		return true
	}
	own := p.keys[s.mark:]
	for _, k := range own {
		if bytes.Equal(k, key) {
			return false
		}
	}
	p.keys = append(p.keys, key)
	if len(own) >= fewKeys {
		s.big = make(map[string]struct{}, 4*fewKeys)
		for _, k := range p.keys[s.mark:] {
			s.big[string(k)] = struct{}{}
		}
	}
	return true
}

func (s *keySet) done(p *parser) { p.keys = p.keys[:s.mark] }

// end checks that nothing but white space follows.
func (p *parser) end() bool {
	if p.space() != 0 || p.i < len(p.b) {
		return p.unexpected("the end of the record")
	}
	return true
}

// validJSON reports whether b is one JSON text as RFC 8259 has it. Repeated
// keys are grammatical and pass; records refuse them.
func validJSON(b []byte) (fault, bool) {
	p := parser{lenient: true}
	p.reset(b, utf8.Valid(b))
	if !p.skip() || !p.end() {
		return p.fault, false
	}
	return fault{}, true
}
