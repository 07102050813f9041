package ingest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// Identities are SHA-256 over a canonical encoding, cut to 128 bits. The
// encoding is injective: every value starts with a tag and is either of fixed
// size, prefixed by its length, or closed by a byte that starts no value. It is
// part of the format on disk: a stored id must come out again for ever.

func sum128(b []byte) (id [16]byte) {
	h := sha256.Sum256(b)
	copy(id[:], h[:])
	return id
}

// appendName writes a name with its length. A length of 0 closes a list of
// members, so no name is empty.
func appendName(dst []byte, name string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	return append(dst, name...)
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// positionKey is the key of a record that is never merged: its place, and the
// load, since the places of every load begin anew.
func positionKey(load, pos int64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], uint64(load))
	binary.BigEndian.PutUint64(id[8:], uint64(pos))
	return id
}

// appendScalar writes the canonical form of a value. compared is for metadata:
// there 0.0 equals -0.0 and NaN equals nothing, not even itself.
func (e *encoder) appendScalar(dst []byte, t *scalar, s *slot, compared bool) []byte {
	if t.lists > 0 {
		dst = append(dst, 'L')
		return append(dst, e.vals[s.n].enc...)
	}
	switch t.kind {
	case kBool:
		return append(dst, 'b', byte(s.n))
	case kInt:
		dst = append(dst, 'i')
		return binary.BigEndian.AppendUint64(dst, s.n)
	case kUint:
		// One value, one form, whatever the width: above 63 bits another tag.
		tag := byte('i')
		if s.n >= 1<<63 {
			tag = 'I'
		}
		dst = append(dst, tag)
		return binary.BigEndian.AppendUint64(dst, s.n)
	case kFloat, kDouble:
		f := math.Float64frombits(s.n)
		if compared && f == 0 {
			f = 0
		}
		if math.IsNaN(f) && compared {
			// The place is enough: no two objects end at one.
			e.unequal = true
			dst = append(dst, 'N')
			return binary.BigEndian.AppendUint64(dst, uint64(e.base+int64(e.i)))
		}
		dst = append(dst, 'f')
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	case kDecimal:
		return appendDecimal(dst, s.hi, s.n, int(t.scale))
	case kText:
		dst = append(dst, 's')
		return appendBytes(dst, s.b)
	case kDate:
		dst = append(dst, 'D')
		return binary.BigEndian.AppendUint64(dst, s.n)
	case kTime:
		dst = append(dst, 'c')
		return binary.BigEndian.AppendUint64(dst, s.n)
	case kTimestamp:
		dst = append(dst, 't')
		return binary.BigEndian.AppendUint64(dst, s.n)
	case kTimestampTZ:
		dst = append(dst, 'z')
		return binary.BigEndian.AppendUint64(dst, s.n)
	case kUUID:
		dst = append(dst, 'u')
		return append(dst, s.b[:16]...)
	default:
		dst = append(dst, 'j')
		return appendBytes(dst, e.canons[s.n])
	}
}

// appendDecimal writes a decimal without its trailing zeros, so that a wider
// declaration keeps ids.
func appendDecimal(dst []byte, hi, lo uint64, scale int) []byte {
	neg := hi>>63 == 1
	if neg {
		hi, lo = negate128(hi, lo)
	}
	for scale > 0 && hi != 0 {
		q, r := divMod10(hi, lo)
		if r != 0 {
			break
		}
		hi, lo = q[0], q[1]
		scale--
	}
	for ; scale > 0 && hi == 0 && lo != 0 && lo%10 == 0; scale-- {
		lo /= 10
	}
	if hi|lo == 0 {
		scale = 0
	}
	sign := byte('d')
	if neg {
		sign = 'e'
	}
	dst = append(dst, sign, byte(scale))
	dst = binary.BigEndian.AppendUint64(dst, hi)
	return binary.BigEndian.AppendUint64(dst, lo)
}

