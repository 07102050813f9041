package engine

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"rbt/internal/diag"
)

// tokenKind tells what a token is.
type tokenKind uint8

const (
	tokWord   tokenKind = iota // bare identifier or keyword
	tokQuoted                  // "quoted identifier"
	tokString                  // any form of string literal
	tokNumber
	tokOp    // a run of operator characters
	tokPunct // one other character: ( ) [ ] { } , . : and whatever the engine will refuse
	tokSemi  // a semicolon
)

// token is a piece of a statement: kind and byte range.
type token struct {
	kind       tokenKind
	start, end int
}

// statement is a text in which exactly one statement was found. In text
// everything outside the statement's tokens (comments, Unicode blanks, empty
// statements) is blank, line breaks kept, so that every byte offset is that of
// the compiled SQL. DuckDB 1.5.6 replaces Unicode blanks by itself, in front of
// its lexer, shifting offsets and, after a quote in a comment, changing
// literals; with this text it finds nothing to replace outside literals.
type statement struct {
	text   string
	tokens []token
	// shown is plain, looked at once; nil where the text was not read by oneQuery.
	shown func() bool
}

// sqlProblem is what is wrong with an SQL text before an engine has seen it:
// what, at which byte offset of the text. It never holds text of a statement
// that may carry a secret.
type sqlProblem struct {
	code   diag.Code
	offset int
	width  int // characters that are meant; 0 is one
	msg    string
	hint   string
}

// Error gives the problem in one line.
func (p *sqlProblem) Error() string { return p.msg }

// SQLOffset is the byte offset in the text that was scanned.
func (p *sqlProblem) SQLOffset() int { return p.offset }

// SQLDiagnostic turns the problem into a diagnostic at the place that belongs
// to SQLOffset.
func (p *sqlProblem) SQLDiagnostic(pos diag.Pos) diag.Diagnostic {
	return diag.Diagnostic{Code: p.code, Pos: pos, Width: p.width, Msg: named(p.msg, pos.File), Hint: named(p.hint, pos.File)}
}

// named says of what does not stand in the file of a model what it is.
func named(text, file string) string {
	what := "a model"
	switch {
	case strings.HasPrefix(file, "tests/"):
		what = "a test"
	case strings.HasPrefix(file, "-"): // a flag
		what = "what is asked"
	}
	for _, verb := range []string{" is one ", " begins with "} {
		text = strings.ReplaceAll(text, "a model"+verb, what+verb)
	}
	if what != "a model" {
		text = strings.Replace(text, "move it into a model of its own", "leave it out", 1)
	}
	return text
}

// queryKeywords are the words with which a query that can stand in a
// sub-query begins.
var queryKeywords = map[string]bool{
	"select": true, "from": true, "with": true, "values": true, "table": true,
	"pivot": true, "unpivot": true, "pivot_wider": true, "pivot_longer": true,
	"describe": true, "summarize": true,
}

// oneQuery finds the one statement of a text and refuses everything that is not
// a query, so that nothing else ever reaches the driver, which executes all
// statements but the last while it prepares.
func oneQuery(sql string) (statement, error) {
	tokens, err := scanTokens(sql)
	if err != nil {
		return statement{}, err
	}
	first := 0
	for first < len(tokens) && tokens[first].kind == tokSemi {
		first++
	}
	if first == len(tokens) {
		return statement{}, &sqlProblem{code: diag.SQLEmpty, offset: 0, msg: "there is no SQL statement here",
			hint: "write one SELECT"}
	}
	last := first
	for last < len(tokens) && tokens[last].kind != tokSemi {
		last++
	}
	body := tokens[first:last]
	if err := checkQueryStart(sql, body); err != nil {
		return statement{}, err
	}
	for _, t := range tokens[last:] {
		if t.kind != tokSemi {
			return statement{}, &sqlProblem{code: diag.SQLTwoStatements, offset: t.start,
				msg:  "a second statement begins here: a model is one SELECT",
				hint: "move it into a model of its own, or use WITH"}
		}
	}
	st := statement{text: blankOutside(sql, body), tokens: body}
	st.shown = sync.OnceValue(st.showsAll)
	return st, st.checkLiterals()
}

