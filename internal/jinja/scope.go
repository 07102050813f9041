package jinja

// Names are bound when a template is parsed, by the rules of Jinja2: every
// block that is a scope has a frame; a name that a frame assigns anywhere is
// that frame's own throughout, and begins with the value of the frame outside.
// Frames of one unit (the template, a macro, a call body, a recursive loop)
// share the slots of one activation; a unit reaches those of the units around
// it by hops.

// entry says what a frame does with one of its slots when it is entered.
type entry struct {
	slot   int32
	kind   entryKind
	hops   int32 // of entryAlias
	source int32
	name   string // of entryResolve
}

type entryKind uint8

const (
	entryMissing entryKind = iota // nothing yet
	entryAlias                    // the value of a slot outside
	entryResolve                  // the library's or global value
	entryParam                    // set by whoever enters the frame
)

// frameCode is what remains of a frame for evaluation.
type frameCode struct{ entries []entry }

type symbol struct {
	slot int32 // -1: only looked up, never bound here
}

// unit counts the slots of one activation.
type unit struct{ slots int32 }

func (u *unit) slot() int32 {
	u.slots++
	return u.slots - 1
}

type frame struct {
	parent  *frame
	unit    *unit
	symbols map[string]symbol
	order   []entry
	uses    []*nameExpr
	inner   []func()
	// branch counts the conditions around the code that is walked.
	branch int
}

func (f *frame) child() *frame { return &frame{parent: f, unit: f.unit} }

func (f *frame) childUnit() *frame { return &frame{parent: f, unit: &unit{}} }

func (f *frame) define(name string, s symbol) {
	if f.symbols == nil {
		f.symbols = map[string]symbol{}
	}
	f.symbols[name] = s
}

// find reports the nearest frame at or outside f that knows name.
func (f *frame) find(name string) (*frame, symbol, bool) {
	for ; f != nil; f = f.parent {
		if s, ok := f.symbols[name]; ok {
			return f, s, true
		}
	}
	return nil, symbol{}, false
}

func (f *frame) load(n *nameExpr) {
	f.uses = append(f.uses, n)
	if _, _, ok := f.find(n.name); !ok {
		f.define(n.name, symbol{slot: -1})
	}
}

func (f *frame) store(n *nameExpr) {
	f.uses = append(f.uses, n)
	s, known := f.symbols[n.name]
	if known && s.slot >= 0 {
		return
	}
	e := entry{slot: f.unit.slot(), name: n.name}
	outer, outerSymbol, found := f.parent.find(n.name)
	switch {
	case found && outerSymbol.slot >= 0:
		e.kind, e.source, e.hops = entryAlias, outerSymbol.slot, f.hopsTo(outer)
	case found || known || f.branch > 0:
		e.kind = entryResolve
	}
	f.define(n.name, symbol{slot: e.slot})
	f.order = append(f.order, e)
}

// param binds a name whose value is set by whoever enters the frame.
func (f *frame) param(name string) int32 {
	if s, ok := f.symbols[name]; ok && s.slot >= 0 {
		return s.slot
	}
	slot := f.unit.slot()
	f.define(name, symbol{slot: slot})
	f.order = append(f.order, entry{slot: slot, kind: entryParam})
	return slot
}

// hopsTo counts the units between f and an outer frame.
func (f *frame) hopsTo(outer *frame) int32 {
	var n int32
	for at := f; at != outer; at = at.parent {
		if at.parent.unit != at.unit {
			n++
		}
	}
	return n
}

// finish binds the names used in f, then the frames inside, which may use all
// that f binds.
func (f *frame) finish() frameCode {
	for _, n := range f.uses {
		n.hops, n.slot = 0, -1
		for at := f; at != nil; at = at.parent {
			if s, ok := at.symbols[n.name]; ok && s.slot >= 0 {
				n.slot = s.slot
				break
			}
			if at.parent != nil && at.parent.unit != at.unit {
				n.hops++
			}
		}
	}
	for _, inner := range f.inner {
		inner()
	}
	return frameCode{entries: f.order}
}

func (f *frame) later(bind func()) { f.inner = append(f.inner, bind) }

// bindTemplate binds all names of a template and gives its number of slots.
func bindTemplate(body []stmt) (frameCode, map[string]symbol, int32) {
	root := &frame{unit: &unit{}}
	root.stmts(body)
	code := root.finish()
	return code, root.symbols, root.unit.slots
}

func (f *frame) stmts(body []stmt) {
	for _, s := range body {
		f.stmt(s)
	}
}

