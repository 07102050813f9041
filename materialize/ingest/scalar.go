package ingest

import (
	"math"
)

type slotState uint8

const (
	slotMissing slotState = iota
	slotNull
	slotSet
)

// slot is one parsed scalar until its row is written. n holds numbers, bits of
// doubles, days and microseconds; hi the upper half of wide decimals; b texts
// and UUIDs. For json and lists, n is an index into the encoder's values.
type slot struct {
	st slotState
	n  uint64
	hi uint64
	b  []byte
}

// verdict of reading one value.
type verdict uint8

const (
	good     verdict = iota
	mismatch         // another type or out of range; the value was read to its end
	broken           // the text is no JSON, or the record cannot go on
)

// wrong notes a value of the wrong kind and reads over it.
func (e *encoder) wrong(want string) verdict {
	at := e.i
	found := describeJSON(e.space())
	if !e.skip() {
		return broken
	}
	e.fault = fault{reason: reasonMismatch, msg: found + " where " + want + " is declared", at: at}
	return mismatch
}

func describeJSON(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// unfit notes a value of the right kind that the type cannot hold.
func (e *encoder) unfit(at int, reason, format string, args ...any) verdict {
	e.fail(reason, format, args...)
	e.fault.at = at
	return mismatch
}

// maxShown bounds how much of a value a message repeats.
const maxShown = 60

func shown(b []byte) string {
	if len(b) > maxShown {
		return string(b[:maxShown]) + "…"
	}
	return string(b)
}

// scalar reads one value of a type into s. finite refuses NaN and infinities,
// which an identity cannot hold.
func (e *encoder) scalar(t *scalar, s *slot, finite bool) verdict {
	c := e.space()
	if c == 'n' {
		s.st = slotNull
		if !e.word("null") {
			return broken
		}
		return good
	}
	if t.lists > 0 {
		return e.listField(t, s, finite)
	}
	switch t.kind {
	case kText:
		if c != '"' {
			return e.wrong("varchar")
		}
		b, ok := e.str()
		if !ok {
			return broken
		}
		s.st, s.b = slotSet, b
		return good
	case kDouble, kFloat:
		return e.float(t, s, c, finite)
	case kInt, kUint, kDecimal:
		return e.exact(t, s, c)
	case kBool:
		return e.boolean(s, c)
	case kJSON:
		return e.json(s)
	default:
		return e.formatted(t, s, c)
	}
}

func (e *encoder) boolean(s *slot, c byte) verdict {
	switch c {
	case 't':
		if !e.word("true") {
			return broken
		}
		s.st, s.n = slotSet, 1
		return good
	case 'f':
		if !e.word("false") {
			return broken
		}
		s.st, s.n = slotSet, 0
		return good
	}
	return e.wrong("boolean")
}

func (e *encoder) float(t *scalar, s *slot, c byte, finite bool) verdict {
	at := e.i
	if c == '"' {
		// JSON has no other way to write these three.
		b, ok := e.str()
		if !ok {
			return broken
		}
		var f float64
		switch string(b) {
		case "NaN":
			f = math.NaN()
		case "Infinity":
			f = math.Inf(1)
		case "-Infinity":
			f = math.Inf(-1)
		default:
			return e.unfit(at, reasonMismatch, "a string where %s is declared", t.sql)
		}
		if finite {
			return e.unfit(at, reasonNotFinite, "%s cannot be part of an identity", b)
		}
		s.st, s.n = slotSet, math.Float64bits(f)
		return good
	}
	if c != '-' && (c < '0' || c > '9') {
		return e.wrong(t.sql)
	}
	n, ok := e.number()
	if !ok {
		return broken
	}
	var f float64
	var exact, over bool
	if t.kind == kFloat {
		var f32 float32
		f32, exact, over = n.single()
		f = float64(f32)
	} else {
		f, exact, over = n.double()
	}
	switch {
	case over:
		return e.unfit(at, reasonRange, "%s is beyond %s", shown(n.lit), t.sql)
	case !exact:
		return e.unfit(at, reasonRange, "%s cannot be held exactly by %s; declare decimal, varchar or json", shown(n.lit), t.sql)
	}
	s.st, s.n = slotSet, math.Float64bits(f)
	return good
}

// exact reads integers and decimals from their literal.
func (e *encoder) exact(t *scalar, s *slot, c byte) verdict {
	if c != '-' && (c < '0' || c > '9') {
		return e.wrong(t.sql)
	}
	at := e.i
	n, ok := e.number()
	if !ok {
		return broken
	}
	hi, lo, ok := uint64(0), n.mant, true
	if n.big || n.exp != 0 || t.scale != 0 {
		hi, lo, ok = n.unscaled(int(t.scale))
	}
	if !ok {
		return e.unfit(at, reasonRange, "%s cannot be held exactly by %s", shown(n.lit), t.sql)
	}
	switch t.kind {
	case kInt:
		limit := uint64(1) << (t.bits - 1)
		if hi != 0 || lo > limit || (lo == limit && !n.neg) {
			return e.unfit(at, reasonRange, "%s is beyond %s", shown(n.lit), t.sql)
		}
		if n.neg {
			lo = -lo
		}
	case kUint:
		if hi != 0 || (n.neg && lo != 0) || (t.bits < 64 && lo >= 1<<t.bits) {
			return e.unfit(at, reasonRange, "%s is beyond %s", shown(n.lit), t.sql)
		}
	default:
		if !fitsPrecision(hi, lo, int(t.prec)) {
			return e.unfit(at, reasonRange, "%s is beyond %s", shown(n.lit), t.sql)
		}
		if n.neg {
			hi, lo = negate128(hi, lo)
		}
	}
	s.st, s.n, s.hi = slotSet, lo, hi
	return good
}

func negate128(hi, lo uint64) (uint64, uint64) {
	hi, lo = ^hi, -lo
	if lo == 0 {
		hi++
	}
	return hi, lo
}

// formatted reads the types that JSON writes as a string of a fixed form.
func (e *encoder) formatted(t *scalar, s *slot, c byte) verdict {
	if c != '"' {
		return e.wrong(t.sql)
	}
	at := e.i
	b, ok := e.str()
	if !ok {
		return broken
	}
	var v int64
	rest := b
	switch t.kind {
	case kDate:
		v, rest, ok = parseDate(b)
	case kTime:
		v, rest, ok = parseClock(b)
	case kTimestamp, kTimestampTZ:
		v, ok = parseTimestamp(b, t.kind == kTimestampTZ)
		rest = nil
	case kUUID:
		mark := len(e.text)
		e.text = append(e.text, make([]byte, 16)...)
		s.b = e.text[mark : mark+16 : mark+16]
		ok = parseUUID(b, (*[16]byte)(s.b))
		rest = nil
	}
	if !ok || len(rest) > 0 {
		return e.unfit(at, reasonMismatch, "%q is no %s; the form is %s", shown(b), t.sql, formOf(t.kind))
	}
	s.st, s.n = slotSet, uint64(v)
	return good
}

func formOf(k kind) string {
	switch k {
	case kDate:
		return "2026-01-31"
	case kTime:
		return "23:59:59.999999"
	case kTimestamp:
		return "2026-01-31T23:59:59.999999 without an offset"
	case kTimestampTZ:
		return "2026-01-31T23:59:59.999999Z or with an offset such as +02:00"
	default:
		return "01234567-89ab-cdef-0123-456789abcdef"
	}
}

// json reads any value, keeps its text without white space, and the canonical
// form for identities.
func (e *encoder) json(s *slot) verdict {
	mark, cmark := len(e.text), len(e.canon)
	if !e.jsonText() {
		return broken
	}
	s.st, s.b = slotSet, e.text[mark:len(e.text):len(e.text)]
	s.n = uint64(len(e.canons))
	e.canons = append(e.canons, e.canon[cmark:len(e.canon):len(e.canon)])
	return good
}

// listValue is one parsed list of scalars: Parquet levels, PLAIN values, and
// the canonical form.
type listValue struct {
	def, rep, data, enc []byte
}

func (e *encoder) listField(t *scalar, s *slot, finite bool) verdict {
	if e.nvals == len(e.vals) {
		e.vals = append(e.vals, new(listValue))
	}
	v := e.vals[e.nvals]
	v.def, v.rep, v.data, v.enc = v.def[:0], v.rep[:0], v.data[:0], v.enc[:0]
	s.n = uint64(e.nvals)
	e.nvals++
	res := e.listLevel(t, v, 0, 0, finite)
	if res == good {
		s.st = slotSet
	}
	return res
}

// listLevel reads the array at depth of a list type. first is the repetition
// level of its first entry.
func (e *encoder) listLevel(t *scalar, v *listValue, depth int, first byte, finite bool) verdict {
	if e.space() != '[' {
		return e.wrong(t.SQL())
	}
	if !e.enter() {
		return broken
	}
	at := e.i
	e.i++
	v.enc = append(v.enc, '[')
	rep := first
	for n := 0; ; n++ {
		c := e.space()
		if n == 0 && c == ']' {
			v.def, v.rep = append(v.def, byte(2*depth+1)), append(v.rep, first)
			break
		}
		if res := e.listElement(t, v, depth, rep, finite, c); res != good {
			if res == mismatch {
				f := e.fault
				e.i = at
				e.depth--
				if !e.skip() {
					return broken
				}
				e.fault = f
			}
			return res
		}
		rep = byte(depth + 1)
		switch e.space() {
		case ',':
			e.i++
			continue
		case ']':
		default:
			e.unexpected("',' or ']'")
			return broken
		}
		break
	}
	e.i++
	e.depth--
	v.enc = append(v.enc, ']')
	return good
}

func (e *encoder) listElement(t *scalar, v *listValue, depth int, rep byte, finite bool, c byte) verdict {
	inner := depth + 1
	if inner < int(t.lists) && c != 'n' {
		return e.listLevel(t, v, inner, rep, finite)
	}
	var s slot
	el := t.elem()
	if res := e.scalar(&el, &s, finite); res != good {
		return res
	}
	v.rep = append(v.rep, rep)
	if s.st == slotNull {
		v.def = append(v.def, byte(2*inner))
		v.enc = append(v.enc, 'n')
		return good
	}
	v.def = append(v.def, byte(2*inner+1))
	v.data = appendPlain(v.data, &el, plainWidth(el), &s)
	v.enc = e.appendScalar(v.enc, &el, &s, !finite)
	return good
}
