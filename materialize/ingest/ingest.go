// Package ingest turns files of nested records into normalised, deduplicated
// tables of Parquet, in parallel, with the same bytes for any number of
// workers. It owns the meaning of an ingest declaration (Compile), the parser
// and encoder of records, the shards between encode and merge, and the merge.
// It must never publish anything, open a database (materialize.Session is its
// only way to SQL), or let its result depend on workers, chunk sizes, threads,
// time or the order in which work was done.
//
// Its words: a record is an object that is a row of its own, an entry one that
// stands at the top of the input; an occurrence is one place where a record
// stands, its position the file's ordinal and the byte where it starts; the
// content id is the hash of what a record says, the key what decides whether
// two occurrences are one record; the survivor of a key is its first
// occurrence; a shard is the rows of one table from one worker; the merge
// makes the tables from the shards; a reject is a record that could not be
// loaded, kept with its place and reason.
package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"rbt/internal/diag"
	"rbt/materialize"
)

// Job is one load: a program, its input and how hard to work. It implements
// materialize.Source. Only Program and Files shape the result; LoadID, Version
// and Metadata are written into it. A Job is used once.
type Job struct {
	Program *Program
	// Files in the order in which they are read: sorted by the bytes of Name
	// (see Discover).
	Files []File
	// LoadID is the ordinal of the load, written to _load_id; 0 means 1.
	LoadID int64
	// Version is rbt's version as _loads tells it.
	Version string
	// Metadata goes into the key-value metadata of every staged file.
	Metadata map[string]string

	// Previous is what is published of a model with mode: append, nil for the
	// first load. FullRefresh loads everything anew, in the order of the ledger.
	Previous    *Previous
	FullRefresh bool

	// Workers is the number of encoders; 0 takes every core.
	Workers int
	// ChunkBytes is how much of a file a worker takes at once; 0 means 4 MiB.
	ChunkBytes int
	// MemoryLimit bounds what the Go side holds, in bytes; 0 means 512 MiB.
	MemoryLimit int64
	// StallAfter ends a load in which a worker makes no progress for so long;
	// 0 means two minutes.
	StallAfter time.Duration
	// ChangeTime gives the time, in ns since 1970, at which content or properties
	// of a file last changed: a file replaced by another of the same size and
	// modification time is known by it. nil where the system has none.
	ChangeTime func(os.FileInfo) int64
	// Progress is called now and then, never twice at once; nil for none.
	Progress func(Progress)

	hooks   hooks
	stats   Stats
	stamps  []fileStamp // by file
	touched []ledgerRow // of files with other times than the ledger's and the same content
}

// Progress is how far a load is. TotalBytes and TotalFiles count the input as
// it lies on disk; Bytes is what was read of it.
type Progress struct {
	Phase      string // "encode" or "merge"
	Files      int64
	TotalFiles int64
	Bytes      int64
	TotalBytes int64
	Records    int64
	Rejects    int64
	Tables     int64 // merge: staged so far
}

// Stats are the figures of a finished load.
type Stats struct {
	Files         int64            `json:"files"`
	Bytes         int64            `json:"bytes"`      // as on disk
	TextBytes     int64            `json:"text_bytes"` // decompressed
	Records       int64            `json:"records"`
	Rejects       int64            `json:"rejects"`
	Nulled        int64            `json:"nulled"`
	Occurrences   int64            `json:"occurrences"`
	Dropped       int64            `json:"dropped"` // exact repeats that workers did not write
	ShardBytes    int64            `json:"shard_bytes"`
	Workers       int              `json:"workers"`
	EncodeSeconds float64          `json:"encode_seconds"`
	MergeSeconds  float64          `json:"merge_seconds"`
	Rows          map[string]int64 `json:"rows"` // by output folder
}

// Stats gives the figures of the load after Stage has returned without error.
func (j *Job) Stats() Stats { return j.stats }

