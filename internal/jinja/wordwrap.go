package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func filterWordWrap(c *filterCall) (any, error) {
	s, err := wantText(c.in, "what is wrapped")
	if err != nil {
		return nil, err
	}
	width, err := c.int(0, 79, "width")
	if err != nil {
		return nil, err
	}
	if width <= 0 {
		return nil, valueError("the filter 'wordwrap' needs a width of at least 1")
	}
	long, err := c.flag(1, true)
	if err != nil {
		return nil, err
	}
	sep := "\n"
	if v := given(c.args[2], nil); v != nil {
		if sep, err = wantText(v, "wrapstring"); err != nil {
			return nil, err
		}
	}
	hyphens, err := c.flag(3, true)
	if err != nil {
		return nil, err
	}
	if err := c.grow(int64(len(s)) * int64(1+len(sep))); err != nil {
		return nil, err
	}
	var paragraphs []string
	for _, line := range splitLines(s, false) {
		paragraphs = append(paragraphs, strings.Join(wrapLine(line, int(min(width, 1<<30)), long, hyphens), sep))
	}
	return strings.Join(paragraphs, sep), nil
}

// wrapLine breaks one paragraph into lines of at most width characters.
func wrapLine(s string, width int, long, hyphens bool) []string {
	chunks := wrapChunks(s, hyphens)
	var lines []string
	for i := 0; i < len(chunks); {
		if len(lines) > 0 && strings.TrimFunc(chunks[i], isWrapSpace) == "" {
			i++
			if i == len(chunks) {
				break
			}
		}
		var line []string
		used := 0
		for i < len(chunks) {
			n := utf8.RuneCountInString(chunks[i])
			if used+n > width {
				break
			}
			line = append(line, chunks[i])
			used += n
			i++
		}
		if i < len(chunks) && utf8.RuneCountInString(chunks[i]) > width {
			if long {
				cut := breakAt(chunks[i], width-used, hyphens)
				line = append(line, chunks[i][:cut])
				chunks[i] = chunks[i][cut:]
			} else if len(line) == 0 {
				line = append(line, chunks[i])
				i++
			}
		}
		if n := len(line); n > 0 && strings.TrimFunc(line[n-1], isWrapSpace) == "" {
			line = line[:n-1]
		}
		if len(line) > 0 {
			lines = append(lines, strings.Join(line, ""))
		}
	}
	return lines
}

// breakAt gives the offset at which a long chunk is cut for room characters.
func breakAt(chunk string, room int, hyphens bool) int {
	end := len(chunk)
	n := 0
	for i := range chunk {
		if n == room {
			end = i
			break
		}
		n++
	}
	if hyphens && n >= room {
		head := chunk[:end]
		if i := strings.LastIndexByte(head, '-'); i > 0 && strings.Trim(head[:i], "-") != "" {
			return i + 1
		}
	}
	return end
}

// isWrapSpace is the white space at which lines break: ASCII only.
func isWrapSpace(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

// wrapChunks cuts a line into words and the space between them; with hyphens
// also behind hyphens inside of words and around dashes.
func wrapChunks(s string, hyphens bool) []string {
	var chunks []string
	for s != "" {
		first, _ := utf8.DecodeRuneInString(s)
		space := isWrapSpace(first)
		end := strings.IndexFunc(s, func(r rune) bool { return isWrapSpace(r) != space })
		if end < 0 {
			end = len(s)
		}
		word := s[:end]
		s = s[end:]
		if space || !hyphens {
			chunks = append(chunks, word)
			continue
		}
		chunks = append(chunks, hyphenated(word)...)
	}
	return chunks
}

// hyphenated cuts a word behind hyphens between letters, and around dashes of two
// and more hyphens between words, as Python's textwrap does.
func hyphenated(word string) []string {
	runes := []rune(word)
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return 0
		}
		return runes[i]
	}
	letter := func(i int) bool { return isWordRune(at(i)) && !unicode.IsDigit(at(i)) }
	// dash gives the end of a dash that begins at i and stands between words.
	dash := func(i int) int {
		end := i
		for at(end) == '-' {
			end++
		}
		if prev := at(i - 1); end-i < 2 || !isWordRune(at(end)) || !isWordRune(prev) && !strings.ContainsRune(`!"'&.,?`, prev) {
			return 0
		}
		return end
	}
	hyphen := func(i int) bool {
		return at(i) == '-' && letter(i-1) && (letter(i-2) || at(i-2) == '-' && letter(i-3)) &&
			letter(i+1) && (letter(i+2) || at(i+2) == '-' && letter(i+3))
	}
	var parts []string
	for start := 0; start < len(runes); {
		end := dash(start)
		for i := start + 1; end == 0; i++ {
			switch {
			case hyphen(i):
				end = i + 1
			case i >= len(runes) || dash(i) > 0:
				end = i
			}
		}
		parts = append(parts, string(runes[start:end]))
		start = end
	}
	return parts
}
