package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
)

// brace is text.format(…).
type brace struct {
	*run
	args *argList
	auto int // the next value of {}; -1 once {0} was used
	// escape makes the texts put in HTML-safe.
	escape bool
}

// formatText is str.format.
func (r *run) formatText(s string, a *argList, escape bool) (string, error) {
	f := &brace{run: r, args: a, escape: escape}
	out, err := f.expand(s, 2)
	if err != nil {
		return "", err
	}
	return out, r.grow(int64(len(out)))
}

// expand replaces the fields of s; depth bounds fields inside of field
// specifications.
func (f *brace) expand(s string, depth int) (string, error) {
	if depth == 0 {
		return "", valueError("the fields of a format stand too deep in each other")
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c := s[i]
		if c != '{' && c != '}' {
			n := strings.IndexAny(s[i:], "{}")
			if n < 0 {
				n = len(s) - i
			}
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		if i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			i += 2
			continue
		}
		if c == '}' {
			return "", valueError("a single '}' in a format: write }} for the character")
		}
		end := fieldEnd(s, i)
		if end < 0 {
			return "", valueError("a '{' in a format is never closed: write {{ for the character")
		}
		out, err := f.field(s[i+1:end], depth)
		if err != nil {
			return "", err
		}
		b.WriteString(out)
		if err := f.size(b.Len()); err != nil {
			return "", err
		}
		i = end + 1
	}
	return b.String(), nil
}

