//go:build cgo

package main

// The C library of Linux distributions takes memory from the system in steps of 128
// KiB and raises, by what is freed, the size up to which freed buffers stay with it:
// to 32 MiB, and twice that at the end of each of its heaps. What the SQL engine frees
// between two statements is so given back and taken again a thousand times, page by
// page, or kept for good where it is large. Fixed steps are cheaper on both counts.
// Once one value is set the C library no longer settles the others, so all are.

// #include <malloc.h>
// static int memory_in_steps(int step, int most, int mapped) {
// #ifdef __GLIBC__
//	return mallopt(M_TOP_PAD, step) && mallopt(M_TRIM_THRESHOLD, most) && mallopt(M_MMAP_THRESHOLD, mapped);
// #else
//	return 1;
// #endif
// }
import "C"

const (
	// memoryStep is how much memory in bytes is taken at once.
	memoryStep = 1 << 20
	// memoryFree is how much in bytes may be free at the end of one heap of the C
	// library, of which there is one a thread.
	memoryFree = 8 << 20
	// memoryMapped is the size in bytes from which a buffer is taken and given back by
	// itself.
	memoryMapped = 4 << 20
)

// memoryInSteps lets the C library take memory in larger steps, and reports whether
// it heeds all that is set.
func memoryInSteps() bool {
	return C.memory_in_steps(memoryStep, memoryFree, memoryMapped) == 1
}