func divMod10(hi, lo uint64) (q [2]uint64, r uint64) {
	q[0], r = hi/10, hi%10
	// The remainder is below 10, so two 32-bit steps cannot overflow.
	upper := r<<32 | lo>>32
	qu := upper / 10
	lower := (upper%10)<<32 | lo&0xffffffff
	q[1] = qu<<32 | lower/10
	return q, lower % 10
}

// appendParts writes the members that are there, in the order of their names.
func (e *encoder) appendParts(dst []byte, s *shape, parts []part, fr *frame, compared bool) []byte {
	for _, p := range parts {
		switch p.what {
		case partField:
			f, v := s.fields[p.i], &e.slots[fr.slot+p.i]
			if v.st != slotSet {
				continue
			}
			dst = append(dst, f.prefix...)
			dst = e.appendScalar(dst, &f.typ, v, compared)
		case partRef:
			r, v := s.refs[p.i], &e.refs[fr.ref+p.i]
			if v.st != slotSet {
				continue
			}
			dst = append(dst, r.prefix...)
			dst = append(dst, 'r')
			if compared {
				dst = append(dst, v.same[:]...)
			} else {
				dst = append(dst, v.cid[:]...)
			}
		case partList:
			l, v := s.lists[p.i], &e.lists[fr.list+p.i]
			if v.st != slotSet {
				continue
			}
			dst = append(dst, l.prefix...)
			dst = append(dst, 'l')
			dst = append(dst, v.sum[:]...)
		}
	}
	return append(dst, 0)
}

// appendValueParts writes what a by_value type compares: its own columns,
// references by the key of their target, lists by whether they are there.
func (e *encoder) appendValueParts(dst []byte, s *shape, parts []part, fr *frame) []byte {
	for _, p := range parts {
		switch p.what {
		case partField:
			f, v := s.fields[p.i], &e.slots[fr.slot+p.i]
			if v.st == slotSet {
				dst = append(dst, f.prefix...)
				dst = e.appendScalar(dst, &f.typ, v, false)
			}
		case partRef:
			r, v := s.refs[p.i], &e.refs[fr.ref+p.i]
			if v.st == slotSet {
				dst = append(dst, r.prefix...)
				dst = append(dst, 'k')
				dst = append(dst, v.key[:]...)
			}
		case partList:
			l, v := s.lists[p.i], &e.lists[fr.list+p.i]
			if v.st == slotSet {
				dst = append(dst, l.prefix...)
				dst = append(dst, 'p')
			}
		}
	}
	return append(dst, 0)
}

// identify computes the content id, the key and the compared metadata of a
// record whose members have been read.
func (e *encoder) identify(t *recType, fr *frame, pos int64) (cid, key, mid [16]byte) {
	mark := len(e.enc)
	e.enc = append(e.enc, t.head...)
	e.enc = e.appendParts(e.enc, &t.shape, t.ident, fr, false)
	cid = sum128(e.enc[mark:])
	switch t.dedup {
	case dedupContent:
		key = cid
	case dedupNone:
		key = positionKey(e.load, pos)
	case dedupValue:
		e.enc = append(e.enc[:mark], 'V')
		e.enc = append(e.enc, t.head...)
		e.enc = e.appendValueParts(e.enc, &t.shape, t.ident, fr)
		e.enc = e.appendValueParts(e.enc, &t.shape, t.meta, fr)
		e.enc = e.appendExtra(e.enc, fr)
		key = sum128(e.enc[mark:])
	}
	if t.hasMid {
		e.enc = append(e.enc[:mark], 'M')
		e.enc = e.appendParts(e.enc, &t.shape, t.meta, fr, true)
		e.enc = e.appendExtra(e.enc, fr)
		mid = sum128(e.enc[mark:])
	}
	e.enc = e.enc[:mark]
	return cid, key, mid
}

// extra is one unknown key that is captured.
type extra struct {
	key         string
	text, canon []byte
}

