package materialize

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"rbt/internal/lake"
)

// commitIngest publishes several relations under one manifest: all of them
// become visible with its rename. Parts that an output keeps stay; those of all others are replaced.
func (p *publication) commitIngest(staged Staged, done *Published) error {
	m := p.manifest(nil)
	m.Strategy = lake.StrategyIngest
	for k, v := range staged.Manifest {
		if v == nil {
			delete(m.Extra, k)
			continue
		}
		if m.Extra == nil {
			m.Extra = map[string]json.RawMessage{}
		}
		m.Extra[k] = v
	}
	old := p.previous.Manifest
	m.Parts, m.TotalRows, m.PartInfo, m.Tables = nil, 0, map[string]lake.PartInfo{}, map[string]lake.ManifestTable{}
	var moves []lake.Move
	var outputs []lake.Output
	for _, o := range staged.Outputs {
		table, err := p.tableOf(o)
		if err != nil {
			return err
		}
		if _, twice := m.Tables[table]; twice {
			return fmt.Errorf("two relations lie in the folder %s", table)
		}
		out := lake.Output{Relation: o.Relation, Rows: o.KeptRows + o.Rows, Columns: o.Columns, ContentHash: o.ContentHash}
		first := len(m.Parts)
		for _, abs := range o.Kept {
			rel, err := p.lake.Rel(abs)
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(rel, p.place.Path()+"/")
			if old == nil {
				return fmt.Errorf("relation %s keeps %s, and nothing is published", o.Relation, rel)
			}
			info, ok := old.PartInfo[name]
			if !ok {
				return fmt.Errorf("relation %s keeps %s, which is not published", o.Relation, rel)
			}
			m.Parts = append(m.Parts, name)
			m.PartInfo[name] = info
			m.TotalRows += info.Rows
		}
		for i, f := range o.Files {
			name := path.Join(table, lake.PartName(p.number+int64(i)))
			moves = append(moves, lake.Move{From: f.Path, To: path.Join(p.place.Path(), name)})
			p.addPart(m, name, f)
		}
		m.Tables[table] = lake.ManifestTable{Relation: o.Relation, Columns: o.Columns, Rows: out.Rows}
		for _, name := range m.Parts[first:] {
			out.Files = append(out.Files, lake.File{Path: path.Join(p.place.Path(), name), Bytes: m.PartInfo[name].Bytes, Commit: m.PartInfo[name].Commit})
		}
		outputs = append(outputs, out)
	}
	r := p.receipt(p.id, outputs)
	r.NextPart, r.Stats = m.NextPart, staged.Stats
	done.Receipt, done.Manifest = r, m
	return p.lake.CommitManifest(moves, p.place, m, r)
}

// tableOf is the folder of a relation below the node's.
func (p *publication) tableOf(o StagedOutput) (string, error) {
	table := o.Folder
	switch {
	case table != "":
	case len(o.Files) > 0:
		table = strings.TrimSuffix(filepath.Base(o.Files[0].Path), stagedSuffix)
	case len(o.Kept) > 0:
		table = filepath.Base(filepath.Dir(o.Kept[0]))
	default:
		return "", fmt.Errorf("relation %s has no files and names no folder", o.Relation)
	}
	if _, err := lake.NewPlace("", table, lake.FormFile); err != nil {
		return "", err
	}
	return table, nil
}
