package ingest

import "encoding/binary"

// dedupMap remembers the records that one worker has written, so that exact
// repeats need not be written again. It is capped and may forget: the merge is
// right without it. A repeat is dropped only where the remembered position is
// the smaller one.
type dedupMap struct {
	slots []dedupEntry
	used  int
	max   int // slots at most
}

type dedupEntry struct {
	key, mid [16]byte
	pos      int64
	n        int32 // repeats dropped since the record was written
	entry    bool  // one of them was a top-level record
	set      bool
}

// undoEntry takes one touch back.
type undoEntry struct {
	typ     int
	at      int
	touched bool
	old     dedupEntry
}

// firstDedupSlots is where a map starts; it doubles while it fills.
const firstDedupSlots = 1 << 10

func newDedupMap(maxSlots int) *dedupMap {
	return &dedupMap{slots: make([]dedupEntry, min(firstDedupSlots, maxSlots)), max: maxSlots}
}

func (d *dedupMap) find(key, mid *[16]byte) int {
	mask := len(d.slots) - 1
	h := binary.LittleEndian.Uint64(key[:8]) ^ binary.LittleEndian.Uint64(mid[:8])
	for i := int(h) & mask; ; i = (i + 1) & mask {
		s := &d.slots[i]
		if !s.set || (s.key == *key && s.mid == *mid) {
			return i
		}
	}
}

// touch notes one record and tells whether it may be dropped.
func (d *dedupMap) touch(key, mid *[16]byte, pos int64, entry bool) (undoEntry, bool) {
	at := d.find(key, mid)
	s := &d.slots[at]
	u := undoEntry{at: at, touched: true, old: *s}
	switch {
	case s.set && s.pos < pos:
		s.n++
		s.entry = s.entry || entry
		return u, true
	case s.set:
		s.pos = pos
		return u, false
	case d.used >= len(d.slots)/8*7:
		return undoEntry{}, false
	}
	*s = dedupEntry{key: *key, mid: *mid, pos: pos, set: true}
	d.used++
	return u, false
}

func (d *dedupMap) restore(u undoEntry) {
	if d.slots[u.at].set && !u.old.set {
		d.used--
	}
	d.slots[u.at] = u.old
}

// tend makes room between records: it grows the map, or writes what it has
// counted and forgets everything.
func (d *dedupMap) tend(reps *tableBuf) {
	if d.used < len(d.slots)/4*3 {
		return
	}
	if len(d.slots) >= d.max {
		d.flush(reps)
		clear(d.slots)
		d.used = 0
		return
	}
	old := d.slots
	d.slots = make([]dedupEntry, 2*len(old))
	for i := range old {
		if old[i].set {
			d.slots[d.find(&old[i].key, &old[i].mid)] = old[i]
		}
	}
}

// flush writes the repeats that were dropped and sets their counts to zero.
func (d *dedupMap) flush(reps *tableBuf) {
	for i := range d.slots {
		s := &d.slots[i]
		if s.n == 0 {
			continue
		}
		reps.cols[0].id(&s.key)
		reps.cols[1].int64(int64(s.n))
		reps.cols[2].bool(s.entry)
		reps.rows++
		s.n, s.entry = 0, false
	}
}
