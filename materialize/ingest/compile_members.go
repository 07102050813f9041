package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"rbt/internal/diag"
)

// columnName is the column that a name of the user becomes: letters, digits
// and _, composed (NFC), anything else an underscore.
func columnName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.IsMark(r) {
			return r
		}
		return '_'
	}, norm.NFC.String(name))
}

// normalName is columnName without case: DuckDB compares names like that.
func normalName(name string) string { return strings.ToLower(columnName(name)) }

// relationWord checks a name that becomes part of a relation's name.
func (c *compiler) relationWord(t Text, what string) bool {
	switch {
	case t.Value == "":
		c.errorf(diag.IngestBadName, t.Pos, "", "a %s has an empty name", what)
	case strings.HasPrefix(t.Value, "_"):
		c.errorf(diag.IngestReservedName, t.Pos, "names that start with _ are rbt's own", "%s %s has a reserved name", what, t.Value)
	case columnName(t.Value) != norm.NFC.String(t.Value):
		c.errorf(diag.IngestBadName, t.Pos, "a child keeps its key with path:", "%s %q can hold letters, digits and _ only", what, t.Value)
	default:
		return true
	}
	return false
}

// scope is the names of one table while it is compiled.
type scope struct {
	c    *compiler
	cols map[string]Text
	keys map[string]Text // member names, for hashing
}

func (s *scope) column(col string, t Text, what string) {
	key := strings.ToLower(col)
	if first, ok := s.cols[key]; ok {
		s.c.clash(t, first, what)
		return
	}
	s.cols[key] = t
}

func (s *scope) member(t Text, what string) bool {
	switch {
	case t.Value == "":
		s.c.errorf(diag.IngestBadName, t.Pos, "", "a %s has an empty name", what)
		return false
	case strings.HasPrefix(t.Value, "_"):
		s.c.errorf(diag.IngestReservedName, t.Pos, "use another name and path: "+t.Value,
			"%s %s has a reserved name", what, t.Value)
		return false
	}
	if first, ok := s.keys[t.Value]; ok {
		s.c.clash(t, first, what)
		return false
	}
	s.keys[t.Value] = t
	return true
}

func (c *compiler) members(t *recType, r *Record) {
	t.node = newNode()
	sc := &scope{c: c, cols: map[string]Text{}, keys: map[string]Text{}}
	c.group(&t.shape, r.Members, false, sc, nil)
	c.group(&t.shape, r.Metadata, true, sc, nil)
	t.shape.sortParts()
}

// group compiles one Members block into a shape. outer is the chain of child
// names that leads to an owned row.
func (c *compiler) group(s *shape, m Members, meta bool, sc *scope, outer []string) {
	for _, f := range m.Fields {
		if !sc.member(f.Name, "field") {
			continue
		}
		typ, err := parseType(f.Type.Value)
		if err != nil {
			c.errorf(diag.IngestBadType, firstPos(f.Type, f.Name), typeHint(f.Type.Value), "field %s: %v", f.Name.Value, err)
			continue
		}
		fd := &field{name: f.Name.Value, col: columnName(f.Name.Value), typ: typ, required: f.Required.Set, meta: meta,
			prefix: appendName(nil, f.Name.Value)}
		sc.column(fd.col, f.Name, "field")
		c.insert(s.node, f.Path, f.Name, objEntry{kind: entryField, i: len(s.fields)})
		s.addPart(part{partField, len(s.fields), fd.name}, meta)
		s.fields = append(s.fields, fd)
	}
	for _, r := range m.References {
		if !sc.member(r.Name, "reference") {
			continue
		}
		target := c.lookup(Text{Value: r.Record.Value, Pos: firstPos(r.Record, r.Name)}, "reference "+r.Name.Value)
		rd := &ref{name: r.Name.Value, col: columnName(r.Name.Value) + "_sid", target: target, required: r.Required.Set, meta: meta,
			prefix: appendName(nil, r.Name.Value)}
		sc.column(rd.col, r.Name, "reference")
		c.insert(s.node, r.Path, r.Name, objEntry{kind: entryRef, i: len(s.refs)})
		s.addPart(part{partRef, len(s.refs), rd.name}, meta)
		s.refs = append(s.refs, rd)
	}
	for _, ch := range m.Children {
		c.child(s, ch, meta, sc, outer)
	}
}

