package jinja

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"rbt/internal/diag"
)

// maxBits bounds whole numbers, so that no power can eat memory or time.
const maxBits = 1 << 18

func normalBig(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func toInt64(v any) int64 {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case int:
		return int64(v)
	case int64:
		return v
	}
	return 0
}

// small gives a whole number that fits 64 bits; booleans count as 0 and 1.
func small(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool, int:
		return toInt64(v), true
	}
	return 0, false
}

// whole gives any whole number.
func whole(v any) (*big.Int, bool) {
	if n, ok := v.(*big.Int); ok {
		return n, true
	}
	if n, ok := small(v); ok {
		return big.NewInt(n), true
	}
	return nil, false
}

func isWhole(v any) bool {
	switch v.(type) {
	case int64, bool, int, *big.Int:
		return true
	}
	return false
}

func isNumber(v any) bool {
	_, ok := v.(float64)
	return ok || isWhole(v)
}

// float gives any number as a float; a whole number too large is an error.
func float(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			return 0, valueError("this whole number is too large to become a float")
		}
		return f, nil
	}
	n, ok := small(v)
	if !ok {
		return 0, typeError("%s is not a number", typeName(v))
	}
	return float64(n), nil
}

func floatToBig(f float64) (*big.Int, bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) || f != math.Trunc(f) {
		return nil, false
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n, true
}

// arithmetic computes l op r for two numbers.
func arithmetic(op tokenKind, l, r any) (any, error) {
	a, aok := small(l)
	b, bok := small(r)
	if aok && bok {
		if v, ok, err := smallArithmetic(op, a, b); ok || err != nil {
			return v, err
		}
	}
	if isWhole(l) && isWhole(r) {
		x, _ := whole(l)
		y, _ := whole(r)
		return bigArithmetic(op, x, y)
	}
	x, err := float(l)
	if err != nil {
		return nil, err
	}
	y, err := float(r)
	if err != nil {
		return nil, err
	}
	return floatArithmetic(op, x, y)
}

