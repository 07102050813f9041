//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// outliveLimits makes a file that grows past the limit of the process an error
// of the write, which says path and cause, rather than the end of the process:
// the engine writes from threads of its own, on which Go would let the signal
// kill.
func outliveLimits() { signal.Ignore(syscall.SIGXFSZ) }
