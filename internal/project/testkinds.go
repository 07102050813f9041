package project

import "rbt/internal/jinja"

// testColumnKeys say which columns an assertion is about, where it does not
// stand at a column.
func testColumnKeys() []mapKey {
	return []mapKey{
		{name: "column", aliases: []string{"column_name"}, kind: kindText, doc: "The column."},
		{name: "columns", aliases: []string{"combination_of_columns"}, kind: kindTexts, doc: "The columns."},
	}
}

// testNameKeys say what an assertion is called.
func testNameKeys() []mapKey {
	return []mapKey{
		{name: "name", kind: kindText, doc: "Name of the test; made from kind, model and columns where it is absent."},
		{name: "description", kind: kindText, doc: "What is tested."},
	}
}

func newTestTable(kind string, foreign map[string]string, keys ...mapKey) *keyTable {
	all := make(map[string]string, len(foreign)+len(foreignTestConfigKeys))
	for k, v := range foreignTestConfigKeys {
		all[k] = v
	}
	for k, v := range foreign {
		all[k] = v
	}
	keys = append(keys, testColumnKeys()...)
	keys = append(keys, testNameKeys()...)
	keys = append(keys, testConfigKeys()...)
	// Opened before the mapping is read; here for editors.
	keys = append(keys, mapKey{name: "config", kind: kindTable, sub: "test_config", doc: "dbt's place for severity, where and the like."},
		mapKey{name: "arguments", kind: kindAny, doc: "dbt's place for the arguments."})
	return newTable("test_"+kind, "the test "+kind, all, keys...)
}

// builtinTests are the generic assertions, by kind, with their arguments.
var builtinTests = map[string]*keyTable{
	"not_null":     newTestTable("not_null", nil),
	"unique":       newTestTable("unique", nil),
	"not_constant": newTestTable("not_constant", map[string]string{"group_by_columns": ""}),
	"accepted_values": newTestTable("accepted_values", map[string]string{
		"quote": "remove it: values are compared as the column's type",
	}, mapKey{name: "values", kind: kindTexts, doc: "The values, as spelled; a null is ignored."}),
	"relationships": newTestTable("relationships", nil,
		mapKey{name: "to", kind: kindText, doc: "Model, seed, ref('name') or source('group', 'table')."},
		mapKey{name: "field", kind: kindText, doc: "Column of the other relation; the same name where it is absent."}),
	"range": newTestTable("range", map[string]string{
		"min_value": "write `min:`", "max_value": "write `max:`", "inclusive": "write `exclusive: true` for the contrary",
	},
		mapKey{name: "min", kind: kindText, doc: "Least value."},
		mapKey{name: "max", kind: kindText, doc: "Greatest value."},
		mapKey{name: "exclusive", kind: kindText, enum: []string{"true", "false", "min", "max"}, doc: "Which of the bounds are themselves refused."}),
	"row_count": newTestTable("row_count", map[string]string{"compare_model": "write `equal_to:`"},
		mapKey{name: "min", kind: kindInt, doc: "Least number of rows."},
		mapKey{name: "max", kind: kindInt, doc: "Greatest number of rows."},
		mapKey{name: "equal", kind: kindInt, doc: "The number of rows."},
		mapKey{name: "equal_to", kind: kindText, doc: "A model with as many rows."}),
	"expression": newTestTable("expression", nil,
		mapKey{name: "sql", aliases: []string{"expression"}, kind: kindText, doc: "SQL condition that is true for every row."}),
	"matches": newTestTable("matches", nil,
		mapKey{name: "pattern", aliases: []string{"regex"}, kind: kindText, doc: "Regular expression that every value matches."}),
	"freshness": newTestTable("freshness", map[string]string{"datepart": "write `max_age: 1 day`", "interval": "write `max_age: 1 day`"},
		mapKey{name: "max_age", kind: kindDuration, doc: "Greatest age of the newest value, as 1 day."}),
	"sequence": newTestTable("sequence", map[string]string{"interval": "write `step:`", "datepart": ""},
		mapKey{name: "step", kind: kindText, doc: "Difference of neighbours; 1 where it is absent."}),
}

// foreignTests are tests of packages that dbt projects use, and what to write
// instead.
var foreignTests = map[string]string{
	"dbt_utils.unique_combination_of_columns": "write `unique: [a, b]`",
	"dbt_utils.expression_is_true":            "write `expression: <condition>`",
	"dbt_utils.accepted_range":                "write `range: {min: …, max: …}`",
	"dbt_utils.not_constant":                  "write `not_constant`",
	"dbt_utils.sequential_values":             "write `sequence`",
	"dbt_utils.equal_rowcount":                "write `row_count: {equal_to: <model>}`",
	"dbt_utils.recency":                       "write `freshness: {column: …, max_age: 1 day}`",
	"dbt_utils.at_least_one":                  "write `expression` or a singular test",
	"dbt_utils.not_accepted_values":           "write `expression: <column> not in (…)`",
	"dbt_utils.relationships_where":           "write `relationships` with `where:`",
	"dbt_utils.not_empty_string":              "write `expression: <column> <> ''`",
	"dbt_utils.cardinality_equality":          "write a singular test",
	"dbt_utils.equality":                      "write a singular test",
	"dbt_utils.fewer_rows_than":               "write a singular test",
	"dbt_utils.not_null_proportion":           "write `not_null: {error_if: '> 5%'}`",
	"dbt_utils.mutually_exclusive_ranges":     "write a singular test",
}

// testKinds are the kinds that a project knows: the built-in ones and its own
// {% test %} blocks.
type testKinds struct {
	own   map[string]*ownTest
	names []string // of all kinds, sorted
	lost  *lost    // of the project; nil where nothing is
}

// ownTest is a {% test %} block.
type ownTest struct {
	info  jinja.MacroInfo
	table *keyTable
}
