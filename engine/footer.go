package engine

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"rbt/internal/lake"
)

// footers are what the footers of a relation's Parquet files say of its values.
// They are read once, when the first test asks; no SQL is needed for it. What
// they cannot tell for sure they do not tell.
type footers struct {
	files []string
	// columns are the only columns that are values of the files as they stand;
	// nil: all. A source may cast what it reads.
	columns map[string]bool

	mu   sync.Mutex
	read bool
	all  *footerSums // nil where a file could not be read: the query will say why

	countMu sync.Mutex
	counts  map[string]int64 // of rows, by the query that counted them
}

// counted gives what count gave for this query when it was first asked.
func (f *footers) counted(query string, count func() (int64, error)) (int64, error) {
	f.countMu.Lock()
	defer f.countMu.Unlock()
	if n, ok := f.counts[query]; ok {
		return n, nil
	}
	n, err := count()
	if err == nil {
		if f.counts == nil {
			f.counts = map[string]int64{}
		}
		f.counts[query] = n
	}
	return n, err
}

// newFooters gives the footers of files; nil where there are none to read.
func newFooters(files []string) *footers {
	if len(files) == 0 {
		return nil
	}
	return &footers{files: files}
}

// footerSums sum up the footers of some files.
type footerSums struct {
	rows   int64
	groups int
	// ours: all was written by the version of the engine that is linked in, whose
	// least and greatest values and encodings are known to be right. Counts of
	// NULLs, which the engine itself relies on when it skips row groups, are
	// believed of others too where they are 0.
	ours   bool
	leaves map[string]*leaf // by path
	tops   map[string][]*leaf
	opened []*metadata.FileMetaData // by file; nil where they are too many to be kept
}

// leaf sums up the column chunks of one leaf over all row groups of all files.
type leaf struct {
	index         int // in every file; -1 where files differ
	chunks        int
	values, nulls int64
	counted       bool // every chunk has a count of its NULLs
	bounded       bool // every chunk that holds a value has a least and a greatest one
	low, high     any  // *big.Int, float64 or string; nil of no values
	dictionary    bool // every chunk is written by its dictionary alone
}

// maxKeptGroups is the number of row groups up to which footers are kept for
// their dictionaries: a few thousand columns' chunks are some megabytes.
const maxKeptGroups = 5000

// facts is what is known of the values of one column. Low and high are least and
// greatest of the values that are not NULL, both nil where there is none.
type facts struct {
	rows, nulls int64
	counted     bool // nulls is known
	bounded     bool // low and high are known
	low, high   any  // *big.Int (of a decimal its digits), float64 or string
	// distinct gives the values of the column where they are at most so many:
	// *big.Int or string. False where they are more or not known.
	distinct func(most int) ([]any, bool)
}

// column gives what is known of a column.
func (f *footers) column(c lake.Column) facts {
	none := facts{distinct: func(int) ([]any, bool) { return nil, false }}
	sums := f.sums()
	if sums == nil || f.columns != nil && !f.columns[c.Name] || c.Type == "VARIANT" {
		return none
	}
	leaves := sums.tops[c.Name]
	if strings.ContainsAny(c.Type, "[(") && !decimalType.MatchString(c.Type) {
		// A value that is NULL at any depth, and an empty list, count as NULLs of
		// the leaf: no count tells how many, but none of them is none.
		none.rows = sums.rows
		none.counted = slices.ContainsFunc(leaves, func(l *leaf) bool { return l.counted && l.nulls == 0 && l.chunks == sums.groups })
		return none
	}
	if len(leaves) != 1 || leaves[0] != sums.leaves[c.Name] || leaves[0].values != sums.rows {
		return none
	}
	l := leaves[0]
	out := facts{rows: sums.rows, nulls: l.nulls, counted: l.counted && (sums.ours || l.nulls == 0), distinct: none.distinct}
	if sums.ours && out.counted && l.bounded {
		out.bounded, out.low, out.high = true, l.low, l.high
	}
	if sums.ours && l.dictionary && l.index >= 0 && sums.opened != nil {
		out.distinct = func(most int) ([]any, bool) { return f.distinct(sums, l.index, most) }
	}
	return out
}

// count gives the number of rows.
func (f *footers) count() (int64, bool) {
	sums := f.sums()
	if sums == nil {
		return 0, false
	}
	return sums.rows, true
}

func (f *footers) sums() *footerSums {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.read {
		f.read = true
		f.all = readFooters(f.files)
	}
	return f.all
}

