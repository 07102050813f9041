package engine

import (
	"context"
	"fmt"

	"rbt/materialize"
)

// ingest makes a Source of the records that a model declares.
func (b *builder) ingest(context.Context) (materialize.Source, error) {
	return nil, fmt.Errorf("%s cannot be ingested", b.step.Node.Name)
}
