package lake

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// manifestDepth is how deep a manifest is broken into lines: one a part.
const manifestDepth = 2

// ManifestName is the file name of every manifest.
const ManifestName = "_rbt_manifest.json"

// Strategies that a manifest names.
const (
	StrategyAppend = "incremental_append" // form incremental
	StrategyTable  = "table"              // form parts: replaced whole
	StrategyIngest = "ingest"             // form ingest
)

// IngestLedger is the table of an ingest that lists the files of its loads; only
// one that appends has it.
const IngestLedger = "_ledger"

// documentVersion is the version that this rbt writes into manifests and
// receipts; a higher one is an error, since its rules are not known here.
const documentVersion = 1

// Manifest lists the parts of a relation; readers use these and no others.
// Keys that this version does not know are kept in Extra and written back.
type Manifest struct {
	Version     int                        `json:"version"`  // 1; 0 where another tool wrote it
	Strategy    string                     `json:"strategy"` // one of the Strategy constants
	Parts       []string                   `json:"parts"`    // file names in the folder of the manifest, in order
	TotalRows   int64                      `json:"total_rows"`
	NextPart    int64                      `json:"next_part"`
	Columns     []Column                   `json:"columns"`
	PartInfo    map[string]PartInfo        `json:"part_info"`
	Tables      map[string]ManifestTable   `json:"tables,omitempty"` // of an ingest: what each folder holds
	Commit      string                     `json:"commit"`
	Replaces    string                     `json:"replaces"` // commit before this one; "" for the first
	UpdatedAtMS int64                      `json:"updated_at_ms"`
	Extra       map[string]json.RawMessage `json:"-"`
}

// ManifestTable is one table of an ingest; its parts are those of the manifest
// that lie in its folder.
type ManifestTable struct {
	Relation string   `json:"relation"`
	Columns  []Column `json:"columns"`
	Rows     int64    `json:"rows"`
}

// PartInfo is what is known of one part.
type PartInfo struct {
	Rows        int64                      `json:"rows"`
	Bytes       int64                      `json:"bytes"`
	RunID       string                     `json:"run_id"`
	Commit      string                     `json:"commit"`
	Fingerprint string                     `json:"fingerprint"`
	CreatedAtMS int64                      `json:"created_at_ms"`
	Extra       map[string]json.RawMessage `json:"-"`
}

var (
	manifestKeys = jsonKeys(reflect.TypeFor[Manifest]())
	partInfoKeys = jsonKeys(reflect.TypeFor[PartInfo]())
)

// MarshalJSON writes known keys in a fixed order and unknown ones after them.
func (m Manifest) MarshalJSON() ([]byte, error) {
	type plain Manifest
	if m.Parts == nil {
		m.Parts = []string{}
	}
	if m.Columns == nil {
		m.Columns = []Column{}
	}
	if m.PartInfo == nil {
		m.PartInfo = map[string]PartInfo{}
	}
	b, err := json.Marshal(plain(m))
	if err != nil {
		return nil, err
	}
	return withExtra(b, m.Extra, manifestKeys)
}

// UnmarshalJSON keeps unknown keys in Extra.
func (m *Manifest) UnmarshalJSON(b []byte) error {
	type plain Manifest
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	extra, err := unknownKeys(b, manifestKeys)
	if err != nil {
		return err
	}
	*m = Manifest(p)
	m.Extra = extra
	return nil
}

// MarshalJSON writes known keys in a fixed order and unknown ones after them.
func (p PartInfo) MarshalJSON() ([]byte, error) {
	type plain PartInfo
	b, err := json.Marshal(plain(p))
	if err != nil || len(p.Extra) == 0 {
		return b, err
	}
	return withExtra(b, p.Extra, partInfoKeys)
}

// UnmarshalJSON keeps unknown keys in Extra.
func (p *PartInfo) UnmarshalJSON(b []byte) error {
	type plain PartInfo
	var q plain
	if err := json.Unmarshal(b, &q); err != nil {
		return err
	}
	extra, err := unknownKeys(b, partInfoKeys)
	if err != nil {
		return err
	}
	*p = PartInfo(q)
	p.Extra = extra
	return nil
}

// parseManifest reads a manifest strictly: a document that is cut off, is not
// an object, or does not list its parts is an error and never an empty relation.
func parseManifest(b []byte) (*Manifest, error) {
	if len(b) == 0 {
		return nil, errors.New("the manifest is empty (0 bytes)")
	}
	var m Manifest
	if err := m.UnmarshalJSON(b); err != nil {
		return nil, fmt.Errorf("the manifest is not complete JSON: %w", err)
	}
	switch {
	case m.Version < 0 || m.Version > documentVersion:
		return nil, unknownVersion(m.Version, "the manifest has version %d, and this rbt knows versions up to %d", m.Version, documentVersion)
	case m.Parts == nil:
		return nil, errors.New("the manifest has no list of parts")
	case !slices.Contains([]string{StrategyAppend, StrategyTable, StrategyIngest}, m.Strategy):
		return nil, fmt.Errorf("the manifest has the unknown strategy %q", m.Strategy)
	case m.TotalRows < 0 || m.NextPart < 0:
		return nil, errors.New("the manifest has a negative number of rows or parts")
	}
	seen := make(map[string]bool, len(m.Parts))
	for _, p := range m.Parts {
		if err := checkRelative(p); err != nil {
			return nil, fmt.Errorf("the manifest lists a part outside its folder: %w", err)
		}
		if m.Strategy != StrategyIngest && strings.Contains(p, "/") {
			return nil, fmt.Errorf("the manifest lists a part outside its folder: %q", p)
		}
		if seen[p] {
			return nil, fmt.Errorf("the manifest lists the part %q twice", p)
		}
		seen[p] = true
	}
	m.deriveNext()
	return &m, nil
}

