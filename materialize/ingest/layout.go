package ingest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// Types of the columns that rbt itself adds.
var (
	typBigint = scalar{kind: kInt, bits: 64, sql: "BIGINT"}
	typInt    = scalar{kind: kInt, bits: 32, sql: "INTEGER"}
	typUUID   = scalar{kind: kUUID, sql: "UUID"}
	typBool   = scalar{kind: kBool, sql: "BOOLEAN"}
	typText   = scalar{kind: kText, sql: "VARCHAR"}
	typJSON   = scalar{kind: kJSON, sql: "JSON"}
)

// Fixed columns at the head of a record's shard.
const (
	colPos   = 0
	colKey   = 1
	colLine  = 2
	colEntry = 3
)

// defaultMaxRejects stands where max_rejects is not given: enough to show what
// is wrong with a feed, too few to lose one unnoticed.
const defaultMaxRejects = 1000

func (c *compiler) policies() {
	s, p := c.spec, c.prog
	p.failBad = c.word("on_bad_record", s.OnBadRecord, "quarantine", "fail") == "fail"
	switch c.word("unknown_fields", s.UnknownFields, "ignore", "fail", "quarantine", "capture") {
	case "fail":
		p.unknown = unknownFail
	case "quarantine":
		p.unknown = unknownQuarantine
	case "capture":
		p.unknown = unknownCapture
	}
	switch c.word("type_mismatch", s.TypeMismatch, "quarantine", "fail", "null") {
	case "fail":
		p.mismatch = mismatchFail
	case "null":
		p.mismatch = mismatchNull
	}
	switch c.word("occurrences", s.Occurrences, "count", "none", "table") {
	case "none":
		p.occurrences = occurrencesNone
	case "table":
		p.occurrences = occurrencesTable
	}
	p.appendMode = c.word("mode", s.Mode, "full_refresh", "append") == "append"
	p.ignoreOld = c.word("on_changed_file", s.OnChangedFile, "fail", "ignore") == "ignore"
	p.format = c.word("input.format", s.Input.Format, "auto", "ndjson", "json", "csv", "parquet", "arrow_ipc")
	p.compression = c.word("input.compression", s.Input.Compression, "auto", "none", "gzip", "zstd")
	p.maxRejects, p.maxShare = defaultMaxRejects, 0
	if w := strings.TrimSpace(s.MaxRejects.Value); w != "" {
		c.maxRejects(w)
	}
	steps, err := parseRecordPath(s.Input.RecordPath.Value)
	if err != nil {
		c.errorf(diag.IngestBadPath, s.Input.RecordPath.Pos, "for example $, $.data[*] or $.pages[*].items[*]", "input.record_path: %v", err)
	}
	p.recordPath = steps
	c.csvDialect(s.Input.CSV)
}

// csvDialect checks how CSV files are said to be written.
func (c *compiler) csvDialect(o CSVOptions) {
	d := &c.prog.csv
	d.noHeader = o.NoHeader.Set
	if o.Null != nil {
		d.null = o.Null.Value
	}
	if w := o.Delimiter.Value; w != "" {
		r, n := utf8.DecodeRuneInString(w)
		if n != len(w) || r == utf8.RuneError || strings.ContainsRune("\"\r\n\x00", r) {
			c.errorf(diag.IngestBadWord, o.Delimiter.Pos, `one character, such as ";" or "\t"`, "the delimiter of CSV files cannot be %q", w)
		}
		d.comma = r
	}
	if o.Quote == nil {
		return
	}
	switch w := o.Quote.Value; {
	case w == "":
		d.noQuote = true
	case len(w) > 1 || w[0] >= utf8.RuneSelf || strings.Contains("\r\n\x00", w) || rune(w[0]) == cmp.Or(d.comma, ','):
		c.errorf(diag.IngestBadWord, o.Quote.Pos, "one ASCII character other than the delimiter, or nothing", "the quote of CSV files cannot be %q", w)
	default:
		d.quote = w[0]
	}
}

