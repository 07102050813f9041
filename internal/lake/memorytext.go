package lake

import (
	"encoding/binary"
	"maps"
	"slices"
)

// A receipt in memory is written field by field in the order of the struct: a
// number as a varint, a text with its length before it, a list or map with its
// length plus one, 0 being nil. Receipts with stats or with keys of other versions
// are not kept.

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendOptional(b []byte, s *string) []byte {
	if s == nil {
		return append(b, 0)
	}
	return appendText(append(b, 1), *s)
}

func appendLength(b []byte, n int, isNil bool) []byte {
	if isNil {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

func appendIdentity(b []byte, id identity) []byte {
	for _, n := range []int64{id.size, id.mtime, id.ctime} {
		b = binary.AppendVarint(b, n)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, id.device), id.inode)
}

func appendMap(b []byte, m map[string]string) []byte {
	b = appendLength(b, len(m), m == nil)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = appendText(appendText(b, key), m[key])
	}
	return b
}

// receiptText gives a receipt as memory keeps it; "" where it does not.
func receiptText(r Receipt) string {
	if r.Stats != nil || len(r.Extra) > 0 {
		return ""
	}
	b := binary.AppendVarint(make([]byte, 0, 1024), int64(r.Version))
	for _, s := range []string{r.Name, string(r.Form), r.Path, r.Commit, r.Fingerprint, r.Inputs.SQL} {
		b = appendText(b, s)
	}
	b = appendMap(appendMap(b, r.Inputs.Config), r.Inputs.Parents)
	b = appendLength(b, len(r.Inputs.Sources), r.Inputs.Sources == nil)
	for _, file := range slices.Sorted(maps.Keys(r.Inputs.Sources)) {
		s := r.Inputs.Sources[file]
		b = appendText(b, file)
		for _, n := range []int64{s.Size, s.Mtime, s.Ctime} {
			b = binary.AppendVarint(b, n)
		}
	}
	b = appendOptional(appendText(b, r.Inputs.Engine), r.Volatile)
	b = appendLength(b, len(r.Outputs), r.Outputs == nil)
	for _, o := range r.Outputs {
		b = appendOutput(b, o)
	}
	b = appendText(appendText(b, r.SQL), r.TestsHash)
	b = appendLength(b, len(r.Superseded), r.Superseded == nil)
	for _, s := range r.Superseded {
		b = appendText(b, s)
	}
	b = appendText(binary.AppendVarint(b, r.NextPart), r.RunID)
	return string(binary.AppendVarint(b, r.PublishedAt))
}

func appendOutput(b []byte, o Output) []byte {
	b = appendLength(appendText(b, o.Relation), len(o.Files), o.Files == nil)
	for _, f := range o.Files {
		b = appendText(binary.AppendVarint(appendText(b, f.Path), f.Bytes), f.Commit)
	}
	b = appendLength(binary.AppendVarint(b, o.Rows), len(o.Columns), o.Columns == nil)
	for _, c := range o.Columns {
		b = appendText(appendText(b, c.Name), c.Type)
	}
	b = appendOptional(b, o.ContentHash)
	if o.Greatest == nil {
		return append(b, 0)
	}
	return appendMap(appendText(append(b, 1), o.Greatest.Over), o.Greatest.Values)
}

// readReceiptText reads what receiptText wrote. Its texts are parts of the one that
// is read.
func readReceiptText(said string) (Receipt, bool) {
	r := &reading{rest: said}
	var out Receipt
	out.Version, out.Name, out.Form = int(r.varint()), r.text(), Form(r.text())
	out.Path, out.Commit, out.Fingerprint, out.Inputs.SQL = r.text(), r.text(), r.text(), r.text()
	out.Inputs.Config, out.Inputs.Parents = r.texts(), r.texts()
	if n := r.optionalLength(); n >= 0 {
		out.Inputs.Sources = make(map[string]FileStamp, n)
		for range n {
			file := r.text()
			out.Inputs.Sources[file] = FileStamp{Size: r.varint(), Mtime: r.varint(), Ctime: r.varint()}
		}
	}
	out.Inputs.Engine, out.Volatile = r.text(), r.optional()
	if n := r.optionalLength(); n >= 0 {
		out.Outputs = make([]Output, n)
		for i := range out.Outputs {
			out.Outputs[i] = r.output()
		}
	}
	out.SQL, out.TestsHash = r.text(), r.text()
	if n := r.optionalLength(); n >= 0 {
		out.Superseded = make([]string, n)
		for i := range out.Superseded {
			out.Superseded[i] = r.text()
		}
	}
	out.NextPart, out.RunID, out.PublishedAt = r.varint(), r.text(), r.varint()
	return out, !r.bad && r.rest == ""
}

// reading takes values off a text. The first mistake stays.
type reading struct {
	rest string
	bad  bool
}

func (r *reading) fail() { r.bad, r.rest = true, "" }

func (r *reading) uvarint() uint64 {
	var v uint64
	for shift := 0; shift < 64 && shift/7 < len(r.rest); shift += 7 {
		c := r.rest[shift/7]
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			r.rest = r.rest[shift/7+1:]
			return v
		}
	}
	r.fail()
	return 0
}

func (r *reading) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reading) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// length reads the length of a list; every item has a byte at least.
func (r *reading) length() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

// optionalLength is -1 for nil.
func (r *reading) optionalLength() int {
	n := r.uvarint()
	if n > uint64(len(r.rest))+1 {
		r.fail()
		return -1
	}
	return int(n) - 1
}

func (r *reading) optional() *string {
	if r.uvarint() == 0 {
		return nil
	}
	s := r.text()
	return &s
}

func (r *reading) identity() identity {
	return identity{size: r.varint(), mtime: r.varint(), ctime: r.varint(), device: r.uvarint(), inode: r.uvarint()}
}

func (r *reading) texts() map[string]string {
	n := r.optionalLength()
	if n < 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		key := r.text()
		m[key] = r.text()
	}
	return m
}

func (r *reading) output() Output {
	o := Output{Relation: r.text()}
	if n := r.optionalLength(); n >= 0 {
		o.Files = make([]File, n)
		for i := range o.Files {
			o.Files[i] = File{Path: r.text(), Bytes: r.varint(), Commit: r.text()}
		}
	}
	o.Rows = r.varint()
	if n := r.optionalLength(); n >= 0 {
		o.Columns = make([]Column, n)
		for i := range o.Columns {
			o.Columns[i] = Column{Name: r.text(), Type: r.text()}
		}
	}
	o.ContentHash = r.optional()
	if over := r.optional(); over != nil {
		o.Greatest = &Greatest{Over: *over, Values: r.texts()}
	}
	return o
}
