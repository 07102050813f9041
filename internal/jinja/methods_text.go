package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"rbt/internal/diag"
)

// textMethod finds a method of text.
func textMethod(name string) *methodDef {
	if def := changeMethod(name); def != nil {
		return def
	}
	if def := splitMethod(name); def != nil {
		return def
	}
	if def := searchMethod(name); def != nil {
		return def
	}
	return askMethod(name)
}

// overText makes a method of a function over text.
func overText(fn func(r *run, s string, args []any) (any, error), ps ...string) *methodDef {
	return &methodDef{params: ps, bare: true, fn: func(r *run, recv any, args []any) (any, error) {
		s, _ := text(recv)
		if err := r.grow(int64(len(s))); err != nil {
			return nil, err
		}
		return fn(r, s, args)
	}}
}

func simple(fn func(string) string) *methodDef {
	return overText(func(_ *run, s string, _ []any) (any, error) { return fn(s), nil })
}

// changeMethod finds the methods that make new text.
func changeMethod(name string) *methodDef {
	switch name {
	case "upper":
		return simple(upper)
	case "lower":
		return simple(lower)
	case "casefold":
		return simple(func(s string) string { return lower(strings.ReplaceAll(s, "ß", "ss")) })
	case "capitalize":
		return simple(capitalize)
	case "title":
		return simple(titleMethod)
	case "swapcase":
		return simple(swapcase)
	case "strip", "lstrip", "rstrip":
		return overText(func(_ *run, s string, args []any) (any, error) {
			return stripped(s, given(args[0], nil), name != "rstrip", name != "lstrip")
		}, "chars?")
	case "replace":
		return overText(textReplace, "old", "new", "count?")
	case "removeprefix", "removesuffix":
		return overText(func(_ *run, s string, args []any) (any, error) {
			part, err := wantText(args[0], "the part to remove")
			if name == "removeprefix" {
				return strings.TrimPrefix(s, part), err
			}
			return strings.TrimSuffix(s, part), err
		}, "part")
	case "center", "ljust", "rjust":
		return overText(func(r *run, s string, args []any) (any, error) { return r.justify(name, s, args) }, "width", "fillchar?")
	case "zfill":
		return overText(func(r *run, s string, args []any) (any, error) {
			width, err := wantInt(args[0], "the width")
			if err != nil {
				return nil, err
			}
			sign := ""
			if s != "" && (s[0] == '+' || s[0] == '-') {
				sign, s = s[:1], s[1:]
			}
			s, err = r.pad(s, width-int64(len(sign)), "0", func(n int64) int64 { return n })
			return sign + s, err
		}, "width")
	case "expandtabs":
		def := overText(expandTabs, "tabsize?")
		def.bare = false
		return def
	case "format":
		return &methodDef{raw: func(p *proc, recv any, a *argList) (any, error) {
			s, _ := text(recv)
			return p.r.formatText(s, a, isMarkup(recv))
		}}
	case "format_map":
		return &methodDef{params: params{"mapping"}, bare: true, fn: func(r *run, recv any, args []any) (any, error) {
			s, _ := text(recv)
			d, ok := args[0].(*Dict)
			if !ok {
				return nil, typeError("format_map() takes a dict, not %s", typeName(args[0]))
			}
			a := &argList{}
			for k, v := range d.All() {
				if key, ok := text(k); ok {
					a.set(key, v)
				}
			}
			return r.formatText(s, a, isMarkup(recv))
		}}
	case "join":
		return overText(textJoin, "iterable")
	case "encode", "translate", "maketrans":
		return &methodDef{raw: func(*proc, any, *argList) (any, error) {
			return nil, fail(diag.TemplateUnsupported, "the method '%s' of text is not supported", name)
		}}
	}
	return nil
}

func textReplace(r *run, s string, args []any) (any, error) {
	old, err := wantText(args[0], "the text to replace")
	if err != nil {
		return nil, err
	}
	with, err := wantText(args[1], "the new text")
	if err != nil {
		return nil, err
	}
	count, err := wantInt(given(args[2], int64(-1)), "count")
	if err != nil {
		return nil, err
	}
	return r.replaceText(s, old, with, count)
}

func (r *run) justify(how, s string, args []any) (any, error) {
	width, err := wantInt(args[0], "the width")
	if err != nil {
		return nil, err
	}
	fill, err := wantText(given(args[1], " "), "the fill character")
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(fill) != 1 {
		return nil, typeError("the fill character must be one character")
	}
	switch how {
	case "ljust":
		return r.pad(s, width, fill, func(int64) int64 { return 0 })
	case "rjust":
		return r.pad(s, width, fill, func(n int64) int64 { return n })
	}
	return r.center(s, width, fill)
}