func (f *frame) stmt(s stmt) {
	switch s := s.(type) {
	case *outStmt:
		f.expr(s.x)
	case *doStmt:
		f.expr(s.x)
	case *ifStmt:
		f.ifStmt(s)
	case *forStmt:
		f.expr(s.iter)
		f.later(func() { f.forStmt(s) })
	case *setStmt:
		f.expr(s.value)
		f.target(s.target)
	case *setBlockStmt:
		f.target(s.target)
		f.later(func() {
			in := f.child()
			in.stmts(s.body)
			if s.filter != nil {
				in.expr(s.filter)
			}
			s.frame = in.finish()
		})
	case *macroStmt:
		f.store(s.name)
		f.later(func() { f.macro(s.def) })
	case *callStmt:
		f.expr(s.call)
		f.later(func() { f.macro(s.def) })
	case *filterStmt:
		f.expr(s.filter)
		f.later(func() {
			in := f.child()
			in.stmts(s.body)
			s.frame = in.finish()
		})
	case *withStmt:
		for _, v := range s.values {
			f.expr(v)
		}
		f.later(func() {
			in := f.child()
			for _, t := range s.targets {
				in.paramTarget(t)
			}
			in.stmts(s.body)
			s.frame = in.finish()
		})
	case *importStmt:
		f.expr(s.template)
		f.store(s.target)
	case *fromStmt:
		f.expr(s.template)
		for _, n := range s.names {
			f.store(n.target)
		}
	}
}

func (f *frame) ifStmt(s *ifStmt) {
	for i, cond := range s.conds {
		if i > 0 {
			f.branch++
		}
		f.expr(cond)
		if i > 0 {
			f.branch--
		}
		f.branch++
		f.stmts(s.bodies[i])
		f.branch--
	}
	f.branch++
	f.stmts(s.other)
	f.branch--
}

func (f *frame) forStmt(s *forStmt) {
	base := f
	if s.recursive {
		base = f.childUnit()
	}
	in := func() *frame {
		if s.recursive {
			return &frame{parent: f, unit: base.unit}
		}
		return f.child()
	}
	body := in()
	s.loopSlot = body.param("loop")
	body.paramTarget(s.target)
	body.stmts(s.body)
	s.bodyFrame = body.finish()
	other := in()
	other.stmts(s.other)
	s.otherFrame = other.finish()
	if s.test != nil {
		test := in()
		test.paramTarget(s.testTarget)
		test.expr(s.test)
		s.testFrame = test.finish()
	}
	if s.recursive {
		s.slots = base.unit.slots
	}
}

func (f *frame) macro(def *macroDef) {
	in := f.childUnit()
	for i := range def.params {
		n := def.params[i].name
		in.param(n.name)
		in.uses = append(in.uses, n)
	}
	def.callerSlot, def.kwargsSlot, def.varargsSlot = -1, -1, -1
	if def.uses.caller && !def.explicitCaller {
		def.callerSlot = in.param("caller")
	}
	if _, named := in.symbols["kwargs"]; def.uses.kwargs && !named {
		def.kwargsSlot = in.param("kwargs")
	}
	if _, named := in.symbols["varargs"]; def.uses.varargs && !named {
		def.varargsSlot = in.param("varargs")
	}
	for i := range def.params {
		if d := def.params[i].value; d != nil {
			in.expr(d)
		}
	}
	in.stmts(def.body)
	def.frame = in.finish()
	def.slots = in.unit.slots
}

func (f *frame) target(t target) {
	switch t := t.(type) {
	case *nameExpr:
		f.store(t)
	case *tupleTarget:
		for _, item := range t.items {
			f.target(item)
		}
	case *nsTarget:
		f.load(t.ns)
	}
}

func (f *frame) paramTarget(t target) {
	switch t := t.(type) {
	case *nameExpr:
		f.param(t.name)
		f.uses = append(f.uses, t)
	case *tupleTarget:
		for _, item := range t.items {
			f.paramTarget(item)
		}
	}
}

func (f *frame) exprs(list []expr) {
	for _, x := range list {
		f.expr(x)
	}
}

func (f *frame) expr(x expr) {
	switch x := x.(type) {
	case *nameExpr:
		f.load(x)
	case *attrExpr:
		f.expr(x.obj)
	case *itemExpr:
		f.expr(x.obj)
		f.expr(x.key)
	case *sliceExpr:
		f.optional(x.lo)
		f.optional(x.hi)
		f.optional(x.step)
	case *callExpr:
		f.expr(x.fn)
		f.args(&x.args)
	case *filterExpr:
		f.optional(x.in)
		f.args(&x.args)
	case *testExpr:
		f.expr(x.in)
		f.args(&x.args)
	case *unaryExpr:
		f.expr(x.x)
	case *notExpr:
		f.expr(x.x)
	case *binaryExpr:
		f.expr(x.l)
		f.expr(x.r)
	case *logicExpr:
		f.expr(x.l)
		f.expr(x.r)
	case *concatExpr:
		f.exprs(x.parts)
	case *compareExpr:
		f.expr(x.first)
		for _, op := range x.ops {
			f.expr(op.x)
		}
	case *condExpr:
		f.expr(x.cond)
		f.expr(x.then)
		f.optional(x.other)
	case *tupleExpr:
		f.exprs(x.items)
	case *listExpr:
		f.exprs(x.items)
	case *dictExpr:
		for i := range x.keys {
			f.expr(x.keys[i])
			f.expr(x.values[i])
		}
	}
}

func (f *frame) optional(x expr) {
	if x != nil {
		f.expr(x)
	}
}

func (f *frame) args(a *callArgs) {
	f.exprs(a.args)
	for _, kw := range a.kwargs {
		f.expr(kw.value)
	}
	f.optional(a.star)
	f.optional(a.starstar)
}
