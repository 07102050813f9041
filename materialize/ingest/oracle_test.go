package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// The oracle does what INGEST says one record at a time, with maps, from the
// declaration itself. It shares no code with the package.

type oracleObj struct {
	keys []string
	vals map[string]any // *oracleObj, []any, string, json.Number, bool, nil, oracleRaw
	off  int64
	raw  string
}

type oracleArr struct {
	vals []any
	raw  string
}

func oracleDecode(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var value func() (any, error)
	value = func() (any, error) {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		start := dec.InputOffset() - 1
		switch tok {
		case json.Delim('{'):
			o := &oracleObj{vals: map[string]any{}, off: start}
			for dec.More() {
				k, err := dec.Token()
				if err != nil {
					return nil, err
				}
				v, err := value()
				if err != nil {
					return nil, err
				}
				if _, ok := o.vals[k.(string)]; ok {
					return nil, fmt.Errorf("duplicate")
				}
				o.keys, o.vals[k.(string)] = append(o.keys, k.(string)), v
			}
			_, err := dec.Token()
			o.raw = text[start:dec.InputOffset()]
			return o, err
		case json.Delim('['):
			a := &oracleArr{}
			for dec.More() {
				v, err := value()
				if err != nil {
					return nil, err
				}
				a.vals = append(a.vals, v)
			}
			_, err := dec.Token()
			a.raw = text[start:dec.InputOffset()]
			return a, err
		}
		return tok, nil
	}
	v, err := value()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text[dec.InputOffset():]) != "" {
		return nil, fmt.Errorf("trailing text")
	}
	return v, nil
}

// oracleBody is the parsed members of a record or owned row.
type oracleBody struct {
	show  map[string]*string // fields as DuckDB prints them; nil pointer for NULL
	canon map[string]string  // present fields
	refs  map[string]*oracleRec
	lists map[string][]oracleElem
	order []*oracleRec // nested records in document order
}

type oracleElem struct {
	show  *string
	canon string
	rec   *oracleRec
	row   *oracleBody
}

type oraclePos struct {
	file, line int
	off        int64
}

func (p oraclePos) less(q oraclePos) bool {
	if p.file != q.file {
		return p.file < q.file
	}
	if p.line != q.line {
		return p.line < q.line
	}
	return p.off < q.off
}

type oracleRec struct {
	t                 *Record
	pos               oraclePos
	entry             bool
	body              *oracleBody
	extra             map[string][2]string
	content, key, mid string
}

type oracle struct {
	spec    Spec
	recs    map[string][]*oracleRec
	rejects []string
	err     string
	sid     map[string]map[string]int // type, key -> sid
	tables  map[string][]string
}

func (o *oracle) record(name string) *Record {
	for i := range o.spec.Records {
		if o.spec.Records[i].Name.Value == name {
			return &o.spec.Records[i]
		}
	}
	panic(name)
}

func oraclePolicy(t Text, otherwise string) string {
	if t.Value == "" {
		return otherwise
	}
	return t.Value
}

func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic(n)
	}
	return r
}

