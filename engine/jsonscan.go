package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxJSONDepth bounds nesting, so that no document can exhaust the stack.
const maxJSONDepth = 1000

// jsonFile is what one pass over a JSON file found.
type jsonFile struct {
	root    shape // of its records
	records int
	layout  string // DuckDB's word for how records stand in it
	bom     bool
}

// scanJSON reads a whole file strictly: JSON as the standard has it, one object
// a record, no key twice in an object. each, where it is not nil, gets the text
// of every record with the line on which it begins.
func scanJSON(file, compression string, lines bool, each func(record []byte, line int)) (*jsonFile, error) {
	f, err := openFile(file, compression)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &jsonFile{layout: "newline_delimited"}
	s := &jsonScanner{}
	if lines {
		return out, s.scanLines(f, out, each)
	}
	// An array or a row of objects: records have no line of their own, and the
	// text is read as a whole.
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	text, out.bom = withoutBOM(text)
	s.text, s.line = text, 1
	return out, s.scanDocument(out, each)
}

func withoutBOM(text []byte) ([]byte, bool) {
	rest := bytes.TrimPrefix(text, []byte("\ufeff"))
	return rest, len(rest) < len(text)
}

// jsonScanner is a strict JSON reader that keeps nothing of what it reads but
// shapes. It counts lines for messages.
type jsonScanner struct {
	text   []byte
	pos    int
	line   int
	depth  int
	serial int
}

func (s *jsonScanner) fail(format string, args ...any) error {
	return &jsonProblem{s.line, fmt.Sprintf(format, args...)}
}

// scanLines reads one record a line; blank lines are nothing.
func (s *jsonScanner) scanLines(r io.Reader, out *jsonFile, each func([]byte, int)) error {
	br := bufio.NewReaderSize(r, 1<<18)
	var long []byte
	for number := 1; ; number++ {
		text, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], text...)
			for errors.Is(err, bufio.ErrBufferFull) {
				text, err = br.ReadSlice('\n')
				long = append(long, text...)
			}
			text = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if number == 1 {
			text, out.bom = withoutBOM(text)
		}
		s.text, s.pos, s.line = text, 0, number
		s.blank()
		if s.pos < len(s.text) {
			start := s.pos
			if perr := s.record(&out.root); perr != nil {
				return perr
			}
			out.records++
			if each != nil {
				each(s.text[start:s.pos], number)
			}
			s.blank()
			if s.pos < len(s.text) {
				return s.fail("text follows the record on its line: %s", s.near())
			}
		}
		if err != nil {
			return nil
		}
	}
}

// scanDocument reads an array of objects, or objects one after another.
func (s *jsonScanner) scanDocument(out *jsonFile, each func([]byte, int)) error {
	out.layout = "unstructured"
	s.blank()
	array := s.pos < len(s.text) && s.text[s.pos] == '['
	if array {
		out.layout = "array"
		s.pos++
	}
	for first := true; ; first = false {
		s.blank()
		switch {
		case s.pos >= len(s.text) && array:
			return s.fail("the array is never closed")
		case s.pos >= len(s.text):
			return nil
		case array && s.text[s.pos] == ']':
			s.pos++
			return s.end()
		case array && !first:
			if s.text[s.pos] != ',' {
				return s.fail("a comma or ] is expected before %s", s.near())
			}
			s.pos++
			s.blank()
		}
		start, line := s.pos, s.line
		if err := s.record(&out.root); err != nil {
			return err
		}
		out.records++
		if each != nil {
			each(s.text[start:s.pos], line)
		}
	}
}

func (s *jsonScanner) end() error {
	s.blank()
	if s.pos < len(s.text) {
		return s.fail("text follows the array: %s", s.near())
	}
	return nil
}

func (s *jsonScanner) record(root *shape) error {
	if s.pos >= len(s.text) || s.text[s.pos] != '{' {
		return s.fail("a record is an object; here stands %s", s.near())
	}
	return s.object(root)
}

// near is the beginning of what stands here, for messages.
func (s *jsonScanner) near() string {
	if s.pos >= len(s.text) {
		return "the end of the text"
	}
	rest := s.text[s.pos:]
	if i := bytes.IndexAny(rest, "\r\n"); i >= 0 {
		rest = rest[:i]
	}
	return fmt.Sprintf("%q", firstRunes(string(bytes.ToValidUTF8(rest, []byte("?"))), 20))
}

func (s *jsonScanner) blank() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		default:
			return
		}
		s.pos++
	}
}

// value reads one value into a shape; at is nil where nothing is kept of it.
func (s *jsonScanner) value(at *shape) error {
	if s.pos >= len(s.text) {
		return s.fail("a value is missing at the end of the text")
	}
	if at == nil {
		at = &shape{}
	}
	switch c := s.text[s.pos]; {
	case c == '{':
		return s.object(at)
	case c == '[':
		return s.array(at)
	case c == '"':
		at.kinds |= jsonString
		_, err := s.str()
		return err
	case c == '-' || isDigit(c):
		return s.number(at)
	case c == 't':
		return s.word("true", at, jsonBool)
	case c == 'f':
		return s.word("false", at, jsonBool)
	case c == 'n':
		return s.word("null", at, jsonNull)
	}
	return s.fail("no JSON value begins with %s", s.near())
}

func (s *jsonScanner) word(word string, at *shape, kind jsonKind) error {
	if !bytes.HasPrefix(s.text[s.pos:], []byte(word)) {
		return s.fail("no JSON value begins with %s", s.near())
	}
	s.pos += len(word)
	at.kinds |= kind
	return nil
}

