package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"

	"github.com/klauspost/compress/s2"
)

// A shard is a Parquet file of the plainest kind: PLAIN values, no statistics. Workers hold their columns in that encoding
// already, so the general writers of arrow-go, which build arrays first and
// cost as much as parsing, have nothing to give here. Shards never leave
// staging; what is published is written by the SQL engine.

// Numbers of the Parquet format (parquet.thrift).
const (
	pqBoolean   = 0
	pqInt32     = 1
	pqInt64     = 2
	pqFloat     = 4
	pqDouble    = 5
	pqByteArray = 6
	pqFixed     = 7

	pqRequired = 0
	pqOptional = 1
	pqRepeated = 2

	pqPlain = 0
	pqRLE   = 3

	pqUncompressed = 0
	pqSnappy       = 1
)

// thrift writes the compact protocol, as much of it as Parquet's metadata
// needs.
type thrift struct {
	b    []byte
	last []int16
}

func (t *thrift) uvarint(v uint64) { t.b = binary.AppendUvarint(t.b, v) }

func (t *thrift) begin() { t.last = append(t.last, 0) }

func (t *thrift) end() {
	t.b = append(t.b, 0)
	t.last = t.last[:len(t.last)-1]
}

func (t *thrift) field(id int16, typ byte) {
	top := len(t.last) - 1
	t.b = append(t.b, byte(id-t.last[top])<<4|typ)
	t.last[top] = id
}

func (t *thrift) i32(id int16, v int64) {
	t.field(id, 5)
	t.uvarint(uint64(v<<1) ^ uint64(v>>63))
}

func (t *thrift) i64(id int16, v int64) {
	t.field(id, 6)
	t.uvarint(uint64(v<<1) ^ uint64(v>>63))
}

func (t *thrift) i8(id int16, v byte) {
	t.field(id, 3)
	t.b = append(t.b, v)
}

func (t *thrift) bool(id int16, v bool) {
	if v {
		t.field(id, 1)
	} else {
		t.field(id, 2)
	}
}

func (t *thrift) text(id int16, s string) {
	t.field(id, 8)
	t.rawText(s)
}

func (t *thrift) rawText(s string) {
	t.uvarint(uint64(len(s)))
	t.b = append(t.b, s...)
}

func (t *thrift) list(id int16, typ byte, n int) {
	t.field(id, 9)
	if n < 15 {
		t.b = append(t.b, byte(n)<<4|typ)
		return
	}
	t.b = append(t.b, 0xf0|typ)
	t.uvarint(uint64(n))
}

func (t *thrift) structField(id int16) {
	t.field(id, 12)
	t.begin()
}

// physical gives the Parquet type of a scalar and its length where fixed.
func physical(s scalar) (typ, length int64) {
	switch s.kind {
	case kBool:
		return pqBoolean, 0
	case kFloat:
		return pqFloat, 0
	case kDouble:
		return pqDouble, 0
	case kText, kJSON:
		return pqByteArray, 0
	case kUUID:
		return pqFixed, 16
	case kDecimal:
		if s.prec > 18 {
			return pqFixed, 16
		}
	}
	if plainWidth(s) == 4 {
		return pqInt32, 0
	}
	return pqInt64, 0
}

func (t *thrift) leaf(name string, s scalar, repetition int64) {
	typ, length := physical(s)
	t.begin()
	t.i32(1, typ)
	if length > 0 {
		t.i32(2, length)
	}
	t.i32(3, repetition)
	t.text(4, name)
	// DuckDB (1.5.6) goes by the older converted type for all but UUID and
	// timestamps.
	if converted, ok := convertedType(s); ok {
		t.i32(6, converted)
	}
	if s.kind == kDecimal {
		t.i32(7, int64(s.scale))
		t.i32(8, int64(s.prec))
	}
	t.logical(s)
	t.end()
}

