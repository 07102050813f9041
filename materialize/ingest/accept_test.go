package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rbt/internal/diag"
	"rbt/materialize"
)

// want compares some tables of a load.
func (l *loaded) want(t *testing.T, tables map[string][]string) {
	t.Helper()
	for name, rows := range tables {
		if rows == nil {
			rows = []string{}
		}
		if d := cmp.Diff(rows, l.tables[name]); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func wantDiag(t *testing.T, err error, code diag.Code, pos, msg string) diag.Diagnostic {
	t.Helper()
	var d diag.Diagnostic
	if !errors.As(err, &d) {
		t.Fatalf("got %v, want %s", err, code)
	}
	if d.Code != code || d.Pos.String() != pos || !strings.Contains(d.Msg, msg) {
		t.Errorf("got %s, want %s at %s with %q", d.Error(), code, pos, msg)
	}
	return d
}

func TestDedupPolicies(t *testing.T) {
	pair := []string{`{"a":1,"tags":["x","y"]}`, `{"a":1,"tags":["x","y"]}`}
	for _, c := range []struct {
		name, dedup string
		lines       []string
		rows, tags  []string
	}{
		{"content twice is one row with its children once", "content_id", pair, []string{"1|1|2|true|2|a.ndjson|1"}, []string{"1|0|x", "1|1|y"}},
		{"none twice is two rows", "none", pair, []string{"1|1|2|true|1|a.ndjson|1", "2|1|2|true|1|a.ndjson|2"}, []string{"1|0|x", "1|1|y", "2|0|x", "2|1|y"}},
		{"by_value keeps the first's children", "by_value", []string{`{"a":1,"tags":["x"]}`, `{"a":1,"tags":["y","z"]}`, `{"a":1}`},
			[]string{"1|1|1|true|2|a.ndjson|1", "2|1|∅|true|1|a.ndjson|3"}, []string{"1|0|x"}},
		{"no list, an empty one and a full one are three contents", "content_id", []string{`{"a":1}`, `{"a":1,"tags":[]}`, `{"a":1,"tags":["note"]}`, `{"a":1,"tags":null}`},
			[]string{"1|1|∅|true|2|a.ndjson|1", "2|1|0|true|1|a.ndjson|2", "3|1|1|true|1|a.ndjson|3"}, []string{"3|0|note"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustLoad(t, "root r\nrecord r "+c.dedup+"\nfield a integer\nchild tags varchar", c.lines...)
			got.want(t, map[string][]string{"r": c.rows, "tags": c.tags})
		})
	}
}

func TestByValueChains(t *testing.T) {
	var lines []string
	for range 25 {
		lines = append(lines, `{"v":2,"next":{"v":1}}`)
	}
	for range 25 {
		lines = append(lines, `{"v":3,"next":{"v":2,"next":{"v":1}}}`)
	}
	got := mustLoad(t, "root node\nrecord node by_value\nfield v integer\nref next node", lines...)
	got.want(t, map[string][]string{"node": {"1|2|2|true|50|a.ndjson|1", "2|1|∅|false|50|a.ndjson|1", "3|3|1|true|25|a.ndjson|26"}})

	mutual := `{"v":2,"b":{"v":1,"a":{"v":0}}}`
	got = mustLoad(t, "root a\nrecord a by_value\nfield v integer\nref b b\nrecord b by_value\nfield v integer\nref a a", mutual, mutual)
	if len(got.tables["a"]) != 2 || len(got.tables["b"]) != 1 {
		t.Errorf("got %v", got.tables)
	}
}

func TestSharedRecordOfTwoListsIsStoredOnce(t *testing.T) {
	got := mustLoad(t, "root r\nrecord r\nfield a integer\nchild xs -> x\nchild ys -> x\nrecord x\nfield n integer", `{"a":1,"xs":[{"n":1},{"n":2}],"ys":[{"n":2},{"n":1}]}`)
	got.want(t, map[string][]string{"xs": {"1|0|1", "1|1|2"}, "ys": {"1|0|2", "1|1|1"}, "x": {"1|1|false|2|a.ndjson|1", "2|2|false|2|a.ndjson|1"}})
}

func TestSpellingDoesNotMatter(t *testing.T) {
	got := mustLoad(t, "root r\nrecord r\nfield a varchar\nfield b double\nfield j json",
		`{"a":"é\n","b":1,"j":{"x":[1,2.50],"y":"\u00e9"}}`,
		`{ "b" : 1.0, "j" : { "y":"é", "x" : [ 1.0,25e-1 ] }, "a" : "\u00e9\u000a" }`,
		`{"j":{"x":[1,2.5],"y":"é"},"b":1e0,"a":"é\n"}`)
	if len(got.tables["r"]) != 1 {
		t.Errorf("got %v", got.tables["r"])
	}
	got = mustLoad(t, "root r\nrecord r\nfield b double\nfield l varchar[]", `{"b":0.0}`, `{"b":-0.0}`, `{"l":["x","y"]}`, `{"l":["y","x"]}`)
	if len(got.tables["r"]) != 4 {
		t.Errorf("signed zeros and list order: got %v", got.tables["r"])
	}
}

func TestANewNullableFieldKeepsIDs(t *testing.T) {
	ids := func(src string) string {
		l := mustLoad(t, src, `{"a":1,"b":"x","s":{"n":1}}`)
		return readTable(t, newTestSession(t, 1), l.staged.Outputs[0])[0][:38]
	}
	one := ids("root r\nrecord r content_id identity=r/v1\nfield a integer\nfield b varchar\nref s s\nrecord s\nfield n integer")
	two := ids("root x\nrecord x content_id identity=r/v1\nfield c date\nfield b varchar\nfield a bigint\nref s s\nrecord s\nfield n integer\nfield m double")
	if one != two {
		t.Errorf("%s and %s", one, two)
	}
}

const metaSpec = "root r\nrecord r content_id conflict=%s\nfield a integer\nmeta field f varchar\nmeta field d double\nmeta field dec decimal(20,0)\nmeta field t varchar"

func TestMetadataConflicts(t *testing.T) {
	fail := strings.ReplaceAll(metaSpec, "%s", "fail")
	for _, c := range []struct{ name, first, second, field string }{
		{"another text", `"f":"x"`, `"f":"y"`, "f"},
		{"NULL against a value", `"t":null`, `"t":"v"`, "t"},
		{"decimals one apart", `"dec":9007199254740992`, `"dec":9007199254740993`, "dec"},
		{"NaN against NaN", `"d":"NaN","t":"a"`, `"d":"NaN","t":"b"`, "d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, workers := range []int{1, 4} {
				files := writeInput(t, map[string]string{"a.ndjson": `{"a":1,` + c.first + `}`, "b.ndjson": "\n" + `{"a":2}` + "\n" + `{"a":1,` + c.second + `}`})
				_, err := runJob(t, newTestSession(t, 2), &Job{Program: mustCompile(t, fail), Files: files, Workers: workers})
				d := wantDiag(t, err, diag.IngestConflict, "b.ndjson:3", "metadata field "+c.field+" differs")
				if len(d.Notes) != 1 || d.Notes[0].Pos.String() != "a.ndjson:1" {
					t.Errorf("notes %v", d.Notes)
				}
			}
		})
	}
	for _, same := range []string{`"f":"x"`, `"d":-0.0`} {
		got := mustLoad(t, fail, `{"a":1,`+same+`}`, `{"a":1,`+strings.Replace(same, "-0.0", "0.0", 1)+`}`)
		if len(got.tables["r"]) != 1 {
			t.Errorf("%s: %v", same, got.tables["r"])
		}
	}
	lines := []string{`{"a":1,"f":"x"}`, `{"a":1,"f":"y"}`, `{"a":1,"f":"x"}`, `{"a":1,"f":"z"}`}
	mustLoad(t, strings.ReplaceAll(metaSpec, "%s", "first"), lines...).want(t, map[string][]string{"r": {"1|1|x|∅|∅|∅|true|4|a.ndjson|1"}})
	mustLoad(t, strings.ReplaceAll(metaSpec, "%s", "last"), lines...).want(t, map[string][]string{"r": {"1|1|z|∅|∅|∅|true|4|a.ndjson|1"}})
	mustLoad(t, strings.ReplaceAll(metaSpec, "%s", "quarantine"), lines...).want(t, map[string][]string{"r": {"1|1|x|∅|∅|∅|true|4|a.ndjson|1"},
		"_rejects": {"a.ndjson|2|16|∅|$|f|metadata_conflict|r: other metadata than the same content in a.ndjson:1|∅",
			"a.ndjson|4|48|∅|$|f|metadata_conflict|r: other metadata than the same content in a.ndjson:1|∅"}})
}

