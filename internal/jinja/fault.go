package jinja

import (
	"context"
	"errors"
	"fmt"

	"rbt/internal/diag"
)

// maxDepth bounds how deeply values stand in each other where they are printed,
// compared or hashed: Python gives up there too.
const maxDepth = 500

// maxCallNotes is how many macro calls a message lists.
const maxCallNotes = 8

// fault is an error on its way to the user. Operations on values make it
// without a place; the expression that asked for them adds it.
type fault struct {
	diag.Diagnostic
	// arg is the named argument of the call that is to blame, "" for none.
	arg   string
	calls []macroCall // innermost first
	more  int         // calls beyond those listed
}

// macroCall is a macro call on the way to an error; count tells how often it
// stands there in a row.
type macroCall struct {
	what  string
	pos   diag.Pos
	count int
}

func fail(code diag.Code, format string, args ...any) error {
	return &fault{Diagnostic: diag.Diagnostic{Code: code, Msg: fmt.Sprintf(format, args...)}}
}

func failHint(code diag.Code, hint, format string, args ...any) error {
	return &fault{Diagnostic: diag.Diagnostic{Code: code, Msg: fmt.Sprintf(format, args...), Hint: hint}}
}

func tooDeep() error {
	return fail(diag.TemplateBudget, "a value is nested more than %d levels deep", maxDepth)
}

// argError blames a named argument of a call.
func argError(name, hint, format string, args ...any) error {
	return &fault{arg: name, Diagnostic: diag.Diagnostic{Code: diag.TemplateType, Msg: fmt.Sprintf(format, args...), Hint: hint}}
}

func typeError(format string, args ...any) error {
	return fail(diag.TemplateType, format, args...)
}

func valueError(format string, args ...any) error {
	return fail(diag.TemplateValue, format, args...)
}

func (u *Undefined) fault() error {
	f := &fault{Diagnostic: diag.Diagnostic{Code: diag.UndefinedName, Msg: u.msg, Pos: u.pos, Width: u.width}}
	if u.hint != nil {
		f.Hint = u.hint()
	}
	if !u.from.IsZero() {
		f.Notes = append(f.Notes, diag.Note{Pos: u.from, Msg: "the value that does not exist comes from here"})
	}
	return f
}

// placed gives an error its place unless it has one.
func placed(err error, at head, file string) error {
	if err == nil {
		return nil
	}
	var f *fault
	if errors.As(err, &f) {
		if f.Pos.IsZero() {
			f.Pos, f.Width = at.in(file), int(at.width)
		}
		return f
	}
	return err
}

// fromHost turns the error of a host function into a fault at its call.
func fromHost(err error, name string, at head, file string) error {
	var f *fault
	var d diag.Diagnostic
	var list diag.List
	var ret *returned
	switch {
	case errors.As(err, &ret), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &f):
	case errors.As(err, &d):
		f = &fault{Diagnostic: d}
	case errors.As(err, &list) && len(list) > 0:
		f = &fault{Diagnostic: list[0]}
	default:
		f = &fault{Diagnostic: diag.Errorf(diag.TemplateHost, diag.Pos{}, "%s: %s", name, err)}
	}
	return placed(f, at, file)
}

// calledFrom adds the call of a macro to an error that comes out of it.
func calledFrom(err error, what string, pos diag.Pos) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	n := len(f.calls)
	switch {
	case n > 0 && f.calls[n-1].what == what && f.calls[n-1].pos == pos:
		f.calls[n-1].count++
	case n < maxCallNotes:
		f.calls = append(f.calls, macroCall{what, pos, 1})
	default:
		f.more++
	}
	return f
}

// final gives an error as Render returns it.
func final(err error, file string) error {
	var f *fault
	if !errors.As(err, &f) {
		var ret *returned
		if errors.As(err, &ret) {
			return diag.Errorf(diag.TemplateValue, ret.pos, "return() is called outside of a macro")
		}
		return fmt.Errorf("render %s: %w", file, err)
	}
	for _, c := range f.calls {
		msg := c.what + " is called here"
		if c.count > 1 {
			msg += fmt.Sprintf(", %d times inside of each other", c.count)
		}
		f.Notes = append(f.Notes, diag.Note{Pos: c.pos, Msg: msg})
	}
	if f.more > 0 {
		f.Notes = append(f.Notes, diag.Note{Msg: fmt.Sprintf("and %d more calls around these", f.more)})
	}
	return f.Diagnostic
}
