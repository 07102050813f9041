package project

import (
	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// table is what run_query gives: columns and rows.
type table struct {
	names []string
	rows  [][]any
}

// String tells what it is.
func (t *table) String() string { return "<table>" }

// Attr gives columns, rows and column_names.
func (t *table) Attr(name string) (any, bool) {
	switch name {
	case "column_names":
		return goValue(t.names), true
	case "columns":
		out := jinja.NewList()
		for i := range t.names {
			out.Append(&tableColumn{t: t, at: i})
		}
		return out, true
	case "rows":
		out := jinja.NewList()
		for _, row := range t.rows {
			out.Append(jinja.Tuple(row))
		}
		return out, true
	}
	return nil, false
}

// tableColumn is one column of a table.
type tableColumn struct {
	t  *table
	at int
}

// String gives the name.
func (c *tableColumn) String() string { return c.t.names[c.at] }

// Attr gives name and values.
func (c *tableColumn) Attr(name string) (any, bool) {
	switch name {
	case "name":
		return c.t.names[c.at], true
	case "values":
		return jinja.Func(func(*jinja.Call) (any, error) {
			out := make(jinja.Tuple, len(c.t.rows))
			for i, row := range c.t.rows {
				out[i] = row[c.at]
			}
			return out, nil
		}), true
	}
	return nil, false
}

// query runs a query for a template. Without a database, while only references
// are sought, it gives an empty table.
func (r *rendering) query(c *jinja.Call, sql string) (*table, error) {
	r.queried = true
	if r.o.Query == nil {
		return &table{}, nil
	}
	names, rows, err := r.o.Query(sql)
	if err != nil {
		if d, ok := err.(diag.Diagnostic); ok {
			return nil, d
		}
		return nil, diag.Errorf(diag.TemplateHost, c.Pos, "the query failed: %s", r.p.Mask(err.Error()))
	}
	return &table{names: names, rows: rows}, nil
}

func callRunQuery(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, badCall(c, "run_query takes a query")
	}
	return seen(c).query(c, printed(c.Args[0]))
}

// callColumns is adapter.get_columns_in_relation.
func callColumns(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, badCall(c, "it takes a relation")
	}
	rel, ok := c.Args[0].(*Relation)
	if !ok {
		return nil, badCall(c, "it takes a relation: ref(), source() or this")
	}
	t, err := seen(c).query(c, "describe select * from "+rel.String())
	if err != nil {
		return nil, err
	}
	out := jinja.NewList()
	for _, row := range t.rows {
		if len(row) < 2 {
			continue
		}
		name, kind := printed(row[0]), printed(row[1])
		out.Append(&object{name: name, attrs: map[string]any{
			"name": name, "column": name, "dtype": kind, "data_type": kind, "quoted": quoteName(name),
		}})
	}
	return out, nil
}
