package ingest

import (
	"context"
	"fmt"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/materialize"
)

// kept are the published parts of a folder that an append builds upon.
func (m *merger) kept(folder string) []string {
	if m.prev == nil {
		return nil
	}
	return m.j.Previous.Files[folder]
}

func (m *merger) withKept(o materialize.StagedOutput) materialize.StagedOutput {
	if m.prev != nil {
		o.Kept, o.KeptRows = m.j.Previous.Files[o.Folder], m.j.Previous.Rows[o.Folder]
	}
	return o
}

// outputs are the program's, and for an append its own besides.
func (m *merger) outputs() []Output {
	outs := m.p.outputs
	if !m.p.appendMode {
		return outs
	}
	own := func(kind OutputKind, folder string, t *recType) Output {
		o := Output{Kind: kind, Relation: m.p.model + "__" + folder, Folder: folder, Ref: folder, rec: t}
		switch kind {
		case outputLedger:
			o.Columns = ledgerColumns()
		case outputKeys:
			o.Columns = keysColumns()
		default:
			o.Columns = updatesColumns()
		}
		return o
	}
	outs = append(outs[:len(outs):len(outs)], own(outputLedger, ledgerFolder, nil))
	for _, t := range m.p.types {
		if t.dedup != dedupNone {
			outs = append(outs, own(outputKeys, keysFolder(t), t), own(outputUpdates, updatesFolder(t), t))
		}
	}
	return outs
}

// RelationSQL is the query that reads a record relation of an append model as
// its users see it: parts with the stored rows that later loads promoted to
// entries or counted again. files gives the published parts of a folder. It is
// "" where the parts alone are the relation.
func (p *Program) RelationSQL(o Output, files func(folder string) []string) string {
	if o.Kind != OutputRecord || !p.appendMode || o.rec.dedup == dedupNone {
		return ""
	}
	parts, updates := files(o.Folder), files(updatesFolder(o.rec))
	if len(updates) == 0 || len(parts) == 0 {
		return ""
	}
	items := make([]string, len(o.Columns))
	for i, c := range o.Columns {
		switch c.Name {
		case "_is_entry":
			items[i] = "r._is_entry OR coalesce(u.e, false) AS _is_entry"
		case "_occurrences":
			items[i] = "CAST(r._occurrences + coalesce(u.n, 0) AS BIGINT) AS _occurrences"
		default:
			items[i] = "r." + ident(c.Name)
		}
	}
	list := readParts(parts, o.Columns)
	return fmt.Sprintf("SELECT %s FROM %s r LEFT JOIN (SELECT _sid, bool_or(entry) AS e, sum(occurrences) AS n FROM %s GROUP BY _sid) u ON u._sid = r._sid",
		strings.Join(items, ", "), list, readParquet(updates))
}

