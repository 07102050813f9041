package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
)

func newRunCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "run", Aliases: []string{"build"}, Usage: "build, audit and publish models, seeds and ingests",
			Description: `Builds the selected nodes in the order in which they read each other. Every result is
checked by its tests before anyone can see it: one that fails stays unpublished, and what
reads it is skipped. What did not change is not built again.`,
			Flags: flags(selectFlags(), deferFlags(), []cli.Flag{
				&cli.StringFlag{Name: "threads", Usage: "build `N` nodes at once; 0 is one a core, at most 8"},
				&cli.BoolFlag{Name: "full-refresh", Aliases: []string{"f"}, Usage: "build incremental models whole; replace foreign data"},
				&cli.BoolFlag{Name: "fail-fast", Aliases: []string{"x"}, Usage: "start nothing more after the first failure"},
				&cli.BoolFlag{Name: "force", Usage: "build what did not change, too"},
				&cli.StringFlag{Name: "lock-timeout", Usage: "wait up to `DURATION` (5m) for another run on this lake"},
				&cli.BoolFlag{Name: "store-failures", Usage: "keep failing rows and refused results under target/"},
				&cli.StringFlag{Name: "junit", Usage: "write what came of assertions and unit tests as JUnit XML to `FILE`"},
				&cli.BoolFlag{Name: "no-catalog", Usage: "leave catalog.duckdb of the lake as it is"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				o, err := readRunOptions(c, sys)
				if err != nil {
					return err
				}
				return runRun(c.Context, sys, o)
			},
		},
		examples: []string{
			"rbt run                               everything that changed",
			"rbt run -s +fct_orders                one model and all that it needs",
			"rbt run -s tag:daily --exclude stg_*  by tag, without some",
			"rbt run -f -s fct_events              an incremental model from the start",
			"rbt run --target prod --threads 4",
		},
	}
}

type runOptions struct {
	commonOptions
	selectOptions
	threads       int // as engine.RunOptions.Workers
	fullRefresh   bool
	failFast      bool
	force         bool
	lockTimeout   time.Duration
	storeFailures bool
	noCatalog     bool
	junit         string // "" writes none
}

func readRunOptions(c *cli.Context, sys *system) (runOptions, error) {
	common, err := readCommon(c, sys)
	o := runOptions{
		commonOptions: common,
		fullRefresh:   c.Bool("full-refresh"), failFast: c.Bool("fail-fast"), force: c.Bool("force"), storeFailures: c.Bool("store-failures"),
		noCatalog: c.Bool("no-catalog"), junit: c.String("junit"),
	}
	if err != nil {
		return o, err
	}
	if o.selectOptions, err = readSelect(c, sys); err != nil {
		return o, err
	}
	if o.threads, err = readThreads(c); err != nil {
		return o, err
	}
	o.lockTimeout, err = lockTimeout(c, sys)
	return o, err
}

// lockTimeout reads --lock-timeout, 0 where it is not given.
func lockTimeout(c *cli.Context, sys *system) (time.Duration, error) {
	text := flagOrEnv(c, sys, "lock-timeout")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, badFlag(c, "--lock-timeout is a duration such as 30s or 5m, not %q", text)
	}
	return wait, nil
}

func runRun(ctx context.Context, sys *system, o runOptions) error {
	w, err := load(ctx, sys, o.commonOptions)
	if err != nil {
		return err
	}
	return w.build(ctx, o, "run", o.args(w))
}

// args are the flags of a run as run_results.json keeps them, from which retry
// does the same again.
func (o runOptions) args(w *workspace) map[string]any {
	return map[string]any{
		"select": orEmpty(o.selected), "exclude": orEmpty(o.excluded), "resource_types": orEmpty(o.resourceTypes), "selector": o.selector,
		"state": o.past.state, "defer": o.past.deferring, "defer_target": o.past.deferTarget,
		"full_refresh": o.fullRefresh, "force": o.force, "fail_fast": o.failFast, "store_failures": o.storeFailures,
		"vars": o.vars, "var": orEmpty(o.varList), "vars_masked": maskedVars(o.commonOptions, w.p.Mask), "target": w.p.Target,
	}
}

