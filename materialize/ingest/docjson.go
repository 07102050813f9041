package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// pathStep is one step of a record path: a key, or every element of an array.
type pathStep struct {
	key string
	all bool
}

// parseRecordPath reads $, $.data[*], $[*].items[*] and the like.
func parseRecordPath(text string) ([]pathStep, error) {
	if text == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, fmt.Errorf("%q does not start with $", text)
	}
	var steps []pathStep
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, "[*]"):
			steps, rest = append(steps, pathStep{all: true}), rest[3:]
		case strings.HasPrefix(rest, `."`):
			end := strings.IndexByte(rest[2:], '"')
			if end < 0 {
				return nil, fmt.Errorf("%q has an open quote", text)
			}
			steps, rest = append(steps, pathStep{key: rest[2 : 2+end]}), rest[3+end:]
		case strings.HasPrefix(rest, "."):
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				return nil, fmt.Errorf("%q has an empty key", text)
			}
			if rest[1] == '*' {
				return nil, fmt.Errorf("%q asks for every key of an object, which cannot be; [*] is every item of a list, .\"*\" a key that is called so", text)
			}
			steps, rest = append(steps, pathStep{key: rest[1 : 1+end]}), rest[1+end:]
		default:
			return nil, fmt.Errorf("%q has %q, where .key or [*] may stand", text, rest)
		}
	}
	return steps, nil
}

func recordPathText(steps []pathStep) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range steps {
		if s.all {
			b.WriteString("[*]")
		} else {
			fmt.Fprintf(&b, ".%s", s.key)
		}
	}
	return b.String()
}

// docCursor finds the records inside JSON documents while they stream by. It
// walks the envelope strictly, and takes each record by its outer brackets
// alone: what is inside is the encoder's to judge.
type docCursor struct {
	in    *input
	file  int
	shift uint
	size  int
	steps []pathStep

	buf   []byte
	i     int
	start int64 // file offset of buf[0]
	line  int64
	ended bool
	err   error

	stack   []docLevel
	begun   bool
	fresh   bool // a newline stands between the last document and here
	found   bool // the record path was met in this document
	rejects []reject
	done    bool
	skipped []byte
}

// docLevel is one open object or array of the envelope.
type docLevel struct {
	step  int // of the path; what is below is step+1
	array bool
	index int64
	path  string
	first bool
	keys  map[string]bool
}

func newDocCursor(in *input, file int, shift uint, size int, steps []pathStep) *docCursor {
	d := &docCursor{in: in, file: file, shift: shift, size: size, steps: steps, line: 1, fresh: true}
	if head, _ := in.r.Peek(3); bytes.Equal(head, bom) {
		in.r.Discard(3)
		d.start = 3
	}
	return d
}

func (d *docCursor) broken() []reject {
	r := d.rejects
	d.rejects = nil
	return r
}

// fill reads more; false at the end of the file.
func (d *docCursor) fill() bool {
	if d.ended {
		return false
	}
	d.start += int64(d.i)
	d.buf = append(d.buf[:0], d.buf[d.i:]...)
	d.i = 0
	n := len(d.buf)
	if cap(d.buf) < n+readBuffer {
		d.buf = append(make([]byte, 0, 2*n+readBuffer), d.buf...)
	}
	m, err := d.in.r.Read(d.buf[n:cap(d.buf)])
	d.buf = d.buf[:n+m]
	if err != nil {
		d.ended = true
		if err != io.EOF {
			d.err = d.in.unreadable(err)
		}
	}
	return m > 0 || (!d.ended && d.fill())
}

// peek skips white space and returns the next byte, 0 at the end.
func (d *docCursor) peek() byte {
	for {
		for d.i < len(d.buf) {
			c := d.buf[d.i]
			switch c {
			case '\n':
				d.line++
				d.fresh = true
			case ' ', '\t', '\r':
			default:
				return c
			}
			d.i++
		}
		if !d.fill() {
			return 0
		}
	}
}

func (d *docCursor) offset() int64 { return d.start + int64(d.i) }

