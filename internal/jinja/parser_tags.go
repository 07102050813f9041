package jinja

import (
	"strings"

	"rbt/internal/diag"
)

func (p *parser) set(open openBlock) stmt {
	at := p.advance().place
	t := p.assignTarget(tupleRules{namespace: true})
	if p.skip(tokAssign) {
		return &setStmt{target: t, value: p.tuple(tupleRules{cond: true})}
	}
	s := &setBlockStmt{place: at, target: t}
	if p.is(tokPipe) {
		s.filter = p.filterChain(nil)
	}
	if !p.is(tokColon) && !p.is(tokTagEnd) {
		p.unexpected("expected '=' and a value, or '%}' and a block that ends with {% endset %}")
		return nil
	}
	s.body = p.lastBlock(open)
	return s
}

func (p *parser) ifTag(open openBlock) stmt {
	s := &ifStmt{}
	open.soft = true
	p.soft++
	defer func() { p.soft-- }()
	for {
		p.advance()
		s.conds = append(s.conds, p.tuple(tupleRules{}))
		if p.isName("if") {
			p.unexpected("expected '%}'")
		}
		s.bodies = append(s.bodies, p.block(open, "elif", "else", "endif"))
		if p.failed {
			return nil
		}
		switch {
		case p.isName("elif"):
			continue
		case p.isName("else"):
			if next := p.look(); next.kind == tokName && next.text == "if" {
				p.advance()
				p.failHint(p.cur.head(), "write {% elif … %}", "expected '%%}', got 'if'")
				return nil
			}
			p.advance()
			s.other = p.lastBlock(open)
			return s
		}
		p.advance()
		return s
	}
}

func (p *parser) forTag(open openBlock) stmt {
	s := &forStmt{place: p.advance().place}
	s.target = p.assignTarget(tupleRules{end: "in"})
	p.noLoopTarget(s.target)
	p.expectName("in")
	s.iter = p.tuple(tupleRules{end: "recursive"})
	if p.skipName("if") {
		s.test = p.expression()
		s.testTarget = copyTarget(s.target)
	}
	s.recursive = p.skipName("recursive")
	p.loops++
	s.body = p.block(open, "else", "endfor")
	p.loops--
	if p.failed {
		return nil
	}
	if p.advance().text == "else" {
		loops := p.loops
		if s.recursive {
			// Its body and else are called like a macro: nothing outside can be left.
			p.loops = 0
		}
		s.other = p.lastBlock(open)
		p.loops = loops
	}
	return s
}

// noLoopTarget refuses to rebind the name loop as a loop's own variable.
func (p *parser) noLoopTarget(t target) {
	switch t := t.(type) {
	case *nameExpr:
		if t.name == "loop" {
			p.fail(t.head, "'loop' is the name of the loop itself and cannot be assigned here")
		}
	case *tupleTarget:
		for _, item := range t.items {
			p.noLoopTarget(item)
		}
	}
}

func copyTarget(t target) target {
	switch t := t.(type) {
	case *nameExpr:
		c := *t
		return &c
	case *tupleTarget:
		c := &tupleTarget{head: t.head}
		for _, item := range t.items {
			c.items = append(c.items, copyTarget(item))
		}
		return c
	}
	return t
}

func (p *parser) loopControl() stmt {
	tok := p.advance()
	if p.loops == 0 {
		p.fail(tok.head(), "{%% %s %%} stands outside of a loop", tok.text)
	}
	if tok.text == "break" {
		return breakStmt{tok.head()}
	}
	return continueStmt{tok.head()}
}

func (p *parser) with(open openBlock) stmt {
	s := &withStmt{at: p.advance().head()}
	for !p.failed && p.cur.kind != tokTagEnd && p.cur.kind != tokColon {
		if len(s.targets) > 0 {
			p.expect(tokComma)
		}
		s.targets = append(s.targets, p.assignTarget(tupleRules{}))
		p.expect(tokAssign)
		s.values = append(s.values, p.expression())
	}
	s.body = p.lastBlock(open)
	return s
}

func (p *parser) print() []stmt {
	p.advance()
	var out []stmt
	for !p.failed && p.cur.kind != tokTagEnd {
		if len(out) > 0 {
			p.expect(tokComma)
		}
		out = append(out, &outStmt{x: p.expression()})
	}
	return out
}

func (p *parser) macro(open openBlock) stmt {
	kind := p.advance().text
	name := p.expect(tokName)
	p.noConstant(name)
	def := &macroDef{tmpl: p.tmpl, kind: kind, name: name.text, pos: name.place}
	p.signature(def)
	p.macroBody(def, open)
	bound := name.text
	if kind == "test" {
		// dbt's name for it, so that a test never hides a macro.
		bound = "test_" + name.text
	}
	return &macroStmt{def: def, name: p.storeName(name, bound)}
}

// signature parses "(a, b=1)".
func (p *parser) signature(def *macroDef) {
	p.expect(tokLParen)
	seen := map[string]bool{}
	for !p.failed && p.cur.kind != tokRParen {
		if len(def.params) > 0 {
			p.expect(tokComma)
		}
		tok := p.expect(tokName)
		if p.failed {
			return
		}
		p.noConstant(tok)
		if seen[tok.text] {
			p.fail(tok.head(), "two parameters are called '%s'", tok.text)
		}
		seen[tok.text] = true
		p.noteStore(tok.text)
		prm := param{name: &nameExpr{head: tok.head(), name: tok.text, slot: -1}}
		if p.skip(tokAssign) {
			prm.value = p.expression()
		} else if n := len(def.params); n > 0 && def.params[n-1].value != nil {
			p.fail(tok.head(), "the parameter '%s' needs a default, because one before it has one", tok.text)
		}
		def.params = append(def.params, prm)
	}
	p.expect(tokRParen)
}