// smallArithmetic reports false where the result may not fit.
func smallArithmetic(op tokenKind, a, b int64) (any, bool, error) {
	switch op {
	case tokAdd:
		c := a + b
		return c, (c > a) == (b > 0), nil
	case tokSub:
		c := a - b
		return c, (c < a) == (b > 0), nil
	case tokMul:
		hi, lo := bits.Mul64(uint64(abs64(a)), uint64(abs64(b)))
		if hi != 0 || lo > math.MaxInt64 || a == math.MinInt64 || b == math.MinInt64 {
			return nil, false, nil
		}
		return a * b, true, nil
	case tokDiv:
		if b == 0 {
			return nil, false, divisionByZero()
		}
		if abs64(a) < 1<<53 && abs64(b) < 1<<53 && a != math.MinInt64 && b != math.MinInt64 {
			return float64(a) / float64(b), true, nil
		}
	case tokFloorDiv, tokMod:
		if b == 0 {
			return nil, false, divisionByZero()
		}
		if b == -1 {
			return nil, false, nil
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == tokMod {
			return m, true, nil
		}
		return q, true, nil
	}
	return nil, false, nil
}

func abs64(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

func divisionByZero() error { return valueError("division by zero") }

func tooLarge() error {
	return fail(diag.TemplateBudget, "a whole number would have more than %d bits", maxBits)
}

func bigArithmetic(op tokenKind, x, y *big.Int) (any, error) {
	switch op {
	case tokAdd:
		return normalBig(new(big.Int).Add(x, y)), nil
	case tokSub:
		return normalBig(new(big.Int).Sub(x, y)), nil
	case tokMul:
		if x.BitLen()+y.BitLen() > maxBits {
			return nil, tooLarge()
		}
		return normalBig(new(big.Int).Mul(x, y)), nil
	case tokPow:
		return bigPower(x, y)
	}
	if y.Sign() == 0 {
		return nil, divisionByZero()
	}
	if op == tokDiv {
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if math.IsInf(f, 0) {
			return nil, valueError("the result of this division is too large for a float")
		}
		return f, nil
	}
	q, m := new(big.Int).QuoRem(x, y, new(big.Int))
	if m.Sign() != 0 && m.Sign() != y.Sign() {
		q.Sub(q, big.NewInt(1))
		m.Add(m, y)
	}
	if op == tokMod {
		return normalBig(m), nil
	}
	return normalBig(q), nil
}

func bigPower(x, y *big.Int) (any, error) {
	if y.Sign() < 0 {
		a, err := float(normalBig(x))
		if err != nil {
			return nil, err
		}
		b, err := float(normalBig(y))
		if err != nil {
			return nil, err
		}
		return floatArithmetic(tokPow, a, b)
	}
	if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxBits || y.Int64()*int64(x.BitLen()-1) > maxBits) {
		return nil, tooLarge()
	}
	if x.BitLen() <= 1 {
		// 0, 1 and -1: only whether the exponent is 0 or odd matters.
		y = new(big.Int).SetInt64(int64(y.Sign()) * (2 - int64(y.Bit(0))))
	}
	return normalBig(new(big.Int).Exp(x, y, nil)), nil
}

func floatArithmetic(op tokenKind, x, y float64) (any, error) {
	switch op {
	case tokAdd:
		return x + y, nil
	case tokSub:
		return x - y, nil
	case tokMul:
		return x * y, nil
	case tokPow:
		return floatPower(x, y)
	}
	if y == 0 {
		return nil, divisionByZero()
	}
	if op == tokDiv {
		return x / y, nil
	}
	mod := math.Mod(x, y)
	div := (x - mod) / y
	if mod != 0 {
		if (y < 0) != (mod < 0) {
			mod += y
			div--
		}
	} else {
		mod = math.Copysign(0, y)
	}
	if op == tokMod {
		return mod, nil
	}
	if div == 0 {
		return math.Copysign(0, x/y), nil
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor, nil
}

func floatPower(x, y float64) (any, error) {
	if x == 0 && y < 0 {
		return nil, valueError("0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(y, 0) && !math.IsInf(x, 0) {
		return nil, fail(diag.TemplateUnsupported, "a negative number to a broken power is a complex number, which templates do not have")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, valueError("the result of ** is too large for a float")
	}
	return f, nil
}

// formatFloat is Python's repr of a float: the shortest text that reads back.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	e := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return e
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// formatBig writes a large whole number; like Python, not one of more than
// maxDigits digits.
func formatBig(n *big.Int) (string, error) {
	text := ""
	// A digit is worth more than three bits.
	if n.BitLen() <= maxDigits*4 {
		text = n.String()
	}
	if text == "" || len(strings.TrimPrefix(text, "-")) > maxDigits {
		return "", valueError("a whole number of more than %d digits cannot become text", maxDigits)
	}
	return text, nil
}

// roundFloat rounds half to even on the exact value, as Python's round does.
func roundFloat(f float64, digits int64) float64 {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) || digits > 330:
		return f
	case digits < -310:
		return math.Copysign(0, f)
	case digits >= 0:
		r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
		return r
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	n := roundRat(exact.Quo(exact, new(big.Rat).SetInt(unit)))
	r, _ := new(big.Float).SetInt(n.Mul(n, unit)).Float64()
	if r == 0 {
		return math.Copysign(0, f)
	}
	return r
}

// roundRat rounds half to even.
func roundRat(r *big.Rat) *big.Int {
	two := big.NewInt(2)
	n := new(big.Int).Mul(r.Num(), two)
	n.Add(n, r.Denom())
	d := new(big.Int).Mul(r.Denom(), two)
	q, m := new(big.Int).DivMod(n, d, new(big.Int))
	if m.Sign() == 0 && q.Bit(0) == 1 {
		q.Sub(q, big.NewInt(1))
	}
	return q
}
