package lake

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// Move is a staged file (absolute path) and the place that it takes in the lake
// (relative).
type Move struct {
	From string
	To   string
}

// CommitFile publishes a synced staged file as the one file of the receipt: the
// receipt is staged, the file renamed over what was there, the folder synced, the
// receipt put in its place. Once the rename has happened an error leaves the new
// version published, and its receipt to Recover.
func (l *Lake) CommitFile(staged string, r Receipt) error {
	abs, err := l.Abs(r.Path)
	if err != nil {
		return err
	}
	receipt, err := l.StageReceipt(r)
	if err != nil {
		return err
	}
	if err := l.fs.Rename(staged, abs); err != nil {
		receipt.Discard()
		return fmt.Errorf("publish %s: %w", abs, err)
	}
	if err := l.fs.SyncDir(filepath.Dir(abs)); err != nil {
		return fmt.Errorf("make %s durable: %w", abs, err)
	}
	return receipt.Commit()
}

// CommitManifest publishes synced staged parts under a new manifest: the parts
// are moved in, where no reader looks for them, their folders synced, the receipt
// staged, the manifest replaced (the commit), then the pointer and the receipt
// written. An error before the commit leaves the old version and takes the parts
// out again.
func (l *Lake) CommitManifest(moves []Move, p Place, m *Manifest, r Receipt) (err error) {
	if err := l.EnsureDir(p.Path()); err != nil {
		return err
	}
	var moved []string
	committed := false
	defer func() {
		if err == nil || committed {
			return
		}
		for _, abs := range moved {
			_ = l.fs.Remove(abs) // Recover removes what stays
		}
	}()
	var folders []string
	for _, mv := range moves {
		abs, err := l.Abs(mv.To)
		if err != nil {
			return err
		}
		if dir := path.Dir(mv.To); !slices.Contains(folders, dir) {
			if err := l.EnsureDir(dir); err != nil {
				return err
			}
			folders = append(folders, dir)
		}
		if err := l.fs.Rename(mv.From, abs); err != nil {
			return fmt.Errorf("publish part %s: %w", abs, err)
		}
		moved = append(moved, abs)
	}
	for _, dir := range folders {
		if err := l.fs.SyncDir(l.abs(dir)); err != nil {
			return fmt.Errorf("make parts in %s durable: %w", dir, err)
		}
	}
	content, err := encode(m, manifestDepth)
	if err != nil {
		return fmt.Errorf("encode manifest of %s: %w", p.Name, err)
	}
	receipt, err := l.StageReceipt(r)
	if err != nil {
		return err
	}
	abs := l.abs(p.Manifest())
	temp, err := l.stageFile(abs, content)
	if err != nil {
		receipt.Discard()
		return err
	}
	if err := l.fs.Rename(temp, abs); err != nil {
		_ = l.fs.Remove(temp)
		receipt.Discard()
		return fmt.Errorf("publish %s: %w", abs, err)
	}
	committed = true
	if err := l.fs.SyncDir(filepath.Dir(abs)); err != nil {
		return fmt.Errorf("make %s durable: %w", abs, err)
	}
	if p.Form == FormIncremental {
		if err := l.EnsurePointer(p); err != nil {
			return err
		}
	}
	return receipt.Commit()
}

// WriteReceipt publishes what has no file of its own (a view, an increment
// without rows) or mends a receipt. The old one stays until the new one is whole.
func (l *Lake) WriteReceipt(r Receipt) error {
	receipt, err := l.StageReceipt(r)
	if err != nil {
		return err
	}
	if err := l.fs.Rename(receipt.temp, receipt.abs); err != nil {
		receipt.Discard()
		return fmt.Errorf("publish %s: %w", receipt.abs, err)
	}
	if err := l.fs.SyncDir(filepath.Dir(receipt.abs)); err != nil {
		return fmt.Errorf("make %s durable: %w", receipt.abs, err)
	}
	return nil
}

// NextPart is the number of the next part of a node: above every number that it
// ever had, as far as receipt, manifest or, where those cannot be read, the
// folder tell.
func (l *Lake) NextPart(p Place, n Node) int64 {
	next := max(1, n.Receipt.NextPart)
	if n.Manifest != nil {
		next = max(next, n.Manifest.NextPart)
		if n.Receipt.Path == p.Path() {
			return next
		}
	}
	for _, f := range l.partsBelow(p.Path(), 1) {
		n, _ := PartNumber(f.Path)
		next = max(next, n+1)
	}
	return next
}
