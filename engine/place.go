package engine

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// placing is what is known of a text whose execution failed.
type placing struct {
	file     string // of the user
	name     string // of the node or test
	compiled *project.Compiled
	text     statement
	reads    []*relation
	catalog  *catalog
	names    []string // of relations that may have been meant; nil: those of the catalog
	columns  []string // of what is read, where they are known
}

// placeError gives an error that came from running a compiled text the place in
// the file that the user wrote. A caret is promised only where it is known to be
// right: the text at the engine's position agrees with the name that the error
// complains about, or nothing but published data is read, so that the position
// cannot be one in the text of a view.
func placeError(err error, p placing) error {
	var located interface {
		SQLOffset() int
		SQLDiagnostic(diag.Pos) diag.Diagnostic
	}
	if errors.As(err, &located) && p.compiled != nil {
		pos, callers := p.locate(located.SQLOffset())
		return withCallers(located.SQLDiagnostic(pos), callers)
	}
	var e *EngineError
	if !errors.As(err, &e) {
		return err
	}
	if p.catalog != nil {
		if explained := p.catalog.explain(err, p.reads); explained != err {
			return explained
		}
	}
	if e.Type == "Catalog" && strings.HasPrefix(e.NameType, "Table") && !strings.HasPrefix(e.NameType, "Table Function") {
		e = p.relationMeant(e)
	}
	if e.Subtype == "COLUMN_NOT_FOUND" && len(p.columns) > 0 && diag.Nearest(e.Name, e.Candidates) == "" {
		known := *e
		known.Candidates = p.columns
		e = &known
	}
	d := diag.Diagnostic{Code: codeOf(e), Msg: messageOf(e), Hint: hintOf(e), Pos: diag.Pos{File: p.file}}
	if d.Code == diag.SQLUnknownTable && strings.EqualFold(e.Name, p.name) {
		d.Hint = "{{ this }} stands inside {% if is_incremental() %} of an incremental model: elsewhere there is nothing published that it could read"
	}
	offset, width, ok := p.offset(e)
	if !ok {
		if views := p.views(); len(views) > 0 {
			d = d.WithNote(diag.Pos{}, "%s reads the views %s, in which this may have happened", p.name, strings.Join(views, ", "))
		}
		return d
	}
	var callers []diag.Pos
	d.Pos, callers = p.locate(offset)
	d.Width = width
	return withCallers(d, callers)
}

func (p placing) locate(offset int) (diag.Pos, []diag.Pos) {
	if p.compiled == nil || p.compiled.Result == nil {
		return diag.Pos{File: p.file}, nil
	}
	pos, callers, _ := p.compiled.Result.Locate(max(0, offset))
	return pos, callers
}

func withCallers(d diag.Diagnostic, callers []diag.Pos) diag.Diagnostic {
	for _, c := range callers {
		d = d.WithNote(c, "called here")
	}
	return d
}

// offset finds the engine's position in the compiled text, and how many
// characters are meant.
func (p placing) offset(e *EngineError) (offset, width int, ok bool) {
	if p.compiled == nil || p.text.text == "" {
		return 0, 0, false
	}
	if e.Position < 0 {
		if e.tooDeep() {
			offset = p.text.deepest()
			return offset, p.tokenWidth(offset), true
		}
		if offset, ok = p.onlyMention(e); !ok {
			offset, ok = p.onlySetOperation(e)
		}
		return offset, p.tokenWidth(offset), ok
	}
	start := strings.Index(e.Statement, p.text.text)
	if start < 0 {
		return 0, 0, false
	}
	offset = e.Position - start
	if offset < 0 || offset > len(p.text.text) {
		return 0, 0, false
	}
	if at, agrees := p.agrees(e, offset); agrees {
		return at, p.tokenWidth(at), true
	}
	switch {
	case e.Type == "Parser" && strings.Contains(e.Message, "end of input"):
		return len(p.text.text), 1, true
	case e.Type == "Parser" || len(p.views()) > 0 || e.Name != "":
		return 0, 0, false
	}
	return offset, p.tokenWidth(offset), true
}

