package ingest

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// leafBatch is how many values of a column are decoded at once.
const leafBatch = 4096

// parquetLeaf is a column of a Parquet file without nesting: levels, and the values
// of those that are at the highest level.
type parquetLeaf struct {
	maxDef, maxRep int16
	column         file.ColumnChunkReader
	defs, reps     []int16
	n, at          int // levels that were decoded, and how many of them are used
	value          int // values that are used
	err            error

	read func(n int64) (int64, error)       // decodes so many levels and their values
	text func(dst []byte, value int) []byte // writes one of them
}

// open begins with another row group.
func (l *parquetLeaf) open(column file.ColumnChunkReader) {
	if l.column != nil {
		_ = l.column.Close() // what it holds is memory
	}
	l.column, l.n, l.at, l.value = column, 0, 0, 0
	if l.defs == nil {
		l.defs, l.reps = make([]int16, leafBatch), make([]int16, leafBatch)
	}
}

// more makes sure that there is a level to look at. The values that were decoded
// before it are used up by then: they lie in a page that is gone with the next.
func (l *parquetLeaf) more() bool {
	if l.at < l.n {
		return true
	}
	if l.err != nil || !l.column.HasNext() {
		if l.err == nil {
			l.err = l.column.Err()
		}
		return false
	}
	n, err := l.read(leafBatch)
	l.n, l.at, l.value, l.err = int(n), 0, 0, err
	return err == nil && n > 0
}

// level is how far what the leaf stands before is there.
func (l *parquetLeaf) level() int16 {
	switch {
	case !l.more():
		return -1
	case l.maxDef == 0:
		return 0
	}
	return l.defs[l.at]
}

// repeats is the level of the list that goes on with what the leaf stands before;
// 0 where a row begins, or nothing is left.
func (l *parquetLeaf) repeats() int16 {
	if l.maxRep == 0 || !l.more() {
		return 0
	}
	return l.reps[l.at]
}

func (l *parquetLeaf) first() *parquetLeaf { return l }

func (l *parquetLeaf) skip() { l.take() }

// take uses up a level, and reports whether it has a value.
func (l *parquetLeaf) take() bool {
	at := l.level()
	if at < 0 && l.err == nil {
		l.err = io.ErrUnexpectedEOF // the column has fewer rows than its group
	}
	l.at++
	return at == l.maxDef
}

func (l *parquetLeaf) write(dst []byte) []byte {
	if !l.take() {
		return append(dst, "null"...)
	}
	l.value++
	return l.text(dst, l.value-1)
}

// columnReader is what the readers of arrow-go have in common.
type columnReader[T any] interface {
	ReadBatchInPage(batchSize int64, values []T, defs, reps []int16) (int64, int, error)
}

// reading makes a leaf decode values of one physical type.
func reading[T any, R columnReader[T]](l *parquetLeaf, text func(dst []byte, v T) []byte) {
	values := make([]T, leafBatch)
	l.read = func(n int64) (int64, error) {
		r, ok := l.column.(R)
		if !ok {
			return 0, fmt.Errorf("its values are of type %s", l.column.Type())
		}
		levels, _, err := r.ReadBatchInPage(n, values, l.defs, l.reps)
		return levels, err
	}
	l.text = func(dst []byte, i int) []byte { return text(dst, values[i]) }
}

// decode settles how the values of a leaf are decoded and written.
func (l *parquetLeaf) decode(n *schema.PrimitiveNode) error {
	logical := n.LogicalType()
	if _, ok := logical.(schema.NullLogicalType); ok {
		logical = schema.NoLogicalType{} // all are NULL
	}
	switch n.PhysicalType() {
	case parquet.Types.Boolean:
		reading[bool, *file.BooleanColumnChunkReader](l, strconv.AppendBool)
	case parquet.Types.Float:
		reading[float32, *file.Float32ColumnChunkReader](l, func(dst []byte, v float32) []byte { return appendFloat(dst, float64(v), 32) })
	case parquet.Types.Double:
		reading[float64, *file.Float64ColumnChunkReader](l, func(dst []byte, v float64) []byte { return appendFloat(dst, v, 64) })
	case parquet.Types.Int96:
		reading[parquet.Int96, *file.Int96ColumnChunkReader](l, func(dst []byte, v parquet.Int96) []byte {
			return appendMoment(dst, v.ToTime(), true) // which nanoseconds of 64 bits may not hold
		})
	case parquet.Types.Int32:
		text, ok := textOfInt32(logical)
		if !ok {
			return fmt.Errorf("its type %s of 32 bits has no form in JSON", logical)
		}
		reading[int32, *file.Int32ColumnChunkReader](l, text)
	case parquet.Types.Int64:
		text, ok := textOfInt64(logical)
		if !ok {
			return fmt.Errorf("its type %s of 64 bits has no form in JSON", logical)
		}
		reading[int64, *file.Int64ColumnChunkReader](l, text)
	case parquet.Types.ByteArray:
		text, ok := textOfBytes(logical)
		if !ok {
			return fmt.Errorf("its type %s has no form in JSON", binaryName(logical))
		}
		reading[parquet.ByteArray, *file.ByteArrayColumnChunkReader](l, func(dst []byte, v parquet.ByteArray) []byte { return text(dst, v) })
	case parquet.Types.FixedLenByteArray:
		text, ok := textOfFixed(logical, n.TypeLength())
		if !ok {
			return fmt.Errorf("its type fixed_size_binary[%d] has no form in JSON", n.TypeLength())
		}
		reading[parquet.FixedLenByteArray, *file.FixedLenByteArrayColumnChunkReader](l, func(dst []byte, v parquet.FixedLenByteArray) []byte { return text(dst, v) })
	default:
		return fmt.Errorf("its type %s is not known", n.PhysicalType())
	}
	return nil
}

