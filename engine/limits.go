package engine

import (
	"context"
	"fmt"
	"path/filepath"
)

// Limits are what the SQL engine was started with.
type Limits struct {
	Memory      string // with its unit, as the engine prints it
	Threads     int64
	SpillFolder string // what does not fit into memory goes to a folder in it
}

// Limits starts the SQL engine as a run does, with the project's settings, and
// says what it may take. A setting that it refuses is the error.
func (e *Engine) Limits(ctx context.Context) (Limits, error) {
	d, err := e.database(ctx)
	if err != nil {
		return Limits{}, err
	}
	l := Limits{SpillFolder: filepath.Dir(d.tempDir)}
	row := d.db.QueryRowContext(ctx, "SELECT current_setting('memory_limit'), current_setting('threads')")
	if err := row.Scan(&l.Memory, &l.Threads); err != nil {
		return Limits{}, fmt.Errorf("read the limits of the SQL engine: %w", plainError(err))
	}
	return l, nil
}
