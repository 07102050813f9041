package jinja

func (p *parser) callOf(fn expr) expr {
	at := fn.origin()
	args := p.args()
	if p.failed {
		return nil
	}
	return &callExpr{head: p.overArgs(at, fn, args), fn: fn, args: args}
}

// overArgs is over for a node with the arguments of a call.
func (p *parser) overArgs(h head, in expr, args callArgs) head {
	base := p.over(h, in, args.star, args.starstar)
	height := max(base.height, p.over(h, args.args...).height)
	for _, kw := range args.kwargs {
		height = max(height, kw.value.origin().height+1)
	}
	base.height = height
	return base
}

func (p *parser) args() callArgs {
	var a callArgs
	p.advance()
	for n := 0; !p.failed && !p.is(tokRParen); n++ {
		if n > 0 {
			p.expect(tokComma)
			if p.is(tokRParen) {
				break
			}
		}
		p.arg(&a)
	}
	p.expect(tokRParen)
	return a
}

func (p *parser) arg(a *callArgs) {
	at := p.cur.head()
	switch {
	case p.is(tokMul):
		if a.star != nil || a.starstar != nil {
			p.fail(at, "only one *list, and before any **dict, can be given to a call")
		}
		p.advance()
		a.star = p.expression()
	case p.is(tokPow):
		if a.starstar != nil {
			p.fail(at, "only one **dict can be given to a call")
		}
		p.advance()
		a.starstar = p.expression()
	case p.is(tokName) && p.look().kind == tokAssign:
		name := p.advance()
		p.advance()
		if a.starstar != nil {
			p.fail(at, "a named argument cannot follow a **dict")
		}
		for _, kw := range a.kwargs {
			if kw.name == name.text {
				p.fail(at, "the argument '%s' is given twice", name.text)
			}
		}
		x := p.expression()
		if !p.failed {
			a.kwargs = append(a.kwargs, keyword{name: name.text, at: name.head(), value: x})
		}
	default:
		if len(a.kwargs) > 0 || a.star != nil || a.starstar != nil {
			p.fail(at, "an argument without a name cannot follow named ones")
		}
		a.args = append(a.args, p.expression())
	}
}

// filterChain parses "| a | b(1)" behind x.
func (p *parser) filterChain(x expr) *filterExpr {
	var f *filterExpr
	for p.skip(tokPipe) {
		if f = p.filterFrom(x); f == nil {
			return nil
		}
		x = f
	}
	return f
}

// filterFrom parses the name and arguments of one filter.
func (p *parser) filterFrom(x expr) *filterExpr {
	at, name := p.dottedName()
	f := &filterExpr{in: x, name: name, at: at}
	if p.is(tokLParen) {
		f.args = p.args()
	}
	if p.failed {
		return nil
	}
	start := at
	if x != nil {
		start = x.origin()
	}
	f.head = p.overArgs(start, x, f.args)
	if f.def = filterNamed(name); f.def == nil {
		p.unknownName(at, "filter", name, filterNames())
	}
	return f
}

// dottedName reads a name that may hold dots, as names of filters and tests.
func (p *parser) dottedName() (head, string) {
	tok := p.expect(tokName)
	name := tok.text
	for p.skip(tokDot) {
		name += "." + p.expect(tokName).text
	}
	return tok.head(), name
}

func (p *parser) test(x expr) expr {
	is := p.advance().head()
	negated := p.skipName("not")
	at, name := p.dottedName()
	t := &testExpr{in: x, name: name, at: at}
	switch p.cur.kind {
	case tokLParen:
		t.args = p.args()
	case tokName, tokString, tokInt, tokFloat, tokLBracket, tokLBrace:
		if p.isName("else") || p.isName("or") || p.isName("and") {
			break
		}
		if p.isName("is") {
			p.failHint(p.cur.head(), "join them with and", "a second test cannot follow directly")
			return nil
		}
		t.args.args = []expr{p.postfix(p.primary(false))}
	}
	if p.failed {
		return nil
	}
	t.head = p.overArgs(x.origin(), x, t.args)
	if t.def = testNamed(name); t.def == nil {
		p.unknownName(at, "test", name, testNames())
	}
	if negated {
		return &notExpr{head: p.over(is, t), x: t}
	}
	return t
}
