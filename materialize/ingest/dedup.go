package ingest

import "encoding/binary"

// dedupMap remembers the records that one worker has written, so that exact
// repeats need not be written again. It is capped and may forget: the merge is
// right without it. A repeat is dropped only where the remembered position is
// the smaller one.
//
// Most look-ups find nothing, so the table that they go through holds a piece of
// the hash and a number only, and stays in the caches; entries lie in the order
// in which they came.
type dedupMap struct {
	index   []uint64 // 0: free; else a piece of the hash above, the entry's number plus one below
	entries []dedupEntry
	mids    [][16]byte // of the entries; nil where metadata is not compared
	hasMid  bool
	max     int // of index
}

type dedupEntry struct {
	key [16]byte
	pos int64
	// repeats that were dropped since the record was written, times two; plus one
	// where one of them was a top-level record
	reps int64
}

// undoEntry is one touch: what takes it back, and what counts the same record
// once more.
type undoEntry struct {
	typ   int32
	at    int32 // in entries
	slot  int32 // in index, of an entry that the touch made; -1 of an older one
	entry bool  // a top-level record
	pos   int64 // what the older one was
	reps  int64
}

// firstDedupSlots is where a map starts; it doubles while it fills.
const firstDedupSlots = 1 << 10

func newDedupMap(maxSlots int, hasMid bool) *dedupMap {
	d := &dedupMap{max: maxSlots, hasMid: hasMid}
	d.size(min(firstDedupSlots, maxSlots))
	return d
}

// most is how many entries a table of so many slots takes.
func most(slots int) int { return slots / 8 * 7 }

// size gives the map another number of slots.
func (d *dedupMap) size(slots int) {
	old := d.index
	d.index = make([]uint64, slots)
	d.entries = append(make([]dedupEntry, 0, most(slots)), d.entries...)
	if d.hasMid {
		d.mids = append(make([][16]byte, 0, most(slots)), d.mids...)
	}
	mask := uint64(slots - 1)
	for _, w := range old {
		if w == 0 {
			continue
		}
		i := w >> 32 & mask
		for d.index[i] != 0 {
			i = (i + 1) & mask
		}
		d.index[i] = w
	}
}

// find gives the entry of a record, or -1 and the slot where it would stand.
func (d *dedupMap) find(key, mid *[16]byte) (at, slot int, piece uint64) {
	mask := uint64(len(d.index) - 1)
	h := binary.LittleEndian.Uint64(key[:8])
	if d.hasMid {
		h ^= binary.LittleEndian.Uint64(mid[:8])
	}
	piece = h >> 32
	for i := piece & mask; ; i = (i + 1) & mask {
		w := d.index[i]
		if w == 0 {
			return -1, int(i), piece
		}
		if w>>32 != piece {
			continue
		}
		n := int(uint32(w)) - 1
		if d.entries[n].key == *key && (!d.hasMid || d.mids[n] == *mid) {
			return n, int(i), piece
		}
	}
}

// touch notes one record and tells whether it may be dropped. noted is false
// where there is no room.
func (d *dedupMap) touch(key, mid *[16]byte, pos int64, entry bool) (u undoEntry, noted, dropped bool) {
	at, slot, piece := d.find(key, mid)
	if at < 0 {
		if len(d.entries) >= most(len(d.index)) {
			return u, false, false
		}
		at = len(d.entries)
		d.index[slot] = piece<<32 | uint64(at+1)
		d.entries = append(d.entries, dedupEntry{key: *key, pos: pos})
		if d.hasMid {
			d.mids = append(d.mids, *mid)
		}
		return undoEntry{at: int32(at), slot: int32(slot), entry: entry}, true, false
	}
	s := &d.entries[at]
	u = undoEntry{at: int32(at), slot: -1, entry: entry, pos: s.pos, reps: s.reps}
	if s.pos < pos {
		s.count(entry)
		return u, true, true
	}
	s.pos = pos
	return u, true, false
}

// count notes a repeat that was dropped.
func (s *dedupEntry) count(entry bool) {
	s.reps += 2
	if entry {
		s.reps |= 1
	}
}

// restore takes a touch back. The last of them comes first, so that an entry
// that goes is the last one.
func (d *dedupMap) restore(u *undoEntry) {
	if u.slot < 0 {
		d.entries[u.at].pos, d.entries[u.at].reps = u.pos, u.reps
		return
	}
	d.index[u.slot] = 0
	d.entries = d.entries[:u.at]
	if d.hasMid {
		d.mids = d.mids[:u.at]
	}
}

// tend makes room between records: it grows the map, or writes what it has
// counted and forgets everything, which it reports.
func (d *dedupMap) tend(reps *tableBuf) (forgot bool) {
	if len(d.entries) < len(d.index)/4*3 {
		return false
	}
	if len(d.index) < d.max {
		d.size(2 * len(d.index))
		return false
	}
	d.flush(reps)
	clear(d.index)
	d.entries, d.mids = d.entries[:0], d.mids[:0]
	return true
}

// flush writes the repeats that were dropped and sets their counts to zero.
func (d *dedupMap) flush(reps *tableBuf) {
	for i := range d.entries {
		s := &d.entries[i]
		if s.reps == 0 {
			continue
		}
		reps.cols[0].id(&s.key)
		reps.cols[1].int64(s.reps >> 1)
		reps.cols[2].bool(s.reps&1 == 1)
		reps.rows++
		s.reps = 0
	}
}
