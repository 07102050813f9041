package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// candidateForm is the form as far as it can be told from a path.
func candidateForm(f Form) Form {
	if f == FormIncremental {
		return FormParts
	}
	return f
}

// examine reads what lies at a candidate and compares it with the receipt (nil:
// there is none). A result without a path means that nothing was committed there.
func (l *Lake) examine(c candidate, r *Receipt) Node {
	if c.form.HasManifest() {
		return l.examineManifest(c, r)
	}
	return l.examineFile(c, r)
}

func (l *Lake) examineFile(c candidate, r *Receipt) Node {
	mine := r != nil && r.Path == c.path
	node := Node{}
	if mine {
		node.Receipt = *r
	}
	damage := func(err error) Node {
		node.Damage = err
		if !mine {
			node.Receipt = Receipt{Name: c.name, Form: c.form, Path: c.path}
			node.Foreign = true
		}
		return node
	}
	remember := func() {}
	if mine && l.recalling != nil {
		id := l.identityAt(c.path)
		if l.recalling.whole(r, id) {
			return node
		}
		remember = func() { l.recalling.noteWhole(r, id) }
	}
	f, err := l.fs.Open(l.abs(c.path))
	if notExist(err) {
		if mine {
			return damage(l.damaged(c, "the published file is missing"))
		}
		return node
	}
	if err != nil {
		return damage(fmt.Errorf("read %s: %w", c.path, err))
	}
	defer f.Close()
	if mine {
		size, tail, err := readTail(f, quickTail)
		if err != nil {
			return damage(fmt.Errorf("read %s: %w", c.path, err))
		}
		if carriesCommit(tail, r.Commit) {
			if want := r.Outputs[0].Files; len(want) == 1 && want[0].Bytes != size {
				return damage(l.damaged(c, "the published file has %d bytes, and its receipt says %d", size, want[0].Bytes))
			}
			remember()
			return node
		}
	}
	footer, err := readFooter(f)
	var bad badFooter
	switch {
	case errors.As(err, &bad):
		return damage(l.damaged(c, "%s", bad))
	case err != nil:
		return damage(fmt.Errorf("read %s: %w", c.path, err))
	}
	if mine && footer.Metadata[MetaCommit] == r.Commit {
		return node
	}
	return l.judge(c, r, found{
		commit:      footer.Metadata[MetaCommit],
		replaces:    footer.Metadata[MetaReplaces],
		named:       footer.Metadata[MetaModel] == c.name,
		fingerprint: "",
		receipt: Receipt{
			Form: c.form, Path: c.path,
			Outputs: []Output{{Relation: c.name, Rows: footer.Rows, Columns: footer.Columns,
				Files: []File{{Path: c.path, Bytes: footer.Bytes, Commit: footer.Metadata[MetaCommit]}}}},
		},
	})
}

func (l *Lake) damaged(c candidate, format string, args ...any) error {
	return &DamageError{Node: c.name, Path: c.path, Err: fmt.Errorf(format, args...)}
}

// quickTail is how much of a file's end is searched for the receipt's commit
// before the footer is parsed, in bytes: the metadata stands near the end, after
// it only a few bytes a column.
const quickTail = 2 << 10

