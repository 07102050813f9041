package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// The documents below have the shape of dbt's manifest v12: all keys are there,
// null or empty where rbt has nothing to say.

type object = map[string]any

// emptyObject is a JSON object without anything in it, where null would mean
// something else to a reader; emptyList is the same for lists.
func emptyObject() object { return object{} }
func emptyList() []any    { return []any{} }

func (e *Engine) manifest(ctx context.Context, g *plan.Graph, inv Invocation) (object, partKeys, error) {
	p := e.o.Project
	prints := g.Prints(e.SeedHash)
	m := manifestWriter{p: p, g: g, prints: prints, sums: map[string]string{}}
	for _, model := range p.Models {
		if sum, ok := p.TextHash(model); ok {
			m.sums[model.File] = sum
		}
	}
	for _, t := range g.Tests() {
		if _, ok := m.sums[t.File]; !ok && t.About != nil { // a file of sources may have very many
			m.sums[t.File] = m.checksum(t.File)
		}
	}
	parents, children := map[string][]string{}, map[string][]string{}
	for _, n := range g.Nodes() {
		parents[n.ID], children[n.ID] = ids(n.Parents), ids(n.Children)
	}
	for _, t := range g.Tests() {
		parents[t.ID], children[t.ID] = ids(t.Reads), []string{}
		for _, n := range t.Reads {
			children[n.ID] = append(children[n.ID], t.ID)
		}
	}
	nodes, sources, unitTests, keys, err := m.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	metadata := struct {
		artifactMetadata
		ProjectName string  `json:"project_name"`
		ProjectID   string  `json:"project_id"`
		UserID      *string `json:"user_id"`
		Statistics  bool    `json:"send_anonymous_usage_stats"`
		Adapter     string  `json:"adapter_type"`
	}{e.metadata("manifest", 12, inv), p.Name, hash(p.Name)[:32], nil, false, "duckdb"}
	return object{
		"metadata": metadata, "nodes": nodes, "sources": sources, "macros": m.macros(), "unit_tests": unitTests,
		"docs": emptyObject(), "exposures": emptyObject(), "metrics": emptyObject(), "groups": emptyObject(),
		"selectors": m.selectors(), "disabled": emptyObject(), "saved_queries": emptyObject(), "semantic_models": emptyObject(),
		"parent_map": parents, "child_map": children, "group_map": emptyObject(),
	}, keys, nil
}

// all encodes every node and test, each apart, and gives the keys of the entries
// that a later manifest can take over.
func (m manifestWriter) all(ctx context.Context) (nodes, sources, unitTests encodedParts, keys partKeys, err error) {
	type job struct {
		into encodedParts
		id   string
		make func() object
		text string
	}
	nodes, sources, unitTests, keys = encodedParts{}, encodedParts{}, encodedParts{}, partKeys{}
	known := readParts(m.p.TargetDir)
	var jobs []job
	var models []*plan.Node
	for _, n := range m.g.Nodes() {
		switch {
		case n.Source != nil:
			jobs = append(jobs, job{into: sources, id: n.ID, make: func() object { return m.source(n) }})
		case n.Seed != nil:
			jobs = append(jobs, job{into: nodes, id: n.ID, make: func() object { return m.seed(n) }})
		default:
			if key := m.partKeyOf(n); key != "" {
				keys[n.ID] = key
				if text, ok := known[key]; ok {
					nodes[n.ID] = text
					continue
				}
			}
			models = append(models, n)
			jobs = append(jobs, job{into: nodes, id: n.ID, make: func() object { return m.model(n) }})
		}
	}
	if err := m.g.Render(ctx, models).Err(); err != nil {
		return nil, nil, nil, nil, err
	}
	for _, t := range m.g.Tests() {
		if t.Unit != nil {
			jobs = append(jobs, job{into: unitTests, id: t.ID, make: func() object { return m.unitTest(t) }})
		} else {
			jobs = append(jobs, job{into: nodes, id: t.ID, make: func() object { return m.test(t) }})
		}
	}
	err = encodeEach(len(jobs), func(i int) any { return jobs[i].make() }, func(i int, text string) { jobs[i].text = text })
	for _, j := range jobs {
		j.into[j.id] = j.text
	}
	return nodes, sources, unitTests, keys, err
}

func ids(nodes []*plan.Node) []string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.ID
	}
	return list
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

