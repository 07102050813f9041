package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokBad
	tokText
	tokOutputBegin
	tokOutputEnd
	tokTagBegin
	tokTagEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokLParen
	tokRParen
	tokLBracket
	tokRBracket
	tokLBrace
	tokRBrace
	tokAdd
	tokSub
	tokMul
	tokDiv
	tokFloorDiv
	tokMod
	tokPow
	tokTilde
	tokEq
	tokNe
	tokLt
	tokLe
	tokGt
	tokGe
	tokAssign
	tokDot
	tokColon
	tokComma
	tokPipe
	tokSemicolon
)

// token is one piece of a template. text is the text of text and names, the
// decoded value of a string.
type token struct {
	place
	kind       tokenKind
	width      int32
	start, end int
	text       string
	value      any // of numbers
	problem    *diag.Diagnostic
}

func (t token) head() head { return head{place: t.place, width: t.width, height: 1} }

// describe names a token as a message does.
func (t token) describe(src string) string {
	switch t.kind {
	case tokEOF:
		return "the end of the template"
	case tokText:
		return "text"
	case tokOutputBegin, tokOutputEnd, tokTagBegin, tokTagEnd:
		return "'" + strings.TrimSpace(src[t.start:t.end]) + "'"
	}
	text := src[t.start:t.end]
	if len(text) > 40 {
		text = strings.ToValidUTF8(text[:40], "") + "…"
	}
	return "'" + text + "'"
}

// kindName is how a message asks for a token.
func kindName(kind tokenKind) string {
	switch kind {
	case tokOutputEnd:
		return "'}}'"
	case tokTagEnd:
		return "'%}'"
	case tokName:
		return "a name"
	case tokLParen:
		return "'('"
	case tokRParen:
		return "')'"
	case tokRBracket:
		return "']'"
	case tokRBrace:
		return "'}'"
	case tokAssign:
		return "'='"
	case tokColon:
		return "':'"
	case tokComma:
		return "','"
	}
	return "something else"
}

// operatorAt gives the operator at the start of s and its length, 0 for none.
func operatorAt(s string) (tokenKind, int) {
	if len(s) > 1 {
		switch s[:2] {
		case "//":
			return tokFloorDiv, 2
		case "**":
			return tokPow, 2
		case "==":
			return tokEq, 2
		case "!=":
			return tokNe, 2
		case "<=":
			return tokLe, 2
		case ">=":
			return tokGe, 2
		}
	}
	switch s[0] {
	case '(':
		return tokLParen, 1
	case ')':
		return tokRParen, 1
	case '[':
		return tokLBracket, 1
	case ']':
		return tokRBracket, 1
	case '{':
		return tokLBrace, 1
	case '}':
		return tokRBrace, 1
	case '+':
		return tokAdd, 1
	case '-':
		return tokSub, 1
	case '*':
		return tokMul, 1
	case '/':
		return tokDiv, 1
	case '%':
		return tokMod, 1
	case '~':
		return tokTilde, 1
	case '<':
		return tokLt, 1
	case '>':
		return tokGt, 1
	case '=':
		return tokAssign, 1
	case '.':
		return tokDot, 1
	case ':':
		return tokColon, 1
	case ',':
		return tokComma, 1
	case '|':
		return tokPipe, 1
	case ';':
		return tokSemicolon, 1
	}
	return tokEOF, 0
}

// digits gives the offset behind digits with single underscores between them.
func digits(s string, i int, ok func(byte) bool) int {
	start := i
	for i < len(s) {
		if ok(s[i]) {
			i++
		} else if s[i] == '_' && i > start && i+1 < len(s) && ok(s[i+1]) && s[i-1] != '_' {
			i++
		} else {
			break
		}
	}
	return i
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool {
	return isDecimal(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// maxDigits is the longest integer, in digits, that is read from or written to
// text: Python's own limit, which keeps the conversion fast.
const maxDigits = 4300

func (l *lexer) number(start int) token {
	s := l.src
	end := digits(s, start, isDecimal)
	isFloat := false
	if start == 0 || s[start-1] != '.' {
		if end+1 < len(s) && s[end] == '.' && isDecimal(s[end+1]) {
			isFloat = true
			end = digits(s, end+1, isDecimal)
		}
		if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
			exp := end + 1
			if exp < len(s) && (s[exp] == '+' || s[exp] == '-') {
				exp++
			}
			if exp < len(s) && isDecimal(s[exp]) {
				isFloat = true
				end = digits(s, exp, isDecimal)
			}
		}
	}
	if isFloat {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(s[start:end], "_", ""), 64)
		tok := l.token(tokFloat, start, end, "")
		tok.value = f
		l.pos = end
		return tok
	}
	return l.integer(start, end)
}

func (l *lexer) integer(start, end int) token {
	s := l.src
	base, from := 10, start
	if s[start] == '0' {
		if end == start+1 && end < len(s) {
			base, from, end = radix(s, start, end)
		}
		if base == 10 {
			end = digits(s, start, func(c byte) bool { return c == '0' })
		}
	}
	if end-from > maxDigits {
		l.pos = end
		return l.bad(start, end, "this number has more than "+strconv.Itoa(maxDigits)+" digits", "")
	}
	n, _ := new(big.Int).SetString(strings.ReplaceAll(s[from:end], "_", ""), base)
	tok := l.token(tokInt, start, end, "")
	tok.value = normalBig(n)
	l.pos = end
	return tok
}

// radix reads what follows a leading 0: the base, where its digits begin and
// where they end; base 10 where it is no prefix.
func radix(s string, start, end int) (base, from, to int) {
	base, ok := 10, isDecimal
	switch s[end] {
	case 'x', 'X':
		base, ok = 16, isHex
	case 'o', 'O':
		base, ok = 8, func(c byte) bool { return '0' <= c && c <= '7' }
	case 'b', 'B':
		base, ok = 2, func(c byte) bool { return c == '0' || c == '1' }
	}
	from = end + 1
	if base != 10 && from < len(s) && s[from] == '_' {
		from++
	}
	if base == 10 || from >= len(s) || !ok(s[from]) {
		return 10, start, end
	}
	return base, from, digits(s, from, ok)
}

func (l *lexer) str(start int) token {
	quote := l.src[start]
	escaped := false
	for i := start + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			escaped = true
			i++
		case quote:
			end := i + 1
			text := l.src[start+1 : i]
			if escaped {
				decoded, problem := unescape(text)
				if problem != "" {
					l.pos = end
					return l.bad(start, end, problem, "")
				}
				text = decoded
			}
			l.pos = end
			return l.token(tokString, start, end, text)
		}
	}
	l.pos = len(l.src)
	return l.bad(start, start+1, "this text is never closed", "it needs a second "+string(quote))
}

// unescape decodes Python's backslash sequences; an unknown one stays as it is.
func unescape(s string) (decoded, problem string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, end := 0, i
			for end < len(s) && end < i+3 && '0' <= s[end] && s[end] <= '7' {
				n = n*8 + int(s[end]-'0')
				end++
			}
			b.WriteRune(rune(n))
			i = end - 1
		case 'x', 'u', 'U':
			size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+size >= len(s) {
				return "", "this text ends inside \\" + string(c)
			}
			n, err := strconv.ParseUint(s[i+1:i+1+size], 16, 32)
			if err != nil || n > utf8.MaxRune || 0xd800 <= n && n < 0xe000 {
				return "", "\\" + s[i:i+1+size] + " is no character"
			}
			b.WriteRune(rune(n))
			i += size
		case 'N':
			return "", "\\N{…} is not supported: write the character itself or \\u and its four hex digits"
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
