package ingest

import (
	"context"
	"fmt"
	"strings"

	"rbt/internal/diag"
)

// place is where an occurrence stands, for messages.
func (m *merger) place(ctx context.Context, t *recType, pos int64) (diag.Pos, error) {
	var line int64
	err := m.s.Query(ctx, fmt.Sprintf("SELECT l FROM %s WHERE p = %d", m.shard(t.table), pos), func(v []any) error {
		line = v[0].(int64)
		return nil
	})
	return diag.Pos{File: m.j.Files[pos>>m.shift].Name, Line: int(line)}, err
}

// number reads the single BIGINT of a query.
func (m *merger) number(ctx context.Context, sql string) (n int64, err error) {
	err = m.s.Query(ctx, sql, func(v []any) error {
		n, _ = v[0].(int64)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("check ingest: %w", err)
	}
	return n, nil
}

// checkShards compares the rows of every shard with what the workers wrote.
func (m *merger) checkShards(ctx context.Context) error {
	for _, t := range m.p.tables {
		n, err := m.number(ctx, "SELECT count(*) FROM "+m.shard(t))
		if err != nil {
			return err
		}
		if n != m.set.rows[t.ord] {
			return checkFailed("the shards of %s hold %d rows, %d were written", t.name, n, m.set.rows[t.ord])
		}
	}
	return nil
}

// checkOccurrences compares the occurrences after collapsing with those that
// the encoders counted.
func (m *merger) checkOccurrences(ctx context.Context, t *recType) error {
	n, err := m.number(ctx, "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM "+m.collapsed(t))
	if err != nil {
		return err
	}
	if want := m.set.tally.occurrences[t.ord]; n != want {
		return checkFailed("%s: %d occurrences were read, %d reached the merge", t.name, want, n)
	}
	return nil
}

// differing lists, for a metadata member in the declared order, its name and a
// condition on the rows a and b. NaN differs from everything.
func differing(t *recType) (names, conds, shows []string) {
	for i, f := range t.fields {
		if !f.meta {
			continue
		}
		c := fmt.Sprintf("a.f%d IS DISTINCT FROM b.f%d", i, i)
		if f.typ.isFloat() && f.typ.lists == 0 {
			c = fmt.Sprintf("(%s OR isnan(a.f%d))", c, i)
		}
		names, conds = append(names, f.name), append(conds, c)
		shows = append(shows, fmt.Sprintf("coalesce(CAST(a.f%d AS VARCHAR), 'NULL') || ' and ' || coalesce(CAST(b.f%d AS VARCHAR), 'NULL')", i, i))
	}
	for i, r := range t.refs {
		if r.meta {
			names, conds = append(names, r.name), append(conds, fmt.Sprintf("a.h%d IS DISTINCT FROM b.h%d", i, i))
			shows = append(shows, "'different records'")
		}
	}
	for i, l := range t.lists {
		if l.meta {
			names, conds = append(names, l.name), append(conds, fmt.Sprintf("a.g%d IS DISTINCT FROM b.g%d", i, i))
			shows = append(shows, "'different lists'")
		}
	}
	if t.extra >= 0 {
		names, conds = append(names, "_extra"), append(conds, "a.x IS DISTINCT FROM b.x")
		shows = append(shows, "coalesce(a.x, 'NULL') || ' and ' || coalesce(b.x, 'NULL')")
	}
	return names, conds, shows
}

// choose is a CASE over the first condition that holds.
func choose(conds, values []string, otherwise string) string {
	var b strings.Builder
	b.WriteString("CASE")
	for i, c := range conds {
		fmt.Fprintf(&b, " WHEN %s THEN %s", c, values[i])
	}
	b.WriteString(" ELSE " + otherwise + " END")
	return b.String()
}

// pairs is the query of all occurrences (b) whose metadata differs from that of
// the first with the same content (a).
func (m *merger) pairs(t *recType, items string) string {
	rows := m.shard(t.table)
	return fmt.Sprintf("SELECT %s FROM %s k JOIN %s a ON a.p = k.p JOIN %s b ON b.k = k.k AND b.m <> a.m WHERE k.clash%s",
		items, m.collapsed(t), rows, rows, m.notStored())
}

// notStored leaves out records that are stored already: those are compared with
// what is stored.
func (m *merger) notStored() string {
	if m.prev == nil {
		return ""
	}
	return " AND NOT k.old"
}

// conflicts looks for equal content with other metadata and does what the
// policy says.
func (m *merger) conflicts(ctx context.Context, t *recType) error {
	if t.conflict == conflictFirst || t.conflict == conflictLast {
		return nil
	}
	names, conds, shows := differing(t)
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = text(n)
	}
	name := choose(conds, quoted, "'metadata'")
	if t.conflict == conflictQuarantine {
		return m.quarantineConflicts(ctx, t, name)
	}
	items := "k.p, b.p, " + name + ", left(" + choose(conds, shows, "'different values'") + ", 200), a.l, b.l"
	var d *diag.Diagnostic
	err := m.s.Query(ctx, m.pairs(t, items)+" ORDER BY b.p LIMIT 1", func(v []any) error {
		at := func(pos, line any) diag.Pos {
			return diag.Pos{File: m.j.Files[pos.(int64)>>m.shift].Name, Line: int(line.(int64))}
		}
		found := diag.Errorf(diag.IngestConflict, at(v[1], v[5]), "%s: the metadata field %s differs from that of the same content before: %s", t.name, v[2], v[3]).
			WithNote(at(v[0], v[4]), "the first with this content").
			WithHint("move the field into the identity, or set on_metadata_conflict to first, last or quarantine")
		d = &found
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare metadata of %s: %w", t.name, err)
	}
	if d != nil {
		return *d
	}
	return nil
}

func (m *merger) quarantineConflicts(ctx context.Context, t *recType, name string) error {
	items := fmt.Sprintf("b.p AS p, b.l AS l, b.p & %d AS o, CAST(NULL AS BIGINT) AS n, '$' AS rp, %s AS fp, %s AS reason, %s || %s || fa.name || ':' || CAST(a.l AS VARCHAR) AS message, CAST(NULL AS VARCHAR) AS raw",
		int64(1)<<m.shift-1, name, text(reasonConflict), text(t.name+": other metadata than the same content in "), "''")
	rows := m.shard(t.table)
	q := fmt.Sprintf("SELECT %s FROM %s k JOIN %s a ON a.p = k.p JOIN %s b ON b.k = k.k AND b.m <> a.m %s WHERE k.clash%s",
		items, m.collapsed(t), rows, rows, m.fileOf("fa", "a.p"), m.notStored())
	return m.addConflicts(ctx, t, q)
}

// addConflicts takes in rejects that the merge found.
func (m *merger) addConflicts(ctx context.Context, t *recType, q string) error {
	n, err := m.number(ctx, "SELECT count(*) FROM ("+q+")")
	if err != nil {
		return err
	}
	m.conflict = append(m.conflict, q)
	m.j.stats.Rejects += n
	if limit := m.p.maxRejects; limit >= 0 && m.j.stats.Rejects > limit {
		return diag.Errorf(diag.IngestTooManyRejects, diag.Pos{}, "%s: with %d records of other metadata on the same content, more records are bad than max_rejects allows (%d)",
			t.name, n, limit)
	}
	return nil
}

// idGroups are the sets of types whose ids are unique together.
func (m *merger) idGroups() [][]*recType {
	var groups [][]*recType
	seen := map[*family]int{}
	for _, t := range m.p.types {
		switch {
		case t.id == nil:
		case t.family == nil:
			groups = append(groups, []*recType{t})
		default:
			i, ok := seen[t.family]
			if !ok {
				i = len(groups)
				seen[t.family] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], t)
		}
	}
	return groups
}

