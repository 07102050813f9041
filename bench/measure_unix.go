//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// rusageOf reads peak memory and bytes written of a finished child.
func rusageOf(state *os.ProcessState) usage {
	r, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return usage{}
	}
	unit := int64(1024)
	if runtime.GOOS == "darwin" {
		unit = 1 // it counts bytes
	}
	// A block of Oublock is 512 bytes on every system that counts them.
	return usage{PeakB: int64(r.Maxrss) * unit, WroteB: int64(r.Oublock) * 512}
}

// flushDisk waits until what earlier runs wrote is on the disk, so that no
// side pays for another.
func flushDisk() { syscall.Sync() }

// ownCPU is the processor time that this process has used, in seconds.
func ownCPU() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// ownPeak is the peak memory of this process in bytes: no child's peak reads
// lower.
func ownPeak() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) * 1024
}
