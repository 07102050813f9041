package materialize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"

	"rbt/internal/lake"
)

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
			return Staged{}, &FaultError{p.Name, err}
		}
	}
	w := &writing{lake: p.lake, metadata: p.metadata(), hash: p.hashed(), followed: map[string]*lake.Following{}}
	staged, err := src.Stage(ctx, stamped{s, w}, dir)
	if refused := syscall.Errno(0); errors.As(err, &refused) && strings.Contains(err.Error(), dir) {
		err = &FaultError{p.Name, err} // a Source that writes by itself
	}
	if err != nil {
		return Staged{}, err
	}
	return p.complete(ctx, s, staged, w)
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
func (p *publication) complete(ctx context.Context, s Session, staged Staged, w *writing) (Staged, error) {
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
		if p.hashed() {
			if err := p.hashContent(ctx, s, o, w.following); err != nil {
				return Staged{}, err
			}
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

// hashed reports whether content hashes are made of what is staged. An increment
// could not keep its own, and an ingest brings its own.
func (p *publication) hashed() bool {
	return p.Form == lake.FormFile || p.Form == lake.FormSeed || p.Form == lake.FormParts
}

// writing is what all sessions of a Source do with what it writes.
type writing struct {
	lake     *lake.Lake
	metadata map[string]string
	hash     bool

	mu       sync.Mutex
	followed map[string]*lake.Following // by the path of the file
}

// follow follows a file that is about to be written, until stop.
func (w *writing) follow(path string) (stop func()) {
	f := w.lake.Follow(path, w.hash)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.followed[path] = f
	return f.Stop
}

// following gives the Following of a file that was written; nil where there is
// none.
func (w *writing) following(path string) *lake.Following {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.followed[path]
}

// stamped adds the metadata of a publish to everything that a Source writes, and
// follows it.
type stamped struct {
	Session
	*writing
}

func (s stamped) CopyTo(ctx context.Context, sql, path string, metadata map[string]string) ([]StagedFile, error) {
	all := make(map[string]string, len(metadata)+len(s.metadata))
	for k, v := range metadata {
		all[k] = v
	}
	for k, v := range s.metadata {
		all[k] = v
	}
	defer s.follow(path)()
	return s.Session.CopyTo(ctx, sql, path, all)
}

func (s stamped) Fork(ctx context.Context) (Session, error) {
	f, err := s.Session.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return stamped{f, s.writing}, nil
}