// checkIDs finds one id twice.
func (m *merger) checkIDs(ctx context.Context) error {
	for _, group := range m.idGroups() {
		var parts []string
		explicit := false
		for i, t := range group {
			from, meta := m.rowOf(t)
			q := fmt.Sprintf("SELECT %s AS id, %d AS o, k.p AS p FROM %s WHERE NOT k.old", strings.ReplaceAll(idExpr(t), "mr.", meta+"."), i, from)
			if t.id.from != nil {
				explicit = true
				if !t.id.unique {
					q += fmt.Sprintf(" AND %s.%s IS NULL", map[bool]string{true: meta, false: "r"}[t.id.from.meta], t.table.cols[t.id.from.colIdx].name)
				}
			}
			parts = append(parts, q)
		}
		if len(group) == 1 && !explicit {
			continue // the numbers differ
		}
		parts = append(parts, m.storedIDs(group)...)
		err := m.firstTwice(ctx, strings.Join(parts, " UNION ALL "), group)
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) firstTwice(ctx context.Context, ids string, group []*recType) error {
	type hit struct {
		id   string
		o    [2]int64
		p    [2]int64
		some bool
	}
	var h hit
	q := fmt.Sprintf(`SELECT id, arg_min(o, p), min(p), CAST(arg_min(o, p, 2)[2] AS INTEGER), arg_min(p, p, 2)[2] FROM (%s) WHERE id IS NOT NULL
		GROUP BY id HAVING count(*) > 1 AND max(p) >= 0 ORDER BY 5 LIMIT 1`, ids)
	err := m.s.Query(ctx, q, func(v []any) error {
		h = hit{id: v[0].(string), o: [2]int64{int64(v[1].(int32)), int64(v[3].(int32))}, p: [2]int64{v[2].(int64), v[4].(int64)}, some: true}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check ids: %w", err)
	}
	if !h.some {
		return nil
	}
	first, err := m.storedOrNew(ctx, group[h.o[0]], h.p[0], "_id = "+text(h.id))
	if err != nil {
		return err
	}
	second, err := m.place(ctx, group[h.o[1]], h.p[1])
	if err != nil {
		return err
	}
	return diag.Errorf(diag.IngestDuplicateID, second, "the id %s of %s is taken already", h.id, group[h.o[1]].name).
		WithNote(first, "the %s that has it", group[h.o[0]].name)
}

func (m *merger) storedOrNew(ctx context.Context, t *recType, pos int64, cond string) (diag.Pos, error) {
	if pos < 0 {
		return m.storedPlace(ctx, t, cond)
	}
	return m.place(ctx, t, pos)
}

// checkFamilies finds one content id in two members of a family.
func (m *merger) checkFamilies(ctx context.Context) error {
	for _, f := range m.p.families {
		var o, p [2]int64
		found := false
		cid := ""
		rows := m.familyRows(f)
		if files := m.kept(f.folder); len(files) > 0 {
			rows += m.storedFamily(f, files)
		}
		q := fmt.Sprintf("SELECT min(o), max(o), arg_min(p, o), arg_max(p, o), CAST(c AS VARCHAR) FROM (%s) GROUP BY c HAVING min(o) <> max(o) AND max(p) >= 0 ORDER BY max(p), c LIMIT 1", rows)
		err := m.s.Query(ctx, q, func(v []any) error {
			o, p, found = [2]int64{int64(v[0].(int32)), int64(v[1].(int32))}, [2]int64{v[2].(int64), v[3].(int64)}, true
			cid = v[4].(string)
			return nil
		})
		if err != nil {
			return fmt.Errorf("check family %s: %w", f.name, err)
		}
		if !found {
			continue
		}
		if p[1] < p[0] { // the later place is the surprising one
			o, p = [2]int64{o[1], o[0]}, [2]int64{p[1], p[0]}
		}
		a, b := f.members[o[0]], f.members[o[1]]
		first, err := m.storedOrNew(ctx, a, p[0], "_content_id = "+text(cid))
		if err != nil {
			return err
		}
		second, err := m.place(ctx, b, p[1])
		if err != nil {
			return err
		}
		return diag.Errorf(diag.IngestTwoTypes, second, "one content id is claimed by %s and %s of the family %s", a.name, b.name, f.name).
			WithNote(first, "the %s", a.name).WithHint("give the record types different identity names")
	}
	return nil
}

// storedFamily adds the dispatch rows that are published; their members keep
// their places in the declaration, since another order is refused.
func (m *merger) storedFamily(f *family, files []string) string {
	var cases strings.Builder
	for i, t := range f.members {
		fmt.Fprintf(&cases, " WHEN %s THEN %d", text(t.name), i)
	}
	return fmt.Sprintf(" UNION ALL SELECT _content_id, CASE _record%s END, _record, _sid, CAST(-1 AS BIGINT), true FROM %s", cases.String(), readParquet(files))
}

// verify reads the staged files back: numbers are dense, references resolved,
// families complete.
func (m *merger) verify(ctx context.Context) error {
	for _, o := range m.outputs() {
		st := m.staged[o.Folder]
		paths := make([]string, len(st.Files))
		for i, f := range st.Files {
			paths[i] = f.Path
		}
		if len(paths) == 0 {
			continue // an append without rows for it
		}
		rel := readParquet(paths)
		switch o.Kind {
		case OutputRecord:
			n, base := m.fresh[o.rec.ord], m.base[o.rec.ord]
			if st.Rows != n {
				return checkFailed("%s: %d rows survive, the staged file holds %d", o.Relation, n, st.Rows)
			}
			if n == 0 {
				continue
			}
			bad, err := m.number(ctx, fmt.Sprintf("SELECT CAST(count(*) <> %d OR min(_sid) <> %d OR max(_sid) <> %d AS BIGINT) FROM %s", n, base+1, base+n, rel))
			if err != nil {
				return err
			}
			if bad != 0 {
				return checkFailed("%s: the numbers are not dense", o.Relation)
			}
			err = m.resolved(ctx, o, &o.rec.shape, rel)
			if err != nil {
				return err
			}
		case OutputChild:
			if err := m.verifyChild(ctx, o, rel); err != nil {
				return err
			}
		case OutputFamily:
			n, err := m.number(ctx, "SELECT count(*) FROM ("+m.familyQuery(o.family)+")")
			if err != nil {
				return err
			}
			if n != st.Rows {
				return checkFailed("%s: %d content ids, %d rows", o.Relation, n, st.Rows)
			}
		case OutputRejects:
			if st.Rows != m.j.stats.Rejects {
				return checkFailed("%s: %d rejects, %d rows", o.Relation, m.j.stats.Rejects, st.Rows)
			}
		}
	}
	return nil
}

func (m *merger) verifyChild(ctx context.Context, o Output, rel string) error {
	if o.list.kind == listLink {
		col := ident(columnName(o.list.target.name) + "_sid")
		return m.noNulls(ctx, o, rel, col)
	}
	if o.list.kind == listOwned {
		return m.resolved(ctx, o, o.list.row, rel)
	}
	return nil
}

func (m *merger) resolved(ctx context.Context, o Output, s *shape, rel string) error {
	for _, r := range s.refs {
		if r.required {
			if err := m.noNulls(ctx, o, rel, ident(r.col)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) noNulls(ctx context.Context, o Output, rel, col string) error {
	n, err := m.number(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL", rel, col))
	if err != nil {
		return err
	}
	if n > 0 {
		return checkFailed("%s: %d references in %s lead nowhere", o.Relation, n, col)
	}
	return nil
}
