package lake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Receipt says what is published of one node and what it was made from. It is
// written last, to <lake>/.rbt/state/<name>.json. All paths are relative to the
// lake with "/". Keys that this version does not know are kept in Extra and
// written back.
//
// Of a form with a manifest the document names that and not the files: their list
// would grow with every increment, and the manifest is what counts. Reading a
// node fills them in. A document that lists them is read as well.
type Receipt struct {
	Version     int                        `json:"version"` // 1
	Name        string                     `json:"name"`
	Form        Form                       `json:"form"`
	Path        string                     `json:"path"` // the file, the parts folder or the ingest folder; "" for a view
	Commit      string                     `json:"commit"`
	Fingerprint string                     `json:"fingerprint"`
	Inputs      Inputs                     `json:"inputs"`
	Volatile    *string                    `json:"volatile"` // why the node can never be unchanged; null where it can
	Outputs     []Output                   `json:"outputs"`
	SQL         string                     `json:"sql,omitempty"` // of views: the compiled SQL
	TestsHash   string                     `json:"tests_hash"`
	Superseded  []string                   `json:"superseded"`          // files, then folders, to be removed at the start of the next run
	NextPart    int64                      `json:"next_part,omitempty"` // outlives a switch to another form, so that a number is never used twice
	RunID       string                     `json:"run_id"`
	PublishedAt int64                      `json:"published_at_ms"`
	Stats       *json.RawMessage           `json:"stats,omitempty"` // figures of an ingest by phase
	Extra       map[string]json.RawMessage `json:"-"`
}

// Inputs is what a node was made from, kept piece by piece so that a plan can
// say which piece changed.
type Inputs struct {
	SQL     string               `json:"sql"`     // hash of the compiled SQL without comments and white space
	Config  map[string]string    `json:"config"`  // key of the config that shapes data -> hash of its value
	Parents map[string]string    `json:"parents"` // parent relation -> content hash, else commit
	Sources map[string]FileStamp `json:"sources"` // source file -> identity
	Engine  string               `json:"engine"`  // engine version, time zone, settings
}

// FileStamp is the identity of a source file: size in bytes, modification and
// status-change time in ns since 1970 (0 where the system has none). As JSON it
// is the array [size, mtime, ctime].
type FileStamp struct {
	Size, Mtime, Ctime int64
}

// Output is one relation that a node publishes.
type Output struct {
	Relation    string   `json:"relation"`
	Files       []File   `json:"files,omitzero"` // not written where a manifest lists them
	Rows        int64    `json:"rows"`
	Columns     []Column `json:"columns"`
	ContentHash *string  `json:"content_hash"`
	// Greatest is known of an incremental node; nil where nothing is.
	Greatest *Greatest `json:"greatest,omitempty"`
}

// File is one published file of an output.
type File struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Commit string `json:"commit"`
}

// receiptKeys are the keys of a receipt; one of them is only for people and for
// other tools.
var receiptKeys = append(jsonKeys(reflect.TypeFor[Receipt]()), "manifest")

// receiptDepth is how deep a receipt is broken into lines: one a source file.
const receiptDepth = 3

// MarshalJSON writes [size, mtime, ctime].
func (s FileStamp) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]int64{s.Size, s.Mtime, s.Ctime})
}

// UnmarshalJSON reads [size, mtime, ctime]. The receipt of an ingest can hold
// 100,000 of them, so it does not go through the JSON decoder again.
func (s *FileStamp) UnmarshalJSON(b []byte) error {
	inner := bytes.TrimSpace(b)
	if len(inner) < 2 || inner[0] != '[' || inner[len(inner)-1] != ']' {
		return fmt.Errorf("a source needs [size, mtime, ctime], and is %s", b)
	}
	var v [3]int64
	rest, more := inner[1:len(inner)-1], true
	for i := range v {
		if !more {
			return fmt.Errorf("a source needs [size, mtime, ctime], and has %d values", i)
		}
		var word []byte
		word, rest, more = bytes.Cut(rest, []byte{','})
		var err error
		if v[i], err = strconv.ParseInt(string(bytes.TrimSpace(word)), 10, 64); err != nil {
			return fmt.Errorf("a source needs [size, mtime, ctime], and is %s", b)
		}
	}
	if more {
		return fmt.Errorf("a source needs [size, mtime, ctime], and has more: %s", b)
	}
	*s = FileStamp{v[0], v[1], v[2]}
	return nil
}

// MarshalJSON writes known keys in a fixed order and unknown ones after them;
// empty lists are written as such, never as null.
func (r Receipt) MarshalJSON() ([]byte, error) {
	type plain Receipt
	var manifest string
	if r.Form.HasManifest() {
		manifest = path.Join(r.Path, ManifestName)
	}
	if r.Inputs.Config == nil {
		r.Inputs.Config = map[string]string{}
	}
	if r.Inputs.Parents == nil {
		r.Inputs.Parents = map[string]string{}
	}
	if r.Inputs.Sources == nil {
		r.Inputs.Sources = map[string]FileStamp{}
	}
	if r.Superseded == nil {
		r.Superseded = []string{}
	}
	outputs := make([]Output, len(r.Outputs))
	for i, o := range r.Outputs {
		switch {
		case manifest != "":
			o.Files = nil
		case o.Files == nil:
			o.Files = []File{}
		}
		if o.Columns == nil {
			o.Columns = []Column{}
		}
		outputs[i] = o
	}
	r.Outputs = outputs
	b, err := json.Marshal(struct {
		plain
		Manifest string `json:"manifest,omitempty"`
	}{plain(r), manifest})
	if err != nil {
		return nil, err
	}
	return withExtra(b, r.Extra, receiptKeys)
}

