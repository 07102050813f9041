package ingest

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

// number is a JSON number as it is written. Its value is mant * 10^exp, exact
// unless big is set; then only lit holds it all.
type number struct {
	lit  []byte
	neg  bool
	big  bool // more than 19 digits, or an exponent beyond reason
	int  bool // written without fraction and exponent
	mant uint64
	exp  int
}

// maxExponent is where an exponent is only read for its sign: beyond, every
// type over- or underflows.
const maxExponent = 100_000

// number reads a number whose first byte is at p.i. It holds until the next call.
func (p *parser) number() (*number, bool) {
	b, i := p.b, p.i
	n := &p.num
	*n = number{int: true}
	start, mant := i, uint64(0)
	if i < len(b) && b[i] == '-' {
		n.neg = true
		i++
	}
	if i >= len(b) || b[i] < '0' || b[i] > '9' {
		p.i = i
		return n, p.unexpected("a digit")
	}
	digits := 0
	if b[i] == '0' {
		i++
		if i < len(b) && b[i] >= '0' && b[i] <= '9' {
			p.i = i
			return n, p.fail(reasonSyntax, "a number starts with 0")
		}
	} else {
		first := i
		mant, i = digitsAt(b, i, mant)
		digits = i - first
	}
	if i < len(b) && b[i] == '.' {
		n.int = false
		i++
		frac := i
		if digits == 0 { // zeros that lead count for nothing
			for i < len(b) && b[i] == '0' {
				i++
			}
		}
		first := i
		mant, i = digitsAt(b, i, mant)
		digits += i - first
		if i == frac {
			p.i = i
			return n, p.unexpected("a digit after the point")
		}
		n.exp = frac - i
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		n.int = false
		e, next, ok := exponent(b, i+1)
		if !ok {
			p.i = next
			return n, p.unexpected("a digit of the exponent")
		}
		n.exp += e
		i = next
	}
	// 19 digits always fit into 64 bits.
	n.big = digits > 19
	n.mant = mant
	n.lit = b[start:i]
	p.i = i
	return n, true
}

// digitsAt reads decimal digits on from mant, eight at a time, and gives where they
// end. mant means nothing beyond 19 digits.
func digitsAt(b []byte, i int, mant uint64) (uint64, int) {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:]) ^ lowBits*'0'
		// In a byte above 9 the sum sets the high bit; what it carries goes to later
		// bytes only.
		other := (x + lowBits*(0x80-10) | x) & highBits
		n := bits.TrailingZeros64(other) >> 3
		if n == 0 {
			return mant, i
		}
		x <<= (8 - n) * 8 // as if zeros led
		x = x*10 + x>>8
		x = (x&0xff000000ff)*(100+1_000_000<<32) + (x>>16&0xff000000ff)*(1+10_000<<32)
		mant = mant*pow10u[n] + x>>32
		if i += n; n < 8 {
			return mant, i
		}
	}
	for i < len(b) && b[i]-'0' <= 9 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	return mant, i
}

func exponent(b []byte, i int) (exp, next int, ok bool) {
	neg := false
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		neg = b[i] == '-'
		i++
	}
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		if exp < maxExponent {
			exp = exp*10 + int(b[i]-'0')
		}
		i++
	}
	if neg {
		exp = -exp
	}
	return exp, i, i > start
}

var pow10f = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

var pow10u = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// double gives the nearest double; exact is false where an integer literal had
// to be rounded, over where the value is beyond all doubles.
func (n *number) double() (f float64, exact, over bool) {
	switch {
	case !n.big && n.mant < 1<<53 && n.exp >= -22 && n.exp <= 22:
		// Both operands are exact, so one rounding gives the nearest double.
		f = float64(n.mant)
		if n.exp < 0 {
			f /= pow10f[-n.exp]
		} else {
			f *= pow10f[n.exp]
		}
		if n.neg {
			f = -f
		}
		return f, !n.int || n.exp == 0, false
	default:
		f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(n.lit), len(n.lit)), 64)
		if err != nil {
			return 0, false, true
		}
		return f, !n.int || n.exactInDouble(f), false
	}
}

// exactInDouble tells whether an integer literal is the double it was read as.
func (n *number) exactInDouble(f float64) bool {
	hi, lo, ok := n.unscaled(0)
	if !ok {
		return false
	}
	f = math.Abs(f)
	fhi := uint64(math.Floor(f / (1 << 64)))
	flo := f - float64(fhi)*(1<<64)
	return fhi == hi && uint64(flo) == lo
}

