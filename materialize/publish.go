package materialize

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

// stagedSuffix ends the names of staged and failed files, which no reader's glob
// of Parquet files finds.
const stagedSuffix = ".staged"

// Target is where and as what a Source is published, and all that its receipt
// shall say of it.
type Target struct {
	Lake   *lake.Lake
	Name   string    // of the node
	Folder string    // relative to the lake with "/"; "" for the lake itself; ignored for a seed
	Form   lake.Form // how the node shall lie in the lake
	RunID  string

	Fingerprint string
	Inputs      lake.Inputs
	Volatile    *string // why the node can never be unchanged
	TestsHash   string

	// Append says that the Source holds only new rows (its text was rendered with
	// is_incremental true), to be added to the published parts. It is an error
	// where there are none.
	Append bool
	// FullRefresh allows to replace foreign or damaged data, and to rebuild or
	// move an incremental node.
	FullRefresh bool
	// Rebuild gives the Source of all rows. It is asked for only where an increment
	// drifted and on_schema_change is full_refresh; nil where it is fail.
	Rebuild func() (Source, error)

	// FailedDir is where staged files go whose audit failed, as <name>.staged; ""
	// removes them.
	FailedDir string
	Now       func() time.Time
	Step      func(Step) // told of each step when it is done; may be nil
}

// Step is a stage of a publish, for events.
type Step string

// The steps, in order.
const (
	StepStaged    Step = "staged"
	StepAudited   Step = "audited"
	StepPublished Step = "published"
)

// Published is what a publish did.
type Published struct {
	Receipt  lake.Receipt
	Manifest *lake.Manifest // of the forms that have one
	Rows     int64          // written by this publish
	Bytes    int64          // written by this publish
	Appended bool           // the rows came to those that were there
	// Unchanged is true for an increment without rows: only the receipt was
	// written.
	Unchanged bool
	// Rebuilt says why an increment became a full build; "" where it did not.
	Rebuilt string
}

// Publish makes the data of a Source visible, all or nothing:
//
//	stage     into <folder>/.rbt-tmp/<run>/<name>/, where nobody reads
//	audit     by the caller; an error ends here and nothing visible has changed
//	sync      the staged files
//	receipt   written beside its place and synced, not yet visible
//	rename    the file, or the parts and then the manifest: this is the commit
//	sync      the folder
//	receipt   renamed into its place
//
// A crash before the commit leaves the old version; after it, the new one, whose
// receipt the next run puts into its place. Publish is called under the lake's
// lock, for different nodes at once. Errors: diag.List about columns, *DriftError,
// diag.Diagnostic where the target refuses, what audit returned, or what the
// engine or the file system said.
func Publish(ctx context.Context, s Session, t Target, src Source, audit func(context.Context, Staged) error) (Published, error) {
	p, err := begin(t)
	if err != nil {
		return Published{}, err
	}
	defer p.lake.RemoveStaging(p.place, t.RunID)
	staged, err := p.stage(ctx, s, src)
	if err != nil {
		return Published{}, err
	}
	p.step(StepStaged)
	if err := audit(ctx, staged); err != nil {
		return Published{}, errors.Join(err, p.keepFailed(staged))
	}
	p.step(StepAudited)
	if err := ctx.Err(); err != nil {
		return Published{}, err
	}
	if err := p.syncStaged(staged); err != nil {
		return Published{}, err
	}
	done, err := p.commit(staged)
	if err != nil {
		return Published{}, err
	}
	p.step(StepPublished)
	return done, nil
}

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
	case was && moved && p.Form == lake.FormIncremental:
		return diag.Errorf(diag.IncrementalMove, diag.Pos{}, "%s is published in %s, and its folder is now that of %s", p.Name, n.Receipt.Path, p.place.Path()).
			WithHint("take the folder back, or rebuild it in the new one: rbt run --full-refresh -s %s", p.Name)
	case p.Append && (!was || moved || n.Manifest == nil):
		return diag.Errorf(diag.IncrementalBase, diag.Pos{}, "%s has nothing published to which an increment could be added", p.Name).
			WithHint("build it whole: rbt run --full-refresh -s %s", p.Name)
	case !p.Append && was:
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

