package main

import "testing"

// TestMemoryInSteps: a value that the C library does not take leaves it as slow as
// it was, or slower, and nothing else would tell.
func TestMemoryInSteps(t *testing.T) {
	if !memoryInSteps() {
		t.Error("the C library refuses a value")
	}
}
