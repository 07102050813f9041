//go:build !unix

package main

// outliveLimits has nothing to do where no signal tells of a limit.
func outliveLimits() {}
