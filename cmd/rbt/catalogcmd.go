package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/lake"
	"rbt/internal/plan"
)

func newCatalogCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "catalog", Usage: "write catalog.duckdb of the lake and target/catalog.json",
			Description: `Rewrites <lake>/catalog.duckdb, in which every published relation is a view, and writes
target/catalog.json with columns and row counts. A run keeps the former up to date by itself. Open it
with "duckdb -readonly": opened otherwise it locks everybody else out.`,
			Flags: flags([]cli.Flag{
				&cli.StringFlag{Name: "lock-timeout", Usage: "wait up to `DURATION` (5m) for a run on this lake"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				o := catalogOptions{commonOptions: common}
				if o.lockTimeout, err = lockTimeout(c, sys); err != nil {
					return err
				}
				return runCatalog(c.Context, sys, o)
			},
		},
		examples: []string{
			"rbt catalog",
			"rbt catalog && duckdb -readonly lake/catalog.duckdb",
			"rbt catalog && jq '.nodes[] | [.unique_id, .stats.row_count.value]' target/catalog.json",
		},
		exits: unableExits,
	}
}

type catalogOptions struct {
	commonOptions
	lockTimeout time.Duration
}

func runCatalog(ctx context.Context, sys *system, o catalogOptions) error {
	s, err := openProject(ctx, sys, o.commonOptions, true)
	if err != nil {
		return err
	}
	defer s.close()
	g, err := s.graph(ctx)
	if err != nil {
		return err
	}
	lock, recovered, err := s.takeLake(ctx, o.lockTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	left, err := s.engine.WriteCatalog(ctx, g, &recovered.State)
	if err != nil {
		return s.fail(err)
	}
	for _, text := range left {
		s.say("warn", catalogLeft(text))
	}
	if err := s.engine.CatalogDocument(ctx, g, &recovered.State, s.invocation("catalog", nil)); err != nil {
		return s.fail(err)
	}
	s.say("info", s.catalogLine())
	return nil
}

// keepCatalog brings catalog.duckdb up to date at the end of a run, where the
// run published something or the file is older than what is published.
func (s *session) keepCatalog(ctx context.Context, p *plan.Plan, result *engine.Result, before *lake.State, show *ui) error {
	state := before
	for _, n := range result.Nodes {
		if n.Status == engine.StatusSuccess {
			now, err := s.lake.ReadState(ctx)
			if err != nil {
				return err
			}
			state = &now
			break
		}
	}
	if !engine.CatalogStale(state) {
		return nil
	}
	say := func(level, text string) {
		show.Event(engine.Event{Kind: engine.EventLog, Time: s.sys.now(), Level: level, Message: text})
	}
	left, err := s.engine.WriteCatalog(ctx, p.Graph, state)
	if err != nil {
		// What is published is complete without it, and the next run tries again.
		say("warn", fmt.Sprintf("the catalog is not up to date: %v", err))
		return nil
	}
	for _, text := range left {
		say("warn", catalogLeft(text))
	}
	say("info", s.catalogLine())
	return nil
}

func catalogLeft(text string) string { return "the catalog has no view of " + text }

// catalogLine says how to look at the lake.
func (s *session) catalogLine() string {
	path := filepath.Join(s.p.LakeDir, engine.CatalogDatabase)
	if wd, err := s.sys.workDir(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
			path = filepath.ToSlash(rel)
		}
	}
	return "To look at the data: rbt show -s NAME; all of it, in a DuckDB client: duckdb -readonly " + quoteArg(path)
}

// say prints a line of a command that has no run.
func (s *session) say(level, text string) {
	if s.o.quiet && level != "warn" {
		return
	}
	e := engine.Event{Kind: engine.EventLog, Time: s.sys.now(), Level: level, Message: text}
	var p printer = &textPrinter{out: s.out, colour: s.colour}
	if s.o.json {
		p = &jsonPrinter{out: s.out}
	}
	p.Event(e)
}
