package ingest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	pqcompress "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// someTypes are types with what makes a value of each, as array.RecordFromJSON
// takes it.
func someTypes() map[string]struct {
	typ  arrow.DataType
	make func(r *rand.Rand) any
} {
	type of = struct {
		typ  arrow.DataType
		make func(r *rand.Rand) any
	}
	number := func(bits int) func(r *rand.Rand) any {
		return func(r *rand.Rand) any { return json.Number(fmt.Sprint(r.Int64() >> (64 - bits))) }
	}
	natural := func(bits int) func(r *rand.Rand) any {
		return func(r *rand.Rand) any { return json.Number(fmt.Sprint(r.Uint64() >> (64 - bits))) }
	}
	text := func(r *rand.Rand) any { return strings.Repeat("é\"\\", r.IntN(3)) + fmt.Sprint(r.IntN(50)) }
	decimal := func(digits, scale int) func(r *rand.Rand) any {
		return func(r *rand.Rand) any {
			s := fmt.Sprint(1 + r.IntN(9))
			for n := r.IntN(digits); len(s) <= n; {
				s += fmt.Sprint(r.IntN(10))
			}
			for len(s) <= scale {
				s = "0" + s
			}
			return []string{"", "-"}[r.IntN(2)] + s[:len(s)-scale] + "." + s[len(s)-scale:] + "0"[:min(1, 1-min(1, scale))]
		}
	}
	moment := func(r *rand.Rand) any {
		return fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", 1690+r.IntN(500), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60))
	}
	day := func(r *rand.Rand) any {
		return fmt.Sprintf("%04d-%02d-%02d", 1800+r.IntN(500), 1+r.IntN(12), 1+r.IntN(28))
	}
	clock := func(digits int) func(r *rand.Rand) any {
		return func(r *rand.Rand) any {
			return fmt.Sprintf("%02d:%02d:%02d.%0*d", r.IntN(24), r.IntN(60), r.IntN(60), digits, r.IntN(1000))
		}
	}
	types := map[string]of{
		"bool": {arrow.FixedWidthTypes.Boolean, func(r *rand.Rand) any { return r.IntN(2) == 0 }},
		"i8":   {arrow.PrimitiveTypes.Int8, number(8)}, "i16": {arrow.PrimitiveTypes.Int16, number(16)},
		"i32": {arrow.PrimitiveTypes.Int32, number(32)}, "i64": {arrow.PrimitiveTypes.Int64, number(64)},
		"u8": {arrow.PrimitiveTypes.Uint8, natural(8)}, "u16": {arrow.PrimitiveTypes.Uint16, natural(16)},
		"u32": {arrow.PrimitiveTypes.Uint32, natural(32)}, "u64": {arrow.PrimitiveTypes.Uint64, natural(64)},
		"f16": {arrow.FixedWidthTypes.Float16, func(r *rand.Rand) any { return r.IntN(100) }},
		"f32": {arrow.PrimitiveTypes.Float32, func(r *rand.Rand) any { return r.Float32() - 0.5 }},
		"f64": {arrow.PrimitiveTypes.Float64, func(r *rand.Rand) any { return r.NormFloat64() * 1e20 }},
		"s":   {arrow.BinaryTypes.String, text}, "ls": {arrow.BinaryTypes.LargeString, text},
		"d32": {arrow.FixedWidthTypes.Date32, day}, "d64": {arrow.FixedWidthTypes.Date64, day},
		"t32s": {arrow.FixedWidthTypes.Time32s, func(r *rand.Rand) any { return fmt.Sprintf("%02d:59:%02d", r.IntN(24), r.IntN(60)) }},
		"t32":  {arrow.FixedWidthTypes.Time32ms, clock(3)}, "t64": {arrow.FixedWidthTypes.Time64us, clock(6)}, "t64n": {arrow.FixedWidthTypes.Time64ns, clock(9)},
		"tss":  {&arrow.TimestampType{Unit: arrow.Second}, moment},
		"tsms": {&arrow.TimestampType{Unit: arrow.Millisecond}, moment},
		"tsus": {&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, func(r *rand.Rand) any { return moment(r).(string) + "Z" }},
		"tsns": {&arrow.TimestampType{Unit: arrow.Nanosecond}, moment},
		"dec5": {&arrow.Decimal128Type{Precision: 5, Scale: 2}, decimal(5, 2)}, "dec18": {&arrow.Decimal128Type{Precision: 18, Scale: 4}, decimal(18, 4)},
		"dec38": {&arrow.Decimal128Type{Precision: 38, Scale: 10}, decimal(38, 10)}, "dec60": {&arrow.Decimal256Type{Precision: 60, Scale: 5}, decimal(60, 5)},
		"uuid": {&arrow.FixedSizeBinaryType{ByteWidth: 16}, func(r *rand.Rand) any {
			b := make([]byte, 16)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return base64.StdEncoding.EncodeToString(b)
		}},
		"null": {arrow.Null, func(*rand.Rand) any { return nil }},
		"dict": {&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}, func(r *rand.Rand) any { return fmt.Sprint("v", r.IntN(30)) }},
	}
	return types
}

