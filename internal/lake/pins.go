package lake

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/gofrs/flock"
)

// pinLock is a file in every folder of pins that its reader keeps locked: the
// lock tells a living reader from a dead one, also where a process id was used
// again or means another process in another container.
const pinLock = "lock"

// Pins holds hard links to the files that a reader reads, so that they stay as
// they are whatever a run publishes or removes meanwhile. It may be used by
// several goroutines.
type Pins struct {
	lake *Lake // in which the links stand
	pid  int

	mu      sync.Mutex
	dir     string // "" until the first link is made
	fl      *flock.Flock
	refused bool // the folder could not be made: everything is read in place
	next    int
}

// PinnedFile is one file that a reader may open. Path is absolute.
type PinnedFile struct {
	Path string
	File File // as published
}

// Pinned is one node as a reader may read it.
type Pinned struct {
	Node  Node
	Files map[string][]PinnedFile // by relation, in the order of the manifest
	// Held is false where links are impossible: then the files are the published
	// ones, and the reader asks Unchanged after reading.
	Held bool
}

// NewPins gives a reader its pins in the lake. Nothing is made before the first
// link; where nothing can be made (a lake that is only readable), everything is
// read in place.
func (l *Lake) NewPins(pid int) *Pins { return &Pins{lake: l, pid: pid} }

// open makes the reader's folder and locks it. The caller holds mu.
func (p *Pins) open() error {
	for attempt := 0; ; attempt++ {
		name := strconv.Itoa(p.pid)
		if attempt > 0 {
			name += "." + strconv.Itoa(attempt) // another container's process has the number too
		}
		dir := p.lake.abs(path.Join(pinsDir, name))
		if err := p.lake.fs.MkdirAll(dir); err != nil {
			return err
		}
		fl := flock.New(filepath.Join(dir, pinLock), flock.SetFlag(os.O_CREATE|os.O_RDWR))
		held, err := fl.TryLock()
		switch {
		case errors.Is(err, os.ErrNotExist) && attempt < readTries:
			continue // a run removed the folder before the lock was in it
		case err != nil:
			return err
		case !held:
			continue
		case !sameFile(fl, filepath.Join(dir, pinLock)):
			_ = fl.Unlock()
			continue
		}
		p.dir, p.fl = dir, fl
		p.clear()
		return nil
	}
}

// clear removes what a dead process of the same number left.
func (p *Pins) clear() {
	entries, err := p.lake.fs.ReadDir(p.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Name() != pinLock {
			_ = p.lake.fs.Remove(filepath.Join(p.dir, e.Name()))
		}
	}
}

// Close removes the links.
func (p *Pins) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		return nil
	}
	p.clear()
	err := errors.Join(p.lake.fs.Remove(filepath.Join(p.dir, pinLock)), p.fl.Unlock(), p.lake.fs.Remove(p.dir))
	p.dir = ""
	if notExist(err) {
		err = nil
	}
	return err
}

// Pin pins the files of one node of from, which may be another lake on the same
// file system. Folders are as for ReadNode. False means that nothing is
// published. A damaged node is returned with its Damage and without files.
func (p *Pins) Pin(from *Lake, name string, folders ...string) (Pinned, bool, error) {
	for try := 0; ; try++ {
		node, ok, err := from.ReadNode(name, folders...)
		if err != nil || !ok {
			return Pinned{}, false, err
		}
		if node.Damage != nil {
			return Pinned{Node: node}, true, nil
		}
		pinned, err := p.link(from, node)
		if err == nil && pinned.Held && !p.holds(from, pinned, folders) {
			err = errReplaced
		}
		if err == nil {
			return pinned, true, nil
		}
		p.drop(pinned)
		if !notExist(err) || try == readTries {
			return Pinned{}, false, fmt.Errorf("pin node %s: %w", name, err)
		}
	}
}

// errReplaced stands for a node that was published anew while it was pinned. It
// is os.ErrNotExist, as the error of a link to a file that is gone.
var errReplaced = fmt.Errorf("published anew while it was read: %w", os.ErrNotExist)

