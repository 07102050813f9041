package jinja

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textFilter finds the filters that take and make text.
func textFilter(name string) *filterDef {
	switch name {
	case "upper":
		return textOf(upper)
	case "lower":
		return textOf(lower)
	case "capitalize":
		return textOf(capitalize)
	case "title":
		return textOf(titleFilter)
	case "string":
		return textOf(func(s string) string { return s })
	case "trim":
		return &filterDef{params: params{"chars?"}, rich: true, fn: filterTrim}
	case "replace":
		return &filterDef{params: params{"old", "new", "count?"}, fn: filterReplace}
	case "center":
		return &filterDef{params: params{"width?"}, fn: filterCenter}
	case "indent":
		return &filterDef{params: params{"width?", "first?", "blank?"}, fn: filterIndent}
	case "truncate":
		return &filterDef{params: params{"length?", "killwords?", "end?", "leeway?"}, fn: filterTruncate}
	case "wordwrap":
		return &filterDef{params: params{"width?", "break_long_words?", "wrapstring?", "break_on_hyphens?"}, fn: filterWordWrap}
	case "wordcount":
		return &filterDef{fn: filterWordCount}
	case "format":
		return &filterDef{raw: true, fn: filterFormat}
	case "urlencode":
		return &filterDef{fn: filterURLEncode}
	case "striptags":
		return &filterDef{fn: filterStripTags}
	case "safe":
		return &filterDef{fn: func(c *filterCall) (any, error) {
			s, err := c.text()
			return markup(s), err
		}}
	case "escape", "e":
		return &filterDef{fn: func(c *filterCall) (any, error) {
			if isMarkup(c.in) {
				return c.in, nil
			}
			s, err := c.text()
			return markup(escapeHTML(s)), err
		}}
	case "forceescape":
		return &filterDef{fn: func(c *filterCall) (any, error) {
			s, err := c.text()
			return markup(escapeHTML(s)), err
		}}
	}
	return nil
}

