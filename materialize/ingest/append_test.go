package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/materialize"
)

// published plays the lake: what the loads of one model have left.
type published struct {
	p    *Program
	prev *Previous
	s    *testSession
	dir  string
	n    int
}

// load runs one load and publishes it.
func (l *published) load(j *Job) error {
	l.n++
	dir := filepath.Join(l.dir, fmt.Sprintf("load%d", l.n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	j.Program, j.Previous = l.p, l.prev
	st, err := j.Stage(context.Background(), l.s, dir)
	if err != nil {
		return err
	}
	next := &Previous{State: st.Manifest[StateKey], Files: map[string][]string{}, Rows: map[string]int64{}}
	for _, o := range st.Outputs {
		next.Files[o.Folder], next.Rows[o.Folder] = slices.Clone(o.Kept), o.KeptRows+o.Rows
		for _, f := range o.Files {
			next.Files[o.Folder] = append(next.Files[o.Folder], f.Path)
		}
	}
	l.prev = next
	return nil
}

// tables reads every relation as its users see it.
func (l *published) tables(t testing.TB) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, o := range l.p.Outputs() {
		if o.Kind == OutputLoads {
			continue
		}
		files := l.prev.Files[o.Folder]
		if q := l.p.RelationSQL(o, func(f string) []string { return l.prev.Files[f] }); q != "" {
			path := filepath.Join(l.dir, fmt.Sprintf("%s.seen%d", o.Folder, l.n))
			if _, err := l.s.CopyTo(context.Background(), q+" ORDER BY _sid", path, nil); err != nil {
				t.Fatalf("%v\n%s", err, q)
			}
			files = []string{path}
		}
		rows := []string{}
		for _, f := range files {
			rows = append(rows, readTable(t, l.s, materialize.StagedOutput{Columns: o.Columns, Files: []materialize.StagedFile{{Path: f}}}, plainColumns...)...)
		}
		out[o.Folder] = rows
		if o.Kind == OutputFamily || o.Kind == OutputOccurrences || o.Kind == OutputRejects {
			sort.Strings(rows) // the order across parts is that of the loads
		}
	}
	return out
}

func writeFiles(t interface{ Fatal(...any) }, dir string, contents map[string]string) []File {
	var files []File
	for name := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(contents[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, File{Path: path, Name: name})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// TestRandomAppendsEqualAFullRefresh splits an input into loads and compares
// them with one load of everything.
func TestRandomAppendsEqualAFullRefresh(t *testing.T) {
	s := newTestSession(t, 2)
	root := t.TempDir()
	n, used := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		src := "mode append\n" + strings.ReplaceAll(drawSpec(rt), "conflict=last", "conflict=first")
		spec := parseSpec(src)
		p, list := Compile(spec)
		if p == nil {
			for _, d := range list {
				if d.Code != diag.IngestBadMode && d.Code != diag.IngestBadMetadata {
					rt.Fatalf("%s\n%v", src, list)
				}
			}
			return
		}
		used++
		contents := drawInput(rt, &spec)
		n++
		dir := filepath.Join(root, fmt.Sprint(n))
		defer os.RemoveAll(dir)
		files := writeFiles(rt, filepath.Join(dir, "in"), contents)
		job := func(files []File) *Job {
			return &Job{Files: files, Workers: rapid.SampledFrom([]int{1, 3}).Draw(rt, "workers"), ChunkBytes: rapid.SampledFrom([]int{64, 1 << 20}).Draw(rt, "chunk")}
		}
		all := &published{p: p, s: s, dir: filepath.Join(dir, "all")}
		allErr := all.load(job(files))
		parts := &published{p: p, s: s, dir: filepath.Join(dir, "parts")}
		var partsErr error
		for i := range max(1, len(files)) {
			// Every load sees all files so far; those of the ledger are skipped.
			if partsErr = parts.load(job(files[:min(i+1, len(files))])); partsErr != nil {
				break
			}
		}
		describe := func() string { return fmt.Sprintf("%s\n%v", src, contents) }
		if allErr != nil || partsErr != nil {
			var a, b diag.Diagnostic
			if !errors.As(allErr, &a) || !errors.As(partsErr, &b) || a.Code != b.Code || a.Code != diag.IngestConflict {
				rt.Fatalf("%s\nat once: %v\nin parts: %v", describe(), allErr, partsErr)
			}
			return
		}
		want, got := all.tables(t), parts.tables(t)
		for _, tables := range []map[string][]string{want, got} {
			unsignZeros(tables)
			for i, r := range tables["_rejects"] {
				tables["_rejects"][i] = strings.Join(strings.SplitN(r, "|", 3)[:2], "|")
			}
			sort.Strings(tables["_rejects"])
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("%s\n%s", describe(), d)
		}
		// A full refresh keeps the order of the ledger, hence the ids.
		again := job(files)
		again.FullRefresh = true
		if err := parts.load(again); err != nil {
			rt.Fatalf("%s\nfull refresh: %v", describe(), err)
		}
		refreshed := parts.tables(t)
		delete(refreshed, "_rejects")
		delete(want, "_rejects")
		unsignZeros(refreshed)
		if d := cmp.Diff(want, refreshed); d != "" {
			rt.Fatalf("full refresh: %s\n%s", describe(), d)
		}
	})
	if used == 0 {
		t.Error("no declaration could be appended to")
	}
}

const appendSpec = "mode append\nroot r\nfamily f r s\noccurrences table\nrecord r\nfield a integer\nref v v\nmeta field m varchar\nid base=x series=1\nrecord s\nfield a integer\nid base=x series=1\nrecord v by_value\nfield x integer\nchild c integer"

func newPublished(t *testing.T, src string) *published {
	return &published{p: mustCompile(t, src), s: newTestSession(t, 2), dir: t.TempDir()}
}

func TestAppendSequence(t *testing.T) {
	l := newPublished(t, appendSpec)
	in := t.TempDir()
	contents := map[string]string{"2.ndjson": `{"a":1,"m":"x","v":{"x":1,"c":[1]}}` + "\n" + `{"a":2,"v":{"x":2}}`}
	if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
		t.Fatal(err)
	}
	// The second load's name sorts before the first's: loads are in order, not names.
	contents["1.ndjson"] = `{"a":3,"v":{"x":1,"c":[7,8]}}` + "\n" + `{"a":1,"m":"x","v":{"x":1,"c":[1]}}` + "\n{"
	if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"r":            {"1|x-1-1|1|x|1|true|2|2.ndjson|1", "2|x-1-3|2|∅|2|true|1|2.ndjson|2", "3|x-1-5|3|∅|1|true|1|1.ndjson|1"},
		"v":            {"1|1|1|false|3|2.ndjson|1", "2|2|∅|false|1|2.ndjson|2"},
		"s":            {},
		"v__c":         {"1|0|1"},
		"f":            {"r|1", "r|2", "r|3"},
		"_rejects":     {"1.ndjson|3|66|1|$|∅|syntax|the text ends where a key in double quotes is expected|{"},
		"_occurrences": {"r|1|1.ndjson|2", "r|1|2.ndjson|1", "r|2|2.ndjson|2", "r|3|1.ndjson|1", "v|1|1.ndjson|1", "v|1|1.ndjson|2", "v|1|2.ndjson|1", "v|2|2.ndjson|2"},
	}
	if d := cmp.Diff(want, l.tables(t)); d != "" {
		t.Error(d)
	}
	before := l.prev
	// Nothing new: every part is kept and none is written.
	if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before.Files["r"], l.prev.Files["r"]); d != "" {
		t.Error(d)
	}
	// A conflict with what is stored publishes nothing.
	contents["3.ndjson"] = "\n" + `{"a":1,"m":"y","v":{"x":1,"c":[1]}}`
	err := l.load(&Job{Files: writeFiles(t, in, contents)})
	d := wantDiag(t, err, diag.IngestConflict, "3.ndjson:2", "r: the metadata field m differs from that of the same content, which is stored")
	if len(d.Notes) != 1 || d.Notes[0].Pos.String() != "2.ndjson:1" {
		t.Errorf("notes %v", d.Notes)
	}
	if d := cmp.Diff(want, l.tables(t)); d != "" {
		t.Error(d)
	}
}