func readFooters(files []string) *footerSums {
	sums := &footerSums{ours: true, leaves: map[string]*leaf{}, tops: map[string][]*leaf{}, opened: []*metadata.FileMetaData{}}
	for _, path := range files {
		meta, err := readParquetFooter(path)
		if err != nil || sums.add(meta) != nil {
			return nil
		}
	}
	for _, path := range sortedKeys(sums.leaves) {
		top, _, _ := strings.Cut(path, pathSeparator)
		sums.tops[top] = append(sums.tops[top], sums.leaves[path])
	}
	return sums
}

func readParquetFooter(path string) (*metadata.FileMetaData, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := file.NewParquetReader(f)
	if err != nil {
		return nil, err
	}
	return r.MetaData(), nil
}

// pathSeparator stands between the names of a leaf's path, and in no name that
// could be taken for two.
const pathSeparator = "\x00"

func (s *footerSums) add(meta *metadata.FileMetaData) error {
	s.rows += meta.NumRows
	s.groups += len(meta.RowGroups)
	s.ours = s.ours && strings.HasPrefix(meta.GetCreatedBy()+" ", "DuckDB version "+mapping.LibraryVersion()+" ")
	if s.opened != nil {
		s.opened = append(s.opened, meta)
	}
	if s.groups > maxKeptGroups {
		s.opened = nil
	}
	leaves := make([]*leaf, meta.Schema.NumColumns())
	for i := range leaves {
		path := strings.Join(meta.Schema.Column(i).ColumnPath(), pathSeparator)
		l := s.leaves[path]
		if l == nil {
			l = &leaf{index: i, counted: true, bounded: true, dictionary: true}
			s.leaves[path] = l
		}
		if l.index != i {
			l.index = -1
		}
		leaves[i] = l
	}
	for g := range meta.RowGroups {
		group := meta.RowGroup(g)
		for i, l := range leaves {
			chunk, err := group.ColumnChunk(i)
			if err != nil {
				return fmt.Errorf("read a column chunk: %w", err)
			}
			if err := l.add(chunk, meta.Schema.Column(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *leaf) add(chunk *metadata.ColumnChunkMetaData, column *schema.Column) error {
	l.chunks++
	l.values += chunk.NumValues()
	l.dictionary = l.dictionary && onlyDictionary(chunk)
	stats, err := chunk.Statistics()
	if err != nil {
		return fmt.Errorf("read statistics: %w", err)
	}
	if stats == nil || !stats.HasNullCount() {
		l.counted, l.bounded = false, false
		return nil
	}
	l.nulls += stats.NullCount()
	if stats.NullCount() == chunk.NumValues() || !l.bounded {
		return nil
	}
	low, high, ok := boundsOf(stats, column)
	if !ok {
		l.bounded = false
		return nil
	}
	if l.low == nil || compareValues(low, l.low) < 0 {
		l.low = low
	}
	if l.high == nil || compareValues(high, l.high) > 0 {
		l.high = high
	}
	return nil
}

// onlyDictionary reports whether all pages of a chunk refer to its dictionary:
// DuckDB settles that for a whole chunk and names the one encoding that it chose.
func onlyDictionary(chunk *metadata.ColumnChunkMetaData) bool {
	encodings := chunk.Encodings()
	return chunk.HasDictionaryPage() && len(encodings) == 1 && (encodings[0] == parquet.Encodings.PlainDict || encodings[0] == parquet.Encodings.RLEDict)
}

// boundsOf gives the least and greatest value of a chunk as *big.Int, float64 or
// string.
func boundsOf(stats metadata.TypedStatistics, column *schema.Column) (low, high any, ok bool) {
	if !stats.HasMinMax() {
		return nil, nil, false
	}
	switch s := stats.(type) {
	case *metadata.Int32Statistics:
		if isUnsigned(column) {
			return new(big.Int).SetUint64(uint64(uint32(s.Min()))), new(big.Int).SetUint64(uint64(uint32(s.Max()))), true
		}
		return big.NewInt(int64(s.Min())), big.NewInt(int64(s.Max())), true
	case *metadata.Int64Statistics:
		if isUnsigned(column) {
			return new(big.Int).SetUint64(uint64(s.Min())), new(big.Int).SetUint64(uint64(s.Max())), true
		}
		return big.NewInt(s.Min()), big.NewInt(s.Max()), true
	case *metadata.Float32Statistics:
		return floatBounds(float64(s.Min()), float64(s.Max()))
	case *metadata.Float64Statistics:
		return floatBounds(s.Min(), s.Max())
	case *metadata.FixedLenByteArrayStatistics:
		if _, decimal := column.LogicalType().(schema.DecimalLogicalType); decimal {
			return signedDigits(s.Min()), signedDigits(s.Max()), true
		}
	case *metadata.ByteArrayStatistics:
		if _, text := column.LogicalType().(schema.StringLogicalType); text {
			// One that is missing reads as empty.
			return string(s.Min()), string(s.Max()), len(s.Max()) > 0
		}
	}
	return nil, nil, false
}

// floatBounds refuses NaN: it is above all numbers, and statistics do not see it.
// DuckDB writes none for a chunk with one.
func floatBounds(low, high float64) (any, any, bool) {
	return low, high, !math.IsNaN(low) && !math.IsNaN(high)
}

func isUnsigned(column *schema.Column) bool {
	t, ok := column.LogicalType().(schema.IntLogicalType)
	return ok && !t.IsSigned()
}

// signedDigits reads a number in two's complement, the highest byte first.
func signedDigits(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// compareValues orders two values of one kind.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case *big.Int:
		return a.Cmp(b.(*big.Int))
	case float64:
		b := b.(float64)
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	return strings.Compare(a.(string), b.(string))
}

// distinct reads the dictionaries of all chunks of a leaf.
func (f *footers) distinct(sums *footerSums, index, most int) ([]any, bool) {
	seen := map[string]any{}
	for i, path := range f.files {
		if !readDictionaries(path, sums.opened[i], index, most, seen) || len(seen) > most {
			return nil, false
		}
	}
	out := make([]any, 0, len(seen))
	for _, key := range sortedKeys(seen) {
		out = append(out, seen[key])
	}
	return out, true
}

// dictionaryBuffer is how much of a chunk is read at once: a dictionary of few
// values is a few hundred bytes.
const dictionaryBuffer = 4 << 10

// readDictionaries adds the values of the dictionaries of one leaf in one file,
// *big.Int or string, by their text; false where one holds more than most, or
// other values.
func readDictionaries(path string, meta *metadata.FileMetaData, index, most int, seen map[string]any) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	props := parquet.NewReaderProperties(nil)
	props.BufferedStreamEnabled, props.BufferSize = true, dictionaryBuffer
	r, err := file.NewParquetReader(f, file.WithMetadata(meta), file.WithReadProps(props))
	if err != nil {
		return false
	}
	for g := range r.NumRowGroups() {
		pages, err := r.RowGroup(g).GetColumnPageReader(index)
		if err != nil {
			return false
		}
		page, err := pages.GetDictionaryPage()
		if err != nil || page == nil || int(page.NumValues()) > most {
			return false
		}
		values, err := plainValues(page.Data(), int(page.NumValues()), meta.Schema.Column(index))
		if err != nil {
			return false
		}
		for _, v := range values {
			seen[fmt.Sprint(v)] = v
		}
	}
	return true
}

// plainValues decodes values that stand one after the other.
func plainValues(data []byte, count int, column *schema.Column) ([]any, error) {
	out := make([]any, 0, count)
	take := func(n int) ([]byte, error) {
		if n < 0 || n > len(data) {
			return nil, io.ErrUnexpectedEOF
		}
		b := data[:n]
		data = data[n:]
		return b, nil
	}
	for range count {
		width, text := 0, false
		switch column.PhysicalType() {
		case parquet.Types.Int32:
			width = 4
		case parquet.Types.Int64:
			width = 8
		case parquet.Types.ByteArray:
			head, err := take(4)
			if err != nil {
				return nil, err
			}
			_, text = column.LogicalType().(schema.StringLogicalType)
			width = int(littleEndian(head, false).Int64())
		}
		if width == 0 && column.PhysicalType() != parquet.Types.ByteArray || column.PhysicalType() == parquet.Types.ByteArray && !text {
			return nil, fmt.Errorf("a dictionary of type %s is not read", column.PhysicalType())
		}
		b, err := take(width)
		if err != nil {
			return nil, err
		}
		if text {
			out = append(out, string(b))
		} else {
			out = append(out, littleEndian(b, !isUnsigned(column)))
		}
	}
	return out, nil
}

// littleEndian reads a number, the lowest byte first.
func littleEndian(b []byte, signed bool) *big.Int {
	turned := slices.Clone(b)
	slices.Reverse(turned)
	if signed {
		return signedDigits(turned)
	}
	return new(big.Int).SetBytes(turned)
}
