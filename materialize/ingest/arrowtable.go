package ingest

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	pqcompress "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// tableGroup is how many rows a row group has, as the SQL engine makes them.
const tableGroup = 122_880

// arrowTable writes record batches as a Parquet file. The general writer of
// arrow-go (18), package pqarrow, brings gRPC into the program.
type arrowTable struct {
	columns []*arrowPart
	sinks   []*columnSink // of all columns, in the order of the file
	err     error         // the first value that could not be written
	writer  *file.Writer
	group   file.BufferedRowGroupWriter
	rows    int64 // of the group
}

// newArrowTable begins a file. The error says of which column it is.
func newArrowTable(s *arrow.Schema, out io.Writer) (*arrowTable, error) {
	t := &arrowTable{}
	var nodes schema.FieldList
	for _, f := range s.Fields() {
		part, node, err := t.part(f, levels{})
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		t.columns, nodes = append(t.columns, part), append(nodes, node)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return nil, err
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(pqcompress.Codecs.Zstd))
	t.writer, err = file.NewParquetWriterWithError(out, root, file.WithWriterProps(props))
	return t, err
}

// write adds the rows of a batch.
func (t *arrowTable) write(batch arrow.RecordBatch) error {
	for from, all := int64(0), batch.NumRows(); from < all; {
		if t.group == nil || t.rows == tableGroup {
			if err := t.nextGroup(); err != nil {
				return err
			}
		}
		to := min(all, from+tableGroup-t.rows)
		for i, c := range t.columns {
			put, err := c.bind(t, batch.Column(i))
			if err != nil {
				return err
			}
			for row := from; row < to; row++ {
				put(int(row), 0)
			}
			if t.err != nil {
				return fmt.Errorf("column %q: %w", batch.ColumnName(i), t.err)
			}
		}
		for i, s := range t.sinks {
			w, err := t.group.Column(i)
			if err != nil {
				return err
			}
			if err := s.flush(w); err != nil {
				return err
			}
		}
		t.rows += to - from
		from = to
	}
	return nil
}

func (t *arrowTable) nextGroup() (err error) {
	if t.group != nil {
		if err := t.group.Close(); err != nil {
			return err
		}
	}
	t.rows = 0
	t.group, err = t.writer.AppendBufferedRowGroupChecked()
	return err
}

// close writes the footer. It closes what is written to where that can be closed.
func (t *arrowTable) close() error {
	var err error
	if t.group != nil {
		err = t.group.Close()
	}
	return errors.Join(err, t.writer.Close())
}

func (t *arrowTable) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// arrowPart is a column, or a part of a nested one.
type arrowPart struct {
	nullable bool
	at       levels // where it is there
	list     bool   // its one part is its elements, else its parts are its fields
	parts    []*arrowPart
	sink     *columnSink // of one that is not nested
}

// put writes the value of a row; rep is the level of the list that it goes on with.
type put func(row int, rep int16)

// part makes the part and the schema of a field inside of what is there at some
// levels.
func (t *arrowTable) part(f arrow.Field, around levels) (*arrowPart, schema.Node, error) {
	repetition := parquet.Repetitions.Required
	p := &arrowPart{nullable: f.Nullable, at: around}
	if f.Nullable {
		repetition = parquet.Repetitions.Optional
		p.at.def++
	}
	typ := f.Type
	var logical schema.LogicalType
	for nested := true; nested; {
		switch x := typ.(type) {
		case *arrow.DictionaryType:
			typ = x.ValueType
		case arrow.ExtensionType:
			if named, ok := x.(interface{ ParquetLogicalType() schema.LogicalType }); ok {
				logical = named.ParquetLogicalType()
			}
			typ = x.StorageType()
		default:
			nested = false
		}
	}
	inner := levels{def: p.at.def + 1, rep: p.at.rep + 1} // of the elements of a list
	switch x := typ.(type) {
	case *arrow.MapType:
		entry := &arrowPart{at: inner}
		key, keyNode, err := t.part(x.KeyField(), inner)
		if err != nil {
			return nil, nil, err
		}
		value, valueNode, err := t.part(x.ItemField(), inner)
		if err != nil {
			return nil, nil, err
		}
		entry.parts = []*arrowPart{key, value}
		p.list, p.parts = true, []*arrowPart{entry}
		node, err := schema.MapOf(f.Name, keyNode, valueNode, repetition, -1)
		return p, node, err
	case arrow.ListLikeType:
		element, elementNode, err := t.part(x.ElemField(), inner)
		if err != nil {
			return nil, nil, err
		}
		p.list, p.parts = true, []*arrowPart{element}
		node, err := schema.ListOfWithName(f.Name, elementNode, repetition, -1)
		return p, node, err
	case *arrow.StructType:
		return t.structPart(p, f.Name, x, repetition)
	}
	leaf, err := t.leaf(typ)
	if err != nil {
		return nil, nil, err
	}
	if logical != nil {
		leaf.logical = logical
	}
	p.sink = leaf.sink
	p.sink.nested = p.at
	t.sinks = append(t.sinks, p.sink)
	node, err := schema.NewPrimitiveNodeLogical(f.Name, repetition, leaf.logical, leaf.physical, leaf.length, -1)
	return p, node, err
}