func TestNestedAndStructuredMetadata(t *testing.T) {
	_, err := tryLoad(t, "root r\nrecord r\nfield a integer\nref n n\nrecord n\nfield b integer\nmeta field f varchar",
		`{"a":1,"n":{"b":1,"f":"x"}}`, `{"a":1,"n":{"b":1,"f":"y"}}`)
	wantDiag(t, err, diag.IngestConflict, "a.ndjson:2", "n: the metadata field f differs")

	src := "root r\nrecord r\nfield a integer\nmeta child c varchar\nmeta ref self r\nmeta ref p p\nmeta ref v v\nrecord p none\nfield b integer\nrecord v by_value\nfield b integer\nchild l varchar"
	for _, c := range []struct{ first, second, field string }{
		{`"c":["x"]`, `"c":["x","y"]`, "c"},
		{`"self":{"a":2}`, `"self":{"a":3}`, "self"},
		{`"p":{"b":1}`, `"p":{"b":2}`, "p"},
		{`"c":["x"],"self":{"a":2,"p":{"b":7}},"p":{"b":1},"v":{"b":1,"l":["x"]}`, `"c":["x"],"self":{"a":2,"p":{"b":7}},"p":{"b":1},"v":{"b":1,"l":["y"]}`, ""},
	} {
		_, err := tryLoad(t, src, `{"a":1,`+c.first+`}`, `{"a":1,`+c.second+`}`)
		if c.field == "" {
			if err != nil {
				t.Errorf("%s and %s: %v", c.first, c.second, err)
			}
			continue
		}
		wantDiag(t, err, diag.IngestConflict, "a.ndjson:2", "r: the metadata field "+c.field+" differs")
	}
}

