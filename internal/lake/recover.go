package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Recovered is what a run found and mended before it did anything else. All
// lists are sorted; paths are relative to the lake.
type Recovered struct {
	Adopted  []string // nodes whose commit stood without its receipt, which is now written
	Removed  []string // files and folders that nothing needs any more
	Warnings []string // leftovers that could not be removed; nothing reads them
	State    State    // what is published after all this
}

// Recover brings a lake into order at the start of a run: staging of dead runs
// is removed, commits whose run ended before their receipt are adopted, then superseded
// files of the run before, parts that no manifest names and pins of dead readers
// are removed. It needs the lock. An error means that nothing may be published
// yet; a leftover that cannot be removed is only a warning.
func (l *Lake) Recover(ctx context.Context, lock *Lock) (Recovered, error) {
	if lock == nil || lock.lake.root != l.root {
		return Recovered{}, fmt.Errorf("recover lake %s: its lock is not held", l.root)
	}
	inv, err := l.scan(ctx)
	if err != nil {
		return Recovered{}, err
	}
	if len(inv.nested) > 0 {
		return Recovered{}, nestedError(l.root, l.abs(inv.nested[0]))
	}
	state, err := l.readState(ctx, inv)
	if err != nil {
		return Recovered{}, err
	}
	c := cleaner{lake: l, state: state}
	// Staging first: where it filled the disk, all that follows needs the room.
	for _, dir := range inv.staging {
		c.removeAll(dir)
	}
	if err := c.adopt(); err != nil {
		return Recovered{}, err
	}
	for _, temp := range append(inv.temps, l.staleReceipts()...) {
		c.remove(temp)
	}
	if err := c.supersede(); err != nil {
		return Recovered{}, err
	}
	c.strayParts(inv)
	if err := c.pointers(); err != nil {
		return Recovered{}, err
	}
	c.pins()
	if err := ctx.Err(); err != nil {
		return Recovered{}, err
	}
	slices.Sort(c.out.Adopted)
	slices.Sort(c.out.Removed)
	slices.Sort(c.out.Warnings)
	c.out.State = c.state
	return c.out, nil
}

type cleaner struct {
	lake  *Lake
	state State
	out   Recovered
}

// names gives the nodes in order.
func (c *cleaner) names() []string {
	names := make([]string, 0, len(c.state.Nodes))
	for name := range c.state.Nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// adopt writes the receipts of commits that stand without one.
func (c *cleaner) adopt() error {
	for _, name := range c.names() {
		node := c.state.Nodes[name]
		if !node.Adopted {
			continue
		}
		if err := c.lake.WriteReceipt(node.Receipt); err != nil {
			return fmt.Errorf("adopt node %s: %w", name, err)
		}
		node.Adopted, node.Recorded, node.Last = false, true, node.Receipt.Commit
		c.state.Nodes[name] = node
		c.out.Adopted = append(c.out.Adopted, name)
	}
	return nil
}

// staleReceipts lists staged receipts whose commit never came.
func (l *Lake) staleReceipts() []string {
	entries, err := l.fs.ReadDir(l.abs(stateDir))
	if err != nil {
		return nil
	}
	var stale []string
	for _, e := range entries {
		if isTemp(e.Name()) {
			stale = append(stale, path.Join(stateDir, e.Name()))
		}
	}
	return stale
}

// supersede removes what the receipts say the run before replaced, and then
// says so in the receipts. A crash between the two only repeats the removal.
func (c *cleaner) supersede() error {
	for _, name := range c.names() {
		node := c.state.Nodes[name]
		if !node.Recorded || len(node.Receipt.Superseded) == 0 {
			continue
		}
		live := map[string]bool{node.Receipt.Path: true}
		for _, o := range node.Receipt.Outputs {
			for _, f := range o.Files {
				live[f.Path] = true
			}
		}
		var left []string
		for _, p := range node.Receipt.Superseded {
			if !live[p] && !c.remove(p) {
				left = append(left, p)
			}
		}
		receipt := node.Receipt
		receipt.Superseded = left
		if err := c.lake.WriteReceipt(receipt); err != nil {
			return fmt.Errorf("clean up after node %s: %w", name, err)
		}
		node.Receipt = receipt
		c.state.Nodes[name] = node
	}
	return nil
}

// strayParts removes parts that no manifest names. Where a folder has a
// manifest it decides; where it has none, only parts of a first publish that
// never came to its manifest are removed: they say so themselves.
func (c *cleaner) strayParts(inv *inventory) {
	named := map[string]bool{}
	damaged := map[string]bool{}
	ingests := map[string]bool{}
	for name, n := range c.state.Nodes {
		if n.Damage != nil {
			damaged[name] = true
		}
		if n.Manifest != nil {
			for _, p := range n.Manifest.Parts {
				named[path.Join(n.Receipt.Path, p)] = true
			}
		}
		if n.Receipt.Form == FormIngest {
			ingests[n.Receipt.Path] = true
		}
	}
	for _, dir := range inv.parts {
		name := strings.TrimSuffix(path.Base(dir), partsSuffix)
		node := c.state.Nodes[name]
		switch {
		case damaged[name] || node.Foreign:
		case node.Manifest != nil && node.Receipt.Path == dir:
			c.straysIn(dir, func(rel string) bool { return !named[rel] })
		case !slices.Contains(node.Others, dir):
			c.straysIn(dir, func(rel string) bool { return c.uncommitted(rel, name, node) })
		}
	}
	emptied := map[string]bool{}
	for _, rel := range inv.loose {
		home := path.Dir(path.Dir(rel)) // <folder>/<node>/<table>/part-….parquet
		name := path.Base(home)
		node := c.state.Nodes[name]
		stray := !named[rel] && !damaged[name] && !node.Foreign && !slices.Contains(node.Others, home)
		if stray && !ingests[home] {
			stray = c.uncommitted(rel, name, node)
		}
		if stray && c.remove(rel) {
			emptied[path.Dir(rel)], emptied[home] = true, true
		}
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(emptied))) {
		c.remove(dir) // below before above; one that holds more stays
	}
}