// convertedType is the number of the ConvertedType of a scalar.
func convertedType(s scalar) (int64, bool) {
	switch s.kind {
	case kText, kJSON:
		return 0, true
	case kDecimal:
		return 5, true
	case kDate:
		return 6, true
	case kTime:
		return 8, true
	case kUint:
		return 11 + int64(bits.TrailingZeros8(s.bits/8)), true
	case kInt:
		return 15 + int64(bits.TrailingZeros8(s.bits/8)), true
	}
	return 0, false
}

// logical writes the union LogicalType.
func (t *thrift) logical(s scalar) {
	id := map[kind]int16{kText: 1, kJSON: 1, kDecimal: 5, kDate: 6, kTime: 7, kTimestamp: 8, kTimestampTZ: 8, kInt: 10, kUint: 10, kUUID: 14}[s.kind]
	if id == 0 {
		return
	}
	t.structField(10)
	t.structField(id)
	switch s.kind {
	case kDecimal:
		t.i32(1, int64(s.scale))
		t.i32(2, int64(s.prec))
	case kTime, kTimestamp, kTimestampTZ:
		t.bool(1, s.kind == kTimestampTZ)
		t.structField(2)
		t.structField(2) // microseconds
		t.end()
		t.end()
	case kInt, kUint:
		t.i8(1, s.bits)
		t.bool(2, s.kind == kInt)
	}
	t.end()
	t.end()
}

// schemaColumn writes a column's elements: a leaf, or three-level lists.
func (t *thrift) schemaColumn(c column) (elements int) {
	if c.typ.lists == 0 {
		rep := int64(pqOptional)
		if c.required {
			rep = pqRequired
		}
		t.leaf(c.name, c.typ, rep)
		return 1
	}
	name := c.name
	for range c.typ.lists {
		t.begin()
		t.i32(3, pqOptional)
		t.text(4, name)
		t.i32(5, 1)
		t.i32(6, 3)
		t.end()
		t.begin()
		t.i32(3, pqRepeated)
		t.text(4, "list")
		t.i32(5, 1)
		t.end()
		name = "element"
		elements += 2
	}
	t.leaf(name, c.typ.elem(), pqOptional)
	return elements + 1
}

func (t *thrift) columnPath(c column) {
	n := 1 + 2*int(c.typ.lists)
	t.list(3, 8, n)
	t.rawText(c.name)
	for range c.typ.lists {
		t.rawText("list")
		t.rawText("element")
	}
}

// chunkInfo is what the footer says of one column chunk.
type chunkInfo struct {
	offset, size, plain int64
	values              int64
	codec               int64
}

type groupInfo struct {
	rows   int64
	chunks []chunkInfo
	runs   []run
}

// shardWriter writes the shard of one table by one worker.
type shardWriter struct {
	t       *table
	path    string
	f       *os.File
	off     int64
	rows    int64
	groups  []groupInfo
	page    []byte // reused
	packed  []byte // reused
	scratch thrift
}

func createShard(path string, t *table) (*shardWriter, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create shard: %w", err)
	}
	w := &shardWriter{t: t, path: path, f: f}
	return w, w.write([]byte("PAR1"))
}

func (w *shardWriter) write(b []byte) error {
	n, err := w.f.Write(b)
	w.off += int64(n)
	if err != nil {
		return fmt.Errorf("write shard %s: %w", w.path, err)
	}
	return nil
}

// flush writes the buffered rows as one row group and clears the buffer.
func (w *shardWriter) flush(b *tableBuf) error {
	if b.rows == 0 {
		return nil
	}
	g := groupInfo{rows: int64(b.rows), runs: b.runs}
	for _, c := range b.cols {
		if c.rows != b.rows {
			panic(fmt.Sprintf("ingest: column %s of %s holds %d rows of %d", c.col.name, w.t.name, c.rows, b.rows))
		}
		info, err := w.chunk(c)
		if err != nil {
			return err
		}
		g.chunks = append(g.chunks, info)
	}
	w.groups = append(w.groups, g)
	w.rows += g.rows
	b.clear()
	return nil
}

