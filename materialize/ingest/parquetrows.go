package ingest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// parquetRows reads the rows of a Parquet file as JSON, column beside column. The
// general reader of arrow-go (18), package pqarrow, makes arrays first, and brings
// gRPC into the program.
type parquetRows struct {
	file    *file.Reader
	group   int   // the next row group
	left    int64 // rows of this one that are still to be read
	columns []parquetColumn
	leaves  []*parquetLeaf // by the number of the column in the file
}

type parquetColumn struct {
	name  string
	value parquetValue
}

// parquetValue is a column, or a part of a nested one. It stands before the next
// value that its leaves hold.
type parquetValue interface {
	// write appends that value.
	write(dst []byte) []byte
	// skip goes over the place that it has where something around it is absent.
	skip()
	// first is the leaf that comes first: its levels say what there is.
	first() *parquetLeaf
}

// newParquetRows looks at the schema. The error says of which column it is.
func newParquetRows(f *file.Reader) (*parquetRows, error) {
	p := &parquetRows{file: f}
	s := f.MetaData().Schema
	for i := range s.NumColumns() {
		c := s.Column(i)
		p.leaves = append(p.leaves, &parquetLeaf{maxDef: c.MaxDefinitionLevel(), maxRep: c.MaxRepetitionLevel()})
	}
	kept := keptSchema(f)
	b := valueBuilder{leaves: p.leaves}
	for i := range s.Root().NumFields() {
		n := s.Root().Field(i)
		value, err := b.field(n, levels{})
		if err == nil && i < len(kept) {
			err = noDuration(kept[i].Type)
		}
		if err != nil {
			return nil, fmt.Errorf("the column %q cannot be read: %w", n.Name(), err)
		}
		p.columns = append(p.columns, parquetColumn{n.Name(), value})
	}
	return p, nil
}

// next reports whether there is another row.
func (p *parquetRows) next() (bool, error) {
	for p.left == 0 {
		if p.group == p.file.NumRowGroups() {
			return false, nil
		}
		group := p.file.RowGroup(p.group)
		for i, l := range p.leaves {
			column, err := group.Column(i)
			if err != nil {
				return false, err
			}
			l.open(column)
		}
		p.group++
		p.left = group.NumRows()
	}
	p.left--
	return true, nil
}

// write appends the next row.
func (p *parquetRows) write(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	for i, c := range p.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, c.name), ':')
		dst = c.value.write(dst)
	}
	for _, l := range p.leaves {
		if l.err != nil {
			return nil, l.err
		}
	}
	return append(dst, '}'), nil
}

// levels are where in the nesting a part stands.
type levels struct{ def, rep int16 }

// of are the levels inside a node that stands here.
func (l levels) of(n schema.Node) levels {
	switch n.RepetitionType() {
	case parquet.Repetitions.Optional:
		l.def++
	case parquet.Repetitions.Repeated:
		l.def++
		l.rep++
	}
	return l
}

// valueBuilder makes the parts of columns, and takes the leaves in their order.
type valueBuilder struct {
	leaves []*parquetLeaf
	used   int
}

// field makes a node that stands at some levels; where it is repeated and nothing
// says what that means, a list.
func (b *valueBuilder) field(n schema.Node, at levels) (parquetValue, error) {
	group, isGroup := n.(*schema.GroupNode)
	if isGroup && n.RepetitionType() != parquet.Repetitions.Repeated {
		switch n.LogicalType().(type) {
		case schema.ListLogicalType:
			return b.list(group, at)
		case schema.MapLogicalType:
			return b.mapping(group, at)
		case schema.VariantLogicalType:
			return nil, errors.New("its type variant has no form in JSON")
		}
	}
	in := at.of(n)
	value, err := b.inside(n, in)
	if err != nil || n.RepetitionType() != parquet.Repetitions.Repeated {
		return value, err
	}
	return &parquetList{def: at.def, rep: in.rep, element: value}, nil
}