func (c *compiler) child(s *shape, ch Child, meta bool, sc *scope, outer []string) {
	if !c.relationWord(ch.Name, "child") || !sc.member(ch.Name, "child") {
		return
	}
	chain := append(slices.Clip(outer), ch.Name.Value)
	l := &list{name: ch.Name.Value, required: ch.Required.Set, meta: meta, level: len(chain), prefix: appendName(nil, ch.Name.Value),
		refName: strings.Join(chain, ".")}
	kinds := 0
	if ch.Type.Value != "" {
		kinds++
		typ, err := parseType(ch.Type.Value)
		if err != nil {
			c.errorf(diag.IngestBadType, firstPos(ch.Type, ch.Name), typeHint(ch.Type.Value), "child %s: %v", ch.Name.Value, err)
		}
		l.kind, l.typ = listScalar, typ
	}
	if ch.Record.Value != "" {
		kinds++
		l.kind, l.target = listLink, c.lookup(ch.Record, "child "+ch.Name.Value)
	}
	if ch.Row != nil {
		kinds++
		l.kind = listOwned
		l.row = &shape{name: s.rec.name + "." + strings.Join(chain, "."), rec: s.rec, owned: true, level: len(chain), node: newNode()}
		inner := &scope{c: c, cols: map[string]Text{}, keys: map[string]Text{}}
		c.group(l.row, *ch.Row, meta, inner, chain)
		l.row.sortParts()
	}
	switch {
	case kinds == 0:
		c.errorf(diag.IngestBadChild, ch.Name.Pos, "a type for a list of values, record: for one of other records, or fields: for one of rows",
			"child %s does not say what its list holds", ch.Name.Value)
	case kinds > 1:
		c.errorf(diag.IngestBadChild, ch.Name.Pos, "a list holds one of them: leave the others out",
			"child %s says several things of what its list holds: give one of a type, record: and fields:", ch.Name.Value)
	}
	if !l.required {
		l.countCol = columnName(ch.Name.Value) + "_count"
		sc.column(l.countCol, ch.Name, "count of the child")
	}
	c.insert(s.node, ch.Path, ch.Name, objEntry{kind: entryList, i: len(s.lists)})
	s.addPart(part{partList, len(s.lists), l.name}, meta)
	s.lists = append(s.lists, l)
}

// addPart files a member for hashing. Everything below a metadata list is
// compared as metadata, so its own rows have identity parts only.
func (s *shape) addPart(p part, meta bool) {
	if meta && !s.owned {
		s.meta = append(s.meta, p)
		return
	}
	s.ident = append(s.ident, p)
}

func (s *shape) sortParts() {
	byName := func(a, b part) int { return cmp.Compare(a.name, b.name) }
	slices.SortFunc(s.ident, byName)
	slices.SortFunc(s.meta, byName)
}

func firstPos(a, b Text) diag.Pos {
	if a.Pos.IsZero() {
		return b.Pos
	}
	return a.Pos
}

func typeHint(t string) string { return didYouMean(strings.ToLower(strings.TrimSpace(t)), typeNames()) }

func newNode() *objNode { return &objNode{lookup: map[string]int{}} }

// insert places a member at its path in the tree of keys.
func (c *compiler) insert(n *objNode, path, name Text, e objEntry) {
	keys := []string{name.Value}
	at := name
	if path.Value != "" {
		at = path
		parsed, err := parsePath(path.Value)
		if err != nil {
			c.errorf(diag.IngestBadPath, path.Pos, `keys joined with dots; a key that holds a dot stands in double quotes`, "path of %s: %v", name.Value, err)
			return
		}
		keys = parsed
	}
	for i, k := range keys {
		last := i == len(keys)-1
		j, ok := n.lookup[k]
		switch {
		case ok && (last || n.entries[j].kind != entrySub):
			c.errorf(diag.IngestBadPath, at.Pos, "read it once and derive the other in a model", "%s reads the key %s, which another member reads already",
				name.Value, strings.Join(keys[:i+1], "."))
			return
		case ok:
			n = n.entries[j].sub
		case last:
			e.key = k
			n.put(e)
		default:
			sub := newNode()
			n.put(objEntry{key: k, kind: entrySub, sub: sub})
			n = sub
		}
	}
}

func (n *objNode) put(e objEntry) {
	n.lookup[e.key] = len(n.entries)
	n.entries = append(n.entries, e)
}

// allow makes a path known without reading it, so that it is no unknown field.
func (n *objNode) allow(path []string) {
	for i, k := range path {
		j, ok := n.lookup[k]
		switch {
		case ok && n.entries[j].kind == entrySub:
			n = n.entries[j].sub
		case ok:
			return
		case i == len(path)-1:
			n.put(objEntry{key: k, kind: entrySkip})
		default:
			sub := newNode()
			n.put(objEntry{key: k, kind: entrySub, sub: sub})
			n = sub
		}
	}
}

// parsePath splits a."b.c".d into its keys.
func parsePath(text string) ([]string, error) {
	var keys []string
	rest := text
	for {
		var key string
		if strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("%q has an open quote", text)
			}
			key, rest = rest[1:1+end], rest[end+2:]
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			key, rest = rest[:end], rest[end:]
			if key == "" || strings.ContainsAny(key, `"[]*$`) {
				return nil, fmt.Errorf("%q is not a list of keys", text)
			}
		}
		keys = append(keys, key)
		if rest == "" {
			return keys, nil
		}
		if !strings.HasPrefix(rest, ".") {
			return nil, fmt.Errorf("%q has text after a quoted key", text)
		}
		rest = rest[1:]
	}
}