// maxPage bounds a page: its size is a 32-bit number in the format.
const maxPage = 1<<31 - 1

// pageBytes is about how much a page holds: what a page is made of, compressed
// into and unpacked to stays in the caches, and the reader uses the same memory for
// one page after the other.
const pageBytes = 128 << 10

func (w *shardWriter) chunk(c *columnBuf) (chunkInfo, error) {
	info := chunkInfo{offset: w.off, codec: pqSnappy}
	if c.col.typ.kind == kUUID {
		info.codec = pqUncompressed // hashes do not compress
	}
	if c.col.typ.lists > 0 {
		w.page = appendLevels(w.page[:0], c.rep, int(c.col.typ.lists))
		w.page = appendLevels(w.page, c.def, 2*int(c.col.typ.lists)+1)
		w.page = appendValues(w.page, c.col.typ, c.data)
		err := w.writePage(&info, w.page, len(c.rep))
		return info, err
	}
	rows := max(1, c.rows*pageBytes/max(1, len(c.data)))
	for from, at := 0, 0; from < c.rows; from += rows {
		to := min(from+rows, c.rows)
		end := c.end(from, to, at)
		body := c.data[at:end]
		if !c.col.required || c.col.typ.kind == kBool {
			w.page = w.page[:0]
			if !c.col.required {
				w.page = appendLevels(w.page, c.def[from:to], 1)
			}
			w.page = appendValues(w.page, c.col.typ, body)
			body = w.page
		}
		if err := w.writePage(&info, body, to-from); err != nil {
			return info, err
		}
		at = end
	}
	return info, nil
}

// end is where the values of the rows [from, to) end in data, which begin at at.
func (c *columnBuf) end(from, to, at int) int {
	switch {
	case to == c.rows:
		return len(c.data)
	case c.wide == 0:
		return int(c.offs[to])
	case c.col.required:
		return to * c.wide
	}
	return at + bytes.Count(c.def[from:to], []byte{1})*c.wide
}

// appendValues writes values as a page has them.
func appendValues(dst []byte, t scalar, values []byte) []byte {
	if t.kind == kBool {
		return appendPackedBools(dst, values)
	}
	return append(dst, values...)
}

// headRoom is more than the header of a page takes.
const headRoom = 64

// writePage writes one page of the column chunk that info tells of.
func (w *shardWriter) writePage(info *chunkInfo, page []byte, values int) error {
	if len(page) > maxPage {
		return fmt.Errorf("write shard %s: a page of %d bytes is beyond the format", w.path, len(page))
	}
	body := page
	if info.codec == pqSnappy {
		// Behind room for the header, so that both are written at once.
		w.packed = slices.Grow(w.packed[:0], headRoom+s2.MaxEncodedLen(len(page)))
		body = s2.EncodeSnappy(w.packed[headRoom:cap(w.packed)], page)
	}
	h := &w.scratch
	h.b = h.b[:0]
	h.begin()
	h.i32(1, 0)
	h.i32(2, int64(len(page)))
	h.i32(3, int64(len(body)))
	h.structField(5)
	h.i32(1, int64(values))
	h.i32(2, pqPlain)
	h.i32(3, pqRLE)
	h.i32(4, pqRLE)
	h.end()
	h.end()
	info.values += int64(values)
	info.size += int64(len(h.b) + len(body))
	info.plain += int64(len(h.b) + len(page))
	if info.codec == pqSnappy {
		start := headRoom - len(h.b)
		copy(w.packed[start:headRoom], h.b)
		return w.write(w.packed[start : headRoom+len(body)])
	}
	if err := w.write(h.b); err != nil {
		return err
	}
	return w.write(body)
}

