package engine

import (
	"context"
	"strings"
	"sync"

	"rbt/internal/lake"
)

// footers are what the footers of a relation's Parquet files say of NULLs. They
// are read once, when the first test asks.
type footers struct {
	files []string

	mu     sync.Mutex
	read   bool
	rows   int64
	chunks map[string]chunkCounts // by path in the Parquet schema
}

// chunkCounts sums up the column chunks of one leaf over all row groups of all
// files.
type chunkCounts struct {
	values, nulls int64
	exact         bool // every chunk has a count of its NULLs
}

// newFooters gives the footers of files; nil where there are none to read.
func newFooters(files []string) *footers {
	if len(files) == 0 {
		return nil
	}
	return &footers{files: files}
}

// nulls gives the number of NULLs of a column and of all rows. It answers only
// where that is exact: a column that is one leaf of every file, with a count in
// every row group, written by an engine whose counts are known to be right.
func (f *footers) nulls(ctx context.Context, s *session, column lake.Column) (nulls, rows int64, ok bool, err error) {
	if f == nil || strings.ContainsAny(column.Type, "[(") && !decimalType.MatchString(column.Type) || strings.Contains(column.Name, ",") || column.Type == "VARIANT" {
		return 0, 0, false, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.read {
		if err := f.load(ctx, s); err != nil {
			return 0, 0, false, err
		}
	}
	c, found := f.chunks[column.Name]
	if !found || !c.exact || c.values != f.rows {
		return 0, 0, false, nil
	}
	return c.nulls, f.rows, true, nil
}

func (f *footers) load(ctx context.Context, s *session) error {
	quoted := make([]string, len(f.files))
	for i, file := range f.files {
		quoted[i] = quoteText(literalPath(file))
	}
	list := "[" + strings.Join(quoted, ", ") + "]"
	ours := true
	err := s.Query(ctx, "SELECT CAST(coalesce(sum(num_rows), 0) AS BIGINT), coalesce(bool_and(created_by LIKE 'DuckDB %'), false) FROM parquet_file_metadata("+list+")", func(v []any) error {
		f.rows, _ = v[0].(int64)
		ours, _ = v[1].(bool)
		return nil
	})
	if err != nil {
		return err
	}
	f.read, f.chunks = true, map[string]chunkCounts{}
	if !ours {
		return nil
	}
	return s.Query(ctx, "SELECT path_in_schema, CAST(sum(num_values) AS BIGINT), CAST(coalesce(sum(stats_null_count), 0) AS BIGINT), count(*) = count(stats_null_count) FROM parquet_metadata("+list+") GROUP BY ALL",
		func(v []any) error {
			path, _ := v[0].(string)
			c := chunkCounts{}
			c.values, _ = v[1].(int64)
			c.nulls, _ = v[2].(int64)
			c.exact, _ = v[3].(bool)
			f.chunks[path] = c
			return nil
		})
}
