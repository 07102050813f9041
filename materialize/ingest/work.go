package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"unicode/utf8"

	"rbt/internal/diag"
)

// shards are the open shard files of one worker.
type shards struct {
	pl     *pipeline
	worker int
	open   []*shardWriter
}

func newShards(pl *pipeline, worker int) *shards {
	return &shards{pl: pl, worker: worker, open: make([]*shardWriter, len(pl.p.tables))}
}

func (s *shards) flush(b *tableBuf) error {
	if b.rows == 0 {
		return nil
	}
	if s.pl.j.hooks.flush != nil {
		s.pl.j.hooks.flush(b)
	}
	w := s.open[b.t.ord]
	if w == nil {
		var err error
		w, err = createShard(filepath.Join(s.pl.w.dir, fmt.Sprintf("%s_w%d.shard", b.t.name, s.worker)), b.t)
		if err != nil {
			return err
		}
		s.open[b.t.ord] = w
	}
	return w.flush(b)
}

// close finishes every shard, but for those that are still to be numbered, and
// hands them over.
func (s *shards) close() error {
	s.pl.mu.Lock()
	defer s.pl.mu.Unlock()
	for i, w := range s.open {
		if w == nil {
			continue
		}
		s.open[i] = nil
		if w.t.numbered {
			s.pl.unranked = append(s.pl.unranked, w)
		} else if err := w.close(); err != nil {
			return err
		}
		s.pl.set.files[i] = append(s.pl.set.files[i], w.path)
		s.pl.set.rows[i] += w.rows
	}
	return nil
}

func (s *shards) abandon() (err error) {
	for _, w := range s.open {
		if w != nil {
			err = errors.Join(err, w.abandon())
		}
	}
	return err
}

func workerPanic(pos diag.Pos, r any) error {
	return diag.Errorf(diag.IngestWorker, pos, "a worker came to a halt: %v\n%s", r, debug.Stack()).
		WithHint("this is a defect of rbt; the record at this place brings it out")
}

// budget splits the memory limit: what a worker may buffer before it flushes,
// and how many records its map of repeats may know.
func (j *Job) budget(p *Program) (flushBytes, dedupSlots int) {
	types := 1
	for _, t := range p.types {
		if t.canDrop {
			types++
		}
	}
	perWorker := j.MemoryLimit / int64(j.Workers)
	// The rest is chunks, garbage and room for the encoding of a flush. Buffers of a
	// few MB are filled again and again; larger ones cost more in fresh memory than
	// fewer row groups save.
	flushBytes = int(min(max(perWorker/8, 1<<20), 8<<20))
	slots := perWorker / 8 / int64(types) / 64
	dedupSlots = firstDedupSlots
	for int64(dedupSlots*2) <= slots && dedupSlots < 1<<19 {
		dedupSlots *= 2
	}
	return flushBytes, dedupSlots
}

// work is one encoder: it takes chunks until there are none.
func (pl *pipeline) work(ctx context.Context, id int) (err error) {
	flushBytes, slots := pl.j.budget(pl.p)
	e := newEncoder(pl.p, slots)
	e.load = pl.j.LoadID
	sh := newShards(pl, id)
	defer func() {
		if err != nil {
			err = errors.Join(err, sh.abandon())
		}
	}()
	for {
		var c *chunk
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next, ok := <-pl.ch:
			if !ok {
				return pl.finishWorker(e, sh)
			}
			c = next
		}
		pl.watch[id].busy.Store(true)
		if err := pl.encodeChunk(ctx, e, c, id); err != nil {
			return err
		}
		pl.watch[id].busy.Store(false)
		pl.recycle(c)
		if err := flushLarge(e, sh, flushBytes); err != nil {
			return err
		}
		pl.report(e)
	}
}

