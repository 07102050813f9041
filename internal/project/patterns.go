package project

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"rbt/internal/jinja"
)

// pattern is a regular expression of Python's re for texts, in Go's words.
type pattern struct {
	re *regexp.Regexp
	// bounds says that it asks for ends of words, which Go knows in ASCII alone.
	bounds bool
	// ends says that $ is before a last line break, too, in Python.
	ends bool
	// hollow says that it matches the empty text.
	hollow bool
}

// reObject gives match, fullmatch, search, sub, findall, split and escape of
// Python's re, for patterns and texts of which both languages make the same. All
// others are refused.
func reObject() *object {
	find := func(before, after string) jinja.Func {
		return func(c *jinja.Call) (any, error) {
			p, texts, err := patternCall(c, 2, before, after)
			if err != nil {
				return nil, err
			}
			m := p.re.FindStringSubmatchIndex(texts[1])
			if m == nil {
				return nil, nil
			}
			return &found{re: p.re, text: texts[1], at: m}, nil
		}
	}
	return &object{name: "re", attrs: map[string]any{
		"match": find(`\A(?:`, ")"), "fullmatch": find(`\A(?:`, `)\z`), "search": find("", ""),
		"sub": jinja.Func(callSub), "findall": jinja.Func(callFindAll), "split": jinja.Func(callSplit),
		"escape": jinja.Func(func(c *jinja.Call) (any, error) {
			if len(c.Args) != 1 {
				return nil, badCall(c, "escape takes a text")
			}
			return escapePattern.Replace(printed(c.Args[0])), nil
		}),
	}}
}

// patternCall reads a pattern and other texts, n in all. What stands before and
// after the pattern says where it must match.
func patternCall(c *jinja.Call, n int, before, after string, options ...string) (*pattern, []string, error) {
	if err := kwargsOnly(c, "re", options...); err != nil {
		return nil, nil, err
	}
	if len(c.Args) < n || len(c.Args) > n+len(options) {
		return nil, nil, badCall(c, "it takes %d texts", n)
	}
	texts := make([]string, n)
	for i, a := range c.Args[:n] {
		s, ok := textArg(a)
		if !ok {
			return nil, nil, badCall(c, "it takes texts")
		}
		texts[i] = s
	}
	p, problem := readPattern(texts[0], before, after)
	if problem != "" {
		return nil, nil, badCall(c, "the pattern %q is not supported: %s", texts[0], problem)
	}
	text := texts[n-1]
	if p.bounds && strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return nil, nil, badCall(c, `\b and \B are not supported in texts with letters beyond ASCII`)
	}
	if p.ends && strings.HasSuffix(text, "\n") {
		return nil, nil, badCall(c, `$ is not supported in texts that end in a line break: write \Z for the very end`)
	}
	return p, texts, nil
}

// mostCall reads the argument that says how often at most; 0 is without end.
func mostCall(c *jinja.Call, at int, name string) (int, error) {
	v, ok := c.Kwarg(name)
	if !ok && len(c.Args) > at {
		v, ok = c.Args[at], true
	}
	if !ok {
		return 0, nil
	}
	n, whole := v.(int64)
	if !whole || n < 0 || n > 1<<30 {
		return 0, badCall(c, "%s must be a whole number", name)
	}
	return int(n), nil
}

// all gives all matches. Where a match of nothing can stand at the end of another
// one Python finds it, and Go does not.
func (p *pattern) all(c *jinja.Call, text string) ([][]int, error) {
	matches := p.re.FindAllStringSubmatchIndex(text, -1)
	if p.hollow && slices.ContainsFunc(matches, func(m []int) bool { return m[1] > m[0] }) {
		return nil, badCall(c, "a pattern that also matches nothing is not supported here: write + for *")
	}
	return matches, nil
}