// stage runs the Source. An increment that drifted becomes a full build where
// that is allowed.
func (p *publication) stage(ctx context.Context, s Session, src Source) (Staged, error) {
	staged, err := p.stageOnce(ctx, s, src)
	var drift *DriftError
	if !errors.As(err, &drift) {
		return staged, err
	}
	drift.Node = p.Name
	if !p.append || p.Rebuild == nil {
		return Staged{}, err
	}
	src, err = p.Rebuild()
	if err != nil {
		return Staged{}, err
	}
	p.append, p.rebuilt = false, drift.Error()
	p.lake.RemoveStaging(p.place, p.RunID)
	return p.stageOnce(ctx, s, src)
}

func (p *publication) stageOnce(ctx context.Context, s Session, src Source) (Staged, error) {
	q, isQuery := src.(*Query)
	dir := ""
	switch {
	case p.Form == lake.FormView:
		if !isQuery {
			return Staged{}, fmt.Errorf("publish node %s: a view needs a query", p.Name)
		}
		src = q.asView()
	case p.append && isQuery:
		src = q.increment(p.previous.Manifest.Columns)
	}
	if p.Form != lake.FormView {
		var err error
		if dir, err = p.lake.MakeStaging(p.place, p.RunID); err != nil {
			return Staged{}, err
		}
	}
	staged, err := src.Stage(ctx, stamped{s, p.metadata()}, dir)
	if err != nil {
		return Staged{}, err
	}
	return p.complete(staged)
}

// metadata is what every file of this publish carries.
func (p *publication) metadata() map[string]string {
	return map[string]string{
		lake.MetaModel:       p.Name,
		lake.MetaFingerprint: p.Fingerprint,
		lake.MetaCommit:      p.id,
		lake.MetaReplaces:    p.replaces,
	}
}

// complete adds to what was staged the names, the sizes as the file system has
// them, and the published parts that stay.
func (p *publication) complete(staged Staged) (Staged, error) {
	for i := range staged.Outputs {
		o := &staged.Outputs[i]
		if o.Relation == "" {
			o.Relation = p.Name
		}
		for j := range o.Files {
			info, err := p.lake.FS().Stat(o.Files[j].Path)
			if err != nil {
				return Staged{}, fmt.Errorf("look at staged file of %s: %w", p.Name, err)
			}
			o.Files[j].Bytes = info.Size()
		}
	}
	if p.append && p.Form == lake.FormIncremental {
		if len(staged.Outputs) != 1 {
			return Staged{}, fmt.Errorf("publish node %s: an increment has one output, and %d were staged", p.Name, len(staged.Outputs))
		}
		return p.completeIncrement(staged)
	}
	return staged, nil
}

// syncStaged makes the staged data durable before anything is renamed.
func (p *publication) syncStaged(staged Staged) error {
	for _, o := range staged.Outputs {
		for _, f := range o.Files {
			if err := p.lake.FS().Sync(f.Path); err != nil {
				return fmt.Errorf("make staged file of %s durable: %w", p.Name, err)
			}
		}
	}
	return nil
}

// commit makes the staged data visible in the way of the form.
func (p *publication) commit(staged Staged) (Published, error) {
	done := Published{Rebuilt: p.rebuilt, Appended: p.append}
	for _, o := range staged.Outputs {
		done.Rows += o.Rows
		for _, f := range o.Files {
			done.Bytes += f.Bytes
		}
	}
	var err error
	switch p.Form {
	case lake.FormFile, lake.FormSeed:
		done.Receipt, err = p.commitFile(staged)
	case lake.FormParts, lake.FormIncremental:
		err = p.commitParts(staged, &done)
	case lake.FormView:
		done.Receipt, err = p.commitView(staged)
	case lake.FormIngest:
		err = p.commitIngest(staged, &done)
	}
	if err != nil {
		return Published{}, fmt.Errorf("publish node %s: %w", p.Name, err)
	}
	return done, nil
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
		r.Superseded = p.previous.Receipt.SupersededBy(r)
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

// stamped adds the metadata of a publish to everything that a Source writes.
type stamped struct {
	Session
	metadata map[string]string
}

func (s stamped) CopyTo(ctx context.Context, sql, path string, metadata map[string]string) ([]StagedFile, error) {
	all := make(map[string]string, len(metadata)+len(s.metadata))
	for k, v := range metadata {
		all[k] = v
	}
	for k, v := range s.metadata {
		all[k] = v
	}
	return s.Session.CopyTo(ctx, sql, path, all)
}

func (s stamped) Fork(ctx context.Context) (Session, error) {
	f, err := s.Session.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return stamped{f, s.metadata}, nil
}
