package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// layout says how one value is written: what Python's format specification and
// the conversions of % have in common.
type layout struct {
	fill  string // "" for a space
	align byte   // < > ^ or = (between sign and digits); 0 for the default
	sign  byte   // + or space; 0 for none
	alt   bool   // #
	width int64
	group byte  // , or _ between groups of digits; 0 for none
	prec  int64 // -1: not given
	kind  byte  // the letter of the conversion, 0 for none
}

// place fills text up to the width.
func (r *run) placeText(l layout, s string, align byte) (string, error) {
	if l.align != 0 {
		align = l.align
	}
	fill := l.fill
	if fill == "" {
		fill = " "
	}
	return r.pad(s, l.width, fill, func(missing int64) int64 {
		switch align {
		case '<':
			return 0
		case '^':
			return missing / 2
		}
		return missing
	})
}

// number writes a number of which digits is what stands before the point and
// rest what stands behind the digits.
func (r *run) number(l layout, negative bool, prefix, digits, rest string) (string, error) {
	sign := ""
	if negative {
		sign = "-"
	} else if l.sign != 0 {
		sign = string(l.sign)
	}
	if err := r.grow(l.width); err != nil {
		return "", err
	}
	size := 3
	if l.kind == 'b' || l.kind == 'o' || l.kind == 'x' || l.kind == 'X' {
		size = 4
	}
	inner := l.align == '='
	if l.group != 0 {
		room := 0
		if inner && l.fill == "0" {
			room = int(l.width) - len(sign) - len(prefix) - utf8.RuneCountInString(rest)
		}
		digits = grouped(digits, l.group, size, room)
	}
	if !inner {
		return r.placeText(l, sign+prefix+digits+rest, '>')
	}
	body := l
	body.align = '>'
	body.width -= int64(len(sign) + len(prefix))
	s, err := r.placeText(body, digits+rest, '>')
	return sign + prefix + s, err
}

