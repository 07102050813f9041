package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"reflect"
	"slices"
	"strings"

	"rbt/internal/diag"
)

// hashSize is how much of a SHA-256 sum is kept, in bytes: 128 bits keep
// accidents out and receipts short.
const hashSize = 16

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:hashSize]) }

// hashText gives the hash of texts, which it keeps apart.
func hashText(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		writeText(h, t)
	}
	return sum(h)
}

// writeText writes a text so that no two sequences of texts are written alike.
func writeText(h io.Writer, text string) {
	var length [binary.MaxVarintLen64]byte
	// A hash never fails to take bytes.
	_, _ = h.Write(length[:binary.PutUvarint(length[:], uint64(len(text)))])
	_, _ = io.WriteString(h, text)
}

// digest gives the hash of a declaration: every exported field by name, without
// places, which do not change what is declared. Fields of their zero value are
// left out, so that a new version of rbt with a further field leaves old hashes
// as they are.
func digest(v any) string {
	h := sha256.New()
	digestValue(h, reflect.ValueOf(v))
	return sum(h)
}

func digestValue(h io.Writer, v reflect.Value) {
	if !v.IsValid() {
		writeText(h, "nil")
		return
	}
	switch x := v.Interface().(type) {
	case listValue:
		digestValue(h, reflect.ValueOf(x.Items()))
		return
	case mappingValue:
		writeText(h, "{")
		for _, key := range x.Keys() {
			value, _ := x.Get(key)
			writeText(h, fmt.Sprint(key))
			digestValue(h, reflect.ValueOf(value))
		}
		writeText(h, "}")
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		digestValue(h, v.Elem())
	case reflect.Struct:
		writeText(h, "{")
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !v.Field(i).IsZero() && f.Type != reflect.TypeFor[diag.Pos]() {
				writeText(h, f.Name)
				digestValue(h, v.Field(i))
			}
		}
		writeText(h, "}")
	case reflect.Slice, reflect.Array:
		writeText(h, "[")
		for i := range v.Len() {
			digestValue(h, v.Index(i))
		}
		writeText(h, "]")
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		writeText(h, "{")
		for _, key := range keys {
			writeText(h, fmt.Sprint(key))
			digestValue(h, v.MapIndex(key))
		}
		writeText(h, "}")
	default:
		writeText(h, fmt.Sprint(v))
	}
}
