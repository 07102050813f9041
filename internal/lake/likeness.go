package lake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// MayHoldSame reports whether the footers of two lists of Parquet files leave it
// open that both hold the same rows in some order: as many rows, and in every
// column as many NULLs, the same least and the same greatest value, as far as all
// footers of both say these. It reads no data. Files are absolute paths.
func (l *Lake) MayHoldSame(a, b []string) (bool, error) {
	first, err := l.sumUp(a)
	if err != nil {
		return false, err
	}
	second, err := l.sumUp(b)
	if err != nil || first.rows != second.rows || len(first.columns) != len(second.columns) {
		return false, err
	}
	for i, c := range first.columns {
		d := second.columns[i]
		if c.counted && d.counted && c.nulls != d.nulls {
			return false, nil
		}
		if c.bounded && d.bounded && (c.least.compare(d.least) != 0 || c.greatest.compare(d.greatest) != 0) {
			return false, nil
		}
	}
	return true, nil
}

// summary is what the footers of some files say together.
type summary struct {
	rows    int64
	columns []columnSummary
}

type columnSummary struct {
	nulls            int64
	counted          bool // every row group says its NULLs
	least, greatest  bound
	bounded, started bool // every row group with values says its bounds; one did
}

// bound is a value of a statistic: a number or bytes.
type bound struct {
	number int64
	text   []byte
}

func (b bound) compare(o bound) int {
	return cmp.Or(cmp.Compare(b.number, o.number), bytes.Compare(b.text, o.text))
}

func (l *Lake) sumUp(files []string) (summary, error) {
	var s summary
	for _, path := range files {
		if err := l.addFooter(&s, path); err != nil {
			return summary{}, fmt.Errorf("read footer of %s: %w", path, err)
		}
	}
	return s, nil
}

func (l *Lake) addFooter(s *summary, path string) (err error) {
	f, err := l.fs.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	meta, _, err := readMeta(f)
	if err != nil {
		return err
	}
	return s.add(meta)
}

func (s *summary) add(meta *metadata.FileMetaData) error {
	leaves := meta.Schema.NumColumns()
	if s.columns == nil {
		s.columns = make([]columnSummary, leaves)
		for i := range s.columns {
			s.columns[i] = columnSummary{counted: true, bounded: true}
		}
	}
	if len(s.columns) != leaves {
		return errors.New("it has another number of columns than the file before it")
	}
	s.rows += meta.NumRows
	for g := range meta.RowGroups {
		for i := range s.columns {
			chunk, err := meta.RowGroup(g).ColumnChunk(i)
			if err != nil {
				return err
			}
			stats, err := chunk.Statistics()
			if err != nil {
				return err
			}
			s.columns[i].add(stats, chunk.NumValues())
		}
	}
	return nil
}

// add takes in what one row group says of its values.
func (c *columnSummary) add(stats metadata.TypedStatistics, values int64) {
	if stats == nil || !stats.HasNullCount() {
		c.counted, c.bounded = false, false
		return
	}
	c.nulls += stats.NullCount()
	if stats.NullCount() == values {
		return // nothing but NULLs has no bounds
	}
	var least, greatest bound
	switch t := stats.(type) {
	case *metadata.Int32Statistics:
		least.number, greatest.number = int64(t.Min()), int64(t.Max())
	case *metadata.Int64Statistics:
		least.number, greatest.number = t.Min(), t.Max()
	case *metadata.ByteArrayStatistics:
		least.text, greatest.text = bytes.Clone(t.Min()), bytes.Clone(t.Max())
	default:
		c.bounded = false
		return
	}
	if !stats.HasMinMax() {
		c.bounded = false
		return
	}
	if !c.started || least.compare(c.least) < 0 {
		c.least = least
	}
	if !c.started || greatest.compare(c.greatest) > 0 {
		c.greatest = greatest
	}
	c.started = true
}
