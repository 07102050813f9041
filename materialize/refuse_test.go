package materialize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
	"rbt/internal/lake"
)

func write(t *testing.T, l *lake.Lake, s Session, rel, sql string) {
	t.Helper()
	abs := filepath.Join(l.Root(), filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(abs), 0o777); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(sql, "{") {
		if err := os.WriteFile(abs, []byte(sql), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := s.Exec(context.Background(), "COPY ("+sql+") TO "+QuoteText(abs)+" (FORMAT parquet)"); err != nil {
		t.Fatal(err)
	}
}

// try publishes and returns the code and text of a refusal.
func try(s Session, tg Target, sql string) (diag.Code, string) {
	_, err := Publish(context.Background(), s, tg, NewQuery(sql, nil, false), pass)
	if err == nil {
		return "", ""
	}
	var d diag.Diagnostic
	var with interface{ Diagnostic() diag.Diagnostic }
	switch {
	case errors.As(err, &d):
	case errors.As(err, &with):
		d = with.Diagnostic()
	}
	return d.Code, err.Error()
}

func TestForeign(t *testing.T) {
	s := openDB(t).session(t)
	for _, c := range []struct {
		name  string
		form  lake.Form
		files map[string]string
		at    string
		old   []string // as a parent reads it
	}{
		{"file", lake.FormFile, map[string]string{"gold/m.parquet": "SELECT 9 AS a"}, "gold/m.parquet", []string{"{'a': 9}"}},
		{"seed", lake.FormSeed, map[string]string{"seeds/m.parquet": "SELECT 9 AS a"}, "seeds/m.parquet", []string{"{'a': 9}"}},
		{"manifest", lake.FormIncremental, map[string]string{
			"gold/m.parts/part-0000000000001.parquet": "SELECT 8 AS a", "gold/m.parts/part-0000000000003.parquet": "SELECT 9 AS a",
			"gold/m.parts/part-0000000000002.parquet": "SELECT 0 AS a", // not listed
			"gold/m.parts/_rbt_manifest.json":         `{"strategy": "incremental_append", "parts": ["part-0000000000001.parquet", "part-0000000000003.parquet"], "total_rows": 2, "owner": "them"}`,
		}, "gold/m.parts", []string{"{'a': 8}", "{'a': 9}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLake(t, t.TempDir(), lake.OS())
			for rel, sql := range c.files {
				write(t, l, s, rel, sql)
			}
			r := recoverLake(t, l)
			if diff := cmp.Diff([]string{c.at}, r.State.Foreign); diff != "" || len(r.Removed)+len(r.Adopted) > 0 {
				t.Error(diff, r)
			}
			before := tree(t, l)
			code, text := try(s, target(l, "m", c.form, 1), "SELECT 1 AS a")
			if code != diag.LakeForeign || text != c.at+" stands in the place of m, and no run of rbt published it there [RBT5003]" {
				t.Error(code, text)
			}
			if diff := cmp.Diff(before, tree(t, l)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.old, rows(t, s, l, "m")); diff != "" {
				t.Error(diff)
			}
			tg := target(l, "m", c.form, 2)
			tg.FullRefresh = true
			p := mustPublish(t, s, tg, "SELECT 1 AS a")
			if c.form == lake.FormIncremental && (p.Manifest.Parts[0] != lake.PartName(4) || string(p.Manifest.Extra["owner"]) != `"them"`) {
				t.Errorf("%+v", p.Manifest)
			}
			recoverLake(t, l)
			if diff := cmp.Diff([]string{"{'a': 1}"}, rows(t, s, l, "m")); diff != "" {
				t.Error(diff)
			}
			for _, f := range tree(t, l) {
				if _, ok := c.files[f]; ok && f != c.at && !strings.HasSuffix(f, lake.ManifestName) {
					t.Error("left behind:", f)
				}
			}
			if code, text := try(s, target(l, "m", lake.FormFile, 3), "SELECT 2 AS a"); code != "" {
				t.Error(text)
			}
		})
	}
}

// TestForeignOverPublished: another tool wrote over what rbt published.
func TestForeignOverPublished(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT 1 AS a")
	write(t, l, s, "gold/m.parquet", "SELECT 9 AS a")
	if code, _ := try(s, target(l, "m", lake.FormFile, 2), "SELECT 2 AS a"); code != diag.LakeForeign {
		t.Error(code)
	}
	if diff := cmp.Diff([]string{"{'a': 9}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	tg := target(l, "m", lake.FormFile, 3)
	tg.FullRefresh = true
	mustPublish(t, s, tg, "SELECT 3 AS a")
	mustPublish(t, s, target(l, "m", lake.FormFile, 4), "SELECT 4 AS a")
	if diff := cmp.Diff([]string{"{'a': 4}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	add := func(run int) Target {
		tg := target(l, "m", lake.FormIncremental, run)
		tg.Append = true
		return tg
	}
	expect := func(tg Target, code diag.Code, text string) {
		t.Helper()
		if c, got := try(s, tg, "SELECT 1 AS a"); c != code || !strings.Contains(got, text) {
			t.Errorf("got %s %s, want %s %s", c, got, code, text)
		}
	}
	expect(add(1), diag.IncrementalBase, "m has nothing published to which an increment could be added")
	mustPublish(t, s, target(l, "m", lake.FormFile, 2), "SELECT 1 AS a")
	expect(add(3), diag.IncrementalBase, "m has nothing published")
	mustPublish(t, s, target(l, "m", lake.FormIncremental, 4), "SELECT 1 AS a")
	expect(target(l, "m", lake.FormIncremental, 5), diag.IncrementalBase, "m is published as incremental, and would be replaced as a whole")
	moved := add(6)
	moved.Folder = "silver"
	expect(moved, diag.IncrementalMove, "m is published in gold/m.parts, and its folder is now that of silver/m.parts")
	moved.Append = false
	expect(moved, diag.IncrementalMove, "m is published in gold/m.parts")
	moved.FullRefresh = true
	mustPublish(t, s, moved, "SELECT 6 AS a")
	both := add(7)
	both.FullRefresh = true
	expect(both, "", "an increment cannot be a full refresh")
	wrong := target(l, "m", lake.FormFile, 8)
	wrong.Append = true
	expect(wrong, "", "form file cannot be appended to")
	outside := target(l, "m", lake.FormFile, 9)
	outside.Folder = "../elsewhere"
	expect(outside, "", `".." leaves its folder`)

	// A manifest that is cut off is an error that names it, never an empty model.
	add10 := add(10)
	add10.Folder = "silver"
	at := filepath.Join(l.Root(), "silver/m.parts/_rbt_manifest.json")
	whole, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", string(whole[:len(whole)/2]), "{}"} {
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		expect(add10, diag.LakeDamaged, "lake file silver/m.parts/_rbt_manifest.json: the manifest ")
		table := target(l, "m", lake.FormFile, 11)
		expect(table, diag.LakeDamaged, "lake file silver/m.parts/_rbt_manifest.json: the manifest ")
		if r := recoverLake(t, l); len(r.Removed) > 0 && strings.Contains(strings.Join(r.Removed, " "), "silver") {
			t.Error(r.Removed)
		}
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	expect(add10, diag.LakeDamaged, "lake file silver/m.parts/_rbt_manifest.json: the manifest is missing")
	recoverLake(t, l)
	full := target(l, "m", lake.FormIncremental, 12)
	full.Folder, full.FullRefresh = "silver", true
	p := mustPublish(t, s, full, "SELECT 12 AS a")
	if p.Manifest.Parts[0] != lake.PartName(3) {
		t.Errorf("%v: a number was used twice", p.Manifest.Parts)
	}
	recoverLake(t, l)
	if diff := cmp.Diff([]string{"{'a': 12}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	// A lost part likewise.
	if err := os.Remove(filepath.Join(l.Root(), "silver/m.parts", lake.PartName(3))); err != nil {
		t.Fatal(err)
	}
	expect(add10, diag.LakeDamaged, "lake file silver/m.parts/part-0000000000003.parquet: the manifest lists this part, and it is missing")
}

// TestPartNumbersNeverRepeat through refreshes and switches away and back.
func TestPartNumbersNeverRepeat(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	seen := map[string]bool{}
	for i, f := range []lake.Form{lake.FormIncremental, lake.FormFile, lake.FormParts, lake.FormView, lake.FormIncremental, lake.FormParts, lake.FormParts} {
		recoverLake(t, l)
		p := mustPublish(t, s, target(l, "m", f, i), fmt.Sprintf("SELECT %d AS a", i))
		if p.Manifest == nil {
			continue
		}
		for _, part := range p.Manifest.Parts {
			if seen[part] {
				t.Errorf("step %d: %s again", i, part)
			}
			seen[part] = true
		}
	}
}

func TestUnknownKeysSurvivePublishes(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormIncremental, 1), "SELECT 1 AS a")
	for _, rel := range []string{".rbt/state/m.json", "gold/m.parts/_rbt_manifest.json"} {
		abs := filepath.Join(l.Root(), rel)
		b, err := os.ReadFile(abs)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(abs, []byte(strings.Replace(string(b), "{", `{"team": "é",`, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tg := target(l, "m", lake.FormIncremental, 2)
	tg.Append = true
	p := mustPublish(t, s, tg, "SELECT 2 AS a")
	if string(p.Receipt.Extra["team"]) != `"é"` || string(p.Manifest.Extra["team"]) != `"é"` {
		t.Errorf("%v %v", p.Receipt.Extra, p.Manifest.Extra)
	}
	for _, rel := range []string{".rbt/state/m.json", "gold/m.parts/_rbt_manifest.json"} {
		if b, err := os.ReadFile(filepath.Join(l.Root(), rel)); err != nil || !strings.Contains(string(b), `"team": "é"`) {
			t.Error(rel, err, string(b))
		}
	}
}

// TestFailedDataIsKept also where target/ is on another file system.
func TestFailedDataIsKept(t *testing.T) {
	s := openDB(t).session(t)
	for name, fsys := range map[string]lake.FS{"rename": lake.OS(), "copy": crossDevice{lake.OS()}} {
		l := newLake(t, t.TempDir(), fsys)
		tg := target(l, "m", lake.FormParts, 1)
		tg.FailedDir = filepath.Join(t.TempDir(), "target", "failed")
		for range 2 {
			_, err := Publish(context.Background(), s, tg, NewQuery("SELECT 1 AS a", nil, false), func(context.Context, Staged) error { return errAudit })
			if err == nil || err.Error() != errAudit.Error() {
				t.Error(name, err)
			}
		}
		if n, err := os.ReadDir(tg.FailedDir); err != nil || len(n) != 1 || n[0].Name() != "m.staged" {
			t.Error(name, n, err)
		}
		if got := tree(t, l); len(got) != 1 || got[0] != "gold/" {
			t.Error(name, got)
		}
	}
}

// crossDevice cannot rename out of staging.
type crossDevice struct{ lake.FS }

func (c crossDevice) Rename(a, b string) error {
	if strings.Contains(a, ".rbt-tmp") != strings.Contains(b, ".rbt-tmp") {
		return &os.LinkError{Op: "rename", Old: a, New: b, Err: syscall.EXDEV}
	}
	return c.FS.Rename(a, b)
}

func TestCancelBeforeCommit(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT 1 AS a")
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Publish(ctx, s, target(l, "m", lake.FormFile, 2), NewQuery("SELECT 2 AS a", nil, false), func(context.Context, Staged) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"{'a': 1}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".rbt/state/m.json", "gold/m.parquet"}, tree(t, l)); diff != "" {
		t.Error(diff)
	}
}

// TestErrorWhileWriting: the old file stays as it was, whatever the query does
// after 300,000 rows.
func TestErrorWhileWriting(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT 1 AS a")
	_, text := try(s, target(l, "m", lake.FormFile, 2), "SELECT CASE WHEN i = 300000 THEN error('boom') ELSE i END AS a FROM range(400000) t(i)")
	if !strings.Contains(text, "boom") {
		t.Error(text)
	}
	if diff := cmp.Diff([]string{"{'a': 1}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".rbt/state/m.json", "gold/m.parquet"}, tree(t, l)); diff != "" {
		t.Error(diff)
	}
}

// TestSteps: events come in order, and none after a failure.
func TestSteps(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	var steps []Step
	tg := target(l, "m", lake.FormFile, 1)
	tg.Step = func(s Step) { steps = append(steps, s) }
	mustPublish(t, s, tg, "SELECT 1 AS a")
	if diff := cmp.Diff([]Step{StepStaged, StepAudited, StepPublished}, steps); diff != "" {
		t.Error(diff)
	}
	steps = nil
	if _, err := Publish(context.Background(), s, tg, NewQuery("SELECT 2 AS a", nil, false), func(context.Context, Staged) error { return errAudit }); !errors.Is(err, errAudit) {
		t.Error(err)
	}
	if diff := cmp.Diff([]Step{StepStaged}, steps); diff != "" {
		t.Error(diff)
	}
}

// TestAuditSeesOldAndNew: an increment's audit is given the published parts
// beside the new one, and for no new rows only those.
func TestAuditSeesOldAndNew(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormIncremental, 1), "SELECT 1 AS a UNION ALL SELECT 2")
	for i, c := range []struct {
		sql   string
		files int
		rows  int64
	}{{"SELECT 3 AS a", 1, 1}, {"SELECT 3 AS a WHERE false", 0, 0}} {
		tg := target(l, "m", lake.FormIncremental, i+2)
		tg.Append = true
		_, err := Publish(context.Background(), s, tg, NewQuery(c.sql, nil, false), func(_ context.Context, st Staged) error {
			o := st.Outputs[0]
			if len(o.Files) != c.files || o.Rows != c.rows || len(o.Kept) != 1 || o.KeptRows != 2 || o.Relation != "m" {
				t.Errorf("%s: %+v", c.sql, o)
			}
			if o.Kept[0] != filepath.Join(l.Root(), "gold", "m.parts", lake.PartName(1)) {
				t.Error(o.Kept)
			}
			return errAudit
		})
		if !errors.Is(err, errAudit) {
			t.Error(err)
		}
	}
}

func TestViewKeepsTypes(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	p := mustPublish(t, s, target(l, "m", lake.FormView, 1), "SELECT 1 AS a, 'x' AS b")
	if p.Receipt.SQL != "SELECT 1 AS a, 'x' AS b" {
		t.Error(p.Receipt.SQL)
	}
	p = mustPublish(t, s, target(l, "m", lake.FormView, 2), "SELECT sum(1) AS a -- of nothing")
	if diff := cmp.Diff([]lake.Column{{Name: "a", Type: "DECIMAL(38,0)"}}, p.Receipt.Outputs[0].Columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"{'a': 1}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	if code, text := try(s, target(l, "m", lake.FormView, 3), "SELECT NULL AS a"); code != "" || !strings.Contains(text, "a has no type") {
		t.Error(code, text)
	}
}

// TestOrderIsKept: a query that ends in ORDER BY is stored in its order, also
// where its columns are cast.
func TestOrderIsKept(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT hash(i) % 100000 AS k, i::HUGEINT AS i FROM range(300000) t(i) ORDER BY k, i DESC")
	abs, _ := l.Abs("gold/m.parquet")
	err := s.Query(context.Background(), "SELECT count(*) FROM (SELECT k, i, lag(k) OVER (ORDER BY file_row_number) AS pk, lag(i) OVER (ORDER BY file_row_number) AS pi "+
		"FROM read_parquet("+QuoteText(abs)+", file_row_number = true)) WHERE pk > k OR pk = k AND pi < i", func(v []any) error {
		if v[0] != int64(0) {
			t.Errorf("%v rows out of order", v[0])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
