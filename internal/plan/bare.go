package plan

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// reader looks into rendered SQL: what it reads besides the references of its
// template, and what it says when comments and white space are left out.
type reader struct {
	parser Parser
	// relations finds models, seeds and ingest outputs by name in lower case,
	// tables and groups the tables of sources, the latter by both.
	relations map[string]project.Ref
	tables    map[string]bool
	groups    map[string]bool
}

func newReader(p *project.Project, parser Parser) *reader {
	r := &reader{parser: parser, relations: make(map[string]project.Ref, len(p.Models)+len(p.Seeds)+len(p.Sources)), tables: map[string]bool{}, groups: map[string]bool{}}
	for _, m := range p.Models {
		for _, o := range m.Outputs() {
			ref := project.Ref{Node: m.Name}
			if o.Relation != m.Name {
				ref.Output = o.Relation
			}
			r.relations[strings.ToLower(o.Relation)] = ref
		}
	}
	for _, s := range p.Seeds {
		r.relations[strings.ToLower(s.Name)] = project.Ref{Node: s.Name}
	}
	for _, s := range p.Sources {
		ref := project.Ref{Node: s.Group + "." + s.Name, Source: true}
		r.relations[strings.ToLower(ref.Node)] = ref
		r.tables[strings.ToLower(s.Name)] = true
		r.groups[strings.ToLower(s.Group)] = true
	}
	return r
}

// text is what was found in one rendering.
type text struct {
	normalized string
	refs       []project.Ref // of all relations, where a bare name stands in the text
	volatile   string
	noModel    error // as that of Scan
}

// look reads a rendering. Nothing but the scanner is asked unless a name stands
// in the text outside of what ref, source and this printed.
func (r *reader) look(c *project.Compiled) (text, diag.List) {
	scan, err := r.parser.Scan(c.SQL)
	if err != nil {
		return text{}, placed(c, err)
	}
	found := text{normalized: scan.Normalized, volatile: scan.Volatile, noModel: scan.NoModel}
	if found.normalized == "" {
		found.normalized = c.SQL
	}
	if len(r.hits(scan.Identifiers)) == 0 {
		return found, nil
	}
	bare := withoutRelations(c)
	scan, err = r.parser.Scan(bare)
	if err != nil {
		return text{}, placed(c, err)
	}
	hits := r.hits(scan.Identifiers)
	if len(hits) == 0 {
		return found, nil
	}
	tables, err := r.parser.Tables(bare)
	switch {
	case err != nil:
		return text{}, placed(c, err)
	case tables.Refused:
		return text{}, diag.List{refused(c, hits[0], scan.Identifiers[hits[0]])}
	}
	found.volatile = cmp.Or(found.volatile, tables.Volatile)
	var problems diag.List
	for _, t := range tables.Names {
		ref, ok := r.relation(t)
		if !ok {
			continue
		}
		offset := t.Offset
		if offset < 0 {
			offset = scan.Identifiers[strings.ToLower(t.Name)]
		}
		ref.Pos, _, _ = c.Result.Locate(offset)
		if d, bad := misspelt(t, ref); bad {
			problems = append(problems, d)
			continue
		}
		found.refs = append(found.refs, ref)
	}
	return found, problems
}

