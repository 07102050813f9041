package memory

import "syscall"

// times gives when a file's content, and when anything of it, last changed, in ns
// since 1970.
func times(st *syscall.Stat_t) (modified, changed int64) {
	return st.Mtim.Nano(), st.Ctim.Nano()
}
