package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"rbt/internal/diag"
)

// selector is a parsed selection: words joined by union, each an intersection
// of terms.
type selector struct {
	words []word
}

// word is what stood between blanks: terms joined by commas.
type word struct {
	text  string
	terms []term
}

// noNeighbours and allNeighbours are depths of a term: how far up or down its
// operators reach.
const (
	noNeighbours  = 0
	allNeighbours = math.MaxInt32
)

// term is one criterion with its graph operators.
type term struct {
	text   string // as written, operators and all
	family bool   // @: descendants, and ancestors of all of these
	up     int    // generations of ancestors
	down   int    // generations of descendants
	method method
	key    string // of config: "materialization" of config.materialization
	value  string // NFC
}

// lexeme is a piece of a word: an operator character or a run of other
// characters. at is its byte offset in the word.
type lexeme struct {
	kind lexemeKind
	text string
	at   int
}

type lexemeKind byte

const (
	lexText   lexemeKind = 't'
	lexPlus   lexemeKind = '+'
	lexAt     lexemeKind = '@'
	lexComma  lexemeKind = ','
	operators            = "+@,"
)

// lexWord cuts a word into lexemes.
func lexWord(text string) []lexeme {
	var out []lexeme
	for at := 0; at < len(text); {
		if strings.IndexByte(operators, text[at]) >= 0 {
			out = append(out, lexeme{kind: lexemeKind(text[at]), text: text[at : at+1], at: at})
			at++
			continue
		}
		end := strings.IndexAny(text[at:], operators)
		if end < 0 {
			end = len(text) - at
		}
		out = append(out, lexeme{kind: lexText, text: text[at : at+end], at: at})
		at += end
	}
	return out
}

// parseSelector reads the words of one flag: every argument may itself hold
// several words. flag names it in messages ("--select").
func parseSelector(flag string, args []string) (selector, diag.List) {
	var p selectorParser
	var s selector
	for _, arg := range args {
		fields := strings.Fields(arg)
		if len(fields) == 0 {
			p.fail(diag.SelectorSyntax, "write a name, or leave the flag out", "%s %q is empty", flag, arg)
			continue
		}
		for _, field := range fields {
			s.words = append(s.words, p.word(field))
		}
	}
	return s, p.diags
}

type selectorParser struct {
	diags diag.List
}

// fail reports a problem with what to do about it.
func (p *selectorParser) fail(code diag.Code, hint, format string, args ...any) {
	p.diags = append(p.diags, diag.Errorf(code, diag.Pos{}, format, args...).WithHint("%s", hint))
}

func (p *selectorParser) word(text string) word {
	w := word{text: text}
	lexemes := lexWord(text)
	start, lonely := 0, false
	for i := 0; i <= len(lexemes); i++ {
		if i < len(lexemes) && lexemes[i].kind != lexComma {
			continue
		}
		if i > start {
			if t, ok := p.term(text, lexemes[start:i]); ok {
				w.terms = append(w.terms, t)
			}
		} else if !lonely {
			lonely = true
			p.fail(diag.SelectorSyntax, "a comma joins two selectors without blanks (a,b: what both select); a blank means either",
				"selector %q has nothing on one side of a comma", shortened(text))
		}
		start = i + 1
	}
	return w
}

// term reads [@] [[n]+] [method:]value [+[n]].
func (p *selectorParser) term(whole string, lexemes []lexeme) (term, bool) {
	first, last := lexemes[0], lexemes[len(lexemes)-1]
	t := term{text: whole[first.at : last.at+len(last.text)]}
	if first.kind == lexAt {
		t.family, lexemes = true, lexemes[1:]
	}
	if n := len(lexemes); n > 0 && lexemes[0].kind == lexPlus {
		t.up, lexemes = allNeighbours, lexemes[1:]
	} else if n > 1 && lexemes[1].kind == lexPlus && isDigits(lexemes[0].text) {
		t.up, lexemes = depth(lexemes[0].text), lexemes[2:]
	}
	if n := len(lexemes); n > 0 && lexemes[n-1].kind == lexPlus {
		t.down, lexemes = allNeighbours, lexemes[:n-1]
	} else if n > 1 && lexemes[n-2].kind == lexPlus && isDigits(lexemes[n-1].text) {
		t.down, lexemes = depth(lexemes[n-1].text), lexemes[:n-2]
	}
	if len(lexemes) == 0 {
		return t, p.stray(t, whole, "")
	}
	if t.family && (t.up != noNeighbours || t.down != noNeighbours) {
		p.fail(diag.SelectorSyntax, "@m is m, everything below it and everything that these need; write it without +",
			"selector %q joins @ with +", t.text)
		return t, false
	}
	from, to := lexemes[0], lexemes[len(lexemes)-1]
	return p.criterion(t, whole, whole[from.at:to.at+len(to.text)], lexemes)
}

