package jinja

import (
	"fmt"
	"strings"

	"rbt/internal/diag"
)

const (
	// maxSource is the longest template in bytes. Hand-written SQL is a
	// thousand times shorter; generated data belongs into a seed or source.
	maxSource = 4 << 20
	// maxNesting bounds how deeply brackets and blocks stand in each other, so
	// that no template can exhaust the stack of the parser.
	maxNesting = 200
	// maxProblems is the number of mistakes after which parsing ends.
	maxProblems = 20
	// maxHeight bounds the expression tree, also where it grows without
	// brackets (a + a + a …), so that evaluation cannot exhaust the stack.
	maxHeight = 1000
)

// parser turns tokens into statements. After a mistake every token reads as the
// end of the template, so that all loops end; resume then goes on behind the
// tag where that is safe.
type parser struct {
	lex      *lexer
	prev     tokenKind
	cur      token
	ahead    token
	hasAhead bool
	tmpl     *Template
	diags    diag.List
	failed   bool
	failedAt int
	depth    int
	// soft counts the enclosing conditions: an unknown filter or test there is
	// an error only when it is reached, as in Jinja2.
	soft  int
	loops int
	// storing is set while the left side of an assignment is read.
	storing bool
	// commented is set behind "--" until the end of the line.
	commented bool
	macros    []*macroDef
	blocks    []openBlock
}

// openBlock is a block whose end has not been met yet.
type openBlock struct {
	name string
	end  string
	soft bool // its body may never be reached
	head head
}

func (p *parser) advance() token {
	old := p.cur
	if p.failed {
		return old
	}
	p.prev = old.kind
	if p.hasAhead {
		p.cur, p.hasAhead = p.ahead, false
	} else {
		p.cur = p.lex.next()
	}
	if p.cur.kind == tokBad {
		p.report(*p.cur.problem, p.cur.start)
	}
	return old
}

// look gives the token behind the current one.
func (p *parser) look() token {
	if !p.hasAhead && !p.failed {
		p.ahead, p.hasAhead = p.lex.next(), true
	}
	return p.ahead
}

// report adds a problem and makes every further token the end.
func (p *parser) report(d diag.Diagnostic, offset int) {
	if p.failed {
		return
	}
	p.diags = append(p.diags, d)
	p.failed, p.failedAt, p.hasAhead = true, offset, false
	p.cur = token{kind: tokEOF, place: p.cur.place, start: p.cur.start, end: p.cur.start}
}

func (p *parser) problem(h head, code diag.Code, format string, args ...any) diag.Diagnostic {
	d := diag.Errorf(code, h.in(p.lex.file), format, args...)
	d.Width = int(h.width)
	return d
}

func (p *parser) fail(h head, format string, args ...any) {
	p.report(p.problem(h, diag.TemplateSyntax, format, args...), p.cur.start)
}

func (p *parser) failHint(h head, hint, format string, args ...any) {
	d := p.problem(h, diag.TemplateSyntax, format, args...)
	d.Hint = hint
	p.report(d, p.cur.start)
}

func (p *parser) is(kind tokenKind) bool { return p.cur.kind == kind && !p.failed }

func (p *parser) isName(name string) bool {
	return p.cur.kind == tokName && p.cur.text == name && !p.failed
}