// inside makes what a node holds that is there: a struct or a leaf.
func (b *valueBuilder) inside(n schema.Node, in levels) (parquetValue, error) {
	group, ok := n.(*schema.GroupNode)
	if !ok {
		leaf := b.leaves[b.used]
		b.used++
		return leaf, leaf.decode(n.(*schema.PrimitiveNode))
	}
	if group.NumFields() == 0 {
		return nil, errors.New("its group has no fields")
	}
	s := &parquetStruct{def: in.def}
	for i := range group.NumFields() {
		f := group.Field(i)
		value, err := b.field(f, in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		s.names, s.fields = append(s.names, f.Name()), append(s.fields, value)
	}
	return s, nil
}

// list makes a group that is called LIST. What is repeated in it holds the element,
// or, in files of older writers, is the element.
func (b *valueBuilder) list(n *schema.GroupNode, at levels) (parquetValue, error) {
	if n.NumFields() != 1 || n.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return nil, errors.New("its list does not hold one repeated field")
	}
	at = at.of(n)
	repeated := n.Field(0)
	in := at.of(repeated)
	group, ok := repeated.(*schema.GroupNode)
	wrapped := ok && group.NumFields() == 1 && group.Name() != "array" && group.Name() != n.Name()+"_tuple"
	var element parquetValue
	var err error
	if wrapped {
		element, err = b.field(group.Field(0), in)
	} else {
		element, err = b.inside(repeated, in)
	}
	return &parquetList{def: at.def, rep: in.rep, element: element}, err
}

// mapping makes a group that is called MAP: a list of keys with their values.
func (b *valueBuilder) mapping(n *schema.GroupNode, at levels) (parquetValue, error) {
	if n.NumFields() == 1 {
		if entry, ok := n.Field(0).(*schema.GroupNode); ok && entry.NumFields() == 1 {
			return b.list(n, at) // of keys alone
		}
	}
	if n.NumFields() != 1 || n.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return nil, errors.New("its map does not hold one repeated field")
	}
	at = at.of(n)
	in := at.of(n.Field(0))
	value, err := b.inside(n.Field(0), in)
	if err != nil {
		return nil, err
	}
	entry, ok := value.(*parquetStruct)
	if !ok || len(entry.names) != 2 {
		return nil, errors.New("its map does not hold keys and values")
	}
	entry.names = []string{"key", "value"}
	return &parquetList{def: at.def, rep: in.rep, element: entry}, nil
}

// parquetStruct is a group of fields; def is the level at which it is there.
type parquetStruct struct {
	def    int16
	names  []string
	fields []parquetValue
}

func (s *parquetStruct) first() *parquetLeaf { return s.fields[0].first() }

func (s *parquetStruct) skip() {
	for _, f := range s.fields {
		f.skip()
	}
}

func (s *parquetStruct) write(dst []byte) []byte {
	if s.first().level() < s.def {
		s.skip()
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	for i, f := range s.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, s.names[i]), ':')
		dst = f.write(dst)
	}
	return append(dst, '}')
}

// parquetList repeats its element: it is there from the level def on, and has an
// element from the next; rep is the level at which it goes on.
type parquetList struct {
	def, rep int16
	element  parquetValue
}

func (l *parquetList) first() *parquetLeaf { return l.element.first() }

func (l *parquetList) skip() { l.element.skip() }

func (l *parquetList) write(dst []byte) []byte {
	leaf := l.first()
	switch at := leaf.level(); {
	case at < l.def:
		l.skip()
		return append(dst, "null"...)
	case at == l.def:
		l.skip()
		return append(dst, "[]"...)
	}
	dst = l.element.write(append(dst, '['))
	for leaf.repeats() == l.rep {
		dst = l.element.write(append(dst, ','))
	}
	return append(dst, ']')
}

// keptSchema is the Arrow schema that some writers keep beside that of Parquet,
// which has no types for durations: they look like integers.
func keptSchema(f *file.Reader) []arrow.Field {
	kept := f.MetaData().KeyValueMetadata().FindValue("ARROW:schema")
	if kept == nil {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(*kept)
	if err != nil {
		return nil
	}
	r, err := ipc.NewReader(strings.NewReader(string(text)))
	if err != nil {
		return nil
	}
	defer r.Release()
	return r.Schema().Fields()
}

// noDuration refuses durations, at any depth.
func noDuration(t arrow.DataType) error {
	return eachLeaf(t, func(t arrow.DataType) error {
		if t.ID() == arrow.DURATION {
			return noJSONForm(t)
		}
		return nil
	})
}
