// Package diag owns what rbt says about the files that a user wrote: places,
// stable codes, diagnostics and how they are printed with a caret.
//
// It is a leaf: it imports no other package of rbt, reads no file and prints
// nothing by itself. Its words: a place (Pos) is file, line and column; a
// diagnostic is one problem at one place; a list is everything that was found
// in one pass.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a file that the user wrote. File is the path as shown to
// the user, relative to the project folder, with "/" on every system. Line and
// Col count from 1, Col in characters (runes). Line 0 means that only the file
// is known; Col 0 that only the line is known, and then no caret is printed.
type Pos struct {
	File string
	Line int
	Col  int
}

// IsZero reports whether nothing at all is known of the place.
func (p Pos) IsZero() bool { return p == Pos{} }

// String gives file:line:column, leaving out what is not known.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
}

// Compare orders places by file, line and column.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Severity tells an error, which stops a command, from a warning and a remark,
// which do not.
type Severity int

// The severities. The zero value is Error, so that a forgotten field is loud.
const (
	Error Severity = iota
	Warning
	Remark // something that a template says, such as log('…', info=true)
)

// Note is a second place that belongs to a diagnostic: where the other
// definition stands, or a caller of the macro that failed.
type Note struct {
	Pos Pos
	Msg string
}

// Diagnostic is one problem: what it is (Code, Msg), where (Pos) and what to
// do (Hint, may be empty). Msg is one sentence without a final full stop and
// never holds the place. Width is the number of characters to underline; 0 and
// 1 mean a single caret.
type Diagnostic struct {
	Code     Code
	Severity Severity
	Pos      Pos
	Width    int
	Msg      string
	Hint     string
	Notes    []Note
}

// Errorf makes an error diagnostic at a place.
func Errorf(code Code, pos Pos, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

// WithHint returns the diagnostic with what to do about it.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

// WithNote returns the diagnostic with one more place that belongs to it.
func (d Diagnostic) WithNote(pos Pos, format string, args ...any) Diagnostic {
	d.Notes = append(slices.Clip(d.Notes), Note{Pos: pos, Msg: fmt.Sprintf(format, args...)})
	return d
}

// consequence is the code of what Consequence makes; no message has it.
const consequence Code = "consequence"

// Consequence makes an error that is there only because of another one, which is
// told: it ends what cannot go on, and List.Roots leaves it out.
func Consequence(pos Pos) Diagnostic {
	return Errorf(consequence, pos, "this follows from a mistake in another place")
}

// Roots gives the list without what Consequence made.
func (l List) Roots() List {
	return slices.DeleteFunc(l, func(d Diagnostic) bool { return d.Code == consequence })
}

// Error gives the diagnostic in one line, so that it can travel as an error.
func (d Diagnostic) Error() string {
	var b strings.Builder
	if !d.Pos.IsZero() {
		b.WriteString(d.Pos.String())
		b.WriteString(": ")
	}
	b.WriteString(d.Msg)
	if d.Code != "" {
		fmt.Fprintf(&b, " [%s]", d.Code)
	}
	return b.String()
}

// List is everything that one pass found. As an error it stands for all of its
// diagnostics.
type List []Diagnostic

// Error gives one line a diagnostic.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the list by place, then code and message, and drops exact
// repeats, so that the order in which work was done never shows. Remarks of one
// place are what a loop says one after the other: they stay as they are.
func (l List) Sort() List {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		if c := cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Severity, b.Severity)); c != 0 || a.Severity == Remark {
			return c
		}
		return cmp.Compare(a.Msg, b.Msg)
	})
	return slices.CompactFunc(l, func(a, b Diagnostic) bool {
		return a.Pos == b.Pos && a.Code == b.Code && a.Msg == b.Msg && a.Severity != Remark
	})
}

// HasErrors reports whether the list holds anything but warnings.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Err returns the sorted list as an error, or nil where it holds no error.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return l.Sort()
}
