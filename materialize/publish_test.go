package materialize

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
)

// fataler is what a helper needs of a test, or of a check of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func newLake(t fataler, dir string, fsys lake.FS) *lake.Lake {
	t.Helper()
	l, err := lake.Open(dir, fsys)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func target(l *lake.Lake, name string, form lake.Form, run int) Target {
	return Target{
		Lake: l, Name: name, Folder: "gold", Form: form, RunID: fmt.Sprintf("run%d", run),
		Fingerprint: fmt.Sprintf("fp%d", run), Now: func() time.Time { return time.UnixMilli(int64(run)) },
	}
}

func pass(context.Context, Staged) error { return nil }

// recoverLake is what a run does first.
func recoverLake(t testing.TB, l *lake.Lake) lake.Recovered {
	t.Helper()
	lock, err := l.Lock(context.Background(), lake.LockOptions{PID: 1, Host: "h", Now: time.UnixMilli(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	r, err := l.Recover(context.Background(), lock)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rows reads what is published of a node, each row as text.
func rows(t testing.TB, s Session, l *lake.Lake, name string) []string {
	t.Helper()
	n, ok, err := l.ReadNode(name, "gold", "seeds", "silver")
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return nil
	}
	if n.Damage != nil {
		t.Fatal(n.Damage)
	}
	out, err := readRows(s, l, n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readRows(s Session, l *lake.Lake, n lake.Node) ([]string, error) {
	o := n.Receipt.Outputs[0]
	q := n.Receipt.SQL
	if n.Receipt.Form != lake.FormView {
		var files []string
		for _, f := range o.Files {
			files = append(files, filepath.Join(l.Root(), filepath.FromSlash(f.Path)))
		}
		q = readSQL(files, o.Columns)
	}
	out := []string{}
	err := s.Query(context.Background(), "SELECT CAST(t AS VARCHAR) AS r FROM ("+q+") t ORDER BY r", func(v []any) error {
		out = append(out, v[0].(string))
		return nil
	})
	return out, err
}

// tree lists the files and empty folders of a lake.
func tree(t fataler, l *lake.Lake) []string {
	t.Helper()
	var out []string
	if _, err := os.Stat(l.Root()); os.IsNotExist(err) {
		return nil
	}
	err := filepath.WalkDir(l.Root(), func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(l.Root(), p)
		if d.IsDir() {
			if e, _ := os.ReadDir(p); len(e) > 0 {
				return nil
			}
			rel += "/"
		}
		out = append(out, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustPublish(t testing.TB, s Session, tg Target, sql string) Published {
	t.Helper()
	p, err := Publish(context.Background(), s, tg, NewQuery(sql, nil, false), pass)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPublishFile(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	p := mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y'")
	if diff := cmp.Diff([]string{".rbt/state/m.json", "gold/m.parquet"}, tree(t, l)); diff != "" {
		t.Error(diff)
	}
	if p.Rows != 2 || p.Receipt.Outputs[0].Rows != 2 {
		t.Errorf("rows %d", p.Rows)
	}
	mustPublish(t, s, target(l, "m", lake.FormFile, 2), "SELECT 3 AS a, 'z' AS b")
	if diff := cmp.Diff([]string{"{'a': 3, 'b': z}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	footer, err := l.ReadFooter("gold/m.parquet")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"rbt_model": "m", "rbt_fingerprint": "fp2", "rbt_commit": lake.CommitID("m", "fp2", 0, p.Receipt.Commit), "rbt_replaces": p.Receipt.Commit}
	if diff := cmp.Diff(want, footer.Metadata); diff != "" {
		t.Error(diff)
	}
}

func TestPublishIncremental(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	inc := func(run int, add bool, sql string) Published {
		t.Helper()
		tg := target(l, "m", lake.FormIncremental, run)
		tg.Append = add
		return mustPublish(t, s, tg, sql)
	}
	first := inc(1, false, "SELECT 1 AS a LIMIT 0")
	if len(first.Manifest.Parts) != 0 {
		t.Error(first.Manifest.Parts)
	}
	if got := rows(t, s, l, "m"); len(got) != 0 {
		t.Error(got)
	}
	inc(2, true, "SELECT 1 AS a")
	inc(3, true, "SELECT 2::SMALLINT AS a")
	before, _ := os.ReadFile(filepath.Join(l.Root(), "gold/m.parts/_rbt_manifest.json"))
	same := inc(4, true, "SELECT 2 AS a WHERE false")
	after, _ := os.ReadFile(filepath.Join(l.Root(), "gold/m.parts/_rbt_manifest.json"))
	if !same.Unchanged || string(before) != string(after) {
		t.Error("an increment without rows changed the manifest")
	}
	if same.Receipt.Fingerprint != "fp4" {
		t.Error(same.Receipt.Fingerprint)
	}
	if diff := cmp.Diff([]string{"{'a': 1}", "{'a': 2}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
	tg := target(l, "m", lake.FormIncremental, 5)
	tg.FullRefresh = true
	mustPublish(t, s, tg, "SELECT 7::BIGINT AS a")
	want := []string{".rbt/state/m.json", "gold/m.parts/_rbt_manifest.json", "gold/m.parts/part-0000000000001.parquet",
		"gold/m.parts/part-0000000000002.parquet", "gold/m.parts/part-0000000000003.parquet", "gold/m.rbt_incremental.json"}
	if diff := cmp.Diff(want, tree(t, l)); diff != "" {
		t.Error(diff)
	}
	recoverLake(t, l)
	want = []string{".rbt/lock", ".rbt/state/m.json", "gold/m.parts/_rbt_manifest.json", "gold/m.parts/part-0000000000003.parquet", "gold/m.rbt_incremental.json"}
	if diff := cmp.Diff(want, tree(t, l)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"{'a': 7}"}, rows(t, s, l, "m")); diff != "" {
		t.Error(diff)
	}
}

func TestPublishSwitches(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	forms := []lake.Form{lake.FormFile, lake.FormIncremental, lake.FormView, lake.FormParts, lake.FormIncremental, lake.FormFile, lake.FormParts, lake.FormView, lake.FormFile}
	for i, f := range forms {
		recoverLake(t, l)
		mustPublish(t, s, target(l, "m", f, i), fmt.Sprintf("SELECT %d AS a", i))
		if diff := cmp.Diff([]string{fmt.Sprintf("{'a': %d}", i)}, rows(t, s, l, "m")); diff != "" {
			t.Error(f, diff)
		}
	}
	recoverLake(t, l)
	if diff := cmp.Diff([]string{".rbt/lock", ".rbt/state/m.json", "gold/m.parquet"}, tree(t, l)); diff != "" {
		t.Error(diff)
	}
	tg := target(l, "m", lake.FormFile, 20)
	tg.Folder = "silver"
	mustPublish(t, s, tg, "SELECT 20 AS a")
	recoverLake(t, l)
	if diff := cmp.Diff([]string{".rbt/lock", ".rbt/state/m.json", "gold/", "silver/m.parquet"}, tree(t, l)); diff != "" {
		t.Error(diff)
	}
}

func TestAuditFailure(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT 1 AS a")
	before, _ := os.ReadFile(filepath.Join(l.Root(), "gold/m.parquet"))
	tg := target(l, "m", lake.FormFile, 2)
	tg.FailedDir = filepath.Join(t.TempDir(), "failed")
	_, err := Publish(context.Background(), s, tg, NewQuery("SELECT NULL::INTEGER AS a", nil, false), func(_ context.Context, st Staged) error {
		if strings.HasSuffix(st.Outputs[0].Files[0].Path, ".parquet") {
			t.Error(st.Outputs[0].Files[0].Path)
		}
		return fmt.Errorf("2 rows fail")
	})
	if err == nil || err.Error() != "2 rows fail" {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(filepath.Join(l.Root(), "gold/m.parquet"))
	if string(before) != string(after) {
		t.Error("the published file changed")
	}
	if diff := cmp.Diff([]string{".rbt/state/m.json", "gold/m.parquet"}, tree(t, l)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(tg.FailedDir, "m.staged")); err != nil {
		t.Error(err)
	}
}
