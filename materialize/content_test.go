package materialize

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// TestContentOfPermutedRows: rows in another order are the same content where
// somebody reads it, and nothing else is.
func TestContentOfPermutedRows(t *testing.T) {
	s := openDB(t).session(t)
	const base = "SELECT i, i % 7 AS g, CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN '' ELSE 'x' || i END AS t, (i / 4)::DECIMAL(12,2) AS d, (i * 3)::DECIMAL(30,1) AS w, " +
		"i % 2 = 0 AS b, DATE '2024-01-01' + (i % 300)::INTEGER AS day, TIMESTAMP '2024-01-01' + to_seconds(i) AS at FROM range(3000) r(i)"
	shuffled := "SELECT * FROM (" + base + ") ORDER BY hash(i, 1)"
	replaced := func(column string) string {
		return "SELECT * REPLACE (" + column + ") FROM (" + base + ") ORDER BY hash(i, 1)"
	}
	for _, c := range []struct {
		name   string
		sql    string
		reader bool
		form   lake.Form
		same   bool
	}{
		{"permuted", shuffled, true, lake.FormFile, true},
		{"permuted again", strings.Replace(shuffled, "hash(i, 1)", "hash(i, 2)", 1), true, lake.FormFile, true},
		{"permuted, of parts", shuffled, true, lake.FormParts, true},
		{"permuted, and nobody reads it", shuffled, false, lake.FormFile, false},
		{"one row twice, another missing", "SELECT * FROM (" + base + ") WHERE i <> 1500 UNION ALL SELECT * FROM (" + base + ") WHERE i = 1501", true, lake.FormFile, false},
		{"two rows each twice, two missing", "SELECT * FROM (" + base + ") WHERE i NOT IN (1500, 1600) UNION ALL SELECT * FROM (" + base + ") WHERE i IN (1501, 1601)", true, lake.FormFile, false},
		{"values of two rows swapped", replaced("CASE i WHEN 1500 THEN 2 WHEN 1501 THEN 1 ELSE g END AS g"), true, lake.FormFile, false},
		{"one value", replaced("CASE i WHEN 1500 THEN 5 ELSE g END AS g"), true, lake.FormFile, false},
		{"a NULL and an empty text swapped", replaced("CASE i WHEN 1500 THEN '' WHEN 1501 THEN NULL ELSE t END AS t"), true, lake.FormFile, false},
		{"a cent", replaced("CASE i WHEN 1500 THEN d + 0.01 ELSE d END AS d"), true, lake.FormFile, false},
		{"a wide decimal", replaced("CASE i WHEN 1500 THEN w + 0.1 ELSE w END AS w"), true, lake.FormFile, false},
		{"a truth", replaced("CASE i WHEN 1500 THEN false WHEN 1501 THEN true ELSE b END AS b"), true, lake.FormFile, false},
		{"another type", replaced("g::INTEGER AS g"), true, lake.FormFile, false},
		{"a column of floating point", "SELECT *, 1.5::DOUBLE AS f FROM (" + base + ") ORDER BY hash(i, 1)", true, lake.FormFile, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLake(t, t.TempDir(), lake.OS())
			run := 0
			hash := func(sql string) string {
				t.Helper()
				run++
				tg := target(l, "m", c.form, run)
				tg.HasReaders = c.reader
				h := mustPublish(t, s, tg, sql).Receipt.Outputs[0].ContentHash
				if h == nil {
					t.Fatal("no content hash")
				}
				return *h
			}
			first := hash(base + " ORDER BY i")
			if second := hash(c.sql); (second == first) != c.same {
				t.Errorf("equal %v, want %v", second == first, c.same)
			}
			if again := hash(base + " ORDER BY i"); c.same && again != first {
				t.Error("the first order is other content than it was")
			}
		})
	}
}

