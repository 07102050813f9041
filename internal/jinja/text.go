package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Functions over text that follow Python's str.

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lower and upper use the full Unicode rules (ß becomes SS), as Python does.
func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

// titleRune is a character as it begins a word.
func titleRune(r rune) string {
	if t := unicode.ToTitle(r); t != r {
		return string(t)
	}
	u := []rune(upper(string(r)))
	if len(u) < 2 {
		return string(r)
	}
	return string(u[:1]) + lower(string(u[1:]))
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return titleRune(r) + lower(s[n:])
}

// titleMethod is str.title: every run of letters begins large.
func titleMethod(s string) string {
	var b strings.Builder
	start := 0
	inWord := false
	flush := func(end int) {
		b.WriteString(capitalize(s[start:end]))
		start = end
	}
	for i, r := range s {
		cased := isCased(r)
		if cased != inWord {
			if inWord {
				flush(i)
			} else {
				b.WriteString(s[start:i])
				start = i
			}
			inWord = cased
		}
	}
	if inWord {
		flush(len(s))
	}
	b.WriteString(s[start:])
	return b.String()
}

// titleFilter is the filter title, which begins words after other characters
// than str.title does.
func titleFilter(s string) string {
	var b strings.Builder
	word := ""
	flush := func() {
		if word != "" {
			r, n := utf8.DecodeRuneInString(word)
			b.WriteString(upper(string(r)) + lower(word[n:]))
			word = ""
		}
	}
	start, between := 0, false
	for i, r := range s {
		sep := isSpace(r) || strings.ContainsRune("-({[<", r)
		if sep != between {
			if between {
				b.WriteString(s[start:i])
			} else {
				word = s[start:i]
				flush()
			}
			start, between = i, sep
		}
	}
	if between {
		b.WriteString(s[start:])
	} else {
		word = s[start:]
		flush()
	}
	return b.String()
}

func isCased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) ||
		unicode.Is(unicode.Other_Lowercase, r) || unicode.Is(unicode.Other_Uppercase, r)
}

func swapcase(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsUpper(r):
			b.WriteString(lower(string(r)))
		case unicode.IsLower(r):
			b.WriteString(upper(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var lines []string
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isLineEnd(r) {
			i += n
			continue
		}
		end := i
		i += n
		if r == '\r' && i < len(s) && s[i] == '\n' {
			i++
		}
		if keep {
			end = i
		}
		lines = append(lines, s[start:end])
		start = i
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines
}

// splitSpace is str.split without a separator, from the left or the right.
func splitSpace(s string, limit int64, fromRight bool) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	var parts []string
	if fromRight {
		for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
			i := strings.LastIndexFunc(s, isSpace)
			if i < 0 || int64(len(parts)) >= limit {
				parts = append(parts, s)
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+n:])
			s = s[:i]
		}
		reverse(parts)
		return parts
	}
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 || int64(len(parts)) >= limit {
			parts = append(parts, s)
			break
		}
		parts = append(parts, s[:i])
		s = s[i:]
	}
	return parts
}

func reverse[T any](list []T) {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
}

// splitBy is str.split with a separator.
func splitBy(s, sep string, limit int64, fromRight bool) []string {
	if limit < 0 || limit > int64(len(s)) {
		return strings.Split(s, sep)
	}
	if !fromRight {
		return strings.SplitN(s, sep, int(limit)+1)
	}
	var parts []string
	for ; limit > 0; limit-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	reverse(parts)
	return parts
}

// pad fills s up to width characters; left tells how many of the missing ones
// stand before it.
func (r *run) pad(s string, width int64, fill string, left func(missing int64) int64) (string, error) {
	missing := width - int64(utf8.RuneCountInString(s))
	if missing <= 0 {
		return s, nil
	}
	if missing > int64(r.budget.Output) {
		return "", r.size(r.budget.Output + 1)
	}
	if err := r.grow(missing * int64(len(fill))); err != nil {
		return "", err
	}
	n := left(missing)
	return strings.Repeat(fill, int(n)) + s + strings.Repeat(fill, int(missing-n)), nil
}

// center is str.center, with Python's rule for the odd space.
func (r *run) center(s string, width int64, fill string) (string, error) {
	return r.pad(s, width, fill, func(missing int64) int64 { return missing/2 + (missing & width & 1) })
}

// replaceText is str.replace within the budget.
func (r *run) replaceText(s, old, with string, count int64) (string, error) {
	n := int64(strings.Count(s, old))
	if count >= 0 {
		n = min(n, count)
	}
	if err := r.grow(int64(len(s)) + n*int64(len(with))); err != nil {
		return "", err
	}
	return strings.Replace(s, old, with, int(n)), nil
}
