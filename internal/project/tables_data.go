package project

// foreignSourceKeys are dbt's keys of sources that rbt does not have.
var foreignSourceKeys = map[string]string{
	"database": "", "schema": "remove it: a source is a schema of its own name", "loader": "", "overrides": "",
	"quoting": "remove it: rbt quotes every name", "identifier": "name the table as SQL shall call it, and its files with `path`",
	"external": "write `path: <files>` and `format:`", "location": "write `path: <files>`", "constraints": "write tests: not_null, unique, expression",
}

var sourceTable = newTable("source", "a source", foreignSourceKeys,
	mapKey{name: "name", kind: kindText, required: true, doc: "Name of the source, the first argument of source()."},
	mapKey{name: "description", kind: kindText, doc: "Where the data comes from."},
	mapKey{name: "tags", kind: kindTexts, doc: "Words to select by; given to every table."},
	mapKey{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
	mapKey{name: "freshness", kind: kindTable, sub: "freshness", doc: "How old the data may be; the tables' default."},
	mapKey{name: "loaded_at_field", aliases: []string{"loaded_at"}, kind: kindText, doc: "Column that tells when a row was loaded; the tables' default."},
	mapKey{name: "config", kind: kindTable, sub: "source_config", doc: "dbt's place for enabled, tags, meta and freshness."},
	mapKey{name: "tables", kind: kindList, sub: "source_table", doc: "The tables."},
)

var sourceConfigTable = newTable("source_config", "`config` of a source", map[string]string{"event_time": ""},
	mapKey{name: "enabled", kind: kindBool, doc: "false takes it out of the project."},
	mapKey{name: "tags", kind: kindTexts, doc: "Words to select by."},
	mapKey{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
	mapKey{name: "freshness", kind: kindTable, sub: "freshness", doc: "How old the data may be."},
	mapKey{name: "loaded_at_field", aliases: []string{"loaded_at"}, kind: kindText, doc: "Column that tells when a row was loaded."},
)

var sourceTableTable = newTable("source_table", "a source table", foreignSourceKeys,
	mapKey{name: "name", kind: kindText, required: true, doc: "Name of the table, the second argument of source()."},
	mapKey{name: "path", kind: kindTexts, required: true, doc: "A file, a glob, or a list of them, in the project or under a root."},
	mapKey{name: "format", kind: kindText, enum: []string{"csv", "json", "ndjson", "parquet", "arrow_ipc"}, doc: "Format of the files; taken from their extension where it is absent."},
	mapKey{name: "options", kind: kindAny, doc: "How to read the files; which keys there are depends on the format."},
	mapKey{name: "columns", kind: kindColumns, sub: "column", doc: "Declared columns; matched by name."},
	mapKey{name: "extra_columns", kind: kindText, enum: []string{"keep", "ignore", "error"}, doc: "What happens to columns that are not declared."},
	mapKey{name: "on_missing", kind: kindText, enum: []string{"error", "empty"}, doc: "What happens where there is no file."},
	mapKey{name: "description", kind: kindText, doc: "What the table holds."},
	mapKey{name: "tags", kind: kindTexts, doc: "Words to select by."},
	mapKey{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
	mapKey{name: "tests", aliases: []string{"data_tests"}, kind: kindTests, doc: "Assertions on the table."},
	mapKey{name: "freshness", kind: kindTable, sub: "freshness", doc: "How old the data may be."},
	mapKey{name: "loaded_at_field", aliases: []string{"loaded_at"}, kind: kindText, doc: "Column that tells when a row was loaded; file times where it is absent."},
	mapKey{name: "config", kind: kindTable, sub: "source_config", doc: "dbt's place for enabled, tags, meta and freshness."},
)

var freshnessTable = newTable("freshness", "`freshness`", map[string]string{"filter": ""},
	mapKey{name: "warn_after", kind: kindDuration, doc: "Age from which on it is a warning: 12 hours, or {count: 12, period: hour}."},
	mapKey{name: "error_after", kind: kindDuration, doc: "Age from which on it is an error."},
	mapKey{name: "loaded_at_field", aliases: []string{"loaded_at"}, kind: kindText, doc: "Column that tells when a row was loaded."},
)

// csvOptions are options of csv files, by the names that DuckDB's read_csv has.
var csvOptions = newTable("csv_options", "`options` of csv files", nil,
	mapKey{name: "header", kind: kindBool, doc: "Whether the first line names the columns."},
	mapKey{name: "delimiter", aliases: []string{"delim", "sep"}, kind: kindText, doc: "What stands between values."},
	mapKey{name: "quote", kind: kindText, doc: "The character that encloses values; empty for none."},
	mapKey{name: "escape", kind: kindText, doc: "The character before a quote within a value."},
	mapKey{name: "nullstr", aliases: []string{"null"}, kind: kindText, doc: "The text that means NULL."},
	mapKey{name: "skip", kind: kindInt, doc: "Lines to leave out at the top."},
	mapKey{name: "comment", kind: kindText, doc: "The character that begins a comment line."},
	mapKey{name: "encoding", kind: kindText, enum: []string{"utf-8", "utf-16", "latin-1"}, doc: "Encoding of the files."},
	mapKey{name: "compression", kind: kindText, enum: []string{"none", "gzip", "zstd"}, doc: "Compression; taken from the extension where it is absent."},
	mapKey{name: "dateformat", aliases: []string{"date_format"}, kind: kindText, doc: "How dates are written, as %d.%m.%Y."},
	mapKey{name: "timestampformat", aliases: []string{"timestamp_format"}, kind: kindText, doc: "How timestamps are written."},
	mapKey{name: "decimal_separator", kind: kindText, enum: []string{".", ","}, doc: "What stands before decimals."},
)

var jsonOptions = newTable("json_options", "`options` of json files", nil,
	mapKey{name: "compression", kind: kindText, enum: []string{"none", "gzip", "zstd"}, doc: "Compression; taken from the extension where it is absent."},
	mapKey{name: "dateformat", aliases: []string{"date_format"}, kind: kindText, doc: "How dates are written, as %d.%m.%Y."},
	mapKey{name: "timestampformat", aliases: []string{"timestamp_format"}, kind: kindText, doc: "How timestamps are written."},
	mapKey{name: "maximum_object_size", kind: kindInt, doc: "Bytes of the largest object."},
)

var noOptions = newTable("no_options", "`options` of this format, which has none,", nil)

var seedTable = newTable("seed", "a seed", map[string]string{
	"quote_columns": "remove it: rbt quotes every name", "alias": "rename the file", "schema": "", "database": "", "column_types": "write `columns: {name: TYPE}`",
},
	mapKey{name: "name", kind: kindText, required: true, doc: "Name of the seed: its file without .csv."},
	mapKey{name: "description", kind: kindText, doc: "What the seed holds."},
	mapKey{name: "columns", kind: kindColumns, sub: "column", doc: "Columns with type, description and tests."},
	mapKey{name: "tests", aliases: []string{"data_tests"}, kind: kindTests, doc: "Assertions on the seed."},
	mapKey{name: "options", kind: kindAny, doc: "How to read the file, as for csv sources."},
	mapKey{name: "delimiter", kind: kindText, doc: "What stands between values; short for options.delimiter."},
	mapKey{name: "tags", kind: kindTexts, doc: "Words to select by."},
	mapKey{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
	mapKey{name: "enabled", kind: kindBool, doc: "false takes the seed out of the project."},
	mapKey{name: "docs", kind: kindTable, sub: "docs", doc: "How documentation shows the seed."},
	mapKey{name: "config", kind: kindTable, sub: "seed_config", doc: "dbt's place for enabled, tags, meta, column_types and delimiter."},
)

var seedConfigTable = newTable("seed_config", "`config` of a seed", map[string]string{
	"quote_columns": "remove it: rbt quotes every name", "schema": "", "alias": "rename the file", "database": "", "full_refresh": "",
},
	mapKey{name: "enabled", kind: kindBool, doc: "false takes the seed out of the project."},
	mapKey{name: "tags", kind: kindTexts, doc: "Words to select by."},
	mapKey{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
	mapKey{name: "delimiter", kind: kindText, doc: "What stands between values."},
	mapKey{name: "column_types", kind: kindTextMap, doc: "Types by column."},
)

var unitTestTable = newTable("unit_test", "a unit test", map[string]string{"versions": "", "tags": "write `config: {tags: […]}`"},
	mapKey{name: "name", kind: kindText, required: true, doc: "Name of the unit test."},
	mapKey{name: "model", kind: kindText, doc: "The model that is tested; left out in frontmatter."},
	mapKey{name: "description", kind: kindText, doc: "What is tested."},
	mapKey{name: "given", kind: kindList, sub: "given", doc: "Rows of the inputs."},
	mapKey{name: "expect", kind: kindTable, sub: "expect", required: true, doc: "Rows that the model must give; of an incremental model, those of the increment."},
	mapKey{name: "expect_table", kind: kindTable, sub: "expect", doc: "Rows that an incremental model must hold after the increment."},
	mapKey{name: "overrides", kind: kindTable, sub: "overrides", doc: "Variables and macros that the test replaces."},
	mapKey{name: "now", kind: kindText, doc: "The time that run_started_at gives, as 2024-01-31T00:00:00Z."},
	mapKey{name: "config", kind: kindTable, sub: "test_config", doc: "enabled, tags and meta."},
)

// fixtureKeys are the keys of rows, given or expected.
func fixtureKeys() []mapKey {
	return []mapKey{
		{name: "rows", kind: kindAny, doc: "A list of mappings, or text in the given format."},
		{name: "format", kind: kindText, enum: []string{"dict", "csv", "sql"}, doc: "What `rows` is; dict where it is absent."},
		{name: "csv", kind: kindText, doc: "The rows as CSV with a header."},
		{name: "sql", kind: kindText, doc: "The rows as a query."},
	}
}

var foreignFixtureKeys = map[string]string{"fixture": "write the rows at the test, with `csv: |` or `sql: |`"}

var givenTable = newTable("given", "an input of a unit test", foreignFixtureKeys, append([]mapKey{
	{name: "input", kind: kindText, required: true, doc: "ref('model'), source('group', 'table'), or this."},
}, fixtureKeys()...)...)

var expectTable = newTable("expect", "expected rows", foreignFixtureKeys, fixtureKeys()...)

var overridesTable = newTable("overrides", "`overrides`", map[string]string{"env_vars": "override the variable that takes it"},
	mapKey{name: "vars", kind: kindAny, doc: "Variables by name."},
	mapKey{name: "macros", kind: kindAny, doc: "What macros return, by name; is_incremental among them."},
)

// testConfigKeys are what may be said about every assertion.
func testConfigKeys() []mapKey {
	return []mapKey{
		{name: "severity", kind: kindText, enum: severities, doc: "error stops the publish, warn does not."},
		{name: "warn_if", kind: kindText, doc: "When it is a warning: a comparison with a count or a percentage, as >10 or >5%."},
		{name: "error_if", kind: kindText, doc: "When it is an error: a comparison with a count or a percentage."},
		{name: "where", kind: kindText, doc: "SQL condition of the rows that are looked at."},
		{name: "limit", kind: kindInt, doc: "Most failing rows that are counted."},
		{name: "nulls", kind: kindText, enum: []string{"ignore", "fail"}, doc: "fail makes a NULL a violation."},
		{name: "tags", kind: kindTexts, doc: "Words to select by."},
		{name: "meta", kind: kindAny, doc: "Anything; kept for other programs."},
		{name: "enabled", kind: kindBool, doc: "false takes it out of the project."},
	}
}

var foreignTestConfigKeys = map[string]string{
	"fail_calc": "", "store_failures": "use the flag --store-failures", "store_failures_as": "use the flag --store-failures",
	"database": "", "schema": "", "alias": "write `name:`", "group": "", "materialized": "", "sql_header": "",
}

var testConfigTable = newTable("test_config", "`config` of a test", foreignTestConfigKeys, testConfigKeys()...)

var singularTable = newTable("singular", "the frontmatter of a test", foreignTestConfigKeys,
	append([]mapKey{{name: "description", kind: kindText, doc: "What is tested."}}, testConfigKeys()...)...)