// TestContentOfFloatsIsNotCompared: two forms of one value are two contents.
func TestContentOfFloatsIsNotCompared(t *testing.T) {
	for typ, want := range map[string]bool{
		"BIGINT": true, "DECIMAL(38,0)": true, "VARCHAR": true, "BOOLEAN": true, "DATE": true, "TIMESTAMP": true, "TIMESTAMP WITH TIME ZONE": true,
		"DOUBLE": false, "FLOAT": false, "BLOB": false, "UUID": false, "JSON": false, "INTERVAL": false, "TIME": false,
		"BIGINT[]": false, "DECIMAL(9,2)[]": false, "STRUCT(a BIGINT)": false, "MAP(VARCHAR, BIGINT)": false,
	} {
		if got := hashedExactly(typ); got != want {
			t.Errorf("%s: %v", typ, got)
		}
	}
}

// TestContentProperty: of rows of few values, drawn at random, the published and
// the staged ones are the same content exactly if they are equal when sorted.
func TestContentProperty(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		draw := func(n int) []string {
			rows := make([]string, n)
			for i := range rows {
				text := rapid.SampledFrom([]string{"NULL", "''", "'a'", "'b'"}).Draw(r, "text")
				rows[i] = fmt.Sprintf("(%s, %s, %s)", rapid.SampledFrom([]string{"NULL", "0", "1", "2"}).Draw(r, "number"), text, rapid.SampledFrom([]string{"NULL", "true", "false"}).Draw(r, "truth"))
			}
			return rows
		}
		n := rapid.IntRange(1, 6).Draw(r, "rows")
		first := draw(n)
		second := rapid.Permutation(first).Draw(r, "order")
		if rapid.Bool().Draw(r, "changed") {
			second[rapid.IntRange(0, n-1).Draw(r, "which")] = draw(1)[0]
		}
		var hashes []string
		for _, rows := range [][]string{first, second} {
			run++
			tg := target(l, "m", lake.FormFile, run)
			tg.HasReaders = true
			p := mustPublish(t, s, tg, "SELECT a::INTEGER AS a, b::VARCHAR AS b, c::BOOLEAN AS c FROM (VALUES "+strings.Join(rows, ", ")+") v(a, b, c)")
			hashes = append(hashes, *p.Receipt.Outputs[0].ContentHash)
		}
		want := slices.Equal(slices.Sorted(slices.Values(first)), slices.Sorted(slices.Values(second)))
		if got := hashes[0] == hashes[1]; got != want {
			r.Fatalf("%v and %v: same content %v", first, second, got)
		}
	})
}

// TestContentHashFollowed: a file that is hashed while the engine writes it has the
// hash that it has afterwards. It would not if the engine changed what it has
// written.
func TestContentHashFollowed(t *testing.T) {
	s := openDB(t).session(t)
	const sql = "SELECT i AS id, hash(i) AS h, hash(i + 1) AS k, hash(i + 2) AS l FROM range(1500000) t(i) ORDER BY i"
	var hashes []string
	for _, fs := range []lake.FS{lake.OS(), &lake.Faulty{FS: lake.OS()}} { // only the first is followed
		l := newLake(t, t.TempDir(), fs)
		p := mustPublish(t, s, target(l, "m", lake.FormFile, 1), sql)
		if p.Bytes < 30<<20 {
			t.Errorf("the file has %d bytes, too few to be followed", p.Bytes)
		}
		hashes = append(hashes, *p.Receipt.Outputs[0].ContentHash)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("followed %s, read afterwards %s", hashes[0], hashes[1])
	}
}