func (l *Lake) examineManifest(c candidate, r *Receipt) Node {
	mine := r != nil && r.Path == c.path
	node := Node{}
	if mine {
		node.Receipt = *r
	}
	m, err := l.ReadManifest(c.manifest())
	if errors.Is(err, fs.ErrNotExist) {
		if mine {
			node.Damage = &DamageError{Node: c.name, Path: c.manifest(), Err: errors.New("the manifest is missing")}
		}
		return node
	}
	if err != nil {
		var d *DamageError
		if errors.As(err, &d) {
			d.Node = c.name
		}
		node.Damage = err
		if !mine {
			node.Receipt = Receipt{Name: c.name, Form: c.form, Path: c.path}
			node.Foreign = true
		}
		return node
	}
	if mine && m.Commit == r.Commit && m.Commit != "" {
		node.Manifest = m
		node.Receipt.Outputs = outputsOf(c, m, r.Outputs)
		node.Damage = l.partsThere(c, m)
		return node
	}
	last := PartInfo{}
	if len(m.Parts) > 0 {
		last = m.PartInfo[m.Parts[len(m.Parts)-1]]
	}
	node = l.judge(c, r, found{
		commit: m.Commit, replaces: m.Replaces, named: true, fingerprint: last.Fingerprint,
		receipt: Receipt{Form: manifestForm(m.Strategy), Path: c.path, RunID: last.RunID, PublishedAt: m.UpdatedAtMS,
			NextPart: m.NextPart, Outputs: outputsOf(c, m, nil)},
	})
	node.Manifest = m
	node.Receipt.Outputs = outputsOf(c, m, node.Receipt.Outputs)
	if node.Damage == nil {
		node.Damage = l.partsThere(c, m)
	}
	return node
}

// found is data whose commit is not the receipt's.
type found struct {
	commit, replaces string
	named            bool // it names this node as its model
	fingerprint      string
	receipt          Receipt // as far as it can be told from the data
}

// judge decides between adopted and foreign by the chain of commits.
func (l *Lake) judge(c candidate, r *Receipt, f found) Node {
	before := ""
	if r != nil {
		before = r.Commit
	}
	if f.commit != "" && f.named && f.replaces == before {
		staged, err := l.stagedReceipt(c.name)
		var damage *DamageError
		switch {
		case err == nil && staged.Commit == f.commit && staged.Path == c.path:
			return Node{Receipt: staged, Adopted: true}
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damage):
			return Node{Receipt: Receipt{Name: c.name, Form: c.form, Path: c.path}, Damage: err}
		}
		out := f.receipt
		out.Version, out.Name, out.Commit = documentVersion, c.name, f.commit
		// A file's fingerprint is left empty, so that the next run builds it
		// anew: whether it is volatile, and from what it was made, is not known.
		// That of an increment is known to its manifest, and appending it again
		// would be wrong.
		out.Fingerprint = f.fingerprint
		if r != nil {
			out.Volatile, out.Extra = r.Volatile, r.Extra
			out.Superseded = l.SupersededBy(*r, out)
			out.NextPart = max(out.NextPart, r.NextPart)
		}
		return Node{Receipt: out, Adopted: true}
	}
	out := f.receipt
	out.Version, out.Name, out.Commit = documentVersion, c.name, f.commit
	if out.Commit == "" {
		out.Commit = l.foreignID(c)
	}
	if r != nil {
		out.Superseded, out.NextPart, out.Extra = r.Superseded, max(out.NextPart, r.NextPart), r.Extra
	}
	return Node{Receipt: out, Foreign: true}
}

// withFiles gives a receipt as it stands on disk the files that it does not list:
// those of its manifest, or, where that is gone or cannot be read, the parts that
// lie in its folder. It is for what is to be removed and not for readers.
func (l *Lake) withFiles(r Receipt) Receipt {
	if !r.Form.HasManifest() || slices.ContainsFunc(r.Outputs, func(o Output) bool { return len(o.Files) > 0 }) {
		return r
	}
	c := candidate{name: r.Name, path: r.Path, form: candidateForm(r.Form)}
	if m, err := l.ReadManifest(c.manifest()); err == nil && m.Commit == r.Commit {
		r.Outputs = outputsOf(c, m, r.Outputs)
		return r
	}
	r.Outputs = []Output{{Relation: r.Name, Files: l.partsBelow(r.Path, 1)}}
	return r
}

// partsBelow lists the parts in a folder and so many levels below.
func (l *Lake) partsBelow(rel string, levels int) []File {
	entries, err := l.fs.ReadDir(l.abs(rel))
	if err != nil {
		return nil
	}
	var files []File
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		if _, ok := PartNumber(e.Name()); ok {
			files = append(files, File{Path: at})
		} else if e.IsDir() && levels > 0 {
			files = append(files, l.partsBelow(at, levels-1)...)
		}
	}
	return files
}

