package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Where an object becomes a record of its own: it has to come back often enough
// that storing it once is worth a reference.
const (
	repeatsAtLeast  = 10  // occurrences
	repeatsDistinct = 0.5 // distinct contents, as a share of them
	mapKeysAtLeast  = 50  // keys that look like data
	mapKeysShare    = 0.1 // of the objects have the usual key
)

// builder turns what was seen into a declaration.
type builder struct {
	in      *Inferred
	opt     InferOptions
	records map[string]bool   // names that are taken
	shapes  map[string]string // key set -> record that has it
	queue   []pendingRecord
	seenBy  map[string]*seen
}

type pendingRecord struct {
	name string
	at   *seen
}

func newBuilder(in *Inferred, opt InferOptions) *builder {
	return &builder{in: in, opt: opt, records: map[string]bool{}, shapes: map[string]string{}, seenBy: map[string]*seen{}}
}

func (b *builder) build(root *seen) {
	b.in.Spec = Spec{Model: b.opt.Name, Root: Text{Value: b.opt.Name}}
	b.in.Spec.Input = Input{Format: Text{Value: b.opt.Format}, Compression: Text{Value: b.opt.Compression}, RecordPath: Text{Value: b.opt.RecordPath}}
	b.records[normalName(b.opt.Name)] = true
	b.queue = append(b.queue, pendingRecord{b.opt.Name, root})
	for len(b.queue) > 0 {
		p := b.queue[0]
		b.queue = b.queue[1:]
		r := Record{Name: Text{Value: p.name}}
		b.comment(p.name, fmt.Sprintf("%d of them, %d different", p.at.objects, len(p.at.distinct)))
		pl := &place{b: b, at: p.name, n: p.at.objects, cols: map[string]bool{}, names: map[string]bool{}}
		if p.at == root {
			// The lists of the root are relations beside the record types.
			pl.lists = map[string]string{}
			b.reserve(root, pl, nil)
		}
		b.members(&r.Members, p.at, pl, nil)
		b.in.Spec.Records = append(b.in.Spec.Records, r)
	}
}

// reserve names the lists of the root before any record type gets its name.
func (b *builder) reserve(at *seen, p *place, path []string) {
	for _, k := range at.keys {
		v, here := at.byKey[k], append(slices.Clip(path), k)
		switch {
		case v.arrays > 0:
			name := p.name(here, "_count", true)
			p.lists[strings.Join(here, "\x00")] = name
			b.records[normalName(name)] = true
		case v.onlyObjects():
			b.reserve(v, p, here)
		}
	}
}

func (b *builder) comment(at, text string) { b.in.Comments[at] = text }

// place is one table of the declaration while it is built.
type place struct {
	b     *builder
	at    string
	n     int64 // objects there
	cols  map[string]bool
	names map[string]bool
	lists map[string]string // of the root: names that its lists have got already
}

// name finds a name for the keys of a path that clashes with nothing. suffix is
// what the member's column adds; word asks for letters, digits and _ only.
func (p *place) name(path []string, suffix string, word bool) string {
	base := strings.Join(path, "_")
	if word || len(path) > 1 || strings.HasPrefix(base, "_") || base == "" {
		base = relationName(base)
	}
	name := base
	for i := 2; ; i++ {
		col := normalName(name) + suffix
		taken := p.cols[col] || p.names[name] || (word && p.names[normalName(name)]) ||
			(p.lists != nil && word && p.b.records[normalName(name)])
		if !taken {
			p.cols[col], p.names[name], p.names[normalName(name)] = true, true, true
			return name
		}
		name = fmt.Sprintf("%s_%d", base, i)
	}
}

// relationName makes a word that relations can have. Two underscores join the
// words of a relation, so that none holds them itself.
func relationName(key string) string {
	name := strings.Trim(columnName(key), "_")
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	if name == "" {
		return "x"
	}
	return name
}

// pathText writes a path where it is not the name itself; ok is false where no
// path can say it.
func pathText(path []string, name string) (Text, bool) {
	if len(path) == 1 && path[0] == name {
		return Text{}, true
	}
	parts := make([]string, len(path))
	for i, k := range path {
		switch {
		case strings.Contains(k, `"`):
			return Text{}, false
		case k == "" || strings.ContainsAny(k, `.[]*$`):
			parts[i] = `"` + k + `"`
		default:
			parts[i] = k
		}
	}
	return Text{Value: strings.Join(parts, ".")}, true
}