func TestOrphans(t *testing.T) {
	got := mustLoad(t, "root r\nrecord r\nfield a integer\nchild c -> p\nrecord p none\nfield b integer",
		`{"a":1,"c":[{"b":1},{"b":2}]}`, `{"a":1,"c":[{"b":1},{"b":2}]}`)
	got.want(t, map[string][]string{"p": {"1|1|false|1|a.ndjson|1", "2|2|false|1|a.ndjson|1"}, "c": {"1|0|1", "1|1|2"}})

	got = mustLoad(t, "root r\nrecord r by_value\nfield a integer\nchild c -> x\nrecord x\nfield b integer\nchild n varchar",
		`{"a":1,"c":[{"b":1,"n":["k"]},{"b":2}]}`, `{"a":1,"c":[{"b":2},{"b":3,"n":["gone"]}]}`)
	got.want(t, map[string][]string{"x": {"1|1|1|false|1|a.ndjson|1", "2|2|∅|false|2|a.ndjson|1"}, "x__n": {"1|0|k"}, "c": {"1|0|1", "1|1|2"}})

	deep := `{"v":0}`
	for i := range 40 {
		deep = fmt.Sprintf(`{"v":%d,"kids":[%s,{"v":-%d}]}`, i+1, deep, i+1)
	}
	got = mustLoad(t, "root n\nrecord n by_value\nfield v integer\nchild kids -> n", deep, deep)
	if len(got.tables["n"]) != 81 || len(got.tables["kids"]) != 80 {
		t.Errorf("tree: %d nodes, %d links", len(got.tables["n"]), len(got.tables["kids"]))
	}
}

