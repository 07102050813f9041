package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// InferOptions say what a declaration is inferred from.
type InferOptions struct {
	// Name is what the root record is called; "" means record.
	Name string
	// Format, Compression and RecordPath as in Input; "" is auto.
	Format, Compression, RecordPath string
	// MaxRecords bounds the sample; 0 means 100,000. It is spread over the files.
	MaxRecords int64
}

// Inferred is a declaration that takes every sampled record, with what each
// guess stands on. Its Spec compiles. Comments are by place in the declaration
// (record.member, record.child.member).
type Inferred struct {
	Spec     Spec
	Comments map[string]string
	Records  int64 // sampled
	Skipped  int64 // sampled, but no JSON objects
	Files    int
	Partial  bool // there are records beyond the sample
	Name     string
	Notes    []string
}

// defaultSample is enough to see rare fields and little enough to wait for.
const defaultSample = 100_000

// Infer reads a sample of the files and proposes a declaration. It guesses
// nothing that a sampled value contradicts: where values disagree the type is
// json or varchar, and the comment says so. The error is that of reading the
// files; files without any record are an error.
func Infer(ctx context.Context, files []File, opt InferOptions) (*Inferred, error) {
	if opt.MaxRecords <= 0 {
		opt.MaxRecords = defaultSample
	}
	if opt.Name == "" || columnName(opt.Name) != opt.Name || strings.HasPrefix(opt.Name, "_") {
		opt.Name = "record"
	}
	steps, err := parseRecordPath(opt.RecordPath)
	if err != nil {
		return nil, fmt.Errorf("infer: record path: %w", err)
	}
	p := &Program{format: orAuto(opt.Format), compression: orAuto(opt.Compression), recordPath: steps, root: &recType{shape: shape{node: newNode()}}}
	in := &Inferred{Comments: map[string]string{}, Files: len(files), Name: opt.Name}
	s := &sampler{in: in, root: newSeen()}
	each := max(100, opt.MaxRecords/int64(max(1, len(files))))
	for i, f := range files {
		if in.Records >= opt.MaxRecords {
			in.Partial = true
			break
		}
		if err := s.file(ctx, p, f, i, min(each, opt.MaxRecords-in.Records)); err != nil {
			return nil, err
		}
	}
	if in.Records == 0 {
		return nil, fmt.Errorf("infer: no record in %d files (%d values are no JSON objects)", len(files), in.Skipped)
	}
	b := newBuilder(in, opt)
	b.build(s.root)
	return in, nil
}

func orAuto(s string) string {
	if s == "" {
		return "auto"
	}
	return s
}

// sampler looks at values and counts what it sees.
type sampler struct {
	parser
	in    *Inferred
	root  *seen
	cells bool // strings are cells of a CSV file, which may spell numbers
}

func (s *sampler) file(ctx context.Context, p *Program, f File, i int, most int64) error {
	bufs := newReadBuffers()
	defer bufs.close()
	in, err := openInput(f, p.compression, false, bufs)
	if err != nil {
		return err
	}
	defer in.close()
	cur, err := openCursor(in, 0, positionShift(1), 1<<20, p)
	if err != nil {
		return err
	}
	_, s.cells = cur.(*csvCursor)
	taken := int64(0)
	for c := (&chunk{}); ; {
		err := cur.next(ctx, c)
		s.in.Skipped += int64(len(cur.broken()))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, text := range c.texts() {
			if blank(text) {
				continue
			}
			if taken >= most {
				s.in.Partial = true
				return nil
			}
			if s.record(text) {
				s.in.Records++
				taken++
			} else {
				s.in.Skipped++
			}
		}
	}
}

// texts are the records of a chunk.
func (c *chunk) texts() [][]byte {
	if c.spans == nil {
		return bytes.Split(bytes.TrimSuffix(c.data, []byte{'\n'}), []byte{'\n'})
	}
	out := make([][]byte, len(c.spans))
	for i, s := range c.spans {
		out[i] = c.data[s.start:s.end]
	}
	return out
}

func (s *sampler) record(text []byte) bool {
	s.reset(text, utf8.Valid(text))
	if !s.skip() || !s.end() || bytes.TrimLeft(text, " \t\r\n")[0] != '{' {
		return false
	}
	s.reset(text, utf8.Valid(text))
	s.look(s.root)
	return true
}