// fieldDepth is how deep types are nested at most.
const fieldDepth = 3

// someField makes a field of a random type, nested up to a depth.
func someField(r *rand.Rand, name string, depth int) (arrow.Field, func(r *rand.Rand) any) {
	nullable := r.IntN(3) > 0
	maybe := func(make func(r *rand.Rand) any) func(r *rand.Rand) any {
		return func(r *rand.Rand) any {
			if nullable && r.IntN(4) == 0 {
				return nil
			}
			return make(r)
		}
	}
	kind := r.IntN(8)
	if depth == 0 {
		kind = 9
	}
	switch kind {
	case 0, 1:
		element, value := someField(r, "item", depth-1)
		return arrow.Field{Name: name, Type: arrow.ListOfField(element), Nullable: nullable}, maybe(func(r *rand.Rand) any {
			out := []any{}
			for range r.IntN(4) {
				out = append(out, value(r))
			}
			return out
		})
	case 2, 3:
		var fields []arrow.Field
		var values []func(r *rand.Rand) any
		for i := range 1 + r.IntN(3) {
			f, v := someField(r, string(rune('a'+i)), depth-1)
			fields, values = append(fields, f), append(values, v)
		}
		return arrow.Field{Name: name, Type: arrow.StructOf(fields...), Nullable: nullable}, maybe(func(r *rand.Rand) any {
			out := map[string]any{}
			for i, v := range values {
				out[fields[i].Name] = v(r)
			}
			return out
		})
	case 4:
		item, value := someField(r, "value", depth-1)
		typ := arrow.MapOf(arrow.BinaryTypes.String, item.Type)
		typ.SetItemNullable(item.Nullable)
		return arrow.Field{Name: name, Type: typ, Nullable: nullable}, maybe(func(r *rand.Rand) any {
			out := []any{}
			for i := range r.IntN(3) {
				out = append(out, map[string]any{"key": fmt.Sprint(i), "value": value(r)})
			}
			return out
		})
	case 5:
		if depth < fieldDepth { // arrow-go (18) makes no absent ones from JSON
			break
		}
		element, value := someField(r, "item", 0)
		return arrow.Field{Name: name, Type: arrow.FixedSizeListOfField(2, element)}, func(r *rand.Rand) any { return []any{value(r), value(r)} }
	}
	types := someTypes()
	names := slices.Sorted(maps.Keys(types))
	t := types[names[r.IntN(len(names))]]
	if t.typ.ID() == arrow.NULL {
		nullable = true
	}
	return arrow.Field{Name: name, Type: t.typ, Nullable: nullable}, maybe(t.make)
}

// someBatch makes a batch of one random column; the first of them go through all
// types.
func someBatch(t testing.TB, r *rand.Rand, rows int) arrow.RecordBatch {
	f, value := someField(r, "x", fieldDepth)
	s := arrow.NewSchema([]arrow.Field{f}, nil)
	lines := make([]any, rows)
	for i := range lines {
		lines[i] = map[string]any{"x": value(r)}
	}
	text, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	batch, _, err := array.RecordFromJSON(memory.NewGoAllocator(), s, bytes.NewReader(text))
	if err != nil {
		t.Fatalf("make a %s: %v", f.Type, err)
	}
	return batch
}

