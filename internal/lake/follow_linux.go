package lake

import (
	"os"
	"syscall"
)

// syncFileRangeWrite is SYNC_FILE_RANGE_WRITE of sync_file_range(2), which package
// syscall does not name.
const syncFileRangeWrite = 2

// beginWriting has the disk begin to write a part of a file. It promises nothing:
// what it did not do is done when the file is made durable.
func beginWriting(f *os.File, from, n int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SyncFileRange(int(fd), from, n, syncFileRangeWrite)
	})
}
