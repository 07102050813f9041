package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// ContentHash gives a hash of what Parquet files hold, in this order, without
// what a publish writes about itself: the pages of all columns and the names and
// types of these, not the footers. Equal hashes mean equal rows in equal order;
// equal rows can have different hashes where the order or the encoding differs.
// Files are absolute paths. It costs reading the files once, which is a small
// part of what writing them took.
func (l *Lake) ContentHash(files []string, columns []Column) (string, error) {
	h := sha256.New()
	for _, c := range columns {
		fmt.Fprintf(h, "%d %s %d %s\n", len(c.Name), c.Name, len(c.Type), c.Type)
	}
	for _, file := range files {
		if err := l.hashPages(h, file); err != nil {
			return "", fmt.Errorf("hash the content of %s: %w", file, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func (l *Lake) hashPages(h io.Writer, file string) (err error) {
	f, err := l.fs.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, tail, err := readTail(f, firstTail)
	if err != nil {
		return err
	}
	footer, err := footerLength(size, tail)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	pages := size - trailerSize - footer
	// Hashes never fail to take bytes.
	_, _ = fmt.Fprintf(h, "%d\n", pages)
	_, err = io.CopyN(h, f, pages)
	return err
}
