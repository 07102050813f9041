package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"rbt/internal/diag"
)

// workspace is the folder of the shards.
type workspace struct{ dir string }

func newWorkspace(dir string) (*workspace, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder of shards: %w", err)
	}
	return &workspace{dir: dir}, nil
}

func (w *workspace) remove() error {
	if err := os.RemoveAll(w.dir); err != nil {
		return fmt.Errorf("remove shards: %w", err)
	}
	return nil
}

// shardSet is what the encode phase leaves: shard files and row counts by
// table, and what was counted.
type shardSet struct {
	files  [][]string
	rows   []int64
	tally  tally
	byFile [][2]int64 // records and rejects
}

// pipeline is one run of the encode phase.
type pipeline struct {
	j     *Job
	p     *Program
	w     *workspace
	gate  *gate
	shift uint
	ch    chan *chunk
	pool  chan *chunk

	dispatched atomic.Int64 // records that readers have handed out
	read       atomic.Int64 // bytes as on disk
	text       atomic.Int64
	files      atomic.Int64
	next       atomic.Int64 // next file to be opened
	watch      []watched

	mu      sync.Mutex
	set     shardSet
	loaded  []atomic.Int64 // records by file
	refused []atomic.Int64 // rejects by file
	extra   []reject       // of readers
	records int64
	rejects int64
	total   int64

	unranked []*shardWriter // written, but for the ranks and the footer
}

// watched is one worker's sign of life.
type watched struct {
	busy  atomic.Bool
	steps atomic.Int64
	_     [40]byte // keeps two workers off one cache line
}

// positionShift is how many bits of a position are the byte; the rest, without
// the sign, are the file's ordinal.
func positionShift(files int) uint {
	return uint(63 - max(1, bits.Len(uint(max(files-1, 0)))))
}

func (j *Job) encode(ctx context.Context, w *workspace) (*shardSet, error) {
	p := j.Program
	pl := &pipeline{j: j, p: p, w: w, gate: newGate(p), shift: positionShift(len(j.Files)),
		ch: make(chan *chunk, j.Workers), pool: make(chan *chunk, 3*j.Workers+1), watch: make([]watched, j.Workers)}
	pl.loaded, pl.refused = make([]atomic.Int64, len(j.Files)), make([]atomic.Int64, len(j.Files))
	pl.set.files = make([][]string, len(p.tables))
	pl.set.rows = make([]int64, len(p.tables))
	pl.set.tally.occurrences = make([]int64, len(p.types))
	for _, f := range j.Files {
		if info, err := os.Stat(f.Path); err == nil {
			pl.total += info.Size()
		}
	}
	if err := pl.run(ctx); err != nil {
		return nil, pl.abandon(err)
	}
	if err := pl.rank(); err != nil {
		return nil, pl.abandon(err)
	}
	if err := pl.gate.verdict(p, pl.set.tally.records); err != nil {
		return nil, err
	}
	if err := pl.readerRejects(); err != nil {
		return nil, err
	}
	t := &pl.set.tally
	if done := t.records + t.rejects + t.empty; done != pl.dispatched.Load() {
		return nil, checkFailed("%d records were handed out, %d came back", pl.dispatched.Load(), done)
	}
	t.rejects += int64(len(pl.extra))
	pl.set.byFile = make([][2]int64, len(j.Files))
	for i := range pl.set.byFile {
		pl.set.byFile[i] = [2]int64{pl.loaded[i].Load(), pl.refused[i].Load()}
	}
	j.stats.Files, j.stats.Bytes, j.stats.TextBytes = int64(len(j.Files)), pl.read.Load(), pl.text.Load()
	j.stats.Records, j.stats.Rejects, j.stats.Nulled = t.records, t.rejects, t.nulled
	for i, n := range t.occurrences {
		j.stats.Occurrences += n
		j.stats.Dropped += n - pl.set.rows[p.types[i].table.ord]
	}
	for _, list := range pl.set.files {
		for _, f := range list {
			if info, err := os.Stat(f); err == nil {
				j.stats.ShardBytes += info.Size()
			}
		}
	}
	return &pl.set, nil
}

// rank numbers the rows of the numbered tables by position and finishes their
// shards. Chunks have their records one after the other, so that sorting the
// chunks is enough.
func (pl *pipeline) rank() error {
	byTable := make([][]*run, len(pl.p.tables))
	for _, w := range pl.unranked {
		for i := range w.groups {
			for n := range w.groups[i].runs {
				byTable[w.t.ord] = append(byTable[w.t.ord], &w.groups[i].runs[n])
			}
		}
	}
	for _, runs := range byTable {
		slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(a.pos, b.pos) })
		next := int64(1)
		for _, r := range runs {
			r.first = next
			next += int64(r.rows)
		}
	}
	for len(pl.unranked) > 0 {
		w := pl.unranked[0]
		if err := w.rank(); err != nil {
			return err
		}
		pl.unranked = pl.unranked[1:]
		if err := w.close(); err != nil {
			return err
		}
	}
	return nil
}

// abandon closes what a load that has failed with err leaves open.
func (pl *pipeline) abandon(err error) error {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	for _, w := range pl.unranked {
		if closeErr := w.abandon(); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
	}
	pl.unranked = nil
	return err
}

func checkFailed(format string, args ...any) error {
	return diag.Errorf(diag.IngestCheck, diag.Pos{}, format, args...).
		WithHint("this is a defect of rbt or of the disk; nothing was published")
}

