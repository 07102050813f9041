//go:build !linux && !darwin

package memory

import "io/fs"

// identityOf knows no file: the system has no time of change.
func identityOf(fs.FileInfo) Identity { return Identity{} }

// ChangeTime is when a file's content or properties last changed: 0, the system tells
// no time that programs cannot set.
func ChangeTime(fs.FileInfo) int64 { return 0 }

// Stat gives the identity of the file that a path leads to: none here, where the
// system has no time of change.
func Stat(string) Identity { return Identity{} }
