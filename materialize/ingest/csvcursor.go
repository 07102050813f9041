package ingest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"rbt/internal/diag"
)

// csvCursor turns rows into records of JSON text, so that the one encoder gives
// a row the same identity as the same record in any other format. The first
// row names the columns: a name is a key, or, where the declaration has such a
// path, keys joined with dots. An empty cell is null.
type csvCursor struct {
	in      *input
	file    int
	shift   uint
	size    int
	r       *csv.Reader
	tap     *tap
	columns []csvColumn
	tree    *csvNode
	pos     int64
	rejects []reject
	width   int
	dialect csvDialect
	skew    int64 // bytes before the first that the CSV reader sees
}

// csvColumn is what a column holds: the kind decides how a cell is written.
type csvColumn struct {
	known bool
	text  bool // a string whatever it looks like
	kind  kind
	raw   bool // JSON text: lists and json
}

// csvNode is the object that a row becomes.
type csvNode struct {
	keys []string
	subs []*csvNode // nil for a cell
	cols []int
}

// tap keeps what was read since the start of the row.
type tap struct {
	r     io.Reader
	buf   []byte
	start int64 // file offset of buf[0]
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	t.buf = append(t.buf, b[:n]...)
	return n, err
}

// cut returns the text between two offsets and forgets what is before the end.
func (t *tap) cut(from, to int64) []byte {
	text := bytes.Clone(t.buf[from-t.start : to-t.start])
	t.buf = append(t.buf[:0], t.buf[to-t.start:]...)
	t.start = to
	return text
}

// text skips the empty lines at the front of what lies between two offsets: they
// are no rows.
func (t *tap) text(from, to int64) int64 {
	for i, c := range t.buf[from-t.start : to-t.start] {
		if c != '\n' && c != '\r' {
			return from + int64(i)
		}
	}
	return from
}

// swapped gives the CSV reader, which knows one quote only, the file's own in
// its place, byte for byte, so that places stay what they are.
type swapped struct {
	r io.Reader
	d csvDialect
}

func (s *swapped) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	for i, c := range b[:n] {
		b[i] = s.d.swap(c)
	}
	return n, err
}

// own reports whether the dialect's quote is not the usual one.
func (d csvDialect) own() bool { return d.noQuote || d.quote != 0 && d.quote != '"' }

// Bytes that no text in UTF-8 holds: a file that has them is refused as before,
// since what stands for the one becomes the other.
const (
	byteForQuote = 0xFF
	byteForOther = 0xFE
)

// swap exchanges the file's quote and the usual one; without quotes, the usual
// one goes out of the way.
func (d csvDialect) swap(c byte) byte {
	switch {
	case d.noQuote && c == '"':
		return byteForQuote
	case d.noQuote && c == byteForQuote:
		return byteForOther
	case d.noQuote:
		return c
	case c == d.quote:
		return '"'
	case c == '"':
		return d.quote
	}
	return c
}

// cell gives a cell as the file has it.
func (d csvDialect) cell(text string) string {
	if !d.own() {
		return text
	}
	b := []byte(text)
	for i, c := range b {
		switch {
		case !d.noQuote:
			b[i] = d.swap(c)
		case c == byteForQuote:
			b[i] = '"'
		}
	}
	return string(b)
}

// newCSVCursor reads the header. The program's root is what a row is; nil where
// the type of a record is decided by one of its fields.
func newCSVCursor(in *input, file int, shift uint, size int, p *Program) (cursor, error) {
	root, d := p.root, p.csv
	c := &csvCursor{in: in, file: file, shift: shift, size: size, tap: &tap{r: in.r}, dialect: d}
	if head, _ := in.r.Peek(3); bytes.Equal(head, bom) {
		in.r.Discard(3)
		c.tap.start, c.skew = 3, 3
	}
	var text io.Reader = c.tap
	if d.own() {
		text = &swapped{r: text, d: d}
	}
	c.r = csv.NewReader(bufio.NewReader(text))
	c.r.Comma = cmp.Or(d.comma, ',')
	c.r.FieldsPerRecord = -1
	c.r.ReuseRecord = true
	if root == nil {
		return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "root_by needs records with keys of their own; a CSV file has rows of one type").
			WithHint("declare root: and one model a file format")
	}
	if d.noHeader {
		c.positional(root)
		return c, nil
	}
	header, err := c.r.Read()
	if err == io.EOF {
		return c, nil
	}
	if err != nil {
		return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name, Line: 1}, "the header cannot be read: %v", err)
	}
	for i := range header {
		header[i] = d.cell(header[i])
	}
	if err := c.named(header, root); err != nil {
		return nil, err
	}
	if p.unknown != unknownCapture && len(root.node.entries) > 0 && !slices.ContainsFunc(c.columns, func(col csvColumn) bool { return col.known }) {
		return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name, Line: 1}, "no column of the header is declared, not even %q", header[0]).
			WithHint("columns are separated by %q here: under `input`, options: {delimiter: \";\"} says what else does, and header: false that there is no header", string(c.r.Comma))
	}
	return c, nil
}

