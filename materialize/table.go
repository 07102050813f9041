package materialize

import (
	"fmt"

	"rbt/internal/lake"
)

// commitFile publishes a table or seed of one file.
func (p *publication) commitFile(staged Staged) (lake.Receipt, error) {
	o, err := single(staged)
	if err != nil {
		return lake.Receipt{}, err
	}
	if len(o.Files) != 1 {
		return lake.Receipt{}, fmt.Errorf("one file is needed and %d were staged; use layout: parts", len(o.Files))
	}
	file := o.Files[0]
	r := p.receipt(p.id, []lake.Output{{
		Relation:    o.Relation,
		Files:       []lake.File{{Path: p.place.Path(), Bytes: file.Bytes, Commit: p.id}},
		Rows:        o.Rows,
		Columns:     o.Columns,
		ContentHash: o.ContentHash,
	}})
	return r, p.lake.CommitFile(file.Path, r)
}

// single is the output of a node that has one relation.
func single(staged Staged) (StagedOutput, error) {
	if len(staged.Outputs) != 1 {
		return StagedOutput{}, fmt.Errorf("one relation is needed and %d were staged", len(staged.Outputs))
	}
	return staged.Outputs[0], nil
}
