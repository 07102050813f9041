package project

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"time"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// table is what run_query gives: columns and rows.
type table struct {
	names []string
	rows  [][]any
	// unread says that no query was run: the project is only compiled.
	unread bool
}

// Described gives what messages call the table.
func (t *table) Described() (string, []string) {
	return "what run_query gives", []string{"column_names", "columns", "rows"}
}

// Missing says how to read what is there only when the model runs.
func (t *table) Missing() string {
	if t.unread {
		return "nothing is read while the project is only compiled: put it between {% if execute %} and {% endif %}"
	}
	return ""
}

// String tells what it is.
func (t *table) String() string { return "<table>" }

// Attr gives columns, rows and column_names.
func (t *table) Attr(name string) (any, bool) {
	switch name {
	case "column_names":
		return goValue(t.names), true
	case "columns":
		return columnList{t}, true
	case "rows":
		out := jinja.NewList()
		for _, values := range t.rows {
			out.Append(&row{t: t, values: values})
		}
		return out, true
	}
	return nil, false
}

// row is one row of a table: its values by place and by name.
type row struct {
	t      *table
	values []any
}

// String shows the values as a tuple.
func (r *row) String() string { return "<row>" }

// Len is the number of columns.
func (r *row) Len() int { return len(r.values) }

// At gives a value by its place.
func (r *row) At(i int) any { return r.values[i] }

// Attr gives a value by its name, and values, keys and dict.
func (r *row) Attr(name string) (any, bool) {
	for i, n := range r.t.names {
		if n == name {
			return r.values[i], true
		}
	}
	switch name {
	case "values":
		return method(func() any { return jinja.Tuple(slices.Clone(r.values)) }), true
	case "keys":
		return method(func() any { return goValue(r.t.names) }), true
	case "dict":
		return method(func() any {
			d := jinja.NewDict()
			for i, n := range r.t.names {
				// Text is always a valid key.
				_ = d.Set(n, r.values[i])
			}
			return d
		}), true
	}
	for i, n := range r.t.names {
		if folded(n) == folded(name) {
			return r.values[i], true
		}
	}
	return nil, false
}

// columnList is the columns of a table, by place and by name.
type columnList struct{ t *table }

// String tells what it is.
func (l columnList) String() string { return "<columns>" }

// Described gives what messages call the list.
func (l columnList) Described() (string, []string) {
	return "the list of columns of run_query", l.t.names
}

// Missing says how to read what is there only when the model runs.
func (l columnList) Missing() string { return l.t.Missing() }

// Len is the number of columns.
func (l columnList) Len() int { return len(l.t.names) }

// At gives a column by its place.
func (l columnList) At(i int) any { return &tableColumn{t: l.t, at: i} }

// Attr gives a column by its name.
func (l columnList) Attr(name string) (any, bool) {
	for i, n := range l.t.names {
		if folded(n) == folded(name) {
			return &tableColumn{t: l.t, at: i}, true
		}
	}
	return nil, false
}

// fromEngine gives a value of the engine as a value of a template.
func fromEngine(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v
	case *big.Int:
		if v.IsInt64() {
			return v.Int64()
		}
		return v
	case []byte:
		return string(v)
	case Day:
		return day{v.UTC()}
	case Local:
		return moment{t: v.UTC().Round(0)}
	case time.Time:
		return moment{v.UTC().Round(0), true}
	case []any:
		out := jinja.NewList()
		for _, item := range v {
			out.Append(fromEngine(item))
		}
		return out
	case map[string]any:
		out := jinja.NewDict()
		for _, k := range sortedKeys(v) {
			// Text is always a valid key.
			_ = out.Set(k, fromEngine(v[k]))
		}
		return out
	case fmt.Stringer:
		return numberValue(v.String())
	}
	switch n := reflect.ValueOf(v); n.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int:
		return n.Int()
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return fromEngine(new(big.Int).SetUint64(n.Uint()))
	case reflect.Float32:
		return n.Float()
	}
	return fmt.Sprint(v)
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
		return &table{unread: true}, nil
	}
	var names []string
	var rows [][]any
	var err error
	if r.o.MayRead != nil {
		err = r.o.MayRead(r.refs)
	}
	if err == nil {
		names, rows, err = r.o.Query(sql)
	}
	if err != nil {
		if d, ok := err.(diag.Diagnostic); ok {
			return nil, d
		}
		d := diag.Errorf(diag.TemplateHost, c.Pos, "the query failed: %s", r.p.Mask(err.Error()))
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) && hinted.Hint() != "" {
			d.Hint = r.p.Mask(hinted.Hint())
		}
		return nil, d
	}
	t := &table{names: names, rows: make([][]any, len(rows))}
	for i, values := range rows {
		t.rows[i] = make([]any, len(values))
		for j, v := range values {
			t.rows[i][j] = fromEngine(v)
		}
	}
	return t, nil
}

func callRunQuery(c *jinja.Call) (any, error) {
	if len(c.Args) != 1 {
		return nil, badCall(c, "run_query takes a query")
	}
	text, err := c.Text(c.Args[0])
	if err != nil {
		return nil, err
	}
	return seen(c).query(c, text)
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
