package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/plan"
)

func newTestCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "test", Usage: "run tests on what is published",
			Description: `Runs assertions, singular tests and unit tests. -s m runs the tests that look at m. Nothing is
built and nothing in the lake changes; a run beside it is not disturbed.`,
			Flags: flags(selectFlags(), deferFlags(), []cli.Flag{
				&cli.StringFlag{Name: "threads", Usage: "run `N` tests at once; 0 is one a core, at most 8"},
				&cli.BoolFlag{Name: "fail-fast", Aliases: []string{"x"}, Usage: "start nothing more after the first failure"},
				&cli.BoolFlag{Name: "store-failures", Usage: "keep failing rows under target/failures"},
				&cli.StringFlag{Name: "junit", Usage: "write the results as JUnit XML to `FILE`"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				o := testOptions{commonOptions: common, failFast: c.Bool("fail-fast"), storeFailures: c.Bool("store-failures"), junit: c.String("junit")}
				if o.selectOptions, err = readSelect(c, sys); err != nil {
					return err
				}
				if o.threads, err = readThreads(c); err != nil {
					return err
				}
				return runTest(c.Context, sys, o)
			},
		},
		examples: []string{"rbt test", "rbt test -s fct_orders", "rbt test -s tag:gold --store-failures", "rbt test --junit report.xml", "rbt test -s test_type:unit"},
	}
}

type testOptions struct {
	commonOptions
	selectOptions
	threads       int // as engine.RunOptions.Workers
	failFast      bool
	storeFailures bool
	junit         string // "" writes none
}

func runTest(ctx context.Context, sys *system, o testOptions) error {
	outliveReader()
	w, err := load(ctx, sys, o.commonOptions)
	if err != nil {
		return err
	}
	var show *ui
	s, err := w.open(ctx, true, func(e engine.Event) { show.Event(e) })
	if err != nil {
		return err
	}
	defer s.close()
	state, err := s.readState(ctx, s.lake)
	if err != nil {
		return s.fail(lakeError(err))
	}
	other, err := s.deferTo(ctx, o.past)
	if err != nil {
		return s.fail(err)
	}
	po := s.planOptions(ctx, o.selectOptions)
	po.Tests, po.Defer = true, other.state
	p, err := s.plan(ctx, &state, po)
	if err != nil {
		return err
	}
	show = s.newUI(len(p.Late)+len(p.UnitTests), testNames(p))
	defer show.Close()
	s.sys.planned()
	result, err := s.engine.Test(ctx, p, engine.RunOptions{
		Command: "test", InvocationID: s.invocationID, RunStartedAt: s.started, State: &state,
		DeferLake: other.lake, Workers: o.threads, FailFast: o.failFast, StoreFailures: o.storeFailures,
	})
	if jerr := s.writeJUnit(o.junit, result); err == nil {
		err = jerr
	}
	return show.outcome(s.finish(ctx, p, result, err, "test", map[string]any{"select": orEmpty(o.selected), "exclude": orEmpty(o.excluded)}))
}

func testNames(p *plan.Plan) []string {
	var names []string
	for _, t := range p.Late {
		names = append(names, t.Test.Name)
	}
	for _, u := range p.UnitTests {
		names = append(names, u.Name)
	}
	return names
}