// like gives text as HTML-safe as the value that it was made of.
func like(v any, s string) any {
	if isMarkup(v) {
		return markup(s)
	}
	return s
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func filterTrim(c *filterCall) (any, error) {
	chars := given(c.args[0], nil)
	if rich, ok := c.in.(*richText); ok && chars == nil {
		return rich.trim(), nil
	}
	s, err := c.text()
	if err != nil {
		return nil, err
	}
	s, err = stripped(s, chars, true, true)
	return like(c.in, s), err
}

// trim takes white space off both ends and keeps the origin of the rest.
func (t *richText) trim() any {
	left := len(t.text) - len(strings.TrimLeftFunc(t.text, isSpace))
	right := len(strings.TrimRightFunc(t.text, isSpace))
	if left >= right {
		return ""
	}
	out := &richText{text: t.text[left:right]}
	for _, s := range t.spans {
		start, end := max(s.Start, left), min(s.End, right)
		if start >= end {
			continue
		}
		if s.Literal {
			s.Pos = advance(s.Pos, t.text[s.Start:start])
		}
		s.Start, s.End = start-left, end-left
		out.spans = append(out.spans, s)
	}
	return out
}

// stripped takes the characters of chars, or white space, off the ends.
func stripped(s string, chars any, left, right bool) (string, error) {
	cut := isSpace
	if chars != nil {
		set, err := wantText(chars, "the characters to take off")
		if err != nil {
			return "", err
		}
		cut = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s, nil
}

func filterReplace(c *filterCall) (any, error) {
	s, err := c.text()
	if err != nil {
		return nil, err
	}
	old, err := c.str(c.args[0])
	if err != nil {
		return nil, err
	}
	with, err := c.str(c.args[1])
	if err != nil {
		return nil, err
	}
	count := int64(-1)
	if v := given(c.args[2], nil); v != nil {
		if count, err = wantInt(v, "count"); err != nil {
			return nil, err
		}
	}
	return c.replaceText(s, old, with, count)
}

func filterCenter(c *filterCall) (any, error) {
	s, err := c.text()
	if err != nil {
		return nil, err
	}
	width, err := c.int(0, 80, "width")
	if err != nil {
		return nil, err
	}
	s, err = c.center(s, width, " ")
	return like(c.in, s), err
}

func filterIndent(c *filterCall) (any, error) {
	s, err := wantText(c.in, "what is indented")
	if err != nil {
		return nil, err
	}
	width := given(c.args[0], int64(4))
	indent, isText := text(width)
	if !isText {
		n, err := wantInt(width, "width")
		if err != nil {
			return nil, err
		}
		if indent, err = c.pad("", n, " ", func(int64) int64 { return 0 }); err != nil {
			return nil, err
		}
	}
	first, err := c.flag(1, false)
	if err != nil {
		return nil, err
	}
	blank, err := c.flag(2, false)
	if err != nil {
		return nil, err
	}
	lines := splitLines(s+"\n", false)
	if err := c.grow(int64(len(s)) + int64(len(lines)+1)*int64(len(indent)+1)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && first || i > 0 && (blank || line != "") {
			b.WriteString(indent)
		}
		b.WriteString(line)
	}
	return like(c.in, b.String()), nil
}

func filterTruncate(c *filterCall) (any, error) {
	s, err := wantText(c.in, "what is truncated")
	if err != nil {
		return nil, err
	}
	length, err := c.int(0, 255, "length")
	if err != nil {
		return nil, err
	}
	kill, err := c.flag(1, false)
	if err != nil {
		return nil, err
	}
	end, err := wantText(given(c.args[2], "..."), "end")
	if err != nil {
		return nil, err
	}
	leeway := int64(5)
	if v := given(c.args[3], nil); v != nil {
		if leeway, err = wantInt(v, "leeway"); err != nil {
			return nil, err
		}
	}
	ends := int64(utf8.RuneCountInString(end))
	switch {
	case length < ends:
		return nil, valueError("the filter 'truncate' cannot make %d characters that end in '%s'", length, end)
	case leeway < 0:
		return nil, valueError("leeway cannot be negative")
	}
	runes := []rune(s)
	if int64(len(runes)) <= length+leeway {
		return c.in, nil
	}
	cut := string(runes[:length-ends])
	if i := strings.LastIndexByte(cut, ' '); i >= 0 && !kill {
		cut = cut[:i]
	}
	if isMarkup(c.in) {
		return markup(cut + escapeHTML(end)), nil
	}
	return cut + end, nil
}

func filterWordCount(c *filterCall) (any, error) {
	s, err := c.text()
	if err != nil {
		return nil, err
	}
	n, in := int64(0), false
	for _, r := range s {
		word := isWordRune(r)
		if word && !in {
			n++
		}
		in = word
	}
	return n, nil
}

// isWordRune is \w of Python's regular expressions.
func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || isNumeric(r) }

func filterFormat(c *filterCall) (any, error) {
	s, err := c.text()
	if err != nil {
		return nil, err
	}
	var values any = Tuple(c.raw.pos)
	if len(c.raw.names) > 0 {
		if len(c.raw.pos) > 0 {
			return nil, typeError("the filter 'format' takes either named arguments or others, not both")
		}
		d := NewDict()
		for i, name := range c.raw.names {
			d.put(name, c.raw.values[i])
		}
		values = d
	}
	out, err := c.percentFormat(s, values, isMarkup(c.in))
	if isMarkup(c.in) {
		return markup(out), err
	}
	return out, err
}

const upperHex = "0123456789ABCDEF"

// urlQuote escapes everything but letters, digits, "_.-~" and the safe ones.
func urlQuote(s, safe string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("_.-~", c) >= 0, strings.IndexByte(safe, c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

func filterURLEncode(c *filterCall) (any, error) {
	in := c.in
	if d, ok := in.(*Dict); ok {
		in = dictView{dict: d, kind: viewItems}
	}
	_, isText := text(in)
	next, err := c.iterate(in)
	if isText || err != nil && isTypeFault(err) {
		s, err := c.text()
		return urlQuote(s, "/"), err
	}
	if err != nil {
		return nil, err
	}
	var parts []string
	for {
		item, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return strings.Join(parts, "&"), nil
		}
		pair, err := c.collect(item)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, valueError("the filter 'urlencode' takes pairs; one item has %d parts", len(pair))
		}
		var words [2]string
		for i, v := range pair {
			s, err := c.str(v)
			if err != nil {
				return nil, err
			}
			words[i] = strings.ReplaceAll(urlQuote(s, ""), "%20", "+")
		}
		parts = append(parts, words[0]+"="+words[1])
	}
}

// filterStripTags takes tags and comments out and joins white space.
func filterStripTags(c *filterCall) (any, error) {
	s, err := c.text()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		from, end := i, ">"
		if strings.HasPrefix(s[i:], "<!--") {
			from, end = i+4, "-->"
		}
		n := strings.Index(s[from:], end)
		if n < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[from+n+len(end):]
	}
	b.WriteString(s)
	return html.UnescapeString(strings.Join(strings.FieldsFunc(b.String(), isSpace), " ")), nil
}
