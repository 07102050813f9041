package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
)

// session is a workspace with an engine on it and, where the command needs it,
// the lake.
type session struct {
	*workspace
	lake         *lake.Lake
	engine       *engine.Engine
	started      time.Time
	invocationID string
	state        *engine.PastManifest // of --state, once it was asked for
	compiled     *plan.Graph          // once it was asked for
	noTexts      bool                 // no SQL is run or shown
	recall       bool                 // what needs texts renders them
	keeping      sync.WaitGroup       // writes what later commands recall
}

// open makes the engine of a command. withLake is false for commands that need
// nothing of what is published; events is nil for commands that run no plan.
// Close it.
func (w *workspace) open(ctx context.Context, withLake bool, events func(engine.Event)) (*session, error) {
	s := &session{workspace: w, started: w.sys.now().UTC(), invocationID: newInvocationID()}
	if withLake {
		l, err := lake.Open(w.p.LakeDir, lake.OS())
		if err != nil {
			return nil, w.fail(err)
		}
		s.lake = l
	}
	if events == nil {
		events = w.debugEvents
	}
	e, err := engine.Open(ctx, engine.Options{
		Project: w.p, Lake: s.lake, Now: w.sys.now, Events: events, ProgressEvery: w.tellEvery(), Trace: w.o.debug, Version: rbtVersion(), PID: os.Getpid(),
	})
	if err != nil {
		return nil, w.fail(err)
	}
	s.engine = e
	return s, nil
}

// openProject loads the project and opens the engine of a command that runs no
// plan. Close it.
func openProject(ctx context.Context, sys *system, o commonOptions, withLake bool) (*session, error) {
	w, err := load(ctx, sys, o)
	if err != nil {
		return nil, err
	}
	return w.open(ctx, withLake, nil)
}

func (s *session) close() {
	if s.o.debug {
		_, _ = fmt.Fprintf(s.errOut, "debug: the SQL engine was opened: %t\n", s.engine.Opened())
	}
	s.keeping.Wait()
	if err := s.engine.Close(); err != nil {
		_, _ = fmt.Fprintf(s.errOut, "warning: %s\n", err)
	}
}

// planOptions are what every plan of this command is made with.
func (s *session) planOptions(ctx context.Context, sel selectOptions) plan.Options {
	return plan.Options{
		Selectors: plan.Selectors{
			Select: sel.selected, Exclude: sel.excluded, ResourceTypes: sel.resourceTypes,
			Selector: sel.selector, Named: s.p.Selectors, Past: s.pastFor(ctx, sel),
		},
		RunStartedAt:   s.started,
		InvocationID:   s.invocationID,
		EngineIdentity: s.engine.Identity(),
		SourceFiles:    s.engine.SourceFiles,
		IngestFiles:    s.engine.IngestFiles,
		SeedHash:       s.engine.SeedHash,
		NoTexts:        s.noTexts,
		Recall:         s.recall,
	}
}

// graph compiles the project and joins it into a graph, once.
func (s *session) graph(ctx context.Context) (*plan.Graph, error) {
	if s.compiled != nil {
		return s.compiled, nil
	}
	g, problems := plan.Load(ctx, s.p, s.engine.Parser(), s.planOptions(ctx, selectOptions{}))
	problems = append(problems, s.engine.Problems()...)
	s.compiled = g
	if err := s.checked(ctx, problems); err != nil {
		return g, err
	}
	// What cannot be kept costs the next command time.
	s.keeping.Go(func() { _ = s.p.SaveRecall() })
	return g, nil
}

// selectNodes compiles the project and picks what the words say.
func (s *session) selectNodes(ctx context.Context, sel selectOptions) (*plan.Graph, plan.Selection, error) {
	g, err := s.graph(ctx)
	if err != nil {
		return nil, plan.Selection{}, err
	}
	selection, problems := g.Select(s.planOptions(ctx, sel).Selectors)
	return g, selection, s.checked(ctx, problems)
}

// plan makes the plan of a command on what the lake holds.
func (s *session) plan(ctx context.Context, state *lake.State, o plan.Options) (*plan.Plan, error) {
	g, err := s.graph(ctx)
	if err != nil {
		return nil, err
	}
	p, problems := g.Plan(s.p, state, o)
	if err := s.checked(ctx, problems); err != nil {
		return nil, err
	}
	return p, nil
}

// checked prints the problems of a stage; with an error among them it returns
// errReported.
func (s *session) checked(ctx context.Context, problems diag.List) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := problems.Err(); err != nil {
		return s.fail(err)
	}
	s.warn(problems)
	return nil
}

// lakeError gives an error of package lake as what is printed for it.
func lakeError(err error) error {
	var locked *lake.LockedError
	if errors.As(err, &locked) {
		return locked.Diagnostic()
	}
	var damaged *lake.DamageError
	if errors.As(err, &damaged) {
		return damaged.Diagnostic()
	}
	if hint := lake.FaultHint(err.Error()); hint != "" && !isDiagnostic(err) {
		return diag.Errorf(diag.PublishFault, diag.Pos{}, "%s", err).WithHint("%s", hint)
	}
	return err
}

// isDiagnostic reports whether an error says its place and code by itself.
func isDiagnostic(err error) bool {
	var one diag.Diagnostic
	var list diag.List
	return errors.As(err, &one) || errors.As(err, &list)
}

// newInvocationID is 32 hex digits in the groups of a UUID of version 4.
func newInvocationID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
