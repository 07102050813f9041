package ingest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// ConvertArrow writes an Arrow IPC file or stream as Parquet, which the SQL
// engine reads where it does not read Arrow. An in that can be read in any order is
// read by its footer, where it has one. It makes out, which must not exist,
// and leaves nothing behind when it fails.
func ConvertArrow(ctx context.Context, in io.Reader, out string) (err error) {
	whole, _ := in.(ipc.ReadAtSeeker)
	src, _, err := openArrow(bufio.NewReaderSize(in, readBuffer), whole)
	if err != nil {
		return fmt.Errorf("read arrow data: %w", err)
	}
	defer src.Release()
	dst, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("create parquet file: %w", err)
	}
	defer func() {
		if err != nil {
			dst.Close()
			os.Remove(out)
		}
	}()
	w, err := newArrowTable(src.Schema(), dst)
	if err != nil {
		return fmt.Errorf("write parquet file %s: %w", out, err)
	}
	for src.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.write(src.RecordBatch()); err != nil {
			return fmt.Errorf("write parquet file %s: %w", out, err)
		}
	}
	if err := src.Err(); err != nil && err != io.EOF {
		return fmt.Errorf("read arrow data: %w", err)
	}
	// It closes dst too.
	if err := w.close(); err != nil {
		return fmt.Errorf("write parquet file %s: %w", out, err)
	}
	return nil
}
