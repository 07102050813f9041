package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// deferFlags let a command read what it does not build from another lake.
func deferFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "defer", Usage: "read what is neither selected nor published here from the lake of --state"},
		&cli.StringFlag{Name: "defer-target", Usage: "the target whose lake --defer reads with --state git:REF: `NAME` (default: " + defaultDeferTarget + ")"},
	}
}

// defaultDeferTarget is the target whose lake stands for a revision of the
// project, of which no manifest says where it was published.
const defaultDeferTarget = "prod"

// pastOptions say what a command compares with, and where it reads what it does
// not build.
type pastOptions struct {
	state       string // --state: a folder with a manifest.json, or git:REF; "" for none
	deferring   bool
	deferTarget string
}

func readPast(c *cli.Context, sys *system) (pastOptions, error) {
	o := pastOptions{state: flagOrEnv(c, sys, "state"), deferTarget: flagOrEnv(c, sys, "defer-target")}
	deferring, err := boolOrEnv(c, sys, "defer")
	o.deferring = deferring
	switch {
	case err != nil:
		return o, err
	case o.deferring && o.state == "":
		return o, badFlag(c, "--defer needs --state: a folder with a %s, or git:REF", engine.ManifestFile)
	case c.IsSet("defer-target") && !o.deferring:
		return o, badFlag(c, "--defer-target needs --defer")
	}
	return o, nil
}

// otherLake is the lake that --defer reads; both fields are nil without it.
type otherLake struct {
	lake  *lake.Lake
	state *lake.State
}

// pastFor gives the selectors of this command what they compare with. Nothing is
// read before a selector asks.
func (s *session) pastFor(ctx context.Context, o selectOptions) plan.Past {
	past := plan.Past{
		Results: func() (map[string]string, error) { return s.lastResults(o.past) },
		Sources: func() (map[string]string, error) { return s.fresherSources(ctx, o.past) },
	}
	if o.results != nil {
		past.Results = func() (map[string]string, error) { return o.results, nil }
	}
	if o.past.state != "" {
		past.State = func(g *plan.Graph) (map[string]plan.Change, error) {
			before, err := s.before(ctx, o.past)
			if err != nil {
				return nil, err
			}
			if before.Project != s.p.Name {
				return nil, fmt.Errorf("%s is of the project %q and not of %q", o.past.state, before.Project, s.p.Name)
			}
			return plan.Changed(g.Prints(s.engine.SeedHash), before.Prints), nil
		}
	}
	return past
}

// before reads the manifest that --state names, once.
func (s *session) before(ctx context.Context, o pastOptions) (*engine.PastManifest, error) {
	if s.state != nil {
		return s.state, nil
	}
	var err error
	if ref, ok := gitRef(o.state); ok {
		s.state, err = s.revision(ctx, ref)
	} else {
		var dir string
		if dir, err = s.sys.abs(o.state); err == nil {
			s.state, err = engine.ReadManifest(filepath.Join(dir, engine.ManifestFile))
		}
	}
	return s.state, err
}

// lastResults gives the statuses of the last run: of the folder of --state, as
// in dbt, else of this target folder.
func (s *session) lastResults(o pastOptions) (map[string]string, error) {
	dir := s.p.TargetDir
	if _, git := gitRef(o.state); o.state != "" && !git {
		var err error
		if dir, err = s.sys.abs(o.state); err != nil {
			return nil, err
		}
	}
	last, err := engine.ReadResults(filepath.Join(dir, engine.LastRunFile))
	if errors.Is(err, os.ErrNotExist) {
		last, err = engine.ReadResults(filepath.Join(dir, engine.RunResultsFile))
	}
	if err != nil {
		return nil, err
	}
	return last.Status, nil
}

// deferTo opens the lake that --defer reads: that of the manifest of --state, of
// a revision that of --defer-target.
func (s *session) deferTo(ctx context.Context, o pastOptions) (otherLake, error) {
	if !o.deferring {
		return otherLake{}, nil
	}
	root, err := s.deferRoot(ctx, o)
	if err != nil {
		return otherLake{}, err
	}
	if root == s.p.LakeDir {
		return otherLake{}, nil // it is this lake that would be read anyway
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return otherLake{}, diag.Errorf(diag.DeferLake, diag.Pos{}, "--defer: there is no lake at %s", root).
			WithHint("run there first, or name the target whose lake is meant with --defer-target")
	}
	l, err := lake.Open(root, lake.OS())
	if err != nil {
		return otherLake{}, err
	}
	state, err := s.readState(ctx, l)
	if err != nil {
		return otherLake{}, lakeError(err)
	}
	return otherLake{lake: l, state: &state}, nil
}

func (s *session) deferRoot(ctx context.Context, o pastOptions) (string, error) {
	if _, git := gitRef(o.state); !git && o.deferTarget == "" {
		before, err := s.before(ctx, o)
		if err != nil {
			return "", diag.Errorf(diag.SelectorNeedsState, diag.Pos{}, "--state %s: %v", o.state, err).
				WithHint("--state names a folder with the %s of an earlier command, or git:REF", engine.ManifestFile)
		}
		if before.Lake == "" {
			return "", diag.Errorf(diag.DeferLake, diag.Pos{}, "--defer: the manifest of %s does not say where its lake is", o.state).
				WithHint("rbt writes it; name a target with --defer-target")
		}
		return before.Lake, nil
	}
	name := o.deferTarget
	if name == "" {
		name = defaultDeferTarget
	}
	root, ok := s.p.TargetLake(name)
	if !ok {
		return "", diag.Errorf(diag.DeferLake, diag.Pos{File: project.File}, "--defer: the project has no target %q", name).
			WithHint("name the target whose lake is meant with --defer-target")
	}
	return root, nil
}