// fieldEnd gives the offset of the } that closes the { at i.
func fieldEnd(s string, i int) int {
	depth, inIndex := 0, false
	for ; i < len(s); i++ {
		switch s[i] {
		case '[':
			inIndex = true
		case ']':
			inIndex = false
		case '{':
			if !inIndex {
				depth++
			}
		case '}':
			if inIndex {
				continue
			}
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// field writes one field: name, conversion and specification.
func (f *brace) field(s string, depth int) (string, error) {
	name, spec := s, ""
	conversion := byte(0)
	end := 0
	for inIndex := false; end < len(s); end++ {
		c := s[end]
		if c == '[' {
			inIndex = true
		} else if c == ']' {
			inIndex = false
		} else if !inIndex && (c == ':' || c == '!') {
			break
		}
	}
	if end < len(s) {
		name = s[:end]
		rest := s[end:]
		if rest[0] == '!' {
			if len(rest) < 2 || strings.IndexByte("rsa", rest[1]) < 0 || len(rest) > 2 && rest[2] != ':' {
				return "", valueError("the conversion behind ! in a format is r, s or a")
			}
			conversion, rest = rest[1], rest[2:]
		}
		spec = strings.TrimPrefix(rest, ":")
	}
	v, err := f.value(name)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(spec, "{}") {
		if spec, err = f.expand(spec, depth-1); err != nil {
			return "", err
		}
	}
	if conversion != 0 {
		if v, err = f.textOf(conversion, v); err != nil {
			return "", err
		}
	}
	out, err := f.formatValue(v, spec)
	if f.escape && !isMarkup(v) {
		out = escapeHTML(out)
	}
	return out, err
}

// value finds what a field names: a position or a name, then attributes and
// items of it.
func (f *brace) value(name string) (any, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v, err := f.argument(name[:end])
	if err != nil {
		return nil, err
	}
	rest := name[end:]
	for rest != "" {
		var next any
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[")
			if n < 0 {
				n = len(rest) - 1
			}
			attr := rest[1 : n+1]
			found, ok, err := f.attribute(v, attr)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, fail(diag.UndefinedName, "%s has no attribute '%s'", typeName(v), attr)
			}
			next, rest = found, rest[n+1:]
		} else {
			n := strings.IndexByte(rest, ']')
			if n < 0 {
				return nil, valueError("a '[' in a format is never closed")
			}
			var key any = rest[1:n]
			if i, ok := digitsOnly(rest[1:n]); ok {
				key = i
			}
			next, err = f.getitem(v, key, where{})
			if err != nil {
				return nil, err
			}
			rest = rest[n+1:]
		}
		if u, ok := next.(*Undefined); ok {
			return nil, u.fault()
		}
		v = next
	}
	return v, nil
}

func (f *brace) argument(name string) (any, error) {
	if name == "" {
		if f.auto < 0 {
			return nil, valueError("a format cannot mix {} with numbered fields")
		}
		name = strconv.Itoa(f.auto)
		f.auto++
	} else if _, ok := digitsOnly(name); ok {
		if f.auto > 0 {
			return nil, valueError("a format cannot mix {} with numbered fields")
		}
		f.auto = -1
	}
	if i, ok := digitsOnly(name); ok {
		if i >= int64(len(f.args.pos)) {
			return nil, valueError("the format asks for value %d, %d are given", i, len(f.args.pos))
		}
		return f.defined(f.args.pos[i])
	}
	i := f.args.named(name)
	if i < 0 {
		return nil, failHint(diag.TemplateValue, nearest(name, f.args.names), "the format asks for '%s', which is not given", name)
	}
	return f.defined(f.args.values[i])
}

func (f *brace) defined(v any) (any, error) {
	if u, ok := v.(*Undefined); ok {
		return nil, u.fault()
	}
	return plain(v), nil
}

// formatValue writes a value by a format specification.
func (r *run) formatValue(v any, spec string) (string, error) {
	if spec == "" {
		return r.str(v)
	}
	l, err := parseSpec(spec)
	if err != nil {
		return "", err
	}
	if s, ok := text(v); ok {
		if l.kind != 0 && l.kind != 's' || l.align == '=' && l.fill != "0" || l.sign != 0 || l.group != 0 {
			return "", valueError("the format '%s' cannot write text", spec)
		}
		if l.align == '=' {
			l.align = '<'
		}
		return r.placeText(l, cutText(s, l.prec), '<')
	}
	if f, ok := v.(float64); ok {
		if strings.IndexByte("eEfFgGn%\x00", l.kind) < 0 {
			return "", valueError("the format '%s' cannot write a float", spec)
		}
		return r.formatFloating(l, f)
	}
	n, ok := whole(v)
	if !ok {
		return "", typeError("%s takes no format '%s'", typeName(v), spec)
	}
	if _, isBool := v.(bool); isBool && l.kind == 0 && l.group == 0 && l.sign == 0 && !l.alt && l.prec < 0 && l.width == 0 {
		return r.str(v)
	}
	switch l.kind {
	case 0, 'd', 'n', 'b', 'o', 'x', 'X':
		if l.prec >= 0 {
			return "", valueError("the format '%s' has a precision, which a whole number does not take", spec)
		}
		return r.formatWhole(l, n)
	case 'c':
		s, err := character(v)
		if err != nil {
			return "", err
		}
		return r.placeText(l, s, '<')
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		f, err := float(v)
		if err != nil {
			return "", err
		}
		return r.formatFloating(l, f)
	}
	return "", valueError("the format '%s' cannot write a whole number", spec)
}

// parseSpec reads [[fill]align][sign][#][0][width][group][.precision][kind].
func parseSpec(spec string) (layout, error) {
	l := layout{prec: -1}
	s := spec
	if _, n := utf8.DecodeRuneInString(s); n > 0 && len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		l.fill, l.align, s = s[:n], s[n], s[n+1:]
	} else if strings.IndexByte("<>^=", s[0]) >= 0 {
		l.align, s = s[0], s[1:]
	}
	take := func(chars string) byte {
		if s != "" && strings.IndexByte(chars, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	l.sign = take("+- ")
	if l.sign == '-' {
		l.sign = 0
	}
	l.alt = take("#") != 0
	if take("0") != 0 && l.align == 0 {
		l.fill, l.align = "0", '='
	}
	number := func() (int64, bool) {
		n := 0
		for n < len(s) && isDecimal(s[n]) {
			n++
		}
		v, err := strconv.ParseInt(s[:n], 10, 32)
		ok := n > 0 && err == nil
		s = s[n:]
		return v, ok
	}
	l.width, _ = number()
	l.group = take(",_")
	if take(".") != 0 {
		n, ok := number()
		if !ok {
			return l, valueError("the format '%s' has a point without a precision", spec)
		}
		l.prec = n
	}
	l.kind = take("bcdeEfFgGnosxX%")
	if s != "" {
		return l, valueError("the format '%s' is not one that Python knows", spec)
	}
	return l, nil
}
