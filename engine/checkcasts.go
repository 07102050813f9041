package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// checkCasts refuses a query with a cast that no value survives: DuckDB 1.5.6
// compares a date with a number by such a cast and fails when the first row
// comes. Strictly it also refuses a join of text with numbers or times, in which
// nothing says that the text holds such: it fails on the first that does not.
func (s *session) checkCasts(ctx context.Context, st statement, strict bool) error {
	text := ""
	err := s.Query(ctx, "SELECT CAST(json_serialize_plan("+quoteText(st.text)+") AS VARCHAR)", func(v []any) error {
		text, _ = v[0].(string)
		return nil
	})
	if err != nil || !strings.Contains(text, `"BOUND_CAST"`) {
		return err
	}
	var tree any
	if err := json.Unmarshal(treeJSON(text), &tree); err != nil {
		return fmt.Errorf("read the plan of a query: %w", err)
	}
	if p := impossibleCast(tree); p != nil {
		return p
	}
	if p := st.mixedJoin(tree); p != nil && strict {
		return p
	}
	return nil
}

// mixedJoin finds a join condition that compares a column of text with one of
// another kind, without a cast in the text of the query.
func (s statement) mixedJoin(value any) *sqlProblem {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if p := s.mixedJoin(item); p != nil {
				return p
			}
		}
	case map[string]any:
		conditions, _ := v["conditions"].([]any)
		for _, item := range conditions {
			c, _ := item.(map[string]any)
			for _, side := range []string{"left", "right"} {
				if p := s.takenFor(c[side]); p != nil {
					return p
				}
			}
		}
		for _, key := range sortedKeys(v) {
			if p := s.mixedJoin(v[key]); p != nil {
				return p
			}
		}
	}
	return nil
}

// takenFor finds a column of text that is converted though nothing asks for it.
func (s statement) takenFor(side any) *sqlProblem {
	cast, _ := side.(map[string]any)
	offset := offsetOf(cast)
	to := castType(cast)
	if cast["expression_class"] != "BOUND_CAST" || castType(cast["child"]) != "VARCHAR" || castClass(to) == 0 || cast["try_cast"] != false {
		return nil
	}
	if offset < 0 {
		offset = s.inUsing(text(cast["child"].(map[string]any), "alias"))
	}
	// A cast that is written stands at its keyword.
	i, ok := placing{text: s}.tokenAt(offset)
	if !ok || i+1 < len(s.tokens) && s.text[s.tokens[i+1].start:s.tokens[i+1].end] == "(" {
		return nil
	}
	if _, isName := identifier(s.text, s.tokens[i]); !isName {
		return nil
	}
	return &sqlProblem{code: diag.SQLBind, offset: offset, width: utf8.RuneCountInString(s.text[s.tokens[i].start:s.tokens[i].end]),
		msg:  fmt.Sprintf("this joins text with a value of type %s: the first text that is none fails the query", to),
		hint: fmt.Sprintf("write which one is meant: cast(… as %s) here, or cast(… as VARCHAR) on the other side", to)}
}

// inUsing is where USING names a column, -1 where it does not.
func (s statement) inUsing(column string) int {
	using := false
	for _, t := range s.tokens {
		word, isName := identifier(s.text, t)
		switch {
		case isName && using && strings.EqualFold(word, column):
			return t.start
		case isName && strings.EqualFold(word, "using"):
			using = true
		case s.text[t.start:t.end] == ")":
			using = false
		}
	}
	return -1
}

// impossibleCast finds a cast between numbers and times in a serialised plan.
func impossibleCast(value any) *sqlProblem {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if p := impossibleCast(item); p != nil {
				return p
			}
		}
	case map[string]any:
		if v["expression_class"] == "BOUND_CAST" {
			from, to := castType(v["child"]), castType(v)
			if offset := offsetOf(v); offset >= 0 && v["try_cast"] == false && castClass(from) != 0 && castClass(to) != 0 && castClass(from) != castClass(to) {
				return &sqlProblem{code: diag.SQLBind, offset: offset, msg: fmt.Sprintf("a value of type %s can never be taken for a %s", from, to),
					hint: "compare values of one type, or convert them in a way that means something"}
			}
		}
		for _, key := range sortedKeys(v) {
			if p := impossibleCast(v[key]); p != nil {
				return p
			}
		}
	}
	return nil
}

func castType(value any) string {
	o, _ := value.(map[string]any)
	t, _ := o["return_type"].(map[string]any)
	return text(t, "id")
}

// castClass is 1 for numbers, 2 for dates and times, 0 for all else.
func castClass(typ string) int {
	switch {
	case integerTypes[typ] || floatTypes[typ] || typ == "DECIMAL" || typ == "BOOLEAN":
		return 1
	case strings.HasPrefix(typ, "TIME") || typ == "DATE" || typ == "INTERVAL":
		return 2
	}
	return 0
}