// jsonOf writes the rows of batches as they are read from Arrow.
func jsonOf(batches ...arrow.RecordBatch) []string {
	var out []string
	for _, batch := range batches {
		rows := batchRows{batch: batch}
		for i := range int(batch.NumCols()) {
			rows.writers = append(rows.writers, writerOf(batch.Column(i), false))
		}
		for range int(batch.NumRows()) {
			line, _ := rows.write(nil)
			out = append(out, string(line))
		}
	}
	return out
}

// byPqarrow reads a Parquet file by arrow-go's general reader.
func byPqarrow(t testing.TB, content []byte) (schema string, rows []string) {
	pf, err := file.NewParquetReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 64}, memory.NewGoAllocator())
	if err != nil {
		t.Fatal(err)
	}
	r, err := fr.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		rows = append(rows, jsonOf(r.RecordBatch())...)
	}
	if err := r.Err(); err != nil && err.Error() != "EOF" {
		t.Fatal(err)
	}
	return pf.MetaData().Schema.String(), rows
}

// byRows reads it as an ingest does.
func byRows(t testing.TB, content []byte) (rows []string) {
	pf, err := file.NewParquetReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	p, err := newParquetRows(pf)
	if err != nil {
		t.Fatal(err)
	}
	for {
		more, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return rows
		}
		line, err := p.write(nil)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(line))
	}
}

// TestParquetAgainstPqarrow: what arrow-go's general reader and writer make of any
// nested column is what is made of it without them.
func TestParquetAgainstPqarrow(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		batch := someBatch(t, r, r.IntN(700))
		props := []parquet.WriterProperty{
			parquet.WithDictionaryDefault(r.IntN(2) == 0), parquet.WithDataPageSize(int64(100 + r.IntN(4000))), parquet.WithBatchSize(int64(1 + r.IntN(200))),
			parquet.WithDataPageVersion([]parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2}[r.IntN(2)]), parquet.WithMaxRowGroupLength(int64(50 + r.IntN(400))),
		}
		var written bytes.Buffer
		w, err := pqarrow.NewFileWriter(batch.Schema(), &written, parquet.NewWriterProperties(props...), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
		if err != nil {
			rt.Fatalf("%s: %v", batch.Schema(), err)
		}
		if err := w.WriteBuffered(batch); err != nil {
			rt.Skipf("pqarrow cannot write %s: %v", batch.Schema(), err)
		}
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		_, want := byPqarrow(t, written.Bytes())
		if d := cmp.Diff(want, byRows(t, written.Bytes())); d != "" {
			rt.Fatalf("read of %s (-pqarrow +rows):\n%s", batch.Schema(), d)
		}

		var plain bytes.Buffer
		w, err = pqarrow.NewFileWriter(batch.Schema(), &plain, parquet.NewWriterProperties(parquet.WithCompression(pqcompress.Codecs.Zstd)), pqarrow.DefaultWriterProps())
		if err == nil {
			err = w.WriteBuffered(batch)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			rt.Fatal(err)
		}
		var stream bytes.Buffer
		iw := ipc.NewWriter(&stream, ipc.WithSchema(batch.Schema()))
		cut := int64(r.IntN(int(batch.NumRows()) + 1))
		for _, part := range []arrow.RecordBatch{batch.NewSlice(0, cut), batch.NewSlice(cut, batch.NumRows())} {
			if err := iw.Write(part); err != nil {
				rt.Fatal(err)
			}
		}
		if err := iw.Close(); err != nil {
			rt.Fatal(err)
		}
		out := filepath.Join(dir, "out.parquet")
		if err := os.Remove(out); err != nil && !os.IsNotExist(err) {
			rt.Fatal(err)
		}
		if err := ConvertArrow(context.Background(), &stream, out); err != nil {
			rt.Fatalf("convert %s: %v", batch.Schema(), err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			rt.Fatal(err)
		}
		wantSchema, want := byPqarrow(t, plain.Bytes())
		gotSchema, got := byPqarrow(t, content)
		if d := cmp.Diff(wantSchema, gotSchema) + cmp.Diff(want, got); d != "" {
			rt.Fatalf("convert %s (-pqarrow +table):\n%s", batch.Schema(), d)
		}
	})
}
