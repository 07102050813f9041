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

// togetherMost is how many queries share a statement: many enough to cost
// little, few enough for the depth of a parse tree.
const togetherMost = 100

// numbers reads one BIGINT from each of the queries, in few statements: apart
// they would cost a small load more than what they look at.
func (m *merger) numbers(ctx context.Context, queries []string) ([]int64, error) {
	out := make([]int64, len(queries))
	for first := 0; first < len(queries); first += togetherMost {
		var parts []string
		for i, q := range queries[first:min(first+togetherMost, len(queries))] {
			parts = append(parts, fmt.Sprintf("SELECT %d AS i, n FROM (%s) AS t(n)", first+i, q))
		}
		err := m.s.Query(ctx, strings.Join(parts, " UNION ALL "), func(v []any) error {
			n, ok := v[1].(int64)
			if !ok {
				return fmt.Errorf("a count came as %T", v[1])
			}
			out[v[0].(int32)] = n
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("check ingest: %w", err)
		}
	}
	return out, nil
}

// checkShards compares the rows of every shard with what the workers wrote.
func (m *merger) checkShards(ctx context.Context) error {
	queries := make([]string, len(m.p.tables))
	for i, t := range m.p.tables {
		queries[i] = "SELECT count(*) FROM " + m.shard(t)
	}
	counts, err := m.numbers(ctx, queries)
	if err != nil {
		return err
	}
	for i, t := range m.p.tables {
		if counts[i] != m.set.rows[t.ord] {
			return checkFailed("the shards of %s hold %d rows, %d were written", t.name, counts[i], m.set.rows[t.ord])
		}
	}
	return nil
}

// checkOccurrences compares the occurrences after collapsing with those that
// the encoders counted.
func (m *merger) checkOccurrences(ctx context.Context) error {
	queries := make([]string, len(m.p.types))
	for i, t := range m.p.types {
		queries[i] = "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM " + m.collapsed(t)
		if t.dedup == dedupNone {
			queries[i] = "SELECT count(*) FROM " + m.collapsed(t)
		}
	}
	counts, err := m.numbers(ctx, queries)
	if err != nil {
		return err
	}
	for i, t := range m.p.types {
		if want := m.set.tally.occurrences[t.ord]; counts[i] != want {
			return checkFailed("%s: %d occurrences were read, %d reached the merge", t.name, want, counts[i])
		}
	}
	return nil
}

// countSurvivors learns how many numbers this load gives, and how many stored
// records it has met again.
func (m *merger) countSurvivors(ctx context.Context) error {
	var queries []string
	for _, t := range m.p.types {
		queries = append(queries, "SELECT count(*) FILTER (NOT old) FROM "+m.keep(t), "SELECT count(*) FILTER (old) FROM "+m.keep(t))
	}
	counts, err := m.numbers(ctx, queries)
	if err != nil {
		return err
	}
	for i, t := range m.p.types {
		m.fresh[t.ord], m.again[t.ord] = counts[2*i], counts[2*i+1]
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
	file, names := m.fileOf("fa", "a.p")
	items := fmt.Sprintf("b.p AS p, b.l AS l, b.p & %d AS o, CAST(NULL AS BIGINT) AS n, '$' AS rp, %s AS fp, %s AS reason, %s || %s || ':' || CAST(a.l AS VARCHAR) AS message, CAST(NULL AS VARCHAR) AS raw",
		int64(1)<<m.shift-1, name, text(reasonConflict), text(t.name+": other metadata than the same content in "), file)
	rows := m.shard(t.table)
	q := fmt.Sprintf("SELECT %s FROM %s k JOIN %s a ON a.p = k.p JOIN %s b ON b.k = k.k AND b.m <> a.m %s WHERE k.clash%s",
		items, m.collapsed(t), rows, rows, names, m.notStored())
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
			from, row, meta := m.rowOf(t)
			q := fmt.Sprintf("SELECT %s AS id, %d AS o, k.p AS p FROM %s WHERE NOT k.old", idExpr(t, row, meta), i, from)
			if t.id.from != nil {
				explicit = true
				if !t.id.unique {
					q += fmt.Sprintf(" AND %s.%s IS NULL", map[bool]string{true: meta, false: row}[t.id.from.meta], t.table.cols[t.id.from.colIdx].name)
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
	v := &verification{}
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
			v.expect(0, o.Relation+": the numbers are not dense",
				fmt.Sprintf("SELECT CAST(count(*) <> %d OR min(_sid) <> %d OR max(_sid) <> %d AS BIGINT) FROM %s", n, base+1, base+n, rel))
			v.resolved(o, &o.rec.shape, rel)
		case OutputChild:
			v.child(o, rel)
		case OutputFamily:
			v.expect(st.Rows, fmt.Sprintf("%s has %d rows, and another number of content ids", o.Relation, st.Rows), "SELECT count(*) FROM ("+m.familyQuery(o.family)+")")
		case OutputRejects:
			if st.Rows != m.j.stats.Rejects {
				return checkFailed("%s: %d rejects, %d rows", o.Relation, m.j.stats.Rejects, st.Rows)
			}
		}
	}
	counts, err := m.numbers(ctx, v.queries)
	if err != nil {
		return err
	}
	for i, n := range counts {
		if n != v.want[i] {
			return checkFailed("%s", v.faults[i])
		}
	}
	return nil
}

// verification is the questions to the staged files: each is a query of one
// number, what that has to be, and what is wrong where it is not.
type verification struct {
	queries, faults []string
	want            []int64
}

func (v *verification) expect(want int64, fault, query string) {
	v.queries, v.faults, v.want = append(v.queries, query), append(v.faults, fault), append(v.want, want)
}

func (v *verification) child(o Output, rel string) {
	switch o.list.kind {
	case listLink:
		v.noNulls(o, rel, ident(columnName(o.list.target.name)+"_sid"))
	case listOwned:
		v.resolved(o, o.list.row, rel)
	}
}

func (v *verification) resolved(o Output, s *shape, rel string) {
	for _, r := range s.refs {
		if r.required {
			v.noNulls(o, rel, ident(r.col))
		}
	}
}

func (v *verification) noNulls(o Output, rel, col string) {
	v.expect(0, fmt.Sprintf("%s: references in %s lead nowhere", o.Relation, col), fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL", rel, col))
}