// criterion reads [method:]value. Inside the value of a method + and @ are
// plain characters, since tags and folders may hold them; at its ends they are
// operators.
func (p *selectorParser) criterion(t term, whole, text string, lexemes []lexeme) (term, bool) {
	name, value, explicit := strings.Cut(text, ":")
	if !explicit {
		name, value = "", text
	}
	for i, l := range lexemes {
		if l.kind != lexText && (!explicit || i == 0 || i == len(lexemes)-1 || l.at < lexemes[0].at+len(name)) {
			return t, p.stray(t, whole, l.text)
		}
	}
	if explicit && value == "" {
		p.fail(diag.SelectorSyntax, "write what to look for after the colon", "selector %q has no value after %q", t.text, name+":")
		return t, false
	}
	t.value = norm.NFC.String(value)
	if !explicit {
		t.method = defaultMethod(t.value)
		return t, true
	}
	name, t.key, _ = strings.Cut(name, ".")
	return t, p.method(&t, name)
}

// method checks the method's name and, where a method has a list of values, the
// value.
func (p *selectorParser) method(t *term, name string) bool {
	m, known := methods[method(name)]
	switch {
	case !known:
		if instead, ok := foreignMethods[name]; ok {
			p.fail(diag.SelectorMethod, instead, "selector %q: %q is a method of dbt that rbt does not have", t.text, name+":")
			return false
		}
		hint := "methods are " + strings.Join(methodNames(), ", ")
		if near := diag.Nearest(name, methodNames()); near != "" {
			hint = "did you mean " + near + ":?"
		}
		p.fail(diag.SelectorMethod, hint, "selector %q: there is no method %q", t.text, name+":")
		return false
	case m.keyed && t.key == "":
		p.fail(diag.SelectorMethod, "write config.<key>:<value>, for instance config.materialization:view",
			"selector %q: the method %q needs a key", t.text, name+":")
		return false
	case !m.keyed && t.key != "":
		p.fail(diag.SelectorMethod, "write "+name+":"+t.value, "selector %q: the method %q has no keys", t.text, name+":")
		return false
	}
	t.method = method(name)
	if m.values == nil || slices.Contains(m.values, t.value) {
		return true
	}
	hint := name + ": takes " + strings.Join(m.values, ", ")
	if near := diag.Nearest(t.value, m.values); near != "" {
		hint = "did you mean " + name + ":" + near + "? " + hint
	}
	p.fail(diag.SelectorMethod, hint, "selector %q: there is no %s %q", t.text, strings.ReplaceAll(name, "_", " "), t.value)
	return false
}

// stray reports an operator that belongs to no name. It is always false.
func (p *selectorParser) stray(t term, whole, operator string) bool {
	where := ""
	if whole != t.text {
		where = " in " + strconv.Quote(shortened(whole))
	}
	if operator == "" {
		p.fail(diag.SelectorSyntax, "an operator stands at its name without blanks: +m, m+, 2+m+1, @m",
			"selector %q%s is an operator without a name", t.text, where)
		return false
	}
	p.fail(diag.SelectorSyntax, "+m, m+, 2+m+1 and @m are what there is; a blank between two selectors means either, a comma both",
		"selector %q%s has a stray %q", t.text, where, operator)
	return false
}

// maxQuoted bounds how much of a word stands in a message about one of its
// terms, in bytes: a generated word may have thousands of them.
const maxQuoted = 200

func shortened(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// depth reads a number of generations; more than any graph has is all.
func depth(digits string) int {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil { // only out of range: the text is digits
		return allNeighbours
	}
	return int(n)
}
