package memory

import "encoding/binary"

// AppendText writes a text behind b: its length in bytes, and itself.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendOptional writes a text that may not be there behind b.
func AppendOptional(b []byte, s *string) []byte {
	if s == nil {
		return append(b, 0)
	}
	return AppendText(append(b, 1), *s)
}

// AppendLength writes the length of a list or map behind b: plus one, 0 being nil.
func AppendLength(b []byte, n int, isNil bool) []byte {
	if isNil {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

// Reader takes values off a text in the order in which they were written. Texts that
// it gives are parts of that one. The first mistake stays: from then on every value
// is zero.
type Reader struct {
	rest string
	bad  bool
}

// NewReader gives a reader of a text.
func NewReader(text string) Reader { return Reader{rest: text} }

// Bad reports whether the text was not what was read of it.
func (r *Reader) Bad() bool { return r.bad }

// Done reports whether all of the text was read, without a mistake.
func (r *Reader) Done() bool { return !r.bad && r.rest == "" }

// Fail notes a mistake that the caller found.
func (r *Reader) Fail() { r.bad, r.rest = true, "" }

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if r.rest == "" {
		r.Fail()
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

// Uvarint reads what binary.AppendUvarint wrote.
func (r *Reader) Uvarint() uint64 {
	if r.rest != "" && r.rest[0] < 0x80 { // most numbers are small
		v := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return v
	}
	var v uint64
	for i := 0; i < min(len(r.rest), binary.MaxVarintLen64); i++ {
		c := r.rest[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.rest = r.rest[i+1:]
			return v
		}
	}
	r.Fail()
	return 0
}

// Varint reads what binary.AppendVarint wrote.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Text reads what AppendText wrote.
func (r *Reader) Text() string { return r.Bytes(r.Uvarint()) }

// Bytes reads so many bytes.
func (r *Reader) Bytes(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.Fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// Optional reads what AppendOptional wrote.
func (r *Reader) Optional() *string {
	if r.Uvarint() == 0 {
		return nil
	}
	s := r.Text()
	return &s
}

// Count reads the length of a list of which every item takes a byte at least.
func (r *Reader) Count() int {
	n := r.Uvarint()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Length reads what AppendLength wrote of a list of which every item takes a byte at
// least; -1 for nil.
func (r *Reader) Length() int {
	n := r.Uvarint()
	if n > uint64(len(r.rest))+1 {
		r.Fail()
		return -1
	}
	return int(n) - 1
}