func (t *arrowTable) structPart(p *arrowPart, name string, typ *arrow.StructType, repetition parquet.Repetition) (*arrowPart, schema.Node, error) {
	if typ.NumFields() == 0 {
		return nil, nil, errors.New("a struct without fields has no form in Parquet")
	}
	var nodes schema.FieldList
	for _, f := range typ.Fields() {
		part, node, err := t.part(f, p.at)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		p.parts, nodes = append(p.parts, part), append(nodes, node)
	}
	node, err := schema.NewGroupNode(name, repetition, nodes, -1)
	return p, node, err
}

// bind gives how the values of an array are written.
func (p *arrowPart) bind(t *arrowTable, a arrow.Array) (put, error) {
	switch a := a.(type) {
	case *array.Dictionary:
		if a.Len() == 0 { // it may have no values then
			return nil, nil
		}
		values, err := p.bind(t, a.Dictionary())
		return p.nulls(t, a, func(row int, rep int16) { values(a.GetValueIndex(row), rep) }), err
	case array.ExtensionArray:
		return p.bind(t, a.Storage())
	}
	switch {
	case p.list:
		return p.bindList(t, a)
	case p.sink == nil:
		return p.bindStruct(t, a)
	}
	value, err := p.sink.bind(a)
	return p.nulls(t, a, func(row int, rep int16) {
		p.sink.level(p.at.def, rep)
		value(row)
	}), err
}

func (p *arrowPart) bindList(t *arrowTable, a arrow.Array) (put, error) {
	list, ok := a.(array.ListLike)
	if !ok {
		return nil, fmt.Errorf("a list came as %s", a.DataType())
	}
	element, err := p.parts[0].bind(t, list.ListValues())
	return p.nulls(t, a, func(row int, rep int16) {
		from, to := list.ValueOffsets(row)
		if from == to {
			p.absent(p.at.def, rep)
			return
		}
		for i := from; i < to; i++ {
			element(int(i), rep)
			rep = p.at.rep + 1
		}
	}), err
}

func (p *arrowPart) bindStruct(t *arrowTable, a arrow.Array) (put, error) {
	of, ok := a.(*array.Struct)
	if !ok {
		return nil, fmt.Errorf("a struct came as %s", a.DataType())
	}
	fields := make([]put, len(p.parts))
	for i, part := range p.parts {
		var err error
		if fields[i], err = part.bind(t, of.Field(i)); err != nil {
			return nil, err
		}
	}
	return p.nulls(t, a, func(row int, rep int16) {
		for _, f := range fields {
			f(row, rep)
		}
	}), nil
}

// nulls writes NULL where the array says so.
func (p *arrowPart) nulls(t *arrowTable, a arrow.Array, there put) put {
	if a.NullN() == 0 {
		return there
	}
	_, always := a.(*array.Null) // has no bitmap
	return func(row int, rep int16) {
		switch {
		case !always && !a.IsNull(row):
			there(row, rep)
		case p.nullable:
			p.absent(p.at.def-1, rep)
		default:
			t.fail(errors.New("it holds NULL, and its schema says that it never does"))
		}
	}
}

// absent says to all below that something ends at a level.
func (p *arrowPart) absent(def, rep int16) {
	if p.sink != nil {
		p.sink.level(def, rep)
		return
	}
	for _, part := range p.parts {
		part.absent(def, rep)
	}
}
