package project

// The tables of all mappings that a project may hold. They are constants in all
// but name: nothing ever changes them.

// tableNamed gives the table that other tables name as `sub`.
func tableNamed(name string) *keyTable {
	for _, t := range []*keyTable{
		projectTable, targetTable, folderTable, engineTable, modelTable, columnTable, docsTable, contractTable,
		sourceTable, sourceTableTable, freshnessTable, csvOptions, jsonOptions, noOptions, seedTable, seedConfigTable,
		ymlTable, unitTestTable, givenTable, expectTable, overridesTable, testConfigTable, singularTable,
		inputTable, inputOptions, rootByTable, recordTable, fieldTable, referenceTable, childTable, idTable, sourceConfigTable,
		selectorsTable, selectorTable, criterionTable, criteriaTable, excludeTable,
	} {
		if t.name == name {
			return t
		}
	}
	panic("project: no table named " + name)
}

var (
	materializations = []string{"table", "view", "ephemeral", "incremental", "ingest"}
	severities       = []string{"error", "warn"}
)

// projectKeys are the keys that project.yml has and a target may override.
func projectKeys() []mapKey {
	return []mapKey{
		{name: "models", kind: kindText, doc: "Folder of the models."},
		{name: "seeds", kind: kindText, doc: "Folder of the seeds."},
		{name: "tests", kind: kindText, doc: "Folder of singular tests and of generic test blocks."},
		{name: "macros", kind: kindText, doc: "Folder of the macros."},
		{name: "lake", kind: kindText, doc: "Folder of the published data, in the project or absolute."},
		{name: "target", aliases: []string{"target_path"}, kind: kindText, doc: "Folder of artifacts."},
		{name: "roots", kind: kindTextMap, doc: "Named folders outside the project; $name stands for one in any path."},
		{name: "folders", kind: kindMap, sub: "folder", doc: "Defaults of models by folder under the models folder; the deepest folder wins."},
		{name: "vars", kind: kindAny, doc: "Variables for var(); values keep their spelling."},
		{name: "sources", kind: kindList, sub: "source", doc: "Tables of files that rbt reads and does not write."},
		{name: "engine", kind: kindTable, sub: "engine", doc: "Threads, memory and settings of the SQL engine."},
	}
}

var projectTable = newTable("project", "project.yml", map[string]string{
	"model-paths":           "write `models: <folder>`",
	"seed-paths":            "write `seeds: <folder>`",
	"test-paths":            "write `tests: <folder>`",
	"macro-paths":           "write `macros: <folder>`",
	"target-path":           "write `target: <folder>`",
	"snapshot-paths":        "",
	"analysis-paths":        "",
	"docs-paths":            "",
	"asset-paths":           "",
	"packages-install-path": "",
	"clean-targets":         "`rbt clean` removes the target folder, never the lake",
	"profile":               "write `targets:` with a mapping for each target",
	"config-version":        "remove it",
	"version":               "remove it",
	"require-dbt-version":   "remove it",
	"dispatch":              "",
	"on-run-start":          "rbt has no hooks",
	"on-run-end":            "rbt has no hooks",
	"snapshots":             "",
	"quoting":               "remove it: rbt quotes every name",
	"query-comment":         "",
	"flags":                 "",
	"packages":              "",
	"data_tests":            "write the severity at each test",
	"unit_tests":            "write them in a .yml file under models/, or in a model's frontmatter",
}, append(append([]mapKey{
	{name: "name", kind: kindText, required: true, doc: "Name of the project: letters, digits and _."},
}, projectKeys()...),
	mapKey{name: "targets", kind: kindMap, sub: "target", doc: "Named sets of keys that override those above; chosen by --target."},
	mapKey{name: "default_target", kind: kindText, doc: "The target in force where none is chosen."},
)...)

var targetTable = newTable("target", "a target", map[string]string{
	"type":    "remove it: rbt has one engine",
	"schema":  "write `lake: <folder>`: a target has a lake of its own",
	"threads": "write `engine: {threads: n}`",
	"path":    "write `lake: <folder>`",
}, projectKeys()...)

var engineTable = newTable("engine", "`engine`", nil,
	mapKey{name: "threads", kind: kindInt, doc: "Nodes built at once; 0 is the number of cores, at most 8."},
	mapKey{name: "duckdb_threads", kind: kindInt, doc: "Threads of the engine; 0 is the number of cores."},
	mapKey{name: "memory_limit", kind: kindText, doc: "Memory of the engine, as 4GB or 80%."},
	mapKey{name: "settings", kind: kindTextMap, doc: "Settings of DuckDB by name."},
)