func (pl *pipeline) finishWorker(e *encoder, sh *shards) error {
	for i, d := range e.dedup {
		if d != nil {
			d.flush(e.bufs[pl.p.types[i].reps.ord])
		}
	}
	for _, b := range e.bufs {
		if err := sh.flush(b); err != nil {
			return err
		}
	}
	if err := sh.close(); err != nil {
		return err
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.set.tally.add(&e.tally)
	return nil
}

// flushLarge writes the large buffers once all together are beyond the limit;
// small ones stay, so that shards have few row groups.
func flushLarge(e *encoder, sh *shards, limit int) error {
	total := 0
	sizes := make([]int, len(e.bufs))
	for i, b := range e.bufs {
		sizes[i] = b.size()
		total += sizes[i]
	}
	if total < limit {
		return nil
	}
	for i, b := range e.bufs {
		if sizes[i] > limit/(4*len(e.bufs)) {
			if err := sh.flush(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// tendEvery is after how many records the maps of repeats and the room in the
// buffers are looked after.
const tendEvery = 64

func (pl *pipeline) encodeChunk(ctx context.Context, e *encoder, c *chunk, id int) (err error) {
	line := c.line
	for i, b := range e.bufs {
		e.before[i] = b.rows
	}
	defer func() {
		if r := recover(); r != nil {
			err = workerPanic(diag.Pos{File: pl.j.Files[c.file].Name, Line: int(line)}, r)
			return
		}
		for i, b := range e.bufs {
			b.ran(c.first(pl.shift), e.before[i])
		}
	}()
	e.again = false // what it was read from is another chunk now
	valid := utf8.Valid(c.data)
	if c.spans != nil {
		for i := range c.spans {
			line = c.spans[i].line
			if stop, err := pl.one(ctx, e, c, &c.spans[i], valid, id, i); stop {
				return err
			}
		}
		return nil
	}
	var s span
	for n, at := 0, 0; at < len(c.data); n++ {
		end := bytes.IndexByte(c.data[at:], '\n')
		next := at + end + 1
		if end < 0 {
			next = len(c.data)
			end = next - at
		}
		off := c.base&(1<<pl.shift-1) + int64(at)
		s = span{start: at, end: at + end, pos: off, offset: off, length: int64(end), line: line, path: -1, index: -1}
		if stop, err := pl.one(ctx, e, c, &s, valid, id, n); stop {
			return err
		}
		line++
		at = next
	}
	return nil
}

// one encodes one record; stop is set where the chunk need not go on.
func (pl *pipeline) one(ctx context.Context, e *encoder, c *chunk, s *span, valid bool, id, n int) (stop bool, err error) {
	pl.watch[id].steps.Add(1)
	if n%tendEvery == 0 {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		for i, d := range e.dedup {
			if d != nil {
				if d.tend(e.bufs[pl.p.types[i].reps.ord]) {
					e.again = false
				}
			}
		}
		for _, b := range e.bufs {
			for _, c := range b.cols {
				c.reserve()
			}
		}
	}
	text := c.data[s.start:s.end]
	base := int64(c.file)<<pl.shift + s.pos
	if pl.j.hooks.record != nil {
		pl.j.hooks.record(id, base)
	}
	if c.spans == nil && blank(text) {
		e.tally.empty++
		return false, nil
	}
	if e.entry(text, valid, base, s.line) {
		pl.loaded[c.file].Add(1)
		return false, nil
	}
	pl.refused[c.file].Add(1)
	r := pl.reject(e, c, s, text, base)
	pl.gate.note(&r)
	r.append(e.bufs[pl.p.rejects.ord])
	return r.fatal, nil
}

func blank(b []byte) bool {
	return len(bytes.TrimLeft(b, " \t\r")) == 0
}

func (pl *pipeline) reject(e *encoder, c *chunk, s *span, text []byte, base int64) reject {
	f := &e.fault
	r := reject{pos: base, file: pl.j.Files[c.file].Name, line: s.line, offset: s.offset, length: s.length, path: "$",
		field: fieldPath(f.path), reason: f.reason, msg: f.msg, raw: bytes.TrimSuffix(text, []byte{'\r'})}
	if !c.plain {
		r.raw, r.path = c.raw[s.raw:s.rawEnd], ""
	}
	if s.path >= 0 {
		r.path = c.paths[s.path]
		if s.index >= 0 {
			r.path = fmt.Sprintf("%s[%d]", r.path, s.index)
		}
	}
	switch f.reason {
	case reasonMismatch, reasonRange, reasonNotFinite:
		r.fatal = pl.p.mismatch == mismatchFail
	case reasonUnknown:
		r.fatal = pl.p.unknown == unknownFail
	}
	r.fatal = r.fatal || pl.p.failBad
	r.raw = slices.Clone(r.raw[:min(len(r.raw), maxRaw)])
	e.fault = fault{}
	return r
}

func (pl *pipeline) report(e *encoder) {
	if pl.j.Progress == nil {
		return
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.records += e.tally.records - e.shown.records
	pl.rejects += e.tally.rejects - e.shown.rejects
	e.shown.records, e.shown.rejects = e.tally.records, e.tally.rejects
	pl.j.Progress(Progress{Phase: "encode", Files: pl.files.Load(), TotalFiles: int64(len(pl.j.Files)), Bytes: pl.read.Load(),
		TotalBytes: pl.total, Records: pl.records, Rejects: pl.rejects})
}
