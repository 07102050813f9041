package ingest

import "rbt/internal/lake"

func col(name, typ string) lake.Column { return lake.Column{Name: name, Type: typ} }

// recordColumns are the columns of a record's relation, in order.
func recordColumns(p *Program, t *recType) []lake.Column {
	cols := []lake.Column{col("_sid", "BIGINT"), col("_content_id", "UUID")}
	if t.id != nil {
		cols = append(cols, col("_id", "VARCHAR"))
	}
	cols = append(cols, memberColumns(&t.shape)...)
	cols = append(cols, col("_is_entry", "BOOLEAN"))
	if p.occurrences != occurrencesNone {
		cols = append(cols, col("_occurrences", "BIGINT"))
	}
	return append(cols, col("_file", "VARCHAR"), col("_line", "BIGINT"), col("_load_id", "BIGINT"))
}

// memberColumns are what the user declared, in the declared order by kind:
// identity first, metadata after it, since that is how the shape lists them.
func memberColumns(s *shape) []lake.Column {
	var cols []lake.Column
	for _, f := range s.fields {
		cols = append(cols, col(f.col, f.typ.SQL()))
	}
	for _, r := range s.refs {
		cols = append(cols, col(r.col, "BIGINT"))
	}
	for _, l := range s.lists {
		if l.countCol != "" {
			cols = append(cols, col(l.countCol, "INTEGER"))
		}
	}
	if s.extra >= 0 {
		cols = append(cols, col("_extra", "JSON"))
	}
	return cols
}

func childColumns(l *list) []lake.Column {
	cols := []lake.Column{col("_parent_sid", "BIGINT")}
	for _, name := range outputIndexColumns(l.level) {
		cols = append(cols, col(name, "INTEGER"))
	}
	switch l.kind {
	case listScalar:
		cols = append(cols, col("value", l.typ.SQL()))
	case listLink:
		cols = append(cols, col(columnName(l.target.name)+"_sid", "BIGINT"))
	case listOwned:
		cols = append(cols, memberColumns(l.row)...)
	}
	return cols
}

func rejectColumns() []lake.Column {
	return []lake.Column{
		col("file", "VARCHAR"), col("line", "BIGINT"), col("byte_offset", "BIGINT"), col("byte_length", "BIGINT"),
		col("record_path", "VARCHAR"), col("field_path", "VARCHAR"), col("reason", "VARCHAR"), col("message", "VARCHAR"),
		col("raw", "VARCHAR"), col("_load_id", "BIGINT"),
	}
}

func occurrenceColumns() []lake.Column {
	return []lake.Column{
		col("_record", "VARCHAR"), col("_sid", "BIGINT"), col("_file", "VARCHAR"), col("_line", "BIGINT"), col("_load_id", "BIGINT"),
	}
}

func loadColumns() []lake.Column {
	return []lake.Column{
		col("_load_id", "BIGINT"), col("files", "BIGINT"), col("bytes", "BIGINT"), col("records", "BIGINT"),
		col("rejects", "BIGINT"), col("rbt_version", "VARCHAR"),
	}
}

// needsSweep gives a record type whose duplicates, where they collapse, can leave
// records of another one that nothing reaches any more; nil where none can. A collapsing record drops the records below its losers; they
// are the survivor's own unless their key is no function of the content id, the
// lists of by-value losers differ, or metadata holds records.
func needsSweep(types []*recType) (holder, left *recType) {
	fn := keyIsFunctionOfContent(types)
	for _, t := range types {
		switch t.dedup {
		case dedupContent:
			for _, target := range targets(&t.shape, func(meta bool) bool { return !meta }) {
				if !fn[target] {
					return t, target
				}
			}
			if below := targets(&t.shape, func(meta bool) bool { return meta }); len(below) > 0 {
				return t, below[0]
			}
		case dedupValue:
			for _, l := range t.lists {
				switch l.kind {
				case listLink:
					return t, l.target
				case listOwned:
					if below := targets(l.row, func(bool) bool { return true }); len(below) > 0 {
						return t, below[0]
					}
				}
			}
		}
	}
	return nil, nil
}

// targets lists the record types that a shape holds, directly or in its rows.
func targets(s *shape, want func(meta bool) bool) []*recType {
	var out []*recType
	for _, r := range s.refs {
		if want(r.meta) {
			out = append(out, r.target)
		}
	}
	for _, l := range s.lists {
		if !want(l.meta) {
			continue
		}
		switch l.kind {
		case listLink:
			out = append(out, l.target)
		case listOwned:
			out = append(out, targets(l.row, func(bool) bool { return true })...)
		}
	}
	return out
}

// keyIsFunctionOfContent is the greatest set of types whose equal content
// means an equal key.
func keyIsFunctionOfContent(types []*recType) map[*recType]bool {
	fn := map[*recType]bool{}
	for _, t := range types {
		fn[t] = t.dedup == dedupContent || (t.dedup == dedupValue && len(t.meta) == 0 && t.extra < 0)
	}
	for changed := true; changed; {
		changed = false
		for _, t := range types {
			if t.dedup != dedupValue || !fn[t] {
				continue
			}
			for _, r := range t.refs {
				if !fn[r.target] {
					fn[t], changed = false, true
				}
			}
		}
	}
	return fn
}

// markNesting finds the lists whose rows may be interleaved with those of other
// records: those of types that can hold, at any depth, a record of their own
// type. It also finds the types whose records workers can number: those that
// are neither merged nor swept, and never hold their own.
func markNesting(types []*recType, sweep bool) {
	for _, t := range types {
		seen := map[*recType]bool{}
		var reach func(*recType)
		reach = func(x *recType) {
			for _, y := range targets(&x.shape, func(bool) bool { return true }) {
				if !seen[y] {
					seen[y] = true
					reach(y)
				}
			}
		}
		reach(t)
		if seen[t] {
			setNests(t.lists)
		}
		// Without a record of its own type inside, records end in the order in which
		// they begin, so that a chunk's rows are in the order of positions.
		t.table.numbered = t.dedup == dedupNone && !sweep && !seen[t]
	}
}

func setNests(lists []*list) {
	for _, l := range lists {
		l.nests = true
		if l.kind == listOwned {
			setNests(l.row.lists)
		}
	}
}
