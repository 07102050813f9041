package engine

import (
	"context"

	"rbt/internal/diag"
)

// jsonQuery gives a query over JSON files.
func (t *fileTable) jsonQuery(context.Context) (string, error) {
	return "", diag.Errorf(diag.SourceOption, t.pos, "%s: rbt cannot read files of format %s", t.name, t.format)
}
