package materialize

import (
	"testing"

	"rbt/internal/lake"
)

// TestContentHash: equal content has one hash whatever published it, and other
// values, order, names or types have another.
func TestContentHash(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	run := 0
	hash := func(name string, form lake.Form, sql string) string {
		t.Helper()
		run++
		p := mustPublish(t, s, target(l, name, form, run), sql)
		h := p.Receipt.Outputs[0].ContentHash
		if h == nil {
			return ""
		}
		return *h
	}
	const base = "SELECT i AS a, 'x' || i AS b FROM range(10) t(i) ORDER BY i"
	first := hash("m", lake.FormFile, base)
	if first == "" {
		t.Fatal("a table has no content hash")
	}
	for _, same := range []struct {
		name string
		form lake.Form
		sql  string
	}{
		{"m", lake.FormFile, base},
		{"m", lake.FormFile, "SELECT 0 + i AS a, concat('x', i) AS b FROM range(10) t(i) ORDER BY a"},
		{"n", lake.FormParts, base},
	} {
		if got := hash(same.name, same.form, same.sql); got != first {
			t.Errorf("%s %s: %s, want %s", same.name, same.sql, got, first)
		}
	}
	for _, other := range []string{
		"SELECT i AS a, 'x' || i AS b FROM range(10) t(i) ORDER BY i DESC",
		"SELECT i AS a, 'x' || (i + 1) AS b FROM range(10) t(i) ORDER BY i",
		"SELECT i AS a2, 'x' || i AS b FROM range(10) t(i) ORDER BY i",
		"SELECT CAST(i AS INTEGER) AS a, 'x' || i AS b FROM range(10) t(i) ORDER BY i",
		"SELECT i AS a, 'x' || i AS b FROM range(0) t(i)",
	} {
		if got := hash("m", lake.FormFile, other); got == first || got == "" {
			t.Errorf("%s: %q", other, got)
		}
	}
	if got := hash("i", lake.FormIncremental, base); got != "" {
		t.Errorf("an incremental has the content hash %s, which an increment could not keep", got)
	}
}
