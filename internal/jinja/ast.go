package jinja

import "rbt/internal/diag"

// place is a position in one template, line and column counted from 1, the
// column in runes. The file is known from the template, so that a node stays
// small.
type place struct{ line, col int32 }

func (p place) in(file string) diag.Pos {
	return diag.Pos{File: file, Line: int(p.line), Col: int(p.col)}
}

// head is what every expression has: where it begins, how many characters to
// underline when it is to blame, and how tall the tree under it is.
type head struct {
	place
	width  int32
	height int32
}

func (h head) origin() head { return h }

// expr is an expression node. Nodes are never changed after Parse.
type expr interface{ origin() head }

type (
	constExpr struct {
		head
		value any
	}
	// nameExpr is a variable. slot < 0 means that no frame of the template
	// binds it: it is looked up in the library and the globals.
	nameExpr struct {
		head
		name       string
		hops, slot int32
	}
	attrExpr struct {
		head
		obj  expr
		name string
		at   head
	}
	itemExpr struct {
		head
		obj, key expr
	}
	sliceExpr struct {
		head
		lo, hi, step expr
	}
	callExpr struct {
		head
		fn   expr
		args callArgs
	}
	filterExpr struct {
		head
		in   expr // nil at the start of a filter block
		name string
		at   head
		args callArgs
		def  *filterDef
	}
	testExpr struct {
		head
		in   expr
		name string
		at   head
		args callArgs
		def  *testDef
	}
	unaryExpr struct {
		head
		op tokenKind
		x  expr
	}
	notExpr struct {
		head
		x expr
	}
	binaryExpr struct {
		head
		op   tokenKind
		at   head
		l, r expr
	}
	logicExpr struct {
		head
		and  bool
		l, r expr
	}
	concatExpr struct {
		head
		parts []expr
	}
	compareExpr struct {
		head
		first expr
		ops   []comparison
	}
	condExpr struct {
		head
		cond, then, other expr // other may be nil
	}
	tupleExpr struct {
		head
		items []expr
	}
	listExpr struct {
		head
		items []expr
	}
	dictExpr struct {
		head
		keys, values []expr
	}
)

// comparison is one operator of a chain with its right side.
type comparison struct {
	op compareOp
	at head
	x  expr
}

type compareOp uint8

const (
	opEq compareOp = iota
	opNe
	opLt
	opLe
	opGt
	opGe
	opIn
	opNotIn
)

type keyword struct {
	name  string
	at    head
	value expr
}

type callArgs struct {
	args     []expr
	kwargs   []keyword
	star     expr
	starstar expr
}

// target is the left side of an assignment: a name, several in a tuple, or an
// attribute of a namespace.
type target interface{ origin() head }

type (
	tupleTarget struct {
		head
		items []target
	}
	nsTarget struct {
		head
		ns   *nameExpr
		attr string
	}
)

// stmt is a statement node.
type stmt interface{}

type (
	textStmt struct {
		place
		text string
	}
	outStmt struct {
		x expr
		// commented is set where an SQL comment stands before it on its line.
		commented bool
	}
	ifStmt struct {
		conds  []expr
		bodies [][]stmt
		other  []stmt
	}
	forStmt struct {
		place
		target    target
		iter      expr
		test      expr
		body      []stmt
		other     []stmt
		recursive bool
		loopSlot  int32
		// testTarget assigns an item for the loop's filter, in a frame of its own.
		testTarget                       target
		bodyFrame, otherFrame, testFrame frameCode
		slots                            int32 // of a recursive loop, which is a unit
	}
	setStmt struct {
		target target
		value  expr
	}
	setBlockStmt struct {
		place
		target target
		filter *filterExpr
		body   []stmt
		frame  frameCode
	}
	macroStmt struct {
		def  *macroDef
		name *nameExpr
	}
	callStmt struct {
		call *callExpr
		def  *macroDef
	}
	filterStmt struct {
		place
		filter *filterExpr
		body   []stmt
		frame  frameCode
	}
	withStmt struct {
		at      head
		targets []target
		values  []expr
		body    []stmt
		frame   frameCode
	}
	doStmt       struct{ x expr }
	breakStmt    struct{ head }
	continueStmt struct{ head }
	importStmt   struct {
		place
		template expr
		target   *nameExpr
	}
	fromStmt struct {
		place
		template expr
		names    []fromName
	}
)

type fromName struct {
	head
	name   string
	target *nameExpr
}

// macroDef is a macro, a test block or the body of a call block.
type macroDef struct {
	tmpl   *Template
	kind   string // "macro", "test" or "call"
	name   string
	pos    place
	params []param
	body   []stmt
	frame  frameCode
	slots  int32
	// Slots of the special names, -1 where the body does not use them.
	callerSlot, kwargsSlot, varargsSlot int32
	explicitCaller                      bool
	uses, hides                         specialNames
}

type param struct {
	name  *nameExpr
	value expr // the default, nil where there is none
}

// specialNames are the names that a macro gets only if its body uses them.
type specialNames struct{ caller, kwargs, varargs bool }

func (s *specialNames) named(name string) *bool {
	switch name {
	case "caller":
		return &s.caller
	case "kwargs":
		return &s.kwargs
	case "varargs":
		return &s.varargs
	}
	return nil
}
