package project

import (
	"strings"

	"rbt/internal/diag"
)

// split is a model file cut into frontmatter and body.
type split struct {
	yaml     string // between the fences
	has      bool   // there is frontmatter
	closed   bool
	body     string
	bodyLine int // line on which body begins
}

const bom = "\ufeff"

// splitFrontmatter cuts a file. The first line exactly `---` opens the
// frontmatter and the next line exactly `---` closes it; a byte order mark, CR LF
// and a lone CR are accepted. Anywhere else `---` is SQL. The YAML begins on line 2.
func splitFrontmatter(text string) split {
	text = strings.TrimPrefix(text, bom)
	first, rest, _ := cutLine(text)
	if first != "---" {
		return split{body: text, bodyLine: 1}
	}
	line := 2
	for pos := 0; pos < len(rest); line++ {
		this, after, size := cutLine(rest[pos:])
		if this == "---" {
			return split{yaml: rest[:pos], has: true, closed: true, body: after, bodyLine: line + 1}
		}
		pos += size
	}
	return split{yaml: rest, has: true, bodyLine: line}
}

// cutLine gives the first line without its end, what follows, and the bytes
// that line and end take.
func cutLine(s string) (line, rest string, size int) {
	line, rest, _ = diag.CutLine(s)
	return line, rest, len(s) - len(rest)
}
