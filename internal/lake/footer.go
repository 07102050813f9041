package lake

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Keys of the metadata that every published Parquet file carries.
const (
	MetaModel       = "rbt_model"       // name of the node
	MetaFingerprint = "rbt_fingerprint" // of the publish
	MetaCommit      = "rbt_commit"      // of the publish
	MetaReplaces    = "rbt_replaces"    // commit before it; "" for the first
)

// Footer is what a Parquet file says of itself.
type Footer struct {
	Rows     int64
	Bytes    int64 // size of the file
	Columns  []Column
	Metadata map[string]string
}

// ReadFooter reads the footer of a Parquet file at a path relative to the lake.
// A file that is no complete Parquet file is a *DamageError.
func (l *Lake) ReadFooter(rel string) (Footer, error) {
	abs, err := l.Abs(rel)
	if err != nil {
		return Footer{}, err
	}
	f, err := l.fs.Open(abs)
	if err != nil {
		return Footer{}, fmt.Errorf("read footer of %s: %w", rel, err)
	}
	footer, err := readFooter(f)
	var bad badFooter
	switch {
	case errors.As(err, &bad):
		err = &DamageError{Path: rel, Err: bad}
	case err != nil:
		err = fmt.Errorf("read footer of %s: %w", rel, err)
	}
	return footer, errors.Join(err, f.Close())
}

// parquetMagic ends every Parquet file; four bytes before it hold the length of
// the footer.
const (
	parquetMagic = "PAR1"
	trailerSize  = 8
)

// firstTail is how much of the end of a file is read at once: it holds the
// whole footer of a table of some dozen columns and few row groups.
const firstTail = 16 << 10

// badFooter says that a file is no complete Parquet file, in contrast to one
// that could not be read just now.
type badFooter string

func (b badFooter) Error() string { return string(b) }

// readMeta reads what stands at the end of a Parquet file, and the file's size.
func readMeta(f io.ReadSeeker) (*metadata.FileMetaData, int64, error) {
	size, tail, err := readTail(f, firstTail)
	if err != nil {
		return nil, 0, err
	}
	length, err := footerLength(size, tail)
	if err != nil {
		return nil, 0, err
	}
	if need := length + trailerSize; need > int64(len(tail)) {
		if _, tail, err = readTail(f, need); err != nil {
			return nil, 0, err
		}
	}
	end := int64(len(tail)) - trailerSize
	meta, err := metadata.NewFileMetaData(tail[end-length:end], nil)
	if err != nil {
		return nil, 0, badFooter(fmt.Sprintf("the Parquet footer cannot be read: %v", err))
	}
	return meta, size, nil
}

func readFooter(f io.ReadSeeker) (Footer, error) {
	meta, size, err := readMeta(f)
	if err != nil {
		return Footer{}, err
	}
	out := Footer{Rows: meta.NumRows, Bytes: size, Metadata: map[string]string{}}
	for _, kv := range meta.KeyValueMetadata() {
		if kv.Value != nil {
			out.Metadata[kv.Key] = *kv.Value
		}
	}
	root := meta.Schema.Root()
	geometry := geometryColumns(out.Metadata)
	for i := range root.NumFields() {
		node := root.Field(i)
		c := Column{Name: node.Name(), Type: typeOf(node)}
		if geometry[c.Name] {
			c.Type = geometryType
		}
		out.Columns = append(out.Columns, c)
	}
	return out, nil
}

// geometryType is what DuckDB calls a GeoParquet column without a coordinate
// system of its own.
const geometryType = "GEOMETRY('OGC:CRS84')"

// geometryColumns lists the columns that GeoParquet's metadata names: to
// Parquet itself they are BLOBs.
func geometryColumns(meta map[string]string) map[string]bool {
	text, ok := meta["geo"]
	if !ok {
		return nil
	}
	var geo struct {
		Columns map[string]json.RawMessage `json:"columns"`
	}
	if err := json.Unmarshal([]byte(text), &geo); err != nil {
		return nil // metadata of another tool: the columns stay what Parquet says
	}
	out := make(map[string]bool, len(geo.Columns))
	for name := range geo.Columns {
		out[name] = true
	}
	return out
}

func readTail(f io.ReadSeeker, want int64) (size int64, tail []byte, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return 0, nil, err
	}
	want = min(want, size)
	if _, err = f.Seek(size-want, io.SeekStart); err != nil {
		return 0, nil, err
	}
	tail = make([]byte, want)
	_, err = io.ReadFull(f, tail)
	return size, tail, err
}