func expandTabs(r *run, s string, args []any) (any, error) {
	size, err := wantInt(given(args[0], int64(8)), "tabsize")
	if err != nil {
		return nil, err
	}
	if size > int64(r.budget.Output) {
		return nil, r.size(r.budget.Output + 1)
	}
	if err := r.grow(int64(strings.Count(s, "\t")) * max(size, 0)); err != nil {
		return nil, err
	}
	var b strings.Builder
	col := int64(0)
	for _, c := range s {
		switch c {
		case '\t':
			if size > 0 {
				n := size - col%size
				b.WriteString(strings.Repeat(" ", int(n)))
				col += n
			}
		case '\n', '\r':
			b.WriteRune(c)
			col = 0
		default:
			b.WriteRune(c)
			col++
		}
	}
	return b.String(), nil
}

func textJoin(r *run, sep string, args []any) (any, error) {
	next, err := r.iterate(args[0])
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for n := 0; ; n++ {
		v, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return b.String(), r.grow(int64(b.Len()))
		}
		s, isText := text(v)
		if !isText {
			if u, ok := v.(*Undefined); ok {
				return nil, u.fault()
			}
			return nil, failHint(diag.TemplateType, "the filter 'join' takes any values: items | join(', ')",
				"join() takes text only; item %d is %s", n, typeName(v))
		}
		if n > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
		if err := r.size(b.Len()); err != nil {
			return nil, err
		}
	}
}

// textList makes a list of texts.
func (r *run) textList(parts []string) (any, error) {
	l := &List{items: make([]any, len(parts))}
	for i, p := range parts {
		l.items[i] = p
	}
	return l, r.step(len(parts))
}

// splitMethod finds the methods that take text apart.
func splitMethod(name string) *methodDef {
	switch name {
	case "split", "rsplit":
		def := overText(func(r *run, s string, args []any) (any, error) {
			limit, err := wantInt(given(args[1], int64(-1)), "maxsplit")
			if err != nil {
				return nil, err
			}
			sep := given(args[0], nil)
			if sep == nil {
				return r.textList(splitSpace(s, limit, name == "rsplit"))
			}
			by, err := wantText(sep, "the separator")
			if err != nil {
				return nil, err
			}
			if by == "" {
				return nil, valueError("%s() needs a separator that is not empty", name)
			}
			return r.textList(splitBy(s, by, limit, name == "rsplit"))
		}, "sep?", "maxsplit?")
		def.bare = false
		return def
	case "splitlines":
		def := overText(func(r *run, s string, args []any) (any, error) {
			keep, err := truth(given(args[0], false))
			if err != nil {
				return nil, err
			}
			return r.textList(splitLines(s, keep))
		}, "keepends?")
		def.bare = false
		return def
	case "partition", "rpartition":
		return overText(func(_ *run, s string, args []any) (any, error) {
			sep, err := wantText(args[0], "the separator")
			if err != nil {
				return nil, err
			}
			if sep == "" {
				return nil, valueError("%s() needs a separator that is not empty", name)
			}
			if name == "partition" {
				if head, tail, ok := strings.Cut(s, sep); ok {
					return Tuple{head, sep, tail}, nil
				}
				return Tuple{s, "", ""}, nil
			}
			if i := strings.LastIndex(s, sep); i >= 0 {
				return Tuple{s[:i], sep, s[i+len(sep):]}, nil
			}
			return Tuple{"", "", s}, nil
		}, "sep")
	}
	return nil
}

// searchMethod finds the methods that look for text in text.
func searchMethod(name string) *methodDef {
	switch name {
	case "startswith", "endswith":
		return overText(func(r *run, s string, args []any) (any, error) {
			part, whole, err := textWindow(s, args[1], args[2])
			if err != nil {
				return nil, err
			}
			return r.hasAffix(part, args[0], name == "startswith", whole)
		}, "part", "start?", "end?")
	case "find", "rfind", "index", "rindex", "count":
		return overText(func(_ *run, s string, args []any) (any, error) {
			sub, err := wantText(args[0], "the text to look for")
			if err != nil {
				return nil, err
			}
			return search(name, s, sub, args[1], args[2])
		}, "sub", "start?", "end?")
	}
	return nil
}

