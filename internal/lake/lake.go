// Package lake owns the formats on disk: where published data lies, the
// manifest of a parts folder, its pointer, the receipt of every published node,
// the lock of the one writer, the pins of readers, and how each is read and
// atomically written. It knows no SQL, opens no database and decides nothing
// about what to build.
//
// Its words: a lake is a folder of published data; a node is what a receipt is
// about; a part is one Parquet file of a relation that has several; a manifest
// lists the parts that count, and nothing else does; a commit is the identity
// of one publish, each naming the one that it replaces; a receipt says what is
// published and what it was made from; staging is a folder in which nothing is
// visible yet; a pin is a hard link by which a reader keeps the files that it
// reads.
package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"rbt/internal/diag"
)

// Form is how a node lies in the lake.
type Form string

// The forms of SPEC: file is one Parquet file, parts a folder with a manifest
// replaced whole, incremental the same folder appended to, view only a receipt,
// ingest a folder of tables with one manifest.
const (
	FormFile        Form = "file"
	FormParts       Form = "parts"
	FormIncremental Form = "incremental"
	FormView        Form = "view"
	FormSeed        Form = "seed"
	FormIngest      Form = "ingest"
)

// Column is a column of a published relation. Type is DuckDB's name of the type
// after normalising (no HUGEINT, ENUM, ARRAY, …).
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Lake is one folder of published data. It may be used by several goroutines;
// only the holder of its Lock may write.
type Lake struct {
	root      string
	fs        FS
	manifests *manifests
	staging   *stagings
	kept      *Lock   // until the process ends; nil normally
	memory    *Memory // of ReadState and Recover; nil where there is none
	recalling *Memory // the same, while they read
}

// Open returns the lake at an absolute path. Nothing is created: a lake that is
// not there yet is empty. A lake inside another lake is an error, since readers'
// globs of the outer one would enter it.
func Open(root string, fsys FS) (*Lake, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("open lake %s: the path is not absolute", root)
	}
	root = filepath.Clean(root)
	if info, err := fsys.Stat(root); err == nil && !info.IsDir() {
		return nil, diag.Errorf(diag.OwnFolder, diag.Pos{}, "open lake %s: it is a file", root).
			WithHint("move it away, or name another folder (`lake:` or a target in project.yml)")
	}
	for dir := filepath.Dir(root); ; dir = filepath.Dir(dir) {
		if _, err := fsys.Stat(filepath.Join(dir, filepath.FromSlash(stateDir))); err == nil {
			return nil, nestedError(dir, root)
		}
		if dir == filepath.Dir(dir) {
			return &Lake{root: root, fs: fsys, manifests: &manifests{known: map[string]knownManifest{}}, staging: &stagings{runs: map[string]map[string][]string{}}}, nil
		}
	}
}

// Root is the absolute path of the lake.
func (l *Lake) Root() string { return l.root }

// FS is the file system through which everything in the lake is changed.
func (l *Lake) FS() FS { return l.fs }

// CommitID gives a publish its identity: 32 hex digits from the node's name, its
// fingerprint, the number of the first part (0 where there are none) and the
// commit that it replaces ("" for the first).
func CommitID(name, fingerprint string, part int64, replaces string) string {
	h := sha256.New()
	for _, s := range []string{name, fingerprint, strconv.FormatInt(part, 10), replaces} {
		fmt.Fprintf(h, "%d:%s", len(s), s) // lengths, so that no two lists run together
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func isExist(err error) bool { return errors.Is(err, fs.ErrExist) }

func nestedError(outer, inner string) error {
	return diag.Errorf(diag.LakeNested, diag.Pos{}, "the lake %s lies inside the lake %s", inner, outer).
		WithHint("give one of them another folder: `lake:` in project.yml")
}
