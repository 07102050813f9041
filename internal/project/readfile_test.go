package project

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestReadFile compares readFile with os.ReadFile, contents and errors.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	paths := []string{dir, filepath.Join(dir, "none"), filepath.Join(dir, "file", "below")}
	for name, size := range map[string]int{"file": 1, "empty": 0, "under": 4095, "page": 4096, "over": 4097, "large": 1 << 20} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.Repeat([]byte("äb\n"), size/4+1)[:size], 0o666); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		want, wantErr := os.ReadFile(path)
		got, err := readFile(path)
		if wantErr != nil {
			if err == nil || err.Error() != wantErr.Error() || os.IsNotExist(err) != os.IsNotExist(wantErr) {
				t.Errorf("%s: error %v, want %v", path, err, wantErr)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, error %v; want %d bytes", path, len(got), err, len(want))
		}
	}
}