// members declares what an object holds; path leads from the table's object to
// this one.
func (b *builder) members(m *Members, at *seen, p *place, path []string) {
	for _, key := range at.keys {
		v := at.byKey[key]
		here := append(slices.Clip(path), key)
		if key == "" {
			b.in.Notes = append(b.in.Notes, p.at+": an empty key cannot be declared and is left out")
			continue
		}
		switch {
		case v.onlyObjects() && len(v.keys) > 0 && !v.looksLikeMap():
			if v.repeats() {
				b.reference(m, v, p, here)
			} else {
				b.members(m, v, p, here)
			}
		case v.onlyArrays() && v.elem != nil && v.elements > 0:
			b.child(m, v, p, here)
		default:
			b.field(m, v, p, here)
		}
	}
}

func (v *seen) scalars() int64 { return v.bools + v.ints + v.fracs + v.strings }

func (v *seen) onlyObjects() bool { return v.objects > 0 && v.arrays == 0 && v.scalars() == 0 }

func (v *seen) onlyArrays() bool { return v.arrays > 0 && v.objects == 0 && v.scalars() == 0 }

// repeats tells whether the objects at a place come back.
func (v *seen) repeats() bool {
	return !v.saturated && v.objects >= repeatsAtLeast && float64(len(v.distinct)) <= repeatsDistinct*float64(v.objects)
}

// looksLikeMap tells whether keys are data: many, and each in few objects.
func (v *seen) looksLikeMap() bool {
	if len(v.keys) < mapKeysAtLeast {
		return false
	}
	total := int64(0)
	for _, k := range v.byKey {
		total += k.n
	}
	return float64(total) <= mapKeysShare*float64(v.objects)*float64(len(v.keys))
}

// record gives the record type for objects of a key set: the same keys under
// the same name are one type.
func (b *builder) record(name string, v *seen) string {
	keys := slices.Clone(v.keys)
	slices.Sort(keys)
	shape := normalName(name) + "\x00" + strings.Join(keys, "\x00")
	if have, ok := b.shapes[shape]; ok && b.mergeable(b.seenBy[have], v) {
		return have
	}
	base := relationName(name)
	pick := base
	for i := 2; b.records[normalName(pick)]; i++ {
		pick = fmt.Sprintf("%s_%d", base, i)
	}
	b.records[normalName(pick)] = true
	b.shapes[shape], b.seenBy[pick] = pick, v
	b.queue = append(b.queue, pendingRecord{pick, v})
	return pick
}

// mergeable tells whether two places can share a type as it was built for the
// first: every member has to come out the same.
func (b *builder) mergeable(a, v *seen) bool {
	for _, k := range a.keys {
		x, y := a.byKey[k], v.byKey[k]
		tx, _ := x.fieldType()
		ty, _ := y.fieldType()
		if x.onlyObjects() || x.onlyArrays() || y.onlyObjects() || y.onlyArrays() || tx != ty {
			return false
		}
	}
	return true
}

func (b *builder) reference(m *Members, v *seen, p *place, path []string) {
	name := p.name(path, "_sid", false)
	text, ok := pathText(path, name)
	if !ok {
		b.in.Notes = append(b.in.Notes, fmt.Sprintf("%s: the key %q cannot be declared and is left out", p.at, strings.Join(path, ".")))
		return
	}
	rec := b.record(path[len(path)-1], v)
	m.References = append(m.References, Reference{Name: Text{Value: name}, Record: Text{Value: rec}, Path: text})
	b.comment(p.at+"."+name, fmt.Sprintf("in %d of %d; %d different, so a record of its own", v.objects, p.n, len(v.distinct)))
}