// macroBody parses the body; in it an enclosing loop cannot be left.
func (p *parser) macroBody(def *macroDef, open openBlock) {
	loops := p.loops
	p.loops = 0
	p.macros = append(p.macros, def)
	def.body = p.lastBlock(open)
	p.macros = p.macros[:len(p.macros)-1]
	p.loops = loops
	for _, prm := range def.params {
		switch prm.name.name {
		case "caller":
			def.explicitCaller = true
			if def.uses.caller && prm.value == nil {
				p.fail(prm.name.head, "the parameter 'caller' needs a default, or leave it out: it is there when the body uses it")
			}
		}
	}
}

func (p *parser) call(open openBlock) stmt {
	tok := p.advance()
	def := &macroDef{tmpl: p.tmpl, kind: "call", name: "caller", pos: tok.place}
	if p.is(tokLParen) {
		p.signature(def)
	}
	at := p.cur.head()
	call, ok := p.expression().(*callExpr)
	if !ok && !p.failed {
		p.failHint(at, "for example {% call my_macro() %}", "expected the call of a macro")
	}
	p.macroBody(def, open)
	return &callStmt{call: call, def: def}
}

func (p *parser) filterBlock(open openBlock) stmt {
	s := &filterStmt{place: p.advance().place}
	s.filter = p.filterFrom(nil)
	if p.is(tokPipe) {
		s.filter = p.filterChain(s.filter)
	}
	s.body = p.lastBlock(open)
	return s
}

func (p *parser) importTag() stmt {
	s := &importStmt{place: p.advance().place, template: p.expression()}
	p.expectName("as")
	name := p.expect(tokName)
	p.noConstant(name)
	s.target = p.storeName(name, name.text)
	p.importContext()
	return s
}

func (p *parser) fromTag() stmt {
	s := &fromStmt{place: p.advance().place, template: p.expression()}
	p.expectName("import")
	for !p.failed {
		if len(s.names) > 0 {
			p.expect(tokComma)
			if p.importContext() {
				break
			}
		}
		name := p.expect(tokName)
		p.noConstant(name)
		if strings.HasPrefix(name.text, "_") {
			p.fail(name.head(), "'%s' cannot be imported: names that begin with _ are private", name.text)
		}
		bound := name
		if p.skipName("as") {
			bound = p.expect(tokName)
			p.noConstant(bound)
		}
		s.names = append(s.names, fromName{head: name.head(), name: name.text, target: p.storeName(bound, bound.text)})
		if p.importContext() || p.cur.kind != tokComma {
			break
		}
	}
	return s
}

// importContext passes over "with context" and "without context"; macros see
// the globals either way.
func (p *parser) importContext() bool {
	if !p.isName("with") && !p.isName("without") {
		return false
	}
	if next := p.look(); next.kind != tokName || next.text != "context" {
		return false
	}
	p.advance()
	p.advance()
	return true
}

// assignTarget parses the left side of an assignment.
func (p *parser) assignTarget(rules tupleRules) target {
	at := p.cur.head()
	rules.simple = true
	p.storing = true
	x := p.tuple(rules)
	p.storing = false
	if p.failed {
		return nil
	}
	t, ok := p.toTarget(x)
	if !ok && !p.failed {
		p.fail(at, "nothing can be assigned to this")
	}
	return t
}

func (p *parser) toTarget(x expr) (target, bool) {
	switch x := x.(type) {
	case *nameExpr:
		if x.name == "loop" && p.loops > 0 {
			p.fail(x.head, "'loop' is the name of the loop itself and cannot be assigned inside of it")
		}
		p.noteStore(x.name)
		return x, true
	case *nsTarget:
		return x, true
	case *tupleExpr:
		t := &tupleTarget{head: x.head}
		for _, item := range x.items {
			it, ok := p.toTarget(item)
			if !ok {
				return nil, false
			}
			t.items = append(t.items, it)
		}
		return t, true
	}
	return nil, false
}

func (p *parser) noConstant(tok token) {
	switch tok.text {
	case "true", "false", "none", "True", "False", "None":
		if tok.kind == tokName {
			p.fail(tok.head(), "'%s' is a constant and cannot be assigned", tok.text)
		}
	}
}

func (p *parser) storeName(tok token, name string) *nameExpr {
	p.noteStore(name)
	return &nameExpr{head: tok.head(), name: name, slot: -1}
}

// noteLoad and noteStore keep account of the special names caller, kwargs and
// varargs: a macro has those that its body reads before it binds them.
func (p *parser) noteLoad(name string) {
	for _, def := range p.macros {
		if hidden := def.hides.named(name); hidden != nil && !*hidden {
			*def.uses.named(name) = true
		}
	}
}

func (p *parser) noteStore(name string) {
	for _, def := range p.macros {
		if used := def.uses.named(name); used != nil && !*used {
			*def.hides.named(name) = true
		}
	}
}

// unknownName reports an unknown filter or test, at once unless it stands under
// a condition that may never hold.
func (p *parser) unknownName(at head, what, name string, known []string) {
	if p.soft > 0 || len(p.diags) >= maxProblems {
		return
	}
	p.diags = append(p.diags, unknownProblem(at, p.lex.file, what, name, known))
}

func unknownProblem(at head, file, what, name string, known []string) diag.Diagnostic {
	d := diag.Errorf(diag.UndefinedName, at.in(file), "there is no %s '%s'", what, name)
	d.Width = int(at.width)
	if near := diag.Nearest(name, known); near != "" {
		d.Hint = "did you mean '" + near + "'?"
	}
	return d
}
