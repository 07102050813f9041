package engine

import (
	"encoding/json"

	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// checkCache is what came of binding a text over the columns of what it reads,
// without data: its columns as they are stored, names and types in turn. Only
// texts in which nothing was wrong are kept.
type checkCache = answers[[]string]

const (
	checkPrefix = "check-"
	// checkFormat counts up when a check finds more than before.
	checkFormat = 1
)

// newCheckCache is for a graph: what a check of a part of it does not ask for is
// kept for the next check of the whole.
func newCheckCache(p *project.Project, version string, g *plan.Graph) *checkCache {
	c := newAnswers[[]string](p.TargetDir, checkPrefix, checkFormat, version, p.Mask)
	c.least = parseSpare * len(g.Nodes())
	return c
}

// checkKey is a hash of all that the check of a rendering depends on; "" where it
// may depend on more, or a run is about to start, which wants to know more.
func (c *checker) checkKey(n *plan.Node, compiled *project.Compiled, st statement) string {
	if c.checked == nil || compiled.Queried {
		return ""
	}
	if !st.plain() {
		tables, err := c.e.parser.Tables(compiled.SQL)
		if err != nil || tables.Refused || tables.Volatile != "" {
			return ""
		}
	}
	type columns map[string]any
	reads := []columns{}
	add := func(schema, name string) {
		reads = append(reads, columns{"schema": schema, "name": name, "columns": c.columns[relationKey(schema, name)]})
	}
	c.mu.Lock()
	for _, ref := range n.Refs {
		add(ref.Relation())
	}
	add("main", n.Name)
	c.mu.Unlock()
	declared := [][2]string{}
	for _, column := range n.Model.Columns {
		declared = append(declared, [2]string{column.Name, column.Type})
	}
	text, err := json.Marshal([]any{st.text, n.Model.Materialization, n.Model.ContractEnforced, declared, reads, c.e.o.Project.Engine.Settings})
	if err != nil {
		return ""
	}
	return parseKey(string(text))
}

// wasChecked gives the columns of a rendering that was found right before.
func (c *checker) wasChecked(key string) ([]lake.Column, bool) {
	if key == "" {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	flat, ok := c.checked.get(key)
	if !ok || len(flat) == 0 || len(flat)%2 != 0 {
		return nil, false
	}
	columns := make([]lake.Column, len(flat)/2)
	for i := range columns {
		columns[i] = lake.Column{Name: flat[2*i], Type: flat[2*i+1]}
	}
	return columns, true
}

// keepChecked remembers that nothing is wrong with a rendering.
func (c *checker) keepChecked(key string, columns []lake.Column) {
	if key == "" || len(columns) == 0 {
		return
	}
	flat := make([]string, 0, 2*len(columns))
	for _, column := range columns {
		flat = append(flat, column.Name, column.Type)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked.put(key, flat)
}