func callSub(c *jinja.Call) (any, error) {
	p, texts, err := patternCall(c, 3, "", "", "count")
	if err != nil {
		return nil, err
	}
	most, err := mostCall(c, 3, "count")
	if err != nil {
		return nil, err
	}
	parts, problem := p.replacement(texts[1])
	if problem != "" {
		return nil, badCall(c, "the replacement %q is not supported: %s", texts[1], problem)
	}
	text := texts[2]
	if texts[1] == "" && most == 0 {
		p.hollow = false // taking out nothing changes nothing
	}
	matches, err := p.all(c, text)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	last := 0
	for i, m := range matches {
		if most > 0 && i == most {
			break
		}
		b.WriteString(text[last:m[0]])
		for _, part := range parts {
			if part.group < 0 {
				b.WriteString(part.text)
			} else if from := m[2*part.group]; from >= 0 {
				b.WriteString(text[from:m[2*part.group+1]])
			}
		}
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String(), nil
}

func callFindAll(c *jinja.Call) (any, error) {
	p, texts, err := patternCall(c, 2, "", "")
	if err != nil {
		return nil, err
	}
	matches, err := p.all(c, texts[1])
	if err != nil {
		return nil, err
	}
	out := jinja.NewList()
	for _, m := range matches {
		groups := submatches(texts[1], m, "")
		switch len(groups) {
		case 0:
			out.Append(texts[1][m[0]:m[1]])
		case 1:
			out.Append(groups[0])
		default:
			out.Append(groups)
		}
	}
	return out, nil
}

func callSplit(c *jinja.Call) (any, error) {
	p, texts, err := patternCall(c, 2, "", "", "maxsplit")
	if err != nil {
		return nil, err
	}
	most, err := mostCall(c, 2, "maxsplit")
	if err != nil {
		return nil, err
	}
	text := texts[1]
	matches, err := p.all(c, text)
	if err != nil {
		return nil, err
	}
	out := jinja.NewList()
	last := 0
	for i, m := range matches {
		if most > 0 && i == most {
			break
		}
		out.Append(text[last:m[0]])
		for _, g := range submatches(text, m, nil) {
			out.Append(g)
		}
		last = m[1]
	}
	out.Append(text[last:])
	return out, nil
}

// submatches gives the groups of a match; absent stands for one that took no part.
func submatches(text string, m []int, absent any) jinja.Tuple {
	groups := make(jinja.Tuple, 0, len(m)/2-1)
	for i := 2; i < len(m); i += 2 {
		if m[i] < 0 {
			groups = append(groups, absent)
			continue
		}
		groups = append(groups, text[m[i]:m[i+1]])
	}
	return groups
}

// escapePattern is re.escape: every character that can mean something.
var escapePattern = func() *strings.Replacer {
	var pairs []string
	for _, r := range "()[]{}?*+-|^$\\.&~# \t\n\r\v\f" {
		pairs = append(pairs, string(r), `\`+string(r))
	}
	return strings.NewReplacer(pairs...)
}()

// Sets of characters that Python's classes stand for, as Go writes them within
// brackets. Go's own know ASCII alone.
const (
	digitSet   = `\p{Nd}`
	wordSet    = `\p{L}\p{N}_`
	spaceSet   = `\t-\r\x1c-\x1f\x{85}\p{Z}`
	noSpaceSet = `\x00-\x08\x0e-\x1b\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}` +
		`\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}`
)

// classes are Python's classes outside of brackets, and within.
var classes = map[byte][2]string{
	'd': {digitSet, digitSet}, 'D': {`\P{Nd}`, `\P{Nd}`}, 'w': {"[" + wordSet + "]", wordSet}, 'W': {"[^" + wordSet + "]", ""},
	's': {"[" + spaceSet + "]", spaceSet}, 'S': {"[" + noSpaceSet + "]", noSpaceSet},
}

// readPattern translates a pattern. problem says what is not supported.
func readPattern(text, before, after string) (p *pattern, problem string) {
	p = &pattern{}
	var b strings.Builder
	inside := false // of brackets
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			i++
			part, problem := p.escape(rest[1], inside)
			if problem != "" {
				return nil, problem
			}
			b.WriteString(part)
		case inside && strings.HasPrefix(rest, "[:"):
			return nil, "[: :] is none of Python's"
		case inside:
			inside = rest[0] != ']'
			b.WriteByte(rest[0])
		case rest[0] == '[':
			inside = true
			// A bracket that closes is a character where it stands first.
			for _, first := range []string{"[^]", "[]", "[^", "["} {
				if strings.HasPrefix(rest, first) {
					b.WriteString(first)
					i += len(first) - 1
					break
				}
			}
		case strings.HasPrefix(rest, "{,"):
			b.WriteString("{0,")
			i++
		default:
			p.ends = p.ends || rest[0] == '$'
			b.WriteByte(rest[0])
		}
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	p.hollow = re.MatchString("")
	p.re = re
	if before != "" {
		p.re, err = regexp.Compile(before + b.String() + after)
		if err != nil {
			return nil, strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		}
	}
	return p, ""
}

// escape translates what stands behind a backslash.
func (p *pattern) escape(c byte, inside bool) (part, problem string) {
	if class, ok := classes[c]; ok {
		if !inside {
			return class[0], ""
		}
		if class[1] == "" {
			return "", `\` + string(c) + " within brackets"
		}
		return class[1], ""
	}
	switch {
	case c == 'b' && inside:
		return `\x08`, ""
	case c == 'b' || c == 'B':
		p.bounds = true
	case c == 'Z':
		return `\z`, ""
	case strings.IndexByte("pPQECzG", c) >= 0:
		return "", `\` + string(c) + " is none of Python's"
	}
	return `\` + string(c), ""
}

// piece is a part of a replacement: text, or a group where that is not negative.
type piece struct {
	text  string
	group int
}

// backReference is a group in a replacement: \1 or \g<name>.
var backReference = regexp.MustCompile(`\A\\(?:([1-9][0-9]?)|g<([^>]*)>)`)

// replacement takes a replacement apart.
func (p *pattern) replacement(text string) (parts []piece, problem string) {
	add := func(s string) { parts = append(parts, piece{text: s, group: -1}) }
	for text != "" {
		at := strings.IndexByte(text, '\\')
		if at < 0 {
			at = len(text)
		}
		add(text[:at])
		if text = text[at:]; text == "" {
			break
		}
		if m := backReference.FindStringSubmatch(text); m != nil {
			n, err := strconv.Atoi(m[1] + m[2])
			if err != nil {
				n = p.re.SubexpIndex(m[2])
			}
			if n < 0 || n > p.re.NumSubexp() {
				return nil, "the pattern has no group " + m[1] + m[2]
			}
			parts = append(parts, piece{group: n})
			text = text[len(m[0]):]
			continue
		}
		const named, are = `\ntrvfa`, "\\\n\t\r\v\f\a"
		switch i := strings.IndexByte(named, (text + " ")[1]); {
		case i >= 0:
			add(are[i : i+1])
		case len(text) == 1 || text[1] < utf8.RuneSelf && (text[1] >= '0' && text[1] <= '9' || text[1]|0x20 >= 'a' && text[1]|0x20 <= 'z'):
			return nil, "what stands behind the backslash means nothing"
		default:
			add(text[:2])
		}
		text = text[2:]
	}
	return parts, ""
}

// found is a match of a pattern.
type found struct {
	re   *regexp.Regexp
	text string
	at   []int
}

// String gives the whole match.
func (f *found) String() string { return f.text[f.at[0]:f.at[1]] }

// place gives the number of characters before a byte.
func (f *found) place(at int) int64 { return int64(utf8.RuneCountInString(f.text[:at])) }

// groupCall gives the groups that are asked for.
func (f *found) groupCall(c *jinja.Call) (any, error) {
	out := jinja.Tuple{}
	for _, a := range c.Args {
		i := -1
		switch n := a.(type) {
		case int64:
			if n >= 0 && n <= int64(f.re.NumSubexp()) {
				i = int(n)
			}
		case string:
			i = f.re.SubexpIndex(n)
		}
		if i < 0 {
			return nil, badCall(c, "the pattern has no group %s", printed(a))
		}
		if i == 0 {
			out = append(out, f.String())
			continue
		}
		out = append(out, submatches(f.text, f.at, nil)[i-1])
	}
	switch len(out) {
	case 0:
		return f.String(), nil
	case 1:
		return out[0], nil
	}
	return out, nil
}

// Attr gives group, groups, start, end and span.
func (f *found) Attr(name string) (any, bool) {
	switch name {
	case "group":
		return jinja.Func(f.groupCall), true
	case "groups":
		return method(func() any { return submatches(f.text, f.at, nil) }), true
	case "start":
		return method(func() any { return f.place(f.at[0]) }), true
	case "end":
		return method(func() any { return f.place(f.at[1]) }), true
	case "span":
		return method(func() any { return jinja.Tuple{f.place(f.at[0]), f.place(f.at[1])} }), true
	}
	return nil, false
}