func (p *parser) skip(kind tokenKind) bool {
	if !p.is(kind) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) skipName(name string) bool {
	if !p.isName(name) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(kind tokenKind) token {
	if p.cur.kind != kind {
		p.unexpected("expected " + kindName(kind))
		return p.cur
	}
	return p.advance()
}

func (p *parser) expectName(name string) token {
	if !p.isName(name) {
		p.unexpected("expected '" + name + "'")
		return p.cur
	}
	return p.advance()
}

// unexpected reports the current token where something else is needed.
func (p *parser) unexpected(want string) {
	if p.failed {
		return
	}
	if p.cur.kind == tokEOF {
		if n := len(p.blocks); n > 0 && p.lex.mode == inText {
			p.unclosed(p.blocks[n-1])
			return
		}
		p.fail(p.cur.head(), "the template ends inside a tag: %s", want)
		return
	}
	p.failHint(p.cur.head(), p.hintFor(), "%s, got %s", want, p.cur.describe(p.lex.src))
}

// hintFor knows the usual slips behind an unexpected token.
func (p *parser) hintFor() string {
	switch {
	case p.cur.kind == tokAssign:
		return "a comparison is written =="
	case p.lex.mode != inText && strings.Contains(p.lex.src[p.lex.opened:p.cur.start], "\n"):
		line := int(p.cur.head().line) - strings.Count(p.lex.src[p.lex.opened:p.cur.start], "\n")
		return fmt.Sprintf("is the %s of line %d closed?", p.lex.src[p.lex.opened:p.lex.opened+2], line)
	case p.cur.kind == tokName && p.prev == tokString:
		return "text that holds one kind of quote stands between the other kind"
	}
	return ""
}

func (p *parser) unclosed(b openBlock) {
	p.fail(b.head, "this %s has no %s", b.name, b.end)
}

// enter counts one level of nesting, that is of expressions and tags in each
// other; leave ends it.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > maxNesting {
		p.report(p.problem(p.cur.head(), diag.TemplateBudget,
			"the template is nested more than %d levels deep here", maxNesting), p.cur.start)
		p.depth--
		return false
	}
	return true
}

func (p *parser) leave() { p.depth-- }

// over gives the head of a node that begins at h and stands over children.
func (p *parser) over(h head, children ...expr) head {
	h.height = 1
	for _, c := range children {
		if c != nil {
			h.height = max(h.height, c.origin().height+1)
		}
	}
	if h.height > maxHeight {
		p.report(p.problem(h, diag.TemplateBudget,
			"this expression has more than %d parts that stand in each other", maxHeight), p.cur.start)
	}
	return h
}

// template parses everything.
func (p *parser) template() []stmt {
	p.advance()
	body := p.statements(nil)
	if !p.failed && p.cur.kind != tokEOF {
		p.unexpected("expected text")
	}
	return body
}

// statements parses text and tags until one of the end tags, whose name is then
// the current token, or the end of the template.
func (p *parser) statements(ends []string) []stmt {
	var body []stmt
	for !p.failed {
		switch p.cur.kind {
		case tokEOF:
			return body
		case tokText:
			body = append(body, &textStmt{place: p.cur.place, text: p.cur.text})
			line := p.cur.text
			if i := strings.LastIndexByte(line, '\n'); i >= 0 {
				line, p.commented = line[i+1:], false
			}
			p.commented = p.commented || strings.Contains(line, "--")
			p.advance()
		case tokOutputBegin:
			if s := p.output(); s != nil {
				body = append(body, s)
			}
		case tokTagBegin:
			p.advance()
			for _, end := range ends {
				if p.isName(end) {
					return body
				}
			}
			if s := p.statement(ends); s != nil {
				body = append(body, s...)
			}
			if !p.failed {
				p.expect(tokTagEnd)
			}
		default:
			p.unexpected("expected text")
		}
	}
	return body
}

// output parses {{ … }} and, after a mistake in it, goes on behind it.
func (p *parser) output() stmt {
	p.advance()
	x := p.tuple(tupleRules{cond: true})
	p.expect(tokOutputEnd)
	if !p.failed {
		return &outStmt{x: x, commented: p.commented}
	}
	if len(p.diags) < maxProblems && p.lex.resume(p.failedAt, "}}") {
		p.failed = false
		p.advance()
	}
	return nil
}

