package project

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// maxLocatedLines bounds the search for the place of a syntax error, whose cost
// is quadratic; in longer texts the line that yaml.v3 names is used.
const maxLocatedLines = 200

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError makes a diagnostic of an error of yaml.v3, which knows no column
// and, for most errors, names the line at which the surrounding block begins.
// The place is searched instead: it is where a prefix of the text stops being
// YAML and no longer prefix is YAML again. For a quote or bracket that is never
// closed that is the quote or bracket itself.
func (y yamlText) syntaxError(err error) diag.Diagnostic {
	msg := yamlErrorLine.ReplaceAllString(err.Error(), "")
	line, col := y.locate()
	if line == 0 {
		line = 1
		if m := yamlErrorLine.FindStringSubmatch(err.Error()); m[1] != "" {
			line = atoi(m[1])
		}
	}
	d := diag.Errorf(diag.YAMLSyntax, diag.Pos{File: y.file, Line: y.line + line - 1, Col: col},
		"this is not YAML: %s", msg)
	if hint := syntaxHint(msg, nthLine(y.text, line)); hint != "" {
		d = d.WithHint("%s", hint)
	}
	return d
}

func atoi(digits string) int {
	n := 0
	for _, d := range digits {
		n = min(n*10+int(d-'0'), 1<<30)
	}
	return n
}

func nthLine(text string, n int) string {
	for {
		line, rest, ok := diag.CutLine(text)
		if n--; n <= 0 || !ok {
			return line
		}
		text = rest
	}
}

// openBracket reports whether a value opens more brackets than it closes.
func openBracket(value string) bool {
	return strings.Count(value, "[")+strings.Count(value, "{") > strings.Count(value, "]")+strings.Count(value, "}")
}

// syntaxHint says what to do about the mistakes that people make most.
func syntaxHint(msg, line string) string {
	trimmed := strings.TrimLeft(line, " ")
	_, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch {
	case strings.HasPrefix(trimmed, "\t"):
		return "indent with spaces: YAML does not allow tabs"
	case strings.Contains(msg, "found undefined tag handle"), strings.Contains(msg, "unknown anchor"), strings.Contains(msg, "did not find expected alphabetic or numeric character"):
		return "put the value in quotes: *, & and ! have a meaning of their own in YAML"
	case strings.Contains(msg, "did not find expected '-' indicator"):
		return "check the indentation: the keys of one item of a list stand in one column"
	case strings.HasPrefix(msg, "did not find expected key") && !openBracket(value):
		return "check the indentation, and that every key is followed by a colon and a space"
	case strings.Contains(msg, "mapping values are not allowed") && strings.Count(line+" ", ": ") < 2:
		return "check the indentation: this key stands deeper than those beside it"
	case strings.Contains(msg, "mapping values are not allowed"):
		return "put the value in quotes: it contains `: `"
	case strings.HasPrefix(value, "%"), strings.HasPrefix(value, "@"), strings.HasPrefix(value, "`"):
		return "put the value in quotes: " + value[:1] + " has a meaning of its own in YAML"
	case strings.HasPrefix(value, "{{"), strings.HasPrefix(value, "{%"):
		return "put the value in quotes: `{` begins a mapping in YAML"
	case strings.HasPrefix(value, `"`), strings.HasPrefix(value, "'"):
		return "check that the quotes are closed, and that nothing follows them"
	case strings.HasPrefix(value, "["), strings.HasPrefix(value, "{"):
		return "check that the bracket is closed, and that commas stand between its values"
	case strings.Contains(msg, "did not find expected key"), strings.Contains(msg, "could not find expected ':'"):
		return "check the indentation, and that every key is followed by a colon and a space"
	}
	return ""
}

// locate finds line and column of a syntax error, 0 where it would cost too
// much or the text is YAML after all.
func (y yamlText) locate() (line, col int) {
	ends := lineEnds(y.text)
	if len(ends) > maxLocatedLines {
		return 0, 0
	}
	n := len(ends)
	for n > 0 && !isYAML(y.text[:ends[n-1]]) {
		n--
	}
	if n == len(ends) {
		return 0, 0
	}
	start := 0
	if n > 0 {
		start = ends[n-1]
	}
	end := ends[n]
	if end-start > maxLocatedLines {
		return n + 1, 0
	}
	for end > start {
		_, size := utf8.DecodeLastRuneInString(y.text[start:end])
		if isYAML(y.text[:end-size]) {
			return n + 1, 1 + utf8.RuneCountInString(y.text[start:end-size])
		}
		end -= size
	}
	return n + 1, 1
}

// lineEnds gives the offset after each line, its line end included.
func lineEnds(text string) []int {
	var ends []int
	for rest, ok := text, true; ok; {
		if _, rest, ok = diag.CutLine(rest); ok {
			ends = append(ends, len(text)-len(rest))
		}
	}
	if len(ends) == 0 || ends[len(ends)-1] < len(text) {
		ends = append(ends, len(text))
	}
	return ends
}

func isYAML(text string) bool {
	_, err := decodeNext(yaml.NewDecoder(strings.NewReader(text)))
	return err == nil || err.Error() == "EOF"
}
