// Command rbt builds a lake of Parquet files from a folder of SQL models. This
// package owns the command line and everything that is printed; what is done is
// done in package engine. One file holds one command, always in four parts:
// newXCommand (name, help), xOptions (what the flags say), a function that reads
// the flags, and runX (what the command does).
package main

import "os"

func main() {
	outliveLimits()
	sys := newSystem()
	memoryInSteps()
	sys.planned = startHeap()
	os.Exit(realMain(os.Args[1:], sys))
}