// blankOutside gives the text up to the last token with a blank for every byte
// outside tokens that is not a line break.
func blankOutside(sql string, tokens []token) string {
	text := []byte(sql[:tokens[len(tokens)-1].end])
	at := 0
	for _, t := range tokens {
		for ; at < t.start; at++ {
			if text[at] != '\n' {
				text[at] = ' '
			}
		}
		at = t.end
	}
	return string(text)
}

// checkLiterals refuses the one combination in which DuckDB 1.5.6 changes a
// literal: its replacement of Unicode blanks does not know that \' does not end
// an E-string. (No longer needed once hex(e'\'a<U+00A0>') ends in C2A0.)
func (s statement) checkLiterals() error {
	escapedQuote := -1
	for _, t := range s.tokens {
		lit := s.text[t.start:t.end]
		if t.kind == tokString && (lit[0] == 'e' || lit[0] == 'E') && strings.Contains(lit, `\'`) {
			escapedQuote = t.start
			break
		}
	}
	if escapedQuote < 0 {
		return nil
	}
	if i := strings.IndexFunc(s.text, isUnicodeBlank); i >= 0 {
		return &sqlProblem{code: diag.SQLSyntax, offset: escapedQuote,
			msg:  `an E-string with \' in a text that also holds a Unicode blank in a literal: the engine would change it`,
			hint: `write '' for the quote, or \u00a0 for the blank`}
	}
	return nil
}

// checkQueryStart refuses a statement that is not a query, by its first keyword.
func checkQueryStart(sql string, body []token) error {
	for _, t := range body {
		if t.kind == tokPunct && sql[t.start] == '(' {
			continue
		}
		word := strings.ToLower(sql[t.start:t.end])
		switch {
		case t.kind == tokWord && queryKeywords[word]:
			return nil
		case t.kind == tokWord:
			hint := "a model begins with SELECT, FROM, WITH, VALUES, PIVOT or UNPIVOT"
			if near := diag.Nearest(word, []string{"select", "from", "with", "values", "pivot", "unpivot"}); near != "" {
				hint = "did you mean " + strings.ToUpper(near) + "?"
			}
			if rest := sql[t.end:]; strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "::") {
				hint = "`" + firstRunes(word, 20) + ":` looks like frontmatter, which stands between two lines that are exactly ---"
			}
			return &sqlProblem{code: diag.SQLNotAQuery, offset: t.start, hint: hint,
				msg: fmt.Sprintf("a model is one query; this is a statement that begins with %s", strings.ToUpper(firstRunes(word, 20)))}
		}
		return &sqlProblem{code: diag.SQLNotAQuery, offset: t.start,
			msg: "a model is one query, and no query begins like this", hint: "a model begins with SELECT, FROM, WITH, VALUES, PIVOT or UNPIVOT"}
	}
	return &sqlProblem{code: diag.SQLNotAQuery, offset: body[0].start, msg: "a query must follow the parenthesis"}
}

// noModel refuses what can be asked and cannot be stored: the engine takes it in
// FROM only.
func (s statement) noModel() error {
	first := s.tokens[0]
	word := s.text[first.start:first.end]
	if !strings.EqualFold(word, "describe") && !strings.EqualFold(word, "summarize") {
		return nil
	}
	return &sqlProblem{code: diag.SQLNotAQuery, offset: first.start, width: len(word),
		msg:  "a model begins with SELECT, FROM, WITH, VALUES, PIVOT or UNPIVOT; this one begins with " + strings.ToUpper(word),
		hint: "to store what it gives, write `from (" + strings.ToLower(word) + " ...)`"}
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	if len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// normalised is the statement without comments and with one blank between
// tokens: two texts that differ only in comments and white space outside
// literals give the same.
func (s statement) normalised() string {
	var b strings.Builder
	b.Grow(len(s.text))
	for i, t := range s.tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.text[t.start:t.end])
	}
	return b.String()
}

// identifier gives the name that a word or quoted token stands for, and false
// for any other token.
func identifier(sql string, t token) (string, bool) {
	switch t.kind {
	case tokWord:
		return sql[t.start:t.end], true
	case tokQuoted:
		return strings.ReplaceAll(sql[t.start+1:t.end-1], `""`, `"`), true
	}
	return "", false
}

