package engine

import "strings"

// What the engine says of a text that is nested too deeply is about its own
// limits, and mostly without a place.
const (
	parserDepth     = "memory exhausted"
	expressionDepth = "Max expression depth limit"
)

// tooDeep reports whether an error is about how deep a text is nested.
func (e *EngineError) tooDeep() bool {
	return strings.HasPrefix(e.Message, parserDepth) || strings.HasPrefix(e.Message, expressionDepth)
}

// separators end an expression of a plain query.
var separators = set(",", "select", "from", "where", "group", "having", "order", "by", "on", "when", "then", "else", "union", "qualify", "limit")

// deepest is where the text is nested most: the innermost parenthesis, or the
// first operator of the longest chain in one expression, each of which holds all
// those before it.
func (s statement) deepest() int {
	type level struct{ first, chain int }
	levels := []level{{}}
	at, most := s.tokens[0].start, 0
	for _, t := range s.tokens {
		word := strings.ToLower(s.text[t.start:t.end])
		here := &levels[len(levels)-1]
		switch {
		case word == "(" || word == "[" || word == "case":
			levels = append(levels, level{})
			if len(levels)-1 > most {
				at, most = t.start, len(levels)-1
			}
		case word == ")" || word == "]" || word == "end":
			levels = levels[:max(1, len(levels)-1)]
		case separators[word]:
			*here = level{}
		case t.kind == tokOp:
			if here.chain++; here.chain == 1 {
				here.first = t.start
			}
			if here.chain > most {
				at, most = here.first, here.chain
			}
		}
	}
	return at
}