// deriveNext lifts NextPart above every listed part, which also gives it where
// another tool wrote the manifest.
func (m *Manifest) deriveNext() {
	m.NextPart = max(m.NextPart, 1)
	for _, p := range m.Parts {
		if n, ok := PartNumber(p); ok {
			m.NextPart = max(m.NextPart, n+1)
		}
	}
}

// manifests remembers the manifests that were parsed last, by path and content: a
// run reads that of every node at its start and again at its publish, and it has a
// line for every part.
type manifests struct {
	mu    sync.Mutex
	known map[string]knownManifest
}

type knownManifest struct {
	content  [sha256.Size]byte
	manifest *Manifest
}

// parse gives the manifest that the content says, to be shared and not changed.
// One of another tool is not kept, since it is completed from its parts.
func (k *manifests) parse(rel string, content []byte) (*Manifest, error) {
	sum := sha256.Sum256(content)
	k.mu.Lock()
	found, ok := k.known[rel]
	k.mu.Unlock()
	if ok && found.content == sum {
		return found.manifest, nil
	}
	m, err := parseManifest(content)
	if err != nil || m.Version == 0 {
		return m, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[rel] = knownManifest{sum, m}
	return m, nil
}

// ReadManifest reads the manifest at a path relative to the lake, which is not to
// be changed: Clone it. The error is a *DamageError where the document cannot be
// used, fs.ErrNotExist where there is none. What another tool left out is derived
// from the parts.
func (l *Lake) ReadManifest(rel string) (*Manifest, error) {
	abs, err := l.Abs(rel)
	if err != nil {
		return nil, err
	}
	b, err := readFile(l.fs, abs)
	if notExist(err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", rel, err)
	}
	m, err := l.manifests.parse(rel, b)
	if err != nil {
		return nil, &DamageError{Path: rel, Err: err}
	}
	if m.Version == 0 && m.Strategy != StrategyIngest {
		if err := l.completeManifest(path.Dir(rel), m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// completeManifest takes from the parts what a manifest of another tool does
// not say: columns, rows and sizes. Columns are joined by name in the order in
// which they first appear; one name with two types is an error.
func (l *Lake) completeManifest(dir string, m *Manifest) error {
	if m.PartInfo == nil {
		m.PartInfo = map[string]PartInfo{}
	}
	joined, at := []Column{}, map[string]int{}
	var rows int64
	for _, part := range m.Parts {
		rel := path.Join(dir, part)
		footer, err := l.ReadFooter(rel)
		if err != nil {
			return err
		}
		rows += footer.Rows
		for _, c := range footer.Columns {
			key := strings.ToLower(c.Name)
			i, ok := at[key]
			if !ok {
				at[key] = len(joined)
				joined = append(joined, c)
			} else if joined[i].Type != c.Type {
				return &DamageError{Path: rel, Err: fmt.Errorf("column %s has type %s, and %s in an earlier part of the manifest", c.Name, c.Type, joined[i].Type)}
			}
		}
		info := m.PartInfo[part]
		info.Rows, info.Bytes = footer.Rows, footer.Bytes
		m.PartInfo[part] = info
	}
	m.TotalRows = rows
	if len(m.Columns) == 0 {
		m.Columns = joined
	}
	return nil
}

// HasLedger reports whether an append can build upon the loads of this ingest.
func (m *Manifest) HasLedger() bool {
	_, ok := m.Tables[IngestLedger]
	return ok
}

// Clone returns a copy that shares nothing that Publish changes.
func (m *Manifest) Clone() *Manifest {
	c := *m
	c.Parts = slices.Clone(m.Parts)
	c.Columns = slices.Clone(m.Columns)
	c.PartInfo = make(map[string]PartInfo, len(m.PartInfo))
	for k, v := range m.PartInfo {
		c.PartInfo[k] = v
	}
	c.Extra = make(map[string]json.RawMessage, len(m.Extra))
	for k, v := range m.Extra {
		c.Extra[k] = v
	}
	return &c
}

// pointer is the document that stands where a reader used to one file a model
// looks for it.
type pointer struct {
	Strategy string `json:"strategy"`
	PartsDir string `json:"parts_dir"`
	Note     string `json:"note"`
}

// pointerText is the content of the pointer of an incremental node.
func pointerText(name string) ([]byte, error) {
	parts := name + partsSuffix
	b, err := json.Marshal(pointer{
		Strategy: StrategyAppend,
		PartsDir: parts,
		Note: fmt.Sprintf("ref() reads the files named in %s/%s; %s is not written",
			parts, ManifestName, name+fileSuffix),
	})
	return append(lines(b, 1), '\n'), err
}

// EnsurePointer writes the pointer of an incremental node where it is missing
// or says something else.
func (l *Lake) EnsurePointer(p Place) error {
	want, err := pointerText(p.Name)
	if err != nil {
		return err
	}
	abs := l.abs(p.Pointer())
	if have, err := readFile(l.fs, abs); err == nil && string(have) == string(want) {
		return nil
	}
	return l.writeFile(abs, want)
}
