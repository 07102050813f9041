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
	"github.com/apache/arrow-go/v18/parquet/file"

	"rbt/internal/diag"
)

// rows is what Arrow IPC and Parquet have in common: one row after another.
type rows interface {
	// next reports whether there is another row.
	next() (bool, error)
	// write appends that row as JSON, once.
	write(dst []byte) ([]byte, error)
}

// columnCursor turns rows into records of JSON text. A row has no place by bytes;
// its line is its ordinal, from 1.
type columnCursor struct {
	in      *input
	file    int
	shift   uint
	size    int
	rows    rows
	ordinal int64
	pos     int64
}

// batchRows are the rows of record batches, each of which belongs to the reader
// until the next.
type batchRows struct {
	reader  arrowBatches
	batch   arrow.RecordBatch
	writers []jsonWriter
	row     int
}

func newArrowCursor(in *input, file int, shift uint, size int) (cursor, error) {
	r, byFooter, err := openArrow(in.r, in.f)
	if err != nil {
		return nil, in.unreadable(err)
	}
	in.random = byFooter
	for _, f := range r.Schema().Fields() {
		if err := arrowReadable(f.Type); err != nil {
			return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "the column %q cannot be read: %v", f.Name, err)
		}
	}
	names := make([]string, r.Schema().NumFields())
	for i, f := range r.Schema().Fields() {
		names[i] = f.Name
	}
	return newColumnCursor(in, file, shift, size, &batchRows{reader: r}, names)
}

func newParquetCursor(in *input, i int, shift uint, size int) (cursor, error) {
	f, err := file.NewParquetReader(in.f)
	if err != nil {
		return nil, in.unreadable(err)
	}
	r, err := newParquetRows(f)
	if err != nil {
		return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "%v", err)
	}
	in.random = true
	names := make([]string, len(r.columns))
	for i, c := range r.columns {
		names[i] = c.name
	}
	return newColumnCursor(in, i, shift, size, r, names)
}

func newColumnCursor(in *input, file int, shift uint, size int, r rows, names []string) (cursor, error) {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return nil, diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "the column %q stands twice in the file", name)
		}
		seen[name] = true
	}
	return &columnCursor{in: in, file: file, shift: shift, size: size, rows: r}, nil
}

func (c *columnCursor) broken() []reject { return nil }

func (c *columnCursor) next(ctx context.Context, ch *chunk) error {
	*ch = chunk{file: c.file, data: ch.data[:0], base: int64(c.file)<<c.shift + c.pos, spans: ch.spans[:0], raw: ch.raw[:0]}
	for len(ch.data) < c.size {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := c.rows.next()
		if err != nil {
			return c.in.unreadable(err)
		}
		if !more {
			break
		}
		c.ordinal++
		s := span{start: len(ch.data), pos: c.pos, offset: -1, line: c.ordinal, path: -1, index: -1}
		if ch.data, err = c.rows.write(ch.data); err != nil {
			return c.in.unreadable(err)
		}
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

func (b *batchRows) next() (bool, error) {
	for b.batch == nil || b.row == int(b.batch.NumRows()) {
		if !b.reader.Next() {
			if err := b.reader.Err(); err != nil && err != io.EOF {
				return false, err
			}
			return false, nil
		}
		b.batch, b.row = b.reader.RecordBatch(), 0
		b.writers = b.writers[:0]
		for i := range int(b.batch.NumCols()) {
			b.writers = append(b.writers, writerOf(b.batch.Column(i), false))
		}
	}
	return true, nil
}

func (b *batchRows) write(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	for i, w := range b.writers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, b.batch.ColumnName(i)), ':')
		dst = w(dst, b.row)
	}
	b.row++
	return append(dst, '}'), nil
}

// jsonWriter appends the value of a row as JSON.
type jsonWriter func(dst []byte, row int) []byte

// eachLeaf gives check every type that lies in a type and holds no other; an error
// names the fields on the way.
func eachLeaf(t arrow.DataType, check func(arrow.DataType) error) error {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return eachLeaf(t.ValueType, check)
	case arrow.ListLikeType:
		return eachLeaf(t.Elem(), check)
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := eachLeaf(f.Type, check); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	}
	return check(t)
}

