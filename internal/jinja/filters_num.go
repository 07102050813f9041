package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"rbt/internal/diag"
)

// digitsOnly reads a part of an attribute path that is a position.
func digitsOnly(s string) (int64, bool) {
	if s == "" || strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) >= 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// parseInt is Python's int() of text; base 0 takes the base from the prefix.
func parseInt(s string, base int64) (any, bool) {
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	prefixes := map[byte]int64{'x': 16, 'o': 8, 'b': 2}
	if len(s) > 1 && s[0] == '0' {
		if b := prefixes[s[1]|0x20]; b != 0 && (base == b || base == 0) {
			base, s = b, strings.TrimPrefix(s[2:], "_")
		}
	}
	if base == 0 {
		if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0_") != "" {
			return nil, false
		}
		base = 10
	}
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || len(s) > maxDigits {
		return nil, false
	}
	n, ok := new(big.Int).SetString(sign+strings.ReplaceAll(asciiDigits(s), "_", ""), int(base))
	if !ok || s[0] == '-' || s[0] == '+' {
		return nil, false
	}
	return normalBig(n), true
}

// asciiDigits writes the decimal digits of other scripts as 0 to 9.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if d, ok := decimalDigit(r); ok {
			return '0' + rune(d)
		}
		return r
	}, s)
}

