package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"rbt/internal/diag"
)

// mode is what the lexer stands in.
type mode uint8

const (
	inText mode = iota
	inOutput
	inTag
)

// lexer cuts a template into tokens on demand, so that a large template never
// needs a token list. Every byte is looked at a fixed number of times.
type lexer struct {
	file string
	src  string
	pos  int
	mode mode
	// opened is where the current tag begins.
	opened int
	// brackets holds the closing brackets that are open in the current tag.
	brackets []byte
	// Places are counted forward from the last one asked for.
	counted   int
	line, col int32
}

// newLexer starts on src, normalised as Jinja2 does: every line break is "\n"
// and one at the very end is dropped.
func newLexer(file, src string, line int) *lexer {
	if strings.IndexByte(src, '\r') >= 0 {
		src = strings.ReplaceAll(src, "\r\n", "\n")
		src = strings.ReplaceAll(src, "\r", "\n")
	}
	src = strings.TrimSuffix(src, "\n")
	return &lexer{file: file, src: src, line: int32(line), col: 1}
}

// at gives the place of a byte offset; offsets must not go back.
func (l *lexer) at(offset int) place {
	part := l.src[l.counted:offset]
	if n := strings.Count(part, "\n"); n > 0 {
		l.line += int32(n)
		l.col = 1
		part = part[strings.LastIndexByte(part, '\n')+1:]
	}
	l.col += int32(utf8.RuneCountInString(part))
	l.counted = offset
	return place{l.line, l.col}
}

func (l *lexer) token(kind tokenKind, start, end int, text string) token {
	t := token{kind: kind, place: l.at(start), start: start, end: end, text: text}
	if kind != tokText {
		t.width = int32(utf8.RuneCountInString(l.src[start:end]))
	}
	return t
}

// bad makes the token that stops the parser with a message.
func (l *lexer) bad(start, end int, msg, hint string) token {
	t := l.token(tokBad, start, end, "")
	d := diag.Errorf(diag.TemplateSyntax, t.in(l.file), "%s", msg)
	d.Width, d.Hint = int(t.width), hint
	t.problem = &d
	return t
}

func (l *lexer) next() token {
	if l.mode == inText {
		return l.text()
	}
	return l.code()
}

// text returns the template text up to the next tag, or opens the tag.
func (l *lexer) text() token {
	for {
		start := l.pos
		if start >= len(l.src) {
			return l.token(tokEOF, start, start, "")
		}
		open := l.findTag(start)
		if open < 0 {
			l.pos = len(l.src)
			return l.token(tokText, start, len(l.src), l.src[start:])
		}
		end, after := open, open+2
		if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
			if l.src[after] == '-' {
				end = start + len(strings.TrimRightFunc(l.src[start:open], isSpace))
			}
			after++
		}
		if end > start {
			// The tag is met again on the next call; then nothing stands before it.
			l.pos = open
			return l.token(tokText, start, end, l.src[start:end])
		}
		if tok, done := l.open(open, after); done {
			return tok
		}
	}
}

// findTag gives the offset of the next "{{", "{%" or "{#", or -1.
func (l *lexer) findTag(from int) int {
	for {
		i := strings.IndexByte(l.src[from:], '{')
		if i < 0 || from+i+1 >= len(l.src) {
			return -1
		}
		from += i
		if c := l.src[from+1]; c == '{' || c == '%' || c == '#' {
			return from
		}
		from++
	}
}

// open enters the tag at offset; after is the offset behind its opening and
// sign. A comment is passed over and yields no token.
func (l *lexer) open(offset, after int) (token, bool) {
	l.opened = offset
	switch l.src[offset+1] {
	case '{':
		l.pos, l.mode = after, inOutput
		return l.token(tokOutputBegin, offset, after, ""), true
	case '#':
		end := strings.Index(l.src[after:], "#}")
		if end < 0 {
			l.pos = len(l.src)
			return l.bad(offset, offset+2, "this comment is never closed", "end it with #}"), true
		}
		end += after
		l.pos = end + 2
		if end > after && l.src[end-1] == '-' {
			l.skipSpace()
		}
		return token{}, false
	default:
		if body, ok := l.tagWord(after, "raw"); ok {
			if end, trim := l.tagEnd(body, false); end >= 0 {
				return l.raw(offset, end, trim)
			}
		}
		l.pos, l.mode = after, inTag
		return l.token(tokTagBegin, offset, after, ""), true
	}
}

// tagWord reports the offset behind "<space>word<space>" at offset.
func (l *lexer) tagWord(offset int, word string) (int, bool) {
	offset = l.spaceEnd(offset)
	if !strings.HasPrefix(l.src[offset:], word) {
		return 0, false
	}
	return l.spaceEnd(offset + len(word)), true
}

// tagEnd reports the offset behind "%}", "-%}" (with trim) or, where plus is
// allowed, "+%}" at offset; -1 where none stands there.
func (l *lexer) tagEnd(offset int, plus bool) (end int, trim bool) {
	rest := l.src[offset:]
	switch {
	case strings.HasPrefix(rest, "%}"):
		return offset + 2, false
	case strings.HasPrefix(rest, "-%}"):
		return offset + 3, true
	case plus && strings.HasPrefix(rest, "+%}"):
		return offset + 3, false
	}
	return -1, false
}