// run starts readers and workers and waits for them, or for a stall.
func (pl *pipeline) run(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	readers := min(pl.j.Workers, max(1, len(pl.j.Files)))
	var reading sync.WaitGroup
	for range readers {
		reading.Add(1)
		g.Go(func() error {
			defer reading.Done()
			return pl.readFiles(gctx)
		})
	}
	g.Go(func() error {
		reading.Wait()
		close(pl.ch)
		return nil
	})
	for i := range pl.j.Workers {
		g.Go(func() error { return pl.work(gctx, i) })
	}
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	stalled := make(chan error, 1)
	quit := make(chan struct{})
	go pl.watchdog(quit, stalled)
	defer close(quit)
	select {
	case err := <-done:
		if err == nil || ctx.Err() == nil {
			return err
		}
		return ctx.Err()
	case err := <-stalled:
		// The worker that hangs cannot be ended; it is left behind.
		return err
	}
}

// watchdog ends a load in which a busy worker has not moved between two ticks.
func (pl *pipeline) watchdog(quit <-chan struct{}, stalled chan<- error) {
	ticks := pl.j.hooks.ticks
	if ticks == nil {
		t := time.NewTicker(pl.j.StallAfter)
		defer t.Stop()
		ticks = t.C
	}
	last := make([]int64, len(pl.watch))
	for i := range last {
		last[i] = -1
	}
	for {
		select {
		case <-quit:
			return
		case <-ticks:
		}
		for i := range pl.watch {
			w := &pl.watch[i]
			now := w.steps.Load()
			if w.busy.Load() && now == last[i] {
				dump := make([]byte, 1<<20)
				dump = dump[:runtime.Stack(dump, true)]
				stalled <- diag.Errorf(diag.IngestStall, diag.Pos{}, "worker %d made no progress within %s\n%s", i, pl.j.StallAfter, dump)
				return
			}
			last[i] = now
			if !w.busy.Load() {
				last[i] = -1
			}
		}
	}
}

func (pl *pipeline) readFiles(ctx context.Context) error {
	bufs := newReadBuffers()
	defer bufs.close()
	for {
		i := int(pl.next.Add(1)) - 1
		if i >= len(pl.j.Files) {
			return nil
		}
		if pl.gate.beyond(int64(i) << pl.shift) {
			continue
		}
		if err := pl.readFile(ctx, i, bufs); err != nil {
			return err
		}
		pl.files.Add(1)
	}
}

func (pl *pipeline) readFile(ctx context.Context, i int, bufs *readBuffers) (err error) {
	f := pl.j.Files[i]
	defer func() {
		if r := recover(); r != nil {
			err = workerPanic(diag.Pos{File: f.Name}, r)
		}
	}()
	in, err := openInput(f, pl.p.compression, pl.p.appendMode, bufs)
	if err != nil {
		return err
	}
	defer in.close()
	cur, err := openCursor(in, i, pl.shift, pl.j.ChunkBytes, pl.p)
	if err != nil {
		return err
	}
	seen := int64(0)
	for {
		c := pl.chunk()
		err := cur.next(ctx, c)
		for _, r := range cur.broken() {
			pl.readerReject(f, r)
		}
		pl.read.Add(in.raw.n - seen)
		seen = in.raw.n
		if err == io.EOF {
			pl.recycle(c)
			break
		}
		if err != nil {
			return err
		}
		if pl.gate.beyond(c.base) {
			return nil
		}
		pl.dispatched.Add(c.count())
		pl.text.Add(int64(len(c.data)))
		select {
		case pl.ch <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err = in.finish()
	pl.read.Add(in.raw.n - seen)
	if in.hash != nil {
		pl.j.stamps[i] = pl.j.stampOf(in.info)
		pl.j.stamps[i].hash = hex.EncodeToString(in.hash.Sum(nil))
	}
	return err
}

// openCursor picks the reader of a file's format.
func openCursor(in *input, i int, shift uint, size int, p *Program) (cursor, error) {
	switch decideFormat(in.name, p.format, in.r, len(p.recordPath) == 0) {
	case "ndjson":
		return newLineCursor(in, i, shift, size), nil
	case "json":
		return newDocCursor(in, i, shift, size, p.recordPath), nil
	case "csv":
		return newCSVCursor(in, i, shift, size, p)
	case "arrow_ipc":
		return newArrowCursor(in, i, shift, size)
	default:
		return newParquetCursor(in, i, shift, size)
	}
}

func (pl *pipeline) readerReject(f File, r reject) {
	r.file, r.fatal = f.Name, pl.p.failBad
	pl.gate.note(&r)
	pl.refused[r.pos>>pl.shift].Add(1)
	pl.mu.Lock()
	pl.extra = append(pl.extra, r)
	pl.rejects++
	pl.mu.Unlock()
}

// readerRejects writes what readers could not cut into records.
func (pl *pipeline) readerRejects() error {
	if len(pl.extra) == 0 {
		return nil
	}
	b := newTableBuf(pl.p.rejects)
	for i := range pl.extra {
		pl.extra[i].append(b)
	}
	shards := newShards(pl, pl.j.Workers)
	if err := shards.flush(b); err != nil {
		return err
	}
	return shards.close()
}

// count is the number of records a chunk hands out; for lines, of lines, the
// last of which may have no newline.
func (c *chunk) count() int64 {
	if c.spans != nil {
		return int64(len(c.spans))
	}
	n := int64(bytes.Count(c.data, []byte{'\n'}))
	if len(c.data) > 0 && c.data[len(c.data)-1] != '\n' {
		n++
	}
	return n
}

func (pl *pipeline) chunk() *chunk {
	select {
	case c := <-pl.pool:
		return c
	default:
		return &chunk{}
	}
}

func (pl *pipeline) recycle(c *chunk) {
	if cap(c.data) > 4*pl.j.ChunkBytes {
		c.data = nil // one long record must not be paid for ever after
	}
	select {
	case pl.pool <- c:
	default:
	}
}