type manifestWriter struct {
	p      *project.Project
	g      *plan.Graph
	prints map[string]plan.Print
	sums   map[string]string // of files, as they were loaded
}

// common holds the keys that every node has.
func (m manifestWriter) common(id, name, kind, file string, folder []string) object {
	fqn := append([]string{m.p.Name}, folder...)
	return object{
		"database": nil, "schema": "main", "name": name, "resource_type": kind, "package_name": m.p.Name,
		"path": path.Join(append(append([]string{}, folder...), path.Base(file))...), "original_file_path": file, "unique_id": id, "fqn": append(fqn, name), "alias": name,
		"checksum": object{"name": "sha256", "checksum": m.checksum(file)},
		"config":   emptyObject(), "tags": emptyList(), "description": "", "columns": emptyObject(), "meta": emptyObject(), "group": nil,
		"docs": object{"show": true, "node_color": nil}, "patch_path": nil, "build_path": nil, "unrendered_config": emptyObject(),
		"created_at": 0, "config_call_dict": emptyObject(), "unrendered_config_call_dict": emptyObject(), "relation_name": nil, "raw_code": "", "doc_blocks": emptyList(),
	}
}

// code adds the keys of nodes with SQL.
func (m manifestWriter) code(o object, raw string, compiled *project.Compiled, reads []*plan.Node) {
	refs, sources := emptyList(), emptyList()
	for _, n := range reads {
		if n.Source != nil {
			sources = append(sources, []string{n.Source.Group, n.Source.Name})
		} else {
			refs = append(refs, object{"name": n.Name, "package": nil, "version": nil})
		}
	}
	o["raw_code"], o["language"] = raw, "sql"
	o["refs"], o["sources"], o["metrics"], o["functions"] = refs, sources, emptyList(), emptyList()
	o["depends_on"] = object{"macros": emptyList(), "nodes": ids(reads)}
	o["compiled"], o["compiled_code"], o["compiled_path"] = false, nil, nil
	o["extra_ctes_injected"], o["extra_ctes"] = false, emptyList()
	o["contract"] = object{"enforced": false, "alias_types": true, "checksum": nil}
	if compiled != nil {
		o["compiled"], o["compiled_code"], o["extra_ctes_injected"] = true, compiled.SQL, true
	}
}

func (m manifestWriter) text(file string) string {
	text, _ := m.p.SourceText(file)
	return text
}

// checksum is the hash of a file: as it was loaded, where that is known.
func (m manifestWriter) checksum(file string) string {
	if sum, ok := m.sums[file]; ok {
		return sum
	}
	return hash(m.text(file))
}

// config is a node's configuration with the prints that state: compares.
func (m manifestWriter) config(id string, config object) object {
	config["enabled"] = true
	config["rbt_body"], config["rbt_configs"] = m.prints[id].Body, m.prints[id].Configs
	return config
}

