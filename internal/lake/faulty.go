package lake

import (
	"io"
	"io/fs"
	"os"
	"sync"
)

// Call is one recorded call of the seam. New is set for Copy, Rename and Link.
type Call struct {
	Op   string // name of the FS method, or what Point was given
	Name string
	New  string
}

// Faulty is a file system for tests: it records every call and makes the N-th,
// counted from 1, fail or end the process. Reads count as well. It may be used
// by several goroutines.
type Faulty struct {
	FS     FS
	N      int   // the call that fails; 0: none does
	Err    error // what it returns; nil: the process is killed before the call is made
	Sticky bool  // every later call that writes fails too, as on a full disk
	Dead   bool  // every later call fails, as if the process had ended there

	mu    sync.Mutex
	calls []Call
}

// Calls returns what was recorded so far.
func (f *Faulty) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Point counts as a call that writes. A test session calls it where an engine
// touches the disk by itself.
func (f *Faulty) Point(op, name string) error { return f.step(Call{Op: op, Name: name}, true) }

func (f *Faulty) step(c Call, writes bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	n := len(f.calls)
	if f.N == 0 || n < f.N || n > f.N && !f.Dead && !(f.Sticky && writes) {
		return nil
	}
	if f.Err == nil {
		f.kill()
	}
	return &fs.PathError{Op: c.Op, Path: c.Name, Err: f.Err}
}

// kill ends the process as kill -9 does: nothing deferred runs.
func (f *Faulty) kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Kill() == nil {
		select {} // the signal is on its way
	}
	os.Exit(137)
}

// Open implements FS.
func (f *Faulty) Open(name string) (io.ReadSeekCloser, error) {
	if err := f.step(Call{Op: "Open", Name: name}, false); err != nil {
		return nil, err
	}
	return f.FS.Open(name)
}

// Write implements FS. The call that fails leaves half of the content, as a
// full disk does.
func (f *Faulty) Write(name string, content []byte) error {
	if err := f.step(Call{Op: "Write", Name: name}, true); err != nil {
		if half := f.FS.Write(name, content[:len(content)/2]); half != nil {
			return half
		}
		return err
	}
	return f.FS.Write(name, content)
}

// Copy implements FS.
func (f *Faulty) Copy(oldName, newName string) error {
	if err := f.step(Call{"Copy", oldName, newName}, true); err != nil {
		return err
	}
	return f.FS.Copy(oldName, newName)
}

// Sync implements FS.
func (f *Faulty) Sync(name string) error {
	if err := f.step(Call{Op: "Sync", Name: name}, true); err != nil {
		return err
	}
	return f.FS.Sync(name)
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(name string) error {
	if err := f.step(Call{Op: "SyncDir", Name: name}, true); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

// Rename implements FS.
func (f *Faulty) Rename(oldName, newName string) error {
	if err := f.step(Call{"Rename", oldName, newName}, true); err != nil {
		return err
	}
	return f.FS.Rename(oldName, newName)
}

// Link implements FS.
func (f *Faulty) Link(oldName, newName string) error {
	if err := f.step(Call{"Link", oldName, newName}, true); err != nil {
		return err
	}
	return f.FS.Link(oldName, newName)
}

// Remove implements FS. A full disk does not keep a file from being removed, so
// that a sticky fault lets it through.
func (f *Faulty) Remove(name string) error {
	if err := f.step(Call{Op: "Remove", Name: name}, false); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// MkdirAll implements FS.
func (f *Faulty) MkdirAll(name string) error {
	if err := f.step(Call{Op: "MkdirAll", Name: name}, true); err != nil {
		return err
	}
	return f.FS.MkdirAll(name)
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (fs.FileInfo, error) {
	if err := f.step(Call{Op: "Stat", Name: name}, false); err != nil {
		return nil, err
	}
	return f.FS.Stat(name)
}

// ReadDir implements FS.
func (f *Faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.step(Call{Op: "ReadDir", Name: name}, false); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}
