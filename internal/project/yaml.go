package project

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// Limits on one YAML text. Aliases let a few lines stand for billions of
// values, and recursion follows nesting, so both are bounded before anything
// walks the tree.
const (
	maxYAMLDepth    = 100
	maxAliasedNodes = 200_000
)

// yamlText is one YAML text within a file: the whole file, frontmatter, or a
// command line value. line is the line of the file on which it begins.
type yamlText struct {
	file string
	text string
	line int
}

// parse gives the root value of the text with lines of the file, or nil where
// the text holds no value. Every problem is a diagnostic.
func (y yamlText) parse() (*yaml.Node, diag.List) {
	if i := invalidOffset(y.text); i < len(y.text) {
		pos := y.posAt(i)
		return nil, diag.List{notUTF8(y.file, pos.Line, pos.Col)}
	}
	if strings.TrimSpace(y.text) == "" {
		return nil, nil
	}
	dec := yaml.NewDecoder(strings.NewReader(y.text))
	root, err := decodeNext(dec)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, diag.List{y.syntaxError(err)}
	}
	second, err := decodeNext(dec)
	if err == nil {
		y.place(second)
		return nil, diag.List{diag.Errorf(diag.YAMLSyntax, y.posOf(second),
			"a second YAML document begins here").WithHint("a file holds one document: remove the line `---` or `...` above")}
	}
	if !errors.Is(err, io.EOF) {
		return nil, diag.List{y.syntaxError(err)}
	}
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	y.place(root)
	if list := y.checkShape(root); list != nil {
		return nil, list
	}
	if isNull(root) {
		return nil, nil
	}
	return root, nil
}

// decodeNext reads one document as a tree. yaml.v3 (3.0.1) panics with plain
// strings on a few malformed texts, which its own recovery lets through; they
// are syntax errors like any other. No longer needed once FuzzYAML passes
// without it.
func decodeNext(dec *yaml.Decoder) (n *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, fmt.Errorf("yaml: %v", r)
		}
	}()
	n = new(yaml.Node)
	if err := dec.Decode(n); err != nil {
		return nil, err
	}
	return n, nil
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// invalidOffset gives the offset of the first byte that is not UTF-8, the length
// of the text if there is none.
func invalidOffset(s string) int {
	if utf8.ValidString(s) {
		return len(s)
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(s)
}

func (y yamlText) posAt(offset int) diag.Pos {
	line, col := diag.LineCol(y.text, offset)
	return diag.Pos{File: y.file, Line: y.line + line - 1, Col: col}
}

func (y yamlText) posOf(n *yaml.Node) diag.Pos {
	return diag.Pos{File: y.file, Line: n.Line, Col: n.Column}
}

// place turns the lines of a tree into lines of the file. yaml.v3 also counts
// U+0085, U+2028 and U+2029 as line ends, which editors do not, so texts that hold
// one are counted again.
func (y yamlText) place(root *yaml.Node) {
	lineOf := func(n int) int { return n + y.line - 1 }
	if strings.ContainsAny(y.text, "\u0085\u2028\u2029") {
		lines := fileLines(y.text)
		lineOf = func(n int) int { return lines[min(n, len(lines)-1)] + y.line - 1 }
	} else if y.line == 1 {
		return
	}
	walkNodes(root, func(n *yaml.Node) { n.Line = lineOf(max(n.Line, 1)) })
}

// fileLines maps a line as yaml.v3 counts (from 1) to a line as editors do.
func fileLines(text string) []int {
	lines, line := []int{0, 1}, 1
	for i, r := range text {
		switch {
		case r == '\n', r == '\r' && !strings.HasPrefix(text[i+1:], "\n"):
			line++
		case r == '\u0085', r == '\u2028', r == '\u2029':
		default:
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// walkNodes visits every node that is written in the text, each once; aliases
// are not followed.
func walkNodes(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, c := range n.Content {
		walkNodes(c, visit)
	}
}

// checkShape refuses what later walks could not survive: deep nesting, an
// anchor that contains itself, aliases that multiply, and tags that are not
// YAML's own.
func (y yamlText) checkShape(root *yaml.Node) diag.List {
	c := shapeChecker{y: y, size: map[*yaml.Node]int{}}
	c.measure(root, 1)
	return c.list
}

type shapeChecker struct {
	y    yamlText
	size map[*yaml.Node]int // of anchored values, with aliases expanded; -1 while being measured
	list diag.List
}

func (c *shapeChecker) refuse(n *yaml.Node, format string, args ...any) {
	if len(c.list) == 0 {
		c.list = append(c.list, diag.Errorf(diag.YAMLSyntax, c.y.posOf(n), format, args...))
	}
}

func (c *shapeChecker) measure(n *yaml.Node, depth int) int {
	if len(c.list) > 0 {
		return 1
	}
	if depth > maxYAMLDepth {
		c.refuse(n, "values are nested more than %d deep", maxYAMLDepth)
		return 1
	}
	if n.Kind == yaml.AliasNode {
		return c.measureAlias(n, depth)
	}
	if n.Kind == yaml.ScalarNode && n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" && n.Tag != "!!int" &&
		n.Tag != "!!float" && n.Tag != "!!bool" && n.Tag != "!!null" {
		c.refuse(n, "the YAML tag %s is not supported", n.Tag)
	}
	if n.Anchor != "" {
		c.size[n] = -1
	}
	size := 1
	for _, child := range n.Content {
		size += c.measure(child, depth+1)
	}
	if size > maxAliasedNodes && n.Anchor == "" && c.hasAliases() {
		c.refuse(n, "aliases make this more than %d values", maxAliasedNodes)
	}
	if n.Anchor != "" {
		c.size[n] = size
	}
	return size
}

// hasAliases keeps large texts without any anchor out of the alias limit.
func (c *shapeChecker) hasAliases() bool { return len(c.size) > 0 }

func (c *shapeChecker) measureAlias(n *yaml.Node, depth int) int {
	size, known := c.size[n.Alias]
	switch {
	case known && size < 0:
		c.refuse(n, "the anchor %q contains itself", n.Value)
		return 1
	case !known:
		size = c.measure(n.Alias, depth+1)
	}
	if size > maxAliasedNodes {
		c.refuse(n, "aliases make this more than %d values", maxAliasedNodes)
	}
	return size
}