func TestRolesFamiliesAndIDs(t *testing.T) {
	got := mustLoad(t, "root n\nrecord n\nfield v integer\nref next n", `{"v":1,"next":{"v":2}}`, `{"v":2}`)
	got.want(t, map[string][]string{"n": {"1|1|2|true|1|a.ndjson|1", "2|2|∅|true|2|a.ndjson|1"}})

	src := "root_by kind a=A b=B\nrecord A\nfield v integer\nid base=acme.x series=1\nrecord B\nfield v integer\nid base=acme.x series=1\nrecord C\nfield v integer\nfamily calcs A B\nfamily spare C"
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprintf(`{"v":%d,"kind":"%c"}`, i, "ab"[i%2]))
	}
	files := writeInput(t, map[string]string{"a.ndjson": strings.Join(append(lines, `{"kind":"c"}`, `{"v":1}`), "\n")})
	got, err := runJob(t, newTestSession(t, 2), &Job{Program: mustCompile(t, src), Files: files, Workers: 4, ChunkBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{
		"calcs":  {"A|1", "A|2", "A|3", "A|4", "A|5", "B|1", "B|2", "B|3", "B|4", "B|5"},
		"_roots": {"A|1", "A|2", "A|3", "A|4", "A|5", "B|1", "B|2", "B|3", "B|4", "B|5"},
		"spare":  nil,
		"A":      {"1|acme.x-1-1|0|true|1|a.ndjson|1", "2|acme.x-1-3|2|true|1|a.ndjson|3", "3|acme.x-1-5|4|true|1|a.ndjson|5", "4|acme.x-1-7|6|true|1|a.ndjson|7", "5|acme.x-1-9|8|true|1|a.ndjson|9"},
		"B":      {"1|acme.x-1-2|1|true|1|a.ndjson|2", "2|acme.x-1-4|3|true|1|a.ndjson|4", "3|acme.x-1-6|5|true|1|a.ndjson|6", "4|acme.x-1-8|7|true|1|a.ndjson|8", "5|acme.x-1-10|9|true|1|a.ndjson|10"},
		"_rejects": {`a.ndjson|11|190|12|$|∅|unknown_type|kind is "c", which root_by does not map|{"kind":"c"}`,
			`a.ndjson|12|203|7|$|∅|unknown_type|kind, which names the record type, is missing or no string|{"v":1}`},
	})

	_, err = tryLoad(t, "root_by kind a=A b=B\nrecord A content_id identity=same\nfield v integer\nrecord B content_id identity=same\nfield v integer\nfamily f A B", `{"kind":"a","v":1}`, `{"kind":"b","v":1}`)
	wantDiag(t, err, diag.IngestTwoTypes, "a.ndjson:2", "claimed by A and B of the family f")

	ids := "root r\nrecord r\nfield code varchar\nid from=code base=b series=1"
	mustLoad(t, ids, `{"code":"x"}`, `{"code":"y"}`, `{}`).want(t, map[string][]string{"r": {"1|x|x|true|1|a.ndjson|1", "2|y|y|true|1|a.ndjson|2", "3|b-1-3|∅|true|1|a.ndjson|3"}})
	_, err = tryLoad(t, "root r\nrecord r\nfield code varchar\nfield v integer\nid from=code", `{"code":"x","v":1}`, `{"code":"y"}`, `{"code":"x","v":2}`)
	if d := wantDiag(t, err, diag.IngestDuplicateID, "a.ndjson:3", "the id x of r is taken"); len(d.Notes) != 1 || d.Notes[0].Pos.Line != 1 {
		t.Errorf("notes %v", d.Notes)
	}
	_, err = tryLoad(t, ids, `{}`, `{"code":"b-1-1"}`)
	wantDiag(t, err, diag.IngestDuplicateID, "a.ndjson:2", "the id b-1-1")
}

func TestBadRecordsBecomeRejects(t *testing.T) {
	src := "root r\nrecord r\nfield a integer required\nfield s varchar\nfield d double\nfield t timestamp\nref n n\nchild l -> n\nrecord n\nfield x double"
	for _, c := range []struct{ line, field, reason string }{
		{`{"a":1,`, "", "syntax"},
		{`{"a":"1"}`, "a", "type_mismatch"},
		{`{"a":1.5}`, "a", "out_of_range"},
		{`{"a":3000000000}`, "a", "out_of_range"},
		{`{"s":"x"}`, "a", "missing_required"},
		{`{"a":null}`, "a", "missing_required"},
		{`{"a":1,"a":2}`, "", "duplicate_key"},
		{`{"a":1,"q":1,"q":2}`, "", "duplicate_key"},
		{`{"a":1,"q":{"z":1,"z":2}}`, "q", "duplicate_key"},
		{`{"a":1,"n":{"x":1,"x":2}}`, "n", "duplicate_key"},
		{`{"a":1,"s":"\ud800"}`, "s", "lone_surrogate"},
		{"{\"a\":1,\"s\":\"\xff\"}", "s", "invalid_utf8"},
		{`{"a":1,"d":1e400}`, "d", "out_of_range"},
		{`{"a":1,"d":9007199254740993}`, "d", "out_of_range"},
		{`{"a":1,"d":"NaN"}`, "d", "not_finite"},
		{`{"a":1,"t":"2026-01-01T00:00:00Z"}`, "t", "type_mismatch"},
		{`{"a":1,"t":"2026-02-30"}`, "t", "type_mismatch"},
		{`{"a":1,"n":[]}`, "n", "type_mismatch"},
		{`{"a":1,"l":[{},{"x":true}]}`, "l[1].x", "type_mismatch"},
		{`{"a":1,"l":[null]}`, "l[0]", "type_mismatch"},
		{`{"a":1} x`, "", "syntax"},
		{`[1]`, "", "type_mismatch"},
		{`{"a":1,"q":` + strings.Repeat("[", 100_000), "q", "too_deep"},
	} {
		got := mustLoad(t, src, `{"a":7}`, c.line, `{"a":8}`)
		if n := len(got.tables["r"]); n != 2 {
			t.Errorf("%.40s: %d rows are loaded", c.line, n)
		}
		rej := got.tables["_rejects"]
		if len(rej) != 1 {
			t.Fatalf("%.40s: rejects %v", c.line, rej)
		}
		w := strings.Split(rej[0], "|")
		field := c.field
		if field == "" {
			field = "∅"
		}
		if i := strings.IndexAny(w[5], "["); c.reason == "too_deep" && i > 0 {
			w[5] = w[5][:i]
		}
		if d := cmp.Diff([]string{"a.ndjson", "2", "8", fmt.Sprint(len(c.line)), "$", field, c.reason}, w[:7]); d != "" {
			t.Errorf("%.40s: %s", c.line, d)
		}
		if raw := strings.ToValidUTF8(c.line[:min(len(c.line), maxRaw)], "\uFFFD"); w[len(w)-1] != raw {
			t.Errorf("%.40s: raw is %.60s", c.line, w[len(w)-1])
		}
		_, err := tryLoad(t, src+"\non_bad_record fail", `{"a":7}`, c.line, `{"a":8}`, c.line)
		wantDiag(t, err, diag.IngestBadRecord, "a.ndjson:2", "byte 8: ")
	}
}

