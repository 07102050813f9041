package lake

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// FS is the seam to the file system: everything that changes a lake goes
// through it, one call a step, so that a test can make the n-th call fail or
// end the process there. Names are absolute system paths. The errors are those
// of package os.
type FS interface {
	// Open opens a file for reading.
	Open(name string) (io.ReadSeekCloser, error)
	// Write creates a new file that must not exist, with this content; it does
	// not sync it.
	Write(name string, content []byte) error
	// Copy creates a new file that must not exist with the content of another,
	// for a move between file systems; it does not sync it.
	Copy(oldName, newName string) error
	// Sync makes a file's content durable.
	Sync(name string) error
	// SyncDir makes the entries of a folder durable.
	SyncDir(name string) error
	// Rename replaces newName by oldName in one step.
	Rename(oldName, newName string) error
	// Link makes newName a hard link of oldName.
	Link(oldName, newName string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// MkdirAll makes a folder and its parents.
	MkdirAll(name string) error
	Stat(name string) (fs.FileInfo, error)
	// ReadDir lists a folder in the order of names.
	ReadDir(name string) ([]fs.DirEntry, error)
}

// OS returns the file system of the machine.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Open(name string) (io.ReadSeekCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err // a nil *os.File in the interface would not be nil
	}
	return f, nil
}

func (osFS) Write(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func (osFS) Copy(oldName, newName string) error {
	in, err := os.Open(oldName)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(newName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Sync opens for writing because Windows refuses to flush a handle that is only
// readable.
func (osFS) Sync(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (osFS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows has no way to flush a folder
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // file systems that keep no folder entries to flush say so in this way
	}
	return errors.Join(err, d.Close())
}

func (osFS) Rename(oldName, newName string) error       { return os.Rename(oldName, newName) }
func (osFS) Link(oldName, newName string) error         { return os.Link(oldName, newName) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) MkdirAll(name string) error                 { return os.MkdirAll(name, 0o777) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// maxDocument bounds a manifest, pointer or receipt that is read, in bytes: far
// above any real one (a million parts), far below what would exhaust memory.
const maxDocument = 1 << 30

// readFile reads a whole document through the seam.
func readFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := readAll(f)
	return b, errors.Join(err, f.Close())
}

func readAll(f io.ReadSeeker) ([]byte, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if size > maxDocument {
		return nil, fmt.Errorf("it is larger than %d bytes", maxDocument)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	_, err = io.ReadFull(f, b)
	return b, err
}

// notExist reports whether a name is not there: also where a parent of it is a
// file.
func notExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
