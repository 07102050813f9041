package lake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Node is what the lake holds of one node. Its receipt's outputs list the files
// that count: those of the manifest where there is one.
type Node struct {
	Receipt  Receipt
	Manifest *Manifest // of the forms parts, incremental and ingest
	// Recorded is false where no receipt of the node exists. Last is the commit
	// that the receipt names: the one that the next publish replaces.
	Recorded bool
	Last     string
	// Adopted is true where the data was committed by a run that ended before
	// its receipt: it counts as published, and Recover writes the receipt.
	Adopted bool
	// Foreign is true where what lies in the node's place was published by no
	// run that rbt knows of: it can be read, and not be replaced without a full
	// refresh.
	Foreign bool
	// Damage says why what is published cannot be relied on; nil where it can.
	// It is a *DamageError, or what the system said on reading.
	Damage error
	// Others are paths of further data under the node's name that no receipt
	// accounts for.
	Others []string
}

// Output finds one relation of the node.
func (n Node) Output(relation string) (Output, bool) {
	for _, o := range n.Receipt.Outputs {
		if strings.EqualFold(o.Relation, relation) {
			return o, true
		}
	}
	return Output{}, false
}

// State is the content of a lake at one time. It is not changed after it was
// read.
type State struct {
	Root  string
	Nodes map[string]Node // by name as the receipt spells it
	// Foreign lists data that no receipt accounts for and that Recover would
	// not adopt: paths relative to the lake, sorted.
	Foreign []string
}

// Orphans lists nodes with a receipt that known does not name, sorted.
func (s State) Orphans(known func(name string) bool) []string {
	var names []string
	for name, n := range s.Nodes {
		if n.Recorded && !known(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadState reads everything that is published, without a lock: what a run that
// goes on beside it commits meanwhile is seen either before or after. A node
// that is damaged is no error here but says so itself.
func (l *Lake) ReadState(ctx context.Context) (State, error) {
	found, err := l.scan(ctx)
	if err != nil {
		return State{}, err
	}
	return l.readState(ctx, found)
}

func (l *Lake) readState(ctx context.Context, found *inventory) (State, error) {
	candidates := found.byName()
	names, err := l.receiptNames()
	if err != nil {
		return State{}, err
	}
	recorded := len(names)
	known := make(map[string]bool, recorded)
	for _, n := range names {
		known[n] = true
	}
	var rest []string
	for name := range candidates {
		if !known[name] {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	names = append(names, rest...)

	nodes := make([]Node, len(names))
	here := make([]bool, len(names))
	parallel(len(names), func(i int) {
		if ctx.Err() == nil {
			nodes[i], here[i] = l.readNode(names[i], candidates[names[i]])
		}
	})
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	s := State{Root: l.root, Nodes: make(map[string]Node, len(names))}
	for i, name := range names {
		if !here[i] {
			continue
		}
		s.Nodes[name] = nodes[i]
		if nodes[i].Foreign {
			s.Foreign = append(s.Foreign, nodes[i].Receipt.Path)
		}
		s.Foreign = append(s.Foreign, nodes[i].Others...)
	}
	slices.Sort(s.Foreign)
	s.Foreign = slices.Compact(s.Foreign)
	return s, nil
}

// ReadNode reads one node; folders are where its data may lie besides the place
// that its receipt names. False means that nothing of it is there.
func (l *Lake) ReadNode(name string, folders ...string) (Node, bool, error) {
	if err := checkName(name); err != nil {
		return Node{}, false, err
	}
	candidates, err := l.candidatesIn(name, folders)
	if err != nil {
		return Node{}, false, err
	}
	n, ok := l.readNode(name, candidates)
	return n, ok, nil
}

// receiptNames lists the nodes that have a receipt, or only a staged one.
func (l *Lake) receiptNames() ([]string, error) {
	entries, err := l.fs.ReadDir(l.abs(stateDir))
	if notExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list receipts of lake %s: %w", l.root, err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), receiptSuffix)
		if !ok && isTemp(e.Name()) {
			name, ok = strings.CutSuffix(strings.TrimSuffix(e.Name()[1:], tempSuffix), receiptSuffix)
		}
		if ok && checkName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// readTries bounds how often a node is read again because a run published it
// meanwhile: two publishes of one node within one reading are far apart.
const readTries = 4

// readNode decides what of a node counts. A reader has no lock: where the files
// do not fit the receipt and the receipt has changed meanwhile, it starts again.
func (l *Lake) readNode(name string, candidates []candidate) (Node, bool) {
	var node Node
	var here bool
	seen := ""
	for range readTries {
		receipt, err := l.readReceipt(name, receiptPath(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			node, here = l.unrecorded(name, candidates)
			receipt.Commit = "none"
		case err != nil:
			return Node{Receipt: Receipt{Name: name}, Recorded: true, Damage: err}, true
		default:
			node, here = l.recorded(receipt, candidates), true
		}
		if here && node.Damage == nil && !node.Foreign || receipt.Commit == seen {
			break
		}
		seen = receipt.Commit
	}
	return node, here
}

// recorded compares a receipt with what lies in the lake.
func (l *Lake) recorded(r Receipt, candidates []candidate) Node {
	own := candidate{name: r.Name, path: r.Path, form: candidateForm(r.Form)}
	var node Node
	if r.Form == FormView {
		node = Node{Receipt: r}
	} else {
		node = l.examine(own, &r)
	}
	superseded := make(map[string]bool, len(r.Superseded))
	for _, s := range r.Superseded {
		superseded[s] = true
	}
	for _, c := range candidates {
		if c.path == r.Path && r.Form != FormView {
			continue
		}
		other := l.examine(c, &r)
		switch {
		case other.Adopted:
			node = other
		case other.Receipt.Path == "" || superseded[c.path] || superseded[c.manifest()]:
		default:
			node.Others = append(node.Others, c.path)
		}
	}
	node.Recorded, node.Last = true, r.Commit
	return node
}

// unrecorded finds a node without a receipt.
func (l *Lake) unrecorded(name string, candidates []candidate) (Node, bool) {
	var node Node
	here := false
	for _, c := range candidates {
		n := l.examine(c, nil)
		switch {
		case n.Receipt.Path == "" && n.Damage == nil: // a folder of parts without a manifest: nothing was committed
		case !here:
			node, here = n, true
		case n.Adopted && !node.Adopted:
			n.Others = append(n.Others, node.Receipt.Path)
			node = n
		default:
			node.Others = append(node.Others, c.path)
		}
	}
	return node, here
}

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
			out.Superseded = r.SupersededBy(out)
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
			o.Relation, o.ContentHash = recorded[0].Relation, recorded[0].ContentHash
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

// parallel calls work for 0..n-1 on as many goroutines as can run at once, at
// most 8.
func parallel(n int, work func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), 8, n) {
		wg.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