// scanTokens cuts a text into tokens as the engine's own lexer does: nested
// block comments, standard strings without backslash escapes, E” strings with
// them (also in their continuations after a line break), dollar quotes. It
// refuses what would make the engine read something else than what is written
// (a NUL byte ends the text there), what is never closed, and parameters.
func scanTokens(sql string) ([]token, error) {
	if i := strings.IndexByte(sql, 0); i >= 0 {
		return nil, &sqlProblem{code: diag.SQLSyntax, offset: i, msg: "a NUL byte in the SQL text"}
	}
	// A token with the blank after it is some five bytes long.
	const bytesPerToken = 5
	tokens := make([]token, 0, len(sql)/bytesPerToken+1)
	s := scanner{sql: sql}
	for {
		if err := s.skipBlank(); err != nil {
			return nil, err
		}
		if s.pos >= len(sql) {
			return tokens, nil
		}
		start := s.pos
		kind, err := s.next()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token{kind, start, s.pos})
	}
}

type scanner struct {
	sql string
	pos int
}

func (s *scanner) unclosed(at int, what string) error {
	return &sqlProblem{code: diag.SQLSyntax, offset: at, msg: what + " is never closed"}
}

// skipBlank moves past white space and comments.
func (s *scanner) skipBlank() error {
	for s.pos < len(s.sql) {
		c := s.sql[s.pos]
		switch {
		case isBlank(c):
			s.pos++
		case c == '-' && s.has("--"):
			s.skipLine()
		case c == '/' && s.has("/*"):
			if err := s.skipBlock(); err != nil {
				return err
			}
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s.sql[s.pos:])
			if !isUnicodeBlank(r) {
				return nil
			}
			s.pos += n
		default:
			return nil
		}
	}
	return nil
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.sql[s.pos:], prefix) }

func (s *scanner) skipLine() {
	if i := strings.IndexAny(s.sql[s.pos:], "\n\r"); i >= 0 {
		s.pos += i
	} else {
		s.pos = len(s.sql)
	}
}

func (s *scanner) skipBlock() error {
	start, depth := s.pos, 0
	for s.pos < len(s.sql) {
		switch {
		case s.has("/*"):
			depth++
			s.pos += 2
		case s.has("*/"):
			depth--
			s.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			s.pos++
		}
	}
	return s.unclosed(start, "this comment")
}

// next reads one token at pos, which is not blank.
func (s *scanner) next() (tokenKind, error) {
	c := s.sql[s.pos]
	switch {
	case c == ';':
		s.pos++
		return tokSemi, nil
	case c == '\'':
		return tokString, s.quoted('\'', "this string")
	case c == '"':
		return tokQuoted, s.quoted('"', "this quoted name")
	case (c == 'e' || c == 'E') && s.pos+1 < len(s.sql) && s.sql[s.pos+1] == '\'':
		s.pos++
		return tokString, s.escaped()
	case isWordStart(c):
		s.word()
		return tokWord, nil
	case isDigit(c) || c == '.' && s.pos+1 < len(s.sql) && isDigit(s.sql[s.pos+1]):
		s.number()
		return tokNumber, nil
	case c == '$':
		return tokString, s.dollar()
	case c == '?':
		return tokOp, s.parameter()
	case isOperator(c):
		s.operator()
		return tokOp, nil
	}
	_, n := utf8.DecodeRuneInString(s.sql[s.pos:])
	s.pos += n
	return tokPunct, nil
}

// quoted moves past a literal in which a doubled quote stands for one.
func (s *scanner) quoted(q byte, what string) error {
	start := s.pos
	for s.pos++; s.pos < len(s.sql); s.pos++ {
		if s.sql[s.pos] != q {
			continue
		}
		if s.pos+1 < len(s.sql) && s.sql[s.pos+1] == q {
			s.pos++
			continue
		}
		s.pos++
		return nil
	}
	return s.unclosed(start, what)
}

