package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"rbt/internal/lake"
	"rbt/internal/memory"
	"rbt/internal/project"
)

// expandPatterns gives the files that patterns name, sorted, each once. A
// pattern that names an existing file means that file, whatever characters its
// name has. Hidden files and folders are met only where a pattern names them.
func expandPatterns(patterns []string) ([]string, error) {
	var files []string
	for _, p := range patterns {
		info, err := os.Stat(p)
		switch {
		case err == nil && info.IsDir():
			return nil, fmt.Errorf("%s is a folder; name its files, as in %s", p, filepath.Join(p, "**", "*.csv"))
		case err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
			// To open a pipe waits for whoever writes into it.
			return nil, fmt.Errorf("%s is no file but a pipe or socket; write what comes out of it into a file", p)
		case err == nil:
			files = append(files, p)
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("look for files: %w", err)
		}
		found, err := doublestar.FilepathGlob(p, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors(), doublestar.WithNoHidden())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for files %s: %w", p, err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// fileStamps takes the identity of files now. The names are those that receipts
// use.
func fileStamps(p *project.Project, files []string) (map[string]lake.FileStamp, error) {
	found, err := stampFiles(files)
	if err != nil {
		return nil, err
	}
	stamps := make(map[string]lake.FileStamp, len(files))
	for i, file := range files {
		stamps[shownPath(p, file)] = found[i]
	}
	return stamps, nil
}

// stampFiles takes the identities of files in their order.
func stampFiles(files []string) ([]lake.FileStamp, error) {
	found := make([]lake.FileStamp, len(files))
	// Looking at 100,000 files is most of what an unchanged ingest of them costs.
	const each = 2000
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for start := 0; start < len(files); start += each {
		group.Go(func() error {
			for i := start; i < min(start+each, len(files)); i++ {
				info, err := os.Stat(files[i])
				if err != nil {
					return fmt.Errorf("look at source file: %w", err)
				}
				found[i] = lake.FileStamp{Size: info.Size(), Mtime: info.ModTime().UnixNano(), Ctime: memory.ChangeTime(info)}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

// shownPath is the name of a file in messages and receipts: relative to the
// project where it lies in it, with "/" on every system, secrets masked.
func shownPath(p *project.Project, file string) string {
	if p != nil {
		// Most files lie in the project under its own spelling; the rest takes
		// twenty times as long, which counts where there are 100,000.
		if rel, ok := strings.CutPrefix(file, p.Dir+string(filepath.Separator)); ok && filepath.IsLocal(rel) {
			file = rel
		} else if rel, err := filepath.Rel(p.Dir, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
		file = p.Mask(file)
	}
	return filepath.ToSlash(file)
}

// compressionOf is how a file is compressed: what the options say, else what its
// name ends in. The words are DuckDB's.
func compressionOf(file string, options map[string]string) string {
	if c := options["compression"]; c != "" {
		return c
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".gz", ".gzip":
		return "gzip"
	case ".zst", ".zstd":
		return "zstd"
	}
	return "none"
}

// openFile opens a file for reading its plain content.
func openFile(file, compression string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	var r io.Reader
	var closers []io.Closer
	switch compression {
	case "gzip":
		z, zerr := gzip.NewReader(f)
		if zerr == io.EOF { // nothing at all, which gunzip takes for an empty file
			r = strings.NewReader("")
			break
		}
		r, err = z, zerr
		closers = append(closers, z)
	case "zstd":
		z, zerr := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
		if r, err = z, zerr; zerr == nil {
			closers = append(closers, z.IOReadCloser())
		}
	default:
		return f, nil
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("read %s as %s: %w", file, compression, err)
	}
	return &plainFile{Reader: r, closers: append(closers, f)}, nil
}

type plainFile struct {
	io.Reader
	closers []io.Closer
}

// Close closes the decoder and the file.
func (p *plainFile) Close() error {
	var err error
	for _, c := range p.closers {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}
	return err
}
