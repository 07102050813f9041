package ingest

import "fmt"

// object reads the object at e.i: the members of a shape, or, below a path, a
// part of them.
func (e *encoder) object(s *shape, fr *frame, n *objNode) bool {
	return e.members(s, fr, n, "")
}

func (e *encoder) members(s *shape, fr *frame, n *objNode, at string) bool {
	if !e.enter() {
		return false
	}
	e.i++
	seen := len(e.seen)
	for range (len(n.entries) + 63) / 64 {
		e.seen = append(e.seen, 0)
	}
	unknown := e.newKeys()
	next := 0
	if e.space() == '}' {
		return e.leave(seen, unknown)
	}
	for {
		key, i, ok := e.key(n, next)
		if !ok {
			return false
		}
		if i >= 0 {
			next = i + 1
			if bit := uint64(1) << (i & 63); e.seen[seen+i>>6]&bit == 0 {
				e.seen[seen+i>>6] |= bit
			} else {
				return e.fail(reasonDuplicate, "the key %q stands twice in one object", n.entries[i].key)
			}
			if !e.value(s, fr, &n.entries[i], at) {
				return e.under(n.entries[i].key)
			}
		} else if !e.unknownKey(fr, key, &unknown, at) {
			return false
		}
		switch e.space() {
		case ',':
			e.i++
			if e.space() != '"' {
				return e.unexpected("a key in double quotes")
			}
		case '}':
			return e.leave(seen, unknown)
		default:
			return e.unexpected("',' or '}'")
		}
	}
}

func (e *encoder) leave(seen int, unknown keySet) bool {
	e.i++
	e.depth--
	e.seen = e.seen[:seen]
	unknown.done(&e.parser)
	return true
}

// key reads a key and its colon. i is the entry it names, -1 for an unknown
// key. Writers keep one order of keys, so the entry after the last is tried
// first.
func (e *encoder) key(n *objNode, next int) (key []byte, i int, ok bool) {
	if next < len(n.entries) {
		want := n.entries[next].key
		end := e.i + 1 + len(want)
		if end < len(e.b) && e.b[end] == '"' && e.b[e.i] == '"' && string(e.b[e.i+1:end]) == want {
			e.i = end + 1
			return nil, next, e.colon()
		}
	}
	if e.space() != '"' {
		return nil, 0, e.unexpected("a key in double quotes")
	}
	key, ok = e.str()
	if !ok {
		return nil, 0, false
	}
	i, known := n.lookup[string(key)]
	if !known {
		i = -1
	}
	return key, i, e.colon()
}

func (e *encoder) colon() bool {
	if e.i < len(e.b) && e.b[e.i] == ':' {
		e.i++
		return true
	}
	if e.space() != ':' {
		return e.unexpected("':'")
	}
	e.i++
	return true
}

func (e *encoder) unknownKey(fr *frame, key []byte, seen *keySet, at string) bool {
	if !seen.add(&e.parser, key) {
		return e.fail(reasonDuplicate, "the key %q stands twice in one object", key)
	}
	switch e.p.unknown {
	case unknownCapture:
		e.space()
		return e.capture(key, fr, at)
	case unknownQuarantine, unknownFail:
		e.fail(reasonUnknown, "the key %q is not declared", shown(key))
		return e.under(string(key))
	}
	if !e.skip() {
		return e.under(string(key))
	}
	return true
}

// value reads what one declared key holds.
func (e *encoder) value(s *shape, fr *frame, ent *objEntry, at string) bool {
	switch ent.kind {
	case entryField:
		f, v := s.fields[ent.i], &e.slots[fr.slot+ent.i]
		res := e.scalar(&f.typ, v, !f.meta)
		if res == good {
			return true
		}
		*v = slot{st: slotNull}
		return e.settle(res)
	case entryRef:
		return e.reference(s.refs[ent.i], fr.ref+ent.i)
	case entryList:
		return e.childList(s.lists[ent.i], fr, ent.i)
	case entrySub:
		switch e.space() {
		case '{':
			return e.members(s, fr, ent.sub, at+ent.key+".")
		case 'n':
			return e.word("null")
		}
		return e.settle(e.wrong("an object"))
	default:
		return e.skip()
	}
}

// settle decides on a value that does not fit: NULL where the policy says so.
func (e *encoder) settle(res verdict) bool {
	if res == mismatch && e.p.mismatch == mismatchNull {
		e.pending.nulled++
		e.fault = fault{}
		return true
	}
	return false
}

func (e *encoder) reference(r *ref, i int) bool {
	switch e.space() {
	case '{':
		var out refSlot
		ok := e.record(r.target, false, &out)
		e.refs[i] = out
		return ok
	case 'n':
		e.refs[i].st = slotNull
		return e.word("null")
	}
	e.refs[i].st = slotNull
	return e.settle(e.wrong("an object (" + r.target.name + ")"))
}

