package lake

import (
	"io/fs"
	"syscall"
)

// identityOf gives the identity of a file; zero where the system tells too little.
func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Ino == 0 || st.Ctimespec.Nano() <= 0 {
		return identity{}
	}
	return identity{size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: st.Ctimespec.Nano(), device: uint64(st.Dev), inode: st.Ino}
}
