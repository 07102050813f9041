package engine

import (
	"fmt"
	"strings"
)

// volatileFunctions are the scalar functions whose value is not settled by
// their arguments: those that DuckDB 1.5.6 calls VOLATILE or
// CONSISTENT_WITHIN_QUERY (a test compares the list with duckdb_functions()),
// macros over them, and a few that call themselves CONSISTENT but read the
// clock or the session. error is missing on purpose: it never gives a value.
var volatileFunctions = set(
	"current_database", "current_date", "current_time", "current_timestamp", "current_schema", "current_schemas",
	"get_current_time", "get_current_timestamp", "in_search_path", "now", "today", "transaction_timestamp",
	"txid_current", "current_connection_id", "current_query", "current_query_id", "current_transaction_id",
	"currval", "gen_random_uuid", "nextval", "random", "setseed", "sleep_ms", "stats", "uuid", "uuidv4", "uuidv7",
	"write_log", "current_localtime", "current_localtimestamp", "localtime", "localtimestamp", "current_setting", "getenv", "getvariable",
	"ago", "pg_postmaster_start_time", "pg_conf_load_time", "pg_sleep", "current_user", "current_catalog", "session_user", "user", "current_role",
)

// volatileNames are the words that are functions without parentheses and read
// the clock.
var volatileNames = set("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")

// pureTableFunctions give the same rows for the same arguments. Every other
// table function reads something that no fingerprint knows.
var pureTableFunctions = set("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree",
	"regexp_split_to_table", "generate_subscripts", "test_all_types", "test_vector_types")

// readers are the table functions by which a query reads something that is
// named by its text, for the lexical look at a text that is not parsed.
var readers = set("read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_json_objects", "read_json_objects_auto",
	"read_ndjson", "read_ndjson_auto", "read_ndjson_objects", "read_parquet", "parquet_scan", "read_text", "read_blob",
	"read_duckdb", "glob", "sniff_csv", "query", "query_table", "parquet_metadata", "parquet_schema", "parquet_file_metadata",
	"parquet_kv_metadata", "parquet_full_metadata", "arrow_scan", "seq_scan", "json_execute_serialized_sql", "which_secret")

// systemSchemas hold what the engine says of itself.
var systemSchemas = set("information_schema", "pg_catalog")

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// volatileCall says why a call of a scalar function can make a text never
// unchanged; "" if it cannot. args is the number of arguments.
func volatileCall(name string, args int) string {
	name = strings.ToLower(name)
	if volatileFunctions[name] || name == "age" && args == 1 {
		return "calls " + name + "()"
	}
	return ""
}

func volatileTableFunction(name string) string {
	if name = strings.ToLower(name); !pureTableFunctions[name] {
		return "reads " + name + "()"
	}
	return ""
}

// volatileTable says why a table reference reads what no fingerprint knows: a
// file by its name, another catalog, the engine's own catalog.
func volatileTable(catalog, schema, name string) string {
	lower := strings.ToLower(name)
	switch {
	case catalog != "" && !strings.EqualFold(catalog, "memory"):
		return fmt.Sprintf("reads the catalog %s", catalog)
	case systemSchemas[strings.ToLower(schema)]:
		return fmt.Sprintf("reads the schema %s", schema)
	case schema == "" && strings.ContainsAny(name, "./*?\\"):
		return fmt.Sprintf("reads the file %s", name)
	case strings.HasPrefix(lower, "duckdb_") || strings.HasPrefix(lower, "pragma_") || strings.HasPrefix(lower, "sqlite_"):
		return fmt.Sprintf("reads the engine's catalog (%s)", name)
	}
	return ""
}

// lexicalVolatility is what the tokens alone say of volatility, where the text
// is not parsed: the first reason, "" if there is none. The look at the parse
// tree, taken when a node runs, is what counts.
func (s statement) lexicalVolatility() string {
	for i, t := range s.tokens {
		name, ok := identifier(s.text, t)
		if !ok {
			continue
		}
		lower := strings.ToLower(name)
		if i > 0 && s.text[s.tokens[i-1].start] == '.' && !s.callAt(i+1) {
			continue
		}
		switch {
		case s.callAt(i + 1):
			if why := volatileCall(lower, s.arguments(i+1)); why != "" {
				return why
			}
			if readers[lower] {
				return "reads " + lower + "()"
			}
		case t.kind == tokWord && volatileNames[lower]:
			return "reads " + lower
		case t.kind == tokWord && (lower == "tablesample" || lower == "sample" && i > 0 && s.wordAt(i-1) == "using"):
			return "takes a sample"
		case t.kind == tokWord && (lower == "from" || lower == "join") && i+1 < len(s.tokens) && s.tokens[i+1].kind == tokString:
			next := s.tokens[i+1]
			return "reads the file " + strings.Trim(s.text[next.start:next.end], "'")
		}
	}
	return ""
}

func (s statement) wordAt(i int) string {
	return strings.ToLower(s.text[s.tokens[i].start:s.tokens[i].end])
}

func (s statement) callAt(i int) bool {
	return i < len(s.tokens) && s.text[s.tokens[i].start] == '('
}

// arguments counts the arguments of the call whose parenthesis is token i.
func (s statement) arguments(i int) int {
	depth, n := 0, 0
	for k := i; k < len(s.tokens); k++ {
		switch s.text[s.tokens[k].start] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				if k > i+1 {
					n++
				}
				return n
			}
		case ',':
			if depth == 1 {
				n++
			}
		}
	}
	return n
}