// build plans and runs; command names it in the artifacts.
func (w *workspace) build(ctx context.Context, o runOptions, command string, args map[string]any) error {
	outliveReader()
	var show *ui
	var p *plan.Plan
	s, err := w.open(ctx, true, func(e engine.Event) {
		if e.Kind == engine.EventNodeStarted && p.Steps[e.Number-1].Action == plan.ActionUnchanged {
			return // its one line says that nothing was done
		}
		show.Event(e)
	})
	if err != nil {
		return err
	}
	defer s.close()
	// Mistakes in the project are told before the lake is touched or waited for.
	s.recall = true
	g, err := s.graph(ctx)
	if err != nil {
		return err
	}
	planOptions := s.planOptions(ctx, o.selectOptions)
	planOptions.FullRefresh, planOptions.Force = o.fullRefresh, o.force
	if selection, problems := g.Select(planOptions.Selectors); problems.HasErrors() || selection.Nothing {
		if err := s.checked(ctx, problems); err != nil {
			return err
		}
		_, err := fmt.Fprintln(s.out, "Nothing to do.")
		return err
	}
	other, err := s.deferTo(ctx, o.past)
	if err != nil {
		return s.fail(err)
	}
	planOptions.Defer = other.state
	lock, recovered, err := s.takeLake(ctx, o.lockTimeout)
	if err != nil {
		return err
	}
	defer func() {
		if s.engine.Outlived() {
			lock.Keep()
		}
		_ = lock.Release()
	}()
	var problems diag.List
	p, problems = g.Plan(s.p, &recovered.State, planOptions)
	if err := s.checked(ctx, problems); err != nil {
		return err
	}
	if err := s.checked(ctx, g.Render(ctx, p.Rendered())); err != nil {
		return err
	}
	show = s.newUI(len(p.Steps)+len(p.Late), planNames(p))
	defer show.Close()
	s.tellRecovered(show, recovered, p)
	if err := s.engine.BeginRun(ctx, p, s.invocation(command, args)); err != nil {
		return s.fail(err)
	}
	s.sys.planned()
	result, err := s.engine.Run(ctx, p, engine.RunOptions{
		Command: command, InvocationID: s.invocationID, RunStartedAt: s.started, State: &recovered.State,
		DeferLake: other.lake,
		Workers:   o.threads, FailFast: o.failFast, FullRefresh: o.fullRefresh, Force: o.force, StoreFailures: o.storeFailures,
	})
	if jerr := s.writeJUnit(o.junit, result); err == nil {
		err = jerr
	}
	if err == nil && !o.noCatalog && ctx.Err() == nil {
		err = s.keepCatalog(ctx, p, result, &recovered.State, show)
	}
	return show.outcome(s.finish(ctx, p, result, err, command, args))
}

// finish writes the artifacts of a command and settles how it ended.
func (s *session) finish(ctx context.Context, p *plan.Plan, result *engine.Result, err error, command string, args map[string]any) error {
	if result != nil {
		// Results are written however the command ended.
		if werr := s.engine.WriteArtifacts(context.WithoutCancel(ctx), p, result, s.invocation(command, args)); werr != nil && err == nil {
			err = werr
		}
	}
	if err != nil {
		return s.fail(lakeError(err))
	}
	return verdict(ctx, result)
}

func (s *session) invocation(command string, args map[string]any) engine.Invocation {
	return engine.Invocation{ID: s.invocationID, Command: command, Started: s.started, Generated: s.sys.now(), Args: args}
}

// takeLake takes the lock and brings the lake into order.
func (s *session) takeLake(ctx context.Context, timeout time.Duration) (*lake.Lock, lake.Recovered, error) {
	host, _ := os.Hostname()
	lock, err := s.lake.Lock(ctx, lake.LockOptions{
		Timeout: timeout, PID: os.Getpid(), Host: host, Now: s.started,
		Waiting: func(holder string) { s.tell(fmt.Sprintf("waiting up to %s for another run (%s)", timeout, holder)) },
	})
	if err != nil {
		return nil, lake.Recovered{}, s.fail(lakeError(err))
	}
	memory := s.recallLake(s.lake)
	recovered, err := s.lake.Recover(ctx, lock)
	if err != nil {
		_ = lock.Release()
		return nil, recovered, s.fail(lakeError(err))
	}
	s.keepLake(s.lake, memory)
	return lock, recovered, nil
}

// tellRecovered says what the lake holds that a user should know of.
func (s *session) tellRecovered(show *ui, r lake.Recovered, p *plan.Plan) {
	say := func(level, format string, args ...any) {
		show.Event(engine.Event{Kind: engine.EventLog, Time: s.sys.now(), Level: level, Message: fmt.Sprintf(format, args...)})
	}
	for _, name := range r.Adopted {
		say("info", "%s was published by a run that ended early; it counts", name)
	}
	for _, path := range r.Removed {
		say("debug", "removed %s", path)
	}
	for _, text := range r.Warnings {
		say("warn", "%s", text)
	}
	for _, name := range p.Orphans {
		say("warn", "%s is published but no longer in the project; nothing reads it (remove its files to be rid of it)", name)
	}
	for _, path := range p.Foreign {
		say("warn", "%s lies in the lake, and no run of rbt published it", path)
	}
}

// planNames are what the lines of a run will name.
func planNames(p *plan.Plan) []string {
	var names []string
	for _, s := range p.Steps {
		names = append(names, stepName(s))
	}
	for _, t := range p.Late {
		names = append(names, t.Test.Name)
	}
	return names
}

// verdict turns the result of a run into the error that settles the exit code.
func verdict(ctx context.Context, r *engine.Result) error {
	switch {
	case r.Cancelled || errors.Is(ctx.Err(), context.Canceled):
		return errInterrupted
	case tally(r).err > 0:
		return errFailed
	}
	return nil
}
