//go:build !unix

package main

import "os"

// rusageOf has nothing to read here: peak memory and bytes written are not
// measured on this system.
func rusageOf(*os.ProcessState) usage { return usage{} }

// flushDisk does nothing here.
func flushDisk() {}

// ownCPU is not measured here.
func ownCPU() float64 { return 0 }

// ownPeak is not measured here.
func ownPeak() int64 { return 0 }
