package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"rbt/materialize"
)

// EngineError is what DuckDB says of a statement, taken apart. Position is the
// 0-based byte offset in Statement, -1 where the engine gave none.
type EngineError struct {
	Type       string // "Binder", "Conversion", …
	Subtype    string // "COLUMN_NOT_FOUND", …
	Message    string
	Position   int
	Name       string // the name that is wrong
	NameType   string // Table, Scalar Function, Type, …
	Candidates []string
	Statement  string
}

// Error gives DuckDB's message with its kind.
func (e *EngineError) Error() string {
	if e.Type == "" {
		return e.Message
	}
	return e.Type + " error: " + e.Message
}

// Is tells materialize that memory is what was short.
func (e *EngineError) Is(target error) bool {
	return target == materialize.ErrMemory && e.Type == "Out of Memory"
}

// engineError takes a driver error apart. A cancelled context wins: then what
// the engine says is only that it was interrupted.
func engineError(ctx context.Context, statement string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	e := parseEngineError(err)
	e.Statement = statement
	return e
}

// plainError is a driver error in words, for statements of which no user wrote
// a part.
func plainError(err error) error {
	if err == nil {
		return nil
	}
	return parseEngineError(err)
}

// parseEngineError reads the JSON that errors_as_json gives; some messages
// carry a prefix before it, and a few errors are plain text.
func parseEngineError(err error) *EngineError {
	text := err.Error()
	e := &EngineError{Message: text, Position: -1}
	start := strings.IndexByte(text, '{')
	if start < 0 {
		if kind, message, ok := strings.Cut(text, " Error: "); ok && !strings.ContainsAny(kind, ":\"'\n") {
			e.Type, e.Message = kind, message
		}
		return e
	}
	var raw map[string]string
	if json.NewDecoder(strings.NewReader(text[start:])).Decode(&raw) != nil || raw["exception_message"] == "" {
		return e
	}
	e.Type, e.Subtype, e.Message = raw["exception_type"], raw["error_subtype"], raw["exception_message"]
	e.Name, e.NameType = raw["name"], raw["type"]
	if p, err := strconv.Atoi(raw["position"]); err == nil {
		e.Position = p
	}
	if c := raw["candidates"]; c != "" {
		e.Candidates = splitCandidates(c)
	}
	e.reword()
	return e
}

// isEngineError reports whether DuckDB itself refused the statement, and not
// the driver.
func isEngineError(err error) bool {
	var de *duckdb.Error
	return errors.As(err, &de)
}