// hooks let tests break things at chosen places.
type hooks struct {
	record func(worker int, base int64) // before every record
	flush  func(b *tableBuf)            // before a shard is written
	shards func(dir string) error       // between encode and merge
	step   func(name string) error      // before every step of the merge
	ticks  <-chan time.Time             // instead of a clock, for the watchdog
}

// Defaults and bounds of the settings.
const (
	defaultChunk  = 4 << 20
	minChunk      = 64 // below that every record grows a chunk anyway
	defaultMemory = 512 << 20
	defaultStall  = 2 * time.Minute
)

func (j *Job) prepare() {
	if j.LoadID == 0 {
		j.LoadID = 1
	}
	if j.Workers <= 0 {
		j.Workers = runtime.GOMAXPROCS(0)
	}
	if j.ChunkBytes <= 0 {
		j.ChunkBytes = defaultChunk
	}
	j.ChunkBytes = max(j.ChunkBytes, minChunk)
	if j.MemoryLimit <= 0 {
		j.MemoryLimit = defaultMemory
	}
	if j.StallAfter <= 0 {
		j.StallAfter = defaultStall
	}
	// A chunk is held by the reader, in the channel and by a worker, and the heap
	// doubles between collections; with many workers and little memory a chunk has
	// to be smaller. Results do not change.
	if most := j.MemoryLimit / int64(12*j.Workers+4); int64(j.ChunkBytes) > most {
		j.ChunkBytes = int(max(most, 64<<10))
	}
	j.stats = Stats{Workers: j.Workers, Rows: map[string]int64{}}
}

// Stage reads the input and writes every relation of the program into dir, an
// empty folder, as <folder>.staged. Shards live in a subfolder that is gone
// when Stage returns. Errors about the input are diag.Diagnostic with the
// file's name and line.
func (j *Job) Stage(ctx context.Context, s materialize.Session, dir string) (materialize.Staged, error) {
	all := j.Files
	staged, err := j.stage(ctx, s, dir)
	return staged, shownPlaces(j.damage(ctx, s, err), all)
}

func (j *Job) stage(ctx context.Context, s materialize.Session, dir string) (_ materialize.Staged, err error) {
	j.prepare()
	start := time.Now()
	w, err := newWorkspace(filepath.Join(dir, "shards"))
	if err != nil {
		return materialize.Staged{}, err
	}
	defer func() {
		if rmErr := w.remove(); err == nil {
			err = rmErr
		}
	}()
	prev, err := j.plan(ctx, s)
	if err != nil {
		return materialize.Staged{}, err
	}
	shards, err := j.encode(ctx, w)
	if err != nil {
		return materialize.Staged{}, err
	}
	// The merge takes its memory from the engine: what encoding had is given back
	// first, which the runtime would do over minutes.
	debug.FreeOSMemory()
	j.stats.EncodeSeconds = time.Since(start).Seconds()
	if j.hooks.shards != nil {
		if err := j.hooks.shards(w.dir); err != nil {
			return materialize.Staged{}, err
		}
	}
	start = time.Now()
	staged, err := j.merge(ctx, s, dir, shards, prev)
	if err != nil {
		return materialize.Staged{}, err
	}
	j.stats.MergeSeconds = time.Since(start).Seconds()
	figures, err := json.Marshal(j.stats)
	if err != nil {
		return materialize.Staged{}, fmt.Errorf("encode ingest figures: %w", err)
	}
	staged.Stats = (*json.RawMessage)(&figures)
	return staged, nil
}

// shownPlaces gives the places of an error's diagnostic the names that files
// have in messages.
func shownPlaces(err error, files []File) error {
	var d diag.Diagnostic
	if err == nil || !errors.As(err, &d) {
		return err
	}
	shown := make(map[string]string, len(files))
	for _, f := range files {
		if f.Shown != "" {
			shown[f.Name] = f.Shown
		}
	}
	name := func(pos *diag.Pos) {
		if s, ok := shown[pos.File]; ok {
			pos.File = s
		}
	}
	name(&d.Pos)
	d.Notes = slices.Clone(d.Notes)
	for i := range d.Notes {
		name(&d.Notes[i].Pos)
	}
	return d
}