func (s *jsonScanner) enter() error {
	if s.depth++; s.depth > maxJSONDepth {
		return s.fail("more than %d values lie in each other", maxJSONDepth)
	}
	return nil
}

func (s *jsonScanner) object(at *shape) error {
	at.kinds |= jsonObject
	if err := s.enter(); err != nil {
		return err
	}
	defer func() { s.depth-- }()
	s.serial++
	serial := s.serial
	var extra map[string]bool // keys of which no shape is kept
	s.pos++
	for first := true; ; first = false {
		s.blank()
		switch {
		case s.pos >= len(s.text):
			return s.fail("an object is never closed")
		case s.text[s.pos] == '}':
			s.pos++
			return nil
		case !first && s.text[s.pos] != ',':
			return s.fail("a comma or } is expected before %s", s.near())
		case !first:
			s.pos++
			s.blank()
		}
		if s.pos >= len(s.text) || s.text[s.pos] != '"' {
			return s.fail("a key in quotes is expected before %s", s.near())
		}
		raw, err := s.str()
		if err != nil {
			return err
		}
		key, err := keyText(raw)
		if err != nil {
			return s.fail("a key cannot be read: %v", err)
		}
		field := at.fields[string(key)]
		if field == nil {
			field = at.field(string(key))
		}
		twice := field != nil && field.serial == serial
		if field == nil {
			if twice = extra[string(key)]; extra == nil {
				extra = map[string]bool{}
			}
			extra[string(key)] = true
		} else {
			field.serial = serial
		}
		if twice {
			return s.fail("the key %q stands twice in one object", firstRunes(string(key), 60))
		}
		if s.blank(); s.pos >= len(s.text) || s.text[s.pos] != ':' {
			return s.fail("a colon is expected before %s", s.near())
		}
		s.pos++
		s.blank()
		kept := field
		if kept == nil {
			kept = &shape{}
		}
		if err := s.value(kept); err != nil {
			return err
		}
		if field == nil {
			at.odd, at.long = at.odd || kept.respelt(), at.long || kept.loses()
		}
	}
}

// keyText is a key without its quotes and escapes.
func keyText(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return []byte(text), err
}

func (s *jsonScanner) array(at *shape) error {
	at.kinds |= jsonArray
	if err := s.enter(); err != nil {
		return err
	}
	defer func() { s.depth-- }()
	if at.elem == nil {
		at.elem = &shape{}
	}
	s.pos++
	for first := true; ; first = false {
		s.blank()
		switch {
		case s.pos >= len(s.text):
			return s.fail("an array is never closed")
		case s.text[s.pos] == ']':
			s.pos++
			return nil
		case !first && s.text[s.pos] != ',':
			return s.fail("a comma or ] is expected before %s", s.near())
		case !first:
			s.pos++
			s.blank()
		}
		if err := s.value(at.elem); err != nil {
			return err
		}
	}
}

// str moves past a string and gives it with its quotes.
func (s *jsonScanner) str() ([]byte, error) {
	start := s.pos
	ascii := true
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			raw := s.text[start:s.pos]
			if !ascii && !utf8.Valid(raw) {
				return nil, s.fail("a text is not UTF-8: %q", firstRunes(string(raw), 40))
			}
			return raw, nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.fail("a control character or line break in a text")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, s.fail("a text is never closed")
}

// escape moves to the last character of an escape sequence.
func (s *jsonScanner) escape() error {
	if s.pos++; s.pos >= len(s.text) {
		return s.fail("a text is never closed")
	}
	switch s.text[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		high, err := s.unit()
		if err != nil || high < 0xD800 || high > 0xDFFF {
			return err
		}
		if high < 0xDC00 && bytes.HasPrefix(s.text[s.pos+1:], []byte(`\u`)) {
			s.pos += 2
			if low, err := s.unit(); err != nil || low >= 0xDC00 && low <= 0xDFFF {
				return err
			}
		}
		return s.fail("half of a surrogate pair stands alone")
	}
	return s.fail("there is no escape \\%c", s.text[s.pos])
}

// unit reads the four digits behind \u and stays at the last.
func (s *jsonScanner) unit() (int, error) {
	value := 0
	for range 4 {
		if s.pos++; s.pos >= len(s.text) || !isHex(s.text[s.pos]) {
			return 0, s.fail("\\u needs four hexadecimal digits")
		}
		digit, _ := strconv.ParseUint(string(s.text[s.pos]), 16, 8)
		value = value<<4 | int(digit)
	}
	return value, nil
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *jsonScanner) number(at *shape) error {
	start := s.pos
	if s.text[s.pos] == '-' {
		s.pos++
	}
	whole := s.digits()
	if whole == 0 || whole > 1 && s.text[s.pos-whole] == '0' {
		return s.fail("no number is written like %q", firstRunes(string(s.text[start:s.pos]), 30))
	}
	fraction := false
	if s.pos < len(s.text) && s.text[s.pos] == '.' {
		s.pos++
		if fraction = true; s.digits() == 0 {
			return s.fail("digits are expected after the point")
		}
	}
	if s.pos < len(s.text) && (s.text[s.pos] == 'e' || s.text[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.text) && (s.text[s.pos] == '+' || s.text[s.pos] == '-') {
			s.pos++
		}
		if fraction = true; s.digits() == 0 {
			return s.fail("digits are expected in the exponent")
		}
	}
	if fraction {
		at.fraction(s.text[start:s.pos])
	} else {
		at.integer(s.text[start:s.pos])
	}
	return nil
}

func (s *jsonScanner) digits() int {
	start := s.pos
	for s.pos < len(s.text) && isDigit(s.text[s.pos]) {
		s.pos++
	}
	return s.pos - start
}
