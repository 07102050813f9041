//go:build !linux || !cgo

package main

// memoryInSteps changes nothing where the C library is another.
func memoryInSteps() bool { return true }
