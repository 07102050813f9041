package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// columnSink gathers the levels and values of a column without nesting until they
// are written.
type columnSink struct {
	nested     levels // of a value that is there
	defs, reps []int16
	// bind gives how a value of an array is gathered.
	bind func(a arrow.Array) (func(row int), error)
	// flush writes what was gathered.
	flush func(w file.ColumnChunkWriter) error
}

func (s *columnSink) level(def, rep int16) {
	if s.nested.def > 0 {
		s.defs = append(s.defs, def)
	}
	if s.nested.rep > 0 {
		s.reps = append(s.reps, rep)
	}
}

// arrowLeaf is a type of Arrow as Parquet has it.
type arrowLeaf struct {
	physical parquet.Type
	logical  schema.LogicalType
	length   int
	sink     *columnSink
}

// columnWriter is what the writers of arrow-go have in common.
type columnWriter[T any] interface {
	WriteBatch(values []T, defs, reps []int16) (int64, error)
}

// gather makes the sink of arrays of type A whose values are written by W.
func gather[W columnWriter[T], A arrow.Array, T any](value func(a A, row int) T) *columnSink {
	s := &columnSink{}
	var values []T
	s.bind = func(a arrow.Array) (func(row int), error) {
		typed, ok := a.(A)
		if !ok {
			return nil, fmt.Errorf("values came as %s", a.DataType())
		}
		return func(row int) { values = append(values, value(typed, row)) }, nil
	}
	s.flush = func(w file.ColumnChunkWriter) error {
		typed, ok := w.(W)
		if !ok {
			return fmt.Errorf("values are written as %s", w.Type())
		}
		_, err := typed.WriteBatch(values, s.defs, s.reps)
		values, s.defs, s.reps = values[:0], s.defs[:0], s.reps[:0]
		return err
	}
	return s
}

type (
	boolWriter  = *file.BooleanColumnChunkWriter
	int32Writer = *file.Int32ColumnChunkWriter
	int64Writer = *file.Int64ColumnChunkWriter
	bytesWriter = *file.ByteArrayColumnChunkWriter
	fixedWriter = *file.FixedLenByteArrayColumnChunkWriter
)

// ints gathers whole numbers that Parquet stores as 32 bits.
func ints[A interface {
	arrow.Array
	Value(int) T
}, T int8 | int16 | int32 | uint8 | uint16 | uint32 | arrow.Date32](width int8, signed bool) *arrowLeaf {
	return &arrowLeaf{parquet.Types.Int32, schema.NewIntLogicalType(width, signed), -1,
		gather[int32Writer](func(a A, row int) int32 { return int32(a.Value(row)) })}
}

// leaf gives how a type that is not nested is written. Lengths of -1 mean nothing.
func (t *arrowTable) leaf(typ arrow.DataType) (*arrowLeaf, error) {
	none := schema.NoLogicalType{}
	switch typ := typ.(type) {
	case *arrow.NullType:
		return &arrowLeaf{parquet.Types.Int32, schema.NullLogicalType{}, -1, gather[int32Writer](func(*array.Null, int) int32 { return 0 })}, nil
	case *arrow.BooleanType:
		return &arrowLeaf{parquet.Types.Boolean, none, -1, gather[boolWriter]((*array.Boolean).Value)}, nil
	case *arrow.Int8Type:
		return ints[*array.Int8](8, true), nil
	case *arrow.Int16Type:
		return ints[*array.Int16](16, true), nil
	case *arrow.Int32Type:
		return ints[*array.Int32](32, true), nil
	case *arrow.Uint8Type:
		return ints[*array.Uint8](8, false), nil
	case *arrow.Uint16Type:
		return ints[*array.Uint16](16, false), nil
	case *arrow.Uint32Type:
		return ints[*array.Uint32](32, false), nil
	case *arrow.Int64Type:
		return &arrowLeaf{parquet.Types.Int64, schema.NewIntLogicalType(64, true), -1, gather[int64Writer]((*array.Int64).Value)}, nil
	case *arrow.Uint64Type:
		return &arrowLeaf{parquet.Types.Int64, schema.NewIntLogicalType(64, false), -1,
			gather[int64Writer](func(a *array.Uint64, row int) int64 { return int64(a.Value(row)) })}, nil
	case *arrow.Float32Type:
		return &arrowLeaf{parquet.Types.Float, none, -1, gather[*file.Float32ColumnChunkWriter]((*array.Float32).Value)}, nil
	case *arrow.Float64Type:
		return &arrowLeaf{parquet.Types.Double, none, -1, gather[*file.Float64ColumnChunkWriter]((*array.Float64).Value)}, nil
	case *arrow.Float16Type:
		return &arrowLeaf{parquet.Types.FixedLenByteArray, schema.Float16LogicalType{}, arrow.Float16SizeBytes,
			gather[fixedWriter](func(a *array.Float16, row int) parquet.FixedLenByteArray { return a.Value(row).ToLEBytes() })}, nil
	case *arrow.StringType:
		return textLeaf[*array.String](), nil
	case *arrow.LargeStringType:
		return textLeaf[*array.LargeString](), nil
	case *arrow.StringViewType:
		return textLeaf[*array.StringView](), nil
	case *arrow.BinaryType:
		return bytesLeaf[*array.Binary](), nil
	case *arrow.LargeBinaryType:
		return bytesLeaf[*array.LargeBinary](), nil
	case *arrow.BinaryViewType:
		return bytesLeaf[*array.BinaryView](), nil
	case *arrow.FixedSizeBinaryType:
		return &arrowLeaf{parquet.Types.FixedLenByteArray, none, typ.ByteWidth,
			gather[fixedWriter](func(a *array.FixedSizeBinary, row int) parquet.FixedLenByteArray { return a.Value(row) })}, nil
	case arrow.DecimalType:
		return t.decimalLeaf(typ)
	}
	return t.timeLeaf(typ)
}