// arrowReadable refuses types that have no exact JSON form here.
func arrowReadable(t arrow.DataType) error { return eachLeaf(t, leafReadable) }

func leafReadable(t arrow.DataType) error {
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
		return arrowReadable(t.(arrow.ExtensionType).StorageType())
	}
	return noJSONForm(t)
}

func noJSONForm(t arrow.DataType) error { return fmt.Errorf("its type %s has no form in JSON", t) }

func nullable(a arrow.Array, w jsonWriter) jsonWriter {
	return func(dst []byte, row int) []byte {
		if a.IsNull(row) {
			return append(dst, "null"...)
		}
		return w(dst, row)
	}
}

// writerOf picks how the values of an array are written; texts that are JSON stand
// for what they say.
func writerOf(a arrow.Array, isJSON bool) jsonWriter {
	switch a := a.(type) {
	case *array.Null: // says of no row that it is NULL
		return func(dst []byte, _ int) []byte { return append(dst, "null"...) }
	case *array.Struct:
		return nullable(a, structWriter(a))
	case *array.Dictionary:
		if a.Len() == 0 { // it may have no values then
			return nil
		}
		values := writerOf(a.Dictionary(), isJSON)
		return nullable(a, func(dst []byte, row int) []byte { return values(dst, a.GetValueIndex(row)) })
	case array.ExtensionArray:
		return writerOf(a.Storage(), a.ExtensionType().ExtensionName() == "arrow.json")
	case array.ListLike:
		values := writerOf(a.ListValues(), false)
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
			return appendTimestamp(dst, a.Value(row), t.Unit, t.TimeZone != "")
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
	case *array.Decimal32:
		return decimalWriter(a, func(row int) string { return strconv.Itoa(int(a.Value(row))) })
	case *array.Decimal64:
		return decimalWriter(a, func(row int) string { return strconv.FormatInt(int64(a.Value(row)), 10) })
	case *array.Decimal128:
		return decimalWriter(a, func(row int) string { return a.Value(row).BigInt().String() })
	case *array.Decimal256:
		return decimalWriter(a, func(row int) string { return a.Value(row).BigInt().String() })
	case *array.FixedSizeBinary:
		return nullable(a, func(dst []byte, row int) []byte { return appendUUID(dst, a.Value(row)) })
	}
	return nullable(a, plainWriter(a, isJSON))
}

// decimalWriter writes decimals with all digits of their scale, as the SQL engine
// does; digits gives them without the point.
func decimalWriter(a arrow.Array, digits func(row int) string) jsonWriter {
	scale := int(a.DataType().(arrow.DecimalType).GetScale())
	return nullable(a, func(dst []byte, row int) []byte { return appendScaled(dst, digits(row), scale) })
}

// plainWriter writes what Arrow prints as JSON has it: integers, booleans, and
// texts.
func plainWriter(a arrow.Array, isJSON bool) jsonWriter {
	switch a.DataType().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
	default:
		return func(dst []byte, row int) []byte { return append(dst, a.ValueStr(row)...) }
	}
	if isJSON {
		return func(dst []byte, row int) []byte { return appendJSONValue(dst, []byte(a.ValueStr(row))) }
	}
	return func(dst []byte, row int) []byte { return appendJSONString(dst, strings.Clone(a.ValueStr(row))) }
}

// appendJSONValue appends the JSON that a text is, or else the text.
func appendJSONValue(dst, text []byte) []byte {
	if _, ok := validJSON(text); ok {
		return append(dst, text...)
	}
	return appendJSONString(dst, string(text))
}

func structWriter(a *array.Struct) jsonWriter {
	t := a.DataType().(*arrow.StructType)
	fields := make([]jsonWriter, a.NumField())
	for i := range fields {
		fields[i] = writerOf(a.Field(i), false)
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

func appendTimestamp(dst []byte, v arrow.Timestamp, unit arrow.TimeUnit, utc bool) []byte {
	return appendMoment(dst, v.ToTime(unit), utc)
}

func appendMoment(dst []byte, t time.Time, utc bool) []byte {
	dst = t.AppendFormat(append(dst, '"'), "2006-01-02T15:04:05.999999999")
	if utc {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
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
