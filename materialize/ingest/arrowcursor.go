package ingest

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"rbt/internal/diag"
)

// batches is what Arrow IPC and Parquet have in common: record batches one
// after another. The batch belongs to the reader until the next call.
type batches interface {
	Next() bool
	RecordBatch() arrow.RecordBatch
	Err() error
}

// arrowCursor turns the rows of record batches into records of JSON text. A row
// has no place by bytes; its line is its ordinal, from 1.
type arrowCursor struct {
	in      *input
	file    int
	shift   uint
	size    int
	batches batches
	texts   []textual
	batch   arrow.RecordBatch
	writers []jsonWriter
	row     int
	ordinal int64
	pos     int64
}

// arrowMagic opens the file form of Arrow IPC; what follows it is the stream
// form, whose end comes before the footer.
const arrowMagic = "ARROW1\x00\x00"

func newArrowCursor(in *input, file int, shift uint, size int) (cursor, error) {
	if head, _ := in.r.Peek(len(arrowMagic)); string(head) == arrowMagic {
		in.r.Discard(len(arrowMagic))
	}
	r, err := ipc.NewReader(in.r, ipc.WithAllocator(memory.NewGoAllocator()))
	if err != nil {
		return nil, in.unreadable(err)
	}
	return newBatchCursor(in, file, shift, size, r, r.Schema(), nil)
}

// parquetBatch is how many rows of a Parquet file are decoded at once.
const parquetBatch = 8192

func newParquetCursor(ctx context.Context, in *input, i int, shift uint, size int) (cursor, error) {
	pf, err := file.NewParquetReader(in.f)
	if err != nil {
		return nil, in.unreadable(err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: parquetBatch}, memory.NewGoAllocator())
	if err != nil {
		return nil, in.unreadable(err)
	}
	r, err := fr.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return nil, in.unreadable(err)
	}
	in.random = true
	return newBatchCursor(in, i, shift, size, r, r.Schema(), textualFields(fr.Manifest.Fields, pf.MetaData().Schema))
}

// textual says of a column of bytes what Parquet knows of it and Arrow does not:
// that it holds texts, and whether these are JSON. Of a nested column the parts
// say it.
type textual struct {
	isText, isJSON bool
	parts          []textual
}

// part is what is known of the i-th column inside a nested one.
func (t textual) part(i int) textual {
	if i < len(t.parts) {
		return t.parts[i]
	}
	return textual{}
}

func textualFields(fields []pqarrow.SchemaField, s *schema.Schema) []textual {
	out := make([]textual, len(fields))
	for i, f := range fields {
		if !f.IsLeaf() {
			out[i].parts = textualFields(f.Children, s)
			continue
		}
		switch s.Column(f.ColIndex).LogicalType().(type) {
		case schema.JSONLogicalType:
			out[i] = textual{isText: true, isJSON: true}
		case schema.EnumLogicalType:
			out[i].isText = true
		}
	}
	return out
}

func newBatchCursor(in *input, file int, shift uint, size int, b batches, columns *arrow.Schema, texts []textual) (cursor, error) {
	c := &arrowCursor{in: in, file: file, shift: shift, size: size, batches: b, texts: texts}
	seen := map[string]bool{}
	for i, f := range columns.Fields() {
		if seen[f.Name] {
			return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "the column %q stands twice in the file", f.Name)
		}
		seen[f.Name] = true
		if err := arrowReadable(f.Type, c.text(i)); err != nil {
			return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "the column %q cannot be read: %v", f.Name, err)
		}
	}
	return c, nil
}

func (c *arrowCursor) broken() []reject { return nil }

func (c *arrowCursor) text(column int) textual { return textual{parts: c.texts}.part(column) }

func (c *arrowCursor) next(ctx context.Context, ch *chunk) error {
	*ch = chunk{file: c.file, data: ch.data[:0], base: int64(c.file)<<c.shift + c.pos, spans: ch.spans[:0], raw: ch.raw[:0]}
	for len(ch.data) < c.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.batch == nil || c.row == int(c.batch.NumRows()) {
			if !c.batches.Next() {
				if err := c.batches.Err(); err != nil && err != io.EOF {
					return c.in.unreadable(err)
				}
				break
			}
			c.batch, c.row = c.batches.RecordBatch(), 0
			c.writers = c.writers[:0]
			for i := range int(c.batch.NumCols()) {
				c.writers = append(c.writers, writerOf(c.batch.Column(i), c.text(i)))
			}
			continue
		}
		c.ordinal++
		s := span{start: len(ch.data), pos: c.pos, offset: -1, line: c.ordinal, path: -1, index: -1}
		ch.data = c.object(ch.data)
		c.row++
		s.end = len(ch.data)
		c.pos += int64(s.end - s.start)
		ch.spans = append(ch.spans, s)
	}
	if len(ch.spans) == 0 {
		return io.EOF
	}
	// There is no text in the file to be shown; the record's JSON stands for it.
	ch.raw = append(ch.raw, ch.data...)
	for i := range ch.spans {
		ch.spans[i].raw, ch.spans[i].rawEnd = ch.spans[i].start, ch.spans[i].end
	}
	return nil
}

func (c *arrowCursor) object(dst []byte) []byte {
	dst = append(dst, '{')
	for i, w := range c.writers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, c.batch.ColumnName(i)), ':')
		dst = w(dst, c.row)
	}
	return append(dst, '}')
}

// jsonWriter appends the value of a row as JSON.
type jsonWriter func(dst []byte, row int) []byte