// TestAppendConflictNamesLists: where stored metadata differs in a list only, the
// list is named.
func TestAppendConflictNamesLists(t *testing.T) {
	l := newPublished(t, "mode append\nroot r\nrecord r\nfield a integer\nmeta field m varchar\nmeta child tags varchar")
	in := t.TempDir()
	contents := map[string]string{"1.ndjson": `{"a":1,"m":"x","tags":["p"]}`}
	if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
		t.Fatal(err)
	}
	contents["2.ndjson"] = `{"a":1,"m":"x","tags":["q"]}`
	err := l.load(&Job{Files: writeFiles(t, in, contents)})
	wantDiag(t, err, diag.IngestConflict, "2.ndjson:1", "r: the metadata field tags differs from that of the same content, which is stored")
}

func TestAppendPromotesAndFindsTakenIDs(t *testing.T) {
	l := newPublished(t, "mode append\nroot r\nrecord r\nfield a integer\nfield code varchar\nref next r\nid from=code base=x series=1")
	in := t.TempDir()
	contents := map[string]string{"1.ndjson": `{"a":1,"next":{"a":2,"code":"k"}}`}
	if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
		t.Fatal(err)
	}
	contents["2.ndjson"] = `{"a":2,"code":"k"}`
	if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1|x-1-1|1|∅|2|true|1|1.ndjson|1", "2|k|2|k|∅|true|2|1.ndjson|1"}
	if d := cmp.Diff(want, l.tables(t)["r"]); d != "" {
		t.Error(d)
	}
	contents["3.ndjson"] = `{"a":7,"code":"k"}`
	d := wantDiag(t, l.load(&Job{Files: writeFiles(t, in, contents)}), diag.IngestDuplicateID, "3.ndjson:1", "the id k of r is taken")
	if len(d.Notes) != 1 || d.Notes[0].Pos.String() != "1.ndjson:1" {
		t.Errorf("notes %v", d.Notes)
	}
}

