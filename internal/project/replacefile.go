package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReplaceFile puts a file of the target folder in place, whole: a reader meets
// the old content or the new one. It is not made durable, since all that lies
// there can be made again. The folder must exist: an error wraps fs.ErrNotExist
// where it does not.
func ReplaceFile(path, content string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.WriteString(content)
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp.Name()))
	}
	return nil
}