// grouped puts sep between groups of digits, with zeros in front up to room.
func grouped(digits string, sep byte, size, room int) string {
	if room > len(digits) {
		n := len(digits)
		for n+(n-1)/size < room {
			n++
		}
		digits = strings.Repeat("0", n-len(digits)) + digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// formatWhole writes a whole number in the base of its kind.
func (r *run) formatWhole(l layout, n *big.Int) (string, error) {
	base, prefix := 10, ""
	switch l.kind {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(l.kind)
	}
	if !l.alt {
		prefix = ""
	}
	digits := ""
	if base == 10 {
		s, err := formatBig(n)
		if err != nil {
			return "", err
		}
		digits = strings.TrimPrefix(s, "-")
	} else {
		digits = new(big.Int).Abs(n).Text(base)
	}
	if l.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if l.prec > int64(len(digits)) {
		if err := r.grow(l.prec); err != nil {
			return "", err
		}
		digits = strings.Repeat("0", int(l.prec)-len(digits)) + digits
	}
	return r.number(l, n.Sign() < 0, prefix, digits, "")
}

// formatFloating writes a float by the kinds e, f, g, % and none.
func (r *run) formatFloating(l layout, f float64) (string, error) {
	prec := l.prec
	if prec > int64(r.budget.Output) {
		return "", r.size(r.budget.Output + 1)
	}
	if err := r.grow(max(prec, 0) + 400); err != nil {
		return "", err
	}
	if l.kind == '%' {
		f *= 100
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		word := "inf"
		if math.IsNaN(f) {
			word = "nan"
		}
		if l.kind >= 'A' && l.kind <= 'Z' {
			word = strings.ToUpper(word)
		}
		if l.kind == '%' {
			word += "%"
		}
		return r.number(l, math.Signbit(f) && !math.IsNaN(f), "", "", word)
	}
	s := floatDigits(l, math.Abs(f), int(prec))
	if l.kind == 'E' || l.kind == 'G' {
		s = strings.ToUpper(s)
	}
	if l.kind == '%' {
		s += "%"
	}
	end := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(s)
	}
	return r.number(l, math.Signbit(f), "", s[:end], s[end:])
}

// floatDigits writes a float that is not negative.
func floatDigits(l layout, f float64, prec int) string {
	switch l.kind {
	case 'e', 'E', 'f', 'F', '%':
		if prec < 0 {
			prec = 6
		}
		verb := byte('f')
		if l.kind == 'e' || l.kind == 'E' {
			verb = 'e'
		}
		s := strconv.FormatFloat(f, verb, prec, 64)
		if prec == 0 && l.alt {
			if i := strings.IndexByte(s, 'e'); i >= 0 {
				return s[:i] + "." + s[i:]
			}
			return s + "."
		}
		return s
	case 'g', 'G', 'n':
		if prec < 0 {
			prec = 6
		}
		return floatGeneral(f, prec, l.alt, false)
	}
	if prec < 0 {
		return formatFloat(f)
	}
	return floatGeneral(f, prec, l.alt, true)
}

// floatGeneral is the format g: the shorter of e and f with so many digits.
// point adds ".0" to what would look like a whole number.
func floatGeneral(f float64, prec int, keepZeros, point bool) string {
	prec = max(prec, 1)
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	at := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[at+1:])
	limit := prec
	if point {
		limit--
	}
	trim := func(s string) string {
		if keepZeros || !strings.Contains(s, ".") {
			return s
		}
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if exp < -4 || exp >= limit {
		m := trim(e[:at])
		if keepZeros && !strings.Contains(m, ".") {
			m += "."
		}
		return m + e[at:]
	}
	s := strconv.FormatFloat(f, 'f', max(prec-1-exp, 0), 64)
	if keepZeros && !strings.Contains(s, ".") {
		s += "."
	}
	s = trim(s)
	if point && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// percentFormat is text % value; escape makes the texts put in HTML-safe.
func (r *run) percentFormat(s string, value any, escape bool) (string, error) {
	pf := &percent{run: r, s: s, value: value, escape: escape}
	if t, ok := value.(Tuple); ok {
		pf.args = t
	} else {
		pf.args = Tuple{value}
	}
	if err := pf.all(); err != nil {
		return "", err
	}
	switch value.(type) {
	case *Dict, *List, rangeValue, *Undefined:
	default:
		if pf.used < len(pf.args) {
			return "", typeError("%d values are given to a format that takes %d", len(pf.args), pf.used)
		}
	}
	return pf.b.String(), nil
}

type percent struct {
	*run
	s      string
	i      int
	value  any
	args   Tuple
	used   int
	escape bool
	b      strings.Builder
}

func (f *percent) all() error {
	for {
		i := strings.IndexByte(f.s[f.i:], '%')
		if i < 0 {
			f.b.WriteString(f.s[f.i:])
			return f.grow(int64(f.b.Len()))
		}
		f.b.WriteString(f.s[f.i : f.i+i])
		f.i += i + 1
		if err := f.one(); err != nil {
			return err
		}
		if err := f.size(f.b.Len()); err != nil {
			return err
		}
	}
}

func (f *percent) peek() byte {
	if f.i < len(f.s) {
		return f.s[f.i]
	}
	return 0
}

func (f *percent) next() (any, error) {
	if f.used >= len(f.args) {
		return nil, typeError("the format needs more values than the %d that are given", len(f.args))
	}
	f.used++
	v := elem(f.args[f.used-1])
	if u, ok := v.(*Undefined); ok && !u.lenient {
		return nil, u.fault()
	}
	return v, nil
}

// number reads digits, or * for the next value.
func (f *percent) count() (int64, error) {
	if f.peek() == '*' {
		f.i++
		v, err := f.next()
		if err != nil {
			return 0, err
		}
		return wantInt(v, "the value for * in a format")
	}
	start := f.i
	for isDecimal(f.peek()) {
		f.i++
	}
	if start == f.i {
		return 0, nil
	}
	n, err := strconv.ParseInt(f.s[start:f.i], 10, 64)
	if err != nil {
		return 0, f.size(-1)
	}
	return n, nil
}

// one writes the conversion behind a %.
func (f *percent) one() error {
	var key any
	hasKey := false
	if f.peek() == '(' {
		k, err := f.key()
		if err != nil {
			return err
		}
		key, hasKey = k, true
	}
	l := layout{prec: -1}
	zero := false
	for ; f.i < len(f.s) && strings.IndexByte("#0- +", f.s[f.i]) >= 0; f.i++ {
		switch f.s[f.i] {
		case '#':
			l.alt = true
		case '0':
			zero = true
		case '-':
			l.align = '<'
		case '+':
			l.sign = '+'
		case ' ':
			if l.sign == 0 {
				l.sign = ' '
			}
		}
	}
	var err error
	if l.width, err = f.count(); err != nil {
		return err
	}
	if l.width < 0 {
		l.align, l.width = '<', -l.width
	}
	if f.peek() == '.' {
		f.i++
		if l.prec, err = f.count(); err != nil {
			return err
		}
		l.prec = max(l.prec, 0)
	}
	if c := f.peek(); c == 'h' || c == 'l' || c == 'L' {
		f.i++
	}
	if f.i >= len(f.s) {
		return valueError("the format ends after a %%")
	}
	l.kind = f.s[f.i]
	f.i++
	if l.kind == '%' {
		f.b.WriteByte('%')
		return nil
	}
	v := key
	if !hasKey {
		if v, err = f.next(); err != nil {
			return err
		}
	}
	if zero && l.align == 0 && strings.IndexByte("srac", l.kind) < 0 {
		l.fill, l.align = "0", '='
	}
	return f.convert(l, v)
}

func (f *percent) key() (any, error) {
	depth, start := 0, f.i+1
	for ; f.i < len(f.s); f.i++ {
		switch f.s[f.i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if f.i >= len(f.s) {
		return nil, valueError("the name in the format is never closed: it needs a )")
	}
	name := f.s[start:f.i]
	f.i++
	d, ok := f.value.(*Dict)
	if !ok {
		return nil, typeError("the format has names, so it needs a dict and not %s", typeName(f.value))
	}
	v, ok := d.Get(name)
	if !ok {
		return nil, failHint(diag.TemplateValue, keyHint(d, name), "the dict for the format has no key '%s'", name)
	}
	f.used = len(f.args)
	return v, nil
}

func (f *percent) convert(l layout, v any) error {
	var s string
	var err error
	switch l.kind {
	case 's', 'r', 'a':
		s, err = f.textOf(l.kind, v)
		if f.escape && !(isMarkup(v) && l.kind == 's') {
			s = escapeHTML(s)
		}
		if err == nil {
			s, err = f.placeText(l, cutText(s, l.prec), '>')
		}
	case 'c':
		if s, err = character(v); err == nil {
			s, err = f.placeText(l, s, '>')
		}
	case 'd', 'i', 'u', 'x', 'X', 'o':
		s, err = f.whole(l, v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !isNumber(v) {
			return typeError("%%%c needs a number, not %s", l.kind, typeName(v))
		}
		var n float64
		if n, err = float(v); err == nil {
			s, err = f.formatFloating(l, n)
		}
	default:
		return valueError("a format has no conversion '%%%c'", l.kind)
	}
	f.b.WriteString(s)
	return err
}

func (f *percent) whole(l layout, v any) (string, error) {
	n, ok := whole(v)
	if x, isFloat := v.(float64); isFloat && strings.IndexByte("diu", l.kind) >= 0 {
		if n, ok = floatToBig(math.Trunc(x)); !ok {
			return "", valueError("%s cannot become a whole number", formatFloat(x))
		}
	}
	if !ok {
		return "", failHint(diag.TemplateType, "%s takes any value", "%%%c needs a whole number, not %s", l.kind, typeName(v))
	}
	return f.formatWhole(l, n)
}

// textOf converts a value to text: s as str, r as repr, a as repr in ASCII.
func (r *run) textOf(kind byte, v any) (string, error) {
	if kind == 's' {
		return r.str(v)
	}
	s, err := r.reprText(v)
	if err != nil || kind == 'r' || isASCII(s) {
		return s, err
	}
	return asciiRepr(s), nil
}

func asciiRepr(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c < utf8.RuneSelf:
			b.WriteRune(c)
		case c <= 0xff:
			b.WriteString(`\x` + strconv.FormatInt(int64(c), 16))
		case c <= 0xffff:
			b.WriteString(`\u` + pad0(strconv.FormatInt(int64(c), 16), 4))
		default:
			b.WriteString(`\U` + pad0(strconv.FormatInt(int64(c), 16), 8))
		}
	}
	return b.String()
}

func pad0(s string, n int) string { return strings.Repeat("0", max(n-len(s), 0)) + s }

func cutText(s string, prec int64) string {
	if prec < 0 || prec >= int64(len(s)) {
		return s
	}
	n := int64(0)
	for i := range s {
		if n == prec {
			return s[:i]
		}
		n++
	}
	return s
}

func character(v any) (string, error) {
	if s, ok := text(v); ok && utf8.RuneCountInString(s) == 1 {
		return s, nil
	}
	if n, ok := small(v); ok {
		if n < 0 || n > utf8.MaxRune {
			return "", valueError("%d is no character", n)
		}
		return string(rune(n)), nil
	}
	return "", typeError("%%c needs one character or its number, not %s", typeName(v))
}