// seen is what was met at one place of the records.
type seen struct {
	n, nulls  int64
	bools     int64
	ints      int64 // numbers that are integers
	fracs     int64
	strings   int64
	objects   int64
	arrays    int64
	elements  int64
	bigint    bool // all integers fit
	exact     bool // all numbers are doubles to the digit
	digits    int  // before the point, at most
	scale     int
	wide      bool // a number that no decimal holds
	forms     map[kind]bool
	keys      []string
	byKey     map[string]*seen
	elem      *seen
	distinct  map[[16]byte]struct{} // contents of objects, up to maxDistinct
	saturated bool
	cells     bool // of a CSV file: all is text, whatever it spells
}

// maxDistinct bounds how many contents are told apart at one place.
const maxDistinct = 1 << 16

func newSeen() *seen {
	return &seen{bigint: true, exact: true, byKey: map[string]*seen{}, distinct: map[[16]byte]struct{}{},
		forms: map[kind]bool{kDate: true, kTimestamp: true, kTimestampTZ: true, kUUID: true, kTime: true}}
}

// look takes in the value at s.i, which is known to be valid.
func (s *sampler) look(at *seen) {
	at.n++
	switch s.space() {
	case '{':
		s.lookObject(at)
	case '[':
		at.arrays++
		if at.elem == nil {
			at.elem = newSeen()
		}
		s.i++
		for s.space() != ']' {
			at.elements++
			s.look(at.elem)
			if s.space() == ',' {
				s.i++
			}
		}
		s.i++
	case '"':
		text, _ := s.str()
		s.lookText(at, text)
	case 't':
		s.word("true")
		at.bools++
	case 'f':
		s.word("false")
		at.bools++
	case 'n':
		s.word("null")
		at.nulls++
	default:
		n, _ := s.number()
		at.number(n)
	}
}

func (s *sampler) lookObject(at *seen) {
	at.objects++
	start := s.i
	s.i++
	for s.space() != '}' {
		key, _ := s.str()
		s.space()
		s.i++
		child, ok := at.byKey[string(key)]
		if !ok {
			child = newSeen()
			at.byKey[string(key)] = child
			at.keys = append(at.keys, string(key))
		}
		s.look(child)
		if s.space() == ',' {
			s.i++
		}
	}
	s.i++
	if len(at.distinct) < maxDistinct {
		at.distinct[sum128(s.b[start:s.i])] = struct{}{}
	} else {
		at.saturated = true
	}
}

func (s *sampler) lookText(at *seen, text []byte) {
	if s.cells {
		at.cells = true
		low := strings.ToLower(string(text))
		if low == "true" || low == "false" {
			at.bools++
			return
		}
		p := parser{}
		p.reset(text, true)
		if n, ok := p.number(); ok && p.i == len(text) {
			at.number(n)
			return
		}
	}
	at.strings++
	var id [16]byte
	_, rest, isDate := parseDate(text)
	_, clockRest, isClock := parseClock(text)
	_, isTimestamp := parseTimestamp(text, false)
	_, isZoned := parseTimestamp(text, true)
	for k, ok := range map[kind]bool{kDate: isDate && len(rest) == 0, kTime: isClock && len(clockRest) == 0, kTimestamp: isTimestamp,
		kTimestampTZ: isZoned, kUUID: parseUUID(text, &id)} {
		if !ok {
			at.forms[k] = false
		}
	}
}

// number takes in one number: whether it is an integer, a double to the digit,
// and how many digits a decimal needs.
func (at *seen) number(n *number) {
	canon := appendCanonicalNumber(nil, n.lit)
	digits, exp := canonicalDigits(canon)
	if exp >= 0 {
		at.ints++
	} else {
		at.fracs++
	}
	hi, lo, ok := n.unscaled(0)
	limit := uint64(1)<<63 - 1
	if n.neg {
		limit++
	}
	if exp < 0 || !ok || hi != 0 || lo > limit {
		at.bigint = false
	}
	f, _, over := n.double()
	if over || !bytes.Equal(appendCanonicalNumber(nil, appendFloat(nil, f, 64)), canon) {
		at.exact = false
	}
	at.digits = max(at.digits, digits+exp)
	at.scale = max(at.scale, -exp)
	if digits+max(exp, 0) > 38 || -exp > 38 {
		at.wide = true
	}
}

// canonicalDigits counts the digits and gives the exponent of a canonical
// number.
func canonicalDigits(canon []byte) (digits, exp int) {
	text := strings.TrimPrefix(string(canon), "-")
	mant, e, _ := strings.Cut(text, "e")
	if e != "" {
		if _, err := fmt.Sscanf(e, "%d", &exp); err != nil {
			return len(mant), maxExponent
		}
	}
	return len(mant), exp
}