func (c *compiler) maxRejects(w string) {
	pos := c.spec.MaxRejects.Pos
	if share, ok := strings.CutSuffix(w, "%"); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || !(f >= 0 && f <= 100) {
			c.errorf(diag.IngestBadWord, pos, "for example 1000 or 0.1%", "max_rejects cannot be %q", w)
			return
		}
		c.prog.maxRejects, c.prog.maxShare = -1, f/100
		return
	}
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil || n < 0 {
		c.errorf(diag.IngestBadWord, pos, "for example 1000 or 0.1%", "max_rejects cannot be %q", w)
		return
	}
	c.prog.maxRejects = n
}

func (c *compiler) newTable(name string) *table {
	t := &table{ord: len(c.prog.tables), name: name}
	c.prog.tables = append(c.prog.tables, t)
	return t
}

// layout decides what a shard of every table holds.
func (c *compiler) layout() {
	p := c.prog
	for _, t := range p.types {
		capture := p.unknown == unknownCapture
		t.hasMid = t.dedup == dedupContent && (len(t.meta) > 0 || capture)
		t.hasCid = t.dedup != dedupContent
		// last and quarantine look at every occurrence of a key, so that none
		// may be dropped before the merge.
		t.canDrop = t.dedup != dedupNone && !(t.hasMid && (t.conflict == conflictLast || t.conflict == conflictQuarantine))
		t.table = c.newTable(fmt.Sprintf("t%d", t.ord))
		t.table.add("p", typBigint, true)
		t.table.add("k", typUUID, true)
		t.table.add("l", typBigint, true)
		t.table.add("e", typBool, true)
		if t.hasCid {
			t.table.add("c", typUUID, true)
		}
		if t.hasMid {
			t.table.add("m", typUUID, true)
		}
		c.shapeColumns(&t.shape)
		if t.canDrop {
			t.reps = c.newTable(fmt.Sprintf("t%d_reps", t.ord))
			t.reps.add("k", typUUID, true)
			t.reps.add("n", typBigint, true)
			t.reps.add("e", typBool, true)
		}
		c.listTables(t, t.lists)
	}
	if p.occurrences == occurrencesTable {
		p.occ = c.newTable("occ")
		p.occ.add("t", typInt, true)
		p.occ.add("k", typUUID, true)
		p.occ.add("p", typBigint, true)
		p.occ.add("l", typBigint, true)
	}
	p.rejects = c.newTable("rejects")
	p.rejects.add("p", typBigint, true)
	p.rejects.add("l", typBigint, false)
	p.rejects.add("o", typBigint, false)
	p.rejects.add("n", typBigint, false)
	for _, name := range []string{"rp", "fp", "reason", "message", "raw"} {
		p.rejects.add(name, typText, false)
	}
}

func (c *compiler) shapeColumns(s *shape) {
	s.extra = -1
	for i, f := range s.fields {
		f.colIdx = s.table.add(fmt.Sprintf("f%d", i), f.typ, f.required)
	}
	for i, r := range s.refs {
		r.colIdx = s.table.add(fmt.Sprintf("r%d", i), typUUID, r.required)
		r.hashIdx = -1
		if r.meta && !s.owned {
			r.hashIdx = s.table.add(fmt.Sprintf("h%d", i), typUUID, false)
		}
	}
	for i, l := range s.lists {
		l.countIdx, l.hashIdx = -1, -1
		if !l.required {
			l.countIdx = s.table.add(fmt.Sprintf("n%d", i), typInt, false)
		}
		if l.meta && !s.owned {
			l.hashIdx = s.table.add(fmt.Sprintf("g%d", i), typUUID, false)
		}
	}
	// Unknown keys of owned rows are captured with their path by the record.
	if c.prog.unknown == unknownCapture && !s.owned {
		s.extra = s.table.add("x", typJSON, false)
	}
}

// indexColumns are the shard columns that order the rows of a list, outermost
// first; the last is the row's own.
func indexColumns(level int) []string {
	cols := make([]string, level)
	for i := range cols {
		cols[i] = fmt.Sprintf("i%d", i+1)
	}
	return cols
}