func columnsObject(columns []project.Column, tests []*project.Test) object {
	constrained := map[string]bool{}
	for _, t := range tests {
		if t.Kind == "not_null" && len(t.Columns) == 1 {
			constrained[strings.ToLower(t.Columns[0])] = true
		}
	}
	all := object{}
	for _, c := range columns {
		constraints := emptyList()
		if constrained[strings.ToLower(c.Name)] {
			constraints = append(constraints, object{"type": "not_null", "name": nil, "expression": nil, "to": nil, "to_columns": emptyList(), "warn_unenforced": true, "warn_unsupported": true})
		}
		all[c.Name] = object{"name": c.Name, "description": c.Description, "meta": emptyObject(), "data_type": orNull(c.Type), "constraints": constraints,
			"quote": nil, "tags": emptyList(), "granularity": nil, "doc_blocks": emptyList()}
	}
	return all
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func tagList(tags []string) []string { return append([]string{}, tags...) }

func metaObject(meta map[string]any) object {
	plainMeta, ok := plainValue(meta).(object)
	if !ok {
		return emptyObject()
	}
	return plainMeta
}

func (m manifestWriter) model(n *plan.Node) object {
	model := n.Model
	o := m.common(n.ID, n.Name, "model", n.File, n.Folder)
	m.code(o, model.Body, n.Full, n.Parents)
	if n.Full != nil {
		o["compiled_path"] = path.Join("target", "compiled", m.p.Name, n.File)
	}
	config := metaObject(model.Config)
	config["materialized"], config["tags"], config["meta"] = string(model.Materialization), tagList(model.Tags), metaObject(model.Meta)
	config["on_schema_change"] = model.OnSchemaChange
	for _, key := range []string{"tests", "data_tests", "columns", "description", "materialization", "contract", "docs", "unit_tests"} {
		delete(config, key)
	}
	config["contract"] = object{"enforced": model.ContractEnforced, "alias_types": true}
	if model.Strategy != "" {
		config["incremental_strategy"] = model.Strategy
	}
	o["config"] = m.config(n.ID, config)
	o["description"], o["tags"], o["meta"] = model.Description, tagList(model.Tags), metaObject(model.Meta)
	o["columns"] = columnsObject(model.Columns, n.Tests)
	o["contract"] = object{"enforced": model.ContractEnforced, "alias_types": true, "checksum": nil}
	o["access"], o["constraints"], o["version"], o["latest_version"] = "protected", emptyList(), nil, nil
	o["deprecation_date"], o["defer_relation"], o["primary_key"], o["time_spine"] = nil, nil, primaryKey(n.Tests), nil
	if model.Materialization != project.Ephemeral {
		o["relation_name"] = relationText(project.Ref{Node: n.Name})
	}
	return o
}

// primaryKey is the columns of a unique test all of which are tested not_null
// too, as dbt infers it.
func primaryKey(tests []*project.Test) []string {
	set := map[string]bool{}
	for _, t := range tests {
		if t.Kind == "not_null" {
			set[t.Columns[0]] = true
		}
	}
	for _, t := range tests {
		if t.Kind != "unique" || t.Where != "" {
			continue
		}
		all := true
		for _, c := range t.Columns {
			all = all && set[c]
		}
		if all {
			return t.Columns
		}
	}
	return []string{}
}

func (m manifestWriter) seed(n *plan.Node) object {
	o := m.common(n.ID, n.Name, "seed", n.File, n.Folder)
	o["config"] = m.config(n.ID, object{"materialized": "seed", "tags": tagList(n.Seed.Tags), "meta": metaObject(n.Seed.Meta)})
	o["description"], o["tags"], o["meta"] = n.Seed.Description, tagList(n.Seed.Tags), metaObject(n.Seed.Meta)
	o["columns"] = columnsObject(n.Seed.Columns, n.Tests)
	o["relation_name"] = relationText(project.Ref{Node: n.Name})
	o["root_path"], o["depends_on"], o["defer_relation"] = nil, object{"macros": emptyList()}, nil
	o["checksum"] = object{"name": "sha256", "checksum": m.prints[n.ID].Body}
	return o
}

func (m manifestWriter) source(n *plan.Node) object {
	s := n.Source
	freshness := any(nil)
	if s.Freshness != nil {
		freshness = freshnessObject(s.Freshness)
	}
	var loadedAt any
	if s.Freshness != nil {
		loadedAt = orNull(s.Freshness.LoadedAt)
	}
	return object{
		"database": nil, "schema": s.Group, "name": s.Name, "resource_type": "source", "package_name": m.p.Name,
		"path": n.File, "original_file_path": n.File, "unique_id": n.ID, "fqn": append(append([]string{m.p.Name}, n.Folder...), s.Group, s.Name),
		"source_name": s.Group, "source_description": "", "loader": s.Format, "identifier": s.Name,
		"quoting":         object{"database": nil, "schema": nil, "identifier": nil, "column": nil},
		"loaded_at_field": loadedAt, "loaded_at_query": nil, "freshness": freshness, "external": nil,
		"description": s.Description, "columns": columnsObject(s.Columns, n.Tests), "meta": metaObject(s.Meta), "source_meta": emptyObject(),
		"tags": tagList(s.Tags), "config": m.config(n.ID, object{"format": s.Format, "tags": tagList(s.Tags), "meta": metaObject(s.Meta)}),
		"patch_path": nil, "unrendered_config": emptyObject(), "relation_name": relationText(project.Ref{Node: n.Name, Source: true}),
		"created_at": 0, "unrendered_database": nil, "unrendered_schema": nil, "doc_blocks": emptyList(),
	}
}

// freshnessObject gives limits in the largest of dbt's units that divides them.
func freshnessObject(f *project.Freshness) object {
	return object{"warn_after": period(f.WarnAfter), "error_after": period(f.ErrorAfter), "filter": nil}
}

func period(d time.Duration) any {
	if d == 0 {
		return nil
	}
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}} {
		if d%unit.size == 0 {
			return object{"count": int(d / unit.size), "period": unit.name}
		}
	}
	return object{"count": int(d / time.Minute), "period": "minute"}
}

