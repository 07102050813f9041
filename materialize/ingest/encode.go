package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// encoder turns records into rows of the shard tables. It belongs to one
// worker; all its memory is reused from record to record.
type encoder struct {
	parser
	p    *Program
	bufs []*tableBuf // by table

	load int64 // ordinal of the load
	base int64 // position of b[0]
	line int64 // of the record being read

	slots  []slot
	refs   []refSlot
	lists  []listSlot
	seen   []uint64
	extras []extra
	enc    []byte // stack of texts to be hashed
	idx    []int32
	owners []*list // the lists that idx counts in
	text   []byte
	canon  []byte
	canons [][]byte
	vals   []*listValue
	nvals  int
	inMeta bool // below a metadata list

	dedup   []*dedupMap // by type; nil where nothing is dropped
	undo    []undoEntry // the touches of the record being read
	again   bool        // b once more, in the same chunk, is a repeat of all that is in it
	unequal bool        // something in the record equals nothing
	marks   []int       // rows of every table when the record began
	before  []int       // and when the chunk began
	pending tally       // of the record being read
	tally   tally
	shown   tally // what progress has told
}

// tally counts what an encoder has done.
type tally struct {
	records, rejects, empty, nulled int64
	occurrences                     []int64 // by type
}

func (t *tally) reset() {
	t.records, t.rejects, t.empty, t.nulled = 0, 0, 0, 0
	clear(t.occurrences)
}

func (t *tally) add(o *tally) {
	t.records += o.records
	t.rejects += o.rejects
	t.empty += o.empty
	t.nulled += o.nulled
	for i, n := range o.occurrences {
		t.occurrences[i] += n
	}
}

// refSlot is what a parent needs to know of a nested record: its content id,
// its key, and what metadata compares (the key, but for types that are never
// merged the content).
type refSlot struct {
	st             slotState
	cid, key, same [16]byte
}

type listSlot struct {
	st    slotState
	count int32
	sum   [16]byte
}

// frame is where an open object's members lie on the stacks.
type frame struct {
	slot, ref, list, extra int
	pos                    int64
}

func newEncoder(p *Program, dedupEntries int) *encoder {
	e := &encoder{p: p, marks: make([]int, len(p.tables)), before: make([]int, len(p.tables))}
	e.tally.occurrences = make([]int64, len(p.types))
	e.pending.occurrences = make([]int64, len(p.types))
	for _, t := range p.tables {
		e.bufs = append(e.bufs, newTableBuf(t))
	}
	for _, t := range p.types {
		var d *dedupMap
		if t.canDrop {
			d = newDedupMap(dedupEntries, t.hasMid)
		}
		e.dedup = append(e.dedup, d)
	}
	return e
}

// entry reads one top-level record, which is all of b. It reports whether it
// was loaded; if not, e.fault says why and nothing of it is left.
func (e *encoder) entry(b []byte, utf8OK bool, base, line int64) bool {
	if e.again && bytes.Equal(b, e.b) {
		e.repeat()
		return true
	}
	e.again, e.unequal = false, false
	e.reset(b, utf8OK)
	e.base, e.line = base, line
	e.slots, e.refs, e.lists, e.seen, e.extras = e.slots[:0], e.refs[:0], e.lists[:0], e.seen[:0], e.extras[:0]
	e.enc, e.idx, e.owners, e.text, e.canon, e.canons = e.enc[:0], e.idx[:0], e.owners[:0], e.text[:0], e.canon[:0], e.canons[:0]
	e.nvals, e.inMeta, e.undo = 0, false, e.undo[:0]
	for i, t := range e.bufs {
		e.marks[i] = t.rows
	}
	e.pending.reset()
	var out refSlot
	if e.root(&out) && e.end() {
		e.pending.records++
		e.tally.add(&e.pending)
		e.again = e.repeatable()
		return true
	}
	for i, t := range e.bufs {
		t.truncate(e.marks[i])
	}
	for i := len(e.undo) - 1; i >= 0; i-- {
		e.dedup[e.undo[i].typ].restore(&e.undo[i])
	}
	e.tally.rejects++
	return false
}

// repeatable tells whether the same text once more would do nothing but count:
// every record in it is known to a map of repeats, and equal to itself.
func (e *encoder) repeatable() bool {
	n := int64(0)
	for _, o := range e.pending.occurrences {
		n += o
	}
	return n == int64(len(e.undo)) && e.p.occ == nil && !e.unequal
}