func TestPolicies(t *testing.T) {
	src := "root r\nrecord r\nfield a integer\nchild l integer\n"
	lines := []string{`{"a":"x","l":[1,"y"]}`, `{"a":2,"z":{"k":[1, 2]},"b":null}`}
	got := mustLoad(t, src+"type_mismatch null", lines...)
	got.want(t, map[string][]string{"r": {"1|∅|2|true|1|a.ndjson|1", "2|2|∅|true|1|a.ndjson|2"}, "l": {"1|0|1", "1|1|∅"}})
	if got.stats.Nulled != 2 {
		t.Errorf("%d values became NULL", got.stats.Nulled)
	}
	_, err := tryLoad(t, src+"type_mismatch fail", lines...)
	wantDiag(t, err, diag.IngestBadRecord, "a.ndjson:1", "a: type_mismatch: a string where INTEGER is declared")
	_, err = tryLoad(t, src+"unknown_fields fail\ntype_mismatch null", lines...)
	wantDiag(t, err, diag.IngestBadRecord, "a.ndjson:2", `z: unknown_field: the key "z" is not declared`)
	got = mustLoad(t, src+"unknown_fields capture", lines[1:]...)
	got.want(t, map[string][]string{"r": {`1|2|∅|{"b":null,"z":{"k":[1,2]}}|true|1|a.ndjson|1`}})
	_, err = tryLoad(t, src+"unknown_fields capture", lines[1], `{"a":2}`)
	wantDiag(t, err, diag.IngestConflict, "a.ndjson:2", "_extra")

	bad := []string{`{`, `{"a":1}`, `[`, `{"a":2}`, `}`}
	_, err = tryLoad(t, src+"max_rejects 2", bad...)
	if d := wantDiag(t, err, diag.IngestTooManyRejects, "a.ndjson:1", "max_rejects allows (2)"); len(d.Notes) != 3 || d.Notes[2].Pos.Line != 5 {
		t.Errorf("notes %v", d.Notes)
	}
	mustLoad(t, src+"max_rejects 3", bad...)
	_, err = tryLoad(t, src+"max_rejects 59%", bad...)
	wantDiag(t, err, diag.IngestTooManyRejects, "a.ndjson:1", "59% of the records")
	mustLoad(t, src+"max_rejects 60%", bad...)
}

func TestTextForms(t *testing.T) {
	src := "root r\nrecord r none\nfield a integer"
	for name, content := range map[string]string{
		"BOM, CRLF, blank lines": "\xEF\xBB\xBF{\"a\":1}\r\n\r\n  \r\n{\"a\":2}\r\n",
		"no final newline":       "{\"a\":1}\n{\"a\":2}",
	} {
		files := writeInput(t, map[string]string{"a.ndjson": content})
		got, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, src), Files: files, Workers: 2, ChunkBytes: 64})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.tables["r"]) != 2 || len(got.tables["_rejects"]) != 0 {
			t.Errorf("%s: %v", name, got.tables)
		}
	}
}