// named takes the columns as the header names them.
func (c *csvCursor) named(header []string, root *recType) error {
	at := diag.Pos{File: c.in.name, Line: 1}
	seen := map[string]bool{}
	c.tree = &csvNode{}
	for i, name := range header {
		if strings.Contains(name, "\r") {
			return diag.Errorf(diag.IngestInput, at, "the lines of the file end in a carriage return alone").
				WithHint("write them with line feeds; what is the header now holds %q", name)
		}
		if seen[name] {
			return diag.Errorf(diag.IngestInput, at, "the column %q stands twice in the header", name)
		}
		seen[strings.Clone(name)] = true
		path, column := csvTarget(&root.shape, root.node, strings.Clone(name))
		c.columns = append(c.columns, column)
		if !c.tree.put(path, i) {
			return diag.Errorf(diag.IngestInput, at, "the column %q names a value inside another column", name)
		}
	}
	c.width = len(header)
	return nil
}

// positional takes the root's fields for the columns of a file without header.
func (c *csvCursor) positional(root *recType) {
	c.tree = &csvNode{}
	for i := range root.fields {
		path, e := fieldKeys(root.node, i)
		c.columns = append(c.columns, csvKind(&root.shape, e))
		c.tree.put(path, i)
	}
	c.width = len(root.fields)
}

// fieldKeys gives the keys under which the i-th field of a record stands.
func fieldKeys(n *objNode, i int) ([]string, objEntry) {
	for _, e := range n.entries {
		switch {
		case e.kind == entryField && e.i == i:
			return []string{e.key}, e
		case e.kind == entrySub:
			if path, found := fieldKeys(e.sub, i); path != nil {
				return append([]string{e.key}, path...), found
			}
		}
	}
	return nil, objEntry{}
}

// csvTarget finds what a column's name means.
func csvTarget(s *shape, n *objNode, name string) ([]string, csvColumn) {
	if i, ok := n.lookup[name]; ok {
		return []string{name}, csvKind(s, n.entries[i])
	}
	for at := strings.IndexByte(name, '.'); at >= 0; {
		i, ok := n.lookup[name[:at]]
		if ok {
			e := n.entries[i]
			var path []string
			var column csvColumn
			switch e.kind {
			case entrySub:
				path, column = csvTarget(s, e.sub, name[at+1:])
			case entryRef:
				t := s.refs[e.i].target
				path, column = csvTarget(&t.shape, t.node, name[at+1:])
			}
			if column.known {
				return append([]string{name[:at]}, path...), column
			}
		}
		next := strings.IndexByte(name[at+1:], '.')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return []string{name}, csvColumn{text: true}
}

func csvKind(s *shape, e objEntry) csvColumn {
	switch e.kind {
	case entryField:
		t := s.fields[e.i].typ
		return csvColumn{known: true, kind: t.kind, raw: t.lists > 0 || t.kind == kJSON, text: t.lists == 0 && t.kind == kText}
	case entrySkip:
		return csvColumn{known: true, text: true}
	}
	return csvColumn{known: true, raw: true}
}

func (n *csvNode) put(path []string, column int) bool {
	for i, k := range n.keys {
		if k == path[0] {
			return len(path) > 1 && n.subs[i] != nil && n.subs[i].put(path[1:], column)
		}
	}
	n.keys = append(n.keys, path[0])
	if len(path) == 1 {
		n.subs, n.cols = append(n.subs, nil), append(n.cols, column)
		return true
	}
	sub := &csvNode{}
	n.subs, n.cols = append(n.subs, sub), append(n.cols, -1)
	return sub.put(path[1:], column)
}

func (c *csvCursor) broken() []reject {
	r := c.rejects
	c.rejects = nil
	return r
}

func (c *csvCursor) next(ctx context.Context, ch *chunk) error {
	*ch = chunk{file: c.file, data: ch.data[:0], base: int64(c.file)<<c.shift + c.pos, spans: ch.spans[:0], raw: ch.raw[:0]}
	for c.tree != nil && len(ch.data) < c.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := c.skew + c.r.InputOffset()
		row, err := c.r.Read()
		if err == io.EOF {
			break
		}
		to := c.skew + c.r.InputOffset()
		from = c.tap.text(from, to)
		if err != nil {
			var pe *csv.ParseError
			if !errors.As(err, &pe) {
				return c.in.unreadable(err)
			}
			msg := pe.Err.Error()
			if c.dialect.quote != 0 { // the CSV reader knows it as the usual one
				msg = strings.ReplaceAll(msg, `"`, string(rune(c.dialect.quote)))
			}
			c.reject(from, to, pe.StartLine, "the row cannot be read: "+msg)
			continue
		}
		line, _ := c.r.FieldPos(0)
		if len(row) != c.width {
			c.reject(from, to, line, fmt.Sprintf("the row has %d cells, the header %d", len(row), c.width))
			continue
		}
		s := span{start: len(ch.data), pos: c.pos, offset: from, length: to - from, line: int64(line), path: -1, index: -1, raw: len(ch.raw)}
		ch.raw = append(ch.raw, bytes.TrimRight(c.tap.cut(from, to), "\r\n")...)
		s.rawEnd = len(ch.raw)
		ch.data, _ = c.object(ch.data, c.tree, row)
		s.end = len(ch.data)
		c.pos += int64(s.end - s.start)
		ch.spans = append(ch.spans, s)
	}
	if len(ch.spans) == 0 {
		return io.EOF
	}
	return nil
}