// UnmarshalJSON keeps unknown keys in Extra.
func (r *Receipt) UnmarshalJSON(b []byte) error {
	type plain Receipt
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	extra, err := unknownKeys(b, receiptKeys)
	if err != nil {
		return err
	}
	*r = Receipt(p)
	r.Extra = extra
	return nil
}

// parseReceipt reads the receipt of a node strictly.
func parseReceipt(name string, b []byte) (Receipt, error) {
	if len(b) == 0 {
		return Receipt{}, errors.New("the receipt is empty (0 bytes)")
	}
	var r Receipt
	if err := r.UnmarshalJSON(b); err != nil {
		return Receipt{}, fmt.Errorf("the receipt is not complete JSON: %w", err)
	}
	switch {
	case r.Version < 1 || r.Version > documentVersion:
		return Receipt{}, unknownVersion(r.Version, "the receipt has version %d, and this rbt knows version %d", r.Version, documentVersion)
	case r.Name != name:
		return Receipt{}, fmt.Errorf("the receipt is of node %q", r.Name)
	case len(r.Outputs) == 0:
		return Receipt{}, errors.New("the receipt has no outputs")
	}
	switch r.Form {
	case FormView:
		return r, nil
	case FormFile, FormParts, FormIncremental, FormSeed, FormIngest:
	default:
		return Receipt{}, fmt.Errorf("the receipt has the unknown form %q", r.Form)
	}
	paths := append([]string{r.Path}, r.Superseded...)
	for _, o := range r.Outputs {
		for _, f := range o.Files {
			paths = append(paths, f.Path)
		}
	}
	for _, p := range paths {
		if err := checkRelative(p); err != nil {
			return Receipt{}, fmt.Errorf("the receipt names a file outside the lake: %w", err)
		}
	}
	return r, nil
}

// readReceipt reads the document at a path relative to the lake as the receipt
// of a node.
func (l *Lake) readReceipt(name, rel string) (Receipt, error) {
	b, err := readFile(l.fs, l.abs(rel))
	if notExist(err) {
		return Receipt{}, fs.ErrNotExist
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("read receipt %s: %w", rel, err)
	}
	r, err := parseReceipt(name, b)
	if err != nil {
		return Receipt{}, &DamageError{Node: name, Path: rel, Err: err}
	}
	return r, nil
}

// StagedReceipt is a receipt that is written and durable but not yet visible.
// It is staged before the commit that it describes, so that after the commit
// only a rename is left to do, and a crash between the two loses nothing.
type StagedReceipt struct {
	lake      *Lake
	temp, abs string
}

// StageReceipt writes a receipt beside its place.
func (l *Lake) StageReceipt(r Receipt) (*StagedReceipt, error) {
	if err := checkName(r.Name); err != nil {
		return nil, err
	}
	if err := l.EnsureDir(stateDir); err != nil {
		return nil, err
	}
	b, err := encode(r, receiptDepth)
	if err != nil {
		return nil, fmt.Errorf("encode receipt of %s: %w", r.Name, err)
	}
	abs := l.abs(receiptPath(r.Name))
	temp, err := l.stageFile(abs, b)
	if err != nil {
		return nil, err
	}
	return &StagedReceipt{lake: l, temp: temp, abs: abs}, nil
}

// Commit makes the receipt the one that counts.
func (s *StagedReceipt) Commit() error { return s.lake.commitFile(s.temp, s.abs) }

// Discard removes the staged receipt, as far as that is possible: a run's start
// removes it otherwise.
func (s *StagedReceipt) Discard() { _ = s.lake.fs.Remove(s.temp) }

// SupersededBy lists what the next run has to remove once now has replaced the
// receipt r: what it still had to remove itself, and its own files that are not
// among those of now. Files come before the folders that hold them.
func (l *Lake) SupersededBy(r, now Receipt) []string {
	r = l.withFiles(r)
	live := map[string]bool{now.Path: true}
	for _, o := range now.Outputs {
		for _, f := range o.Files {
			live[f.Path] = true
		}
	}
	list := slices.Clone(r.Superseded)
	folders := map[string]bool{}
	for _, o := range r.Outputs {
		for _, f := range o.Files {
			list = append(list, f.Path)
			folders[path.Dir(f.Path)] = true
		}
	}
	if r.Form == FormIncremental && (now.Form != FormIncremental || r.Path != now.Path) {
		list = append(list, strings.TrimSuffix(r.Path, partsSuffix)+pointerSuffix)
	}
	if r.Form.HasManifest() && r.Path != now.Path {
		list = append(list, path.Join(r.Path, ManifestName))
		for _, dir := range slices.Sorted(maps.Keys(folders)) {
			if dir != r.Path {
				list = append(list, dir)
			}
		}
		list = append(list, r.Path)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(p string) bool {
		gone := live[p] || seen[p]
		seen[p] = true
		return gone
	})
}
