package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// largeBytes is from where on a file is removed at once, so that the disk does
// not fill; smaller ones wait for the end.
const largeBytes = 1 << 20

// cleared is a reset after which paths do not exist. Small files are set aside
// until the end, because some file systems make files at a tenth of their speed
// for minutes after many were removed: the next run would be measured with that.
func (b *bench) cleared(paths ...string) func() error {
	return func() error {
		for _, path := range paths {
			removeLarge(path)
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			b.moved++
			to := filepath.Join(b.aside(), strconv.Itoa(b.moved))
			err := os.MkdirAll(b.aside(), 0o755)
			if err == nil {
				err = os.Rename(path, to)
			}
			if err != nil {
				return fmt.Errorf("clear %s: %w", path, err)
			}
		}
		return nil
	}
}

// aside is where what is cleared waits for the end.
func (b *bench) aside() string { return filepath.Join(b.work, "aside") }

// removeLarge removes the large files of a folder, or a large file. What cannot
// be removed now goes at the end.
func removeLarge(path string) {
	_ = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Size() >= largeBytes {
			_ = os.Remove(file)
		}
		return nil
	})
}