// holds reports whether the links are of the files that the receipt meant. Only
// a file that is replaced by rename can be another one under the same name.
func (p *Pins) holds(from *Lake, pinned Pinned, folders []string) bool {
	if pinned.Node.Receipt.Form != FormFile && pinned.Node.Receipt.Form != FormSeed {
		return true
	}
	again, ok, err := from.ReadNode(pinned.Node.Receipt.Name, folders...)
	return err == nil && ok && again.Receipt.Commit == pinned.Node.Receipt.Commit
}

// link links all files of a node, or none and gives them as published: on
// another file system, or on one without links.
func (p *Pins) link(from *Lake, node Node) (Pinned, error) {
	out := Pinned{Node: node, Files: map[string][]PinnedFile{}, Held: true}
	for _, o := range node.Receipt.Outputs {
		files := make([]PinnedFile, 0, len(o.Files))
		for _, f := range o.Files {
			at, ok := p.name()
			if !ok {
				return inPlace(from, node)
			}
			abs, err := from.Abs(f.Path)
			if err == nil {
				err = p.lake.fs.Link(abs, at)
			}
			if err != nil {
				out.Files[o.Relation] = files
				p.drop(out)
				if notExist(err) {
					return Pinned{}, err
				}
				return inPlace(from, node)
			}
			files = append(files, PinnedFile{Path: at, File: f})
		}
		out.Files[o.Relation] = files
	}
	return out, nil
}

func inPlace(from *Lake, node Node) (Pinned, error) {
	out := Pinned{Node: node, Files: map[string][]PinnedFile{}}
	for _, o := range node.Receipt.Outputs {
		for _, f := range o.Files {
			abs, err := from.Abs(f.Path)
			if err != nil {
				return Pinned{}, err
			}
			out.Files[o.Relation] = append(out.Files[o.Relation], PinnedFile{Path: abs, File: f})
		}
	}
	return out, nil
}

// name gives the next free name, or false where there is no folder to link into.
// It does not end in ".parquet".
func (p *Pins) name() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" && !p.refused {
		p.refused = p.open() != nil
	}
	if p.refused {
		return "", false
	}
	p.next++
	return filepath.Join(p.dir, strconv.Itoa(p.next)+".pin"), true
}

func (p *Pins) drop(pinned Pinned) {
	if !pinned.Held {
		return
	}
	for _, files := range pinned.Files {
		for _, f := range files {
			_ = p.lake.fs.Remove(f.Path)
		}
	}
}

// Unchanged reports whether a node that was read without links is still what
// it was before reading. Where it is not, the reader repeats once.
func (l *Lake) Unchanged(pinned Pinned, folders ...string) (bool, error) {
	if pinned.Held {
		return true, nil
	}
	again, ok, err := l.ReadNode(pinned.Node.Receipt.Name, folders...)
	return ok && again.Receipt.Commit == pinned.Node.Receipt.Commit, err
}

// pins removes the folders of dead readers.
func (c *cleaner) pins() {
	entries, err := c.lake.fs.ReadDir(c.lake.abs(pinsDir))
	if err != nil {
		return
	}
	for _, e := range entries {
		rel := path.Join(pinsDir, e.Name())
		lock := filepath.Join(c.lake.abs(rel), pinLock)
		// The lock is not made here: a reader that is just closing would find its
		// folder not empty.
		fl := flock.New(lock, flock.SetFlag(os.O_RDWR))
		held, err := fl.TryLock()
		switch {
		case notExist(err):
			// Its reader ended before it had a lock or after it gave it back; one
			// that is just making it makes the folder again.
			_ = c.lake.fs.Remove(c.lake.abs(rel))
		case err == nil && held:
			if sameFile(fl, lock) {
				c.deadPins(rel)
			}
			_ = fl.Unlock()
		}
	}
}

// deadPins removes a folder of pins whose lock is held here. The lock goes last:
// while a pin is left it says whose it was.
func (c *cleaner) deadPins(rel string) {
	entries, err := c.lake.fs.ReadDir(c.lake.abs(rel))
	if err != nil {
		c.out.Warnings = append(c.out.Warnings, fmt.Sprintf("list %s: %v", rel, err))
		return
	}
	for _, e := range entries {
		if e.Name() != pinLock && !c.remove(path.Join(rel, e.Name())) {
			return
		}
	}
	if c.remove(path.Join(rel, pinLock)) {
		c.remove(rel)
	}
}