// misspelt reports a bare name that differs from the relation's in the case of
// a letter beyond A to Z, or in its code points: rbt takes both for one, the
// engine does not.
func misspelt(t TableName, ref project.Ref) (diag.Diagnostic, bool) {
	written, name := t.Name, cmp.Or(ref.Output, ref.Node)
	if ref.Source {
		written = t.Schema + "." + t.Name
	}
	if lowerASCII(written) == lowerASCII(name) {
		return diag.Diagnostic{}, false
	}
	if lowerASCII(norm.NFC.String(written)) == lowerASCII(name) {
		d := diag.Errorf(diag.BareName, ref.Pos, "%q is spelled with letters and accents apart (Unicode NFD), and DuckDB does not find %q by that", written, name).
			WithHint("write it in a template, which finds both spellings: {{ ref('…') }} or {{ source('…', '…') }}, or type the name anew")
		d.Width = len([]rune(t.Name))
		return d, true
	}
	d := diag.Errorf(diag.BareName, ref.Pos, "%q is called %q, and DuckDB ignores the case of A to Z only", written, name).
		WithHint("write %s as the project spells it", name)
	d.Width = len([]rune(t.Name))
	return d, true
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// hits gives the identifiers that may name a relation, sorted by place. A
// source is named by two.
func (r *reader) hits(identifiers map[string]int) []string {
	var hits []string
	group := false
	for written := range identifiers {
		group = group || r.groups[norm.NFC.String(written)]
	}
	for written := range identifiers {
		name := norm.NFC.String(written)
		if _, ok := r.relations[name]; ok || group && r.tables[name] {
			hits = append(hits, written)
		}
	}
	slices.SortFunc(hits, func(a, b string) int {
		if identifiers[a] != identifiers[b] {
			return identifiers[a] - identifiers[b]
		}
		return strings.Compare(a, b)
	})
	return hits
}

// relation finds what a table reference means: a model, seed or ingest output
// in main or without a schema, a source's table in the schema of its group.
func (r *reader) relation(t TableName) (project.Ref, bool) {
	if t.Catalog != "" {
		return project.Ref{}, false
	}
	name, schema := norm.NFC.String(strings.ToLower(t.Name)), norm.NFC.String(strings.ToLower(t.Schema))
	if schema != "" && schema != "main" {
		name = schema + "." + name
	}
	ref, ok := r.relations[name]
	return ref, ok && ref.Source == strings.Contains(name, ".")
}

func sameRelation(a, b project.Ref) bool {
	return a.Source == b.Source && a.Node == b.Node && a.Output == b.Output
}

// withoutRelations gives the text with a quoted name that no node can have, and
// that the engine takes for no file, in the place of each relation that a
// reference printed, so that every other token stays what and where it is.
func withoutRelations(c *project.Compiled) string {
	var out []byte
	for _, s := range c.Result.Spans {
		if _, ok := s.Value.(*project.Relation); !ok || s.End-s.Start < 2 {
			continue
		}
		if out == nil {
			out = []byte(c.SQL)
		}
		for i := s.Start; i < s.End; i++ {
			out[i] = ' '
		}
		out[s.Start], out[s.End-1] = '"', '"'
	}
	if out == nil {
		return c.SQL
	}
	return string(out)
}

// readsThis refuses a text of a model without increments that reads what {{ this }}
// names: nothing is ever published that it could read. In comments and strings the
// name does no harm.
func (r *reader) readsThis(name string, c *project.Compiled) diag.List {
	with, err := r.parser.Scan(c.SQL)
	if err != nil {
		return nil // told already
	}
	at, ok := with.Identifiers[strings.ToLower(name)]
	for _, s := range c.Result.Spans {
		rel, is := s.Value.(*project.Relation)
		if !ok || !is || !rel.This || at < s.Start || at >= s.End {
			continue
		}
		pos, callers, _ := c.Result.Locate(s.Start)
		d := diag.Errorf(diag.SQLUnknownTable, pos, "{{ this }} of %s is read, and nothing is published that it could read", name).
			WithHint("{{ this }} stands inside {%% if is_incremental() %%} of an incremental model")
		for _, caller := range callers {
			d = d.WithNote(caller, "called here")
		}
		return diag.List{d}
	}
	return nil
}

// placed gives an error about rendered SQL the place in the user's file that
// made that part of the text. What has its places already keeps them.
func placed(c *project.Compiled, err error) diag.List {
	var told diag.List
	var d diag.Diagnostic
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &d):
		return diag.List{d}
	}
	var at interface {
		SQLOffset() int
		SQLDiagnostic(diag.Pos) diag.Diagnostic
	}
	if !errors.As(err, &at) {
		pos, _, _ := c.Result.Locate(0)
		return diag.List{diag.Errorf(diag.SQLSyntax, diag.Pos{File: pos.File}, "%v", err)}
	}
	pos, callers, _ := c.Result.Locate(at.SQLOffset())
	d = at.SQLDiagnostic(pos)
	for _, caller := range callers {
		d = d.WithNote(caller, "called here")
	}
	return diag.List{d}
}

func refused(c *project.Compiled, name string, offset int) diag.Diagnostic {
	pos, _, _ := c.Result.Locate(offset)
	d := diag.Errorf(diag.BareName, pos, "%q is also the name of a model, and whether it is meant here cannot be told in this query", name).
		WithHint("write {{ ref('%s') }} where the model is meant, and another name where it is not; PIVOT with an IN list has no such limit", name)
	d.Width = len([]rune(name))
	return d
}
