package diag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SourceText returns the text of a file as named in a Pos, or false where it
// cannot be had; then the source line is left out.
type SourceText func(file string) (string, bool)

// maxSourceLine is the longest source line that is printed whole, in
// characters; a longer one (generated SQL, one-line JSON) is cut around the
// caret, so that a terminal stays readable.
const maxSourceLine = 160

// Render gives the diagnostic as a user reads it: place and message, the
// source line with a caret, further places, and the hint.
func Render(d Diagnostic, text SourceText) string {
	var b strings.Builder
	if d.Severity == Remark {
		// What a template says is no mistake: its place is enough.
		return fmt.Sprintf("log: %s\n  --> %s\n", d.Msg, d.Pos)
	}
	word := "error"
	if d.Severity == Warning {
		word = "warning"
	}
	if d.Code != "" {
		fmt.Fprintf(&b, "%s[%s]: ", word, d.Code)
	} else {
		fmt.Fprintf(&b, "%s: ", word)
	}
	b.WriteString(d.Msg)
	b.WriteByte('\n')
	if !d.Pos.IsZero() {
		fmt.Fprintf(&b, "  --> %s\n", d.Pos)
		writeSource(&b, d.Pos, d.Width, text)
	}
	for _, n := range d.Notes {
		if n.Pos.IsZero() {
			fmt.Fprintf(&b, "  note: %s\n", n.Msg)
			continue
		}
		fmt.Fprintf(&b, "  note: %s: %s\n", n.Pos, n.Msg)
		writeSource(&b, n.Pos, 1, text)
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "  help: %s\n", strings.ReplaceAll(d.Hint, "\n", "\n        "))
	}
	return b.String()
}

// RenderList renders every diagnostic of a sorted list, an empty line between.
func RenderList(l List, text SourceText) string {
	parts := make([]string, len(l))
	for i, d := range l {
		parts[i] = Render(d, text)
	}
	return strings.Join(parts, "\n")
}

func writeSource(b *strings.Builder, pos Pos, width int, text SourceText) {
	if pos.Line == 0 || text == nil {
		return
	}
	src, ok := text(pos.File)
	if !ok {
		return
	}
	line, ok := lineOf(src, pos.Line)
	if !ok {
		return
	}
	runes := []rune(strings.ToValidUTF8(line, string(utf8.RuneError)))
	start, end := 0, len(runes)
	if len(runes) > maxSourceLine {
		start = max(0, pos.Col-1-maxSourceLine/2)
		end = min(len(runes), start+maxSourceLine)
	}
	shown := string(runes[start:end])
	number := fmt.Sprint(pos.Line)
	fmt.Fprintf(b, "   %s | %s\n", number, shown)
	if pos.Col == 0 || pos.Col > len(runes)+1 {
		return
	}
	fmt.Fprintf(b, "   %s | ", strings.Repeat(" ", len(number)))
	for _, r := range runes[start : pos.Col-1] {
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteString(strings.Repeat("^", max(1, min(width, end-(pos.Col-1)))))
	b.WriteByte('\n')
}

func lineOf(src string, n int) (string, bool) {
	for ; n > 1; n-- {
		_, rest, ok := CutLine(src)
		if !ok {
			return "", false
		}
		src = rest
	}
	line, _, _ := CutLine(src)
	return line, true
}

// CutLine gives the first line of a text without its end, and what follows; ok is
// false for the last one. A line ends with LF, CR LF or a lone CR, as in templates,
// in YAML and in most editors.
func CutLine(src string) (line, rest string, ok bool) {
	i := strings.IndexAny(src, "\r\n")
	switch {
	case i < 0:
		return src, "", false
	case strings.HasPrefix(src[i:], "\r\n"):
		return src[:i], src[i+2:], true
	default:
		return src[:i], src[i+1:], true
	}
}

// LineCol turns a byte offset of src into line and column as Pos counts them.
// An offset past the end gives the place just after the last character.
func LineCol(src string, offset int) (line, col int) {
	offset = max(0, min(offset, len(src)))
	before := src[:offset]
	if strings.HasPrefix(src[offset:], "\n") {
		before = strings.TrimSuffix(before, "\r") // half of a line's end is in its line
	}
	line = 1
	for {
		_, rest, ok := CutLine(before)
		if !ok {
			return line, 1 + utf8.RuneCountInString(before)
		}
		line, before = line+1, rest
	}
}