// binaryName is how a column of bytes is called.
func binaryName(logical schema.LogicalType) string {
	switch logical.(type) {
	case schema.NoLogicalType, schema.BSONLogicalType:
		return "binary"
	}
	return logical.String()
}

func textOfInt32(logical schema.LogicalType) (func(dst []byte, v int32) []byte, bool) {
	switch t := logical.(type) {
	case schema.NoLogicalType:
	case schema.IntLogicalType:
		if !t.IsSigned() {
			mask := uint64(1)<<t.BitWidth() - 1
			return func(dst []byte, v int32) []byte { return strconv.AppendUint(dst, uint64(uint32(v))&mask, 10) }, true
		}
	case schema.DateLogicalType:
		return func(dst []byte, v int32) []byte { return appendDate(dst, arrow.Date32(v).ToTime()) }, true
	case schema.TimeLogicalType:
		return func(dst []byte, v int32) []byte { return appendClock(dst, arrow.Time32(v).ToTime(arrow.Millisecond)) }, t.TimeUnit() == schema.TimeUnitMillis
	case schema.DecimalLogicalType:
		return func(dst []byte, v int32) []byte { return appendScaled(dst, strconv.Itoa(int(v)), int(t.Scale())) }, true
	default:
		return nil, false
	}
	return func(dst []byte, v int32) []byte { return strconv.AppendInt(dst, int64(v), 10) }, true
}

func textOfInt64(logical schema.LogicalType) (func(dst []byte, v int64) []byte, bool) {
	switch t := logical.(type) {
	case schema.NoLogicalType:
	case schema.IntLogicalType:
		if !t.IsSigned() {
			return func(dst []byte, v int64) []byte { return strconv.AppendUint(dst, uint64(v), 10) }, true
		}
	case schema.TimeLogicalType:
		unit, ok := unitOf(t.TimeUnit())
		return func(dst []byte, v int64) []byte { return appendClock(dst, arrow.Time64(v).ToTime(unit)) }, ok && unit != arrow.Millisecond
	case schema.TimestampLogicalType:
		unit, ok := unitOf(t.TimeUnit())
		utc := t.IsAdjustedToUTC() || t.IsFromConvertedType()
		return func(dst []byte, v int64) []byte { return appendTimestamp(dst, arrow.Timestamp(v), unit, utc) }, ok
	case schema.DecimalLogicalType:
		return func(dst []byte, v int64) []byte { return appendScaled(dst, strconv.FormatInt(v, 10), int(t.Scale())) }, true
	default:
		return nil, false
	}
	return func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }, true
}

func unitOf(u schema.TimeUnitType) (arrow.TimeUnit, bool) {
	switch u {
	case schema.TimeUnitMillis:
		return arrow.Millisecond, true
	case schema.TimeUnitMicros:
		return arrow.Microsecond, true
	case schema.TimeUnitNanos:
		return arrow.Nanosecond, true
	}
	return 0, false
}

func textOfBytes(logical schema.LogicalType) (func(dst, v []byte) []byte, bool) {
	switch t := logical.(type) {
	case schema.StringLogicalType, schema.EnumLogicalType:
		return func(dst, v []byte) []byte { return appendJSONString(dst, string(v)) }, true
	case schema.JSONLogicalType:
		return appendJSONValue, true
	case schema.DecimalLogicalType:
		return func(dst, v []byte) []byte { return appendScaled(dst, bigEndian(v), int(t.Scale())) }, true
	}
	return nil, false
}

func textOfFixed(logical schema.LogicalType, length int) (func(dst, v []byte) []byte, bool) {
	switch t := logical.(type) {
	case schema.DecimalLogicalType:
		return func(dst, v []byte) []byte { return appendScaled(dst, bigEndian(v), int(t.Scale())) }, true
	case schema.Float16LogicalType:
		return func(dst, v []byte) []byte { return appendFloat(dst, float64(float16.FromLEBytes(v).Float32()), 32) }, true
	case schema.NoLogicalType, schema.UUIDLogicalType:
		return appendUUID, length == 16
	}
	return nil, false
}

// bigEndian gives the digits of a number of two's complement.
func bigEndian(v []byte) string {
	if len(v) == 0 {
		return "0"
	}
	if len(v) <= 8 {
		var b [8]byte
		if v[0]&0x80 != 0 {
			b = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		}
		copy(b[8-len(v):], v)
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(b[:])), 10)
	}
	n := new(big.Int).SetBytes(v)
	if v[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
	}
	return n.String()
}

// appendScaled appends the digits of a decimal with its point.
func appendScaled(dst []byte, digits string, scale int) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if scale <= 0 {
		dst = append(dst, digits...)
		for range -scale {
			dst = append(dst, '0')
		}
		return dst
	}
	for len(digits) <= scale {
		digits = "0" + digits
	}
	at := len(digits) - scale
	return append(append(append(dst, digits[:at]...), '.'), digits[at:]...)
}
