package project

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

//go:embed builtin/*.sql
var builtinFiles embed.FS

// builtinPrefix marks the files of rbt's own macros in places.
const builtinPrefix = "builtin/"

// bareMacros are macros of dbt that templates may call without the prefix. A
// macro of the project with the same name wins. Names that are functions of SQL
// or of the template language are left to their prefix.
var bareMacros = []string{
	"date_trunc", "dateadd", "datediff", "last_day", "safe_cast", "type_string", "type_int", "type_bigint", "type_float",
	"type_numeric", "type_boolean", "type_timestamp", "current_timestamp", "split_part", "listagg", "bool_or", "any_value",
	"escape_single_quotes", "string_literal",
}

// builtinSpaces are the namespaces of rbt's own macros and their files.
var builtinSpaces = map[string]string{"dbt": "dbt.sql", "dbt_utils": "dbt_utils.sql"}

// builtinTemplate parses one file of rbt's own macros.
func builtinTemplate(name string) *jinja.Template {
	file := builtinPrefix + name
	text, err := builtinFiles.ReadFile(file)
	if err != nil {
		panic("project: " + err.Error())
	}
	t, list := jinja.Parse(file, string(text), 1)
	if list.HasErrors() {
		panic("project: " + list.Error())
	}
	return t
}

// newLibrary makes the macros that all templates of a project see: its own, the
// bare ones of dbt, and the namespaces dbt and dbt_utils.
func newLibrary(own []*jinja.Template) (*jinja.Library, diag.List) {
	base, utils := builtinTemplate(builtinSpaces["dbt"]), builtinTemplate(builtinSpaces["dbt_utils"])
	bare, parsed := jinja.Parse(builtinPrefix+"bare", bareText(base), 1)
	if parsed.HasErrors() {
		panic("project: " + parsed.Error())
	}
	lib, list := jinja.NewLibrary(append(slices.Clone(own), bare)...)
	// A project may have a macro of its own under a name of dbt.
	list = slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return strings.HasPrefix(d.Pos.File, builtinPrefix) })
	lib, _ = lib.WithNamespace("dbt", base)
	lib, _ = lib.WithNamespace("dbt_utils", utils)
	return lib, list
}

// bareText writes macros that pass their arguments to those of the namespace.
func bareText(base *jinja.Template) string {
	var b strings.Builder
	for _, m := range base.Macros() {
		if slices.Contains(bareMacros, m.Name) {
			b.WriteString("{% macro " + m.Name + "() %}{{ return(dbt." + m.Name + "(*varargs, **kwargs)) }}{% endmacro %}")
		}
	}
	return b.String()
}

// library gives the macros that a render sees. For a unit test some return
// fixed values.
func (r *rendering) library() *jinja.Library {
	if len(r.o.Overrides) == 0 {
		return r.p.library
	}
	spaces := map[string]*strings.Builder{"": {}}
	for i, name := range sortedKeys(r.o.Overrides) {
		space, macro, dotted := strings.Cut(name, ".")
		if !dotted {
			space, macro = "", name
		}
		if spaces[space] == nil {
			spaces[space] = &strings.Builder{}
		}
		// The macro takes any arguments, and the value is a global.
		fmt.Fprintf(spaces[space], "{%% macro %s() %%}{%% set _ = [varargs, kwargs] %%}{{ return(%s) }}{%% endmacro %%}",
			macro, overrideGlobal(i))
	}
	lib := r.p.library
	for _, space := range slices.Sorted(maps.Keys(spaces)) {
		t, list := jinja.Parse("overrides", spaces[space].String(), 1)
		switch {
		case list.HasErrors():
		case space == "":
			lib, _ = newLibrary(append([]*jinja.Template{t}, r.p.macros...))
		case builtinSpaces[space] != "":
			lib, _ = lib.WithNamespace(space, t, builtinTemplate(builtinSpaces[space]))
		default:
			lib, _ = lib.WithNamespace(space, t)
		}
	}
	return lib
}

// overrideGlobal names the global that holds the value of the i-th override.
func overrideGlobal(i int) string { return fmt.Sprintf("__override_%d", i) }

// isBuiltin reports whether a place is in rbt's own macros, which no user can mend.
func isBuiltin(pos diag.Pos) bool { return strings.HasPrefix(pos.File, builtinPrefix) }

// ownSpans gives the text that rbt's own macros made the place at which a file of
// the user calls them.
func ownSpans(spans []jinja.Span) {
	for i, s := range spans {
		if !isBuiltin(s.Pos) {
			continue
		}
		if at := slices.IndexFunc(s.Callers, func(c diag.Pos) bool { return !isBuiltin(c) }); at >= 0 {
			spans[i].Literal, spans[i].Pos, spans[i].Callers = false, s.Callers[at], s.Callers[at+1:]
		}
	}
}

// ownPlaces gives problems inside rbt's own macros the place at which a file of the
// user calls them; what it calls is named instead.
func ownPlaces(list diag.List) diag.List {
	for i, d := range list {
		at := slices.IndexFunc(d.Notes, func(n diag.Note) bool { return !isBuiltin(n.Pos) && !n.Pos.IsZero() })
		if !isBuiltin(d.Pos) || at < 0 {
			continue
		}
		rest, ok := strings.CutPrefix(d.Notes[at].Msg, "macro '")
		called, _, _ := strings.Cut(rest, "'")
		if ok && !strings.Contains(d.Msg, called) {
			d.Msg = called + "(): " + d.Msg
		}
		d.Pos, d.Width, d.Notes = d.Notes[at].Pos, 0, d.Notes[at+1:]
		list[i] = d
	}
	return list
}
