package project

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
	"rbt/internal/memory"
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
		return memory.AppendText(b, v.String()), nil
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
		if b, err = appendValue(memory.AppendText(b, k.String()), v.MapIndex(k)); err != nil {
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
		return memory.AppendText(append(b, tagText), v), nil
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

// valueReader reads what appendValue wrote.
type valueReader struct {
	memory.Reader
	depth int
}

func readerOf(text string) *valueReader { return &valueReader{Reader: memory.NewReader(text)} }

// maxDepth bounds how deep values lie in others, so that no text can exhaust the
// stack.
const maxDepth = 200

func (r *valueReader) float() float64 {
	var b [8]byte
	for i := range b {
		b[i] = r.Byte()
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

// value reads into v, which is zero.
func (r *valueReader) value(v reflect.Value) {
	if r.depth++; r.depth > maxDepth {
		r.Fail()
	}
	defer func() { r.depth-- }()
	if r.Bad() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.Text())
	case reflect.Bool:
		v.SetBool(r.Byte() != 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Varint())
	case reflect.Float64:
		v.SetFloat(r.float())
	case reflect.Pointer:
		if r.Byte() != 0 {
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
		n := r.Length()
		if texts, ok := v.Addr().Interface().(*[]string); ok && n > 0 {
			*texts = make([]string, n)
			for i := range *texts {
				(*texts)[i] = r.Text()
			}
		} else if n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.value(v.Index(i))
			}
		}
	case reflect.Map:
		r.mapping(v)
	default:
		r.Fail()
	}
}

func (r *valueReader) structure(v reflect.Value) {
	mask := r.Uvarint()
	for i := range v.NumField() {
		if mask&(1<<i) == 0 {
			continue
		}
		if !v.Field(i).CanSet() {
			r.Fail()
			return
		}
		r.value(v.Field(i))
	}
	if mask>>v.NumField() != 0 {
		r.Fail()
	}
}

func (r *valueReader) mapping(v reflect.Value) {
	n := r.Length()
	if n < 0 {
		return
	}
	// Most maps are of these types; of any other each value is made twice.
	switch m := v.Addr().Interface().(type) {
	case *map[string]any:
		*m = readMap(r, n, r.any)
		return
	case *map[string]string:
		*m = readMap(r, n, r.Text)
		return
	case *map[string]diag.Pos:
		var pos diag.Pos
		at := reflect.ValueOf(&pos).Elem()
		*m = readMap(r, n, func() diag.Pos { at.SetZero(); r.value(at); return pos })
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	for range n {
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString(r.Text())
		item := reflect.New(v.Type().Elem()).Elem()
		r.value(item)
		if r.Bad() {
			return
		}
		v.SetMapIndex(key, item)
	}
}

// readMap reads n keys with their values.
func readMap[T any](r *valueReader, n int, value func() T) map[string]T {
	m := make(map[string]T, n)
	for i := 0; i < n && !r.Bad(); i++ {
		key := r.Text()
		m[key] = value()
	}
	return m
}

func (r *valueReader) any() any {
	switch r.Byte() {
	case tagNil:
		return nil
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagText:
		return r.Text()
	case tagInt:
		return r.Varint()
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
				r.Fail()
			}
		}
		return d
	}
	r.Fail()
	return nil
}

// read reads a value of a type.
func read[T any](r *valueReader) T {
	var v T
	r.value(reflect.ValueOf(&v).Elem())
	return v
}