// rank writes the column of ranks, whose runs have got their numbers.
func (w *shardWriter) rank() error {
	for i := range w.groups {
		g := &w.groups[i]
		w.page = w.page[:0]
		for _, r := range g.runs {
			for n := range r.rows {
				w.page = binary.LittleEndian.AppendUint64(w.page, uint64(r.first+int64(n)))
			}
		}
		if int64(len(w.page)) != 8*g.rows {
			return checkFailed("the chunks of a shard of %s have %d rows, it holds %d", w.t.name, len(w.page)/8, g.rows)
		}
		info := chunkInfo{offset: w.off, codec: pqUncompressed}
		if err := w.writePage(&info, w.page, int(g.rows)); err != nil {
			return err
		}
		g.chunks = append(g.chunks, info)
	}
	return nil
}

// close writes the footer.
func (w *shardWriter) close() error {
	cols := w.t.stored()
	t := &thrift{}
	t.begin()
	t.i32(1, 1)
	schema := &thrift{}
	n := 1
	schema.begin()
	schema.text(4, "shard")
	schema.i32(5, int64(len(cols)))
	schema.end()
	for _, c := range cols {
		n += schema.schemaColumn(c)
	}
	t.list(2, 12, n)
	t.b = append(t.b, schema.b...)
	t.i64(3, w.rows)
	t.list(4, 12, len(w.groups))
	for _, g := range w.groups {
		w.group(t, g, cols)
	}
	t.text(6, "rbt ingest shard")
	t.end()
	footer := binary.LittleEndian.AppendUint32(t.b, uint32(len(t.b)))
	footer = append(footer, "PAR1"...)
	if err := w.write(footer); err != nil {
		return err
	}
	if err := w.f.Close(); err != nil {
		return fmt.Errorf("close shard %s: %w", w.path, err)
	}
	return nil
}

func (w *shardWriter) group(t *thrift, g groupInfo, cols []column) {
	var total int64
	t.begin()
	t.list(1, 12, len(g.chunks))
	for i, c := range g.chunks {
		total += c.plain
		typ, _ := physical(cols[i].typ)
		t.begin()
		t.i64(2, c.offset)
		t.structField(3)
		t.i32(1, typ)
		t.list(2, 5, 2)
		t.uvarint(pqPlain << 1)
		t.uvarint(pqRLE << 1)
		t.columnPath(cols[i])
		t.i32(4, c.codec)
		t.i64(5, c.values)
		t.i64(6, c.plain)
		t.i64(7, c.size)
		t.i64(9, c.offset)
		t.end()
		t.end()
	}
	t.i64(2, total)
	t.i64(3, g.rows)
	t.end()
}

// abandon closes the file of a load that has failed.
func (w *shardWriter) abandon() error {
	if err := w.f.Close(); err != nil && err != io.EOF {
		return fmt.Errorf("close shard %s: %w", w.path, err)
	}
	return nil
}

// appendLevels writes levels in the hybrid encoding: one run where all are
// equal, else one bit-packed stretch.
func appendLevels(dst, levels []byte, highest int) []byte {
	width := 0
	for 1<<width <= highest {
		width++
	}
	mark := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if len(levels) > 0 && bytes.Count(levels, levels[:1]) == len(levels) {
		dst = binary.AppendUvarint(dst, uint64(len(levels))<<1)
		dst = append(dst, levels[0])
	} else {
		groups := (len(levels) + 7) / 8
		dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
		var acc uint64
		nbits := 0
		for i := range groups * 8 {
			if i < len(levels) {
				acc |= uint64(levels[i]) << nbits
			}
			for nbits += width; nbits >= 8; nbits -= 8 {
				dst = append(dst, byte(acc))
				acc >>= 8
			}
		}
	}
	binary.LittleEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-4))
	return dst
}

func appendPackedBools(dst, values []byte) []byte {
	for len(values) > 0 {
		n := min(8, len(values))
		var b byte
		for i, v := range values[:n] {
			b |= v << i
		}
		dst = append(dst, b)
		values = values[n:]
	}
	return dst
}