// outputIndexColumns are their names in the output: _parent_idx,
// _parent_idx_2, …, _idx.
func outputIndexColumns(level int) []string {
	cols := make([]string, level)
	for i := range cols {
		switch {
		case i == level-1:
			cols[i] = "_idx"
		case i == 0:
			cols[i] = "_parent_idx"
		default:
			cols[i] = fmt.Sprintf("_parent_idx_%d", i+1)
		}
	}
	return cols
}

func (c *compiler) listTables(t *recType, lists []*list) {
	for _, l := range lists {
		l.table = c.newTable(fmt.Sprintf("t%d_%d", t.ord, c.ordinal))
		c.ordinal++
		l.table.add("p", typBigint, true)
		for _, i := range indexColumns(l.level) {
			l.table.add(i, typInt, true)
		}
		switch l.kind {
		case listScalar:
			l.table.add("v", l.typ, false)
		case listLink:
			l.table.add("k", typUUID, true)
		case listOwned:
			l.row.table = l.table
			c.shapeColumns(l.row)
			c.listTables(t, l.row.lists)
		}
	}
}

func (c *compiler) outputs() {
	p := c.prog
	if p.root != nil {
		c.recordOutputs(p.root)
	} else {
		p.families = append(p.families, c.rootFamily())
	}
	for _, t := range p.types {
		if t != p.root {
			c.recordOutputs(t)
		}
	}
	for _, f := range p.families {
		o := Output{Kind: OutputFamily, Folder: f.folder, Ref: f.name, family: f,
			Columns: []lake.Column{{Name: "_content_id", Type: "UUID"}, {Name: "_record", Type: "VARCHAR"}, {Name: "_sid", Type: "BIGINT"}}}
		if f.folder == rootsFolder {
			o.Ref = ""
		}
		c.output(o)
	}
	c.output(Output{Kind: OutputRejects, Folder: "_rejects", Ref: "_rejects", Columns: rejectColumns()})
	if p.occ != nil {
		c.output(Output{Kind: OutputOccurrences, Folder: "_occurrences", Ref: "_occurrences", Columns: occurrenceColumns()})
	}
	c.output(Output{Kind: OutputLoads, Folder: "_loads", Ref: "_loads", Columns: loadColumns()})
}

// rootsFolder holds the family of all roots of a root_by, which is what the
// model's bare name means.
const rootsFolder = "_roots"

func (c *compiler) rootFamily() *family {
	f := &family{name: "_roots", folder: rootsFolder}
	for _, t := range c.prog.types {
		for _, w := range c.prog.rootBy.names {
			if c.prog.rootBy.cases[w] == t {
				f.members = append(f.members, t)
				break
			}
		}
	}
	return f
}

func (c *compiler) output(o Output) {
	o.Relation = c.prog.model
	if o.Ref != "" {
		o.Relation += "__" + strings.ReplaceAll(o.Ref, ".", "__")
	}
	c.prog.outputs = append(c.prog.outputs, o)
}

func (c *compiler) recordOutputs(t *recType) {
	t.folder = t.name
	o := Output{Kind: OutputRecord, Folder: t.name, Ref: t.name, rec: t, Columns: recordColumns(c.prog, t)}
	prefix := t.name + "."
	if t == c.prog.root {
		o.Ref, prefix = "", ""
	}
	c.output(o)
	c.childOutputs(t, t.lists, prefix)
}

func (c *compiler) childOutputs(t *recType, lists []*list, prefix string) {
	for _, l := range lists {
		refName := prefix + l.refName
		l.folder = strings.ReplaceAll(refName, ".", "__")
		c.output(Output{Kind: OutputChild, Folder: l.folder, Ref: refName, rec: t, list: l, Columns: childColumns(l)})
		if l.kind == listOwned {
			c.childOutputs(t, l.row.lists, prefix)
		}
	}
}