func (m manifestWriter) test(t *plan.TestNode) object {
	test := t.Test
	o := m.common(t.ID, t.Name, "test", t.File, t.Folder)
	raw := test.Body
	if t.About != nil {
		raw = "{{ test_" + test.Kind + "(**_dbt_generic_test_kwargs) }}"
		o["path"] = t.Name + ".sql"
	}
	m.code(o, raw, t.Compiled, t.Reads)
	severity := "ERROR"
	if test.Severity == diag.Warning {
		severity = "WARN"
	}
	config := object{"materialized": "test", "severity": severity, "warn_if": thresholdText(test.WarnIf), "error_if": thresholdText(test.ErrorIf),
		"fail_calc": "count(*)", "where": orNull(test.Where), "limit": nil, "store_failures": nil, "schema": "dbt_test__audit", "tags": tagList(test.Tags), "meta": emptyObject()}
	if test.Limit > 0 {
		config["limit"] = test.Limit
	}
	o["config"], o["tags"], o["description"] = m.config(t.ID, config), tagList(test.Tags), test.Description
	if t.About == nil {
		return o
	}
	kwargs := object{"model": "{{ get_where_subquery(ref('" + t.About.Name + "')) }}"}
	var column any
	if len(test.Columns) == 1 {
		column = test.Columns[0]
		kwargs["column_name"] = column
	}
	o["column_name"], o["file_key_name"], o["attached_node"] = column, nil, t.About.ID
	o["test_metadata"] = object{"name": test.Kind, "kwargs": kwargs, "namespace": nil}
	return o
}

func thresholdText(t *project.Threshold) string {
	if t == nil {
		return "!= 0"
	}
	return t.Text
}

func (m manifestWriter) unitTest(t *plan.TestNode) object {
	u := t.Unit
	given := emptyList()
	for _, f := range u.Given {
		g := fixtureObject(f)
		g["input"] = f.Input
		given = append(given, g)
	}
	return object{
		"model": u.Model, "given": given, "expect": fixtureObject(u.Expect), "name": u.Name, "resource_type": "unit_test", "package_name": m.p.Name,
		"path": path.Base(t.File), "original_file_path": t.File, "unique_id": t.ID, "fqn": append(append([]string{m.p.Name}, t.Folder...), u.Model, u.Name),
		"description": u.Description, "overrides": nil, "depends_on": object{"macros": emptyList(), "nodes": ids(t.Reads)},
		"config": m.config(t.ID, object{"tags": tagList(u.Tags), "meta": emptyObject()}), "checksum": t.Hash, "schema": "main", "created_at": 0, "versions": nil, "version": nil,
	}
}

func fixtureObject(f project.Fixture) object {
	switch {
	case f.CSV != nil:
		return object{"rows": *f.CSV, "format": "csv", "fixture": nil}
	case f.SQL != "":
		return object{"rows": f.SQL, "format": "sql", "fixture": nil}
	}
	rows := emptyList()
	for _, r := range f.Rows {
		rows = append(rows, metaObject(r))
	}
	return object{"rows": rows, "format": "dict", "fixture": nil}
}

func (m manifestWriter) macros() object {
	all := object{}
	for _, macro := range m.p.Macros() {
		name := macro.Name
		if macro.Kind == "test" {
			name = "test_" + name
		}
		id := "macro." + m.p.Name + "." + name
		if _, taken := all[id]; taken {
			id += "." + strconv.Itoa(macro.Line)
		}
		all[id] = object{
			"name": name, "resource_type": "macro", "package_name": m.p.Name, "path": macro.File, "original_file_path": macro.File, "unique_id": id,
			"macro_sql": macro.Text, "depends_on": object{"macros": emptyList()}, "description": "", "meta": emptyObject(),
			"docs": object{"show": true, "node_color": nil}, "config": object{"meta": emptyObject(), "docs": object{"show": true, "node_color": nil}},
			"patch_path": nil, "arguments": emptyList(), "created_at": 0, "supported_languages": nil,
		}
	}
	return all
}