func footerLength(size int64, tail []byte) (int64, error) {
	if len(tail) < trailerSize+len(parquetMagic) {
		return 0, badFooter(fmt.Sprintf("the file has %d bytes and is no Parquet file", size))
	}
	if string(tail[len(tail)-len(parquetMagic):]) != parquetMagic {
		return 0, badFooter(fmt.Sprintf("the file (%d bytes) does not end as a Parquet file does", size))
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-trailerSize:]))
	if length > size-trailerSize-int64(len(parquetMagic)) {
		return 0, badFooter(fmt.Sprintf("the Parquet footer claims %d bytes in a file of %d", length, size))
	}
	return length, nil
}

// typeOf gives DuckDB's name of the type that it reads from a Parquet column.
func typeOf(n schema.Node) string {
	if n.RepetitionType() == parquet.Repetitions.Repeated {
		return elementType(n) + "[]" // a list in the oldest notation
	}
	return elementType(n)
}

func elementType(n schema.Node) string {
	group, ok := n.(*schema.GroupNode)
	if !ok {
		return scalarType(n.(*schema.PrimitiveNode))
	}
	switch group.LogicalType().(type) {
	case schema.ListLogicalType:
		if list, ok := group.Field(0).(*schema.GroupNode); ok && list.NumFields() == 1 {
			return typeOf(list.Field(0)) + "[]"
		}
		return elementType(group.Field(0)) + "[]"
	case schema.MapLogicalType:
		if entry, ok := group.Field(0).(*schema.GroupNode); ok && entry.NumFields() == 2 {
			return fmt.Sprintf("MAP(%s, %s)", typeOf(entry.Field(0)), typeOf(entry.Field(1)))
		}
	case schema.VariantLogicalType:
		return "VARIANT"
	}
	fields := make([]string, group.NumFields())
	for i := range fields {
		field := group.Field(i)
		fields[i] = typeOf(field)
		if field.Name() != "" {
			fields[i] = `"` + strings.ReplaceAll(field.Name(), `"`, `""`) + `" ` + fields[i]
		}
	}
	return "STRUCT(" + strings.Join(fields, ", ") + ")"
}

func scalarType(n *schema.PrimitiveNode) string {
	switch t := n.LogicalType().(type) {
	case schema.StringLogicalType, schema.EnumLogicalType:
		return "VARCHAR"
	case schema.JSONLogicalType:
		return "JSON"
	case schema.UUIDLogicalType:
		return "UUID"
	case schema.DateLogicalType:
		return "DATE"
	case schema.IntervalLogicalType:
		return "INTERVAL"
	case schema.Float16LogicalType:
		return "FLOAT"
	case schema.DecimalLogicalType:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision(), t.Scale())
	case schema.IntLogicalType:
		return integerType(int(t.BitWidth()), t.IsSigned())
	case schema.TimeLogicalType:
		switch {
		case t.IsAdjustedToUTC():
			return "TIME WITH TIME ZONE"
		case t.TimeUnit() == schema.TimeUnitNanos:
			return "TIME_NS"
		}
		return "TIME"
	case schema.TimestampLogicalType:
		switch {
		case t.IsAdjustedToUTC():
			return "TIMESTAMP WITH TIME ZONE"
		case t.TimeUnit() == schema.TimeUnitNanos:
			return "TIMESTAMP_NS"
		}
		return "TIMESTAMP"
	case schema.GeometryLogicalType:
		return geometryType
	}
	switch n.PhysicalType() {
	case parquet.Types.Boolean:
		return "BOOLEAN"
	case parquet.Types.Int32:
		return "INTEGER"
	case parquet.Types.Int64:
		return "BIGINT"
	case parquet.Types.Int96:
		return "TIMESTAMP"
	case parquet.Types.Float:
		return "FLOAT"
	case parquet.Types.Double:
		return "DOUBLE"
	default:
		return "BLOB"
	}
}

func integerType(bits int, signed bool) string {
	name := map[int]string{8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[bits]
	if !signed {
		name = "U" + name
	}
	return name
}

// carriesCommit reports whether the end of a Parquet file holds this commit as
// its own, without parsing the footer: the key, a string header of 32 bytes,
// the digits. False means only that the footer has to be parsed.
func carriesCommit(tail []byte, commit string) bool {
	return len(commit) == 32 && strings.HasSuffix(string(tail), parquetMagic) && strings.Contains(string(tail), MetaCommit+"\x18\x20"+commit)
}