// textWindow cuts s to the characters from start to end. ok is false where start
// lies behind the end, so that not even empty text is found there.
func textWindow(s string, start, end any) (part string, ok bool, err error) {
	_, noStart := start.(missing)
	_, noEnd := end.(missing)
	if noStart && noEnd {
		return s, true, nil
	}
	bounds := [3]any{given(start, nil), given(end, nil), nil}
	for _, b := range bounds[:2] {
		if b != nil && !isWhole(b) {
			return "", false, typeError("a position must be a whole number, not %s", typeName(b))
		}
	}
	n := int64(utf8.RuneCountInString(s))
	from, to, _, err := sliceRange(bounds, n)
	if err != nil || from > to || bounds[0] != nil && bound(bounds[0]) > n {
		return "", false, err
	}
	return sliceText(s, rangeValue{from, to, 1}, n == int64(len(s))), true, nil
}

func (r *run) hasAffix(s string, affix any, atStart, possible bool) (any, error) {
	list := []any{affix}
	if t, ok := affix.(Tuple); ok {
		list = t
	}
	for _, v := range list {
		part, err := wantText(v, "what the text begins or ends with")
		if err != nil {
			return nil, err
		}
		if possible && (atStart && strings.HasPrefix(s, part) || !atStart && strings.HasSuffix(s, part)) {
			return true, nil
		}
	}
	return false, nil
}

func search(how, s, sub string, start, end any) (any, error) {
	part, ok, err := textWindow(s, start, end)
	if err != nil {
		return nil, err
	}
	if how == "count" {
		if !ok {
			return int64(0), nil
		}
		return int64(strings.Count(part, sub)), nil
	}
	at := -1
	if ok {
		if how[0] == 'r' {
			at = strings.LastIndex(part, sub)
		} else {
			at = strings.Index(part, sub)
		}
	}
	if at < 0 {
		if strings.HasSuffix(how, "index") {
			return nil, valueError("%s() does not find %s", how, shorten(reprString(sub)))
		}
		return int64(-1), nil
	}
	n := int64(utf8.RuneCountInString(part[:at]))
	if v := given(start, nil); v != nil {
		from, _, _, err := sliceRange([3]any{v, nil, nil}, int64(utf8.RuneCountInString(s)))
		if err != nil {
			return nil, err
		}
		n += from
	}
	return n, nil
}

// every makes a method that holds if text is not empty and all its characters do.
func every(holds func(rune) bool) *methodDef {
	return overText(func(_ *run, s string, _ []any) (any, error) {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !holds(r) }) < 0, nil
	})
}

// askMethod finds the methods that ask about text.
func askMethod(name string) *methodDef {
	switch name {
	case "isdigit":
		return every(func(r rune) bool { return unicode.Is(unicode.Nd, r) || isDigitLike(r) })
	case "isdecimal":
		return every(func(r rune) bool { return unicode.Is(unicode.Nd, r) })
	case "isnumeric":
		return every(isNumeric)
	case "isalpha":
		return every(unicode.IsLetter)
	case "isalnum":
		return every(func(r rune) bool { return unicode.IsLetter(r) || isNumeric(r) })
	case "isspace":
		return every(isSpace)
	case "isprintable":
		return overText(func(_ *run, s string, _ []any) (any, error) {
			return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0, nil
		})
	case "isascii":
		return overText(func(_ *run, s string, _ []any) (any, error) { return isASCII(s), nil })
	case "isidentifier":
		return overText(func(_ *run, s string, _ []any) (any, error) {
			for i, r := range s {
				if r != '_' && !isNameRune(r, i == 0) {
					return false, nil
				}
			}
			return s != "", nil
		})
	case "islower":
		return overText(func(_ *run, s string, _ []any) (any, error) { return onlyCase(s, unicode.IsUpper), nil })
	case "isupper":
		return overText(func(_ *run, s string, _ []any) (any, error) { return onlyCase(s, unicode.IsLower), nil })
	case "istitle":
		return overText(func(_ *run, s string, _ []any) (any, error) {
			return strings.IndexFunc(s, isCased) >= 0 && titleMethod(s) == s, nil
		})
	}
	return nil
}

// isDigitLike holds for superscripts and the like, which Python counts as digits
// but not as decimals.
func isDigitLike(r rune) bool {
	switch {
	case r == 0xb2 || r == 0xb3 || r == 0xb9, r == 0x2070, r >= 0x2074 && r <= 0x2079, r >= 0x2080 && r <= 0x2089,
		r >= 0x2460 && r <= 0x2468, r >= 0x2474 && r <= 0x247c, r >= 0x2488 && r <= 0x2490:
		return true
	}
	return false
}