// straysIn removes the parts of a folder for which stray holds, and the folder
// where nothing else is in it.
func (c *cleaner) straysIn(dir string, stray func(rel string) bool) {
	entries, err := c.lake.fs.ReadDir(c.lake.abs(dir))
	if err != nil {
		return
	}
	left := len(entries)
	for _, e := range entries {
		rel := path.Join(dir, e.Name())
		switch {
		case isTemp(e.Name()) && !e.IsDir():
			if c.remove(rel) {
				left--
			}
		case e.IsDir():
		default:
			if _, ok := PartNumber(e.Name()); ok && stray(rel) && c.remove(rel) {
				left--
			}
		}
	}
	if left == 0 {
		c.remove(dir)
	}
}

// uncommitted reports whether a part in a folder without a manifest was put
// there by a publish of this node that would have followed on what is published
// now.
func (c *cleaner) uncommitted(rel, name string, node Node) bool {
	footer, err := c.lake.ReadFooter(rel)
	if err != nil {
		return false
	}
	before := ""
	if node.Recorded {
		before = node.Receipt.Commit
	}
	return footer.Metadata[MetaModel] == name && footer.Metadata[MetaCommit] != "" && footer.Metadata[MetaReplaces] == before
}

// pointers writes the pointers of incremental nodes that are missing or wrong.
func (c *cleaner) pointers() error {
	for _, name := range c.names() {
		node := c.state.Nodes[name]
		if node.Receipt.Form != FormIncremental || !node.Recorded || node.Damage != nil || node.Foreign {
			continue
		}
		place := Place{Folder: folderOf(node.Receipt.Path), Name: name, Form: FormIncremental}
		if err := c.lake.EnsurePointer(place); err != nil {
			return err
		}
	}
	return nil
}

// folderOf is the folder of a place's path, "" for the lake itself.
func folderOf(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// remove removes a file or an empty folder and reports whether it is gone. What
// cannot be removed is a warning; a folder that is not empty is not even that.
func (c *cleaner) remove(rel string) bool {
	abs, err := c.lake.Abs(rel)
	if err != nil {
		c.out.Warnings = append(c.out.Warnings, err.Error())
		return true
	}
	err = c.lake.fs.Remove(abs)
	switch {
	case err == nil:
		c.out.Removed = append(c.out.Removed, rel)
		return true
	case notExist(err):
		return true
	}
	if entries, lerr := c.lake.fs.ReadDir(abs); lerr == nil && len(entries) > 0 {
		return true
	}
	c.out.Warnings = append(c.out.Warnings, fmt.Sprintf("remove %s: %v", rel, err))
	return false
}

// removeAll removes a folder and everything in it.
func (c *cleaner) removeAll(rel string) {
	c.out.Warnings = append(c.out.Warnings, c.lake.removeTree(c.lake.abs(rel))...)
	c.out.Removed = append(c.out.Removed, rel)
}

// removeTree removes a folder and everything in it through the seam, as far as
// it goes, and returns what could not be removed. Links are removed, not
// followed.
func (l *Lake) removeTree(abs string) (left []string) {
	entries, err := l.fs.ReadDir(abs)
	if err != nil && !notExist(err) && !isNotDir(err) {
		return []string{fmt.Sprintf("list %s: %v", abs, err)}
	}
	for _, e := range entries {
		at := filepath.Join(abs, e.Name())
		if e.IsDir() {
			left = append(left, l.removeTree(at)...)
		} else if err := l.fs.Remove(at); err != nil && !notExist(err) {
			left = append(left, fmt.Sprintf("remove %s: %v", at, err))
		}
	}
	if err := l.fs.Remove(abs); err != nil && !notExist(err) && len(left) == 0 {
		left = append(left, fmt.Sprintf("remove %s: %v", abs, err))
	}
	return left
}

func isNotDir(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && notExist(pe.Err)
}
