package lake

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// candidate is something that lies where a node's data could lie: a Parquet
// file, or the folder of a manifest.
type candidate struct {
	name string // of the node whose place it is
	path string // as a receipt would call it
	form Form   // FormFile, FormSeed, FormParts (any strategy) or FormIngest
}

// manifest is the path of a candidate's manifest; "" for a file.
func (c candidate) manifest() string {
	if !c.form.HasManifest() {
		return ""
	}
	return path.Join(c.path, ManifestName)
}

// inventory is what a walk over a lake finds, each list in order of paths.
type inventory struct {
	candidates []candidate
	parts      []string // folders of parts, with or without a manifest
	staging    []string // folders named .rbt-tmp
	temps      []string // documents that were not renamed
	nested     []string // folders that are lakes of their own; not entered
	loose      []string // files named as parts outside folders of parts: an ingest's tables
}

// byName groups candidates, each group in order of paths.
func (v *inventory) byName() map[string][]candidate {
	m := make(map[string][]candidate, len(v.candidates))
	for i, c := range v.candidates {
		if first, ok := m[c.name]; ok {
			m[c.name] = append(first, c)
		} else {
			m[c.name] = v.candidates[i : i+1 : i+1] // most are alone
		}
	}
	return m
}

// scan walks the lake. Folders of parts are not entered: their manifests say
// what counts.
func (l *Lake) scan(ctx context.Context) (*inventory, error) {
	w := walker{lake: l, seen: map[string]bool{}}
	if err := w.walk(ctx, ""); err != nil {
		return nil, err
	}
	return &w.found, nil
}

type walker struct {
	lake  *Lake
	found inventory
	seen  map[string]bool // targets of links to folders, against loops
}

func (w *walker) walk(ctx context.Context, rel string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := w.lake.root
	if rel != "" {
		dir = w.lake.abs(rel)
	}
	entries, err := w.lake.fs.ReadDir(dir)
	if notExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list lake folder %s: %w", dir, err)
	}
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		if !w.isDir(e, at) {
			w.file(rel, e.Name())
			continue
		}
		if err := w.folder(ctx, at, e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) folder(ctx context.Context, at, base string) error {
	switch {
	case at == ownDir:
		return nil
	case base == stagingDir:
		w.found.staging = append(w.found.staging, at)
		return nil
	case base == ownDir:
		w.found.nested = append(w.found.nested, path.Dir(at))
		return nil
	case strings.HasPrefix(base, "."):
		return nil // hidden: not a folder that a node can have
	case strings.HasSuffix(base, partsSuffix):
		name := strings.TrimSuffix(base, partsSuffix)
		if checkName(name) == nil {
			w.found.parts = append(w.found.parts, at)
			w.found.candidates = append(w.found.candidates, candidate{name, at, FormParts})
		}
		return nil
	}
	return w.walk(ctx, at)
}

func (w *walker) file(dir, base string) {
	switch {
	case isTemp(base):
		w.found.temps = append(w.found.temps, path.Join(dir, base))
	case base == ManifestName && dir != "":
		if name := path.Base(dir); checkName(name) == nil {
			w.found.candidates = append(w.found.candidates, candidate{name, dir, FormIngest})
		}
	case strings.HasSuffix(base, fileSuffix):
		if _, ok := PartNumber(base); ok {
			w.found.loose = append(w.found.loose, path.Join(dir, base))
			return
		}
		name := strings.TrimSuffix(base, fileSuffix)
		if checkName(name) != nil {
			return
		}
		form := FormFile
		if dir == seedsFolder {
			form = FormSeed
		}
		w.found.candidates = append(w.found.candidates, candidate{name, path.Join(dir, base), form})
	}
}

// isDir follows links to folders, each target once.
func (w *walker) isDir(e fs.DirEntry, rel string) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := w.lake.fs.Stat(w.lake.abs(rel))
	if err != nil || !info.IsDir() {
		return false
	}
	target, err := filepath.EvalSymlinks(w.lake.abs(rel))
	if err != nil || w.seen[target] {
		return false
	}
	w.seen[target] = true
	return true
}

// candidatesIn looks for a node's data in the given folders without a walk, and
// among the seeds where it is in none of them.
func (l *Lake) candidatesIn(name string, folders []string) ([]candidate, error) {
	var found []candidate
	probe := func(p Place) error {
		c := candidate{name, p.Path(), p.Form}
		at := c.path
		if m := c.manifest(); m != "" {
			at = m
		}
		switch _, err := l.fs.Stat(l.abs(at)); {
		case err == nil:
			found = append(found, c)
		case !notExist(err):
			return fmt.Errorf("look for node %s: %w", name, err)
		}
		return nil
	}
	for _, folder := range folders {
		for _, form := range []Form{FormFile, FormParts, FormIngest} {
			if form == FormFile && folder == seedsFolder {
				form = FormSeed
			}
			if err := probe(Place{Folder: folder, Name: name, Form: form}); err != nil {
				return nil, err
			}
		}
	}
	if len(found) == 0 && !slices.Contains(folders, seedsFolder) {
		if err := probe(Place{Folder: seedsFolder, Name: name, Form: FormSeed}); err != nil {
			return nil, err
		}
	}
	return found, nil
}
