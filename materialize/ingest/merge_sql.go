package ingest

import (
	"fmt"
	"strings"
)

// query is the SELECT of one output. Every one ends in a total order, so that
// its bytes do not depend on threads.
func (m *merger) query(o Output) string {
	switch o.Kind {
	case OutputRecord:
		return m.recordQuery(o.rec)
	case OutputChild:
		return m.childQuery(o.rec, o.list)
	case OutputFamily:
		return m.familyQuery(o.family)
	case OutputRejects:
		return m.rejectQuery()
	case OutputOccurrences:
		return m.occurrenceQuery()
	case outputLedger:
		return m.ledgerQuery()
	case outputKeys:
		return m.keysQuery(o.rec)
	case outputUpdates:
		return m.updatesQuery(o.rec)
	default:
		return m.loadQuery()
	}
}

func as(expr, name string) string { return expr + " AS " + ident(name) }

func castJSON(expr string, t scalar) string {
	if t.kind != kJSON {
		return expr
	}
	return fmt.Sprintf("CAST(%s AS %s)", expr, t.SQL())
}

// joins collects what a query joins to resolve references.
type joins struct {
	m   *merger
	sql []string
}

// target joins the survivors of a record type on a key and returns the alias.
func (j *joins) target(t *recType, key string) string {
	alias := fmt.Sprintf("t%d", len(j.sql))
	j.sql = append(j.sql, fmt.Sprintf("LEFT JOIN %s %s ON %s.k = %s", j.m.keep(t), alias, alias, key))
	return alias + ".sid"
}

// members are the select items of a shape's members. row and meta are the
// aliases that identity and metadata come from.
func (m *merger) members(s *shape, row, meta string, j *joins) []string {
	pick := func(isMeta bool) string {
		if isMeta {
			return meta
		}
		return row
	}
	var items []string
	for i, f := range s.fields {
		items = append(items, as(castJSON(fmt.Sprintf("%s.f%d", pick(f.meta), i), f.typ), f.col))
	}
	for i, r := range s.refs {
		items = append(items, as(j.target(r.target, fmt.Sprintf("%s.r%d", pick(r.meta), i)), r.col))
	}
	for i, l := range s.lists {
		if l.countCol != "" {
			items = append(items, as(fmt.Sprintf("%s.n%d", pick(l.meta), i), l.countCol))
		}
	}
	if s.extra >= 0 {
		items = append(items, as("CAST("+meta+".x AS JSON)", "_extra"))
	}
	return items
}

// idExpr is the _id of a survivor k with its row, and the row whose metadata
// counts.
func idExpr(t *recType, row, meta string) string {
	minted := "NULL"
	if t.id.base != "" {
		minted = fmt.Sprintf("%s || CAST((k.sid - 1) * %d + %d AS VARCHAR)", text(t.id.base+"-"+t.id.series+"-"), t.famSize, t.place+1)
	}
	if t.id.from == nil {
		return minted
	}
	if t.id.from.meta {
		row = meta
	}
	from := fmt.Sprintf("CAST(%s.%s AS VARCHAR)", row, t.table.cols[t.id.from.colIdx].name)
	return "coalesce(" + from + ", " + minted + ")"
}

// rowOf joins the survivor k, its row and the row whose metadata counts, and
// gives the aliases of these two. Where workers have numbered the records, one
// row is all of that.
func (m *merger) rowOf(t *recType) (sql, row, meta string) {
	if t.table.numbered {
		return "(" + m.ranked(t, "*") + ") k", "k", "k"
	}
	sql = fmt.Sprintf("%s k JOIN %s r ON r.p = k.p", m.keep(t), m.shard(t.table))
	if !t.lastMeta() {
		return sql, "r", "r"
	}
	return sql + fmt.Sprintf(" JOIN %s mr ON mr.p = k.lp", m.shard(t.table)), "r", "mr"
}

func contentID(t *recType, row string) string {
	if t.hasCid {
		return row + ".c"
	}
	return "k.k"
}

func (m *merger) recordQuery(t *recType) string {
	from, row, meta := m.rowOf(t)
	j := &joins{m: m}
	items := []string{as("k.sid", "_sid"), as(contentID(t, row), "_content_id")}
	if t.id != nil {
		items = append(items, as(idExpr(t, row, meta), "_id"))
	}
	items = append(items, m.members(&t.shape, row, meta, j)...)
	entry, n := "k.e", "k.n"
	if t.dedup == dedupNone {
		entry, n = row+".e", "CAST(1 AS BIGINT)"
	}
	items = append(items, as(entry, "_is_entry"))
	if m.p.occurrences != occurrencesNone {
		items = append(items, as(n, "_occurrences"))
	}
	file, names := m.fileOf("fn", row+".p")
	items = append(items, as(file, "_file"), as(row+".l", "_line"), as(m.loadID(), "_load_id"))
	return "SELECT " + strings.Join(items, ", ") + " FROM " + from + " " + strings.Join(j.sql, " ") + " " + names + " WHERE NOT k.old ORDER BY k.sid"
}

