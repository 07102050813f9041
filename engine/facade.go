package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// Options say for which project an engine works and what it may use.
type Options struct {
	Project *project.Project
	// Lake is where data is published and read; nil for commands that read none.
	Lake *lake.Lake
	// Now is the clock; nil is that of the system.
	Now func() time.Time
	// Events gets what happens, one event at a time, in order; nil drops them.
	Events func(Event)
	// ProgressEvery is how often Events hears how far the queries of a node are;
	// 0 is never, and then nothing is measured.
	ProgressEvery time.Duration
	// Trace says that Events hears of every statement that the SQL engine is given.
	Trace bool
	// Version is rbt's own, as an ingest records it.
	Version string
	// PID names the folder of temporary files under target/.
	PID int
	// Grace is how long a cancelled run waits for a query that does not return; 0
	// is two seconds.
	Grace time.Duration
}

// defaultGrace is how long a vectorised call that cannot be interrupted is
// waited for.
const defaultGrace = 2 * time.Second

// Engine runs SQL for one project. DuckDB is opened when the first statement
// needs it. Close it when it is no longer needed.
type Engine struct {
	o      Options
	parser *parser
	// schemas of the Parquet files of sources, from one command to the next.
	schemas *schemas

	mu     sync.Mutex
	db     *database
	temp   *tempFolder // of db
	closed bool
	stuck  bool // a query that cannot be interrupted or a publish still runs
	opened bool

	eventMu sync.Mutex
	silent  bool
}

// Open makes an engine. It starts nothing yet.
func Open(_ context.Context, o Options) (*Engine, error) {
	if o.Project == nil {
		return nil, fmt.Errorf("open the engine: no project")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.PID == 0 {
		o.PID = os.Getpid()
	}
	e := &Engine{o: o}
	e.parser = &parser{open: e.database, cache: newParseCache(o.Project.TargetDir, o.Version, o.Project.Mask)}
	e.schemas = newSchemas(o.Project, o.Version, o.Now)
	return e, nil
}

// Close ends the engine and removes its temporary files. A query that still runs
// and cannot be interrupted keeps both until the process ends.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.parser.close()
	e.schemas.close()
	if e.db == nil || e.stuck {
		return nil
	}
	db := e.db
	e.db = nil
	return errors.Join(db.Close(), e.temp.remove())
}

// Outlived reports whether a cancelled run ended while something of it still ran:
// a query that cannot be interrupted, or a publish that waits for the disk. Both
// end with the process, and until then nobody else may write to the lake.
func (e *Engine) Outlived() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stuck
}

// Opened reports whether the database was opened: a command that finds nothing
// to do should not need it.
func (e *Engine) Opened() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.opened
}

// database opens DuckDB once.
func (e *Engine) database(ctx context.Context) (*database, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("open the SQL engine: it was closed")
	}
	if e.db != nil {
		return e.db, nil
	}
	temp, err := claimTempFolder(tempDirFor(e.o.Project.TargetDir, e.o.PID))
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, e.o.Project.Engine, temp.path)
	if err != nil {
		return nil, errors.Join(err, temp.remove())
	}
	if e.o.Trace {
		db.tracer = e
	}
	e.db, e.temp, e.opened = db, temp, true
	return db, nil
}

// Parser looks into SQL texts for a plan.
func (e *Engine) Parser() plan.Parser { return e.parser }

// Identity is what of the engine shapes data, for fingerprints: version, time
// zone and settings. It opens no database.
func (e *Engine) Identity() string { return engineIdentity(e.o.Project.Engine) }

// SourceFiles gives the identity of every file of a source as it is now.
func (e *Engine) SourceFiles(s *project.Source) (map[string]lake.FileStamp, error) {
	files, err := expandPatterns(s.Patterns)
	if err != nil {
		return nil, err
	}
	return fileStamps(e.o.Project, files)
}

// SeedHash gives the SHA-256 of a seed's file.
func (e *Engine) SeedHash(s *project.Seed) (string, error) {
	content, err := os.ReadFile(seedFile(e.o.Project, s))
	if err != nil {
		return "", fmt.Errorf("read seed: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// emit sends an event.
func (e *Engine) emit(ev Event) {
	if e.o.Events == nil {
		return
	}
	e.eventMu.Lock()
	defer e.eventMu.Unlock()
	if e.silent {
		return
	}
	ev.Time = e.o.Now()
	e.o.Events(ev)
}

// silence drops what a job that was given up may still say.
func (e *Engine) silence() {
	e.eventMu.Lock()
	defer e.eventMu.Unlock()
	e.silent = true
}