// onlyMention finds the name that an error without a position complains about,
// where the text has it once.
func (p placing) onlyMention(e *EngineError) (int, bool) {
	first, _, _ := strings.Cut(e.Message, "\n")
	names := quotedName.FindAllStringSubmatch(first, -1)
	if e.Type != "Binder" || len(names) != 1 {
		return 0, false
	}
	at, found := 0, 0
	for _, t := range p.text.tokens {
		if word, ok := identifier(p.text.text, t); ok && strings.EqualFold(word, names[0][1]) {
			at, found = t.start, found+1
		}
	}
	return at, found == 1
}

// onlySetOperation finds the word that an error about a set operation means, where
// the text has one.
func (p placing) onlySetOperation(e *EngineError) (int, bool) {
	if !strings.HasPrefix(e.Message, "Set operations can only apply") {
		return 0, false
	}
	at, found := 0, 0
	for i, t := range p.text.tokens {
		word := strings.ToLower(p.text.text[t.start:t.end])
		if t.kind != tokWord || word != "union" && word != "except" && word != "intersect" {
			continue
		}
		// EXCEPT is also written behind a star.
		if i > 0 && p.text.text[p.text.tokens[i-1].start:p.text.tokens[i-1].end] == "*" {
			continue
		}
		at, found = t.start, found+1
	}
	return at, found == 1
}

// agrees reports whether the text at an offset is the name that the error
// complains about, and where exactly that stands.
func (p placing) agrees(e *EngineError, offset int) (int, bool) {
	name := e.Name
	if name == "" {
		_, near, _ := strings.Cut(e.Message, `at or near "`)
		name = strings.TrimSuffix(near, `"`)
		return offset, name != "" && strings.HasPrefix(p.text.text[offset:], name)
	}
	if !isWordStart(name[0]) && strings.HasPrefix(p.text.text[offset:], name) {
		return offset, true // an operator is a function by its own name
	}
	// A qualified name begins with its qualifier, and a quoted one with a quote.
	i, found := p.tokenAt(offset)
	if found && slices.Contains(likeOperators[:], name) && slices.Contains([]string{"like", "ilike", "not"}, p.text.wordAt(i)) {
		return offset, true
	}
	for ; found && i < len(p.text.tokens); i++ {
		t := p.text.tokens[i]
		word, isName := identifier(p.text.text, t)
		if isName && (strings.EqualFold(word, name) || strings.EqualFold(word, lastPart(name))) {
			return t.start, true
		}
		if !isName && p.text.text[t.start:t.end] != "." {
			return 0, false
		}
	}
	return 0, false
}

// likeOperators are the names of functions that are written as words.
var likeOperators = [...]string{"~~", "!~~", "~~*", "!~~*"}

