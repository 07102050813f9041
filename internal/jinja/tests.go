package jinja

import (
	"strings"
	"unicode"
)

// testDef is one test.
type testDef struct {
	params params
	fn     func(r *run, v any, args []any) (bool, error)
}

func (p *proc) test(x *testExpr) (any, error) {
	v, err := p.eval(x.in)
	if err != nil {
		return nil, err
	}
	if x.def == nil {
		return nil, &fault{Diagnostic: unknownProblem(x.at, p.tmpl.file, "test", x.name, testNames())}
	}
	a, err := p.args(&x.args, false)
	if err != nil {
		return nil, err
	}
	ok, err := p.applyTest(x.name, x.def, v, a)
	return ok, p.blamed(err, x.at, &x.args)
}

func (p *proc) applyTest(name string, def *testDef, v any, a *argList) (bool, error) {
	args, err := def.params.bind("the test '"+name+"'", a)
	if err != nil {
		return false, err
	}
	return def.fn(p.r, plain(v), args)
}

func testNames() []string {
	return []string{"boolean", "callable", "defined", "divisibleby", "eq", "equalto", "escaped", "even", "false",
		"filter", "float", "ge", "greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan", "lower",
		"lt", "mapping", "ne", "none", "number", "odd", "sameas", "sequence", "string", "test", "true",
		"undefined", "upper", "==", "!=", "<", "<=", ">", ">="}
}

// plainTest is a test of the value alone that never fails.
func plainTest(fn func(v any) bool) *testDef {
	return &testDef{fn: func(_ *run, v any, _ []any) (bool, error) { return fn(v), nil }}
}

func compareTest(op compareOp) *testDef {
	return &testDef{params: params{"other"}, fn: func(r *run, v any, args []any) (bool, error) {
		return r.compareOp(op, v, args[0])
	}}
}

func testNamed(name string) *testDef {
	switch name {
	case "defined":
		return plainTest(func(v any) bool { _, undefined := v.(*Undefined); return !undefined })
	case "undefined":
		return plainTest(func(v any) bool { _, undefined := v.(*Undefined); return undefined })
	case "none":
		return plainTest(func(v any) bool { return v == nil })
	case "boolean":
		return plainTest(func(v any) bool { _, ok := v.(bool); return ok })
	case "true":
		return plainTest(func(v any) bool { return v == true })
	case "false":
		return plainTest(func(v any) bool { return v == false })
	case "integer":
		return plainTest(func(v any) bool { _, isBool := v.(bool); return isWhole(v) && !isBool })
	case "float":
		return plainTest(func(v any) bool { _, ok := v.(float64); return ok })
	case "number":
		return plainTest(isNumber)
	case "string":
		return plainTest(func(v any) bool { _, ok := text(v); return ok })
	case "mapping":
		return plainTest(isDict)
	case "sequence":
		return plainTest(isSequence)
	case "callable":
		return plainTest(isCallable)
	case "escaped":
		return plainTest(isMarkup)
	case "sameas":
		return &testDef{params: params{"other"}, fn: func(_ *run, v any, args []any) (bool, error) {
			return identical(v, args[0]), nil
		}}
	case "iterable":
		return &testDef{fn: testIterable}
	case "odd", "even", "divisibleby":
		return divisionTest(name)
	case "lower":
		return caseTest(unicode.IsUpper)
	case "upper":
		return caseTest(unicode.IsLower)
	case "filter":
		return nameTest(isFilter)
	case "test":
		return nameTest(func(s string) bool { return testNamed(s) != nil })
	case "in":
		return &testDef{params: params{"seq"}, fn: func(r *run, v any, args []any) (bool, error) {
			return r.contains(args[0], v)
		}}
	case "==", "eq", "equalto":
		return compareTest(opEq)
	case "!=", "ne":
		return compareTest(opNe)
	case ">", "gt", "greaterthan":
		return compareTest(opGt)
	case ">=", "ge":
		return compareTest(opGe)
	case "<", "lt", "lessthan":
		return compareTest(opLt)
	case "<=", "le":
		return compareTest(opLe)
	}
	return nil
}

func isSequence(v any) bool {
	if u, ok := v.(*Undefined); ok {
		return u.lenient
	}
	switch v.(type) {
	case dictView:
		return false
	}
	_, ok := lengthOf(v)
	return ok
}

func isCallable(v any) bool {
	switch v := v.(type) {
	case Func, *macroValue, *method, builtin, *joinerValue, *loopValue, Callable:
		return true
	case *Undefined:
		return true
	case *library:
		return false
	default:
		_ = v
	}
	return false
}

func testIterable(r *run, v any, _ []any) (bool, error) {
	if _, ok := v.(*loopValue); ok {
		return true, nil
	}
	_, err := r.iterate(v)
	if err != nil && isTypeFault(err) {
		return false, nil
	}
	return err == nil, err
}

func divisionTest(name string) *testDef {
	def := &testDef{}
	if name == "divisibleby" {
		def.params = params{"num"}
	}
	def.fn = func(r *run, v any, args []any) (bool, error) {
		by, want := any(int64(2)), any(int64(0))
		switch name {
		case "odd":
			want = int64(1)
		case "divisibleby":
			by = args[0]
		}
		if u, ok := v.(*Undefined); ok {
			return false, u.fault()
		}
		if u, ok := by.(*Undefined); ok {
			return false, u.fault()
		}
		if !isNumber(v) || !isNumber(by) {
			wrong := v
			if isNumber(v) {
				wrong = by
			}
			return false, typeError("the test '%s' takes a number, not %s", name, typeName(wrong))
		}
		rest, err := arithmetic(tokMod, v, by)
		if err != nil {
			return false, err
		}
		return r.equal(rest, want)
	}
	return def
}

// caseTest holds for text that has letters with case but none of the other case.
func caseTest(other func(rune) bool) *testDef {
	return &testDef{fn: func(r *run, v any, _ []any) (bool, error) {
		s, err := r.str(v)
		if err != nil {
			return false, err
		}
		return onlyCase(s, other), nil
	}}
}

func onlyCase(s string, other func(rune) bool) bool {
	return strings.IndexFunc(s, isCased) >= 0 &&
		strings.IndexFunc(s, func(r rune) bool { return other(r) || unicode.IsTitle(r) }) < 0
}

func nameTest(known func(string) bool) *testDef {
	return &testDef{fn: func(_ *run, v any, _ []any) (bool, error) {
		if u, ok := v.(*Undefined); ok {
			return false, u.fault()
		}
		s, ok := text(v)
		return ok && known(s), nil
	}}
}