// stagedReceipt reads the receipt that a run staged before its commit.
func (l *Lake) stagedReceipt(name string) (Receipt, error) {
	return l.readReceipt(name, path.Join(stateDir, "."+name+receiptSuffix+tempSuffix))
}

// foreignID gives data without a commit an identity that changes with it.
func (l *Lake) foreignID(c candidate) string {
	at := c.path
	if m := c.manifest(); m != "" {
		at = m
	}
	text := at
	if info, err := l.fs.Stat(l.abs(at)); err == nil {
		text = fmt.Sprintf("foreign %s %d %d", at, info.Size(), info.ModTime().UnixNano())
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// manifestForm is the form that a manifest's strategy means.
func manifestForm(strategy string) Form {
	switch strategy {
	case StrategyTable:
		return FormParts
	case StrategyIngest:
		return FormIngest
	default:
		return FormIncremental
	}
}

// outputsOf gives the outputs with exactly the files that the manifest lists;
// what a manifest does not hold is taken from the receipt's outputs.
func outputsOf(c candidate, m *Manifest, recorded []Output) []Output {
	if m.Strategy != StrategyIngest {
		o := Output{Relation: c.name, Rows: m.TotalRows, Columns: m.Columns}
		if len(recorded) == 1 {
			o.Relation, o.ContentHash, o.Greatest = recorded[0].Relation, recorded[0].ContentHash, recorded[0].Greatest
		}
		for _, p := range m.Parts {
			o.Files = append(o.Files, File{Path: path.Join(c.path, p), Bytes: m.PartInfo[p].Bytes, Commit: m.PartInfo[p].Commit})
		}
		return []Output{o}
	}
	files := map[string][]File{}
	for _, p := range m.Parts {
		files[path.Dir(p)] = append(files[path.Dir(p)],
			File{Path: path.Join(c.path, p), Bytes: m.PartInfo[p].Bytes, Commit: m.PartInfo[p].Commit})
	}
	tables := make([]string, 0, len(m.Tables))
	for t := range m.Tables {
		tables = append(tables, t)
	}
	slices.Sort(tables)
	var outputs []Output
	for _, t := range tables {
		table := m.Tables[t]
		o := Output{Relation: table.Relation, Rows: table.Rows, Columns: table.Columns, Files: files[t]}
		for _, old := range recorded {
			if old.Relation == o.Relation {
				o.ContentHash = old.ContentHash
			}
		}
		outputs = append(outputs, o)
	}
	return outputs
}

// partsThere checks by one listing a folder that every part is there with the
// size that the manifest says.
func (l *Lake) partsThere(c candidate, m *Manifest) error {
	listed := map[string]map[string]fs.DirEntry{}
	for _, p := range m.Parts {
		dir := path.Join(c.path, path.Dir(p))
		if listed[dir] == nil {
			entries, err := l.fs.ReadDir(l.abs(dir))
			if err != nil && !notExist(err) {
				return fmt.Errorf("list parts of %s: %w", c.name, err)
			}
			byName := make(map[string]fs.DirEntry, len(entries))
			for _, e := range entries {
				byName[e.Name()] = e
			}
			listed[dir] = byName
		}
		at := path.Join(c.path, p)
		entry, ok := listed[dir][path.Base(p)]
		if !ok {
			return &DamageError{Node: c.name, Path: at, Err: errors.New("the manifest lists this part, and it is missing")}
		}
		want := m.PartInfo[p].Bytes
		if want == 0 {
			continue // another tool's manifest does not say
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = l.fs.Stat(l.abs(at))
		}
		if err != nil {
			return fmt.Errorf("look at part %s: %w", at, err)
		}
		if info.Size() != want {
			return &DamageError{Node: c.name, Path: at, Err: fmt.Errorf("the part has %d bytes, and its manifest says %d", info.Size(), want)}
		}
	}
	return nil
}