func TestChangedFiles(t *testing.T) {
	in := t.TempDir()
	src := "mode append\nroot r\nrecord r\nfield a integer"
	l := newPublished(t, src)
	if err := l.load(&Job{Files: writeFiles(t, in, map[string]string{"1.ndjson": `{"a":1}`})}); err != nil {
		t.Fatal(err)
	}
	// Touched, but the same bytes.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(in, "1.ndjson"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := l.load(&Job{Files: []File{{Path: filepath.Join(in, "1.ndjson"), Name: "1.ndjson"}}}); err != nil {
		t.Fatal(err)
	}
	files := writeFiles(t, in, map[string]string{"1.ndjson": `{"a":2}`})
	wantDiag(t, l.load(&Job{Files: files}), diag.IngestChangedFile, "1.ndjson", "was loaded before and has changed")
	if err := l.load(&Job{Files: files, FullRefresh: true}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"1|2|true|1|1.ndjson|1"}, l.tables(t)["r"]); d != "" {
		t.Error(d)
	}
	l.p = mustCompile(t, src+"\non_changed_file ignore")
	if err := l.load(&Job{Files: writeFiles(t, in, map[string]string{"1.ndjson": `{"a":3}`})}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"1|2|true|1|1.ndjson|1"}, l.tables(t)["r"]); d != "" {
		t.Error(d)
	}
}

