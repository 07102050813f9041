package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// memoryPrefix begins the names of the files of target/cache that hold what was read
// of a lake.
const memoryPrefix = "lake-"

// recallLake lets a lake go by what an earlier command read of it, and note what it
// reads now; nil where nothing is kept.
func (s *session) recallLake(l *lake.Lake) *lake.Memory {
	program := s.sys.program()
	if program == "" {
		return nil
	}
	now := s.sys.now()
	// What cannot be read here is read of the lake.
	content, _ := project.ReadText(s.memoryPath(l))
	m := lake.NewMemory(program, l.Root(), content, now)
	l.Use(m)
	return m
}

func (s *session) memoryPath(l *lake.Lake) string {
	sum := sha256.Sum256([]byte(l.Root()))
	return filepath.Join(s.p.TargetDir, "cache", fmt.Sprintf("%s%x", memoryPrefix, sum[:8]))
}

// keepLake writes what was read of a lake for later commands, while this one goes
// on. What cannot be written costs the next command time.
func (s *session) keepLake(l *lake.Lake, m *lake.Memory) {
	if m == nil {
		return
	}
	s.keeping.Go(func() {
		if text, ok := m.Text(); ok {
			_ = project.KeepCache(s.memoryPath(l), memoryPrefix, text)
		}
	})
}

// readState reads what is published in a lake.
func (s *session) readState(ctx context.Context, l *lake.Lake) (lake.State, error) {
	m := s.recallLake(l)
	state, err := l.ReadState(ctx)
	if err == nil {
		s.keepLake(l, m)
	}
	return state, err
}

// stateAndGraph reads what is published in the lake of the command while the project
// is joined into its graph.
func (s *session) stateAndGraph(ctx context.Context) (*lake.State, error) {
	var state lake.State
	var stateErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		state, stateErr = s.readState(ctx, s.lake)
	}()
	_, err := s.graph(ctx)
	<-done
	if err == nil && stateErr != nil {
		err = s.fail(lakeError(stateErr))
	}
	return &state, err
}
