package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"rbt/internal/diag"
	"rbt/materialize/ingest"
)

// arrowCache is the folder under target/ that holds Arrow files as Parquet, by
// the SHA-256 of their content.
const arrowCache = "cache/arrow"

// arrowQuery gives a query over Arrow IPC files, which DuckDB 1.5.6 cannot read
// without an extension: each content is written once as Parquet and read from
// there.
func (t *fileTable) arrowQuery(ctx context.Context, s *session) (string, error) {
	dir := filepath.Join(t.project.TargetDir, filepath.FromSlash(arrowCache))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("make the cache of Arrow files: %w", err)
	}
	converted := make([]string, len(t.files))
	problems := make([]*diag.Diagnostic, len(t.files))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range t.files {
		group.Go(func() error {
			out, err := cachedArrow(within, dir, file, compressionOf(file, t.options))
			if within.Err() != nil {
				return within.Err()
			}
			if err != nil {
				p := t.problem(diag.SourceValue, file, 0, "cannot be read as Arrow IPC: %v", err)
				problems[i] = &p
			}
			converted[i] = out
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	var list diag.List
	for _, p := range problems {
		if p != nil {
			list = append(list, *p)
		}
	}
	if err := list.Err(); err != nil {
		return "", err
	}
	as := *t
	as.files, as.origin = converted, map[string]string{}
	for i, c := range converted {
		as.origin[c] = t.files[i]
	}
	return as.parquetQuery(ctx, s)
}

// cachedArrow gives the Parquet file of an Arrow file's content, and makes it
// where it is missing. Two processes that make it at once write the same.
func cachedArrow(ctx context.Context, dir, file, compression string) (out string, err error) {
	in, err := openFile(file, compression)
	if err != nil {
		return "", err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	out = filepath.Join(dir, hex.EncodeToString(hash.Sum(nil))+".parquet")
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	again, err := openFile(file, compression)
	if err != nil {
		return "", err
	}
	defer again.Close()
	temp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	made := filepath.Join(temp, "converted")
	if err := ingest.ConvertArrow(ctx, again, made); err != nil {
		return "", err
	}
	return out, os.Rename(made, out)
}
