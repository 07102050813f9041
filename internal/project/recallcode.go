package project

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"rbt/internal/jinja"
)

// What is recalled of a model is written field by field: of a struct a mask of
// the exported fields that are not zero, and these; of a list or map its length
// plus one, 0 being nil; of an interface a tag of the type, and the value. Fields
// that are not exported are of use only while a project is loaded. Names of
// fields are not written: what wrote the file and what reads it are one program.

// errUnwritable says of a value that it has a part which is not written. The
// encoder returns it.
var errUnwritable = errors.New("a value that is not written")

// Tags of the types that an interface may hold.
const (
	tagNil = iota
	tagFalse
	tagTrue
	tagText
	tagInt
	tagFloat
	tagTexts
	tagAnys
	tagMap
	tagList
	tagDict
)

// appendValue writes a value behind b.
func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.String:
		return appendText(b, v.String()), nil
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int()), nil
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float())), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0), nil
		}
		return appendValue(append(b, 1), v.Elem())
	case reflect.Interface:
		return appendAny(b, v.Interface())
	case reflect.Struct:
		return appendStruct(b, v)
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0), nil
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		var err error
		for i := range v.Len() {
			if b, err = appendValue(b, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return b, nil
	case reflect.Map:
		return appendMap(b, v)
	}
	return nil, fmt.Errorf("%w: %s", errUnwritable, v.Type())
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStruct(b []byte, v reflect.Value) ([]byte, error) {
	var mask uint64
	if v.NumField() > 64 || v.Type() == reflect.TypeFor[jinja.Template]() {
		return nil, fmt.Errorf("%w: %s", errUnwritable, v.Type())
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && !v.Field(i).IsZero() {
			mask |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, mask)
	var err error
	for i := range v.NumField() {
		if mask&(1<<i) == 0 {
			continue
		}
		if b, err = appendValue(b, v.Field(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// appendMap writes a map with keys of text, sorted.
func appendMap(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, 0), nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	b = binary.AppendUvarint(b, uint64(len(keys))+1)
	var err error
	for _, k := range keys {
		if b, err = appendValue(appendText(b, k.String()), v.MapIndex(k)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendAny(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, tagNil), nil
	case bool:
		if v {
			return append(b, tagTrue), nil
		}
		return append(b, tagFalse), nil
	case string:
		return appendText(append(b, tagText), v), nil
	case int64:
		return binary.AppendVarint(append(b, tagInt), v), nil
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, tagFloat), math.Float64bits(v)), nil
	case []string:
		return appendValue(append(b, tagTexts), reflect.ValueOf(v))
	case []any:
		return appendValue(append(b, tagAnys), reflect.ValueOf(v))
	case map[string]any:
		return appendValue(append(b, tagMap), reflect.ValueOf(v))
	case *jinja.List:
		items := append([]any{}, v.Items()...)
		return appendValue(append(b, tagList), reflect.ValueOf(items))
	case *jinja.Dict:
		var pairs []any
		for k, item := range v.All() {
			pairs = append(pairs, k, item)
		}
		return appendValue(append(b, tagDict), reflect.ValueOf(pairs))
	}
	return nil, fmt.Errorf("%w: %T", errUnwritable, v)
}

// valueReader reads what appendValue wrote. Texts are parts of the text that is
// read. The first error stays.
type valueReader struct {
	rest  string
	bad   bool
	depth int
}

// maxDepth bounds how deep values lie in others, so that no text can exhaust the
// stack.
const maxDepth = 200

func (r *valueReader) fail() {
	r.bad, r.rest = true, ""
}

func (r *valueReader) byte() byte {
	if r.rest == "" {
		r.fail()
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

func (r *valueReader) uvarint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.fail()
	return 0
}

func (r *valueReader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *valueReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *valueReader) float() float64 {
	var b [8]byte
	for i := range b {
		b[i] = r.byte()
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

// length gives the length of a list or map, -1 for nil. Every item has a byte at
// least.
func (r *valueReader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.rest))+1 {
		r.fail()
		return -1
	}
	return int(n) - 1
}

// value reads into v, which is zero.
func (r *valueReader) value(v reflect.Value) {
	if r.depth++; r.depth > maxDepth {
		r.fail()
	}
	defer func() { r.depth-- }()
	if r.bad {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.byte() != 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.varint())
	case reflect.Float64:
		v.SetFloat(r.float())
	case reflect.Pointer:
		if r.byte() != 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.value(v.Elem())
		}
	case reflect.Interface:
		if item := r.any(); item != nil {
			v.Set(reflect.ValueOf(item))
		}
	case reflect.Struct:
		r.structure(v)
	case reflect.Slice:
		if n := r.length(); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.value(v.Index(i))
			}
		}
	case reflect.Map:
		r.mapping(v)
	default:
		r.fail()
	}
}

func (r *valueReader) structure(v reflect.Value) {
	mask := r.uvarint()
	for i := range v.NumField() {
		if mask&(1<<i) == 0 {
			continue
		}
		if !v.Field(i).CanSet() {
			r.fail()
			return
		}
		r.value(v.Field(i))
	}
	if mask>>v.NumField() != 0 {
		r.fail()
	}
}

func (r *valueReader) mapping(v reflect.Value) {
	n := r.length()
	if n < 0 {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	for range n {
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString(r.text())
		item := reflect.New(v.Type().Elem()).Elem()
		r.value(item)
		if r.bad {
			return
		}
		v.SetMapIndex(key, item)
	}
}

func (r *valueReader) any() any {
	switch r.byte() {
	case tagNil:
		return nil
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagText:
		return r.text()
	case tagInt:
		return r.varint()
	case tagFloat:
		return r.float()
	case tagTexts:
		return read[[]string](r)
	case tagAnys:
		return read[[]any](r)
	case tagMap:
		return read[map[string]any](r)
	case tagList:
		return jinja.NewList(read[[]any](r)...)
	case tagDict:
		d := jinja.NewDict()
		for pairs := read[[]any](r); len(pairs) > 1; pairs = pairs[2:] {
			if d.Set(pairs[0], pairs[1]) != nil {
				r.fail()
			}
		}
		return d
	}
	r.fail()
	return nil
}

// read reads a value of a type.
func read[T any](r *valueReader) T {
	var v T
	r.value(reflect.ValueOf(&v).Elem())
	return v
}