// checkRelations finds relations of one model that would share a name or a
// folder, such as a child of the root and a record type.
func (c *compiler) checkRelations() {
	places := map[string]int{}
	for i, o := range c.prog.outputs {
		for _, name := range []string{o.Folder, o.Ref} {
			if name == "" {
				continue
			}
			key := normalName(strings.ReplaceAll(name, ".", "__"))
			first, ok := places[key]
			if ok && first != i {
				c.errorf(diag.IngestNameClash, c.outputPos(o), "rename one of them; a child keeps its key with path:",
					"the relations %s and %s have the same name", describeOutput(c.prog.outputs[first]), describeOutput(o))
				break
			}
			places[key] = i
		}
	}
}

func describeOutput(o Output) string {
	switch {
	case o.Kind == OutputChild:
		return fmt.Sprintf("%s (children of %s)", o.Ref, o.rec.name)
	case o.Kind == OutputFamily:
		return o.Ref + " (family)"
	default:
		return o.Folder + " (" + string(o.Kind) + ")"
	}
}

func (c *compiler) outputPos(o Output) diag.Pos {
	switch o.Kind {
	case OutputFamily:
		for _, f := range c.spec.Families {
			if f.Name.Value == o.family.name {
				return f.Name.Pos
			}
		}
	case OutputRecord, OutputChild:
		r := c.spec.Records[slicesIndex(c.compiled, o.rec)]
		if o.Kind == OutputChild {
			return childPos(r, o.list.refName)
		}
		return r.Name.Pos
	}
	return c.spec.Pos
}

func slicesIndex(types []*recType, t *recType) int {
	for i, x := range types {
		if x == t {
			return i
		}
	}
	panic("ingest: a record type without declaration")
}

func childPos(r Record, path string) diag.Pos {
	pos := r.Name.Pos
	groups := []Members{r.Members, r.Metadata}
	for _, name := range strings.Split(path, ".") {
		var next []Members
		for _, g := range groups {
			for _, ch := range g.Children {
				if ch.Name.Value != name {
					continue
				}
				pos = ch.Name.Pos
				if ch.Row != nil {
					next = append(next, *ch.Row)
				}
			}
		}
		groups = next
	}
	return pos
}

// declared is the normalised declaration that an append compares.
type declared struct {
	Records  []Record
	Families []Family
	Root     string
	RootBy   *RootBy
	Policies map[string]string
}

func declare(p *Program, s Spec) ([]byte, string) {
	d := declared{Records: s.Records, Families: s.Families, Root: s.Root.Value, RootBy: s.RootBy, Policies: map[string]string{
		"on_bad_record": strconv.FormatBool(p.failBad), "max_rejects": fmt.Sprintf("%d %g", p.maxRejects, p.maxShare),
		"unknown_fields": strconv.Itoa(int(p.unknown)), "type_mismatch": strconv.Itoa(int(p.mismatch)),
		"occurrences": strconv.Itoa(int(p.occurrences)), "format": p.format, "compression": p.compression,
		"record_path": recordPathText(p.recordPath),
	}}
	if p.csv != (csvDialect{}) {
		d.Policies["csv"] = fmt.Sprintf("%d %d %t %t %q", p.csv.comma, p.csv.quote, p.csv.noQuote, p.csv.noHeader, p.csv.null)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("ingest: a declaration that JSON cannot hold: %v", err))
	}
	text = dropPlaces(text)
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:])
}

// dropPlaces removes the places from the declaration, so that moving a line
// changes nothing.
func dropPlaces(text []byte) []byte {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		panic(fmt.Sprintf("ingest: a declaration that cannot be read back: %v", err))
	}
	out, err := json.Marshal(withoutPos(v))
	if err != nil {
		panic(fmt.Sprintf("ingest: a declaration that JSON cannot hold: %v", err))
	}
	return out
}

func withoutPos(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "Pos")
		if val, ok := v["Value"]; ok && len(v) == 1 {
			return val
		}
		if val, ok := v["Set"]; ok && len(v) == 1 {
			return val
		}
		for k, x := range v {
			v[k] = withoutPos(x)
		}
	case []any:
		for i, x := range v {
			v[i] = withoutPos(x)
		}
	}
	return v
}