func TestEmptyInputMakesEmptyTypedTables(t *testing.T) {
	s := newTestSession(t, 2)
	p := mustCompile(t, crystalSpec+"\noccurrences table\nfamily f source author")
	for _, files := range [][]File{nil, writeInput(t, map[string]string{"a.ndjson": "", "b.json": "", "c.ndjson": "\n\n"})} {
		got, err := runJob(t, s, &Job{Program: p, Files: files})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range p.Outputs() {
			cols, err := s.Describe(context.Background(), "SELECT * FROM "+readParquet([]string{got.staged.Outputs[i].Files[0].Path}))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(o.Columns, cols); d != "" {
				t.Errorf("%s: %s", o.Folder, d)
			}
			if o.Kind != OutputLoads && len(got.tables[o.Folder]) != 0 {
				t.Errorf("%s: %v", o.Folder, got.tables[o.Folder])
			}
		}
	}
}

func compress(t *testing.T, kind, content string) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	if kind == "gzip" {
		w := gzip.NewWriter(&b)
		_, err = w.Write([]byte(content))
		err = errors.Join(err, w.Close())
	} else {
		w, e := zstd.NewWriter(&b)
		if e != nil {
			t.Fatal(e)
		}
		_, err = w.Write([]byte(content))
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withoutPlace cuts _file and _line off the rows.
func withoutPlace(rows []string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		w := strings.Split(r, "|")
		out[i] = strings.Join(w[:len(w)-2], "|")
	}
	return out
}

func TestOneResultForEveryContainer(t *testing.T) {
	src := "root r\nrecord r\nfield a integer\nchild l -> n\nrecord n\nfield x integer\n"
	var lines []string
	many := map[string]string{}
	for i := range 300 {
		lines = append(lines, fmt.Sprintf(`{"a": %d, "l": [{"x":%d},{"x":%d}]}`, i%170, i%7, i%5))
		many[fmt.Sprintf("d%02d/f%04d.ndjson", i/50, i)] = lines[i]
	}
	nd := strings.Join(lines, "\n")
	array := "[\n" + strings.Join(lines, " ,\n") + "\n]"
	var want *loaded
	s := newTestSession(t, 2)
	for _, c := range []struct {
		name  string
		files map[string]string
		path  string
	}{
		{"one file", map[string]string{"a.ndjson": nd}, ""},
		{"gzip", map[string]string{"a.ndjson.gz": compress(t, "gzip", nd)}, ""},
		{"zstd without extension", map[string]string{"a": compress(t, "zstd", nd)}, ""},
		{"many files", many, ""},
		{"an array", map[string]string{"a.json": array}, "$[*]"},
		{"a bare array", map[string]string{"a.json.zst": compress(t, "zstd", array)}, ""},
		{"an envelope", map[string]string{"a.json": `{"meta":{"n":[1,{"x":"]}"}]},"data":` + array + `,"end":null}`}, "$.data[*]"},
		{"pages", map[string]string{"a.json": `{"pages":[{"n":1,"items":` + array + `},{"items":[]}]}`}, "$.pages[*].items[*]"},
		{"documents one after another", map[string]string{"a.json": strings.ReplaceAll(strings.ReplaceAll(nd, "{\"a\"", "{\n \"a\""), "}\n", "}\n\n")}, ""},
	} {
		for _, chunk := range []int{64, 4096, 1 << 20} {
			full := src
			if c.path != "" {
				full += "record_path " + c.path
			}
			got, err := runJob(t, s, &Job{Program: mustCompile(t, full), Files: writeInput(t, c.files), Workers: 3, ChunkBytes: chunk})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if want == nil {
				want = got
			}
			for _, table := range []string{"r", "n"} {
				if d := cmp.Diff(withoutPlace(want.tables[table]), withoutPlace(got.tables[table])); d != "" {
					t.Errorf("%s, chunk %d, %s: %s", c.name, chunk, table, d)
				}
			}
			if d := cmp.Diff(want.tables["l"], got.tables["l"]); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
			if len(got.tables["_rejects"]) != 0 {
				t.Errorf("%s: %v", c.name, got.tables["_rejects"])
			}
		}
	}
}