func textLeaf[A interface {
	arrow.Array
	Value(int) string
}]() *arrowLeaf {
	return &arrowLeaf{parquet.Types.ByteArray, schema.StringLogicalType{}, -1,
		gather[bytesWriter](func(a A, row int) parquet.ByteArray { return parquet.ByteArray(a.Value(row)) })}
}

func bytesLeaf[A interface {
	arrow.Array
	Value(int) []byte
}]() *arrowLeaf {
	return &arrowLeaf{parquet.Types.ByteArray, schema.NoLogicalType{}, -1,
		gather[bytesWriter](func(a A, row int) parquet.ByteArray { return a.Value(row) })}
}

// timeLeaf is leaf for dates and times, and refuses all else. Parquet has no
// seconds, which become milliseconds.
func (t *arrowTable) timeLeaf(typ arrow.DataType) (*arrowLeaf, error) {
	units := map[arrow.TimeUnit]schema.TimeUnitType{arrow.Second: schema.TimeUnitMillis, arrow.Millisecond: schema.TimeUnitMillis,
		arrow.Microsecond: schema.TimeUnitMicros, arrow.Nanosecond: schema.TimeUnitNanos}
	switch typ := typ.(type) {
	case *arrow.Date32Type:
		leaf := ints[*array.Date32](32, true)
		leaf.logical = schema.DateLogicalType{}
		return leaf, nil
	case *arrow.Date64Type:
		const day = 24 * 60 * 60 * 1000
		return &arrowLeaf{parquet.Types.Int32, schema.DateLogicalType{}, -1,
			gather[int32Writer](func(a *array.Date64, row int) int32 { return int32(math.Floor(float64(a.Value(row)) / day)) })}, nil
	case *arrow.Time32Type:
		factor := int32(1)
		if typ.Unit == arrow.Second {
			factor = 1000
		}
		return &arrowLeaf{parquet.Types.Int32, schema.NewTimeLogicalType(false, schema.TimeUnitMillis), -1,
			gather[int32Writer](func(a *array.Time32, row int) int32 { return int32(a.Value(row)) * factor })}, nil
	case *arrow.Time64Type:
		return &arrowLeaf{parquet.Types.Int64, schema.NewTimeLogicalType(false, units[typ.Unit]), -1,
			gather[int64Writer](func(a *array.Time64, row int) int64 { return int64(a.Value(row)) })}, nil
	case *arrow.TimestampType:
		value := func(a *array.Timestamp, row int) int64 { return int64(a.Value(row)) }
		if typ.Unit == arrow.Second {
			value = func(a *array.Timestamp, row int) int64 {
				v := int64(a.Value(row))
				if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
					t.fail(fmt.Errorf("%d seconds are too many for a time in Parquet", v))
				}
				return v * 1000
			}
		}
		return &arrowLeaf{parquet.Types.Int64, schema.NewTimestampLogicalTypeForce(typ.TimeZone != "", units[typ.Unit]), -1, gather[int64Writer](value)}, nil
	}
	return nil, fmt.Errorf("its type %s has no form in Parquet", typ)
}

// decimalLeaf writes decimals in as few bytes as their precision needs.
func (t *arrowTable) decimalLeaf(typ arrow.DecimalType) (*arrowLeaf, error) {
	precision := typ.GetPrecision()
	length := int(math.Ceil((float64(precision)*math.Log2(10) + 1) / 8))
	leaf := &arrowLeaf{physical: parquet.Types.FixedLenByteArray, logical: schema.NewDecimalLogicalType(precision, typ.GetScale()), length: length}
	// cut takes the last bytes of a number of two's complement; the others must say
	// nothing.
	cut := func(b []byte) parquet.FixedLenByteArray {
		rest, kept := b[:len(b)-length], b[len(b)-length:]
		for _, x := range rest {
			if x != byte(int8(kept[0])>>7) {
				t.fail(fmt.Errorf("a number has more than the %d digits of its type", precision))
				break
			}
		}
		return kept
	}
	narrow := func(v int64) parquet.FixedLenByteArray {
		b := binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(v))
		return cut(b)
	}
	switch typ.(type) {
	case *arrow.Decimal32Type:
		leaf.sink = gather[fixedWriter](func(a *array.Decimal32, row int) parquet.FixedLenByteArray { return narrow(int64(a.Value(row))) })
	case *arrow.Decimal64Type:
		leaf.sink = gather[fixedWriter](func(a *array.Decimal64, row int) parquet.FixedLenByteArray { return narrow(int64(a.Value(row))) })
	case *arrow.Decimal128Type:
		leaf.sink = gather[fixedWriter](func(a *array.Decimal128, row int) parquet.FixedLenByteArray {
			v := a.Value(row)
			b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(v.HighBits()))
			return cut(binary.BigEndian.AppendUint64(b, v.LowBits()))
		})
	case *arrow.Decimal256Type:
		leaf.sink = gather[fixedWriter](func(a *array.Decimal256, row int) parquet.FixedLenByteArray {
			v := a.Value(row).BigInt()
			if v.Sign() < 0 {
				v.Add(v, new(big.Int).Lsh(big.NewInt(1), 256))
			}
			return cut(v.FillBytes(make([]byte, 32)))
		})
	default:
		return nil, fmt.Errorf("its type %s has no form in Parquet", typ)
	}
	return leaf, nil
}
