package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// DuckDB 1.5.6 gives name and candidates apart for some errors only; for the
// others they are taken from the message.
var (
	// Of a view over no rows it says "Values list" where it says "Table" of all else.
	noSuchColumn    = regexp.MustCompile(`^(?:Values list|Table) "(.*)" does not have a column named "(.*)"`)
	candidateTables = regexp.MustCompile(`(?m)^Candidate tables: (.*)$`)
	quotedName      = regexp.MustCompile(`"([^"\n]+)"`)
	candidateCall   = regexp.MustCompile(`,([^,()]+\()`)
)

// windowFunctions have a meaning only with OVER. Without it the engine says that
// they do not exist, and suggests something else.
var windowFunctions = []string{
	"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value", "fill",
}

// reword takes names out of a message that the engine gives in words only.
func (e *EngineError) reword() {
	first, _, _ := strings.Cut(e.Message, "\n")
	switch {
	case e.Name != "":
	case noSuchColumn.MatchString(first):
		m := noSuchColumn.FindStringSubmatch(first)
		e.Message, e.Name = fmt.Sprintf("%q has no column %q", m[1], m[2]), m[2]
		e.Subtype = "COLUMN_NOT_FOUND"
	case e.Type == "Binder" && strings.HasPrefix(first, "Referenced table "):
		if m := quotedName.FindStringSubmatch(first); m != nil {
			e.Name = m[1]
		}
		if m := candidateTables.FindStringSubmatch(e.Message); m != nil {
			for _, name := range quotedName.FindAllStringSubmatch(m[1], -1) {
				e.Candidates = append(e.Candidates, name[1])
			}
		}
	}
}

// splitCandidates takes a list of names or of calls with their types apart.
func splitCandidates(text string) []string {
	if strings.Contains(text, "(") {
		return strings.Split(candidateCall.ReplaceAllString(text, "\n$1"), "\n")
	}
	return strings.Split(text, ",")
}

// needsWindow reports whether an unknown function is one that needs OVER.
func (e *EngineError) needsWindow() bool {
	return e.Type == "Catalog" && slices.Contains(windowFunctions, strings.ToLower(e.Name))
}

// calls gives the candidates of a call for a sentence, a handful of them.
func calls(candidates []string) string {
	const shown = 4
	more := ""
	if n := len(candidates) - shown; n > 0 {
		candidates, more = candidates[:shown], fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(candidates, "; ") + more
}

// withoutQualifier gives the statement with blanks in the place of what stands
// before a column that its table does not have. Of a column without a table the
// engine says which ones are near.
func (s statement) withoutQualifier(err error) (string, bool) {
	if err == nil || !isEngineError(err) {
		return "", false
	}
	e := parseEngineError(err)
	if e.Subtype != "COLUMN_NOT_FOUND" || len(e.Candidates) > 0 || e.Position < 0 {
		return "", false
	}
	at, ok := placing{text: s}.agrees(e, e.Position)
	if !ok || at <= e.Position {
		return "", false
	}
	return s.text[:e.Position] + strings.Repeat(" ", at-e.Position) + s.text[at:], true
}

// prepareError is the engine's error about a text, nil where it has none.
func prepareError(conn *duckdb.Conn, text string) error {
	prepared, err := conn.Prepare(text)
	if err == nil {
		err = prepared.Close()
	}
	return err
}

// withCandidates gives an error the candidates of another one about the same name.
func withCandidates(ctx context.Context, statement string, err, other error) error {
	var e *EngineError
	err = engineError(ctx, statement, err)
	if other == nil || !errors.As(err, &e) {
		return err
	}
	if o := parseEngineError(other); strings.EqualFold(o.Name, e.Name) {
		e.Candidates = o.Candidates
	}
	return err
}

// relationMeant gives an error about an unknown relation the relations of the
// project as candidates: the engine knows only those that were read before.
func (p placing) relationMeant(e *EngineError) *EngineError {
	names := p.names
	if names == nil && p.catalog != nil {
		names = p.catalog.names()
	}
	known := *e
	known.Candidates = names
	for _, name := range names {
		// A table of a source is named with its group.
		if strings.EqualFold(lastPart(name), e.Name) {
			known.Candidates, known.Name = []string{name}, name
			break
		}
	}
	return &known
}

// names are those of all relations, as SQL writes them, sorted.
func (c *catalog) names() []string {
	names := make([]string, 0, len(c.relations))
	for _, r := range c.relations {
		if r.schema == "main" {
			names = append(names, r.name)
		} else {
			names = append(names, r.schema+"."+r.name)
		}
	}
	slices.Sort(names)
	return names
}
