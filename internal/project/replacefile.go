package project

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ReplaceFile puts a file of the target folder in place, whole: a reader meets
// the old content or the new one. It is not made durable, since all that lies
// there can be made again. The folder must exist: an error wraps fs.ErrNotExist
// where it does not.
func ReplaceFile(path, content string) error {
	return ReplaceFileWith(path, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
}

// ReplaceFileWith is ReplaceFile of a content that is written piece by piece.
func ReplaceFileWith(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = write(temp)
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp.Name()))
	}
	return nil
}

// ReadText reads a file of the target folder. Unlike os.ReadFile it gives a text and
// holds it once: such a file can be a good part of all memory.
func ReadText(path string) (content string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read text: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read text: %w", err)
	}
	var b strings.Builder
	b.Grow(int(info.Size()))
	_, err = io.Copy(&b, f)
	return b.String(), err
}

// tempPrefix begins the names of files that are being written.
const tempPrefix = ".tmp-"

// abandoned is how much older than a file that was just written another must be to
// be what a killed command left.
const abandoned = time.Hour

// cacheFiles bounds the files of one prefix: of different targets, variables, lakes.
const cacheFiles = 4

// SumOf gives the SHA-256 of a text, of which no copy is made.
func SumOf(text string) string {
	h := sha256.New()
	// Neither fails; a reader that writes itself would copy the text first.
	_, _ = io.Copy(h, struct{ io.Reader }{strings.NewReader(text)})
	return string(h.Sum(nil))
}

// KeepCache writes a file of target/cache and removes all but the newest of those
// whose names have the same prefix, and what killed commands left there.
func KeepCache(path, prefix, content string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make folder of %s: %w", path, err)
	}
	if err := ReplaceFile(path, content); err != nil {
		return err
	}
	now, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // another command cleared the folder
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	entries, err := os.ReadDir(dir)
	type aged struct {
		name string
		at   int64
	}
	var others []aged
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr == nil && strings.HasPrefix(e.Name(), tempPrefix) && now.ModTime().Sub(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it is tried again next time
		}
		if strings.HasPrefix(e.Name(), prefix) && e.Name() != filepath.Base(path) && infoErr == nil {
			others = append(others, aged{e.Name(), info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(others, func(a, b aged) int { return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(a.name, b.name)) })
	for i, o := range others {
		if i >= cacheFiles-1 {
			if removed := os.Remove(filepath.Join(dir, o.name)); removed != nil && !errors.Is(removed, os.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
	}
	return err
}