// repeat counts the record before once more. It stands behind that one, so that
// every record in it is dropped.
func (e *encoder) repeat() {
	for i := range e.undo {
		u := &e.undo[i]
		e.dedup[u.typ].entries[u.at].count(u.entry)
	}
	e.tally.add(&e.pending)
}

func (e *encoder) root(out *refSlot) bool {
	c := e.space()
	if c != '{' {
		if c == 0 {
			return e.unexpected("a record")
		}
		at := e.i
		found := describeJSON(c)
		if !e.skip() || !e.end() {
			return false
		}
		e.fault = fault{reason: reasonMismatch, msg: found + " where a record is expected; a record is an object", at: at}
		return false
	}
	t := e.p.root
	if t == nil {
		var ok bool
		if t, ok = e.rootType(); !ok {
			return false
		}
	}
	return e.record(t, true, out)
}

// rootType looks ahead for the field that names the record's type.
func (e *encoder) rootType() (*recType, bool) {
	start := e.i
	rb := e.p.rootBy
	word, found, ok := e.find(rb.path)
	if !ok {
		return nil, false
	}
	e.i, e.depth = start, 0
	e.keys = e.keys[:0]
	if !found {
		e.fail(reasonUnknownRec, "%s, which names the record type, is missing or no string", strings.Join(rb.path, "."))
		return nil, false
	}
	t, ok := rb.cases[string(word)]
	if !ok {
		e.fail(reasonUnknownRec, "%s is %q, which root_by does not map", strings.Join(rb.path, "."), shown(word))
		return nil, false
	}
	return t, true
}

// find returns the string at a path of keys, stopping as soon as it has it.
func (e *encoder) find(path []string) (word []byte, found, ok bool) {
	e.i++
	if e.space() == '}' {
		return nil, false, true
	}
	for {
		if e.space() != '"' {
			return nil, false, e.unexpected("a key in double quotes")
		}
		key, ok := e.str()
		if !ok {
			return nil, false, false
		}
		if e.space() != ':' {
			return nil, false, e.unexpected("':'")
		}
		e.i++
		c := e.space()
		if string(key) == path[0] {
			switch {
			case len(path) == 1 && c == '"':
				word, ok := e.str()
				return word, true, ok
			case len(path) > 1 && c == '{':
				return e.find(path[1:])
			}
			return nil, false, true
		}
		if !e.skip() {
			return nil, false, e.under(string(key))
		}
		switch e.space() {
		case ',':
			e.i++
		case '}':
			return nil, false, true
		default:
			return nil, false, e.unexpected("',' or '}'")
		}
	}
}

func (e *encoder) open(s *shape, pos int64) frame {
	fr := frame{slot: len(e.slots), ref: len(e.refs), list: len(e.lists), extra: len(e.extras), pos: pos}
	for range s.fields {
		e.slots = append(e.slots, slot{})
	}
	for range s.refs {
		e.refs = append(e.refs, refSlot{})
	}
	for range s.lists {
		e.lists = append(e.lists, listSlot{})
	}
	return fr
}

func (e *encoder) close(fr *frame) {
	e.slots, e.refs, e.lists, e.extras = e.slots[:fr.slot], e.refs[:fr.ref], e.lists[:fr.list], e.extras[:fr.extra]
}

// record reads the object at e.i as a record of type t. out gets what the
// parent needs.
func (e *encoder) record(t *recType, entry bool, out *refSlot) bool {
	pos := e.base + int64(e.i)
	e.pending.occurrences[t.ord]++
	inMeta := e.inMeta
	e.inMeta = false
	fr := e.open(&t.shape, pos)
	owned := len(e.idx)
	idx, owners := e.idx, e.owners
	e.idx, e.owners = e.idx[owned:], e.owners[owned:]
	mark := childMarks{}
	mark.take(e, t.lists)
	if !e.object(&t.shape, &fr, t.node) || !e.complete(&t.shape, &fr) {
		return false
	}
	e.idx, e.owners, e.inMeta = idx, owners, inMeta
	cid, key, mid := e.identify(t, &fr, pos)
	entry = entry || t.entries
	if e.p.occ != nil {
		e.occurrence(t, &key, pos)
	}
	if t.canDrop && e.drop(t, &key, &mid, pos, entry) {
		mark.drop(e, t.lists)
	} else {
		e.emit(t, &fr, &cid, &key, &mid, entry)
	}
	out.st, out.cid, out.key, out.same = slotSet, cid, key, key
	if t.dedup == dedupNone {
		out.same = cid
	}
	e.close(&fr)
	return true
}