// escaped moves past an E” string, whose pos is at the quote, and past its
// continuations: a string that follows after white space with a line break
// belongs to it, and backslashes escape there too.
func (s *scanner) escaped() error {
	start := s.pos
	for {
		closed := false
		for s.pos++; s.pos < len(s.sql) && !closed; s.pos++ {
			switch s.sql[s.pos] {
			case '\\':
				s.pos++
			case '\'':
				if s.pos+1 < len(s.sql) && s.sql[s.pos+1] == '\'' {
					s.pos++
				} else {
					closed = true
				}
			}
		}
		if !closed {
			return s.unclosed(start-1, "this string")
		}
		next, ok := s.continuation()
		if !ok {
			return nil
		}
		s.pos = next
	}
}

// continuation gives the offset of the quote that continues the string that
// ends at pos, if there is one: only blanks and line comments lie between, and
// a line break.
func (s *scanner) continuation() (int, bool) {
	c := scanner{sql: s.sql, pos: s.pos}
	broken := false
	for c.pos < len(c.sql) {
		switch b := c.sql[c.pos]; {
		case b == '\n' || b == '\r':
			broken = true
			c.pos++
		case isBlank(b):
			c.pos++
		case c.has("--"):
			c.skipLine()
		case b == '\'' && broken:
			return c.pos, true
		default:
			return 0, false
		}
	}
	return 0, false
}

func (s *scanner) word() {
	for s.pos < len(s.sql) {
		c := s.sql[s.pos]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s.sql[s.pos:])
			if isUnicodeBlank(r) {
				return
			}
			s.pos += n
			continue
		}
		if !isWordStart(c) && !isDigit(c) && c != '$' {
			return
		}
		s.pos++
	}
}

// number reads digits, one point, an exponent that is complete, and "_" between
// digits. What follows is a token of its own: 1e'x' is the number 1 and an
// E-string.
func (s *scanner) number() {
	s.digits()
	if s.pos < len(s.sql) && s.sql[s.pos] == '.' && !s.has("..") {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.sql) && (s.sql[s.pos] == 'e' || s.sql[s.pos] == 'E') {
		p := s.pos + 1
		if p < len(s.sql) && (s.sql[p] == '+' || s.sql[p] == '-') {
			p++
		}
		if p < len(s.sql) && isDigit(s.sql[p]) {
			s.pos = p
			s.digits()
		}
	}
}

func (s *scanner) digits() {
	for s.pos < len(s.sql) {
		c := s.sql[s.pos]
		under := c == '_' && s.pos > 0 && isDigit(s.sql[s.pos-1]) && s.pos+1 < len(s.sql) && isDigit(s.sql[s.pos+1])
		if !isDigit(c) && !under {
			return
		}
		s.pos++
	}
}

// dollar moves past a dollar-quoted string; a dollar sign that opens none is a
// parameter.
func (s *scanner) dollar() error {
	start, p := s.pos, s.pos+1
	if p < len(s.sql) && isWordStart(s.sql[p]) {
		for p < len(s.sql) && (isWordStart(s.sql[p]) || isDigit(s.sql[p])) {
			p++
		}
	}
	if p >= len(s.sql) || s.sql[p] != '$' {
		return s.parameter()
	}
	tag := s.sql[start : p+1]
	end := strings.Index(s.sql[p+1:], tag)
	if end < 0 {
		return s.unclosed(start, "this dollar-quoted string")
	}
	s.pos = p + 1 + end + len(tag)
	return nil
}

func (s *scanner) parameter() error {
	return &sqlProblem{code: diag.SQLParameter, offset: s.pos,
		msg:  "a parameter of a prepared statement: a model has none",
		hint: "use {{ var('name') }}, or quote the text if it is meant as text"}
}

func (s *scanner) operator() {
	for s.pos < len(s.sql) && isOperator(s.sql[s.pos]) && !s.has("--") && !s.has("/*") {
		s.pos++
	}
}

func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'
}

// isUnicodeBlank reports exactly the characters that DuckDB 1.5.6 takes for a
// blank outside literals; taking one more or less for a blank would let a text
// be read differently here and there.
func isUnicodeBlank(r rune) bool {
	return r == 0xA0 || r >= 0x2000 && r <= 0x200B || r == 0x202F || r == 0x205F || r == 0x2060 || r == 0x3000 || r == 0xFEFF
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func isOperator(c byte) bool { return strings.IndexByte("~!@#^&|`+-*/%<>=", c) >= 0 }
