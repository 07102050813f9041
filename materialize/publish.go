package materialize

import (
	"context"
	"errors"
	"time"

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
	// Force publishes a table anew that came out as it is published.
	Force bool
	// Rebuild gives the Source of all rows. It is asked for only where an increment
	// drifted and on_schema_change is full_refresh; nil where it is fail.
	Rebuild func() (Source, error)

	// HasReaders says that other nodes read this one, which spares them a build
	// where its content stays.
	HasReaders bool

	// Greatest gives what is certain of the greatest values of columns over Parquet
	// files, by column, as lake.Greatest keeps them; it is asked of the parts of an
	// incremental node. May be nil.
	Greatest func(files []string, columns []lake.Column) map[string]string

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
	Rows     int64          // of the Source
	Bytes    int64          // written by this publish
	Appended bool           // the rows came to those that were there
	// Unchanged is true for an increment without rows, and for a table that came
	// out as it is published: only the receipt was written.
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
// Of a table that came out as it is published only the receipt is replaced. A
// crash before the commit leaves the old version; after it, the new one, whose
// receipt the next run puts into its place. Publish is called under the lake's
// lock, for different nodes at once. Errors: diag.List about columns, *DriftError,
// diag.Diagnostic where the target refuses, *FaultError where the file system
// does, what audit returned, or what the engine said.
func Publish(ctx context.Context, s Session, t Target, src Source, audit func(context.Context, Staged) error) (Published, error) {
	ready, err := Prepare(ctx, s, t, src, audit)
	if err != nil {
		return Published{}, err
	}
	return ready.Commit(ctx)
}

// Prepared is data that is staged and audited, and that nobody can see yet.
type Prepared struct {
	publication *publication
	staged      Staged
}

// Prepare is Publish up to the end of the audit: all of it that needs the
// engine. Nothing visible has changed, and Commit must be called, once.
func Prepare(ctx context.Context, s Session, t Target, src Source, audit func(context.Context, Staged) error) (_ *Prepared, err error) {
	p, err := begin(t)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.lake.RemoveStaging(p.place, t.RunID)
		}
	}()
	staged, err := p.stage(ctx, s, src)
	if err != nil {
		return nil, err
	}
	p.step(StepStaged)
	if err := audit(ctx, staged); err != nil {
		if kept := p.keepFailed(staged); kept != nil {
			err = errors.Join(err, kept)
		}
		return nil, err
	}
	p.step(StepAudited)
	return &Prepared{p, staged}, nil
}

// Commit is the rest of Publish, which only waits for the disk: it asks nothing
// of the session, so that another node can have that meanwhile. Nothing is
// published where ctx has ended before it begins; once begun it is not
// interrupted. Errors are those of Publish after its audit.
func (r *Prepared) Commit(ctx context.Context) (Published, error) {
	p := r.publication
	defer p.lake.RemoveStaging(p.place, p.RunID)
	if err := ctx.Err(); err != nil {
		return Published{}, err
	}
	kept := p.keeps(r.staged)
	if !kept {
		if err := p.syncStaged(r.staged); err != nil {
			return Published{}, err
		}
	}
	done, err := p.commit(r.staged, kept)
	if err != nil {
		return Published{}, err
	}
	p.step(StepPublished)
	return done, nil
}
