//go:build linux || darwin

package memory

import (
	"io/fs"
	"syscall"
)

func identityOf(info fs.FileInfo) Identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}
	}
	return identityIn(st)
}

// Stat gives the identity of the file that a path leads to; zero where there is none.
// It is IdentityOf and os.Stat without the room that these take, which counts where
// files are many.
func Stat(path string) Identity {
	var st syscall.Stat_t
	for {
		switch err := syscall.Stat(path, &st); err {
		case nil:
			if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
				return Identity{}
			}
			return identityIn(&st)
		case syscall.EINTR:
		default:
			return Identity{}
		}
	}
}

// ChangeTime is when a file's content or properties last changed, in ns since 1970:
// unlike the modification time no program can set it back. 0 where the system does
// not tell.
func ChangeTime(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	_, changed := times(st)
	return changed
}

func identityIn(st *syscall.Stat_t) Identity {
	modified, changed := times(st)
	if st.Ino == 0 || changed <= 0 {
		return Identity{}
	}
	return Identity{Size: st.Size, Mtime: modified, Ctime: changed, Device: uint64(st.Dev), Inode: st.Ino}
}