// parseFloat is Python's float() of text.
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity":
		if strings.Count(s, "+")+strings.Count(s, "-") > 1 {
			return 0, false
		}
		return math.Inf(1 - 2*strings.Count(s, "-")), true
	case "nan":
		return math.NaN(), strings.Count(s, "+")+strings.Count(s, "-") < 2
	}
	if strings.ContainsAny(s, "xXpPiInN") {
		return 0, false
	}
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i+1 == len(s) || !isDecimal(s[i-1]) || !isDecimal(s[i+1])) {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func filterInt(c *filterCall) (any, error) {
	base, err := c.int(1, 10, "base")
	if err != nil {
		return nil, err
	}
	otherwise := given(c.args[0], int64(0))
	var f float64
	switch v := c.in.(type) {
	case *Undefined:
		return nil, v.fault()
	case float64:
		f = v
		if math.IsInf(f, 0) {
			return nil, valueError("an infinite float cannot become a whole number")
		}
	default:
		if isWhole(v) {
			return arithmetic(tokAdd, v, int64(0))
		}
		s, ok := text(v)
		if !ok {
			return otherwise, nil
		}
		if base < 0 || base == 1 || base > 36 {
			break
		}
		if n, ok := parseInt(s, base); ok {
			return n, nil
		}
	}
	if s, ok := text(c.in); ok {
		if f, ok = parseFloat(s); !ok {
			return otherwise, nil
		}
	}
	if n, ok := floatToBig(math.Trunc(f)); ok {
		return normalBig(n), nil
	}
	return otherwise, nil
}

func filterFloat(c *filterCall) (any, error) {
	if u, ok := c.in.(*Undefined); ok {
		return nil, u.fault()
	}
	if isNumber(c.in) {
		return float(c.in)
	}
	if s, ok := text(c.in); ok {
		if f, ok := parseFloat(s); ok {
			return f, nil
		}
	}
	return given(c.args[0], 0.0), nil
}

func filterAbs(c *filterCall) (any, error) {
	switch v := c.in.(type) {
	case float64:
		return math.Abs(v), nil
	case *Undefined:
		return nil, v.fault()
	}
	n, ok := whole(c.in)
	if !ok {
		return nil, typeError("the filter 'abs' takes a number, not %s", typeName(c.in))
	}
	return normalBig(new(big.Int).Abs(n)), nil
}

func filterRound(c *filterCall) (any, error) {
	digits, err := c.int(0, 0, "precision")
	if err != nil {
		return nil, err
	}
	how, err := wantText(given(c.args[1], "common"), "method")
	if err != nil {
		return nil, err
	}
	if how != "common" && how != "ceil" && how != "floor" {
		return nil, valueError("the method of the filter 'round' is 'common', 'ceil' or 'floor', not '%s'", how)
	}
	if u, ok := c.in.(*Undefined); ok {
		return nil, u.fault()
	}
	if !isNumber(c.in) {
		return nil, failHint(diag.TemplateType, "make it a number first: value | float",
			"the filter 'round' takes a number, not %s", typeName(c.in))
	}
	if how != "common" {
		return roundTo(c.in, digits, how)
	}
	if f, ok := c.in.(float64); ok {
		return roundFloat(f, digits), nil
	}
	n, _ := whole(c.in)
	if digits >= 0 {
		return normalBig(n), nil
	}
	if digits < -maxDigits {
		return int64(0), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	q := roundRat(new(big.Rat).SetFrac(n, unit))
	return normalBig(q.Mul(q, unit)), nil
}

// roundTo is floor or ceil at a decimal place, by the computation of Jinja2.
func roundTo(v any, digits int64, how string) (any, error) {
	unit, err := arithmetic(tokPow, int64(10), digits)
	if err != nil {
		return nil, err
	}
	scaled, err := arithmetic(tokMul, v, unit)
	if err != nil {
		return nil, err
	}
	if f, ok := scaled.(float64); ok {
		if how == "ceil" {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		n, ok := floatToBig(f)
		if !ok {
			return nil, valueError("%s cannot be rounded", formatFloat(f))
		}
		scaled = normalBig(n)
	}
	return arithmetic(tokDiv, scaled, unit)
}

func filterFileSize(c *filterCall) (any, error) {
	binary, err := c.flag(0, false)
	if err != nil {
		return nil, err
	}
	in := c.in
	if s, ok := text(in); ok {
		f, ok := parseFloat(s)
		if !ok {
			return nil, valueError("%s is not a number", reprString(s))
		}
		in = f
	}
	if u, ok := in.(*Undefined); ok {
		return nil, u.fault()
	}
	size, err := float(in)
	if err != nil {
		return nil, err
	}
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if binary {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case size == 1:
		return "1 Byte", nil
	case size < base:
		n, ok := floatToBig(math.Trunc(size))
		if !ok {
			return nil, valueError("%s is not a size", formatFloat(size))
		}
		return n.String() + " Bytes", nil
	}
	unit := base
	for i, name := range units {
		unit *= base
		if size < unit || i == len(units)-1 {
			return fmt.Sprintf("%s %s", strconv.FormatFloat(base*size/unit, 'f', 1, 64), name), nil
		}
	}
	return nil, nil
}

// filterToJSON writes JSON as Python does: keys sorted, other scripts and the
// characters of HTML escaped.
func filterToJSON(c *filterCall) (any, error) {
	w := &jsonWriter{run: c.run}
	switch v := given(c.args[0], nil).(type) {
	case nil:
	default:
		if s, ok := text(v); ok {
			w.indent, w.pretty = s, true
			break
		}
		n, err := wantInt(v, "indent")
		if err != nil {
			return nil, err
		}
		if n > int64(c.budget.Output) {
			return nil, c.size(c.budget.Output + 1)
		}
		w.indent, w.pretty = strings.Repeat(" ", int(max(n, 0))), true
	}
	if err := w.value(c.in, 0); err != nil {
		return nil, err
	}
	return markup(strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`).Replace(w.b.String())), nil
}

type jsonWriter struct {
	*run
	b      strings.Builder
	indent string
	pretty bool
	open   []any
}

func (w *jsonWriter) newline(depth int) error {
	if !w.pretty {
		return nil
	}
	if err := w.size(w.b.Len() + depth*len(w.indent)); err != nil {
		return err
	}
	w.b.WriteByte('\n')
	for range depth {
		w.b.WriteString(w.indent)
	}
	return nil
}

func (w *jsonWriter) value(v any, depth int) error {
	if err := w.step(4); err != nil {
		return err
	}
	if err := w.size(w.b.Len()); err != nil {
		return err
	}
	if depth > maxDepth {
		return tooDeep()
	}
	if s, ok := text(v); ok {
		w.string(s)
		return nil
	}
	switch v := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(v))
	case float64:
		w.b.WriteString(jsonFloat(v))
	case *List:
		return w.list(v, v.items, depth)
	case Tuple:
		return w.list(nil, v, depth)
	case *groupValue:
		return w.list(nil, v.tuple(), depth)
	case *Dict:
		return w.dict(v, depth)
	case *Undefined:
		return v.fault()
	default:
		if !isWhole(v) {
			return typeError("%s cannot be written as JSON", typeName(v))
		}
		s, err := w.str(v)
		if err != nil {
			return err
		}
		w.b.WriteString(s)
	}
	return nil
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}

// string writes text; all but ASCII becomes \u.
func (w *jsonWriter) string(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r == '\n':
			w.b.WriteString(`\n`)
		case r == '\r':
			w.b.WriteString(`\r`)
		case r == '\t':
			w.b.WriteString(`\t`)
		case r == '\b':
			w.b.WriteString(`\b`)
		case r == '\f':
			w.b.WriteString(`\f`)
		case r >= ' ' && r <= '~':
			w.b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		}
	}
	w.b.WriteByte('"')
}

func (w *jsonWriter) enter(v any) error {
	for _, o := range w.open {
		if identical(o, v) {
			return valueError("a value that holds itself cannot be written as JSON")
		}
	}
	w.open = append(w.open, v)
	return nil
}

func (w *jsonWriter) leave() { w.open = w.open[:len(w.open)-1] }

// between is what separates items.
func (w *jsonWriter) between() string {
	if w.pretty {
		return ","
	}
	return ", "
}

func (w *jsonWriter) list(self any, list []any, depth int) error {
	if len(list) == 0 {
		w.b.WriteString("[]")
		return nil
	}
	if self != nil {
		if err := w.enter(self); err != nil {
			return err
		}
		defer w.leave()
	}
	w.b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			w.b.WriteString(w.between())
		}
		if err := w.newline(depth + 1); err != nil {
			return err
		}
		if err := w.value(elem(v), depth+1); err != nil {
			return err
		}
	}
	if err := w.newline(depth); err != nil {
		return err
	}
	w.b.WriteByte(']')
	return nil
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.b.WriteString("{}")
		return nil
	}
	if err := w.enter(d); err != nil {
		return err
	}
	defer w.leave()
	keys := d.Keys()
	var failed error
	slices.SortStableFunc(keys, func(a, b any) int {
		n, err := w.compare(a, b, opLt, 0)
		if err != nil && failed == nil {
			failed = err
		}
		return n
	})
	if failed != nil {
		return failed
	}
	w.b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			w.b.WriteString(w.between())
		}
		if err := w.newline(depth + 1); err != nil {
			return err
		}
		name, err := w.key(k)
		if err != nil {
			return err
		}
		w.string(name)
		w.b.WriteString(": ")
		v, _ := d.Get(k)
		if err := w.value(v, depth+1); err != nil {
			return err
		}
	}
	if err := w.newline(depth); err != nil {
		return err
	}
	w.b.WriteByte('}')
	return nil
}

func (w *jsonWriter) key(k any) (string, error) {
	if s, ok := text(k); ok {
		return s, nil
	}
	switch k := k.(type) {
	case nil:
		return "null", nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		return jsonFloat(k), nil
	}
	if isWhole(k) {
		return w.str(k)
	}
	return "", typeError("%s cannot be a key in JSON", typeName(k))
}
