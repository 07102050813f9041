package jinja

// tupleRules say how a tuple without brackets is read.
type tupleRules struct {
	simple    bool   // names and literals only: the left side of an assignment
	namespace bool   // ns.attr may be assigned
	cond      bool   // a if b else c is allowed
	parens    bool   // it stands in ( ), so that it may be empty
	end       string // a name that ends it
}

// tuple parses one expression, or several with commas between as a tuple.
func (p *parser) tuple(rules tupleRules) expr {
	at := p.cur.head()
	var items []expr
	isTuple := false
	for !p.failed {
		if len(items) > 0 {
			p.expect(tokComma)
		}
		if p.tupleEnds(rules) {
			break
		}
		switch {
		case rules.simple:
			items = append(items, p.primary(rules.namespace))
		case rules.cond:
			items = append(items, p.expression())
		default:
			items = append(items, p.or())
		}
		if !p.is(tokComma) {
			break
		}
		isTuple = true
	}
	if p.failed {
		return nil
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0]
		}
		if !rules.parens {
			p.unexpected("expected an expression")
			return nil
		}
	}
	return &tupleExpr{head: p.over(at, items...), items: items}
}

func (p *parser) tupleEnds(rules tupleRules) bool {
	switch p.cur.kind {
	case tokOutputEnd, tokTagEnd, tokRParen:
		return true
	}
	return rules.end != "" && p.isName(rules.end)
}

// expression parses one expression with a condition.
func (p *parser) expression() expr {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	found := len(p.diags)
	x := p.or()
	for p.isName("if") {
		// Unknown filters and tests so far stand under this condition.
		p.diags = p.diags[:found]
		p.advance()
		p.soft++
		cond := p.or()
		var other expr
		if p.skipName("else") {
			other = p.expression()
		}
		p.soft--
		if p.failed {
			return nil
		}
		x = &condExpr{head: p.over(x.origin(), x, cond, other), cond: cond, then: x, other: other}
	}
	return x
}

func (p *parser) or() expr {
	left := p.and()
	for p.isName("or") {
		p.advance()
		right := p.and()
		if p.failed {
			return nil
		}
		left = &logicExpr{head: p.over(left.origin(), left, right), l: left, r: right}
	}
	return left
}

func (p *parser) and() expr {
	left := p.not()
	for p.isName("and") {
		p.advance()
		right := p.not()
		if p.failed {
			return nil
		}
		left = &logicExpr{head: p.over(left.origin(), left, right), and: true, l: left, r: right}
	}
	return left
}

func (p *parser) not() expr {
	if !p.isName("not") {
		return p.compare()
	}
	if !p.enter() {
		return nil
	}
	defer p.leave()
	at := p.advance().head()
	x := p.not()
	if p.failed {
		return nil
	}
	return &notExpr{head: p.over(at, x), x: x}
}

func (p *parser) compare() expr {
	first := p.sum()
	var ops []comparison
	height := int32(0)
	for !p.failed {
		op, ok := p.compareOp()
		if !ok {
			break
		}
		at := p.advance().head()
		if op == opNotIn {
			p.advance()
		}
		x := p.sum()
		if p.failed {
			return nil
		}
		height = max(height, x.origin().height)
		ops = append(ops, comparison{op: op, at: at, x: x})
	}
	if p.failed || len(ops) == 0 {
		return first
	}
	h := p.over(first.origin(), first)
	h.height = max(h.height, height+1)
	return &compareExpr{head: p.over(h), first: first, ops: ops}
}

func (p *parser) compareOp() (compareOp, bool) {
	switch p.cur.kind {
	case tokEq:
		return opEq, true
	case tokNe:
		return opNe, true
	case tokLt:
		return opLt, true
	case tokLe:
		return opLe, true
	case tokGt:
		return opGt, true
	case tokGe:
		return opGe, true
	case tokName:
		if p.cur.text == "in" {
			return opIn, true
		}
		if p.cur.text == "not" {
			if next := p.look(); next.kind == tokName && next.text == "in" {
				return opNotIn, true
			}
		}
	}
	return 0, false
}

func (p *parser) binary(left expr, op token, right expr) expr {
	if p.failed {
		return nil
	}
	return &binaryExpr{head: p.over(left.origin(), left, right), op: op.kind, at: op.head(), l: left, r: right}
}

func (p *parser) sum() expr {
	left := p.concat()
	for p.is(tokAdd) || p.is(tokSub) {
		op := p.advance()
		left = p.binary(left, op, p.concat())
	}
	return left
}

func (p *parser) concat() expr {
	first := p.product()
	if !p.is(tokTilde) {
		return first
	}
	parts := []expr{first}
	for p.skip(tokTilde) {
		parts = append(parts, p.product())
	}
	if p.failed {
		return nil
	}
	return &concatExpr{head: p.over(first.origin(), parts...), parts: parts}
}

func (p *parser) product() expr {
	left := p.power()
	for p.is(tokMul) || p.is(tokDiv) || p.is(tokFloorDiv) || p.is(tokMod) {
		op := p.advance()
		left = p.binary(left, op, p.power())
	}
	return left
}

func (p *parser) power() expr {
	left := p.unary(true)
	for p.is(tokPow) {
		op := p.advance()
		left = p.binary(left, op, p.unary(true))
	}
	return left
}

