package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// memoryPrefix begins the names of the files of target/cache that hold what was read
// of a lake.
const memoryPrefix = "lake-"

// openLake opens a lake with what an earlier command read of it. Save what is new
// with keepMemory.
func (w *workspace) openLake(root string) (*lake.Lake, *lake.Memory, error) {
	l, err := lake.Open(root, lake.OS())
	program := w.sys.program()
	if err != nil || program == "" {
		return l, nil, err
	}
	now := w.sys.now()
	// What cannot be read is read of the lake.
	content, _ := os.ReadFile(w.memoryPath(root))
	m := lake.NewMemory(program, root, string(content), now)
	l.Use(m)
	return l, m, nil
}

func (w *workspace) memoryPath(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(w.p.TargetDir, "cache", fmt.Sprintf("%s%x", memoryPrefix, sum[:8]))
}

// keepMemory writes what was read of a lake for later commands, while this one goes
// on. What cannot be written costs the next command time.
func (s *session) keepMemory(l *lake.Lake, m *lake.Memory) {
	if m == nil {
		return
	}
	s.keeping.Go(func() {
		if text, ok := m.Text(); ok {
			_ = project.KeepCache(s.memoryPath(l.Root()), memoryPrefix, text)
		}
	})
}

// readState reads what is published in the lake of the command.
func (s *session) readState(ctx context.Context) (lake.State, error) {
	state, err := s.lake.ReadState(ctx)
	if err == nil {
		s.keepMemory(s.lake, s.memory)
	}
	return state, err
}