func (b *builder) child(m *Members, v *seen, p *place, path []string) {
	el := v.elem
	kind, note := "", fmt.Sprintf("in %d of %d, %d elements", v.arrays, p.n, v.elements)
	switch {
	case el.onlyObjects() && el.nulls == 0 && len(el.keys) > 0 && !el.looksLikeMap():
		kind = "rows"
		if el.repeats() {
			kind = "links"
			note += fmt.Sprintf("; %d different, so records of their own", len(el.distinct))
		}
	case el.objects == 0 && el.arrays == 0:
		kind = "scalars"
	case el.onlyArrays() && el.elem != nil && el.elem.objects == 0 && el.elem.arrays == 0 && el.elem.scalars() > 0:
		kind = "matrix"
	}
	if kind == "" {
		b.field(m, v, p, path)
		return
	}
	if kind == "matrix" {
		typ, remark := el.elem.fieldType()
		if typ == "json" {
			b.field(m, v, p, path)
			return
		}
		b.put(m, p, path, typ+"[][]", note+remark)
		return
	}
	name, ok := p.lists[strings.Join(path, "\x00")]
	if !ok {
		name = p.name(path, "_count", true)
	}
	text, ok := pathText(path, name)
	if !ok {
		b.in.Notes = append(b.in.Notes, fmt.Sprintf("%s: the key %q cannot be declared and is left out", p.at, strings.Join(path, ".")))
		return
	}
	c := Child{Name: Text{Value: name}, Path: text}
	at := p.at + "." + name
	switch kind {
	case "scalars":
		typ, remark := el.fieldType()
		c.Type = Text{Value: typ}
		note += remark
	case "links":
		c.Record = Text{Value: b.record(path[len(path)-1], el)}
	default:
		c.Row = &Members{}
		b.members(c.Row, el, &place{b: b, at: at, n: el.objects, cols: map[string]bool{}, names: map[string]bool{}}, nil)
	}
	b.comment(at, note)
	m.Children = append(m.Children, c)
}

func (b *builder) field(m *Members, v *seen, p *place, path []string) {
	typ, remark := v.fieldType()
	b.put(m, p, path, typ, fmt.Sprintf("in %d of %d", v.n-v.nulls, p.n)+remark)
}

func (b *builder) put(m *Members, p *place, path []string, typ, note string) {
	name, ok := p.lists[strings.Join(path, "\x00")]
	if ok = ok && !p.cols[normalName(name)]; ok {
		p.cols[normalName(name)] = true
	} else {
		name = p.name(path, "", false)
	}
	text, ok := pathText(path, name)
	if !ok {
		b.in.Notes = append(b.in.Notes, fmt.Sprintf("%s: the key %q cannot be declared and is left out", p.at, strings.Join(path, ".")))
		return
	}
	m.Fields = append(m.Fields, Field{Name: Text{Value: name}, Type: Text{Value: typ}, Path: text})
	b.comment(p.at+"."+name, note)
}