// foreignModelKeys are dbt's keys of models that rbt does not have.
var foreignModelKeys = map[string]string{
	"schema":                 "write `path: <folder>`: the folder of the lake",
	"database":               "",
	"alias":                  "rename the file: a model is named after it",
	"unique_key":             "rbt appends; remove duplicates in a table model over it",
	"incremental_strategy":   "write `strategy: append`",
	"incremental_predicates": "",
	"merge_update_columns":   "",
	"merge_exclude_columns":  "",
	"partition_by":           "",
	"partitioned_by":         "",
	"cluster_by":             "write ORDER BY in the model",
	"sort":                   "write ORDER BY in the model",
	"dist":                   "",
	"indexes":                "",
	"index":                  "",
	"pre_hook":               "rbt has no hooks",
	"post_hook":              "rbt has no hooks",
	"pre-hook":               "rbt has no hooks",
	"post-hook":              "rbt has no hooks",
	"grants":                 "",
	"persist_docs":           "",
	"group":                  "",
	"access":                 "",
	"lookback":               "",
	"event_time":             "",
	"batch_size":             "",
	"begin":                  "",
	"concurrent_batches":     "",
	"full_refresh":           "use the flag --full-refresh",
	"quoting":                "remove it: rbt quotes every name",
	"constraints":            "write tests: not_null, unique, expression",
	"versions":               "write one file a version, as name_v2.sql; ref('name', v=2) finds it",
	"latest_version":         "write one file a version, as name_v2.sql; ref('name', v=2) finds it",
	"deprecation_date":       "",
	"time_spine":             "",
	"location":               "write `path: <folder>`: the folder of the lake",
	"location_root":          "write `path: <folder>`: the folder of the lake",
	"file_format":            "",
	"format":                 "",
	"options":                "",
	"transient":              "",
	"query_tag":              "",
	"copy_grants":            "",
	"snowflake_warehouse":    "",
	"packages":               "",
	"static_analysis":        "",
	"sql_header":             "",
	"config":                 "write its keys here, without config",
	"freshness":              "write `tests: [{freshness: {column: c, max_age: 1 day}}]`",
}

// modelKeys are the keys that frontmatter, config() and folder defaults share.
func modelKeys() []mapKey {
	return []mapKey{
		{name: "materialization", aliases: []string{"materialized"}, kind: kindText, enum: materializations, doc: "How the model is published: table, view, ephemeral, incremental or ingest."},
		{name: "strategy", kind: kindText, enum: []string{"append"}, doc: "How an incremental model takes new rows."},
		{name: "layout", kind: kindText, enum: []string{"file", "parts"}, doc: "One Parquet file, or parts with a manifest that readers never meet half replaced."},
		{name: "tags", kind: kindTexts, doc: "Words to select by; added to those of the folders."},
		{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
		{name: "enabled", kind: kindBool, doc: "false takes the model out of the project."},
		{name: "path", kind: kindText, doc: "Sub-folder of the lake."},
		{name: "contract", kind: kindTable, sub: "contract", short: true, doc: "enforced: the output has exactly the declared columns and types."},
		{name: "on_schema_change", kind: kindText, enum: []string{"fail", "full_refresh"}, doc: "What an increment does whose columns differ from the published ones."},
		{name: "docs", kind: kindTable, sub: "docs", doc: "How documentation shows the model."},
	}
}

var folderTable = newTable("folder", "folder defaults", foreignModelKeys, modelKeys()...)

// ownModelKeys are the keys that only one model can have.
func ownModelKeys() []mapKey {
	return []mapKey{
		{name: "description", kind: kindText, doc: "What the model holds."},
		{name: "columns", kind: kindColumns, sub: "column", doc: "Columns with type, description and tests."},
		{name: "tests", aliases: []string{"data_tests"}, kind: kindTests, doc: "Assertions on the model."},
		{name: "unit_tests", kind: kindList, sub: "unit_test", doc: "Unit tests of the model."},
	}
}

var modelTable = newTable("model", "the frontmatter", foreignModelKeys,
	append(append(ownModelKeys(), modelKeys()...), ingestKeys()...)...)

var contractTable = newTable("contract", "`contract`", map[string]string{"alias_types": "remove it: types are compared as DuckDB names them"},
	mapKey{name: "enforced", kind: kindBool, doc: "true: the output must have exactly the declared columns and types."},
)

var docsTable = newTable("docs", "`docs`", nil,
	mapKey{name: "show", kind: kindBool, doc: "false hides the model from documentation."},
	mapKey{name: "node_color", kind: kindText, doc: "Colour of the node in graphs."},
)

var columnTable = newTable("column", "a column", map[string]string{
	"constraints": "write tests: not_null, unique, expression",
	"quote":       "remove it: rbt quotes every name",
	"policy_tags": "", "granularity": "", "dimension": "",
},
	mapKey{name: "name", kind: kindText, doc: "Name of the column, where columns are a list."},
	mapKey{name: "type", aliases: []string{"data_type"}, kind: kindText, doc: "DuckDB type."},
	mapKey{name: "description", kind: kindText, doc: "What the column holds."},
	mapKey{name: "tests", aliases: []string{"data_tests"}, kind: kindTests, doc: "Assertions on the column."},
	mapKey{name: "tags", kind: kindTexts, doc: "Words to select the column's tests by."},
	mapKey{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
)

var ymlTable = newTable("properties", "a .yml file under models/", map[string]string{
	"snapshots": "", "exposures": "", "metrics": "", "semantic_models": "", "groups": "", "saved_queries": "",
	"analyses": "", "functions": "",
	"macros":     "describe macros in their own files",
	"tests":      "write assertions in the frontmatter of the model",
	"data_tests": "write assertions in the frontmatter of the model",
},
	mapKey{name: "version", kind: kindText, enum: []string{"2"}, doc: "dbt's version of such files; may be left out."},
	mapKey{name: "sources", kind: kindList, sub: "source", doc: "Tables of files that rbt reads and does not write."},
	mapKey{name: "seeds", kind: kindList, sub: "seed", doc: "Columns, tests and options of seeds."},
	mapKey{name: "unit_tests", kind: kindList, sub: "unit_test", doc: "Unit tests of models."},
	mapKey{name: "models", kind: kindAny, doc: "Refused: a model is described in its own frontmatter."},
)
