package ingest

import (
	"slices"
	"strings"

	"rbt/internal/diag"
)

// Compile finds out what a declaration means. The list holds everything that
// is wrong with it, each at its own place; the program is nil if it holds an
// error.
func Compile(s Spec) (*Program, diag.List) {
	c := &compiler{spec: s, byName: map[string]*recType{}, prog: &Program{model: s.Model}}
	c.policies()
	c.declareTypes()
	for i := range s.Records {
		if t := c.compiled[i]; t != nil {
			c.members(t, &s.Records[i])
		}
	}
	c.endless()
	c.roots()
	c.buildFamilies()
	c.ids()
	if c.list.HasErrors() {
		return nil, c.list.Sort()
	}
	c.layout()
	c.outputs()
	c.checkRelations()
	if c.list.HasErrors() {
		return nil, c.list.Sort()
	}
	p := c.prog
	holder, left := needsSweep(p.types)
	p.sweep = holder != nil
	markNesting(p.types, p.sweep)
	if p.appendMode && p.sweep {
		c.errorf(diag.IngestBadMode, s.Mode.Pos, "use owned rows instead of records of dedup: none, keep lists of records and, below other records, metadata out of by_value types, "+
			"and records out of metadata, or use mode: full_refresh",
			"mode: append cannot be kept: a repeated %s can leave a %s behind that nothing holds any more, and stored rows are never removed", holder.name, left.name)
		return nil, c.list.Sort()
	}
	p.declaration, p.hash = declare(p, s)
	return p, c.list.Sort()
}

type compiler struct {
	spec     Spec
	prog     *Program
	list     diag.List
	byName   map[string]*recType
	names    []string
	compiled []*recType // by index into spec.Records; nil for a repeated or bad name
	ordinal  int
}

func (c *compiler) errorf(code diag.Code, pos diag.Pos, hint, format string, args ...any) {
	d := diag.Errorf(code, pos, format, args...)
	if hint != "" {
		d = d.WithHint("%s", hint)
	}
	c.list = append(c.list, d)
}

