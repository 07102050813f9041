package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var ctx = context.Background()

func open(t testing.TB, dir string) *Lake {
	t.Helper()
	l, err := Open(dir, OS())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func put(t testing.TB, l *Lake, rel, content string) {
	t.Helper()
	abs := filepath.Join(l.root, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(abs), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(abs, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// parquetFile is a small Parquet file of one BIGINT column with the metadata
// pairs.
func parquetFile(t testing.TB, column string, rows int, pairs ...string) string {
	t.Helper()
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{schema.NewInt64Node(column, parquet.Repetitions.Required, -1)}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	meta := metadata.NewKeyValueMetadata()
	for i := 0; i < len(pairs); i += 2 {
		if err := meta.Append(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	w := file.NewParquetWriter(&out, root, file.WithWriteMetadata(meta))
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	col, err := group.NextColumn()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]int64, rows)
	for i := range values {
		values[i] = int64(i)
	}
	if _, err := col.(*file.Int64ColumnChunkWriter).WriteBatch(values, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func published(t testing.TB, name, fingerprint, replaces string) (content, commit string) {
	commit = CommitID(name, fingerprint, 0, replaces)
	return parquetFile(t, "a", 3, MetaModel, name, MetaFingerprint, fingerprint, MetaCommit, commit, MetaReplaces, replaces), commit
}

func receiptOf(name string, form Form, path, commit string, files ...File) Receipt {
	return Receipt{Version: 1, Name: name, Form: form, Path: path, Commit: commit, Fingerprint: "f",
		Outputs: []Output{{Relation: name, Files: files, Rows: 3, Columns: []Column{{"a", "BIGINT"}}}}}
}

func recoverNow(t testing.TB, l *Lake) Recovered {
	t.Helper()
	lock, err := l.Lock(ctx, LockOptions{PID: os.Getpid(), Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	r, err := l.Recover(ctx, lock)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		folder, name            string
		form                    Form
		path, manifest, pointer string
		err                     string
	}{
		{"gold", "m", FormFile, "gold/m.parquet", "", "", ""},
		{"", "m", FormFile, "m.parquet", "", "", ""},
		{"a/b", "m", FormParts, "a/b/m.parts", "a/b/m.parts/_rbt_manifest.json", "", ""},
		{"a", "m", FormIncremental, "a/m.parts", "a/m.parts/_rbt_manifest.json", "a/m.rbt_incremental.json", ""},
		{"a", "m", FormView, "", "", "", ""},
		{"a", "m", FormSeed, "seeds/m.parquet", "", "", ""},
		{"a", "m", FormIngest, "a/m", "a/m/_rbt_manifest.json", "", ""},
		{"a", "Größe_2", FormFile, "a/Größe_2.parquet", "", "", ""},
		{"../x", "m", FormFile, "", "", "", `place node m in folder "../x": ".." leaves its folder`},
		{"a/../../x", "m", FormFile, "", "", "", `place node m in folder "a/../../x": ".." leaves its folder`},
		{"a//b", "m", FormFile, "", "", "", `place node m in folder "a//b": the path has an empty segment`},
		{`a\..\b`, "m", FormFile, "", "", "", `place node m in folder "a\\..\\b": "a\\..\\b" holds a character that means a folder or drive on some systems`},
		{"C:", "m", FormFile, "", "", "", `place node m in folder "C:": "C:" holds a character that means a folder or drive on some systems`},
		{".rbt/state", "m", FormFile, "", "", "", `place node m in folder ".rbt/state": the name ".rbt" is kept for rbt's own files`},
		{"x.parts", "m", FormFile, "", "", "", `place node m in folder "x.parts": the name "x.parts" is kept for rbt's own files`},
		{"a", "../m", FormFile, "", "", "", `node name "../m": '.' cannot stand in a file name of the lake`},
		{"a", "", FormFile, "", "", "", `a node has no name`},
		{"a", "a/b", FormFile, "", "", "", `node name "a/b": '/' cannot stand in a file name of the lake`},
		{"a", "m", "heap", "", "", "", `place node m: unknown form "heap"`},
	} {
		p, err := NewPlace(c.folder, c.name, c.form)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q %q: %v, want %s", c.folder, c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{c.path, c.manifest, c.pointer}, []string{p.Path(), p.Manifest(), p.Pointer()}); diff != "" {
			t.Error(c, diff)
		}
	}
	l := open(t, t.TempDir())
	for _, rel := range []string{"", "../x", "a/../../x", "/etc", "a//b", `a\b`, "a/."} {
		if abs, err := l.Abs(rel); err == nil {
			t.Errorf("%q became %s", rel, abs)
		}
	}
}

func TestPartNames(t *testing.T) {
	if got := PartName(1); got != "part-0000000000001.parquet" {
		t.Error(got)
	}
	for name, want := range map[string]int64{"part-0000000000042.parquet": 42, "t/part-0000000000007.parquet": 7, "part-42.parquet": -1,
		"part-00000000000a1.parquet": -1, "part-0000000000042.parquet.tmp": -1, "m.parquet": -1} {
		n, ok := PartNumber(name)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%s: %d", name, n)
		}
	}
}

func TestOpenNested(t *testing.T) {
	dir := t.TempDir()
	put(t, open(t, dir), ".rbt/state/m.json", "{}")
	_, err := Open(filepath.Join(dir, "gold", "inner"), OS())
	if err == nil || err.Error() != fmt.Sprintf("the lake %s lies inside the lake %s [RBT5004]", filepath.Join(dir, "gold", "inner"), dir) {
		t.Error(err)
	}
	outer := open(t, t.TempDir())
	put(t, outer, "gold/inner/.rbt/state/m.json", "{}")
	lock, err := outer.Lock(ctx, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := outer.Recover(ctx, lock); err == nil || !strings.Contains(err.Error(), "lies inside the lake") {
		t.Error(err)
	}
	if _, err := Open("relative", OS()); err == nil {
		t.Error("a relative lake was opened")
	}
}

func TestManifestStrict(t *testing.T) {
	whole := `{"version":1,"strategy":"incremental_append","parts":["part-0000000000001.parquet"],"total_rows":3,"columns":[],"part_info":{}}`
	for text, want := range map[string]string{
		"":                   "the manifest is empty (0 bytes)",
		whole[:len(whole)/2]: "the manifest is not complete JSON: unexpected end of JSON input",
		"null":               "the manifest has no list of parts",
		"{}":                 "the manifest has no list of parts",
		"[]":                 "the manifest is not complete JSON: json: cannot unmarshal array into Go value of type lake.plain",
		whole + "x":          "the manifest is not complete JSON: invalid character 'x' after top-level value",
		`{"strategy":"incremental_append","parts":null}`:                     "the manifest has no list of parts",
		`{"strategy":"x","parts":[]}`:                                        `the manifest has the unknown strategy "x"`,
		`{"version":2,"strategy":"table","parts":[]}`:                        "the manifest has version 2, and this rbt knows versions up to 1",
		`{"version":1,"strategy":"table","parts":["../x.parquet"]}`:          `the manifest lists a part outside its folder: path "../x.parquet": ".." leaves its folder`,
		`{"version":1,"strategy":"table","parts":["/etc/passwd"]}`:           `the manifest lists a part outside its folder: path "/etc/passwd": the path has an empty segment`,
		`{"version":1,"strategy":"table","parts":["a/b.parquet"]}`:           `the manifest lists a part outside its folder: "a/b.parquet"`,
		`{"version":1,"strategy":"table","parts":["a.parquet","a.parquet"]}`: `the manifest lists the part "a.parquet" twice`,
		`{"version":1,"strategy":"table","parts":[],"total_rows":-1}`:        "the manifest has a negative number of rows or parts",
		`{"version":1,"strategy":"incremental_append","parts":[1]}`:          "the manifest is not complete JSON: json: cannot unmarshal number into Go struct field plain.parts of type string",
	} {
		l := open(t, t.TempDir())
		put(t, l, "gold/m.parts/_rbt_manifest.json", text)
		_, err := l.ReadManifest("gold/m.parts/_rbt_manifest.json")
		var damage *DamageError
		if !errors.As(err, &damage) || err.Error() != "lake file gold/m.parts/_rbt_manifest.json: "+want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
		state, err := l.ReadState(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := state.Nodes["m"]; !errors.As(n.Damage, &damage) || !strings.Contains(damage.Diagnostic().Hint, "rbt run --full-refresh -s m") {
			t.Errorf("%q: state says %+v", text, n)
		}
	}
	if _, err := open(t, t.TempDir()).ReadManifest("gold/m.parts/_rbt_manifest.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestManifestKeepsUnknownKeys(t *testing.T) {
	text := `{"zeta":{"x":[1,2.50]},"version":1,"strategy":"incremental_append","parts":["part-0000000000003.parquet"],"total_rows":3,"next_part":2,
		"columns":[{"name":"a","type":"BIGINT"}],"part_info":{"part-0000000000003.parquet":{"rows":3,"note":"ä"}},"alpha":null,"commit":"c","replaces":"b"}`
	m, err := parseManifest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if m.NextPart != 4 {
		t.Errorf("next_part %d: below a part that exists", m.NextPart)
	}
	b, err := encode(m, manifestDepth)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"strategy":"incremental_append","parts":["part-0000000000003.parquet"],"total_rows":3,"next_part":4,"columns":[{"name":"a","type":"BIGINT"}],` +
		`"part_info":{"part-0000000000003.parquet":{"rows":3,"bytes":0,"run_id":"","commit":"","fingerprint":"","created_at_ms":0,"note":"ä"}},` +
		`"commit":"c","replaces":"b","updated_at_ms":0,"alpha":null,"zeta":{"x":[1,2.50]}}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, compact.String()); diff != "" {
		t.Error(diff)
	}
	again, err := parseManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again, cmp.Transformer("json", func(r json.RawMessage) string {
		var v any
		_ = json.Unmarshal(r, &v)
		return fmt.Sprint(v)
	})); diff != "" {
		t.Error(diff)
	}
}

func TestManifestOfAnotherTool(t *testing.T) {
	l := open(t, t.TempDir())
	put(t, l, "gold/m.parts/part-0000000000001.parquet", parquetFile(t, "a", 3))
	put(t, l, "gold/m.parts/part-0000000000004.parquet", parquetFile(t, "b", 2))
	put(t, l, "gold/m.parts/_rbt_manifest.json", `{"strategy":"incremental_append","parts":["part-0000000000001.parquet","part-0000000000004.parquet"],"total_rows":5,"updated_at_ms":7,"owner":"me"}`)
	state, err := l.ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := state.Nodes["m"]
	if n.Damage != nil || !n.Foreign || n.Recorded || n.Receipt.Form != FormIncremental || len(n.Receipt.Commit) != 32 {
		t.Errorf("%+v", n)
	}
	if n.Manifest.NextPart != 5 || n.Manifest.TotalRows != 5 || string(n.Manifest.Extra["owner"]) != `"me"` {
		t.Errorf("%+v", n.Manifest)
	}
	if diff := cmp.Diff([]Column{{"a", "BIGINT"}, {"b", "BIGINT"}}, n.Receipt.Outputs[0].Columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"gold/m.parts"}, state.Foreign); diff != "" {
		t.Error(diff)
	}
	// A cut-off part is an error that names it.
	put(t, l, "gold/m.parts/part-0000000000004.parquet", "PAR1")
	n, _, err = l.ReadNode("m", "gold")
	if err != nil || n.Damage == nil || n.Damage.Error() != "lake file gold/m.parts/part-0000000000004.parquet: the file has 4 bytes and is no Parquet file" {
		t.Error(err, n.Damage)
	}
}

func TestReceiptStrict(t *testing.T) {
	good, err := encode(receiptOf("m", FormFile, "gold/m.parquet", "c", File{Path: "gold/m.parquet"}), receiptDepth)
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string { return strings.Replace(string(good), old, new, 1) }
	for text, want := range map[string]string{
		"":                                       "the receipt is empty (0 bytes)",
		string(good[:40]):                        "the receipt is not complete JSON: unexpected end of JSON input",
		swap(`"version": 1`, `"version": 9`):     "the receipt has version 9, and this rbt knows version 1",
		swap(`"name": "m"`, `"name": "n"`):       `the receipt is of node "n"`,
		swap(`"form": "file"`, `"form": "heap"`): `the receipt has the unknown form "heap"`,
		swap(`"path": "gold/m.parquet"`, `"path": "../m.parquet"`): `the receipt names a file outside the lake: path "../m.parquet": ".." leaves its folder`,
		swap(`"superseded": []`, `"superseded": ["/etc/passwd"]`):  `the receipt names a file outside the lake: path "/etc/passwd": the path has an empty segment`,
		`{"version":1,"name":"m","form":"file"}`:                   "the receipt has no outputs",
	} {
		l := open(t, t.TempDir())
		put(t, l, ".rbt/state/m.json", text)
		state, err := l.ReadState(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := state.Nodes["m"]; n.Damage == nil || n.Damage.Error() != "lake file .rbt/state/m.json: "+want {
			t.Errorf("%q:\n got %v\nwant %s", text, n.Damage, want)
		}
		// A damaged receipt never lets recovery remove anything of its node.
		put(t, l, "gold/m.parts/part-0000000000001.parquet", parquetFile(t, "a", 1, MetaModel, "m", MetaCommit, "c", MetaReplaces, ""))
		if r := recoverNow(t, l); len(r.Removed) > 0 {
			t.Errorf("%q: removed %v", text, r.Removed)
		}
	}
}

func TestReceiptRoundTrip(t *testing.T) {
	why, hash := "uses random()", "abc"
	stats := json.RawMessage(`{"a":1}`)
	r := receiptOf("m", FormFile, "gold/m.parquet", "c", File{"gold/m.parquet", 12, "c"})
	r.Inputs = Inputs{SQL: "s", Config: map[string]string{"k": "h"}, Parents: map[string]string{"p": "i"}, Sources: map[string]FileStamp{"f": {1, 2, 3}}, Engine: "e"}
	r.Volatile, r.Outputs[0].ContentHash, r.Stats, r.Superseded = &why, &hash, &stats, []string{"gold/old.parquet"}
	r.Extra = map[string]json.RawMessage{"later": json.RawMessage(`[true]`)}
	b, err := encode(r, receiptDepth)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "   \"f\": [1,2,3]\n") {
		t.Error(string(b))
	}
	got, err := parseReceipt("m", b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got, cmp.Transformer("json", func(r json.RawMessage) string { return strings.Join(strings.Fields(string(r)), "") })); diff != "" {
		t.Error(diff)
	}
	empty, err := json.Marshal(receiptOf("v", FormView, "", "c"))
	if err != nil || strings.Contains(string(empty), ":null") != strings.Contains(string(empty), `"volatile":null`) {
		t.Error(string(empty), err)
	}
}

func TestCommitIDProperty(t *testing.T) {
	a := CommitID("m", "f", 1, "")
	if len(a) != 32 || a != CommitID("m", "f", 1, "") {
		t.Error(a)
	}
	rapid.Check(t, func(t *rapid.T) {
		type in struct {
			name, fp, replaces string
			part               int64
		}
		draw := func() in {
			return in{rapid.StringN(0, 3, -1).Draw(t, "n"), rapid.StringN(0, 3, -1).Draw(t, "f"), rapid.StringN(0, 3, -1).Draw(t, "r"), rapid.Int64Range(0, 12).Draw(t, "p")}
		}
		x, y := draw(), draw()
		if (x == y) != (CommitID(x.name, x.fp, x.part, x.replaces) == CommitID(y.name, y.fp, y.part, y.replaces)) {
			t.Fatalf("%+v and %+v", x, y)
		}
	})
}

func TestAdoption(t *testing.T) {
	l := open(t, t.TempDir())
	first, c1 := published(t, "m", "f1", "")
	put(t, l, "gold/m.parquet", first)
	// Without a receipt and replacing nothing: adopted.
	state, err := l.ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := state.Nodes["m"]
	if !n.Adopted || n.Recorded || n.Receipt.Commit != c1 || n.Receipt.Fingerprint != "" || len(state.Foreign) != 0 {
		t.Errorf("%+v %v", n, state.Foreign)
	}
	if diff := cmp.Diff(recoverNow(t, l).Adopted, []string{"m"}); diff != "" {
		t.Error(diff)
	}
	if n, _, _ := l.ReadNode("m"); !n.Recorded || n.Adopted || n.Last != c1 || n.Receipt.Outputs[0].Rows != 3 {
		t.Errorf("%+v", n)
	}
	// Replacing what the receipt names: adopted, with the staged receipt where
	// there is one.
	second, c2 := published(t, "m", "f2", c1)
	put(t, l, "gold/m.parquet", second)
	r := receiptOf("m", FormFile, "gold/m.parquet", c2, File{"gold/m.parquet", int64(len(second)), c2})
	r.TestsHash = "tests"
	if _, err := l.StageReceipt(r); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := l.ReadNode("m"); !n.Adopted || n.Receipt.TestsHash != "tests" || n.Last != c1 {
		t.Errorf("%+v", n)
	}
	recoverNow(t, l)
	if n, _, _ := l.ReadNode("m"); n.Adopted || n.Receipt.TestsHash != "tests" || n.Last != c2 {
		t.Errorf("%+v", n)
	}
	// Skipping a commit, of another node, or of nobody: foreign.
	_, c3 := published(t, "m", "f3", c2)
	skipped, _ := published(t, "m", "f4", c3)
	other, _ := published(t, "n", "f4", c2)
	for _, content := range []string{skipped, other, parquetFile(t, "a", 3)} {
		put(t, l, "gold/m.parquet", content)
		n, _, err := l.ReadNode("m")
		if err != nil || !n.Foreign || n.Adopted || !n.Recorded || n.Last != c2 || n.Damage != nil {
			t.Errorf("%v %+v", err, n)
		}
		if r := recoverNow(t, l); len(r.Adopted)+len(r.Removed) > 0 || len(r.State.Foreign) != 1 {
			t.Errorf("%+v", r)
		}
	}
	// Cut off, or gone.
	put(t, l, "gold/m.parquet", second[:len(second)-30])
	if n, _, _ := l.ReadNode("m"); n.Damage == nil || n.Damage.Error() != fmt.Sprintf("lake file gold/m.parquet: the file (%d bytes) does not end as a Parquet file does", len(second)-30) {
		t.Errorf("%+v", n)
	}
	os.Remove(l.abs("gold/m.parquet"))
	if n, _, _ := l.ReadNode("m"); n.Damage == nil || n.Damage.Error() != "lake file gold/m.parquet: the published file is missing" {
		t.Errorf("%+v", n)
	}
	// The right commit and another size.
	put(t, l, "gold/m.parquet", second)
	r.Outputs[0].Files[0].Bytes++
	if err := l.WriteReceipt(r); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := l.ReadNode("m"); n.Damage == nil || !strings.Contains(n.Damage.Error(), "its receipt says") {
		t.Errorf("%+v", n)
	}
}

// TestAdoptedIncrementKeepsFingerprint: an increment that was committed before a
// crash is never appended again, since its part says what it was made from.
func TestAdoptedIncrementKeepsFingerprint(t *testing.T) {
	l := open(t, t.TempDir())
	part := parquetFile(t, "a", 3)
	put(t, l, "gold/m.parts/part-0000000000001.parquet", part)
	m := &Manifest{Version: 1, Strategy: StrategyAppend, Parts: []string{PartName(1)}, TotalRows: 3, NextPart: 2, Columns: []Column{{"a", "BIGINT"}},
		PartInfo: map[string]PartInfo{PartName(1): {Rows: 3, Bytes: int64(len(part)), Fingerprint: "f1", RunID: "r1"}}, Commit: CommitID("m", "f1", 1, "")}
	text, _ := encode(m, manifestDepth)
	put(t, l, "gold/m.parts/_rbt_manifest.json", string(text))
	if got := recoverNow(t, l); len(got.Adopted) != 1 {
		t.Fatalf("%+v", got)
	}
	n, _, err := l.ReadNode("m")
	if err != nil || n.Receipt.Fingerprint != "f1" || n.Receipt.NextPart != 2 || n.Manifest.PartInfo[PartName(1)].Fingerprint != "f1" {
		t.Errorf("%v %+v", err, n)
	}
	if b, err := os.ReadFile(l.abs("gold/m.rbt_incremental.json")); err != nil || !strings.Contains(string(b), `"parts_dir": "m.parts"`) {
		t.Errorf("pointer: %v %s", err, b)
	}
}

func TestOrphansAndForeign(t *testing.T) {
	l := open(t, t.TempDir())
	content, c := published(t, "gone", "f", "")
	put(t, l, "gold/gone.parquet", content)
	if err := l.WriteReceipt(receiptOf("gone", FormFile, "gold/gone.parquet", c, File{"gold/gone.parquet", int64(len(content)), c})); err != nil {
		t.Fatal(err)
	}
	put(t, l, "gold/theirs.parquet", parquetFile(t, "a", 1))
	put(t, l, "gold/gone.parts/part-0000000000001.parquet", parquetFile(t, "a", 1))
	put(t, l, "backup/gone.parquet", parquetFile(t, "a", 1))
	put(t, l, "gold/not a node.parquet", "x")
	before := recoverNow(t, l)
	if diff := cmp.Diff([]string{"gone"}, before.State.Orphans(func(name string) bool { return name != "gone" })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"backup/gone.parquet", "gold/theirs.parquet"}, before.State.Foreign); diff != "" {
		t.Error(diff)
	}
	if len(before.Removed) > 0 {
		t.Errorf("removed %v", before.Removed)
	}
	if n := before.State.Nodes["theirs"]; !n.Foreign || n.Receipt.Outputs[0].Rows != 1 {
		t.Errorf("%+v", n)
	}
}

func TestLock(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "lake"))
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lock, err := l.Lock(ctx, LockOptions{PID: 42, Host: "host", Now: start})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Lock(ctx, LockOptions{PID: 43, Host: "host"})
	var locked *LockedError
	if !errors.As(err, &locked) || err.Error() != "another run (pid 42 on host, started 2026-01-02T03:04:05Z) holds the lock of lake "+l.Root() {
		t.Error(err)
	}
	_, err = l.Lock(ctx, LockOptions{PID: 43, Host: "host", Timeout: time.Millisecond})
	if !errors.As(err, &locked) || !strings.HasSuffix(err.Error(), ", still after 1ms") {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Lock(cancelled, LockOptions{Timeout: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waited := make(chan error)
	go func() {
		second, err := l.Lock(ctx, LockOptions{PID: 43, Host: "host", Timeout: time.Minute})
		if err == nil {
			err = second.Release()
		}
		waited <- err
	}()
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	// The text of a process that died means nothing: the kernel's lock counts.
	put(t, l, ".rbt/lock", fmt.Sprintf("pid %d on host, started long ago\n", os.Getpid()))
	third, err := l.Lock(ctx, LockOptions{PID: 44, Host: "host", Now: start})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.LockHolder(); got != "pid 44 on host, started 2026-01-02T03:04:05Z" {
		t.Error(got)
	}
	if err := third.Release(); err != nil || l.LockHolder() != "" {
		t.Error(err, l.LockHolder())
	}
	if _, err := l.Recover(ctx, nil); err == nil {
		t.Error("recovered without the lock")
	}
	kept, err := l.Lock(ctx, LockOptions{PID: 45, Host: "host", Now: start})
	if err != nil {
		t.Fatal(err)
	}
	kept.Keep()
	err = kept.Release()
	kept = nil
	runtime.GC()
	runtime.GC()
	if _, lerr := l.Lock(ctx, LockOptions{}); err != nil || !errors.As(lerr, &locked) {
		t.Errorf("released %v, and then: %v", err, lerr)
	}
}

func TestLockOfRemovedFile(t *testing.T) {
	l := open(t, t.TempDir())
	lock, err := l.Lock(ctx, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l.abs(".rbt")); err != nil {
		t.Fatal(err)
	}
	second, err := l.Lock(ctx, LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.Release(), lock.Release()); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyLake(t *testing.T) {
	l, err := Open(filepath.Join(t.TempDir(), "lake"), &Faulty{FS: OS(), N: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	readOnly, err := Open(l.root, refusing{OS(), syscall.EROFS})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readOnly.Lock(ctx, LockOptions{}); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), l.root) {
		t.Error(err)
	}
}

// refusing makes no folders.
type refusing struct {
	FS
	err error
}

func (r refusing) MkdirAll(name string) error {
	return &fs.PathError{Op: "mkdir", Path: name, Err: r.err}
}
func (r refusing) Link(a, b string) error {
	return &os.LinkError{Op: "link", Old: a, New: b, Err: r.err}
}

func TestPins(t *testing.T) {
	l := open(t, t.TempDir())
	content, c1 := published(t, "m", "f1", "")
	put(t, l, "gold/m.parquet", content)
	recoverNow(t, l)
	pins := l.NewPins(1234)
	if _, err := os.Stat(l.abs(".rbt/pins")); !os.IsNotExist(err) {
		t.Error("a reader that reads nothing made a folder")
	}
	p, ok, err := pins.Pin(l, "m")
	if err != nil || !ok || !p.Held || p.Node.Receipt.Commit != c1 {
		t.Fatal(p, ok, err)
	}
	at := p.Files["m"][0].Path
	if filepath.Dir(at) != l.abs(".rbt/pins/1234") || strings.HasSuffix(at, ".parquet") {
		t.Error(at)
	}
	// A run replaces the file and cleans up: the pinned file stays what it was.
	second, _ := published(t, "m", "f2", c1)
	put(t, l, "gold/new", second)
	if err := os.Rename(l.abs("gold/new"), l.abs("gold/m.parquet")); err != nil {
		t.Fatal(err)
	}
	recoverNow(t, l)
	if b, err := os.ReadFile(at); err != nil || string(b) != content {
		t.Errorf("the pinned file changed: %v", err)
	}
	if _, ok, err := pins.Pin(l, "absent", "gold"); ok || err != nil {
		t.Error(ok, err)
	}
	// Another reader of the same number, as from another container, does not get
	// in the way.
	other := l.NewPins(1234)
	if q, ok, err := other.Pin(l, "m"); err != nil || !ok || !q.Held || other.dir == pins.dir {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := pins.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(l.abs(".rbt/pins")); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
	// The pins of a dead reader are removed, also where its number lives on.
	put(t, l, fmt.Sprintf(".rbt/pins/%d/7.pin", os.Getpid()), "x")
	put(t, l, fmt.Sprintf(".rbt/pins/%d/lock", os.Getpid()), "")
	recoverNow(t, l)
	if entries, err := os.ReadDir(l.abs(".rbt/pins")); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}

func TestPinsWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	content, c1 := published(t, "m", "f1", "")
	put(t, open(t, dir), "gold/m.parquet", content)
	recoverNow(t, open(t, dir))
	l, err := Open(dir, refusing{OS(), syscall.EXDEV})
	if err != nil {
		t.Fatal(err)
	}
	linking, err := Open(dir, notLinking{OS()})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Lake{l, linking} {
		pins := l.NewPins(7)
		p, ok, err := pins.Pin(l, "m")
		if err != nil || !ok || p.Held || p.Files["m"][0].Path != l.abs("gold/m.parquet") {
			t.Fatal(p, ok, err)
		}
		if same, err := l.Unchanged(p); !same || err != nil {
			t.Error(same, err)
		}
		second, _ := published(t, "m", "f2", c1)
		put(t, l, "gold/m.parquet", second)
		if same, err := l.Unchanged(p); same || err != nil {
			t.Error(same, err)
		}
		put(t, l, "gold/m.parquet", content)
		if err := pins.Close(); err != nil {
			t.Error(err)
		}
	}
}

// notLinking makes folders but no links.
type notLinking struct{ FS }

func (notLinking) Link(a, b string) error {
	return &os.LinkError{Op: "link", Old: a, New: b, Err: syscall.EXDEV}
}

// TestPinsUnderPublishes reads while another goroutine publishes and cleans up:
// every reading is whole, and one version.
func TestPinsUnderPublishes(t *testing.T) {
	l, err := Open(t.TempDir(), notDurable{OS()})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(i int, before string) string {
		content, commit := published(t, "m", fmt.Sprint(i), before)
		put(t, l, "gold/.staged", content)
		if err := l.EnsureDir("gold"); err != nil {
			t.Error(err)
		}
		r := receiptOf("m", FormFile, "gold/m.parquet", commit, File{"gold/m.parquet", int64(len(content)), commit})
		if err := l.CommitFile(l.abs("gold/.staged"), r); err != nil {
			t.Error(err)
		}
		return commit
	}
	commit := publish(0, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			commit = publish(i+1, commit)
		}
	}()
	pins := l.NewPins(os.Getpid())
	defer pins.Close()
	reads := 0
	for running := true; running; reads++ {
		select {
		case <-done:
			running = false
		default:
		}
		p, ok, err := pins.Pin(l, "m")
		if err != nil || !ok || p.Node.Damage != nil {
			t.Fatal(reads, ok, err, p.Node.Damage)
		}
		b, err := os.Open(p.Files["m"][0].Path)
		if err != nil {
			t.Fatal(err)
		}
		footer, err := readFooter(b)
		b.Close()
		if err != nil || footer.Metadata[MetaCommit] != p.Node.Receipt.Commit {
			t.Fatalf("read %d: file of %s, receipt of %s: %v", reads, footer.Metadata[MetaCommit], p.Node.Receipt.Commit, err)
		}
		runtime.Gosched()
	}
	t.Logf("%d readings beside 300 publishes", reads)
}

// notDurable saves the time that a disk takes.
type notDurable struct{ FS }

func (notDurable) Sync(string) error    { return nil }
func (notDurable) SyncDir(string) error { return nil }

func TestFaulty(t *testing.T) {
	dir := t.TempDir()
	f := &Faulty{FS: OS(), N: 2, Err: syscall.ENOSPC, Sticky: true}
	if err := f.MkdirAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(filepath.Join(dir, "a", "x"), []byte("1234")); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a", "x")); err != nil || string(b) != "12" {
		t.Error(string(b), err)
	}
	if err := f.Sync(filepath.Join(dir, "a", "x")); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if err := f.Remove(filepath.Join(dir, "a", "x")); err != nil {
		t.Error(err)
	}
	want := []Call{{"MkdirAll", filepath.Join(dir, "a"), ""}, {"Write", filepath.Join(dir, "a", "x"), ""}, {"Sync", filepath.Join(dir, "a", "x"), ""}, {"Remove", filepath.Join(dir, "a", "x"), ""}}
	if diff := cmp.Diff(want, f.Calls()); diff != "" {
		t.Error(diff)
	}
	if os.Getenv("RBT_FAULTY_KILL") != "" {
		(&Faulty{FS: OS(), N: 1}).Stat(dir)
		t.Fatal("not killed")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFaulty$")
	cmd.Env = append(os.Environ(), "RBT_FAULTY_KILL=1")
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != -1 && runtime.GOOS != "windows" {
		t.Error(err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"strategy":"table","parts":["a"],"part_info":{"a":{"rows":1,"x":2}},"y":1}`))
	f.Add([]byte(`{"strategy":"ingest","parts":["t/a"],"tables":{"t":{"relation":"m__t"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err != nil {
			return
		}
		text, err := encode(m, manifestDepth)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseManifest(text)
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(m, again, cmpopts.EquateEmpty(), cmp.Transformer("json", func(r json.RawMessage) string {
			var v any
			_ = json.Unmarshal(r, &v)
			return fmt.Sprint(v)
		})) {
			t.Fatalf("%s became %s", b, text)
		}
	})
}

func TestOnlyKeys(t *testing.T) {
	known := []string{"a", "b"}
	for text, want := range map[string]bool{
		`{}`: true, `{"a":1,"b":{"c":[{"d":2}],"x":"a,\"c\":"}}`: true, ` { "a" : "x:y,{\\" , "b" : [ 1 , "c" ] } `: true,
		`{"c":1}`: false, `{"a":{"b":1},"z":null}`: false, `{"a":[1,2],"b\"":3}`: false,
	} {
		if got := onlyKeys([]byte(text), known); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestWideFooters: a footer that is longer than what is read at once.
func TestWideFooters(t *testing.T) {
	l := open(t, t.TempDir())
	long := strings.Repeat("x", 3*firstTail)
	content, c1 := parquetFile(t, "a", 2, "long", long, MetaModel, "m", MetaCommit, CommitID("m", "f", 0, ""), MetaReplaces, "", "later", long), CommitID("m", "f", 0, "")
	put(t, l, "gold/m.parquet", content)
	recoverNow(t, l)
	n, _, err := l.ReadNode("m")
	if err != nil || n.Last != c1 || n.Foreign || n.Damage != nil {
		t.Errorf("%v %+v", err, n)
	}
	f, err := l.ReadFooter("gold/m.parquet")
	if err != nil || f.Rows != 2 || f.Metadata["later"] != long || f.Bytes != int64(len(content)) {
		t.Error(err, f.Rows, f.Bytes)
	}
	for _, cut := range []int{0, 1, 11, 12, len(content) / 2, len(content) - 1} {
		put(t, l, "gold/cut.parquet", content[:cut])
		var damage *DamageError
		if _, err := l.ReadFooter("gold/cut.parquet"); !errors.As(err, &damage) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if _, err := l.ReadFooter("gold/absent.parquet"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestSeedWithoutReceipt: the data of a seed is found whatever folder is asked
// for.
func TestSeedWithoutReceipt(t *testing.T) {
	l := open(t, t.TempDir())
	content, c := published(t, "s", "f", "")
	put(t, l, "seeds/s.parquet", content)
	if n, ok, err := l.ReadNode("s", "gold"); err != nil || !ok || !n.Adopted || n.Receipt.Commit != c || n.Receipt.Form != FormSeed {
		t.Errorf("%v %v %+v", ok, err, n)
	}
}

func TestFileInTheWay(t *testing.T) {
	l := open(t, t.TempDir())
	put(t, l, "gold", "x")
	if err := l.EnsureDir("gold"); err == nil || err.Error() != "make folder "+l.abs("gold")+": a file of that name is in the way" {
		t.Error(err)
	}
	if _, err := l.MakeStaging(Place{Folder: "gold/deep", Name: "m", Form: FormFile}, "run"); err == nil || !strings.Contains(err.Error(), l.abs("gold")) {
		t.Error(err)
	}
	if _, err := l.MakeStaging(Place{Name: "m", Form: FormFile}, "../run"); err == nil {
		t.Error("a run id left the staging folder")
	}
}

// TestReceiptNamesManifest: the receipt of a form with a manifest does not grow
// with the parts; reading the node gives them, also from a receipt that lists them.
func TestReceiptNamesManifest(t *testing.T) {
	l := open(t, t.TempDir())
	part := parquetFile(t, "a", 3)
	place, err := NewPlace("gold", "m", FormIncremental)
	if err != nil {
		t.Fatal(err)
	}
	m := &Manifest{Version: 1, Strategy: StrategyAppend, Commit: "c", TotalRows: 6, Columns: []Column{{"a", "BIGINT"}}, PartInfo: map[string]PartInfo{}}
	var files []File
	for _, name := range []string{PartName(1), PartName(2)} {
		put(t, l, "gold/m.parts/"+name, part)
		m.Parts = append(m.Parts, name)
		m.PartInfo[name] = PartInfo{Rows: 3, Bytes: int64(len(part)), Commit: "c"}
		files = append(files, File{"gold/m.parts/" + name, int64(len(part)), "c"})
	}
	r := receiptOf("m", FormIncremental, "gold/m.parts", "c", files...)
	if err := l.CommitManifest(nil, place, m, r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(l.abs(".rbt/state/m.json"))
	if err != nil || strings.Contains(string(text), "part-") || !strings.Contains(string(text), `"manifest": "gold/m.parts/_rbt_manifest.json"`) {
		t.Errorf("%v\n%s", err, text)
	}
	listing := strings.Replace(string(text), `"rows": 3`, `"files": [{"path": "gold/m.parts/old.parquet", "bytes": 1, "commit": "b"}], "rows": 3`, 1)
	for _, text := range []string{string(text), listing} {
		put(t, l, ".rbt/state/m.json", text)
		n, ok, err := l.ReadNode("m")
		if err != nil || !ok || n.Damage != nil {
			t.Fatal(err, ok, n.Damage)
		}
		if diff := cmp.Diff(files, n.Receipt.Outputs[0].Files); diff != "" {
			t.Error(diff)
		}
		if len(n.Receipt.Extra) > 0 {
			t.Errorf("unknown keys %v", n.Receipt.Extra)
		}
	}
	// What is superseded is known without the list: from the manifest, and from
	// the folder where that cannot be read.
	bare, now := receiptOf("m", FormIncremental, "gold/m.parts", "c"), receiptOf("m", FormFile, "gold/m.parquet", "d", File{Path: "gold/m.parquet"})
	want := []string{files[0].Path, files[1].Path, "gold/m.rbt_incremental.json", "gold/m.parts/_rbt_manifest.json", "gold/m.parts"}
	for range 2 {
		if diff := cmp.Diff(want, l.SupersededBy(bare, now)); diff != "" {
			t.Error(diff)
		}
		put(t, l, "gold/m.parts/_rbt_manifest.json", "{")
	}
}

// TestManifestsAreRemembered: one content is parsed once, another at once.
func TestManifestsAreRemembered(t *testing.T) {
	l := open(t, t.TempDir())
	read := func(text string) *Manifest {
		t.Helper()
		put(t, l, "gold/m.parts/_rbt_manifest.json", text)
		m, err := l.ReadManifest("gold/m.parts/_rbt_manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const one = `{"version":1,"strategy":"table","parts":[],"commit":"a"}`
	first := read(one)
	if read(one) != first {
		t.Error("the same content was parsed twice")
	}
	if got := read(strings.Replace(one, `"a"`, `"b"`, 1)); got == first || got.Commit != "b" {
		t.Errorf("%+v", got)
	}
	put(t, l, "gold/m.parts/_rbt_manifest.json", "{")
	if _, err := l.ReadManifest("gold/m.parts/_rbt_manifest.json"); err == nil {
		t.Error("a cut manifest was read from memory")
	}
}

func TestLines(t *testing.T) {
	const text = `{"a":[],"b":{},"c":[1,[2,{"d":"x,{:\"]"}]],"e":{"f":{"g":1},"h":[]}}`
	for depth, want := range []string{
		text,
		"{\n \"a\": [],\n \"b\": {},\n \"c\": [1,[2,{\"d\":\"x,{:\\\"]\"}]],\n \"e\": {\"f\":{\"g\":1},\"h\":[]}\n}",
		"{\n \"a\": [],\n \"b\": {},\n \"c\": [\n  1,\n  [2,{\"d\":\"x,{:\\\"]\"}]\n ],\n \"e\": {\n  \"f\": {\"g\":1},\n  \"h\": []\n }\n}",
	} {
		if got := string(lines([]byte(text), depth)); got != want {
			t.Errorf("depth %d:\n%s\nwant\n%s", depth, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var gen func(depth int) any
		gen = func(depth int) any {
			switch rapid.IntRange(0, 3+min(depth, 2)).Draw(t, "kind") {
			case 0:
				return rapid.StringMatching(`[\[\]{}:," \\a]{0,5}`).Draw(t, "text")
			case 1:
				return rapid.Int().Draw(t, "number")
			case 4:
				list := make([]any, rapid.IntRange(0, 3).Draw(t, "items"))
				for i := range list {
					list[i] = gen(depth - 1)
				}
				return list
			case 5:
				object := map[string]any{}
				for range rapid.IntRange(0, 3).Draw(t, "keys") {
					object[rapid.StringMatching(`[{,"a]{0,2}`).Draw(t, "key")] = gen(depth - 1)
				}
				return object
			}
			return nil
		}
		compact, err := json.Marshal(gen(4))
		if err != nil {
			t.Fatal(err)
		}
		var back bytes.Buffer
		broken := lines(compact, rapid.IntRange(0, 5).Draw(t, "depth"))
		if err := json.Compact(&back, broken); err != nil || back.String() != string(compact) {
			t.Fatalf("%v: %s became %s", err, compact, broken)
		}
	})
}
