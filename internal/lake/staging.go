package lake

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// stagings are the staging folders that nodes of a run have emptied and that its
// other nodes may have: by run, then by the folder above them, as their names. A
// run that is not there shares none.
type stagings struct {
	mu   sync.Mutex
	runs map[string]map[string][]string
}

// ShareStaging lets the nodes of a run that publish one after the other have the
// same staging folders, until end is called, which removes them. To make and to
// remove a folder for each node costs more than all else that the publish of a small
// one asks of some file systems: ext4 without a journal looks at every inode that
// was freed a short time ago before it makes a file. What a run leaves that is killed
// is for Recover.
func (l *Lake) ShareStaging(runID string) (end func()) {
	l.staging.mu.Lock()
	defer l.staging.mu.Unlock()
	l.staging.runs[runID] = map[string][]string{}
	return func() {
		l.staging.mu.Lock()
		above := l.staging.runs[runID]
		delete(l.staging.runs, runID)
		l.staging.mu.Unlock()
		for dir, names := range above {
			for _, name := range names {
				_ = l.fs.Remove(l.abs(path.Join(dir, name))) // what cannot be removed stays for Recover
			}
			l.removeEmpty(dir, path.Dir(dir))
		}
	}
}

// MakeStaging makes a node's empty staging folder and returns its absolute path.
// The folder of the node's data is there and durable afterwards.
func (l *Lake) MakeStaging(p Place, runID string) (string, error) {
	if err := checkSegment(runID); err != nil {
		return "", fmt.Errorf("stage node %s in run %q: %w", p.Name, runID, err)
	}
	if err := l.EnsureDir(p.Folder); err != nil {
		return "", err
	}
	staging := p.Staging(runID)
	dir := l.abs(staging)
	if emptied := l.emptied(staging, runID); emptied == staging || emptied != "" && l.fs.Rename(l.abs(emptied), dir) == nil {
		return dir, nil
	}
	err := l.fs.MkdirAll(dir)
	for range stagingTries {
		if !notExist(err) && !errors.Is(err, fs.ErrExist) {
			break
		}
		// Another node of the run has just removed the folders above, which
		// were empty: before they were entered, or after they were found there.
		err = l.fs.MkdirAll(dir)
	}
	if err != nil {
		return "", fmt.Errorf("make staging of node %s: %w", p.Name, err)
	}
	return dir, nil
}

// stagingTries bounds how often other nodes of a run may remove the folders
// above a staging folder while it is made.
const stagingTries = 100

// emptied takes an empty folder beside the one that is wanted, or that one itself;
// "" where the run has none.
func (l *Lake) emptied(staging, runID string) string {
	l.staging.mu.Lock()
	defer l.staging.mu.Unlock()
	dir, name := path.Split(staging)
	dir = path.Clean(dir)
	names := l.staging.runs[runID][dir]
	if len(names) == 0 {
		return ""
	}
	// One that has the name already would be replaced, and given to a second node.
	at := max(slices.Index(names, name), 0)
	taken := names[at]
	l.staging.runs[runID][dir] = slices.Delete(names, at, at+1)
	return path.Join(dir, taken)
}

// RemoveStaging removes a node's staging folder of one run, and the folders
// above it that are empty then. What cannot be removed stays for Recover. Where the
// run shares its folders, an empty one is kept for the next node.
func (l *Lake) RemoveStaging(p Place, runID string) {
	staging := p.Staging(runID)
	if l.keepStaging(staging, runID) {
		return
	}
	l.removeTree(l.abs(staging))
	l.removeEmpty(path.Dir(staging), path.Dir(path.Dir(staging)))
}

// keepStaging keeps a folder for other nodes where that is empty and the run shares
// its folders.
func (l *Lake) keepStaging(staging, runID string) bool {
	l.staging.mu.Lock()
	defer l.staging.mu.Unlock()
	above, shared := l.staging.runs[runID]
	if !shared {
		return false
	}
	if entries, err := l.fs.ReadDir(l.abs(staging)); err != nil || len(entries) > 0 {
		return false
	}
	dir, name := path.Dir(staging), path.Base(staging)
	if !slices.Contains(above[dir], name) {
		above[dir] = append(above[dir], name)
	}
	return true
}

// removeEmpty removes a folder and the one above it as far as they are empty.
func (l *Lake) removeEmpty(dirs ...string) {
	for _, dir := range dirs {
		if l.fs.Remove(l.abs(dir)) != nil {
			return // another node of the run is still at work in it
		}
	}
}