func (c *csvCursor) reject(from, to int64, line int, msg string) {
	raw := bytes.TrimRight(c.tap.cut(from, to), "\r\n")
	c.rejects = append(c.rejects, reject{pos: int64(c.file)<<c.shift + c.pos, line: int64(line), offset: from, length: to - from,
		reason: reasonSyntax, msg: msg, raw: raw})
	c.pos++ // keeps the places of rejects apart
}

// object writes a row; empty is true where nothing in it has a value.
func (c *csvCursor) object(dst []byte, n *csvNode, row []string) (out []byte, empty bool) {
	dst = append(dst, '{')
	empty = true
	for i, k := range n.keys {
		mark := len(dst)
		if !empty {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, k), ':')
		none := false
		if n.subs[i] != nil {
			dst, none = c.object(dst, n.subs[i], row)
		} else if cell := c.dialect.cell(row[n.cols[i]]); cell == c.dialect.null {
			none = true
		} else {
			dst = appendCell(dst, cell, c.columns[n.cols[i]])
		}
		if none {
			dst = dst[:mark]
			continue
		}
		empty = false
	}
	return append(dst, '}'), empty
}

// appendCell writes a cell as the JSON that its column's type reads: what is
// no number in a column of numbers stays a string, which the encoder refuses.
func appendCell(dst []byte, cell string, c csvColumn) []byte {
	switch {
	case c.text:
		return appendJSONString(dst, cell)
	case c.raw:
		if _, ok := validJSON([]byte(cell)); ok {
			return append(dst, cell...)
		}
		return appendJSONString(dst, cell)
	}
	switch c.kind {
	case kBool:
		if low := strings.ToLower(cell); low == "true" || low == "false" {
			return append(dst, low...)
		}
	case kInt, kUint, kFloat, kDouble, kDecimal:
		lit := csvNumber(cell)
		p := parser{}
		p.reset([]byte(lit), true)
		if _, ok := p.number(); ok && p.i == len(lit) {
			return append(dst, lit...)
		}
	}
	return appendJSONString(dst, cell)
}

// csvNumber takes off what CSV writers put before numbers and JSON does not
// know: a plus sign and leading zeros.
func csvNumber(cell string) string {
	lit := strings.TrimSpace(cell)
	sign := ""
	if strings.HasPrefix(lit, "-") {
		sign, lit = "-", lit[1:]
	} else {
		lit = strings.TrimPrefix(lit, "+")
	}
	for len(lit) > 1 && lit[0] == '0' && lit[1] >= '0' && lit[1] <= '9' {
		lit = lit[1:]
	}
	if strings.HasPrefix(lit, ".") {
		lit = "0" + lit
	}
	return sign + lit
}