func (e *encoder) appendExtra(dst []byte, fr *frame) []byte {
	own := e.extras[fr.extra:]
	slices.SortFunc(own, func(a, b extra) int { return cmp.Compare(a.key, b.key) })
	for _, x := range own {
		dst = appendName(append(dst, 'x'), x.key)
		dst = appendBytes(dst, x.canon)
	}
	return dst
}

// jsonText reads any value, appending its text without white space to e.text
// and its canonical form to e.canon: keys sorted, strings decoded, numbers
// normalised.
func (e *encoder) jsonText() bool {
	switch c := e.space(); c {
	case '{':
		return e.jsonObject()
	case '[':
		return e.jsonArray()
	case '"':
		start := e.i
		s, ok := e.str()
		if !ok {
			return false
		}
		e.text = append(e.text, e.b[start:e.i]...)
		e.canon = appendBytes(append(e.canon, 's'), s)
		return true
	case 't', 'f', 'n':
		w := map[byte]string{'t': "true", 'f': "false", 'n': "null"}[c]
		if !e.word(w) {
			return false
		}
		e.text = append(e.text, w...)
		e.canon = append(e.canon, c)
		return true
	default:
		if c != '-' && (c < '0' || c > '9') {
			return e.unexpected("a value")
		}
		n, ok := e.number()
		if !ok {
			return false
		}
		e.text = append(e.text, n.lit...)
		e.canon = append(appendCanonicalNumber(append(e.canon, 'd'), n.lit), 0)
		return true
	}
}

func (e *encoder) jsonArray() bool {
	if !e.enter() {
		return false
	}
	e.i++
	e.text, e.canon = append(e.text, '['), append(e.canon, '[')
	for n := 0; ; n++ {
		if c := e.space(); n == 0 && c == ']' {
			break
		}
		if !e.jsonText() {
			return false
		}
		c := e.space()
		if c == ']' {
			break
		}
		if c != ',' {
			return e.unexpected("',' or ']'")
		}
		e.i++
		e.text = append(e.text, ',')
	}
	e.i++
	e.depth--
	e.text, e.canon = append(e.text, ']'), append(e.canon, ']')
	return true
}

// member is one key of an object while its canonical order is found.
type member struct {
	key   []byte
	canon []byte
}

func (e *encoder) jsonObject() bool {
	if !e.enter() {
		return false
	}
	e.i++
	e.text, e.canon = append(e.text, '{'), append(e.canon, '{')
	mark := len(e.canon)
	var members []member
	for n := 0; ; n++ {
		c := e.space()
		if n == 0 && c == '}' {
			break
		}
		if c != '"' {
			return e.unexpected("a key in double quotes")
		}
		start := e.i
		key, ok := e.str()
		if !ok {
			return false
		}
		e.text = append(append(e.text, e.b[start:e.i]...), ':')
		if e.space() != ':' {
			return e.unexpected("':'")
		}
		e.i++
		at := len(e.canon)
		if !e.jsonText() {
			return e.under(string(key))
		}
		members = append(members, member{key, e.canon[at:]})
		if c = e.space(); c == '}' {
			break
		}
		if c != ',' {
			return e.unexpected("',' or '}'")
		}
		e.i++
		e.text = append(e.text, ',')
	}
	e.i++
	e.depth--
	e.text = append(e.text, '}')
	return e.sortMembers(mark, members)
}

func (e *encoder) sortMembers(mark int, members []member) bool {
	if len(members) == 0 {
		e.canon = append(e.canon, '}')
		return true
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	var sorted []byte
	for i, m := range members {
		if i > 0 && bytes.Equal(m.key, members[i-1].key) {
			return e.fail(reasonDuplicate, "the key %q stands twice in one object", m.key)
		}
		sorted = appendBytes(append(sorted, 's'), m.key)
		sorted = append(sorted, m.canon...)
	}
	e.canon = append(append(e.canon[:mark], sorted...), '}')
	return true
}