// block parses the body of a block up to one of ends, which is left as the
// current token, with its tag closed for the caller if last is set.
func (p *parser) block(open openBlock, ends ...string) []stmt {
	p.skip(tokColon)
	p.expect(tokTagEnd)
	p.blocks = append(p.blocks, open)
	soft := p.soft
	if !open.soft {
		p.soft = 0
	}
	body := p.statements(ends)
	p.soft = soft
	p.blocks = p.blocks[:len(p.blocks)-1]
	if !p.failed && p.cur.kind == tokEOF {
		p.unclosed(open)
	}
	return body
}

// lastBlock is block with a single end, which is passed over.
func (p *parser) lastBlock(open openBlock) []stmt {
	body := p.block(open, open.end)
	p.advance()
	return body
}

func (p *parser) statement(ends []string) []stmt {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	if p.cur.kind != tokName {
		p.unexpected("expected the name of a tag")
		return nil
	}
	tok := p.cur
	open := openBlock{name: "{% " + tok.text + " %}", end: "end" + tok.text, head: tok.head()}
	switch tok.text {
	case "set":
		return one(p.set(open))
	case "if":
		return one(p.ifTag(open))
	case "for":
		return one(p.forTag(open))
	case "macro", "test":
		return one(p.macro(open))
	case "call":
		return one(p.call(open))
	case "filter":
		return one(p.filterBlock(open))
	case "with":
		return one(p.with(open))
	case "do":
		p.advance()
		return one(&doStmt{x: p.tuple(tupleRules{cond: true})})
	case "print":
		return p.print()
	case "break", "continue":
		return one(p.loopControl())
	case "import":
		return one(p.importTag())
	case "from":
		return one(p.fromTag())
	}
	p.unknownTag(tok, ends)
	return nil
}

func one(s stmt) []stmt { return []stmt{s} }

// unknownTag explains a tag that cannot stand here.
func (p *parser) unknownTag(tok token, ends []string) {
	if why := refusedTag(tok.text); why != "" {
		p.report(p.problem(tok.head(), diag.TemplateUnsupported, "{%% %s %%} is not supported", tok.text).WithHint("%s", why), tok.start)
		return
	}
	if strings.HasPrefix(tok.text, "end") || tok.text == "else" || tok.text == "elif" {
		if n := len(p.blocks); n > 0 {
			b := p.blocks[n-1]
			d := p.problem(tok.head(), diag.TemplateSyntax, "{%% %s %%} does not belong here: the open block is %s", tok.text, b.name)
			d.Hint = "expected " + joinOr(ends)
			p.report(d.WithNote(b.head.in(p.lex.file), "the open block begins here"), tok.start)
			return
		}
		p.fail(tok.head(), "{%% %s %%} closes nothing: no block is open here", tok.text)
		return
	}
	hint := ""
	if near := diag.Nearest(tok.text, append(tagNames(), ends...)); near != "" {
		hint = fmt.Sprintf("did you mean {%% %s %%}?", near)
	}
	p.failHint(tok.head(), hint, "there is no tag {%% %s %%}", tok.text)
}

func joinOr(words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = "{% " + w + " %}"
	}
	return strings.Join(parts, " or ")
}

func tagNames() []string {
	return []string{"set", "if", "for", "macro", "test", "call", "filter", "with", "do", "print",
		"break", "continue", "import", "from", "raw", "else", "elif"}
}

// refusedTag says why a tag of Jinja2 or dbt is not there, "" for others.
func refusedTag(name string) string {
	switch name {
	case "include":
		return "templates cannot read files: put the text into a macro in macros/ and call it"
	case "extends", "block":
		return "templates have no inheritance: use macros, {% call %} and caller()"
	case "autoescape":
		return "the output is SQL, nothing is escaped as HTML"
	case "trans", "pluralize":
		return "templates are not translated"
	case "debug":
		return "use log() to look at a value"
	case "snapshot":
		return "rbt keeps no snapshots: write an incremental model that appends what changed"
	case "materialization", "docs":
		return "this block of dbt has no meaning in rbt"
	}
	return ""
}
