package materialize

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// publication is one publish under way.
type publication struct {
	Target
	lake     *lake.Lake
	place    lake.Place
	previous lake.Node
	append   bool   // Target.Append, until drift makes it a rebuild
	rebuilt  string // why it does
	number   int64  // of the first part; 0 for forms without parts
	id       string // commit
	replaces string // commit before it
}

// begin looks at what is there and refuses what must not be replaced.
func begin(t Target) (*publication, error) {
	place, err := lake.NewPlace(t.Folder, t.Name, t.Form)
	if err != nil {
		return nil, err
	}
	p := &publication{Target: t, lake: t.Lake, place: place, append: t.Append}
	node, _, err := t.Lake.ReadNode(t.Name, place.Folder)
	if err != nil {
		return nil, err
	}
	if node.Adopted {
		if err := t.Lake.WriteReceipt(node.Receipt); err != nil {
			return nil, fmt.Errorf("adopt node %s: %w", t.Name, err)
		}
		node.Adopted, node.Recorded, node.Last = false, true, node.Receipt.Commit
	}
	var damage *lake.DamageError
	if node.Damage != nil && !errors.As(node.Damage, &damage) {
		return nil, node.Damage // it could not be read just now, which says nothing of what is there
	}
	p.previous, p.replaces = node, node.Last
	if err := p.refuse(); err != nil {
		return nil, err
	}
	if p.Form.HasManifest() {
		p.number = p.lake.NextPart(place, node)
	}
	p.id = lake.CommitID(p.Name, p.Fingerprint, p.number, p.replaces)
	return p, nil
}

// refuse returns an error where the publish must not take place.
func (p *publication) refuse() error {
	n := p.previous
	switch {
	case p.Append && p.FullRefresh:
		return fmt.Errorf("publish node %s: an increment cannot be a full refresh", p.Name)
	case p.Append && p.Form != lake.FormIncremental && p.Form != lake.FormIngest:
		return fmt.Errorf("publish node %s: form %s cannot be appended to", p.Name, p.Form)
	case p.FullRefresh:
		return nil
	}
	if at := p.foreignAt(); at != "" {
		return diag.Errorf(diag.LakeForeign, diag.Pos{}, "%s stands in the place of %s, and no run of rbt published it there", at, p.Name).
			WithHint("move it away, or replace it: rbt run --full-refresh -s %s", p.Name)
	}
	if n.Damage != nil && (p.Append || n.Receipt.Form == "" || n.Receipt.Form.HasManifest()) {
		return n.Damage
	}
	was, moved := n.Recorded && n.Receipt.Form == p.Form, n.Receipt.Path != p.place.Path()
	switch {
	case p.Form != lake.FormIncremental && !p.Append:
	case was && moved: // of what is added to
		return diag.Errorf(diag.IncrementalMove, diag.Pos{}, "%s is published in %s, and its folder is now that of %s", p.Name, n.Receipt.Path, p.place.Path()).
			WithHint("take the folder back, or rebuild it in the new one: rbt run --full-refresh -s %s", p.Name)
	case p.Append && (!was || n.Manifest == nil):
		return diag.Errorf(diag.IncrementalBase, diag.Pos{}, "%s has nothing published to which an increment could be added", p.Name).
			WithHint("build it whole: rbt run --full-refresh -s %s", p.Name)
	case !p.Append && was && (n.Manifest == nil || len(n.Manifest.Parts) > 0):
		return diag.Errorf(diag.IncrementalBase, diag.Pos{}, "%s is published as incremental, and would be replaced as a whole", p.Name).
			WithHint("that needs: rbt run --full-refresh -s %s", p.Name)
	}
	return nil
}

// foreignAt is the path of foreign data where this publish would write.
func (p *publication) foreignAt() string {
	at := p.place.Path()
	if at == "" {
		return ""
	}
	if p.previous.Foreign && p.previous.Receipt.Path == at {
		return at
	}
	for _, o := range p.previous.Others {
		if o == at {
			return at
		}
	}
	return ""
}