// readParts reads parts of which older ones may lack columns that came later;
// those are NULL.
func readParts(files []string, columns []lake.Column) string {
	nulls := make([]string, len(columns))
	for i, c := range columns {
		nulls[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", c.Type, ident(c.Name))
	}
	return fmt.Sprintf("(SELECT %s WHERE false UNION ALL BY NAME SELECT * FROM %s, union_by_name = true))", strings.Join(nulls, ", "),
		strings.TrimSuffix(readParquet(files), ")"))
}

func (m *merger) keysQuery(t *recType) string {
	if t.hasMid {
		return fmt.Sprintf("SELECT k.k AS k, k.sid AS sid, r.m AS m FROM %s k JOIN %s r ON r.p = k.p WHERE NOT k.old ORDER BY k.sid", m.keep(t), m.shard(t.table))
	}
	return fmt.Sprintf("SELECT k.k AS k, k.sid AS sid, CAST(NULL AS UUID) AS m FROM %s k WHERE NOT k.old ORDER BY k.sid", m.keep(t))
}

func (m *merger) updatesQuery(t *recType) string {
	which := "k.old"
	if m.p.occurrences == occurrencesNone {
		which += " AND k.e"
	}
	return fmt.Sprintf("SELECT k.sid AS _sid, k.e AS entry, k.n AS occurrences, %s AS _load_id FROM %s k WHERE %s ORDER BY k.sid", m.loadID(), m.keep(t), which)
}

// storedConflicts compares the metadata of new occurrences with that of stored
// records of the same content.
func (m *merger) storedConflicts(ctx context.Context, t *recType) error {
	if m.prev == nil || t.conflict == conflictFirst || len(m.kept(keysFolder(t))) == 0 {
		return nil
	}
	rows, stored := m.shard(t.table), readParts(m.kept(t.folder), recordColumns(m.p, t))
	from := fmt.Sprintf("%s k JOIN %s b ON b.k = k.k AND b.m <> k.om JOIN %s s ON s._sid = k.sid WHERE k.old", m.keep(t), rows, stored)
	var names, conds []string
	for i, f := range t.fields {
		if f.meta {
			c := fmt.Sprintf("s.%s IS DISTINCT FROM %s", ident(f.col), castJSON(fmt.Sprintf("b.f%d", i), f.typ))
			if f.typ.isFloat() && f.typ.lists == 0 {
				c = fmt.Sprintf("(%s OR isnan(b.f%d))", c, i)
			}
			names, conds = append(names, text(f.name)), append(conds, c)
		}
	}
	// Stored lists keep no hash of their own: where every field agrees, it is
	// one of them.
	name := "'metadata'"
	if lists := metadataLists(t); len(lists) > 0 {
		name = text(strings.Join(lists, " or "))
	}
	if len(conds) > 0 {
		name = choose(conds, names, name)
	}
	if t.conflict == conflictQuarantine {
		q := fmt.Sprintf("SELECT b.p AS p, b.l AS l, b.p & %d AS o, CAST(NULL AS BIGINT) AS n, '$' AS rp, %s AS fp, %s AS reason, %s || s._file || ':' || CAST(s._line AS VARCHAR) AS message, CAST(NULL AS VARCHAR) AS raw FROM %s",
			int64(1)<<m.shift-1, name, text(reasonConflict), text(t.name+": other metadata than the same content in "), from)
		return m.addConflicts(ctx, t, q)
	}
	var found *diag.Diagnostic
	err := m.s.Query(ctx, fmt.Sprintf("SELECT b.p, b.l, %s, s._file, s._line FROM %s ORDER BY b.p LIMIT 1", name, from), func(v []any) error {
		pos := diag.Pos{File: m.j.Files[v[0].(int64)>>m.shift].Name, Line: int(v[1].(int64))}
		d := diag.Errorf(diag.IngestConflict, pos, "%s: the metadata field %s differs from that of the same content, which is stored", t.name, v[2]).
			WithNote(diag.Pos{File: v[3].(string), Line: int(v[4].(int64))}, "the stored record").
			WithHint("move the field into the identity, or set on_metadata_conflict to first or quarantine")
		found = &d
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare metadata of %s with what is stored: %w", t.name, err)
	}
	if found != nil {
		return *found
	}
	return nil
}

// metadataLists are the names of the lists in a record's metadata.
func metadataLists(t *recType) []string {
	var names []string
	for _, l := range t.lists {
		if l.meta {
			names = append(names, l.name)
		}
	}
	return names
}

// storedIDs are the ids that stored records of a group have taken, as rows
// (id, o, p) with p -1.
func (m *merger) storedIDs(group []*recType) []string {
	var parts []string
	for i, t := range group {
		if files := m.kept(t.folder); len(files) > 0 {
			parts = append(parts, fmt.Sprintf("SELECT _id AS id, %d AS o, CAST(-1 AS BIGINT) AS p FROM %s", i, readParquet(files)))
		}
	}
	return parts
}

// storedPlace is where the stored record with an id or content id stands.
func (m *merger) storedPlace(ctx context.Context, t *recType, cond string) (diag.Pos, error) {
	var pos diag.Pos
	err := m.s.Query(ctx, fmt.Sprintf("SELECT _file, _line FROM %s WHERE %s ORDER BY _sid LIMIT 1", readParquet(m.kept(t.folder)), cond), func(v []any) error {
		pos = diag.Pos{File: v[0].(string), Line: int(v[1].(int64))}
		return nil
	})
	return pos, err
}