func TestBrokenDocuments(t *testing.T) {
	src := "root r\nrecord r none\nfield a integer\nrecord_path $.data[*]\nformat json"
	for _, c := range []struct {
		doc     string
		rows    int
		rejects []string
	}{
		{`{"data":[{"a":1},{"a":},{"a":3}]}`, 2, []string{`a.json|1|17|6|$.data[1]|a|syntax`}},
		{`{"data":[{"a":1},` + "\n" + `{"a":2}`, 2, []string{`a.json|2|25|∅|$|∅|syntax`}},
		{`{"data":[{"a":1}]} {"data":[]}`, 1, []string{`a.json|1|19|∅|$|∅|syntax`}},
		{`{"dat":[{"a":1}]}`, 0, []string{`a.json|1|17|∅|$.data[*]|∅|type_mismatch`}},
		{`{"x":[1 2],"data":[{"a":1}]}`, 0, []string{`a.json|1|10|∅|$|∅|syntax`}},
		{`{"data":null}`, 0, nil},
		{`{"data":[1,{"a":1}]}`, 1, []string{`a.json|1|9|1|$.data[0]|∅|type_mismatch`}},
	} {
		for _, chunk := range []int{64, 1 << 20} {
			got, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, src), Files: writeInput(t, map[string]string{"a.json": c.doc}), ChunkBytes: chunk})
			if err != nil {
				t.Fatal(err)
			}
			var rejects []string
			for _, r := range got.tables["_rejects"] {
				rejects = append(rejects, strings.Join(strings.Split(r, "|")[:7], "|"))
			}
			if d := cmp.Diff(c.rejects, rejects); d != "" || len(got.tables["r"]) != c.rows {
				t.Errorf("%s: %v, %s", c.doc, got.tables["r"], d)
			}
		}
	}
}

func TestJSONSuiteThroughRecords(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "data", "json-suite", "test_parsing")
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, "root r\nrecord r none\nfield a varchar\nformat json\ntype_mismatch null")
	s := newTestSession(t, 1)
	var files []File
	for _, n := range names {
		files = append(files, File{Path: filepath.Join(dir, n.Name()), Name: n.Name()})
	}
	got, err := runJob(t, s, &Job{Program: p, Files: files, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string][]string{}
	for _, r := range got.tables["_rejects"] {
		w := strings.Split(r, "|")
		reasons[w[0]] = append(reasons[w[0]], w[6])
	}
	grammar := func(name string) bool {
		for _, r := range reasons[name] {
			switch r {
			case reasonSyntax, reasonUTF8, reasonSurrogate, reasonDepth:
				return true
			}
		}
		return false
	}
	for _, n := range names {
		switch name := n.Name(); {
		case name[0] == 'y' && grammar(name):
			t.Errorf("%s: %v", name, reasons[name])
		case name[0] == 'n' && !grammar(name) && name != "n_structure_no_data.json" && name != "n_single_space.json" && name != "n_structure_UTF8_BOM_no_data.json":
			// A file without any text is an empty input, not a broken document.
			t.Errorf("%s: %v", name, reasons[name])
		}
	}
}

func TestOddPaths(t *testing.T) {
	files := writeInput(t, map[string]string{"it's [1] é/a b*?.ndjson": `{"a":1}`})
	got, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer"), Files: files, Version: "it's", Metadata: map[string]string{"rbt_model": "it's"}})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"r": {"1|1|true|1|it's [1] é/a b*?.ndjson|1"}})
	dir := filepath.Join(t.TempDir(), "st[a]ge 'é*")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	j := &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer"), Files: files}
	if _, err := j.Stage(context.Background(), newTestSession(t, 1), dir); err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableInput(t *testing.T) {
	whole := compress(t, "gzip", strings.Repeat(`{"a":1}`+"\n", 5000))
	for name, content := range map[string]string{"a.ndjson.gz": whole[:len(whole)-20], "b.ndjson.gz": "plain", "c.ndjson.zst": "plain"} {
		_, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer"), Files: writeInput(t, map[string]string{name: content})})
		wantDiag(t, err, diag.IngestInput, name, "cannot be read to its end")
	}
}

func faultJob(t *testing.T) *Job {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf(`{"a":%d}`, i%20))
	}
	return &Job{Program: mustCompile(t, "root r\nrecord r by_value\nfield a integer\nchild l -> r"), Workers: 3, ChunkBytes: 128,
		Files: writeInput(t, map[string]string{"a.ndjson": strings.Join(lines, "\n")})}
}

func TestWorkerPanicNamesFileAndLine(t *testing.T) {
	j := faultJob(t)
	j.hooks.record = func(_ int, base int64) {
		if base == 16 { // the third line
			panic("boom")
		}
	}
	_, err := runJob(t, newTestSession(t, 1), j)
	wantDiag(t, err, diag.IngestWorker, "a.ndjson:3", "boom")
}