// single gives the nearest float32 of a literal.
func (n *number) single() (f float32, exact, over bool) {
	d, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(n.lit), len(n.lit)), 32)
	if err != nil {
		return 0, false, true
	}
	return float32(d), !n.int || n.exactInDouble(d), false
}

// unscaled gives |value| * 10^scale as 128 bits; ok is false where that is no
// integer below 10^38 or so.
func (n *number) unscaled(scale int) (hi, lo uint64, ok bool) {
	e := n.exp + scale
	if !n.big {
		if n.mant == 0 {
			return 0, 0, true
		}
		if e >= 0 && e <= 19 {
			hi, lo = bits.Mul64(n.mant, pow10u[e])
			return hi, lo, hi < 1<<63
		}
		m := n.mant
		for ; e < 0 && m%10 == 0; e++ {
			m /= 10
		}
		if e == 0 {
			return 0, m, true
		}
		if e < 0 || e > 38 {
			return 0, 0, false
		}
		return scaleUp(0, m, e)
	}
	return n.bigUnscaled(scale)
}

// bigUnscaled goes over the digits themselves.
func (n *number) bigUnscaled(scale int) (hi, lo uint64, ok bool) {
	var digits [64]byte
	count, zeros := 0, 0 // significant digits so far; zeros that may be trailing
	for _, c := range n.lit {
		if c|0x20 == 'e' {
			break
		}
		if c < '0' || c > '9' {
			continue
		}
		if c == '0' {
			if count > 0 {
				zeros++
			}
			continue
		}
		for ; zeros > 0 && count < len(digits)-1; zeros-- {
			digits[count] = 0
			count++
		}
		if zeros > 0 || count >= len(digits)-1 {
			return 0, 0, false
		}
		digits[count] = c - '0'
		count++
	}
	e := n.exp + scale + zeros
	if count == 0 {
		return 0, 0, true
	}
	if e < 0 || count+e > 39 {
		return 0, 0, false
	}
	for _, d := range digits[:count] {
		if hi, lo, ok = mulAdd(hi, lo, 10, uint64(d)); !ok {
			return 0, 0, false
		}
	}
	return scaleUp(hi, lo, e)
}

func scaleUp(hi, lo uint64, e int) (uint64, uint64, bool) {
	ok := true
	for ; e > 0; e-- {
		if hi, lo, ok = mulAdd(hi, lo, 10, 0); !ok {
			return 0, 0, false
		}
	}
	return hi, lo, true
}

func mulAdd(hi, lo, m, a uint64) (uint64, uint64, bool) {
	over, h := bits.Mul64(hi, m)
	carry, l := bits.Mul64(lo, m)
	l, c := bits.Add64(l, a, 0)
	carry += c
	h, c = bits.Add64(h, carry, 0)
	return h, l, over == 0 && c == 0 && h < 1<<63
}

// pow10Limit gives 10^prec as 128 bits.
func pow10Limit(prec int) (hi, lo uint64) {
	hi, lo, _ = scaleUp(0, 1, prec)
	return hi, lo
}

// fitsPrecision tells whether hi:lo < 10^prec.
func fitsPrecision(hi, lo uint64, prec int) bool {
	if prec < len(pow10u) {
		return hi == 0 && lo < pow10u[prec]
	}
	lh, ll := pow10Limit(prec)
	return hi < lh || (hi == lh && lo < ll)
}

// appendCanonicalNumber writes a form of the number that is one for one value:
// sign, digits without outer zeros, exponent. -0 keeps its sign.
func appendCanonicalNumber(dst, lit []byte) []byte {
	exp, point, i := 0, false, 0
	if len(lit) > 0 && lit[0] == '-' {
		dst = append(dst, '-')
		i++
	}
	mark := len(dst)
	for ; i < len(lit); i++ {
		c := lit[i]
		if c == '.' {
			point = true
			continue
		}
		if c|0x20 == 'e' {
			e, _, _ := exponent(lit, i+1)
			exp += e
			break
		}
		if point {
			exp--
		}
		if c != '0' || len(dst) > mark {
			dst = append(dst, c)
		}
	}
	for len(dst) > mark && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
		exp++
	}
	if len(dst) == mark {
		return append(dst, '0')
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(exp), 10)
}
