package jinja

import (
	"sort"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// Result is the text of a render and where each part of it came from.
type Result struct {
	Text string
	// Spans follow each other without gap or overlap and cover Text.
	Spans []Span
	// Start is the place where the template begins: that of an empty Text.
	Start diag.Pos
}

// Span is a part of the output that one place of a template made.
type Span struct {
	Start, End int  // byte offsets in Text
	Literal    bool // template text copied as it stands; Pos is the place of its first byte
	Pos        diag.Pos
	// Callers are the places of the macro calls around Pos, innermost first; at
	// most maxCallers of them.
	Callers []diag.Pos
	// Value is the host object that printed this part, nil for all else.
	Value any
}

const (
	// maxCallers bounds the memory of spans under deep recursion.
	maxCallers = 32
	// maxSpans bounds the memory of spans of one text. What comes behind is
	// joined into coarser spans, those of host objects excepted.
	maxSpans = 1 << 20
)

// Locate gives the place that made the byte at offset and the macro calls around
// it, innermost first. exact tells that the byte was copied from that very place.
func (r *Result) Locate(offset int) (pos diag.Pos, callers []diag.Pos, exact bool) {
	if len(r.Spans) == 0 {
		return r.Start, nil, false
	}
	i := sort.Search(len(r.Spans), func(i int) bool { return r.Spans[i].End > offset })
	if i == len(r.Spans) {
		i--
	}
	s := r.Spans[i]
	if !s.Literal {
		return s.Pos, s.Callers, false
	}
	offset = max(s.Start, min(offset, s.End))
	return advance(s.Pos, r.Text[s.Start:offset]), s.Callers, true
}

// advance moves a place over template text.
func advance(pos diag.Pos, text string) diag.Pos {
	if n := strings.Count(text, "\n"); n > 0 {
		pos.Line += n
		pos.Col = 1
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	pos.Col += utf8.RuneCountInString(text)
	return pos
}

// sink collects output and its spans.
type sink struct {
	r     *run
	b     strings.Builder
	spans []Span
}

// add appends text that one place made.
func (s *sink) add(text string, span Span) error {
	if text == "" {
		return nil
	}
	n := s.b.Len() + len(text)
	if err := s.r.size(n); err != nil {
		return err
	}
	if err := s.r.step(1 + len(text)/bytesPerStep); err != nil {
		return err
	}
	span.Start, span.End = s.b.Len(), n
	s.b.WriteString(text)
	s.span(span)
	return nil
}

func (s *sink) span(span Span) {
	if n := len(s.spans); n >= maxSpans && span.Value == nil && s.spans[n-1].Value == nil {
		s.spans[n-1].End, s.spans[n-1].Literal = span.End, false
		return
	}
	s.spans = append(s.spans, span)
}

// addRich appends text with the spans that it brings.
func (s *sink) addRich(t *richText) error {
	base := s.b.Len()
	if err := s.r.size(base + len(t.text)); err != nil {
		return err
	}
	if err := s.r.step(1 + len(t.spans) + len(t.text)/bytesPerStep); err != nil {
		return err
	}
	s.b.WriteString(t.text)
	for _, span := range t.spans {
		span.Start += base
		span.End += base
		s.span(span)
	}
	return nil
}

// value gives what was collected as a value of the template.
func (s *sink) value() any {
	if s.b.Len() == 0 {
		return ""
	}
	return &richText{text: s.b.String(), spans: s.spans}
}

// result is what was collected from a template that begins at start.
func (s *sink) result(start diag.Pos) *Result {
	// A project keeps the spans of all its models: no room that none needs.
	return &Result{Text: s.b.String(), Spans: append([]Span(nil), s.spans...), Start: start}
}