// syncStaged makes the staged data durable before anything is renamed.
func (p *publication) syncStaged(staged Staged) error {
	for _, o := range staged.Outputs {
		for _, f := range o.Files {
			if err := p.lake.FS().Sync(f.Path); err != nil {
				return &FaultError{p.Name, fmt.Errorf("make the staged file durable: %w", err)}
			}
		}
	}
	return nil
}

// commit makes the staged data visible in the way of the form, or keeps what is
// published where that is the same.
func (p *publication) commit(staged Staged, kept bool) (Published, error) {
	done := Published{Rebuilt: p.rebuilt, Appended: p.append}
	for _, o := range staged.Outputs {
		done.Rows += o.Rows
		for _, f := range o.Files {
			done.Bytes += f.Bytes
		}
	}
	var err error
	switch {
	case kept:
		done.Bytes = 0
		err = p.commitNothing(&done)
	case p.Form == lake.FormFile || p.Form == lake.FormSeed:
		done.Receipt, err = p.commitFile(staged)
	case p.Form == lake.FormParts || p.Form == lake.FormIncremental:
		err = p.commitParts(staged, &done)
	case p.Form == lake.FormView:
		done.Receipt, err = p.commitView(staged)
	case p.Form == lake.FormIngest:
		err = p.commitIngest(staged, &done)
	}
	if err != nil {
		return Published{}, &FaultError{p.Name, err}
	}
	return done, nil
}

// FaultError says that a step of a publish could not be done: no room, no
// permission, a broken disk. What is published is whole all the same.
type FaultError struct {
	Node string
	Err  error
}

// Error names the node, the file and the cause.
func (e *FaultError) Error() string { return fmt.Sprintf("publish node %s: %v", e.Node, e.Err) }

// Unwrap gives the cause.
func (e *FaultError) Unwrap() error { return e.Err }

// Diagnostic gives the fault with what to do about it.
func (e *FaultError) Diagnostic() diag.Diagnostic {
	hint := lake.FaultHint(e.Error())
	if hint == "" {
		hint = "what was published before is whole; remove the cause and run again"
	}
	return diag.Errorf(diag.PublishFault, diag.Pos{}, "%s", e.Error()).WithHint("%s", hint)
}

// receipt is what is said of this publish with these outputs.
func (p *publication) receipt(commit string, outputs []lake.Output) lake.Receipt {
	r := lake.Receipt{
		Version:     1,
		Name:        p.Name,
		Form:        p.Form,
		Path:        p.place.Path(),
		Commit:      commit,
		Fingerprint: p.Fingerprint,
		Inputs:      p.Inputs,
		Volatile:    p.Volatile,
		Outputs:     outputs,
		TestsHash:   p.TestsHash,
		NextPart:    p.previous.Receipt.NextPart,
		RunID:       p.RunID,
		PublishedAt: p.Now().UnixMilli(),
		Extra:       p.previous.Receipt.Extra,
	}
	if p.previous.Recorded || p.previous.Foreign {
		r.Superseded = p.lake.SupersededBy(p.previous.Receipt, r)
	}
	return r
}

// keepFailed moves what failed its audit to where a person can look at it.
func (p *publication) keepFailed(staged Staged) error {
	if p.FailedDir == "" {
		return nil
	}
	fs := p.lake.FS()
	if err := fs.MkdirAll(p.FailedDir); err != nil {
		return fmt.Errorf("keep failed data of %s: %w", p.Name, err)
	}
	for _, o := range staged.Outputs {
		for i, f := range o.Files {
			name := o.Relation
			if i > 0 {
				name = fmt.Sprintf("%s.%d", name, i+1)
			}
			to := filepath.Join(p.FailedDir, name+stagedSuffix)
			err := fs.Rename(f.Path, to)
			if errors.Is(err, syscall.EXDEV) {
				if _, serr := fs.Stat(to); serr == nil {
					_ = fs.Remove(to) // of an earlier run; Copy says so where it is still there
				}
				err = fs.Copy(f.Path, to)
			}
			if err != nil {
				return fmt.Errorf("keep failed data of %s: %w", p.Name, err)
			}
		}
	}
	return nil
}

func (p *publication) step(s Step) {
	if p.Step != nil {
		p.Step(s)
	}
}
