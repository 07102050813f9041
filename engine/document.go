package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// encodedParts is a JSON object, and encodedList a list, whose values are encoded
// already: as trees those of ten thousand models would take more memory than all
// else.
type (
	encodedParts map[string]string
	encodedList  []string
)

// encodeEach encodes n values on all cores and gives each to put, of several
// goroutines at once.
func encodeEach(n int, value func(i int) any, put func(i int, text string)) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	// A goroutine takes several, so that starting it costs nothing beside them.
	const chunk = 64
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	for some := range slices.Chunk(places, chunk) {
		group.Go(func() error {
			var b bytes.Buffer
			for _, i := range some {
				b.Reset()
				if err := encodeJSON(&b, value(i)); err != nil {
					return err
				}
				put(i, b.String())
			}
			return nil
		})
	}
	return group.Wait()
}

// encodeJSON writes a value without a line break behind it, and <, > and & as
// they are.
func encodeJSON(b *bytes.Buffer, value any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1)
	return nil
}

// encodeDocument writes a document as JSON and a line break; encodedParts and
// encodedList may stand in an object at its top. place hears where parts lie.
func encodeDocument(w io.Writer, document any, place *partPlaces) error {
	e := documentEncoder{out: bufio.NewWriterSize(w, 1<<16), place: place}
	err := e.top(document)
	e.raw("\n")
	return errors.Join(err, e.out.Flush())
}

type documentEncoder struct {
	out   *bufio.Writer // its errors come with Flush
	at    int64         // how much was written
	piece bytes.Buffer
	place *partPlaces
}

func (e *documentEncoder) raw(text string) {
	_, _ = e.out.WriteString(text)
	e.at += int64(len(text))
}

func (e *documentEncoder) value(v any) error {
	e.piece.Reset()
	if err := encodeJSON(&e.piece, v); err != nil {
		return err
	}
	_, _ = e.out.Write(e.piece.Bytes())
	e.at += int64(e.piece.Len())
	return nil
}

func (e *documentEncoder) top(document any) error {
	o, ok := document.(object)
	if !ok {
		return e.value(document)
	}
	return e.object(sortedKeys(o), func(key string) error {
		switch v := o[key].(type) {
		case encodedParts:
			return e.object(sortedKeys(v), func(id string) error {
				e.place.part(id, e.at, len(v[id]))
				e.raw(v[id])
				return nil
			})
		case encodedList:
			for i, text := range v {
				e.raw("[,"[min(i, 1):][:1])
				e.raw(text)
			}
			if len(v) == 0 {
				e.raw("[")
			}
			e.raw("]")
			return nil
		default:
			return e.value(v)
		}
	})
}

// object writes an object whose values are written by value.
func (e *documentEncoder) object(keys []string, value func(key string) error) error {
	for i, key := range keys {
		e.raw("{,"[min(i, 1):][:1])
		if err := e.value(key); err != nil {
			return err
		}
		e.raw(":")
		if err := value(key); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if len(keys) == 0 {
		e.raw("{")
	}
	e.raw("}")
	return nil
}
