//go:build unix

package project

import (
	"io/fs"
	"slices"
	"syscall"
)

// readFile is os.ReadFile for files that are small and many. A file that os opens
// costs six calls of the system more, which prepare it for waiting, and a project
// has thousands.
func readFile(path string) ([]byte, error) {
	fd, err := again(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	var first [4096]byte
	content := first[:0]
	for {
		if len(content) == cap(content) {
			content = slices.Grow(content, cap(content))
		}
		n, err := again(func() (int, error) { return syscall.Read(fd, content[len(content):cap(content)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n <= 0 {
			return slices.Clone(content), nil
		}
		content = content[:len(content)+n]
	}
}

// again makes a call of the system until no signal interrupts it.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}
