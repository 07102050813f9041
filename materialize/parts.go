package materialize

import (
	"maps"
	"path"
	"path/filepath"

	"rbt/internal/lake"
)

// completeIncrement adds the published parts to what was staged and takes a new
// file without rows out of it: an increment without rows adds no part.
func (p *publication) completeIncrement(staged Staged) (Staged, error) {
	base := p.previous.Manifest
	o := &staged.Outputs[0]
	if err := fits(o.Columns, base.Columns); err != nil {
		return Staged{}, err
	}
	if o.Rows == 0 {
		o.Files = nil
	}
	for _, part := range base.Parts {
		o.Kept = append(o.Kept, filepath.Join(p.lake.Root(), filepath.FromSlash(path.Join(p.place.Path(), part))))
	}
	o.KeptRows = base.TotalRows
	return staged, nil
}

// fits checks that a Source that is no query staged the columns of the published
// parts: a Query casts to them, and drifts before it writes.
func fits(columns, published []lake.Column) error {
	types, problems := parsed(columns)
	targets, more := parsed(published)
	if problems = append(problems, more...); len(problems) > 0 {
		return problems.Sort()
	}
	drift := &DriftError{}
	for i, t := range targets {
		switch {
		case i >= len(types):
			drift.Differences = append(drift.Differences, published[i].Name+" is missing")
		case columns[i].Name != published[i].Name:
			drift.Differences = append(drift.Differences, columns[i].Name+" stands in the place of "+published[i].Name)
		case !types[i].equal(t):
			drift.Differences = append(drift.Differences, differences(published[i].Name, types[i], t)...)
		}
	}
	for i := len(targets); i < len(types); i++ {
		drift.Differences = append(drift.Differences, columns[i].Name+" is new")
	}
	if len(drift.Differences) > 0 {
		return drift
	}
	return nil
}

// commitParts publishes the parts of a table or an incremental node: those of an
// increment after the published ones, those of a full build in their place.
func (p *publication) commitParts(staged Staged, done *Published) error {
	o, err := single(staged)
	if err != nil {
		return err
	}
	if p.append && len(o.Files) == 0 {
		return p.commitNothing(done)
	}
	m := p.manifest(o.Columns)
	var moves []lake.Move
	for i, f := range o.Files {
		if f.Rows == 0 && p.Form == lake.FormIncremental {
			continue // a first publish without rows has no parts, only columns
		}
		name := lake.PartName(p.number + int64(i))
		moves = append(moves, lake.Move{From: f.Path, To: path.Join(p.place.Path(), name)})
		p.addPart(m, name, f)
	}
	outputs := []lake.Output{{Relation: o.Relation, Rows: m.TotalRows, Columns: m.Columns, ContentHash: o.ContentHash}}
	for _, part := range m.Parts {
		outputs[0].Files = append(outputs[0].Files,
			lake.File{Path: path.Join(p.place.Path(), part), Bytes: m.PartInfo[part].Bytes, Commit: m.PartInfo[part].Commit})
	}
	outputs[0].Greatest = lake.NewGreatest(outputs[0].Files, p.greatest(o))
	r := p.receipt(p.id, outputs)
	r.NextPart = m.NextPart
	done.Receipt, done.Manifest = r, m
	return p.lake.CommitManifest(moves, p.place, m, r)
}

// greatest gives the greatest values over what is staged and what stays. Of that they
// are known, unless an earlier version published it.
func (p *publication) greatest(o StagedOutput) map[string]string {
	if p.Greatest == nil || p.Form != lake.FormIncremental {
		return nil
	}
	files := make([]string, len(o.Files))
	for i, f := range o.Files {
		files[i] = f.Path
	}
	values := p.Greatest(files, o.Columns)
	if len(o.Kept) == 0 {
		return values
	}
	kept := p.previous.Receipt.Outputs[0].GreatestValues()
	if kept == nil {
		kept = p.Greatest(o.Kept, o.Columns)
	}
	return lake.GreaterOf(kept, values)
}

// manifest starts the new manifest: the published one for an increment, an
// empty one for a full build.
func (p *publication) manifest(columns []lake.Column) *lake.Manifest {
	m := &lake.Manifest{Columns: columns, PartInfo: map[string]lake.PartInfo{}}
	if old := p.previous.Manifest; old != nil {
		m.Extra = maps.Clone(old.Extra)
		if p.append {
			m = old.Clone()
		}
	}
	m.Version = 1
	m.Strategy = lake.StrategyTable
	if p.Form == lake.FormIncremental {
		m.Strategy = lake.StrategyAppend
	}
	m.NextPart = p.number
	m.Commit, m.Replaces = p.id, p.replaces
	m.UpdatedAtMS = p.Now().UnixMilli()
	return m
}

// addPart lists one more part.
func (p *publication) addPart(m *lake.Manifest, name string, f StagedFile) {
	m.Parts = append(m.Parts, name)
	m.TotalRows += f.Rows
	m.PartInfo[name] = lake.PartInfo{
		Rows: f.Rows, Bytes: f.Bytes, RunID: p.RunID, Commit: p.id, Fingerprint: p.Fingerprint, CreatedAtMS: m.UpdatedAtMS,
	}
	if n, ok := lake.PartNumber(name); ok {
		m.NextPart = max(m.NextPart, n+1)
	}
}

// commitNothing records an increment without rows, or a table that came out as it
// is published: files and manifest stay as they are, byte for byte, and only the
// receipt says that these inputs are done.
func (p *publication) commitNothing(done *Published) error {
	r := p.receipt(p.previous.Receipt.Commit, p.previous.Receipt.Outputs)
	r.Path = p.previous.Receipt.Path
	done.Receipt, done.Manifest, done.Unchanged, done.Appended = r, p.previous.Manifest, true, false
	if p.Form == lake.FormIncremental {
		if err := p.lake.EnsurePointer(p.place); err != nil {
			return err
		}
	}
	return p.lake.WriteReceipt(r)
}
