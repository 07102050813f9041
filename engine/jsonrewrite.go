package engine

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// jsonField is a key of a record and where its value stands in the text.
type jsonField struct {
	key        string
	start, end int
	value      []byte
}

// fieldsOf takes a record, which was scanned before, apart at its top.
func fieldsOf(record []byte) []jsonField {
	s := &jsonScanner{text: record, line: 1}
	var out []jsonField
	s.pos++ // the brace
	for {
		s.blank()
		if s.pos >= len(s.text) || s.text[s.pos] == '}' {
			return out
		}
		if s.text[s.pos] == ',' {
			s.pos++
			s.blank()
		}
		raw, err := s.str()
		if err != nil {
			return out
		}
		key, _ := keyText(raw)
		s.blank()
		s.pos++ // the colon
		s.blank()
		start := s.pos
		if s.value(nil) != nil {
			return out
		}
		out = append(out, jsonField{string(key), start, s.pos, record[start:s.pos]})
	}
}

// elementsOf takes an array, which was scanned before, apart.
func elementsOf(array []byte) []jsonField {
	s := &jsonScanner{text: array, line: 1}
	var out []jsonField
	s.pos++ // the bracket
	for {
		s.blank()
		if s.pos >= len(s.text) || s.text[s.pos] == ']' {
			return out
		}
		if s.text[s.pos] == ',' {
			s.pos++
			s.blank()
		}
		start := s.pos
		if s.value(nil) != nil {
			return out
		}
		out = append(out, jsonField{start: start, end: s.pos, value: array[start:s.pos]})
	}
}

// texts are the ways in which the engine may give a value as text.
func (f jsonField) texts() []string {
	out := []string{string(f.value)}
	var text string
	if json.Unmarshal(f.value, &text) == nil {
		return append(out, text)
	}
	if x, err := strconv.ParseFloat(string(f.value), 64); err == nil {
		short := strconv.FormatFloat(x, 'f', -1, 64)
		out = append(out, short, short+".0", strconv.FormatFloat(x, 'g', -1, 64))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, f.value) == nil {
		out = append(out, compact.String())
	}
	return out
}

// rewriteJSON copies a file to one record a line without byte order mark, in
// which the values of some keys are text, spelled as they stand, since the
// engine would round them. Strings stay what they are but where the text shall
// be read as JSON again. Under keys with a plan only what it names becomes text.
func (t *fileTable) rewriteJSON(file string, quote, asJSON map[string]bool, plans map[string]*jsonPlan) (string, error) {
	if err := os.MkdirAll(t.tempDir, 0o777); err != nil {
		return "", fmt.Errorf("copy %s: %w", shownPath(t.project, file), err)
	}
	sum := sha256.Sum256([]byte(t.name + "\x00" + file))
	path := filepath.Join(t.tempDir, hex.EncodeToString(sum[:8])+".ndjson")
	out, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", shownPath(t.project, file), err)
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<18)
	_, err = scanJSON(file, compressionOf(file, t.options), t.format == "ndjson", func(record []byte, _ int) {
		_, _ = w.Write(rewriteRecord(record, quote, asJSON, plans)) // the writer keeps its error for Flush
		_ = w.WriteByte('\n')
	})
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", shownPath(t.project, file), err)
	}
	return path, nil
}

func rewriteRecord(record []byte, quote, asJSON map[string]bool, plans map[string]*jsonPlan) []byte {
	var b bytes.Buffer
	at := 0
	for _, f := range fieldsOf(record) {
		isText := len(f.value) > 0 && f.value[0] == '"'
		if !quote[f.key] || string(f.value) == "null" || isText && !asJSON[f.key] {
			continue
		}
		b.Write(record[at:f.start])
		plan := plans[f.key]
		if plan == nil {
			plan = &jsonPlan{text: true}
		}
		plan.rewrite(&b, f.value)
		at = f.end
	}
	b.Write(record[at:])
	// Line breaks stand only between values: inside of texts they are escaped.
	return bytes.ReplaceAll(bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
}
