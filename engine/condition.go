package engine

import "rbt/internal/diag"

// checkCondition refuses a text that, put into parentheses, would not stay in
// them: one that closes them, leaves one of its own, a string or a comment open,
// or ends the statement.
func checkCondition(sql string) error {
	tokens, err := scanTokens(sql)
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		return &sqlProblem{code: diag.SQLEmpty, msg: "there is no condition here, only a comment"}
	}
	for _, t := range tokens {
		if t.kind == tokSemi {
			return &sqlProblem{code: diag.SQLSyntax, offset: t.start, msg: "a condition has no semicolon", hint: "write what is true of a good row, as amount > 0"}
		}
	}
	return checkParentheses(sql, tokens)
}

// checkParentheses refuses tokens in which parentheses do not match. Whole queries
// need it not: the engine is shown them alone before they stand in anything.
func checkParentheses(sql string, tokens []token) error {
	var open []int
	for _, t := range tokens {
		if t.kind != tokPunct {
			continue
		}
		switch sql[t.start] {
		case '(':
			open = append(open, t.start)
		case ')':
			if len(open) == 0 {
				return &sqlProblem{code: diag.SQLSyntax, offset: t.start, width: 1, msg: "this closing parenthesis closes none"}
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return &sqlProblem{code: diag.SQLSyntax, offset: open[len(open)-1], width: 1, msg: "this parenthesis is never closed"}
	}
	return nil
}
