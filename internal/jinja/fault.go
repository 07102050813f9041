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
	calls int
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
	f.calls++
	if f.calls <= maxCallNotes {
		f.Notes = append(f.Notes, diag.Note{Pos: pos, Msg: what + " is called here"})
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
	if more := f.calls - maxCallNotes; more > 0 {
		f.Notes = append(f.Notes, diag.Note{Msg: fmt.Sprintf("and %d more calls around these", more)})
	}
	return f.Diagnostic
}