func (e *encoder) drop(t *recType, key, mid *[16]byte, pos int64, entry bool) bool {
	u, noted, dropped := e.dedup[t.ord].touch(key, mid, pos, entry)
	if noted {
		u.typ = int32(t.ord)
		e.undo = append(e.undo, u)
	}
	return dropped
}

func (e *encoder) occurrence(t *recType, key *[16]byte, pos int64) {
	b := e.bufs[e.p.occ.ord]
	b.cols[0].int32(int32(t.ord))
	b.cols[1].id(key)
	b.cols[2].int64(pos)
	b.cols[3].int64(e.line)
	b.rows++
}

func (e *encoder) emit(t *recType, fr *frame, cid, key, mid *[16]byte, entry bool) {
	b := e.bufs[t.table.ord]
	b.cols[colPos].int64(fr.pos)
	b.cols[colKey].id(key)
	b.cols[colLine].int64(e.line)
	b.cols[colEntry].bool(entry)
	next := colEntry + 1
	if t.hasCid {
		b.cols[next].id(cid)
		next++
	}
	if t.hasMid {
		b.cols[next].id(mid)
	}
	e.emitMembers(b, &t.shape, fr)
	b.rows++
}

func (e *encoder) emitMembers(b *tableBuf, s *shape, fr *frame) {
	for i, f := range s.fields {
		v, c := &e.slots[fr.slot+i], b.cols[f.colIdx]
		if f.typ.lists > 0 && v.st == slotSet {
			c.list(e.vals[v.n])
		} else {
			c.slot(v)
		}
	}
	for i, r := range s.refs {
		v := &e.refs[fr.ref+i]
		c := b.cols[r.colIdx]
		if v.st == slotSet {
			c.id(&v.key)
		} else {
			c.null()
		}
		if r.hashIdx >= 0 {
			if v.st == slotSet {
				b.cols[r.hashIdx].id(&v.same)
			} else {
				b.cols[r.hashIdx].null()
			}
		}
	}
	for i, l := range s.lists {
		v := &e.lists[fr.list+i]
		if l.countIdx >= 0 {
			if v.st == slotSet {
				b.cols[l.countIdx].int32(v.count)
			} else {
				b.cols[l.countIdx].null()
			}
		}
		if l.hashIdx >= 0 {
			if v.st == slotSet {
				b.cols[l.hashIdx].id(&v.sum)
			} else {
				b.cols[l.hashIdx].null()
			}
		}
	}
	if s.extra >= 0 {
		e.emitExtra(b.cols[s.extra], fr)
	}
}

func (e *encoder) emitExtra(c *columnBuf, fr *frame) {
	own := e.extras[fr.extra:]
	if len(own) == 0 {
		c.null()
		return
	}
	e.appendExtra(nil, fr) // sorts
	text := []byte{'{'}
	for i, x := range own {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendJSONString(text, x.key)
		text = append(text, ':')
		text = append(text, x.text...)
	}
	c.text(append(text, '}'))
}

// complete checks what must be there.
func (e *encoder) complete(s *shape, fr *frame) bool {
	for i, f := range s.fields {
		if f.required && e.slots[fr.slot+i].st != slotSet {
			return e.missing(f.name)
		}
	}
	for i, r := range s.refs {
		if r.required && e.refs[fr.ref+i].st != slotSet {
			return e.missing(r.name)
		}
	}
	for i, l := range s.lists {
		if l.required && e.lists[fr.list+i].st != slotSet {
			return e.missing(l.name)
		}
	}
	return true
}

func (e *encoder) missing(name string) bool {
	e.fail(reasonRequired, "%s is required, and missing or null", name)
	return e.under(name)
}

// capture keeps an unknown key with its value.
func (e *encoder) capture(key []byte, fr *frame, node string) bool {
	mark, cmark := len(e.text), len(e.canon)
	if !e.jsonText() {
		return e.under(string(key))
	}
	name := node + string(key)
	for i, l := range slices.Backward(e.owners) {
		name = fmt.Sprintf("%s[%d].%s", l.name, e.idx[i], name)
	}
	e.extras = append(e.extras, extra{key: name, text: e.text[mark:len(e.text):len(e.text)], canon: e.canon[cmark:len(e.canon):len(e.canon)]})
	return true
}

func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0')
			dst = strconv.AppendUint(append(dst, '0'+c>>4), uint64(c&15), 16)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