func (m *merger) loadID() string { return fmt.Sprintf("CAST(%d AS BIGINT)", m.j.LoadID) }

func (m *merger) childQuery(t *recType, l *list) string {
	j := &joins{m: m}
	items := []string{as("k.sid", "_parent_sid")}
	order := []string{"k.sid"}
	out := outputIndexColumns(l.level)
	for i, c := range indexColumns(l.level) {
		items = append(items, as("c."+c, out[i]))
		order = append(order, "c."+c)
	}
	switch l.kind {
	case listScalar:
		items = append(items, as(castJSON("c.v", l.typ), "value"))
	case listLink:
		items = append(items, as(j.target(l.target, "c.k"), columnName(l.target.name)+"_sid"))
	case listOwned:
		items = append(items, m.members(l.row, "c", "c", j)...)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM " + m.shard(l.table) + " c JOIN " + m.keep(t) + " k ON c.p = " + t.owner(l.meta) + " " +
		strings.Join(j.sql, " ") + " WHERE NOT k.old ORDER BY " + strings.Join(order, ", ")
}

// members of a family with content id c, place of the type o, name rec, number
// sid and position p.
func (m *merger) familyRows(f *family) string {
	parts := make([]string, len(f.members))
	for i, t := range f.members {
		from, row := m.keep(t)+" k", ""
		if t.hasCid {
			from, row, _ = m.rowOf(t)
		}
		parts[i] = fmt.Sprintf("SELECT %s AS c, %d AS o, %s AS rec, k.sid AS sid, k.p AS p, k.old AS old FROM %s", contentID(t, row), i, text(t.name), from)
	}
	return strings.Join(parts, " UNION ALL ")
}

func (m *merger) familyQuery(f *family) string {
	stored := ""
	if files := m.kept(f.folder); len(files) > 0 {
		stored = " ANTI JOIN " + readParquet(files) + " s ON s._content_id = x.c"
	}
	return fmt.Sprintf("SELECT c AS _content_id, any_value(rec) AS _record, min(sid) AS _sid FROM (%s) x%s WHERE NOT x.old GROUP BY c ORDER BY any_value(o), min(sid)",
		m.familyRows(f), stored)
}

func (m *merger) rejectQuery() string {
	parts := append([]string{"SELECT * FROM " + m.shard(m.p.rejects)}, m.conflict...)
	file, names := m.fileOf("fn", "x.p")
	return fmt.Sprintf(`SELECT %s AS file, x.l AS line, x.o AS byte_offset, x.n AS byte_length, x.rp AS record_path, x.fp AS field_path,
		x.reason AS reason, x.message AS message, x.raw AS raw, %s AS _load_id
		FROM (%s) x %s ORDER BY x.p, x.o, x.l, x.reason, x.fp, x.message`, file, m.loadID(), strings.Join(parts, " UNION ALL "), names)
}

func (m *merger) occurrenceQuery() string {
	parts := make([]string, len(m.p.types))
	for i, t := range m.p.types {
		parts[i] = fmt.Sprintf("SELECT %s AS rec, k.sid AS sid, o.p AS p, o.l AS l FROM %s o JOIN %s k ON k.k = o.k WHERE o.t = %d",
			text(t.name), m.shard(m.p.occ), m.keep(t), t.ord)
	}
	file, names := m.fileOf("fn", "x.p")
	return fmt.Sprintf(`SELECT x.rec AS _record, x.sid AS _sid, %s AS _file, x.l AS _line, %s AS _load_id FROM (%s) x %s ORDER BY x.p`,
		file, m.loadID(), strings.Join(parts, " UNION ALL "), names)
}

func (m *merger) loadQuery() string {
	st := m.j.stats
	return fmt.Sprintf(`SELECT %s AS _load_id, CAST(%d AS BIGINT) AS files, CAST(%d AS BIGINT) AS bytes, CAST(%d AS BIGINT) AS records,
		CAST(%d AS BIGINT) AS rejects, %s AS rbt_version`, m.loadID(), st.Files, st.Bytes, st.Records, st.Rejects, text(m.j.Version))
}