// childList reads an array of children, appending their rows as it goes.
func (e *encoder) childList(l *list, fr *frame, i int) bool {
	switch c := e.space(); c {
	case 'n':
		e.lists[fr.list+i].st = slotNull
		return e.word("null")
	case '[':
	default:
		e.lists[fr.list+i].st = slotNull
		return e.settle(e.wrong("an array"))
	}
	if !e.enter() {
		return false
	}
	e.i++
	inMeta := e.inMeta
	e.inMeta = e.inMeta || l.meta
	mark := len(e.enc)
	e.idx, e.owners = append(e.idx, 0), append(e.owners, l)
	top := len(e.idx) - 1
	n := int32(0)
	if e.space() != ']' {
		for {
			e.idx[top] = n
			if !e.element(l, fr.pos) {
				return e.under(fmt.Sprintf("[%d]", n))
			}
			n++
			c := e.space()
			if c == ']' {
				break
			}
			if c != ',' {
				return e.unexpected("',' or ']'")
			}
			e.i++
		}
	}
	e.i++
	e.depth--
	e.idx, e.owners = e.idx[:top], e.owners[:top]
	e.inMeta = inMeta
	e.lists[fr.list+i] = listSlot{st: slotSet, count: n, sum: sum128(e.enc[mark:])}
	e.enc = e.enc[:mark]
	return true
}

func (e *encoder) element(l *list, owner int64) bool {
	switch l.kind {
	case listScalar:
		return e.scalarElement(l, owner)
	case listLink:
		if e.space() != '{' {
			// A link cannot be NULL, so no policy can settle this.
			e.wrong("an object (" + l.target.name + ")")
			return false
		}
		var out refSlot
		if !e.record(l.target, false, &out) {
			return false
		}
		e.enc = append(e.enc, 'r')
		if e.inMeta {
			e.enc = append(e.enc, out.same[:]...)
		} else {
			e.enc = append(e.enc, out.cid[:]...)
		}
		b, at := e.listRow(l, owner)
		b.cols[at].id(&out.key)
		b.rows++
		return true
	}
	if e.space() != '{' {
		e.wrong("an object")
		return false
	}
	fr := e.open(l.row, owner)
	if !e.object(l.row, &fr, l.row.node) || !e.complete(l.row, &fr) {
		return false
	}
	e.enc = append(e.enc, '{')
	e.enc = e.appendParts(e.enc, l.row, l.row.ident, &fr, e.inMeta)
	b, _ := e.listRow(l, owner)
	e.emitMembers(b, l.row, &fr)
	b.rows++
	// Captured keys stay: they belong to the record.
	e.slots, e.refs, e.lists = e.slots[:fr.slot], e.refs[:fr.ref], e.lists[:fr.list]
	return true
}

func (e *encoder) scalarElement(l *list, owner int64) bool {
	var s slot
	res := e.scalar(&l.typ, &s, !l.meta)
	if res != good {
		if !e.settle(res) {
			return false
		}
		s = slot{st: slotNull}
	}
	if s.st == slotSet {
		e.enc = e.appendScalar(e.enc, &l.typ, &s, e.inMeta)
	} else {
		e.enc = append(e.enc, 'n')
	}
	b, at := e.listRow(l, owner)
	if l.typ.lists > 0 && s.st == slotSet {
		b.cols[at].list(e.vals[s.n])
	} else {
		b.cols[at].slot(&s)
	}
	b.rows++
	return true
}

// listRow begins a row of a list: whose it is and where it stands.
func (e *encoder) listRow(l *list, owner int64) (b *tableBuf, next int) {
	b = e.bufs[l.table.ord]
	b.cols[0].int64(owner)
	for i, n := range e.idx {
		b.cols[1+i].int32(n)
	}
	return b, 1 + len(e.idx)
}

// childMarks is where a record's own rows began in the tables of its lists, so
// that they can go when the record is dropped.
type childMarks struct {
	few [8]int
	n   int
}

func (m *childMarks) take(e *encoder, lists []*list) {
	for _, l := range lists {
		if m.n < len(m.few) {
			m.few[m.n] = e.bufs[l.table.ord].rows
		}
		m.n++
		if l.kind == listOwned {
			m.take(e, l.row.lists)
		}
	}
}

// drop takes the rows back. Where a nested record of the same type has put rows
// between them (or there are many lists) they stay: the merge joins children
// to survivors, so that leaving them only costs their space.
func (m *childMarks) drop(e *encoder, lists []*list) {
	i := 0
	m.dropFrom(e, lists, &i)
}

func (m *childMarks) dropFrom(e *encoder, lists []*list, i *int) {
	for _, l := range lists {
		if *i < len(m.few) && !l.nests {
			e.bufs[l.table.ord].truncate(m.few[*i])
		}
		*i++
		if l.kind == listOwned {
			m.dropFrom(e, l.row.lists, i)
		}
	}
}