func (o *oracle) canonJSON(v any) string {
	switch v := v.(type) {
	case *oracleObj:
		keys := slices.Clone(v.keys)
		sort.Strings(keys)
		var b strings.Builder
		for _, k := range keys {
			fmt.Fprintf(&b, "%q:%s,", k, o.canonJSON(v.vals[k]))
		}
		return "{" + b.String() + "}"
	case *oracleArr:
		var b strings.Builder
		for _, x := range v.vals {
			b.WriteString(o.canonJSON(x) + ",")
		}
		return "[" + b.String() + "]"
	case json.Number:
		return rat(v).String()
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

func compactJSON(v any) string {
	switch v := v.(type) {
	case *oracleObj:
		var b bytes.Buffer
		json.Compact(&b, []byte(v.raw))
		return b.String()
	case *oracleArr:
		var b bytes.Buffer
		json.Compact(&b, []byte(v.raw))
		return b.String()
	case string:
		b, _ := json.Marshal(v)
		return string(b)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// scalar gives what is stored and what is compared.
func (o *oracle) scalar(typ string, v any, meta bool, pos oraclePos) (show *string, canon string, err error) {
	if v == nil {
		return nil, "", nil
	}
	bad := fmt.Errorf("mismatch %s %v", typ, v)
	out := func(show, canon string) (*string, string, error) { return &show, typ + ":" + canon, nil }
	switch typ {
	case "varchar":
		if s, ok := v.(string); ok {
			return out(s, s)
		}
	case "json":
		return out(compactJSON(v), o.canonJSON(v))
	case "boolean":
		if b, ok := v.(bool); ok {
			return out(fmt.Sprint(b), fmt.Sprint(b))
		}
	case "integer", "bigint":
		if n, ok := v.(json.Number); ok && rat(n).IsInt() {
			limit := big.NewInt(math.MaxInt64)
			if typ == "integer" {
				limit = big.NewInt(math.MaxInt32)
			}
			if new(big.Int).Abs(rat(n).Num()).Cmp(limit) <= 0 {
				return out(rat(n).Num().String(), rat(n).Num().String())
			}
		}
	case "decimal(9,2)":
		if n, ok := v.(json.Number); ok {
			r := new(big.Rat).Mul(rat(n), big.NewRat(100, 1))
			if r.IsInt() && new(big.Int).Abs(r.Num()).Cmp(big.NewInt(1_000_000_000)) < 0 {
				return out(rat(n).FloatString(2), rat(n).FloatString(2))
			}
		}
	case "double":
		if s, ok := v.(string); ok && s == "NaN" && meta {
			return out("nan", fmt.Sprint("nan", pos))
		}
		if n, ok := v.(json.Number); ok {
			f, _ := strconv.ParseFloat(n.String(), 64)
			s := strconv.FormatFloat(f, 'g', -1, 64)
			if !strings.ContainsAny(s, ".e") {
				s += ".0"
			}
			canon := s
			if meta && f == 0 {
				canon = "0.0"
			}
			return out(s, canon)
		}
	case "integer[]":
		if a, ok := v.(*oracleArr); ok {
			var shows, canons []string
			for _, x := range a.vals {
				show, canon, err := o.scalar("integer", x, meta, pos)
				if err != nil {
					return nil, "", err
				}
				if show == nil {
					null := "NULL"
					show = &null
				}
				shows, canons = append(shows, *show), append(canons, canon)
			}
			return out("["+strings.Join(shows, ", ")+"]", strings.Join(canons, ","))
		}
	}
	return nil, "", bad
}

func oraclePath(path, name Text) []string {
	if path.Value == "" {
		return []string{name.Value}
	}
	return strings.Split(path.Value, ".")
}

func (o *oracle) get(obj *oracleObj, path []string) (any, error) {
	var v any = obj
	for _, k := range path {
		x, ok := v.(*oracleObj)
		if !ok {
			if v == nil {
				return nil, nil
			}
			return nil, fmt.Errorf("no object at %s", k)
		}
		v = x.vals[k]
	}
	return v, nil
}

func (o *oracle) parseBody(b *oracleBody, m Members, obj *oracleObj, meta bool, pos oraclePos, at string, extra map[string][2]string) error {
	for _, f := range m.Fields {
		v, err := o.get(obj, oraclePath(f.Path, f.Name))
		if err != nil {
			return err
		}
		show, canon, err := o.scalar(f.Type.Value, v, meta, pos)
		if err != nil {
			return err
		}
		if show == nil && f.Required.Set {
			return fmt.Errorf("required")
		}
		if b.show[f.Name.Value] = show; show != nil {
			b.canon[f.Name.Value] = canon
		}
	}
	for _, r := range m.References {
		v, err := o.get(obj, oraclePath(r.Path, r.Name))
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case nil:
			if r.Required.Set {
				return fmt.Errorf("required")
			}
		case *oracleObj:
			rec, err := o.parse(o.record(r.Record.Value), v, pos, false)
			if err != nil {
				return err
			}
			b.refs[r.Name.Value] = rec
			b.order = append(b.order, rec)
		default:
			return fmt.Errorf("mismatch")
		}
	}
	for _, c := range m.Children {
		v, err := o.get(obj, oraclePath(c.Path, c.Name))
		if err != nil {
			return err
		}
		if v == nil {
			if c.Required.Set {
				return fmt.Errorf("required")
			}
			continue
		}
		arr, ok := v.(*oracleArr)
		if !ok {
			return fmt.Errorf("mismatch")
		}
		elems := []oracleElem{}
		for i, x := range arr.vals {
			var e oracleElem
			switch {
			case c.Type.Value != "":
				e.show, e.canon, err = o.scalar(c.Type.Value, x, meta, pos)
			case c.Record.Value != "":
				sub, ok := x.(*oracleObj)
				if !ok {
					return fmt.Errorf("mismatch")
				}
				e.rec, err = o.parse(o.record(c.Record.Value), sub, pos, false)
				b.order = append(b.order, e.rec)
			default:
				sub, ok := x.(*oracleObj)
				if !ok {
					return fmt.Errorf("mismatch")
				}
				e.row = newOracleBody()
				here := fmt.Sprintf("%s%s[%d].", at, c.Name.Value, i)
				err = o.parseBody(e.row, *c.Row, sub, meta, pos, here, extra)
				if err == nil {
					err = o.unknown(sub, here, extra, *c.Row)
				}
				b.order = append(b.order, e.row.order...)
			}
			if err != nil {
				return err
			}
			elems = append(elems, e)
		}
		b.lists[c.Name.Value] = elems
	}
	return nil
}

func newOracleBody() *oracleBody {
	return &oracleBody{show: map[string]*string{}, canon: map[string]string{}, refs: map[string]*oracleRec{}, lists: map[string][]oracleElem{}}
}

func (o *oracle) unknown(obj *oracleObj, at string, extra map[string][2]string, groups ...Members) error {
	known := map[string]bool{}
	for _, m := range groups {
		for _, f := range m.Fields {
			known[oraclePath(f.Path, f.Name)[0]] = true
		}
		for _, r := range m.References {
			known[oraclePath(r.Path, r.Name)[0]] = true
		}
		for _, c := range m.Children {
			known[oraclePath(c.Path, c.Name)[0]] = true
		}
	}
	for _, k := range obj.keys {
		if known[k] {
			continue
		}
		switch o.spec.UnknownFields.Value {
		case "capture":
			extra[at+k] = [2]string{compactJSON(obj.vals[k]), o.canonJSON(obj.vals[k])}
		case "quarantine":
			return fmt.Errorf("unknown")
		}
	}
	return nil
}

func (o *oracle) parse(t *Record, obj *oracleObj, pos oraclePos, entry bool) (*oracleRec, error) {
	pos.off = obj.off
	r := &oracleRec{t: t, pos: pos, entry: entry || t.Entries.Set, body: newOracleBody(), extra: map[string][2]string{}}
	if err := o.parseBody(r.body, t.Members, obj, false, pos, "", r.extra); err != nil {
		return nil, err
	}
	if err := o.parseBody(r.body, t.Metadata, obj, true, pos, "", r.extra); err != nil {
		return nil, err
	}
	return r, o.unknown(obj, "", r.extra, t.Members, t.Metadata)
}

// write renders members as text: how says what stands for a nested record.
func (o *oracle) write(b *oracleBody, m Members, how func(*oracleRec) string, lists bool) string {
	var parts []string
	for _, f := range m.Fields {
		if c, ok := b.canon[f.Name.Value]; ok {
			parts = append(parts, fmt.Sprintf("%q=%q", f.Name.Value, c))
		}
	}
	for _, r := range m.References {
		if x := b.refs[r.Name.Value]; x != nil {
			parts = append(parts, fmt.Sprintf("%q->%s", r.Name.Value, how(x)))
		}
	}
	for _, c := range m.Children {
		elems, ok := b.lists[c.Name.Value]
		if !ok {
			continue
		}
		var items []string
		for _, e := range elems {
			switch {
			case e.rec != nil:
				items = append(items, how(e.rec))
			case e.row != nil:
				items = append(items, o.write(e.row, *c.Row, how, true))
			default:
				items = append(items, strconv.Quote(e.canon))
			}
		}
		if !lists {
			items = []string{"present"}
		}
		parts = append(parts, fmt.Sprintf("%q:[%s]", c.Name.Value, strings.Join(items, ";")))
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func (o *oracle) extras(r *oracleRec) string {
	var parts []string
	for k, v := range r.extra {
		parts = append(parts, fmt.Sprintf("%q=%s", k, v[1]))
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

func (o *oracle) same(r *oracleRec) string {
	if oraclePolicy(r.t.Dedup, "content_id") == "none" {
		return r.content
	}
	return r.key
}

// identify fills in identities bottom up and files the record.
func (o *oracle) identify(r *oracleRec) {
	for _, n := range r.body.order {
		o.identify(n)
	}
	name := r.t.Name.Value
	r.content = name + o.write(r.body, r.t.Members, func(x *oracleRec) string { return x.content }, true)
	switch oraclePolicy(r.t.Dedup, "content_id") {
	case "content_id":
		r.key = r.content
	case "none":
		r.key = fmt.Sprint(r.pos)
	default:
		byKey := func(x *oracleRec) string { return x.key }
		r.key = name + o.write(r.body, r.t.Members, byKey, false) + o.write(r.body, r.t.Metadata, byKey, false) + o.extras(r)
	}
	r.mid = o.write(r.body, r.t.Metadata, o.same, true) + o.extras(r)
	o.recs[name] = append(o.recs[name], r)
}

func (o *oracle) load(files []File, contents map[string]string) {
	o.recs, o.sid, o.tables = map[string][]*oracleRec{}, map[string]map[string]int{}, map[string][]string{}
	for i, f := range files {
		for n, line := range strings.Split(contents[f.Name], "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			v, err := oracleDecode(line)
			var r *oracleRec
			if err == nil {
				obj, ok := v.(*oracleObj)
				if !ok {
					err = fmt.Errorf("no object")
				} else {
					r, err = o.parse(o.record(o.spec.Root.Value), obj, oraclePos{i, n + 1, 0}, true)
				}
			}
			if err != nil {
				o.rejects = append(o.rejects, fmt.Sprintf("%s|%d", f.Name, n+1))
				continue
			}
			o.identify(r)
		}
	}
}

// result computes every table, or the error.
func (o *oracle) result(files []File) {
	survivors := map[string]map[string][]*oracleRec{} // type, key -> occurrences in order
	for i := range o.spec.Records {
		t := &o.spec.Records[i]
		name := t.Name.Value
		recs := o.recs[name]
		sort.SliceStable(recs, func(a, b int) bool { return recs[a].pos.less(recs[b].pos) })
		byKey := map[string][]*oracleRec{}
		var clash *oracleRec
		for _, r := range recs {
			byKey[r.key] = append(byKey[r.key], r)
			first := byKey[r.key][0]
			if oraclePolicy(t.Dedup, "content_id") != "content_id" || first.mid == r.mid {
				continue
			}
			switch oraclePolicy(t.OnMetadataConflict, "fail") {
			case "fail":
				if clash == nil {
					clash = r
				}
			case "quarantine":
				o.rejects = append(o.rejects, fmt.Sprintf("%s|%d", files[r.pos.file].Name, r.pos.line))
			}
		}
		if clash != nil && o.err == "" {
			first := byKey[clash.key][0]
			o.err = fmt.Sprintf("%s:%d %s:%d %s", files[clash.pos.file].Name, clash.pos.line, files[first.pos.file].Name, first.pos.line, o.differs(first, clash))
		}
		survivors[name] = byKey
	}
	if o.err != "" {
		return
	}
	live := map[*oracleRec]bool{}
	var reach func(r *oracleRec)
	reach = func(r *oracleRec) {
		occ := survivors[r.t.Name.Value][r.key]
		first := occ[0]
		if live[first] {
			return
		}
		live[first] = true
		for _, n := range o.held(first, first.t.Members) {
			reach(n)
		}
		for _, n := range o.held(o.metaOf(occ), first.t.Metadata) {
			reach(n)
		}
	}
	for _, byKey := range survivors {
		for _, occ := range byKey {
			if slices.ContainsFunc(occ, func(r *oracleRec) bool { return r.entry }) {
				reach(occ[0])
			}
		}
	}
	kept := map[string][][]*oracleRec{}
	for i := range o.spec.Records {
		name := o.spec.Records[i].Name.Value
		for _, occ := range survivors[name] {
			if live[occ[0]] {
				kept[name] = append(kept[name], occ)
			}
		}
		sort.Slice(kept[name], func(a, b int) bool { return kept[name][a][0].pos.less(kept[name][b][0].pos) })
		o.sid[name] = map[string]int{}
		for n, occ := range kept[name] {
			o.sid[name][occ[0].key] = n + 1
		}
	}
	o.print(files, kept)
}

func (o *oracle) metaOf(occ []*oracleRec) *oracleRec {
	if oraclePolicy(occ[0].t.OnMetadataConflict, "fail") == "last" {
		return occ[len(occ)-1]
	}
	return occ[0]
}

// held are the records that members hold, at any depth of owned rows.
func (o *oracle) held(r *oracleRec, m Members) []*oracleRec { return heldBy(r.body, m) }

func heldBy(b *oracleBody, m Members) (out []*oracleRec) {
	for _, r := range m.References {
		if x := b.refs[r.Name.Value]; x != nil {
			out = append(out, x)
		}
	}
	for _, c := range m.Children {
		for _, e := range b.lists[c.Name.Value] {
			switch {
			case e.rec != nil:
				out = append(out, e.rec)
			case e.row != nil:
				out = append(out, heldBy(e.row, *c.Row)...)
			}
		}
	}
	return out
}

func (o *oracle) differs(a, b *oracleRec) string {
	m := a.t.Metadata
	for _, f := range m.Fields {
		one := Members{Fields: []Field{f}}
		if o.write(a.body, one, o.same, true) != o.write(b.body, one, o.same, true) {
			return f.Name.Value
		}
	}
	for _, r := range m.References {
		one := Members{References: []Reference{r}}
		if o.write(a.body, one, o.same, true) != o.write(b.body, one, o.same, true) {
			return r.Name.Value
		}
	}
	for _, c := range m.Children {
		one := Members{Children: []Child{c}}
		if o.write(a.body, one, o.same, true) != o.write(b.body, one, o.same, true) {
			return c.Name.Value
		}
	}
	return "_extra"
}

func orNull(s *string) string {
	if s == nil {
		return "∅"
	}
	return *s
}

// row prints the members of a body in the order of the columns.
func (o *oracle) row(b, mb *oracleBody, m, meta Members) []string {
	var out []string
	for _, g := range []struct {
		b *oracleBody
		m Members
	}{{b, m}, {mb, meta}} {
		for _, f := range g.m.Fields {
			out = append(out, orNull(g.b.show[f.Name.Value]))
		}
	}
	for _, g := range []struct {
		b *oracleBody
		m Members
	}{{b, m}, {mb, meta}} {
		for _, r := range g.m.References {
			x := g.b.refs[r.Name.Value]
			if x == nil {
				out = append(out, "∅")
			} else {
				out = append(out, fmt.Sprint(o.sid[x.t.Name.Value][x.key]))
			}
		}
	}
	for _, g := range []struct {
		b *oracleBody
		m Members
	}{{b, m}, {mb, meta}} {
		for _, c := range g.m.Children {
			if c.Required.Set {
				continue
			}
			if elems, ok := g.b.lists[c.Name.Value]; ok {
				out = append(out, fmt.Sprint(len(elems)))
			} else {
				out = append(out, "∅")
			}
		}
	}
	return out
}

func (o *oracle) print(files []File, kept map[string][][]*oracleRec) {
	type occurrence struct {
		pos  oraclePos
		text string
	}
	var all []occurrence
	for i := range o.spec.Records {
		t := &o.spec.Records[i]
		name := t.Name.Value
		prefix := name + "__"
		if name == o.spec.Root.Value {
			prefix = ""
		}
		o.tables[name] = []string{}
		o.empty(prefix, t.Members)
		o.empty(prefix, t.Metadata)
		for n, occ := range kept[name] {
			first, meta := occ[0], o.metaOf(occ)
			row := append([]string{fmt.Sprint(n + 1)}, o.row(first.body, meta.body, t.Members, t.Metadata)...)
			if o.spec.UnknownFields.Value == "capture" {
				row = append(row, extraText(meta))
			}
			entry := slices.ContainsFunc(occ, func(r *oracleRec) bool { return r.entry })
			row = append(row, fmt.Sprint(entry))
			if o.spec.Occurrences.Value != "none" {
				row = append(row, fmt.Sprint(len(occ)))
			}
			row = append(row, files[first.pos.file].Name, fmt.Sprint(first.pos.line))
			o.tables[name] = append(o.tables[name], strings.Join(row, "|"))
			o.children(prefix, first.body, t.Members, []string{fmt.Sprint(n + 1)})
			o.children(prefix, meta.body, t.Metadata, []string{fmt.Sprint(n + 1)})
			for _, r := range occ {
				all = append(all, occurrence{r.pos, fmt.Sprintf("%s|%d|%s|%d", name, n+1, files[r.pos.file].Name, r.pos.line)})
			}
		}
	}
	if o.spec.Occurrences.Value == "table" {
		sort.Slice(all, func(a, b int) bool { return all[a].pos.less(all[b].pos) })
		o.tables["_occurrences"] = []string{}
		for _, x := range all {
			o.tables["_occurrences"] = append(o.tables["_occurrences"], x.text)
		}
	}
}

func extraText(r *oracleRec) string {
	if len(r.extra) == 0 {
		return "∅"
	}
	var parts []string
	for k, v := range r.extra {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v[0]))
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func (o *oracle) empty(prefix string, m Members) {
	for _, c := range m.Children {
		o.tables[prefix+c.Name.Value] = []string{}
		if c.Row != nil {
			o.empty(prefix+c.Name.Value+"__", *c.Row)
		}
	}
}

func (o *oracle) children(prefix string, b *oracleBody, m Members, at []string) {
	for _, c := range m.Children {
		name := prefix + c.Name.Value
		for i, e := range b.lists[c.Name.Value] {
			here := append(slices.Clone(at), fmt.Sprint(i))
			var row []string
			switch {
			case e.rec != nil:
				row = []string{fmt.Sprint(o.sid[e.rec.t.Name.Value][e.rec.key])}
			case e.row != nil:
				row = o.row(e.row, e.row, *c.Row, Members{})
				o.children(name+"__", e.row, *c.Row, here)
			default:
				row = []string{orNull(e.show)}
			}
			o.tables[name] = append(o.tables[name], strings.Join(append(here, row...), "|"))
		}
	}
}
