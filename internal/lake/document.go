package lake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"rbt/internal/diag"
)

// DamageError says that something published cannot be relied on: a document
// that does not parse, a file that is missing or not the one that the receipt
// names. Path is relative to the lake. It is never treated as "nothing there".
type DamageError struct {
	Node string
	Path string
	Err  error
}

// Error names the file and what is wrong with it.
func (e *DamageError) Error() string { return fmt.Sprintf("lake file %s: %v", e.Path, e.Err) }

// Unwrap gives what is wrong without the file.
func (e *DamageError) Unwrap() error { return e.Err }

// Diagnostic gives the damage with what to do about it.
func (e *DamageError) Diagnostic() diag.Diagnostic {
	d := diag.Errorf(diag.LakeDamaged, diag.Pos{File: e.Path}, "%v", e.Err)
	var newer *newerError
	switch {
	case errors.As(e.Err, &newer) && e.Node != "":
		return d.WithHint("a newer rbt wrote it: use that one, or build the node anew: rbt run --full-refresh -s %s", e.Node)
	case e.Node == "":
		return d.WithHint("restore the file from a backup of the lake")
	}
	return d.WithHint("restore the file from a backup of the lake, or build the node anew: rbt run --full-refresh -s %s", e.Node)
}

// newerError says that a document is of a version that this rbt does not know.
type newerError struct{ text string }

// Error gives both versions.
func (e *newerError) Error() string { return e.text }

// unknownVersion is the error of a document of a version that this rbt does not know.
func unknownVersion(version int, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if version > documentVersion {
		return &newerError{text}
	}
	return errors.New(text)
}

// jsonKeys lists the keys of a document's struct.
func jsonKeys(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// unknownKeys returns what a valid JSON object holds beside the known keys.
func unknownKeys(b []byte, known []string) (map[string]json.RawMessage, error) {
	if onlyKeys(b, known) {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for _, k := range known {
		delete(all, k)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// onlyKeys reports whether all keys of a valid JSON object, as they are spelled,
// are known. It looks at each byte once, since a plan reads thousands of
// receipts and hardly any has another key.
func onlyKeys(b []byte, known []string) bool {
	depth, value := 0, false // value: after the colon of a key of the outer object
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ':':
			value = value || depth == 1
		case ',':
			value = value && depth > 1
		case '"':
			start := i + 1
			end := endOfString(b, i)
			if depth == 1 && !value && !slices.Contains(known, string(b[start:end-1])) {
				return false
			}
			i = end - 1
		}
	}
	return true
}

// withExtra appends unknown keys, sorted and without white space, to an encoded
// JSON object.
func withExtra(object []byte, extra map[string]json.RawMessage, known []string) ([]byte, error) {
	keys := make([]string, 0, len(extra))
	for k := range extra {
		if !slices.Contains(known, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	out := bytes.TrimSuffix(object, []byte("}"))
	for _, k := range keys {
		name, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		if !bytes.HasSuffix(out, []byte("{")) {
			out = append(out, ',')
		}
		value := bytes.NewBuffer(append(append(out, name...), ':'))
		if err := json.Compact(value, extra[k]); err != nil {
			return nil, err
		}
		out = value.Bytes()
	}
	return append(out, '}'), nil
}

// encode gives a document as it stands on disk: one key or value a line down to
// a depth, so that a person can read and compare it, and what lies deeper on one
// line, so that a list of thousands stays small.
func encode(doc json.Marshaler, depth int) ([]byte, error) {
	b, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append(lines(b, depth), '\n'), nil
}

// lines breaks JSON without white space of its own into lines down to a depth.
func lines(b []byte, depth int) []byte {
	out := make([]byte, 0, len(b)+len(b)/4)
	at := 0
	newLine := func() {
		out = append(out, '\n')
		for range at {
			out = append(out, ' ')
		}
	}
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch c {
		case '{', '[':
			at++
			out = append(out, c)
			if at <= depth && b[i+1] != c+2 { // an empty one stays together
				newLine()
			}
		case '}', ']':
			at--
			if at < depth && b[i-1] != c-2 {
				newLine()
			}
			out = append(out, c)
		case ',':
			out = append(out, c)
			if at <= depth {
				newLine()
			}
		case ':':
			out = append(out, c)
			if at <= depth {
				out = append(out, ' ')
			}
		case '"':
			end := endOfString(b, i)
			out = append(out, b[i:end]...)
			i = end - 1
		default:
			out = append(out, c)
		}
	}
	return out
}

// endOfString is where the JSON string that starts at i is over.
func endOfString(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(b))
}

// stageFile writes a document's temporary file and makes its content durable.
// A leftover of an earlier attempt is replaced; on error none is left.
func (l *Lake) stageFile(abs string, content []byte) (temp string, err error) {
	temp = tempOf(abs)
	err = l.fs.Write(temp, content)
	if isExist(err) {
		if err = l.fs.Remove(temp); err == nil {
			err = l.fs.Write(temp, content)
		}
	}
	if err == nil {
		err = l.fs.Sync(temp)
	}
	if err != nil {
		_ = l.fs.Remove(temp) // the first error is the one to report
		return "", fmt.Errorf("write %s: %w", abs, err)
	}
	return temp, nil
}

// commitFile makes a staged file visible: it replaces what was there in one
// step and then makes that durable. Where it returns an error the rename may
// have happened.
func (l *Lake) commitFile(temp, abs string) error {
	if err := l.fs.Rename(temp, abs); err != nil {
		return fmt.Errorf("publish %s: %w", abs, err)
	}
	if err := l.fs.SyncDir(filepath.Dir(abs)); err != nil {
		return fmt.Errorf("make %s durable: %w", abs, err)
	}
	return nil
}

// writeFile writes a document whole: temporary file, sync, rename, sync of the
// folder.
func (l *Lake) writeFile(abs string, content []byte) error {
	temp, err := l.stageFile(abs, content)
	if err != nil {
		return err
	}
	if err := l.commitFile(temp, abs); err != nil {
		_ = l.fs.Remove(temp) // gone already where the rename happened
		return err
	}
	return nil
}

// EnsureDir makes a folder, given relative to the lake, and makes the entries of
// all folders that it had to make durable.
func (l *Lake) EnsureDir(rel string) error {
	dir := l.root
	if rel != "" {
		abs, err := l.Abs(rel)
		if err != nil {
			return err
		}
		dir = abs
	}
	if info, err := l.fs.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("make folder %s: a file of that name is in the way", dir)
		}
		return nil
	}
	missing := []string{dir}
	for parent := filepath.Dir(dir); parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
		if _, err := l.fs.Stat(parent); err == nil {
			break
		}
		missing = append(missing, parent)
	}
	if err := l.fs.MkdirAll(dir); err != nil {
		return fmt.Errorf("make folder %s: %w", dir, err)
	}
	for _, m := range missing {
		if err := l.fs.SyncDir(filepath.Dir(m)); err != nil {
			return fmt.Errorf("make folder %s durable: %w", m, err)
		}
	}
	return nil
}