// take moves the value at the cursor to dst, found by its brackets and quotes.
func (d *docCursor) take(dst []byte) []byte {
	depth := 0
	scalar := false
	for {
		if d.i >= len(d.buf) && !d.fill() {
			return dst
		}
		b := d.buf[d.i:]
		n := 0
		for n < len(b) {
			c := b[n]
			switch c {
			case '"':
				if scalar {
					d.i += n
					return append(dst, b[:n]...)
				}
				dst = append(dst, b[:n]...)
				d.i += n
				dst = d.takeString(dst)
				if depth == 0 {
					return dst
				}
				b, n = d.buf[d.i:], 0
				continue
			case '{', '[':
				if scalar {
					d.i += n
					return append(dst, b[:n]...)
				}
				depth++
			case '}', ']':
				if depth--; depth <= 0 {
					if depth == 0 {
						n++
					}
					d.i += n
					return append(dst, b[:n]...)
				}
			case '\n':
				if depth == 0 {
					d.i += n
					return append(dst, b[:n]...)
				}
				d.line++
			case ',', ' ', '\t', '\r', ':':
				if depth == 0 {
					if n == 0 && !scalar {
						n = 1
					}
					d.i += n
					return append(dst, b[:n]...)
				}
			default:
				scalar = depth == 0
			}
			n++
		}
		dst = append(dst, b...)
		d.i = len(d.buf)
	}
}

// takeString moves a string with its quotes.
func (d *docCursor) takeString(dst []byte) []byte {
	dst = append(dst, '"')
	d.i++
	for {
		if d.i >= len(d.buf) && !d.fill() {
			return dst
		}
		end := stringEnd(d.buf, d.i)
		dst = append(dst, d.buf[d.i:end]...)
		d.i = end
		if end == len(d.buf) {
			continue
		}
		c := d.buf[end]
		dst = append(dst, c)
		d.i++
		switch c {
		case '"':
			return dst
		case '\\':
			if d.i >= len(d.buf) && !d.fill() {
				return dst
			}
			dst = append(dst, d.buf[d.i])
			if d.buf[d.i] == '\n' {
				d.line++
			}
			d.i++
		case '\n':
			d.line++
		}
	}
}

func (d *docCursor) next(ctx context.Context, c *chunk) error {
	*c = chunk{file: d.file, data: c.data[:0], base: int64(d.file) << d.shift, line: d.line, spans: c.spans[:0], plain: true}
	for !d.done && len(c.data) < d.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.step(c)
		if d.err != nil {
			return d.err
		}
	}
	if d.offset() >= 1<<d.shift {
		return diag.Errorf(diag.IngestInput, diag.Pos{File: d.in.name}, "the file is larger than %d bytes, which is the most beside so many files", int64(1)<<d.shift)
	}
	if len(c.spans) == 0 {
		return io.EOF
	}
	return nil
}

// step goes on by one value of the envelope or one record.
func (d *docCursor) step(c *chunk) {
	ch := d.peek()
	if len(d.stack) == 0 {
		d.document(c, ch)
		return
	}
	top := &d.stack[len(d.stack)-1]
	if top.array {
		d.inArray(c, top, ch)
	} else {
		d.inObject(c, top, ch)
	}
}

// document begins a document, or ends the file.
func (d *docCursor) document(c *chunk, ch byte) {
	switch {
	case d.begun && !d.found:
		d.missing()
	case ch == 0 && d.i >= len(d.buf):
		d.done = true
		return
	case d.begun && !d.fresh:
		d.fail("another document starts on the line of the one before")
		return
	}
	if d.done || (ch == 0 && d.i >= len(d.buf)) {
		d.done = true
		return
	}
	d.begun, d.fresh, d.found = true, false, false
	d.value(c, 0, ch, "$", 0)
}

// missing notes a document in which the record path leads nowhere.
func (d *docCursor) missing() {
	d.found = true
	d.rejects = append(d.rejects, reject{pos: int64(d.file)<<d.shift + d.offset(), line: d.line, offset: d.offset(), path: recordPathText(d.steps),
		reason: reasonMismatch, msg: "the document has nothing at the record path " + recordPathText(d.steps)})
}

// fail ends the file: without its structure nobody knows where records start.
func (d *docCursor) fail(format string, args ...any) {
	raw := d.buf[d.i:min(len(d.buf), d.i+maxRaw)]
	d.rejects = append(d.rejects, reject{pos: int64(d.file)<<d.shift + d.offset(), line: d.line, offset: d.offset(), path: "$",
		reason: reasonSyntax, msg: fmt.Sprintf(format, args...) + "; the rest of the file is not read", raw: bytes.Clone(raw)})
	d.done, d.found = true, true
}

func (d *docCursor) unexpected(ch byte, want string) {
	if ch == 0 && d.i >= len(d.buf) {
		d.fail("the file ends where %s is expected", want)
		return
	}
	r, _ := utf8.DecodeRune(d.buf[d.i:])
	d.fail("found %q where %s is expected", r, want)
}

