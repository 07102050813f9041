package jinja

import (
	"context"

	"rbt/internal/diag"
)

// Budget bounds what one render may use. Zero fields take the defaults.
type Budget struct {
	Steps  int64 // evaluated nodes, loop rounds and items made; default 10 million
	Output int   // bytes of the output and of any single text; default 64 MiB
	Depth  int   // macro calls inside each other; default 250
}

const (
	// Ten million steps take about a second.
	defaultSteps  = 10_000_000
	defaultOutput = 64 << 20
	// Python's own limit lets templates nest about this many macro calls.
	defaultDepth = 250
	// A text costs a step for so many bytes, so that building large texts again
	// and again ends too.
	bytesPerStep = 32
	// The context is asked for its end after so many steps.
	stepsPerCheck = 4096
)

// run is one render: its options and what is left of its budget.
type run struct {
	ctx     context.Context
	globals map[string]any
	own     map[string]any // before globals
	lib     *Library
	budget  Budget
	left    int64 // steps left
	check   int64 // the number of steps left at which the context is asked
	depth   int
	made    map[*Template]*activation // of library templates
	methods map[methodKey]*methodDef  // found before
}

func newRun(ctx context.Context, o Options) *run {
	b := o.Budget
	if b.Steps <= 0 {
		b.Steps = defaultSteps
	}
	if b.Output <= 0 {
		b.Output = defaultOutput
	}
	if b.Depth <= 0 {
		b.Depth = defaultDepth
	}
	return &run{ctx: ctx, globals: o.Globals, own: o.Own, lib: o.Library, budget: b, left: b.Steps, check: b.Steps}
}

// step pays n steps.
func (r *run) step(n int) error {
	r.left -= int64(n)
	if r.left > r.check {
		return nil
	}
	return r.settle()
}

func (r *run) settle() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.check = max(0, r.left-stepsPerCheck)
	if r.left <= 0 {
		return failHint(diag.TemplateBudget, "look for a loop or macro that repeats itself without end",
			"the template needs more than %d steps", r.budget.Steps)
	}
	return nil
}

// room checks, before it is made, a sequence of n items.
func (r *run) room(n int64) error {
	if n > r.left {
		return failHint(diag.TemplateBudget, "the limit is there so that a mistake cannot eat all memory",
			"a sequence of %d items is more than a template may make", n)
	}
	return r.step(int(n))
}

// size checks the length of a text that was made or is about to be.
func (r *run) size(n int) error {
	if n > r.budget.Output || n < 0 {
		return failHint(diag.TemplateBudget, "the limit is there so that a mistake cannot eat all memory",
			"the template makes a text of more than %d bytes", r.budget.Output)
	}
	return nil
}

// grow checks and pays for a text of n bytes before it is made.
func (r *run) grow(n int64) error {
	if n > int64(r.budget.Output) {
		return r.size(r.budget.Output + 1)
	}
	return r.step(int(n) / bytesPerStep)
}