func TestLostRecordsAreFound(t *testing.T) {
	for name, lose := range map[string]func(b *tableBuf){
		"a row": func(b *tableBuf) {
			if b.t.name == "t0" && b.rows > 0 {
				b.truncate(b.rows - 1)
			}
		},
		"repeats": func(b *tableBuf) {
			if b.t.name == "t0_reps" && b.rows > 0 {
				b.truncate(b.rows - 1)
			}
		},
	} {
		j := faultJob(t)
		j.hooks.flush = lose
		_, err := runJob(t, newTestSession(t, 1), j)
		wantDiag(t, err, diag.IngestCheck, "", "occurrences were read")
		t.Log(name)
	}
	j := faultJob(t)
	j.hooks.shards = func(dir string) error {
		all, err := filepath.Glob(filepath.Join(dir, "t0_w*"))
		if err != nil {
			return err
		}
		return os.WriteFile(all[0], []byte("PAR1"), 0o644)
	}
	if _, err := runJob(t, newTestSession(t, 1), j); err == nil {
		t.Error("a damaged shard was merged")
	}
}

func TestStallEndsWithADump(t *testing.T) {
	j := faultJob(t)
	ticks, release := make(chan time.Time), make(chan struct{})
	j.hooks.ticks = ticks
	hung := make(chan struct{})
	j.hooks.record = func(_ int, base int64) {
		if base == 16 {
			close(hung)
			<-release
		}
	}
	go func() {
		<-hung
		for i := 0; i < 3; i++ {
			select {
			case ticks <- time.Time{}:
			case <-release:
			}
		}
	}()
	_, err := runJob(t, newTestSession(t, 1), j)
	d := wantDiag(t, err, diag.IngestStall, "", "made no progress")
	if !strings.Contains(d.Msg, "goroutine") {
		t.Error("no dump of goroutines")
	}
	close(release)
}

func TestCancelAndFailuresOfTheMergeLeaveNothing(t *testing.T) {
	var mu sync.Mutex // tables are merged side by side
	var steps []string
	j := faultJob(t)
	j.hooks.step = func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, name)
		return nil
	}
	s := newTestSession(t, 1)
	j.Workers = 1
	if _, err := runJob(t, s, j); err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		for _, cancel := range []bool{false, true} {
			j := faultJob(t)
			n := 0
			ctx, stop := context.WithCancel(context.Background())
			boom := errors.New("boom")
			j.hooks.step = func(string) error {
				mu.Lock()
				defer mu.Unlock()
				n++
				if n != i+1 {
					return nil
				}
				if cancel {
					stop()
					return nil
				}
				return boom
			}
			dir := t.TempDir()
			_, err := j.Stage(ctx, s, dir)
			if cancel && !errors.Is(err, context.Canceled) && err == nil {
				t.Errorf("step %s: the cancel was not seen", steps[i])
			}
			if !cancel && !errors.Is(err, boom) {
				t.Errorf("step %s: %v", steps[i], err)
			}
			if _, err := os.Stat(filepath.Join(dir, "shards")); err == nil {
				t.Errorf("step %s: shards are left", steps[i])
			}
			stop()
		}
	}
	if n := countSchemas(t, s); n != 0 {
		t.Errorf("%d merge schemas are left", n)
	}
	ctx, stop := context.WithCancel(context.Background())
	j = faultJob(t)
	j.hooks.record = func(int, int64) { stop() }
	if _, err := j.Stage(ctx, s, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel while encoding: %v", err)
	}
}

// TestTasksWithoutMemoryAreDoneAgainAlone takes the memory from every task that
// runs beside others.
func TestTasksWithoutMemoryAreDoneAgainAlone(t *testing.T) {
	s := newTestSession(t, 1)
	want, err := runJob(t, s, faultJob(t))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	starve := func(times int) func(string) error {
		return func(step string) error {
			mu.Lock()
			defer mu.Unlock()
			asked[step]++
			beside := strings.HasPrefix(step, "collapse ") || strings.HasPrefix(step, "copy ")
			if beside && asked[step] <= times {
				return fmt.Errorf("step %s: %w", step, materialize.ErrMemory)
			}
			return nil
		}
	}
	j := faultJob(t)
	j.hooks.step = starve(1)
	got, err := runJob(t, s, j)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.tables, got.tables); diff != "" {
		t.Errorf("what was done again differs: %s", diff)
	}
	again := 0
	for _, n := range asked {
		if n == 2 {
			again++
		}
	}
	if again < 4 {
		t.Errorf("%d steps were done again", again)
	}
	clear(asked)
	j = faultJob(t)
	j.hooks.step = starve(2)
	if _, err := runJob(t, s, j); !errors.Is(err, materialize.ErrMemory) {
		t.Errorf("a task that lacks memory alone: %v", err)
	}
	if n := countSchemas(t, s); n != 0 {
		t.Errorf("%d merge schemas are left", n)
	}
}