// fieldType is the narrowest type that every sampled value allows; the remark
// says what is doubtful about it.
func (v *seen) fieldType() (typ, remark string) {
	kinds := 0
	for _, n := range []int64{v.bools, v.ints + v.fracs, v.strings, v.objects, v.arrays} {
		if n > 0 {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return "json", "; AMBIGUOUS: only null was seen"
	case kinds > 1 && v.cells:
		return "varchar", fmt.Sprintf("; %d of them are no numbers", v.bools+v.strings)
	case kinds > 1:
		return "json", fmt.Sprintf("; AMBIGUOUS: %s, %s, %s, %s, %s", counted(v.bools, "boolean"), counted(v.ints+v.fracs, "number"),
			counted(v.strings, "string"), counted(v.objects, "object"), counted(v.arrays, "list"))
	case v.objects > 0:
		return "json", fmt.Sprintf("; objects of %d different keys, kept whole", len(v.keys))
	case v.arrays > 0 && v.elements == 0:
		return "json", "; AMBIGUOUS: only empty lists were seen"
	case v.arrays > 0:
		return "json", "; lists of mixed values, kept whole"
	case v.bools > 0:
		return "boolean", ""
	case v.strings > 0:
		return v.textType()
	case v.bigint:
		return "bigint", ""
	case v.exact && v.fracs > 0:
		return "double", ""
	case v.wide || max(v.digits, 0)+v.scale > 38:
		return "json", "; numbers of more digits than a decimal holds"
	}
	prec := max(1, max(v.digits, 0)+v.scale)
	return fmt.Sprintf("decimal(%d,%d)", prec, v.scale), "; a double would round it"
}

func (v *seen) textType() (typ, remark string) {
	switch {
	case v.forms[kUUID]:
		return "uuid", ""
	case v.forms[kTimestampTZ]:
		return "timestamptz", ""
	case v.forms[kDate]:
		return "date", ""
	case v.forms[kTimestamp]:
		return "timestamp", ""
	case v.forms[kTime]:
		return "time", ""
	}
	return "varchar", ""
}

// Frontmatter writes the declaration as the frontmatter of a model; path is
// what stands under input, and globs which files of a folder. Every guess has a
// comment that says what it stands on.
func (in *Inferred) Frontmatter(path string, globs ...string) string {
	var w yamlWriter
	w.line(0, "---", "")
	w.line(0, "materialization: ingest", "")
	w.line(0, "input:", "")
	w.line(1, "path: "+yamlText(path), "")
	if len(globs) > 0 {
		quoted := make([]string, len(globs))
		for i, g := range globs {
			quoted[i] = yamlText(g)
		}
		w.line(1, "glob: ["+strings.Join(quoted, ", ")+"]", "")
	}
	for _, kv := range []struct{ k, v string }{{"format", in.Spec.Input.Format.Value}, {"compression", in.Spec.Input.Compression.Value}, {"record_path", in.Spec.Input.RecordPath.Value}} {
		if kv.v != "" && kv.v != "auto" {
			w.line(1, kv.k+": "+yamlText(kv.v), "")
		}
	}
	sample := fmt.Sprintf("inferred from %s in %s", counted(in.Records, "record"), counted(int64(in.Files), "file"))
	if in.Partial {
		sample += ", which are a part of the input"
	}
	if in.Skipped > 0 {
		sample += fmt.Sprintf("; %d values are no records", in.Skipped)
	}
	w.line(0, "root: "+yamlText(in.Spec.Root.Value), sample)
	w.line(0, "records:", "")
	for _, r := range in.Spec.Records {
		w.line(1, yamlText(r.Name.Value)+":", in.Comments[r.Name.Value])
		if len(r.Fields)+len(r.References)+len(r.Children) == 0 {
			w.line(2, "fields: {}", "")
		}
		w.members(2, &r.Members, in, r.Name.Value)
	}
	for _, n := range in.Notes {
		w.line(0, "# "+strings.ReplaceAll(n, "\n", " "), "")
	}
	w.line(0, "---", "")
	return w.String()
}

type yamlWriter struct{ strings.Builder }

func (w *yamlWriter) line(indent int, text, comment string) {
	w.WriteString(strings.Repeat("  ", indent) + text)
	if comment != "" {
		w.WriteString("  # " + strings.ReplaceAll(comment, "\n", " "))
	}
	w.WriteByte('\n')
}

func (w *yamlWriter) members(indent int, m *Members, in *Inferred, at string) {
	item := func(name, short, long string, path Text) {
		text := yamlText(name) + ": "
		if path.Value == "" {
			text += short
		} else {
			text += "{" + long + ", path: " + yamlText(path.Value) + "}"
		}
		w.line(indent+1, text, in.Comments[at+"."+name])
	}
	if len(m.Fields) > 0 {
		w.line(indent, "fields:", "")
		for _, f := range m.Fields {
			typ := yamlText(f.Type.Value)
			item(f.Name.Value, typ, "type: "+typ, f.Path)
		}
	}
	if len(m.References) > 0 {
		w.line(indent, "references:", "")
		for _, r := range m.References {
			rec := yamlText(r.Record.Value)
			item(r.Name.Value, rec, "record: "+rec, r.Path)
		}
	}
	if len(m.Children) == 0 {
		return
	}
	w.line(indent, "children:", "")
	for _, c := range m.Children {
		switch {
		case c.Row != nil:
			w.line(indent+1, yamlText(c.Name.Value)+":", in.Comments[at+"."+c.Name.Value])
			if c.Path.Value != "" {
				w.line(indent+2, "path: "+yamlText(c.Path.Value), "")
			}
			w.members(indent+2, c.Row, in, at+"."+c.Name.Value)
		case c.Record.Value != "":
			rec := "record: " + yamlText(c.Record.Value)
			item(c.Name.Value, "{"+rec+"}", rec, c.Path)
		default:
			typ := yamlText(c.Type.Value)
			item(c.Name.Value, typ, "type: "+typ, c.Path)
		}
	}
}

// yamlText writes a word as YAML reads it back: bare where it is plain, else as
// a JSON string, which YAML takes.
func yamlText(s string) string {
	plain := s != ""
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !(r >= '0' && r <= '9' || strings.ContainsRune("_-./", r))) {
			plain = false
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	text, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(text)
}

func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
