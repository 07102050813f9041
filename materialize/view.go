package materialize

import "rbt/internal/lake"

// commitView publishes a view: its receipt is all that there is of it, and
// replacing that is the commit.
func (p *publication) commitView(staged Staged) (lake.Receipt, error) {
	o, err := single(staged)
	if err != nil {
		return lake.Receipt{}, err
	}
	r := p.receipt(p.id, []lake.Output{{Relation: o.Relation, Columns: o.Columns}})
	r.SQL = staged.SQL
	return r, p.lake.WriteReceipt(r)
}
