package engine

import (
	"context"
	"fmt"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// unitBench is where one worker runs unit tests: a database of its own in
// memory, in which nothing that is published has a name. Each test runs in a
// transaction that is rolled back.
type unitBench struct {
	session *session
	catalog string // its name in the engine
}

// openBench makes a bench. number tells those of one engine apart.
func openBench(ctx context.Context, db *database, number int) (*unitBench, error) {
	s, err := db.session(ctx)
	if err != nil {
		return nil, err
	}
	b := &unitBench{session: s, catalog: fmt.Sprintf("rbt_unit_%d", number)}
	for _, sql := range []string{"ATTACH ':memory:' AS " + b.catalog, "USE " + b.catalog} {
		if err := s.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("make room for unit tests: %w", err)
		}
	}
	return b, nil
}

// close gives the connection back as it was: connections are used again.
func (b *unitBench) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, sql := range []string{"USE memory", "DETACH " + b.catalog} {
		if err := b.session.Exec(ctx, sql); err != nil {
			return fmt.Errorf("end unit tests: %w", err)
		}
	}
	return b.session.Close()
}

// unitTypes gives the columns that a relation has, for what a unit test does
// not say.
type unitTypes func(ctx context.Context, ref project.Ref) ([]lake.Column, error)

// unitCase is one unit test being run.
type unitCase struct {
	bench  *unitBench
	node   *plan.TestNode
	test   *project.UnitTest
	types  unitTypes
	result *TestResult
}
