package ingest

import (
	"encoding/binary"
	"math"
)

// columnBuf holds the values of one shard column as the Parquet encoding PLAIN
// has them, so that a flush has little to do but to compress.
type columnBuf struct {
	col  column
	rows int
	data []byte
	offs []uint32 // texts: where each row's value starts in data
	def  []byte   // definition levels: one a row, or one an entry of lists; nil where required
	rep  []byte   // lists: repetition levels
	ents []uint32 // lists: first entry of each row
	wide int      // bytes of a value; 0 for texts
}

func newColumnBuf(c column) *columnBuf {
	return &columnBuf{col: c, wide: plainWidth(c.typ)}
}

// plainWidth is the size of one value in data; booleans are packed when they
// are written.
func plainWidth(t scalar) int {
	switch t.kind {
	case kBool:
		return 1
	case kInt, kUint:
		if t.bits < 64 {
			return 4
		}
		return 8
	case kFloat, kDate:
		return 4
	case kDouble, kTime, kTimestamp, kTimestampTZ:
		return 8
	case kDecimal:
		switch {
		case t.prec <= 9:
			return 4
		case t.prec <= 18:
			return 8
		}
		return 16
	case kUUID:
		return 16
	}
	return 0
}

func (c *columnBuf) size() int {
	return len(c.data) + 4*len(c.offs) + len(c.def) + len(c.rep) + 4*len(c.ents)
}

// present notes that the next value is there; the caller appends it.
func (c *columnBuf) present() {
	if !c.col.required {
		c.def = append(c.def, 1)
	}
	c.rows++
}

func (c *columnBuf) null() {
	c.def = append(c.def, 0)
	if c.col.typ.lists > 0 {
		c.ents = append(c.ents, uint32(len(c.rep)))
		c.rep = append(c.rep, 0)
	} else if c.wide == 0 {
		c.offs = append(c.offs, uint32(len(c.data)))
	}
	c.rows++
}

func (c *columnBuf) int64(v int64) {
	c.present()
	c.data = binary.LittleEndian.AppendUint64(c.data, uint64(v))
}

func (c *columnBuf) int32(v int32) {
	c.present()
	c.data = binary.LittleEndian.AppendUint32(c.data, uint32(v))
}

func (c *columnBuf) bool(v bool) {
	c.present()
	b := byte(0)
	if v {
		b = 1
	}
	c.data = append(c.data, b)
}

func (c *columnBuf) id(v *[16]byte) {
	c.present()
	c.data = append(c.data, v[:]...)
}

func (c *columnBuf) text(v []byte) {
	c.present()
	c.offs = append(c.offs, uint32(len(c.data)))
	c.data = binary.LittleEndian.AppendUint32(c.data, uint32(len(v)))
	c.data = append(c.data, v...)
}

// slot appends a parsed scalar, or a null.
func (c *columnBuf) slot(s *slot) {
	if s.st != slotSet {
		c.null()
		return
	}
	if c.wide == 0 {
		c.text(s.b)
		return
	}
	c.present()
	if c.wide == 8 {
		c.data = binary.LittleEndian.AppendUint64(c.data, s.n)
		return
	}
	c.data = appendPlain(c.data, &c.col.typ, c.wide, s)
}

// appendPlain writes one scalar as PLAIN has it.
func appendPlain(dst []byte, t *scalar, wide int, s *slot) []byte {
	switch {
	case t.kind == kDecimal && wide == 16:
		dst = binary.BigEndian.AppendUint64(dst, s.hi)
		return binary.BigEndian.AppendUint64(dst, s.n)
	case t.kind == kUUID:
		return append(dst, s.b[:16]...)
	case t.kind == kText || t.kind == kJSON:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s.b)))
		return append(dst, s.b...)
	case t.kind == kFloat:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(math.Float64frombits(s.n))))
	case wide == 1:
		return append(dst, byte(s.n))
	case wide == 4:
		return binary.LittleEndian.AppendUint32(dst, uint32(s.n))
	}
	return binary.LittleEndian.AppendUint64(dst, s.n)
}

