package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/diag"
)

func newRetryCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "retry", Usage: "build what failed or was skipped in the last run",
			Description: `Does the last "rbt run" or "rbt retry" of this target folder again, with its flags, variables and
target, for what failed, was skipped or was cancelled; what succeeded is left alone. Commands in
between (test, show, compile) do not count. If nothing is left to do, it says so.`,
			Flags: flags([]cli.Flag{
				&cli.StringFlag{Name: "threads", Usage: "build `N` nodes at once; 0 is one a core, at most 8"},
				&cli.StringFlag{Name: "lock-timeout", Usage: "wait up to `DURATION` (5m) for another run on this lake"},
				&cli.StringFlag{Name: "junit", Usage: "write what came of assertions and unit tests as JUnit XML to `FILE`"},
				&cli.BoolFlag{Name: "no-catalog", Usage: "leave catalog.duckdb of the lake as it is"},
			}, retryFlags()),
			Action: func(c *cli.Context) error {
				o, err := readRetryOptions(c, sys)
				if err != nil {
					return err
				}
				return runRetry(c.Context, sys, o)
			},
		},
		examples: []string{
			"rbt run; rbt retry       after the cause is mended",
			"rbt retry --threads 1",
		},
	}
}

// retryFlags are commonFlags without those that the last run settles.
func retryFlags() []cli.Flag {
	return slices.DeleteFunc(commonFlags(), func(f cli.Flag) bool {
		return slices.Contains([]string{"target", "vars", "var"}, f.Names()[0])
	})
}

type retryOptions struct {
	commonOptions
	threads     int // as engine.RunOptions.Workers
	lockTimeout time.Duration
	noCatalog   bool
	junit       string // "" writes none
}

func readRetryOptions(c *cli.Context, sys *system) (retryOptions, error) {
	common, err := readCommon(c, sys)
	o := retryOptions{commonOptions: common, noCatalog: c.Bool("no-catalog"), junit: c.String("junit")}
	if err != nil {
		return o, err
	}
	if o.threads, err = readThreads(c); err != nil {
		return o, err
	}
	o.lockTimeout, err = lockTimeout(c, sys)
	return o, err
}

func runRetry(ctx context.Context, sys *system, o retryOptions) error {
	// The target folder may depend on the target, which only the last run knows.
	first, err := load(ctx, sys, o.commonOptions)
	if err != nil {
		return err
	}
	path := filepath.Join(first.p.TargetDir, engine.LastRunFile)
	last, err := engine.ReadResults(path)
	if errors.Is(err, os.ErrNotExist) {
		return first.fail(diag.Errorf(diag.RetryRefused, diag.Pos{}, "there is no run to retry: %s does not exist", path).
			WithHint("rbt run writes it; rbt clean removes it"))
	}
	if err != nil {
		if told := engine.TargetProblem(err); isDiagnostic(told) {
			return first.fail(told)
		}
		return first.fail(diag.Errorf(diag.RetryRefused, diag.Pos{}, "what the last run did cannot be known: %s", err).
			WithHint("rbt run writes it anew"))
	}
	if masked, _ := last.Args["vars_masked"].([]any); len(masked) > 0 {
		return first.fail(diag.Errorf(diag.RetryRefused, diag.Pos{}, "the last run was told a secret in %v, and secrets are not kept", masked[0]).
			WithHint("say it again: rbt run -s result:error result:fail result:skipped, with the variables of that run"))
	}
	run := retried(last.Args, o)
	w, err := load(ctx, sys, run.commonOptions)
	if err != nil {
		return err
	}
	if last.Lake != w.p.LakeDir {
		return w.fail(diag.Errorf(diag.RetryRefused, diag.Pos{}, "the last run published in %s, and the target %q is now %s", last.Lake, w.p.Target, w.p.LakeDir).
			WithHint("rbt run builds what is missing there"))
	}
	left := unfinished(last.Status)
	if gone := w.gone(left); len(gone) > 0 {
		return w.fail(diag.Errorf(diag.RetryRefused, diag.Pos{}, "the project changed since the last run: it has no %s any more", shorten(gone, 5)).
			WithHint("rbt run builds the project as it is now"))
	}
	if len(left) == 0 {
		_, err := fmt.Fprintln(w.out, "Nothing to do.")
		return err
	}
	args := run.args(w)
	run.selected, run.selector, run.results = []string{"result:error"}, "", left
	return w.build(ctx, run, "retry", args)
}

// retried gives the options of the last run, with those that may differ.
func retried(args map[string]any, o retryOptions) runOptions {
	text := func(key string) string { s, _ := args[key].(string); return s }
	flag := func(key string) bool { b, _ := args[key].(bool); return b }
	words := func(key string) []string {
		var out []string
		list, _ := args[key].([]any)
		for _, v := range list {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	run := runOptions{
		commonOptions: o.commonOptions, threads: o.threads, lockTimeout: o.lockTimeout, noCatalog: o.noCatalog, junit: o.junit,
		fullRefresh: flag("full_refresh"), force: flag("force"), failFast: flag("fail_fast"), storeFailures: flag("store_failures"),
	}
	run.selected, run.excluded, run.resourceTypes, run.selector = words("select"), words("exclude"), words("resource_types"), text("selector")
	run.past = pastOptions{state: text("state"), deferring: flag("defer"), deferTarget: text("defer_target")}
	if run.target = text("target"); run.target == "default" {
		run.target = ""
	}
	run.vars, run.varList = text("vars"), words("var")
	return run
}

// maskedVars names the flags whose values hold a secret: artifacts have ***** in
// its place, which is not what the run was told.
func maskedVars(o commonOptions, mask func(string) string) []string {
	named := []string{}
	if mask(o.vars) != o.vars {
		named = append(named, "--vars")
	}
	for _, v := range o.varList {
		if name, _, _ := strings.Cut(v, "="); mask(v) != v {
			named = append(named, "--var "+mask(name))
		}
	}
	return named
}

// unfinished gives what of a run is to be done again, all with one status.
func unfinished(status map[string]string) map[string]string {
	left := map[string]string{}
	for id, s := range status {
		switch engine.Status(s) {
		case engine.StatusError, engine.StatusFail, engine.StatusSkipped, engine.StatusCancelled:
			left[id] = string(engine.StatusError)
		}
	}
	return left
}

// gone lists the models and seeds of a run that the project does not have any
// more. A test that is gone needs no second try.
func (w *workspace) gone(left map[string]string) []string {
	have := map[string]bool{}
	for _, m := range w.p.Models {
		have["model."+w.p.Name+"."+m.Name] = true
	}
	for _, s := range w.p.Seeds {
		have["seed."+w.p.Name+"."+s.Name] = true
	}
	var gone []string
	for id := range left {
		if kind, _, _ := strings.Cut(id, "."); (kind == "model" || kind == "seed") && !have[id] {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return gone
}
