// Package memory is how one command leaves for the next what it found out. It owns
// the form of such texts (numbers, lengths, lists, and the sum that tells a damaged
// one), and by what a file is known to be as it was. It must never be trusted over
// the files that it is about: whatever is wrong with a text must cost time and
// nothing else, so that a reader gives less, never something else than was written.
//
// Words: a text is what is written, whole; it is sealed with a sum, and opened only
// where the sum is right. An identity tells one content of a file from another; a
// file is settled where it was left alone long enough for that.
package memory

import (
	"strings"

	"github.com/zeebo/xxh3"
)

// SumSize is the length of a sum in bytes.
const SumSize = 16

// Sum gives a number by which a damaged text is told from a whole one. It is none
// that keeps out who wants to deceive: who may write the text may write anything.
func Sum(text string) string {
	sum := xxh3.HashString128(text).Bytes()
	return string(sum[:])
}

// Seal ends a text that begins with a mark of its form: what follows is the sum of
// all behind the mark.
func Seal(b *strings.Builder, mark string) { b.WriteString(Sum(b.String()[len(mark):])) }

// Open gives what stands between the mark and the sum of a sealed text; false where
// the text has another form or is not whole.
func Open(text, mark string) (body string, ok bool) {
	body, ok = strings.CutPrefix(text, mark)
	if !ok || len(body) < SumSize {
		return "", false
	}
	at := len(body) - SumSize
	if body[at:] != Sum(body[:at]) {
		return "", false
	}
	return body[:at], true
}