// arrowReadable refuses types that have no exact JSON form here.
func arrowReadable(t arrow.DataType, as textual) error {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return arrowReadable(t.ValueType, as)
	case arrow.ListLikeType:
		return arrowReadable(t.Elem(), as.part(0))
	case *arrow.StructType:
		for i, f := range t.Fields() {
			if err := arrowReadable(f.Type, as.part(i)); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	}
	switch t.ID() {
	case arrow.NULL, arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256,
		arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP:
		return nil
	case arrow.FIXED_SIZE_BINARY:
		if t.(*arrow.FixedSizeBinaryType).ByteWidth == 16 {
			return nil // a UUID
		}
	case arrow.EXTENSION:
		if t.(arrow.ExtensionType).ExtensionName() == "arrow.uuid" {
			return nil
		}
		return arrowReadable(t.(arrow.ExtensionType).StorageType(), as)
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		if as.isText {
			return nil
		}
	}
	return fmt.Errorf("its type %s has no form in JSON", t)
}

func nullable(a arrow.Array, w jsonWriter) jsonWriter {
	return func(dst []byte, row int) []byte {
		if a.IsNull(row) {
			return append(dst, "null"...)
		}
		return w(dst, row)
	}
}

// writerOf picks how the values of an array are written.
func writerOf(a arrow.Array, as textual) jsonWriter {
	switch a := a.(type) {
	case *array.Struct:
		return nullable(a, structWriter(a, as))
	case *array.Dictionary:
		values := writerOf(a.Dictionary(), as)
		return nullable(a, func(dst []byte, row int) []byte { return values(dst, a.GetValueIndex(row)) })
	case array.ExtensionArray:
		if a.ExtensionType().ExtensionName() == "arrow.json" {
			as = textual{isText: true, isJSON: true}
		}
		return writerOf(a.Storage(), as)
	case array.ListLike:
		values := writerOf(a.ListValues(), as.part(0))
		return nullable(a, func(dst []byte, row int) []byte {
			from, to := a.ValueOffsets(row)
			dst = append(dst, '[')
			for i := from; i < to; i++ {
				if i > from {
					dst = append(dst, ',')
				}
				dst = values(dst, int(i))
			}
			return append(dst, ']')
		})
	case *array.Float64:
		return nullable(a, func(dst []byte, row int) []byte { return appendFloat(dst, a.Value(row), 64) })
	case *array.Float32:
		return nullable(a, func(dst []byte, row int) []byte { return appendFloat(dst, float64(a.Value(row)), 32) })
	case *array.Float16:
		return nullable(a, func(dst []byte, row int) []byte { return appendFloat(dst, float64(a.Value(row).Float32()), 32) })
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		return nullable(a, func(dst []byte, row int) []byte {
			dst = a.Value(row).ToTime(t.Unit).AppendFormat(append(dst, '"'), "2006-01-02T15:04:05.999999999")
			if t.TimeZone != "" {
				dst = append(dst, 'Z')
			}
			return append(dst, '"')
		})
	case *array.Date32:
		return nullable(a, func(dst []byte, row int) []byte { return appendDate(dst, a.Value(row).ToTime()) })
	case *array.Date64:
		return nullable(a, func(dst []byte, row int) []byte { return appendDate(dst, a.Value(row).ToTime()) })
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return nullable(a, func(dst []byte, row int) []byte { return appendClock(dst, a.Value(row).ToTime(unit)) })
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		return nullable(a, func(dst []byte, row int) []byte { return appendClock(dst, a.Value(row).ToTime(unit)) })
	case *array.FixedSizeBinary:
		return nullable(a, func(dst []byte, row int) []byte { return appendUUID(dst, a.Value(row)) })
	}
	return nullable(a, plainWriter(a, as))
}

// plainWriter writes what Arrow prints as JSON has it: integers, decimals,
// booleans, and texts.
func plainWriter(a arrow.Array, as textual) jsonWriter {
	text := func(row int) string { return strings.Clone(a.ValueStr(row)) }
	switch a.DataType().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		b := a.(interface{ Value(int) []byte })
		text = func(row int) string { return string(b.Value(row)) }
	default:
		return func(dst []byte, row int) []byte { return append(dst, a.ValueStr(row)...) }
	}
	return func(dst []byte, row int) []byte {
		s := text(row)
		if as.isJSON {
			if _, ok := validJSON([]byte(s)); ok {
				return append(dst, s...)
			}
		}
		return appendJSONString(dst, s)
	}
}

func structWriter(a *array.Struct, as textual) jsonWriter {
	t := a.DataType().(*arrow.StructType)
	fields := make([]jsonWriter, a.NumField())
	for i := range fields {
		fields[i] = writerOf(a.Field(i), as.part(i))
	}
	return func(dst []byte, row int) []byte {
		dst = append(dst, '{')
		for i, w := range fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, t.Field(i).Name), ':')
			dst = w(dst, row)
		}
		return append(dst, '}')
	}
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	mark := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, bits)
	if !strings.ContainsAny(string(dst[mark:]), ".e") {
		// A float is no integer literal, which would be held to be exact.
		dst = append(dst, '.', '0')
	}
	return dst
}

func appendDate(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), "2006-01-02"), '"')
}

func appendClock(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), "15:04:05.999999999"), '"')
}

func appendUUID(dst, b []byte) []byte {
	return fmt.Appendf(dst, `"%x-%x-%x-%x-%x"`, b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
