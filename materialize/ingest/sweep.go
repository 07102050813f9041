package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// edge is a way from a surviving record to one below it.
type edge struct {
	from, to *recType
	query    string // src: position of the survivor, k: key of the record below
}

// edges lists every way a record type can hold another.
func (m *merger) edges() []edge {
	var out []edge
	for _, t := range m.p.types {
		rows := m.shard(t.table)
		for i, r := range t.refs {
			out = append(out, edge{t, r.target, fmt.Sprintf("SELECT k.p AS src, x.r%d AS k FROM %s k JOIN %s x ON x.p = %s WHERE x.r%d IS NOT NULL",
				i, m.collapsed(t), rows, t.owner(r.meta), i)})
		}
		out = append(out, m.listEdges(t, t.lists)...)
	}
	return out
}

// lastMeta reports whether the metadata of another occurrence than the survivor
// can count.
func (t *recType) lastMeta() bool { return t.hasMid && t.conflict == conflictLast }

// owner is the position of a survivor k that its members have, those of its
// metadata where meta is set.
func (t *recType) owner(meta bool) string {
	if meta && t.lastMeta() {
		return "k.lp"
	}
	return "k.p"
}

func (m *merger) listEdges(t *recType, lists []*list) []edge {
	var out []edge
	for _, l := range lists {
		join := fmt.Sprintf("%s k JOIN %s x ON x.p = %s", m.collapsed(t), m.shard(l.table), t.owner(l.meta))
		switch l.kind {
		case listLink:
			out = append(out, edge{t, l.target, "SELECT k.p AS src, x.k AS k FROM " + join})
		case listOwned:
			for i, r := range l.row.refs {
				out = append(out, edge{t, r.target, fmt.Sprintf("SELECT k.p AS src, x.r%d AS k FROM %s WHERE x.r%d IS NOT NULL", i, join, i)})
			}
			out = append(out, m.listEdges(t, l.row.lists)...)
		}
	}
	return out
}

// sweepOrphans keeps what an entry reaches, in waves over the types: each wave
// goes from the records that the last one found to those below them.
func (m *merger) sweepOrphans(ctx context.Context) error {
	edges := m.edges()
	for i, e := range edges {
		if err := m.exec(ctx, m.s, "edges", "CREATE TABLE "+m.temp("edge%d", i)+" AS "+e.query); err != nil {
			return err
		}
	}
	front := map[*recType]bool{}
	for _, t := range m.p.types {
		for _, sql := range []string{
			"CREATE TABLE " + m.temp("live%d", t.ord) + " AS SELECT p FROM " + m.collapsed(t) + " WHERE e",
			"CREATE TABLE " + m.temp("front%d", t.ord) + " AS SELECT p FROM " + m.temp("live%d", t.ord),
		} {
			if err := m.exec(ctx, m.s, "sweep", sql); err != nil {
				return err
			}
		}
		front[t] = true
	}
	for slices.ContainsFunc(m.p.types, func(t *recType) bool { return front[t] }) {
		next := map[*recType]bool{}
		for _, t := range m.p.types {
			grown, err := m.wave(ctx, t, edges, front)
			if err != nil {
				return err
			}
			next[t] = grown
		}
		for _, t := range m.p.types {
			if err := m.exec(ctx, m.s, "sweep", fmt.Sprintf("CREATE OR REPLACE TABLE %s AS SELECT p FROM %s", m.temp("front%d", t.ord), m.temp("next%d", t.ord))); err != nil {
				return err
			}
		}
		front = next
	}
	for _, t := range m.p.types {
		sql := "CREATE TABLE " + m.keep(t) + " AS " + m.numbered(t, fmt.Sprintf("SELECT a.* FROM %s a SEMI JOIN %s l ON l.p = a.p", m.collapsed(t), m.temp("live%d", t.ord)))
		if err := m.exec(ctx, m.s, "number "+t.name, sql); err != nil {
			return err
		}
	}
	return nil
}

// wave finds the records of one type below the last wave's and adds them to
// the living.
func (m *merger) wave(ctx context.Context, t *recType, edges []edge, front map[*recType]bool) (bool, error) {
	var parts []string
	for i, e := range edges {
		if e.to == t && front[e.from] {
			parts = append(parts, fmt.Sprintf("SELECT x.k FROM %s x SEMI JOIN %s f ON f.p = x.src", m.temp("edge%d", i), m.temp("front%d", e.from.ord)))
		}
	}
	next := m.temp("next%d", t.ord)
	if len(parts) == 0 {
		return false, m.exec(ctx, m.s, "sweep", "CREATE OR REPLACE TABLE "+next+" AS SELECT CAST(NULL AS BIGINT) AS p WHERE false")
	}
	sql := fmt.Sprintf("CREATE OR REPLACE TABLE %s AS SELECT a.p FROM %s a SEMI JOIN (%s) x ON x.k = a.k ANTI JOIN %s l ON l.p = a.p",
		next, m.collapsed(t), strings.Join(parts, " UNION ALL "), m.temp("live%d", t.ord))
	if err := m.exec(ctx, m.s, "sweep", sql); err != nil {
		return false, err
	}
	if err := m.exec(ctx, m.s, "sweep", fmt.Sprintf("INSERT INTO %s SELECT p FROM %s", m.temp("live%d", t.ord), next)); err != nil {
		return false, err
	}
	n, err := m.number(ctx, "SELECT count(*) FROM "+next)
	return n > 0, err
}
