package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// tempLock is the file that the process of a folder of temporary files keeps
// locked, which tells a living owner from a dead one also where the number of a
// process was used again.
const tempLock = ".lock"

// tempFolder is the folder of temporary files of one process under target/tmp.
type tempFolder struct {
	path string
	lock *flock.Flock
}

// claimTempFolder makes a process's folder and removes those of dead processes:
// what a killed run spilled may be larger than the lake. The error is that of the
// folder that cannot be made.
func claimTempFolder(path string) (*tempFolder, error) {
	const tries = 4 // another process may remove the folder before the lock is in it
	var err error
	for range tries {
		if err = os.MkdirAll(path, 0o777); err != nil {
			return nil, tempProblem(fmt.Errorf("make folder of temporary files: %w", err))
		}
		fl := flock.New(filepath.Join(path, tempLock), flock.SetFlag(os.O_CREATE|os.O_RDWR))
		if _, err = fl.TryLock(); err == nil {
			// Not locked only where this process has two engines: they share it.
			sweepTempFolders(filepath.Dir(path), path)
			return &tempFolder{path, fl}, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return nil, tempProblem(fmt.Errorf("lock folder of temporary files %s: %w", path, err))
}

func tempProblem(err error) error {
	return ownFolderProblem(err, "the SQL engine keeps there what does not fit into memory: remove what is in the way, or name another folder with --target-path")
}

// TargetProblem makes a diagnostic of what the system refuses in the target folder.
// An error of another kind, and one that is a diagnostic already, is given back as
// it is.
func TargetProblem(err error) error {
	var refused syscall.Errno
	var told diag.Diagnostic
	if !errors.As(err, &refused) || errors.As(err, &told) {
		return err
	}
	return ownFolderProblem(err, "remove what is in the way, or name another folder with --target-path")
}

// ownFolderProblem is hint where the cause is none of the system's known ones.
func ownFolderProblem(err error, hint string) diag.Diagnostic {
	if known := lake.FaultHint(err.Error()); known != "" {
		hint = known
	}
	return diag.Errorf(diag.OwnFolder, diag.Pos{}, "%v", err).WithHint("%s", hint)
}

// sweepTempFolders removes the folders whose process is gone, as far as it can:
// nobody needs them, and nobody reads them.
func sweepTempFolders(parent, own string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		at := filepath.Join(parent, e.Name())
		lock := filepath.Join(at, tempLock)
		if _, err := os.Stat(lock); at == own || err != nil {
			continue
		}
		fl := flock.New(lock, flock.SetFlag(os.O_RDWR))
		if held, err := fl.TryLock(); err != nil || !held {
			continue
		}
		_ = os.RemoveAll(at)
		_ = fl.Unlock()
	}
}

// remove gives the folder up with everything in it.
func (f *tempFolder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}
