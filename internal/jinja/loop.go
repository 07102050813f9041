package jinja

import (
	"rbt/internal/diag"
)

// nextFunc gives the next item of a sequence, false at its end.
type nextFunc func() (any, bool, error)

// loopValue is the variable loop.
type loopValue struct {
	r        *run
	iterable any
	next     nextFunc
	index    int64 // of the current round, from 1; 0 before the first
	depth0   int64
	size     int64 // -1: not known yet
	current  any
	before   any
	after    any
	peeked   bool
	atEnd    bool
	recurse  func(p *proc, iterable any, at head) (any, error)
	changed  any
	asked    bool // changed was called
}

func (l *loopValue) advance() (any, bool, error) {
	v, ok, err := l.after, !l.atEnd, error(nil)
	if !l.peeked {
		v, ok, err = l.next()
	}
	l.peeked, l.after = false, nil
	if !ok || err != nil {
		return nil, false, err
	}
	l.index++
	l.before, l.current = l.current, v
	return v, true, nil
}

// peek looks at the item behind the current one.
func (l *loopValue) peek() (any, bool, error) {
	if !l.peeked {
		v, ok, err := l.next()
		if err != nil {
			return nil, false, err
		}
		l.after, l.atEnd, l.peeked = v, !ok, true
	}
	return l.after, !l.atEnd, nil
}

// length is the number of items; a sequence without one is read to its end.
func (l *loopValue) length() (int64, error) {
	if l.size >= 0 {
		return l.size, nil
	}
	if n, ok := lengthOf(l.iterable); ok {
		l.size = n
		return n, nil
	}
	var rest []any
	for {
		v, ok, err := l.next()
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		rest = append(rest, v)
	}
	l.size = int64(len(rest)) + l.index
	if l.peeked && !l.atEnd {
		l.size++
	}
	l.next = sliceNext(rest)
	return l.size, nil
}

func sliceNext(list []any) nextFunc {
	i := 0
	return func() (any, bool, error) {
		if i >= len(list) {
			return nil, false, nil
		}
		i++
		return list[i-1], true, nil
	}
}

// attr gives an attribute of the loop.
func (l *loopValue) attr(name string) (any, bool, error) {
	switch name {
	case "index":
		return l.index, true, nil
	case "index0":
		return l.index - 1, true, nil
	case "first":
		return l.index == 1, true, nil
	case "depth":
		return l.depth0 + 1, true, nil
	case "depth0":
		return l.depth0, true, nil
	case "length", "revindex", "revindex0":
		n, err := l.length()
		switch name {
		case "revindex":
			n -= l.index - 1
		case "revindex0":
			n -= l.index
		}
		return n, true, err
	case "last":
		_, ok, err := l.peek()
		return !ok, true, err
	case "previtem":
		if l.index <= 1 {
			return &Undefined{msg: "there is no previous item"}, true, nil
		}
		return l.before, true, nil
	case "nextitem":
		v, ok, err := l.peek()
		if !ok {
			v = &Undefined{msg: "there is no next item"}
		}
		return v, true, err
	case "cycle", "changed":
		return &method{recv: l, def: l.r.methodOf(l, name)}, true, nil
	}
	return nil, false, nil
}

// hasChanged reports whether the values differ from those of the last call.
func (l *loopValue) hasChanged(values Tuple) (any, error) {
	if l.asked {
		same, err := l.r.equal(l.changed, values)
		if err != nil || same {
			return false, err
		}
	}
	l.asked, l.changed = true, values
	return true, nil
}

func (p *proc) forStmt(s *forStmt) (control, error) {
	iterable, err := p.eval(s.iter)
	if err != nil {
		return goOn, err
	}
	if !s.recursive {
		return p.loop(s, iterable, 0, nil)
	}
	v, err := p.recursiveLoop(s, iterable, 0, s.iter.origin())
	if err != nil {
		return goOn, err
	}
	return goOn, p.print(v, head{place: s.place})
}

// recursiveLoop runs a recursive loop once, as the unit that it is, and gives
// its output.
func (p *proc) recursiveLoop(s *forStmt, iterable any, depth0 int64, at head) (any, error) {
	r := p.r
	if r.depth >= r.budget.Depth {
		return nil, p.at(failHint(diag.TemplateBudget, "look for data that holds itself",
			"this loop calls itself more than %d deep", r.budget.Depth), at)
	}
	r.depth++
	defer func() { r.depth-- }()
	outer := p.act
	sub := &proc{r: r, tmpl: p.tmpl, act: newActivation(s.slots, outer), out: &sink{r: r}, callers: p.callers}
	_, err := sub.loop(s, iterable, depth0, func(from *proc, inner any, at head) (any, error) {
		again := *from
		again.act = outer
		again.tmpl = sub.tmpl
		return again.recursiveLoop(s, inner, depth0+1, at)
	})
	return sub.out.value(), err
}

// loop runs the rounds of a loop.
func (p *proc) loop(s *forStmt, iterable any, depth0 int64, recurse func(*proc, any, head) (any, error)) (control, error) {
	next, err := p.r.iterate(iterable)
	if err != nil {
		if isTypeFault(err) {
			err = typeError("%s cannot be looped over", typeName(iterable))
		}
		return goOn, p.at(err, s.iter.origin())
	}
	l := &loopValue{r: p.r, iterable: iterable, next: next, size: -1, depth0: depth0, recurse: recurse}
	if s.test != nil {
		l.next = p.filtered(s, next)
		l.iterable = nil
	}
	done := false
	for {
		if err := p.r.step(1); err != nil {
			return goOn, p.at(err, head{place: s.place})
		}
		item, ok, err := l.advance()
		if err != nil {
			return goOn, p.at(err, s.iter.origin())
		}
		if !ok {
			break
		}
		if err := p.assign(s.target, item); err != nil {
			return goOn, err
		}
		p.act.slots[s.loopSlot] = l
		if err := p.enter(s.bodyFrame); err != nil {
			return goOn, err
		}
		ctl, err := p.stmts(s.body)
		if err != nil {
			return goOn, err
		}
		if ctl == leaveLoop {
			break
		}
		// As in Jinja2, only a round that runs to its end keeps else away.
		done = done || ctl == goOn
	}
	p.leave(s.bodyFrame)
	if done || s.other == nil {
		return goOn, nil
	}
	if err := p.enter(s.otherFrame); err != nil {
		return goOn, err
	}
	ctl, err := p.stmts(s.other)
	p.leave(s.otherFrame)
	return ctl, err
}

// filtered passes the items for which the loop's own condition holds.
func (p *proc) filtered(s *forStmt, next nextFunc) nextFunc {
	return func() (any, bool, error) {
		for {
			item, ok, err := next()
			if !ok || err != nil {
				return nil, false, err
			}
			if err := p.assign(s.testTarget, item); err != nil {
				return nil, false, err
			}
			if err := p.enter(s.testFrame); err != nil {
				return nil, false, err
			}
			keep, err := p.truth(s.test)
			if err != nil {
				return nil, false, err
			}
			if keep {
				return item, true, nil
			}
		}
	}
}
