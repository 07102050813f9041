package engine

import (
	"context"
	"errors"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// unitTest runs one unit test on the worker's bench.
func (r *run) unitTest(ctx context.Context, worker int, u *project.UnitTest) *TestResult {
	n := r.units[u]
	bench, err := r.bench(ctx, worker)
	if err != nil {
		t := newUnitResult(n)
		t.Status, t.Err = StatusError, err
		return t
	}
	runner := unitRunner{e: r.e, catalog: r.catalog, runStartedAt: r.o.RunStartedAt, invocationID: r.o.InvocationID,
		types: func(ctx context.Context, rel *relation) []lake.Column { return r.unitColumns(ctx, worker, rel) }}
	t := runner.test(ctx, bench, n)
	r.keepSQL(t)
	return t
}

// bench gives the worker's bench.
func (r *run) bench(ctx context.Context, worker int) (*unitBench, error) {
	r.mu.Lock()
	b := r.benches[worker]
	r.mu.Unlock()
	if b != nil {
		return b, nil
	}
	db, err := r.e.database(ctx)
	if err != nil {
		return nil, err
	}
	if b, err = openBench(ctx, db, worker); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.benches[worker] = b
	return b, nil
}

// unitColumns gives the columns of a relation as the project's text has them
// now: what is published may be older than that. Where they are known only from
// data, those of what is published; none where nothing is.
func (r *run) unitColumns(ctx context.Context, worker int, rel *relation) []lake.Column {
	if columns := r.flowing(ctx)[relationKey(rel.schema, rel.name)]; columns != nil {
		return columns
	}
	s, err := r.session(ctx, worker)
	if err != nil {
		return nil
	}
	if err := r.catalog.bind(ctx, s, rel, nil); err != nil {
		return nil
	}
	columns, err := r.columns(ctx, s, relationName(rel.schema, rel.name))
	if err != nil {
		return nil
	}
	return columns
}

// flowing gives the columns that can be known without data of all that the
// models of this run's unit tests read, by relationKey. It is asked once.
func (r *run) flowing(ctx context.Context) map[string][]lake.Column {
	r.unitOnce.Lock()
	defer r.unitOnce.Unlock()
	if r.unitKnown != nil {
		return r.unitKnown
	}
	seen := map[string]bool{}
	var models []*plan.Node
	add := func(u *project.UnitTest) {
		if n := r.units[u].About; !seen[strings.ToLower(n.Name)] {
			seen[strings.ToLower(n.Name)] = true
			models = append(models, n)
		}
	}
	for _, s := range r.plan.Steps {
		for _, u := range s.UnitTests {
			add(u)
		}
	}
	for _, u := range r.plan.UnitTests {
		add(u)
	}
	c, err := r.e.bindEmpty(ctx, r.plan.Graph, models, nil)
	switch {
	case err == nil:
		r.unitKnown = c.columns
	case ctx.Err() == nil:
		// It is not asked again; the tests that need types say so.
		r.unitKnown = map[string][]lake.Column{}
	}
	return r.unitKnown
}

// closeBenches ends all benches. r.mu is held.
func (r *run) closeBenches() error {
	var err error
	for _, w := range sortedKeys(r.benches) {
		err = errors.Join(err, r.benches[w].close(context.Background()))
	}
	return err
}