// TestPublishKept: a table that comes out as it is published, by the same text out of
// other inputs, keeps its files; all else writes them.
func TestPublishKept(t *testing.T) {
	s := openDB(t).session(t)
	inputs := func(parent string) lake.Inputs {
		return lake.Inputs{SQL: "s", Engine: "e", Config: map[string]string{"codec": "c"}, Parents: map[string]string{"p": parent}}
	}
	const sql = "SELECT i FROM range(3) t(i)"
	for _, c := range []struct {
		name string
		sql  string
		form lake.Form // of the first publish
		edit func(*Target)
		kept bool
	}{
		{name: "another parent", kept: true},
		{name: "another parent, of parts", form: lake.FormParts, kept: true},
		{name: "rows in another order", sql: sql + " ORDER BY i DESC", edit: func(tg *Target) { tg.HasReaders = true }},
		{name: "rows in another order, read by nobody", sql: sql + " ORDER BY i DESC"},
		{name: "other rows", sql: "SELECT i + 1 AS i FROM range(3) t(i)"},
		{name: "another name", sql: "SELECT i AS j FROM range(3) t(i)"},
		{name: "another text", edit: func(tg *Target) { tg.Inputs.SQL = "t" }},
		{name: "another engine", edit: func(tg *Target) { tg.Inputs.Engine = "f" }},
		{name: "another setting", edit: func(tg *Target) { tg.Inputs.Config = map[string]string{"codec": "d"} }},
		{name: "unknown inputs", edit: func(tg *Target) { tg.Inputs = lake.Inputs{} }},
		{name: "forced", edit: func(tg *Target) { tg.Force = true }},
		{name: "full refresh", edit: func(tg *Target) { tg.FullRefresh = true }},
		{name: "another folder", edit: func(tg *Target) { tg.Folder = "silver" }},
		{name: "another form", form: lake.FormParts, edit: func(tg *Target) { tg.Form = lake.FormFile }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLake(t, t.TempDir(), lake.OS())
			tg := target(l, "m", cmp.Or(c.form, lake.FormFile), 1)
			tg.Inputs = inputs("a")
			first := mustPublish(t, s, tg, sql)
			tg = target(l, "m", tg.Form, 2)
			tg.Inputs = inputs("b")
			if c.edit != nil {
				c.edit(&tg)
			}
			second := mustPublish(t, s, tg, cmp.Or(c.sql, sql))
			if second.Unchanged != c.kept || (second.Receipt.Commit == first.Receipt.Commit) != c.kept {
				t.Errorf("kept %v: commit %s after %s", second.Unchanged, second.Receipt.Commit, first.Receipt.Commit)
			}
			if second.Receipt.Fingerprint != "fp2" || second.Rows != 3 {
				t.Errorf("the receipt has %s, of %d rows", second.Receipt.Fingerprint, second.Rows)
			}
			n, ok, err := l.ReadNode("m", "gold", "silver")
			if err != nil || !ok || n.Damage != nil || n.Receipt.Fingerprint != "fp2" {
				t.Error(n, ok, err)
			}
			if got := len(rows(t, s, l, "m")); got != 3 {
				t.Errorf("%d rows", got)
			}
			if c.kept {
				damagePage(t, l, second.Receipt.Outputs[0].Files[0].Path)
				tg.RunID, tg.Inputs = "run3", inputs("c")
				if mustPublish(t, s, tg, cmp.Or(c.sql, sql)).Unchanged {
					t.Error("a damaged page stays")
				}
			}
			if left := slices.DeleteFunc(tree(t, l), func(f string) bool { return !strings.Contains(f, "rbt-tmp") }); len(left) > 0 {
				t.Error(left)
			}
		})
	}
}

// TestPublishKeptOrder: a receipt keeps the hash of the rows in the order that they
// had first, and a file in another one is none that may stay.
func TestPublishKeptOrder(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	for run, order := range []string{"i", "i DESC", "i"} {
		tg := target(l, "m", lake.FormFile, run)
		tg.HasReaders = true
		tg.Inputs = lake.Inputs{SQL: "s", Config: map[string]string{"codec": "c"}, Parents: map[string]string{"p": order}}
		if mustPublish(t, s, tg, "SELECT i FROM range(3) t(i) ORDER BY "+order).Unchanged {
			t.Errorf("ORDER BY %s: the file in another order stays", order)
		}
	}
}

// damagePage changes a byte behind the first bytes of a published file.
func damagePage(t *testing.T, l *lake.Lake, file string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(l.Root(), filepath.FromSlash(file)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, 8); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0xff
	if _, err := f.WriteAt(b, 8); err != nil {
		t.Fatal(err)
	}
}