func TestChangedDeclarations(t *testing.T) {
	base := "mode append\nroot r\nrecord r\nfield a integer\nmeta field m varchar\nref n n\nrecord n\nfield x integer\nchild c integer"
	for _, c := range []struct{ from, to, msg string }{
		{"field x integer", "field x integer\nfield y varchar", ""},
		{"meta field m varchar", "meta field m varchar\nmeta field k varchar", ""},
		{"root r", "root r\nmax_rejects 3", ""},
		{"field x integer", "field x integer\nfield y varchar required", "records.n.fields.y is new and required"},
		{"field x integer", "meta field m varchar\nfield x integer", "records.n.metadata.m is the first metadata of its record"},
		{"field a integer", "field a bigint", "records.r.fields.a.type is bigint and was integer"},
		{"field x integer\n", "", "records.n.fields.x is gone"},
		{"record n\n", "record n content_id conflict=fail identity=n\n", ""}, // the defaults, spelled out
		{"record n", "record n by_value", "records.n.dedup is by_value and was absent"},
		{"child c integer", "child c bigint", "records.n.children.c.type is bigint and was integer"},
		{"root r", "root n", "root is n and was r"},
		{"root r", "root r\nunknown_fields capture", "unknown_fields is capture and was ignore"},
		{"root r", "root r\noccurrences table", "occurrences is table and was count"},
		{"ref n n", "ref n n required", "records.r.references.n.required is true and was false"},
	} {
		l := newPublished(t, base)
		in := t.TempDir()
		contents := map[string]string{"1.ndjson": `{"a":1,"m":"x","n":{"x":1,"c":[1]}}`}
		if err := l.load(&Job{Files: writeFiles(t, in, contents)}); err != nil {
			t.Fatal(err)
		}
		l.p = mustCompile(t, strings.Replace(base, c.from, c.to, 1))
		contents["2.ndjson"] = `{"a":1,"m":"x","n":{"x":1,"c":[1]}}` + "\n" + `{"a":2,"n":{"x":1,"y":"new","c":[1]}}`
		err := l.load(&Job{Files: writeFiles(t, in, contents)})
		if c.msg != "" {
			wantDiag(t, err, diag.IngestChangedSpec, "", c.msg)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

func TestAppendRefusesWhatNeedsASweep(t *testing.T) {
	for _, src := range []string{
		"mode append\nroot r\nrecord r\nref p p\nrecord p none\nfield a integer",
		"mode append\nroot r\nrecord r by_value\nchild c -> p\nrecord p\nfield a integer",
		"mode append\nroot r\nrecord r\nmeta ref p p\nrecord p\nfield a integer",
	} {
		if _, list := Compile(parseSpec(src)); len(list) != 1 || list[0].Code != diag.IngestBadMode || list[0].Pos.Line != 1 {
			t.Errorf("%s: %v", src, list)
		}
	}
}

func TestStateOfAnotherFormatIsRefused(t *testing.T) {
	l := newPublished(t, "mode append\nroot r\nrecord r\nfield a integer")
	if err := l.load(&Job{}); err != nil {
		t.Fatal(err)
	}
	var st state
	if err := json.Unmarshal(l.prev.State, &st); err != nil {
		t.Fatal(err)
	}
	st.Format = 2
	l.prev.State, _ = json.Marshal(st)
	wantDiag(t, l.load(&Job{}), diag.IngestChangedSpec, "", "has the format 2")
	if err := l.load(&Job{FullRefresh: true}); err != nil {
		t.Error(err)
	}
}

// Two loads have records of dedup: none at the same places of their files. They
// are two records, and so are the by-value records that hold them.
func TestRecordsAtEqualPlacesOfTwoLoads(t *testing.T) {
	l := newPublished(t, "mode append\nroot r\nrecord r none\nref v v\nrecord v by_value\nfield a integer\nref n n\nrecord n none\nfield b integer")
	in := t.TempDir()
	line := `{"v":{"a":1,"n":{"b":2}}}`
	for _, name := range []string{"1.ndjson", "2.ndjson"} {
		files := writeFiles(t, in, map[string]string{name: line})
		if name == "2.ndjson" {
			files = append([]File{{Path: filepath.Join(in, "1.ndjson"), Name: "1.ndjson"}}, files...)
		}
		if err := l.load(&Job{Files: files}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{
		"r": {"1|1|true|1|1.ndjson|1", "2|2|true|1|2.ndjson|1"},
		"v": {"1|1|1|false|1|1.ndjson|1", "2|1|2|false|1|2.ndjson|1"},
		"n": {"1|2|false|1|1.ndjson|1", "2|2|false|1|2.ndjson|1"}, "_rejects": {},
	}
	if d := cmp.Diff(want, l.tables(t)); d != "" {
		t.Error(d)
	}
}

// A stored part that cannot be read is named, whatever the engine says of it.
func TestDamagedStoredPart(t *testing.T) {
	l := newPublished(t, "mode append\nroot r\nrecord r\nfield a integer\nmeta field m integer")
	in := t.TempDir()
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "{\"a\":%d,\"m\":%d}\n", i, i*7919)
	}
	files := writeFiles(t, in, map[string]string{"1.ndjson": lines.String()})
	if err := l.load(&Job{Files: files}); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"_keys__r", "_ledger"} {
		part := l.prev.Files[folder][0]
		good, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		for name, bad := range map[string][]byte{"cut": good[:len(good)/2], "overwritten": append(bytes.Repeat([]byte{0xA5}, len(good)/2), good[len(good)/2:]...)} {
			if err := os.WriteFile(part, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			l.s = newTestSession(t, 1) // one that has read the part before remembers it
			again := append(slices.Clone(files), writeFiles(t, in, map[string]string{"2.ndjson": `{"a":1,"m":1}`})...)
			err := l.load(&Job{Files: again})
			var d diag.Diagnostic
			if !errors.As(err, &d) || d.Code != diag.LakeDamaged || d.Pos.File != part {
				t.Errorf("%s %s: %v", folder, name, err)
			}
		}
		if err := os.WriteFile(part, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