func lastPart(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// tokenAt is the token that begins at an offset.
func (p placing) tokenAt(offset int) (int, bool) {
	return slices.BinarySearchFunc(p.text.tokens, offset, func(t token, at int) int { return t.start - at })
}

// tokenWidth is the number of characters of the token at an offset.
func (p placing) tokenWidth(offset int) int {
	i, ok := p.tokenAt(offset)
	if !ok {
		return 1
	}
	return utf8.RuneCountInString(p.text.text[p.text.tokens[i].start:p.text.tokens[i].end])
}

// views are the names of what is read and is not plain published data: an error
// at run time may have happened in its text.
func (p placing) views() []string {
	var names []string
	for _, r := range p.reads {
		if r.name == "" {
			continue
		}
		r.mu.Lock()
		plain := r.plain
		r.mu.Unlock()
		if !plain {
			names = append(names, r.node.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// codeOf is the stable code of an engine's error.
func codeOf(e *EngineError) diag.Code {
	switch {
	case e.Type == "Parser":
		return diag.SQLSyntax
	case e.Subtype == "COLUMN_NOT_FOUND":
		return diag.SQLUnknownColumn
	case e.Type == "Catalog" && strings.HasPrefix(e.NameType, "Table") || strings.HasPrefix(e.Message, "Referenced table "):
		return diag.SQLUnknownTable
	case e.Type == "Catalog" && strings.Contains(e.NameType, "Function") || e.Subtype == "NO_MATCHING_FUNCTION":
		return diag.SQLUnknownFunc
	case e.Type == "Binder" || e.Type == "Catalog" || e.Type == "Not implemented":
		return diag.SQLBind
	case e.Type == "Out of Memory" || e.Type == "IO":
		return diag.EngineResource
	}
	return diag.SQLRuntime
}

// messageOf is the first line of what the engine says; what it suggests is in
// the hint.
func messageOf(e *EngineError) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(e.Message), "\n")
	if e.Subtype == "NO_MATCHING_FUNCTION" && e.Name != "" {
		return strings.TrimSuffix(first, ".")
	}
	if e.tooDeep() {
		return "the query is nested more deeply here than the SQL engine takes"
	}
	if e.Type == "Out of Memory" {
		// What follows advises statements that no model can hold.
		first, _, _ = strings.Cut(first, " This limit was set by")
		return strings.TrimSuffix(first, ".")
	}
	if strings.HasPrefix(first, "Could not parse string") {
		first = strings.Join(strings.Fields(first+" "+rest), " ")
	}
	return strings.TrimSuffix(strings.TrimSuffix(first, "!"), ".")
}

// wideInteger finds a value of a HUGEINT that is too large for the type in which
// it is stored.
var wideInteger = regexp.MustCompile(`Could not cast value -?[0-9]{39} to DECIMAL\(38,0\)`)

// hintOf says what the engine thinks may have been meant.
func hintOf(e *EngineError) string {
	switch {
	case e.Type == "Conversion" && wideInteger.MatchString(e.Message):
		return "a HUGEINT (as of sum() over integers) is stored as DECIMAL(38,0): 38 digits; cast it to what holds it, or to VARCHAR"
	case e.tooDeep():
		return "cut it into steps: WITH, or models of their own; in a long chain of operators, as a + b + …, each one is a level"
	case e.Type == "Conversion":
		return "try_cast(… as …) gives NULL where a value does not fit"
	case strings.HasPrefix(e.Message, "Set operations can only apply"):
		return "every SELECT of it gives the same number of columns, in one order; UNION ALL BY NAME goes by their names"
	}
	if len(e.Candidates) == 0 || e.Subtype == "NO_MATCHING_FUNCTION" {
		if strings.Contains(e.Message, "max_temp_directory_size") {
			return "the disk of target/ has no room left for the engine's temporary files: make room, or name another folder with --target-path; raising engine.memory_limit makes fewer of them"
		}
		if e.Type == "Out of Memory" {
			return "raise engine.memory_limit, lower engine.threads, or make sure that target/ can hold temporary files"
		}
		if e.Type == "IO" {
			return lake.FaultHint(e.Message)
		}
		if len(e.Candidates) > 0 {
			return "there is " + calls(e.Candidates)
		}
		return ""
	}
	if e.needsWindow() {
		return fmt.Sprintf("%s needs a window: %s over (partition by … order by …)", e.Name, e.Name+"()")
	}
	if near := diag.Nearest(e.Name, e.Candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if strings.HasPrefix(e.NameType, "Table") || strings.Contains(e.NameType, "Function") {
		return ""
	}
	const shown = 20
	if n := len(e.Candidates) - shown; n > 0 {
		return fmt.Sprintf("there is %s, and %d more", strings.Join(e.Candidates[:shown], ", "), n)
	}
	return "there is " + strings.Join(e.Candidates, ", ")
}