// list appends a parsed list.
func (c *columnBuf) list(v *listValue) {
	c.ents = append(c.ents, uint32(len(c.rep)))
	c.def = append(c.def, v.def...)
	c.rep = append(c.rep, v.rep...)
	c.data = append(c.data, v.data...)
	c.rows++
}

// truncate takes back every row from rows on.
func (c *columnBuf) truncate(rows int) {
	if rows == c.rows {
		return
	}
	switch {
	case c.col.typ.lists > 0:
		c.truncateLists(rows)
	case c.wide == 0:
		c.data = c.data[:c.offs[rows]]
		c.offs = c.offs[:rows]
		if !c.col.required {
			c.def = c.def[:rows]
		}
	default:
		gone := c.rows - rows
		if !c.col.required {
			gone = 0
			for _, d := range c.def[rows:] {
				gone += int(d)
			}
			c.def = c.def[:rows]
		}
		c.data = c.data[:len(c.data)-gone*c.wide]
	}
	c.rows = rows
}

func (c *columnBuf) truncateLists(rows int) {
	first := int(c.ents[rows])
	full := byte(2*c.col.typ.lists + 1)
	gone := 0
	for _, d := range c.def[first:] {
		if d == full {
			gone++
		}
	}
	if c.wide > 0 {
		c.data = c.data[:len(c.data)-gone*c.wide]
	} else {
		// Texts of different lengths: walk from the start of the last kept value.
		keep := 0
		for _, d := range c.def[:first] {
			if d == full {
				keep++
			}
		}
		at := 0
		for ; keep > 0; keep-- {
			at += 4 + int(binary.LittleEndian.Uint32(c.data[at:]))
		}
		c.data = c.data[:at]
	}
	c.def, c.rep, c.ents = c.def[:first], c.rep[:first], c.ents[:rows]
}

func (c *columnBuf) clear() {
	c.rows = 0
	c.data, c.offs, c.def, c.rep, c.ents = c.data[:0], c.offs[:0], c.def[:0], c.rep[:0], c.ents[:0]
}

// reserve makes room for as much again where little is left. By itself append
// grows large slices by a quarter and so copies what is in them four times over.
func (c *columnBuf) reserve() {
	c.data, c.def, c.rep = roomy(c.data), roomy(c.def), roomy(c.rep)
	c.offs, c.ents = roomy(c.offs), roomy(c.ents)
}

func roomy[T any](s []T) []T {
	const small = 4096 // up to here append doubles too
	if len(s) > small && cap(s)-len(s) < len(s)/8 {
		// Not slices.Grow, which clears, and so touches, all of the room.
		grown := make([]T, len(s), 2*len(s))
		copy(grown, s)
		return grown
	}
	return s
}

// tableBuf is the rows of one table that a worker has not written yet.
type tableBuf struct {
	t    *table
	rows int
	cols []*columnBuf
	runs []run // of numbered tables: what chunks the rows come from
}

// run is consecutive rows of one chunk.
type run struct {
	pos   int64 // of the chunk; orders chunks as their records
	rows  int
	first int64 // rank of the first row, from 1; known when all chunks are read
}

// ran notes that the rows from before on come from the chunk at pos.
func (b *tableBuf) ran(pos int64, before int) {
	if b.t.numbered && b.rows > before {
		b.runs = append(b.runs, run{pos: pos, rows: b.rows - before})
	}
}

func newTableBuf(t *table) *tableBuf {
	b := &tableBuf{t: t}
	for _, c := range t.cols {
		b.cols = append(b.cols, newColumnBuf(c))
	}
	return b
}

func (b *tableBuf) size() int {
	n := 0
	for _, c := range b.cols {
		n += c.size()
	}
	return n
}

func (b *tableBuf) truncate(rows int) {
	if rows == b.rows {
		return
	}
	for _, c := range b.cols {
		c.truncate(rows)
	}
	b.rows = rows
}

func (b *tableBuf) clear() {
	for _, c := range b.cols {
		c.clear()
	}
	b.rows, b.runs = 0, nil
}