// raw returns the text of a raw block whose text begins at start.
func (l *lexer) raw(offset, start int, trim bool) (token, bool) {
	if trim {
		start = l.spaceEnd(start)
	}
	for from := start; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			l.pos = len(l.src)
			return l.bad(offset, offset+2, "this raw block is never closed", "end it with {% endraw %}"), true
		}
		open := from + i
		from = open + 2
		after, end := from, open
		if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
			if l.src[after] == '-' {
				end = start + len(strings.TrimRightFunc(l.src[start:open], isSpace))
			}
			after++
		}
		word, ok := l.tagWord(after, "endraw")
		if !ok {
			continue
		}
		close, trim := l.tagEnd(word, true)
		if close < 0 {
			continue
		}
		l.pos = close
		if trim {
			l.skipSpace()
		}
		if end == start {
			return token{}, false
		}
		return l.token(tokText, start, end, l.src[start:end]), true
	}
}

func (l *lexer) skipSpace() { l.pos = l.spaceEnd(l.pos) }

func (l *lexer) spaceEnd(offset int) int {
	for offset < len(l.src) {
		if c := l.src[offset]; c < utf8.RuneSelf {
			if !isSpace(rune(c)) {
				break
			}
			offset++
			continue
		}
		r, n := utf8.DecodeRuneInString(l.src[offset:])
		if !isSpace(r) {
			break
		}
		offset += n
	}
	return offset
}

// code returns the next token inside a tag.
func (l *lexer) code() token {
	l.skipSpace()
	start := l.pos
	if start >= len(l.src) {
		return l.token(tokEOF, start, start, "")
	}
	if len(l.brackets) == 0 {
		if end, trim := l.closes(start); end >= 0 {
			kind := tokTagEnd
			if l.mode == inOutput {
				kind = tokOutputEnd
			}
			tok := l.token(kind, start, end, "")
			l.pos, l.mode = end, inText
			if trim {
				l.skipSpace()
			}
			return tok
		}
	}
	c := l.src[start]
	switch {
	case '0' <= c && c <= '9':
		return l.number(start)
	case c == '\'' || c == '"':
		return l.str(start)
	case c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf:
		return l.name(start)
	}
	return l.operator(start)
}

// closes reports the offset behind the end of the current tag, if it ends here.
func (l *lexer) closes(offset int) (end int, trim bool) {
	if l.mode == inTag {
		return l.tagEnd(offset, true)
	}
	rest := l.src[offset:]
	switch {
	case strings.HasPrefix(rest, "}}"):
		return offset + 2, false
	case strings.HasPrefix(rest, "-}}"):
		return offset + 3, true
	}
	return -1, false
}

func (l *lexer) name(start int) token {
	end := start
	for end < len(l.src) {
		c := l.src[end]
		if c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			end++
			continue
		}
		r, n := utf8.DecodeRuneInString(l.src[end:])
		if c < utf8.RuneSelf || !isNameRune(r, end == start) {
			break
		}
		end += n
	}
	if end == start {
		return l.unexpected(start)
	}
	l.pos = end
	return l.token(tokName, start, end, l.src[start:end])
}

func isNameRune(r rune, first bool) bool {
	if unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) {
		return true
	}
	return !first && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)
}

func (l *lexer) unexpected(start int) token {
	r, n := utf8.DecodeRuneInString(l.src[start:])
	l.pos = len(l.src)
	hint := ""
	switch r {
	case '!':
		hint = "not equal is !=, negation is the word not"
	case '&':
		hint = "write the word and"
	case '?':
		hint = "a choice is written: a if condition else b"
	case '`', '’', '‘', '“', '”':
		hint = "text is written in ' or \""
	}
	return l.bad(start, start+n, "unexpected character "+reprString(string(r)), hint)
}

func (l *lexer) operator(start int) token {
	kind, n := operatorAt(l.src[start:])
	if n == 0 {
		return l.unexpected(start)
	}
	end := start + n
	switch c := l.src[start]; kind {
	case tokLParen:
		l.brackets = append(l.brackets, ')')
	case tokLBracket:
		l.brackets = append(l.brackets, ']')
	case tokLBrace:
		l.brackets = append(l.brackets, '}')
	case tokRParen, tokRBracket, tokRBrace:
		if len(l.brackets) == 0 {
			l.pos = end
			hint := ""
			if c == '}' {
				hint = l.braceHint(end)
			}
			return l.bad(start, end, "unexpected '"+string(c)+"'", hint)
		}
		want := l.brackets[len(l.brackets)-1]
		l.brackets = l.brackets[:len(l.brackets)-1]
		if want != c {
			l.pos = end
			return l.bad(start, end, "unexpected '"+string(c)+"', expected '"+string(want)+"'", "the "+opening(want)+" before it is not closed")
		}
	}
	l.pos = end
	return l.token(kind, start, end, "")
}

// opening is the bracket that another one closes.
func opening(closing byte) string {
	return map[byte]string{')': "(", ']': "[", '}': "{"}[closing]
}

// braceHint says what a single } in a tag may have been meant for; end is the
// offset behind it.
func (l *lexer) braceHint(end int) string {
	if l.mode == inTag {
		return "a tag that begins with {% ends with %}: the % is missing here"
	}
	line, _, _ := strings.Cut(l.src[end:], "\n")
	line, _, _ = strings.Cut(line, "{{")
	if strings.Contains(line, "}}") {
		return "braces that are no template stand between {% raw %} and {% endraw %}"
	}
	return "a tag that begins with {{ ends with }}: one } is missing here"
}

// resume goes on behind the tag in which a mistake was found. It reports false
// where the end of that tag is not clear, so that one mistake never causes a
// second message.
func (l *lexer) resume(from int, closing string) bool {
	rest := l.src[from:]
	end := strings.Index(rest, closing)
	if end < 0 {
		return false
	}
	for _, opening := range [...]string{"{{", "{%", "{#"} {
		if i := strings.Index(rest[:end], opening); i >= 0 {
			return false
		}
	}
	l.pos, l.mode, l.brackets = from+end+len(closing), inText, l.brackets[:0]
	return true
}
