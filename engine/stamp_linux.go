package engine

import (
	"io/fs"
	"syscall"
)

// changeTime is when a file's content or properties last changed, in ns since
// 1970: unlike the modification time no program can set it back.
func changeTime(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