// unary parses a sign, what it belongs to, and the filters and tests behind:
// -x | abs filters -x.
func (p *parser) unary(filters bool) expr {
	var x expr
	if p.is(tokSub) || p.is(tokAdd) {
		if !p.enter() {
			return nil
		}
		op := p.advance()
		inner := p.unary(false)
		p.leave()
		if p.failed {
			return nil
		}
		x = &unaryExpr{head: p.over(op.head(), inner), op: op.kind, x: inner}
	} else {
		x = p.primary(false)
	}
	x = p.postfix(x)
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *parser) primary(namespace bool) expr {
	tok := p.cur
	switch tok.kind {
	case tokName:
		p.advance()
		return p.nameOrConst(tok, namespace)
	case tokString:
		p.advance()
		if !p.is(tokString) {
			return &constExpr{head: tok.head(), value: tok.text}
		}
		text := []byte(tok.text)
		for p.is(tokString) {
			text = append(text, p.advance().text...)
		}
		return &constExpr{head: tok.head(), value: string(text)}
	case tokInt, tokFloat:
		p.advance()
		return &constExpr{head: tok.head(), value: tok.value}
	case tokLParen:
		p.advance()
		x := p.tuple(tupleRules{cond: true, parens: true})
		p.expect(tokRParen)
		return x
	case tokLBracket:
		return p.list()
	case tokLBrace:
		return p.dict()
	}
	p.unexpected("expected an expression")
	return nil
}

func (p *parser) nameOrConst(tok token, namespace bool) expr {
	switch tok.text {
	case "true", "True":
		return &constExpr{head: tok.head(), value: true}
	case "false", "False":
		return &constExpr{head: tok.head(), value: false}
	case "none", "None":
		return &constExpr{head: tok.head(), value: nil}
	}
	name := &nameExpr{head: tok.head(), name: tok.text, slot: -1}
	if !p.storing {
		p.noteLoad(tok.text)
	}
	if namespace && p.skip(tokDot) {
		return &nsTarget{head: tok.head(), ns: name, attr: p.expect(tokName).text}
	}
	return name
}

func (p *parser) list() expr {
	at := p.advance().head()
	var items []expr
	for !p.failed && !p.is(tokRBracket) {
		if len(items) > 0 {
			p.expect(tokComma)
			if p.is(tokRBracket) {
				break
			}
		}
		items = append(items, p.expression())
	}
	p.expect(tokRBracket)
	if p.failed {
		return nil
	}
	return &listExpr{head: p.over(at, items...), items: items}
}

func (p *parser) dict() expr {
	at := p.advance().head()
	d := &dictExpr{}
	for !p.failed && !p.is(tokRBrace) {
		if len(d.keys) > 0 {
			p.expect(tokComma)
			if p.is(tokRBrace) {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expect(tokColon)
		d.values = append(d.values, p.expression())
	}
	p.expect(tokRBrace)
	if p.failed {
		return nil
	}
	at.height = p.over(at, d.keys...).height
	d.head = p.over(at, d.values...)
	d.head.height = max(d.head.height, at.height)
	return d
}

func (p *parser) postfix(x expr) expr {
	for !p.failed {
		switch p.cur.kind {
		case tokDot:
			x = p.attribute(x)
		case tokLBracket:
			x = p.subscript(x)
		case tokLParen:
			x = p.callOf(x)
		default:
			return x
		}
	}
	return nil
}

func (p *parser) filters(x expr) expr {
	for !p.failed {
		switch {
		case p.cur.kind == tokPipe:
			x = p.filterChain(x)
		case p.isName("is"):
			x = p.test(x)
		case p.cur.kind == tokLParen:
			x = p.callOf(x)
		default:
			return x
		}
	}
	return nil
}

func (p *parser) attribute(x expr) expr {
	p.advance()
	tok := p.cur
	switch tok.kind {
	case tokName:
		p.advance()
		return &attrExpr{head: p.over(x.origin(), x), obj: x, name: tok.text, at: tok.head()}
	case tokInt:
		p.advance()
		key := &constExpr{head: tok.head(), value: tok.value}
		return &itemExpr{head: p.over(x.origin(), x), obj: x, key: key}
	}
	p.unexpected("expected the name of an attribute")
	return nil
}

func (p *parser) subscript(x expr) expr {
	at := p.advance().head()
	var keys []expr
	for !p.failed && !p.is(tokRBracket) {
		if len(keys) > 0 {
			p.expect(tokComma)
		}
		keys = append(keys, p.subscriptKey())
	}
	p.expect(tokRBracket)
	if p.failed {
		return nil
	}
	if len(keys) == 1 {
		return &itemExpr{head: p.over(x.origin(), x, keys[0]), obj: x, key: keys[0]}
	}
	key := &tupleExpr{head: p.over(at, keys...), items: keys}
	return &itemExpr{head: p.over(x.origin(), x, key), obj: x, key: key}
}

func (p *parser) subscriptKey() expr {
	at := p.cur.head()
	var parts [3]expr
	if !p.is(tokColon) {
		x := p.expression()
		if !p.is(tokColon) {
			return x
		}
		parts[0] = x
	}
	for i := 1; i < 3 && p.skip(tokColon); i++ {
		if !p.is(tokColon) && !p.is(tokRBracket) && !p.is(tokComma) {
			parts[i] = p.expression()
		}
	}
	if p.failed {
		return nil
	}
	return &sliceExpr{head: p.over(at, parts[:]...), lo: parts[0], hi: parts[1], step: parts[2]}
}
