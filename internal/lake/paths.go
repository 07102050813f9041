package lake

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// Names inside a lake. None that rbt makes for itself ends in ".parquet", since
// a reader's "**" enters hidden folders.
const (
	ownDir        = ".rbt"                  // <lake>/.rbt: state, lock, pins
	stateDir      = ".rbt/state"            // one receipt a node
	pinsDir       = ".rbt/pins"             // one folder a reader
	lockFile      = ".rbt/lock"             // the lock of the one writer
	stagingDir    = ".rbt-tmp"              // <folder>/.rbt-tmp/<run id>/<node>/
	tempSuffix    = ".rbt-tmp"              // .<file>.rbt-tmp: a document before its rename
	pointerSuffix = ".rbt_incremental.json" // <folder>/<node>.rbt_incremental.json
	fileSuffix    = ".parquet"
	partsSuffix   = ".parts"
	receiptSuffix = ".json"
	seedsFolder   = "seeds"
)

// partDigits is the width of a part's number: 13 digits sort as text as they do
// as numbers and never run out.
const partDigits = 13

// Place is where a node of one form lies: Folder is relative to the lake with
// "/", "" for the lake itself. Use NewPlace, which refuses what leaves the lake.
type Place struct {
	Folder string
	Name   string
	Form   Form
}

// NewPlace checks folder and name. A seed always lies in seeds/, whatever
// folder says. The error says which of the two cannot stand in a lake and why.
func NewPlace(folder, name string, form Form) (Place, error) {
	if err := checkName(name); err != nil {
		return Place{}, err
	}
	switch form {
	case FormFile, FormParts, FormIncremental, FormView, FormIngest:
	case FormSeed:
		folder = seedsFolder
	default:
		return Place{}, fmt.Errorf("place node %s: unknown form %q", name, form)
	}
	folder = strings.Trim(folder, "/")
	if folder == "." {
		folder = ""
	}
	if folder != "" {
		for _, seg := range strings.Split(folder, "/") {
			if err := checkSegment(seg); err != nil {
				return Place{}, fmt.Errorf("place node %s in folder %q: %w", name, folder, err)
			}
			if strings.HasPrefix(seg, ".rbt") || strings.HasSuffix(seg, partsSuffix) || strings.HasSuffix(seg, fileSuffix) {
				return Place{}, fmt.Errorf("place node %s in folder %q: the name %q is kept for rbt's own files", name, folder, seg)
			}
		}
	}
	return Place{Folder: folder, Name: name, Form: form}, nil
}

// checkName allows what project allows as the name of a node: letters, digits
// and "_", so that a name is one path segment on every system.
func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("a node has no name")
	}
	for _, r := range name {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return fmt.Errorf("node name %q: %q cannot stand in a file name of the lake", name, r)
		}
	}
	return nil
}

// checkSegment allows one segment of a relative path that stays inside the
// lake on every system.
func checkSegment(seg string) error {
	switch {
	case seg == "":
		return fmt.Errorf("the path has an empty segment")
	case seg == "." || seg == "..":
		return fmt.Errorf("%q leaves its folder", seg)
	case strings.ContainsAny(seg, "/\\:\x00"):
		return fmt.Errorf("%q holds a character that means a folder or drive on some systems", seg)
	}
	return nil
}

// checkRelative allows a relative path with "/" that stays inside the lake.
func checkRelative(rel string) error {
	if rel == "" {
		return fmt.Errorf("the path is empty")
	}
	for _, seg := range strings.Split(rel, "/") {
		if err := checkSegment(seg); err != nil {
			return fmt.Errorf("path %q: %w", rel, err)
		}
	}
	return nil
}

// Path is what a receipt calls path: the file, the parts folder or the ingest
// folder, relative to the lake; "" for a view.
func (p Place) Path() string {
	switch p.Form {
	case FormFile, FormSeed:
		return path.Join(p.Folder, p.Name+fileSuffix)
	case FormParts, FormIncremental:
		return path.Join(p.Folder, p.Name+partsSuffix)
	case FormIngest:
		return path.Join(p.Folder, p.Name)
	default:
		return ""
	}
}

// Manifest is the path of the manifest relative to the lake; "" for forms that
// have none.
func (p Place) Manifest() string {
	if !p.Form.HasManifest() {
		return ""
	}
	return path.Join(p.Path(), ManifestName)
}

// Pointer is the path of the pointer relative to the lake; "" for forms other
// than incremental.
func (p Place) Pointer() string {
	if p.Form != FormIncremental {
		return ""
	}
	return path.Join(p.Folder, p.Name+pointerSuffix)
}

// Staging is the folder of one node in one run, relative to the lake.
func (p Place) Staging(runID string) string {
	return path.Join(p.Folder, stagingDir, runID, p.Name)
}

// HasManifest reports whether a node of the form is several files under a
// manifest.
func (f Form) HasManifest() bool {
	return f == FormParts || f == FormIncremental || f == FormIngest
}

// PartName is the file name of a part.
func PartName(number int64) string {
	return fmt.Sprintf("part-%0*d%s", partDigits, number, fileSuffix)
}

// PartNumber is the number in a part's file name (folders before it are
// ignored), or false where the name is not one that rbt gives.
func PartNumber(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(path.Base(name), "part-")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, fileSuffix)
	if !ok || len(digits) != partDigits {
		return 0, false
	}
	var n int64
	for _, r := range digits {
		if r < '0' || r > '9' {
			return 0, false
		}
		n = n*10 + int64(r-'0')
	}
	return n, true
}

// Abs turns a path relative to the lake, as a receipt holds it, into a system
// path. A path that leaves the lake is an error.
func (l *Lake) Abs(rel string) (string, error) {
	if err := checkRelative(rel); err != nil {
		return "", err
	}
	return filepath.Join(l.root, filepath.FromSlash(rel)), nil
}

// abs is Abs for paths that rbt made itself or has checked on reading.
func (l *Lake) abs(rel string) string { return filepath.Join(l.root, filepath.FromSlash(rel)) }

// Rel turns a system path inside the lake into a path relative to it with "/".
func (l *Lake) Rel(abs string) (string, error) {
	rel, err := filepath.Rel(l.root, abs)
	if err != nil {
		return "", fmt.Errorf("find %s in lake %s: %w", abs, l.root, err)
	}
	rel = filepath.ToSlash(rel)
	if err := checkRelative(rel); err != nil {
		return "", fmt.Errorf("find %s in lake %s: %w", abs, l.root, err)
	}
	return rel, nil
}

func receiptPath(name string) string { return stateDir + "/" + name + receiptSuffix }

// tempOf is where a document is written before its rename.
func tempOf(abs string) string {
	return filepath.Join(filepath.Dir(abs), "."+filepath.Base(abs)+tempSuffix)
}

// isTemp reports whether a file name is one that tempOf gives.
func isTemp(base string) bool {
	return strings.HasPrefix(base, ".") && strings.HasSuffix(base, tempSuffix) && base != stagingDir
}
