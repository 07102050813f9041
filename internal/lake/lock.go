package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"rbt/internal/diag"
)

// lockPoll is how often a waiting run asks for the lock: often enough that a
// person does not notice, seldom enough to cost nothing.
const lockPoll = 50 * time.Millisecond

// LockOptions says who asks for the lock and how long to wait.
type LockOptions struct {
	Timeout time.Duration // 0: fail at once
	PID     int
	Host    string
	Now     time.Time // start of the run, written into the lock
	// Waiting is told once, before the wait, who holds the lock; it may be nil.
	Waiting func(holder string)
}

// LockedError says that another run holds the lake. Holder is the text in the
// lock file. Lock returns it.
type LockedError struct {
	Root   string
	Holder string
	Waited time.Duration
}

// Error names the holder.
func (e *LockedError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "holder unknown"
	}
	msg := fmt.Sprintf("another run (%s) holds the lock of lake %s", holder, e.Root)
	if e.Waited > 0 {
		msg += fmt.Sprintf(", still after %s", e.Waited)
	}
	return msg
}

// Diagnostic gives the error with what to do about it.
func (e *LockedError) Diagnostic() diag.Diagnostic {
	return diag.Errorf(diag.LakeLocked, diag.Pos{}, "%s", e.Error()).
		WithHint("wait for it to end, or let this run wait: --lock-timeout 5m")
}

// Lock is the right to write to a lake. The kernel gives it back when the
// process ends, however it ends; the text in the file is for people.
type Lock struct {
	lake *Lake
	fl   *flock.Flock
}

// Lock takes the lake's lock, waiting up to the timeout. It returns a
// *LockedError where another process holds it.
func (l *Lake) Lock(ctx context.Context, opts LockOptions) (*Lock, error) {
	if err := l.ownFolders(); err != nil {
		return nil, err
	}
	if err := l.EnsureDir(ownDir); err != nil {
		return nil, fmt.Errorf("lock lake %s: %w", l.root, err)
	}
	wait, cancel := ctx, context.CancelFunc(func() {})
	if opts.Timeout > 0 {
		wait, cancel = context.WithTimeout(ctx, opts.Timeout)
	}
	defer cancel()
	for {
		fl := flock.New(l.abs(lockFile), flock.SetFlag(os.O_CREATE|os.O_RDWR))
		held, err := fl.TryLock()
		if err == nil && !held && opts.Timeout > 0 {
			if opts.Waiting != nil {
				opts.Waiting(l.LockHolder())
				opts.Waiting = nil
			}
			held, err = waitFlock(wait, fl)
		}
		if err != nil {
			if info, serr := l.fs.Stat(l.abs(lockFile)); serr == nil && info.IsDir() {
				err = inTheWay(l.abs(lockFile), "is a folder, and no file that could be locked")
			}
			return nil, fmt.Errorf("lock lake %s: %w", l.root, err)
		}
		if !held {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, &LockedError{Root: l.root, Holder: l.LockHolder(), Waited: opts.Timeout}
		}
		if !sameFile(fl, l.abs(lockFile)) {
			_ = fl.Unlock() // somebody removed the file under us: the lock is of no file that others see
			continue
		}
		text := fmt.Sprintf("pid %d on %s, started %s\n", opts.PID, opts.Host, opts.Now.UTC().Format(time.RFC3339))
		// The text is for people. A disk without room must not keep a run from
		// starting: at its start it removes what nobody needs.
		_ = os.WriteFile(l.abs(lockFile), []byte(text), 0o666)
		return &Lock{lake: l, fl: fl}, nil
	}
}

// ownFolders checks that nothing else stands where rbt keeps its own folders.
func (l *Lake) ownFolders() error {
	for _, rel := range []string{ownDir, stateDir} {
		if info, err := l.fs.Stat(l.abs(rel)); err == nil && !info.IsDir() {
			return inTheWay(l.abs(rel), "is a file, and no folder")
		}
	}
	return nil
}

// inTheWay says that something stands where rbt keeps a file or folder of its own.
func inTheWay(path, what string) error {
	return diag.Errorf(diag.OwnFolder, diag.Pos{}, "%s %s", path, what).WithHint("move it away: rbt keeps that name in a lake for itself")
}

// waitFlock asks until the context ends; that it ends is not an error.
func waitFlock(ctx context.Context, fl *flock.Flock) (bool, error) {
	held, err := fl.TryLockContext(ctx, lockPoll)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return held, err
}

// sameFile reports whether the locked file is still the one at path.
func sameFile(fl *flock.Flock, path string) bool {
	mine, err := fl.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// LockHolder is the text of the run that holds the lock now or held it last; ""
// where none does.
func (l *Lake) LockHolder() string {
	b, err := os.ReadFile(l.abs(lockFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Keep holds the lock until the process ends, for work on the lake that cannot be
// stopped before that. Release does nothing more.
func (k *Lock) Keep() {
	k.lake.kept = k // a file that nobody holds would be closed some time, and the lock with it
}

// Release gives the lock back and empties its text.
func (k *Lock) Release() error {
	if k.lake.kept == k {
		return nil
	}
	err := os.Truncate(k.lake.abs(lockFile), 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, k.fl.Unlock())
}
