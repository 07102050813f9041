//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asNobody makes a command run as a user who owns nothing of a folder, for tests
// that run as one whom permissions do not concern; else the folder's lake is
// closed to this user.
func asNobody(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		for _, at := range []string{"lake", "lake/.rbt"} {
			path := filepath.Join(dir, at)
			if err := os.Chmod(path, 0o555); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
		}
		return
	}
	for _, at := range []string{dir, cmd.Path} {
		for at = filepath.Dir(filepath.Join(at, "x")); at != filepath.Dir(at); at = filepath.Dir(at) {
			info, err := os.Stat(at)
			if err != nil || info.Mode()&0o005 == 0o005 {
				continue
			}
			if err := os.Chmod(at, info.Mode()|0o055); err != nil {
				t.Skipf("another user cannot be let in: %v", err)
			}
		}
	}
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