func didYouMean(word string, known []string) string {
	if n := diag.Nearest(word, known); n != "" {
		return "did you mean " + n + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "one of: " + strings.Join(known, ", ")
}

// word checks a policy word against what is allowed; the first is the default.
func (c *compiler) word(key string, t Text, allowed ...string) string {
	if t.Value == "" {
		return allowed[0]
	}
	w := strings.ToLower(strings.TrimSpace(t.Value))
	if !slices.Contains(allowed, w) {
		c.errorf(diag.IngestBadWord, t.Pos, didYouMean(w, allowed), "%s cannot be %q", key, t.Value)
		return allowed[0]
	}
	return w
}

func (c *compiler) declareTypes() {
	c.compiled = make([]*recType, len(c.spec.Records))
	places := map[string]Text{}
	if len(c.spec.Records) == 0 {
		c.errorf(diag.IngestBadRoot, c.spec.Pos, "declare at least one record type under records:", "the ingest declares no record type")
	}
	for i := range c.spec.Records {
		r := &c.spec.Records[i]
		if !c.relationWord(r.Name, "record") {
			continue
		}
		norm := normalName(r.Name.Value)
		if first, ok := places[norm]; ok {
			c.clash(r.Name, first, "record")
			continue
		}
		places[norm] = r.Name
		t := &recType{ord: len(c.prog.types), identity: r.Identity.Value, entries: r.Entries.Set}
		t.name, t.rec = r.Name.Value, t
		if t.identity == "" {
			t.identity = t.name
		}
		t.head = appendName([]byte{'R'}, t.identity)
		c.recordPolicies(t, r)
		c.prog.types = append(c.prog.types, t)
		c.byName[t.name] = t
		c.names = append(c.names, t.name)
		c.compiled[i] = t
	}
}

func (c *compiler) recordPolicies(t *recType, r *Record) {
	switch c.word("dedup", r.Dedup, "content_id", "by_value", "none") {
	case "by_value":
		t.dedup = dedupValue
	case "none":
		t.dedup = dedupNone
	}
	if r.OnMetadataConflict.Value == "" {
		return
	}
	switch c.word("on_metadata_conflict", r.OnMetadataConflict, "fail", "first", "last", "quarantine") {
	case "first":
		t.conflict = conflictFirst
	case "last":
		t.conflict = conflictLast
		if strings.EqualFold(strings.TrimSpace(c.spec.Mode.Value), "append") {
			c.errorf(diag.IngestBadMode, r.OnMetadataConflict.Pos, "use first, fail or quarantine, or mode: full_refresh",
				"on_metadata_conflict: last cannot be kept with mode: append, which never rewrites stored rows")
		}
	case "quarantine":
		t.conflict = conflictQuarantine
	}
	if t.dedup != dedupContent {
		c.errorf(diag.IngestBadMetadata, r.OnMetadataConflict.Pos, "remove on_metadata_conflict, or use dedup: content_id",
			"on_metadata_conflict has no meaning with dedup: %s, which does not compare metadata", r.Dedup.Value)
	}
}

func (c *compiler) clash(second, first Text, what string) {
	d := diag.Errorf(diag.IngestNameClash, second.Pos, "%s %s has the same name as %s after normalising", what, second.Value, first.Value)
	c.list = append(c.list, d.WithHint("rename one of them, and write its key under `path:`").WithNote(first.Pos, "%s stands here", first.Value))
}

// lookup resolves a record type; what says which key names it.
func (c *compiler) lookup(t Text, what string) *recType {
	if r, ok := c.byName[t.Value]; ok {
		return r
	}
	c.errorf(diag.IngestUnknownRecord, t.Pos, didYouMean(t.Value, c.names), "%s names the record type %q, which is not declared", what, t.Value)
	return nil
}

// endless finds required references that come back to where they start: a
// document ends, so that every record of such a type would be refused. Each
// circle is told once, at the reference of its first type. What only leads to a
// circle is not told.
func (c *compiler) endless() {
	type step struct {
		name Text
		to   *recType
	}
	needs := make([][]step, len(c.prog.types))
	for i := range c.spec.Records {
		t := c.compiled[i]
		if t == nil {
			continue
		}
		for _, r := range slices.Concat(c.spec.Records[i].Members.References, c.spec.Records[i].Metadata.References) {
			if to := c.byName[r.Record.Value]; to != nil && r.Required.Set {
				needs[t.ord] = append(needs[t.ord], step{r.Name, to})
			}
		}
	}
	const entered, left = 1, 2
	state := make([]int, len(c.prog.types))
	var chain []*recType
	var first []Text // of each type in the chain, the reference that goes on
	var visit func(t *recType)
	visit = func(t *recType) {
		state[t.ord] = entered
		chain = append(chain, t)
		for _, n := range needs[t.ord] {
			first = append(first, n.name)
			switch state[n.to.ord] {
			case 0:
				visit(n.to)
			case entered:
				at := slices.Index(chain, n.to)
				var path strings.Builder
				for _, on := range chain[at:] {
					path.WriteString(on.name + " -> ")
				}
				c.errorf(diag.IngestEndless, first[at].Pos, "take `required` from one of them",
					"reference %s: no record can satisfy it, since each %s needs another: %s%s", first[at].Value, n.to.name, path.String(), n.to.name)
			}
			first = first[:len(first)-1]
		}
		chain = chain[:len(chain)-1]
		state[t.ord] = left
	}
	for _, t := range c.prog.types {
		if state[t.ord] == 0 {
			visit(t)
		}
	}
}

func (c *compiler) roots() {
	s := c.spec
	switch {
	case s.Root.Value == "" && s.RootBy == nil && len(c.prog.types) == 1:
		c.prog.root = c.prog.types[0]
	case s.Root.Value == "" && s.RootBy == nil:
		c.errorf(diag.IngestBadRoot, s.Pos, "say root: and a record type, or root_by:", "the ingest has several record types and no root")
	case s.Root.Value != "" && s.RootBy != nil:
		c.errorf(diag.IngestBadRoot, s.RootBy.Pos, "keep one of the two", "both root and root_by are given")
	case s.Root.Value != "":
		c.prog.root = c.lookup(s.Root, "root")
	default:
		c.rootBy(s.RootBy)
	}
}

func (c *compiler) rootBy(b *RootBy) {
	path, err := parsePath(b.Field.Value)
	if err != nil || len(path) == 0 {
		c.errorf(diag.IngestBadPath, b.Field.Pos, "", "root_by.field %q is not a path", b.Field.Value)
	}
	if len(b.Map) == 0 {
		c.errorf(diag.IngestBadRoot, b.Pos, "add map: {text: record}", "root_by maps no value to a record type")
	}
	rb := &rootBy{path: path, cases: map[string]*recType{}}
	for _, rc := range b.Map {
		t := c.lookup(rc.Record, "root_by")
		if t == nil {
			continue
		}
		if _, ok := rb.cases[rc.Value.Value]; ok {
			c.errorf(diag.IngestBadRoot, rc.Value.Pos, "", "root_by maps %q twice", rc.Value.Value)
		}
		rb.cases[rc.Value.Value] = t
		rb.names = append(rb.names, rc.Value.Value)
		if len(path) > 0 {
			t.node.allow(path)
		}
	}
	slices.Sort(rb.names)
	c.prog.rootBy = rb
}

func (c *compiler) buildFamilies() {
	seen := map[string]Text{}
	for _, f := range c.spec.Families {
		if !c.relationWord(f.Name, "family") {
			continue
		}
		if first, ok := seen[normalName(f.Name.Value)]; ok {
			c.clash(f.Name, first, "family")
			continue
		}
		seen[normalName(f.Name.Value)] = f.Name
		if len(f.Members) == 0 {
			c.errorf(diag.IngestBadFamily, f.Name.Pos, "list its record types", "family %s has no members", f.Name.Value)
		}
		fam := &family{name: f.Name.Value, folder: f.Name.Value}
		for _, m := range f.Members {
			t := c.lookup(m, "family "+f.Name.Value)
			switch {
			case t == nil:
			case slices.Contains(fam.members, t):
				c.errorf(diag.IngestBadFamily, m.Pos, "", "family %s lists %s twice", f.Name.Value, m.Value)
			default:
				fam.members = append(fam.members, t)
			}
		}
		c.prog.families = append(c.prog.families, fam)
	}
}

func (c *compiler) ids() {
	for i := range c.spec.Records {
		r, t := &c.spec.Records[i], c.compiled[i]
		if t == nil {
			continue
		}
		t.famSize = 1
		if r.ID == nil {
			continue
		}
		c.id(t, r)
		for j, f := range c.prog.families {
			k := slices.Index(f.members, t)
			switch {
			case k < 0:
			case t.family != nil:
				c.errorf(diag.IngestBadFamily, c.spec.Families[j].Name.Pos, "take it out of one of them",
					"%s mints ids and is in the families %s and %s", t.name, t.family.name, f.name)
			default:
				t.family, t.place, t.famSize = f, k, len(f.members)
			}
		}
	}
}

func (c *compiler) id(t *recType, r *Record) {
	d := r.ID
	rule := &idRule{base: d.Base.Value, series: d.Series.Value, unique: !d.Repeats}
	switch {
	case d.Base.Value == "" && d.From.Value == "":
		c.errorf(diag.IngestBadID, d.Pos, "say base: and series:, or from: and a field", "the id of %s has neither base nor from", t.name)
	case (d.Base.Value == "") != (d.Series.Value == ""):
		c.errorf(diag.IngestBadID, d.Pos, "minted ids read base-series-number", "the id of %s needs base and series together", t.name)
	}
	if d.From.Value != "" {
		var known []string
		for _, f := range t.fields {
			known = append(known, f.name)
			if f.name == d.From.Value {
				rule.from = f
			}
		}
		switch {
		case rule.from == nil:
			c.errorf(diag.IngestBadID, d.From.Pos, didYouMean(d.From.Value, known), "id.from names %q, which is no field of %s", d.From.Value, t.name)
		case rule.from.typ.lists > 0 || rule.from.typ.kind == kJSON:
			c.errorf(diag.IngestBadID, d.From.Pos, "", "id.from names %s of type %s; an id is one scalar", d.From.Value, rule.from.typ.SQL())
		}
	}
	t.id = rule
}
