package project

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"rbt/internal/diag"
)

// deviceNames cannot name a file on Windows, with or without an extension.
var deviceNames = []string{
	"con", "prn", "aux", "nul",
	"com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
}

// reservedSchemas are names of schemas and catalogs that DuckDB or rbt owns.
var reservedSchemas = []string{"main", "temp", "system", "memory", "information_schema", "pg_catalog"}

// maxNameBytes keeps <name>.rbt_incremental.json within the 255 bytes that
// common file systems allow a name.
const maxNameBytes = 200

// badName reports a name that cannot be used.
func badName(pos diag.Pos, what, name, problem string) diag.Diagnostic {
	d := diag.Errorf(diag.BadName, pos, "%q cannot be the name of %s: %s", name, what, problem)
	d.Width = len([]rune(name))
	return d
}

// nameProblem says why a name cannot name a model, seed or source, "" if it
// can: letters, digits and _, in Unicode NFC, nothing that Windows cannot hold.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxNameBytes:
		return fmt.Sprintf("it is longer than %d bytes", maxNameBytes)
	case !norm.NFC.IsNormalString(name):
		return "it is not in Unicode NFC, so that two names could look alike"
	case slices.Contains(deviceNames, strings.ToLower(name)):
		return "Windows takes it for a device"
	}
	for _, r := range name {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return fmt.Sprintf("it holds %q, and names have letters, digits and _ only", r)
		}
	}
	return ""
}

// folded gives the form in which names are compared: case does not count.
func folded(name string) string {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 0x80 {
			return strings.ToLower(norm.NFC.String(name))
		} else if 'A' <= c && c <= 'Z' {
			return strings.ToLower(name)
		}
	}
	return name
}

// folderProblem says why a sub-folder of the lake cannot be used, "" if it can.
func folderProblem(path string) string {
	if path == "" {
		return ""
	}
	if strings.HasPrefix(path, "/") {
		return "it must be a folder within the lake, not an absolute path"
	}
	for _, segment := range strings.Split(path, "/") {
		base, _, _ := strings.Cut(strings.ToLower(segment), ".")
		switch {
		case segment == "", segment == ".":
			return "it has an empty part"
		case segment == "..":
			return "it leaves the lake"
		case strings.HasPrefix(segment, "."), strings.HasPrefix(segment, "_rbt"):
			return fmt.Sprintf("%q is kept for rbt", segment)
		case slices.Contains(deviceNames, base):
			return fmt.Sprintf("%q is a device on Windows", segment)
		case strings.HasSuffix(segment, "."), strings.HasSuffix(segment, " "):
			return fmt.Sprintf("%q ends in a dot or space, which Windows cannot hold", segment)
		case strings.HasSuffix(folded(segment), ".parquet"), strings.HasSuffix(folded(segment), ".parts"):
			return fmt.Sprintf("%q looks like a file that rbt publishes", segment)
		case strings.ContainsAny(segment, `\:*?"<>|`), strings.ContainsFunc(segment, unicode.IsControl):
			return fmt.Sprintf("%q holds a character that a folder cannot have", segment)
		}
	}
	return ""
}

// typeProblem says why a text is no DuckDB type, "" if it may be one. Types
// stand in SQL unquoted, so only names, numbers, quoted names and literals,
// parentheses, brackets and commas pass.
func typeProblem(text string) string {
	var open []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(', c == '[':
			open = append(open, c)
		case c == ')', c == ']':
			want := byte('(')
			if c == ']' {
				want = '['
			}
			if len(open) == 0 || open[len(open)-1] != want {
				return fmt.Sprintf("%q has no opening bracket", c)
			}
			open = open[:len(open)-1]
		case c == '"', c == '\'':
			end := quotedEnd(text, i)
			if end < 0 {
				return fmt.Sprintf("%c is not closed", c)
			}
			i = end
		case c == ' ', c == ',', c == '_', '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c >= 0x80:
		default:
			return fmt.Sprintf("%q cannot stand in a type", c)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%q is not closed", open[len(open)-1])
	}
	return ""
}

// quotedEnd gives the index of the quote that closes the one at start, -1 if
// there is none; a doubled quote is part of the text.
func quotedEnd(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		if text[i] != text[start] {
			continue
		}
		if i+1 < len(text) && text[i+1] == text[start] {
			i++
			continue
		}
		return i
	}
	return -1
}

// quoteName gives a name as SQL takes it.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
