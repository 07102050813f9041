package engine

import (
	"slices"
	"strings"

	"rbt/internal/lake"
)

// plainCalls are the words before a parenthesis of which it is known that they
// give the same value for the same arguments, that they are no table function,
// and that they make no date, time or NULL type of what is none: common
// functions, and keywords.
var plainCalls = set(
	"sum", "count", "min", "max", "avg", "coalesce", "nullif", "abs", "round", "floor", "ceil", "ceiling", "sign", "mod",
	"greatest", "least", "cast", "lower", "upper", "trim", "ltrim", "rtrim", "length", "substr", "substring",
	"replace", "concat", "row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value",
	"select", "from", "join", "where", "having", "by", "on", "using", "and", "or", "not", "in", "exists", "as", "over", "filter",
	"values", "union", "all", "except", "intersect", "distinct", "case", "when", "then", "else", "between", "like", "is", "limit",
	"decimal", "numeric", "varchar", "materialized",
)

// unplain are the words by which a text may read, or come to, something that its
// tokens do not show.
var unplain = set("pivot", "pivot_wider", "pivot_longer", "unpivot", "describe", "summarize", "show", "show_ref", "pragma", "call", "sample",
	"tablesample", "columns", "lambda", "recursive", "lateral", "at", "rowid")

// plain reports whether the tokens alone show what the parse tree would: that
// the text reads the relations that it names and nothing else, gives the same
// rows for the same data, and has a parse tree. A text of which they do not show
// it is looked at by the engine's parser.
func (s statement) plain() bool {
	if s.shown != nil {
		return s.shown()
	}
	return s.showsAll()
}

// showsAll is plain without what was found before.
func (s statement) showsAll() bool {
	for i, t := range s.tokens {
		text := s.text[t.start:t.end]
		switch t.kind {
		case tokNumber, tokSemi:
			continue
		case tokString:
			// A file may be named where a relation is.
			if text[0] != '\'' || strings.ContainsAny(text, `./*?\`) {
				return false
			}
			continue
		case tokOp, tokPunct:
			// Lists, structs, lambdas, and operators that are functions.
			if text != "!=" && strings.ContainsAny(text, "[]{}@#&^~!$?") || strings.Contains(text, "->") {
				return false
			}
			continue
		}
		name, ok := identifier(s.text, t)
		if !ok {
			return false
		}
		lower := strings.ToLower(name)
		switch {
		case volatileFunctions[lower], systemSchemas[lower], unplain[lower], readers[lower], strings.ContainsAny(lower, `./*?\`),
			strings.HasPrefix(lower, "duckdb_"), strings.HasPrefix(lower, "pragma_"), strings.HasPrefix(lower, "sqlite_"):
			return false
		case s.callAt(i+1) && (!plainCalls[lower] || t.kind == tokQuoted):
			return false
		case s.threeParts(i):
			return false // the first may be another catalog
		}
	}
	return true
}

// threeParts reports whether a name of three parts begins at token i.
func (s statement) threeParts(i int) bool {
	dot := func(k int) bool { return k < len(s.tokens) && s.text[s.tokens[k].start:s.tokens[k].end] == "." }
	return dot(i+1) && dot(i+3)
}

// untyped reports whether a plain text over these columns may give a column of
// type NULL, which the engine calls INTEGER where it is not asked closely.
func (s statement) untyped(columns []lake.Column) bool {
	for i, t := range s.tokens {
		name, ok := identifier(s.text, t)
		if !ok || !strings.EqualFold(name, "null") {
			continue
		}
		// IS NULL and IS NOT NULL are no values.
		if before := max(0, i-1); t.kind == tokQuoted || s.wordAt(before) != "is" && s.wordAt(before) != "not" {
			return true
		}
	}
	for _, c := range columns {
		if strings.Contains(c.Type, "NULL") {
			return true
		}
	}
	return false
}

// untimed reports whether no value of a plain text over these columns can be a
// date, a time or an interval.
func (s statement) untimed(columns []lake.Column) bool {
	timed := func(text string) bool {
		upper := strings.ToUpper(text)
		return strings.Contains(upper, "DATE") || strings.Contains(upper, "TIME") || strings.Contains(upper, "INTERVAL")
	}
	for _, t := range s.tokens {
		if (t.kind == tokWord || t.kind == tokQuoted) && timed(s.text[t.start:t.end]) {
			return false
		}
	}
	for _, c := range columns {
		if timed(c.Type) {
			return false
		}
	}
	return true
}

// joins reports whether the engine may join relations of a plain text by
// conditions: for a join that is written, or a query that stands for a value.
func (s statement) joins() bool {
	if s.mentions("join", "in", "exists", "using") {
		return true
	}
	queries := []string{"select", "from", "with", "values", "("}
	relations := []string{"as", "materialized", "from"}
	for i := range s.tokens {
		// Behind AS of WITH and behind FROM a query in parentheses is a relation.
		if s.callAt(i) && 0 < i && i+1 < len(s.tokens) && slices.Contains(queries, s.wordAt(i+1)) && !slices.Contains(relations, s.wordAt(i-1)) {
			return true
		}
	}
	return false
}