// value handles the value at the cursor, which path step `step` applies to.
func (d *docCursor) value(c *chunk, step int, ch byte, path string, index int64) {
	if step == len(d.steps) {
		d.found = true
		if len(d.steps) == 0 && ch == '[' {
			// A record is an object, so an array where records are can only be
			// a list of them.
			d.push(docLevel{step: step, array: true, path: "$", first: true})
			return
		}
		d.record(c, ch, path, index)
		return
	}
	s := d.steps[step]
	switch {
	case s.all && ch == '[':
		d.push(docLevel{step: step, array: true, path: path, first: true})
	case !s.all && ch == '{':
		d.push(docLevel{step: step, path: path, first: true, keys: map[string]bool{}})
	case ch == 'n':
		d.found = true
		d.skipValue(ch)
	default:
		d.skipValue(ch)
	}
}

func (d *docCursor) push(l docLevel) {
	d.i++
	d.stack = append(d.stack, l)
	if l.array && l.step+1 >= len(d.steps) {
		d.found = true
	}
}

func (d *docCursor) pop() {
	d.i++
	d.stack = d.stack[:len(d.stack)-1]
}

// member steps over what stands before the next member of the open array or
// object, and gives the byte that it starts with; false where there is none.
func (d *docCursor) member(top *docLevel, ch, end byte) (byte, bool) {
	switch {
	case ch == end:
		d.pop()
		return 0, false
	case top.first:
		top.first = false
	case ch != ',':
		d.unexpected(ch, fmt.Sprintf("',' or '%c'", end))
		return 0, false
	default:
		d.i++
		ch = d.peek()
	}
	return ch, true
}

func (d *docCursor) inArray(c *chunk, top *docLevel, ch byte) {
	ch, ok := d.member(top, ch, ']')
	if !ok {
		return
	}
	index := top.index
	top.index++
	path, next := top.path, top.step+1
	if top.step == len(d.steps) { // elements of a bare $
		d.record(c, ch, path, index)
		return
	}
	if next < len(d.steps) {
		path = fmt.Sprintf("%s[%d]", path, index)
		index = -1
	}
	d.value(c, next, ch, path, index)
}

func (d *docCursor) inObject(c *chunk, top *docLevel, ch byte) {
	ch, ok := d.member(top, ch, '}')
	if !ok {
		return
	}
	if ch != '"' {
		d.unexpected(ch, "a key in double quotes")
		return
	}
	d.skipped = d.takeString(d.skipped[:0])
	p := parser{}
	p.reset(d.skipped, false)
	key, ok := p.str()
	if !ok {
		d.fail("%s", p.fault.msg)
		return
	}
	if top.keys[string(key)] {
		d.fail("the key %q stands twice in one object", shown(key))
		return
	}
	top.keys[string(key)] = true
	if ch = d.peek(); ch != ':' {
		d.unexpected(ch, "':'")
		return
	}
	d.i++
	ch = d.peek()
	if string(key) == d.steps[top.step].key {
		d.value(c, top.step+1, ch, top.path+"."+string(key), -1)
		return
	}
	d.skipValue(ch)
}

// skipValue reads over a value of the envelope and checks it.
func (d *docCursor) skipValue(ch byte) {
	if ch == 0 || bytes.IndexByte([]byte(",:]}"), ch) >= 0 {
		d.unexpected(ch, "a value")
		return
	}
	line := d.line
	d.skipped = d.take(d.skipped[:0])
	p := parser{}
	p.reset(d.skipped, false)
	if !p.skip() || !p.end() {
		d.line = line
		d.fail("%s", p.fault.msg)
	}
}

// record moves the record at the cursor into the chunk. index is its place in
// an array, -1 outside of one.
func (d *docCursor) record(c *chunk, ch byte, path string, index int64) {
	if (ch == 0 && d.i >= len(d.buf)) || bytes.IndexByte([]byte(",:]}"), ch) >= 0 {
		d.unexpected(ch, "a record")
		return
	}
	s := span{start: len(c.data), pos: d.offset(), offset: d.offset(), line: d.line, index: index}
	if len(d.stack) == 0 {
		s.index = -1
	}
	if n := len(c.paths); n == 0 || c.paths[n-1] != path {
		c.paths = append(c.paths, path)
	}
	s.path = len(c.paths) - 1
	c.data = d.take(c.data)
	s.end, s.length = len(c.data), d.offset()-s.offset
	c.spans = append(c.spans, s)
	d.fresh = false
}
