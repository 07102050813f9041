package ingest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// Cases that other tools are known to get wrong.

func TestIntegersBeyond64BitsAreExact(t *testing.T) {
	got := mustLoad(t, "root r\nrecord r\nfield n decimal(38,0)\nfield j json path=k", `{"n":9300000000000000001}`, `{"n":18000000000000000003}`, `{"k":18000000000000000003}`)
	got.want(t, map[string][]string{"r": {"1|9300000000000000001|∅|true|1|a.ndjson|1", "2|18000000000000000003|∅|true|1|a.ndjson|2", "3|∅|18000000000000000003|true|1|a.ndjson|3"}})
	for _, typ := range []string{"bigint", "double", "decimal(18,3)"} {
		got := mustLoad(t, "root r\nrecord r\nfield n "+typ, `{"n":9300000000000000001}`)
		if len(got.tables["r"]) != 0 || !strings.Contains(got.tables["_rejects"][0], reasonRange) {
			t.Errorf("%s: %v", typ, got.tables)
		}
	}
	got = mustLoad(t, "root r\nrecord r\nfield n ubigint", `{"n":18000000000000000003}`, `{"n":-1}`)
	if len(got.tables["r"]) != 1 || len(got.tables["_rejects"]) != 1 {
		t.Errorf("ubigint: %v", got.tables)
	}
}

func TestLateValuesAreNotCast(t *testing.T) {
	lines := make([]string, 20480)
	for i := range lines {
		lines[i] = `{"q":40}`
	}
	lines = append(lines, `{"q":2.7}`, `{"q":false}`)
	got := mustLoad(t, "root r\nrecord r\nfield q integer", lines...)
	got.want(t, map[string][]string{"r": {"1|40|true|20480|a.ndjson|1"}})
	if n := len(got.tables["_rejects"]); n != 2 {
		t.Errorf("%d rejects", n)
	}
	got = mustLoad(t, "root r\nrecord r\nfield q json", lines...)
	got.want(t, map[string][]string{"r": {"1|40|true|20480|a.ndjson|1", "2|2.7|true|1|a.ndjson|20481", "3|false|true|1|a.ndjson|20482"}})
}

func TestNullFirstListLater(t *testing.T) {
	src := "root r\nrecord r\nfield id integer\nchild c {\nfield x integer\n}"
	files := writeInput(t, map[string]string{"1.ndjson": `{"id":1,"c":null}`, "2.ndjson": `{"id":2,"c":[{"x":1},{"x":2}]}`})
	got, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, src), Files: files})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"r": {"1|1|∅|true|1|1.ndjson|1", "2|2|2|true|1|2.ndjson|1"}, "c": {"2|0|1", "2|1|2"}})
}

func TestTimestampForms(t *testing.T) {
	got := mustLoad(t, "root r\nrecord r\nfield t timestamp\nfield z timestamptz\nfield d date\nfield c time\nfield u uuid",
		`{"t":"2031-01-02 03:04:05"}`, `{"t":"2031-01-02T03:04:05.678"}`, `{"t":"2031-01-02"}`, `{"t":"2031-01-02T03:04:05.123456000"}`, `{"t":"0001-01-01 00:00"}`,
		`{"z":"2031-01-02T03:04:05+02:30"}`, `{"z":"2031-01-02 03:04:05Z"}`, `{"z":"1969-12-31T23:59:59.5-00"}`,
		`{"d":"2024-02-29","c":"23:59:59.999999","u":"0123abcd-0123-0123-0123-0123456789AB"}`)
	var shown []string
	for _, r := range got.tables["r"] {
		shown = append(shown, strings.Join(strings.Split(r, "|")[1:6], " "))
	}
	if d := cmp.Diff([]string{"2031-01-02 03:04:05 ∅ ∅ ∅ ∅", "2031-01-02 03:04:05.678 ∅ ∅ ∅ ∅", "2031-01-02 00:00:00 ∅ ∅ ∅ ∅", "2031-01-02 03:04:05.123456 ∅ ∅ ∅ ∅", "0001-01-01 00:00:00 ∅ ∅ ∅ ∅",
		"∅ 2031-01-02 00:34:05+00 ∅ ∅ ∅", "∅ 2031-01-02 03:04:05+00 ∅ ∅ ∅", "∅ 1969-12-31 23:59:59.5+00 ∅ ∅ ∅", "∅ ∅ 2024-02-29 23:59:59.999999 0123abcd-0123-0123-0123-0123456789ab"}, shown); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{`"t":"2031-01-02T03:04:05.1234567"`, `"t":"2031-13-01"`, `"z":"2031-01-02T03:04:05"`, `"t":1700000000`, `"d":"2023-02-29"`, `"c":"24:00"`, `"u":"x"`, `"t":"2031-01-02 25:00"`} {
		got := mustLoad(t, "root r\nrecord r\nfield t timestamp\nfield z timestamptz\nfield d date\nfield c time\nfield u uuid", "{"+bad+"}")
		if len(got.tables["_rejects"]) != 1 {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestTruncatedLastLine(t *testing.T) {
	lines := []string{`{"a":1}`, `{"a":2}`, `{"a":`}
	_, err := tryLoad(t, "root r\non_bad_record fail\nrecord r\nfield a integer", lines...)
	wantDiag(t, err, diag.IngestBadRecord, "a.ndjson:3", "the text ends where")
}

func TestDepths(t *testing.T) {
	nested := func(open, close string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	got := mustLoad(t, "root r\nrecord r none\nfield j json", `{"j":`+nested(`{"a":`, "}", 600)+"}", `{"j":`+nested("[", "]", 600)+"}", `{"j":`+strings.Repeat("[", 100_000))
	if len(got.tables["r"]) != 2 || len(got.tables["_rejects"]) != 1 || !strings.Contains(got.tables["_rejects"][0], reasonDepth) {
		t.Errorf("%d rows, %d rejects", len(got.tables["r"]), len(got.tables["_rejects"]))
	}
	deep := strings.Repeat(`{"next":`, 1500) + "null" + strings.Repeat("}", 1500)
	got = mustLoad(t, "root n\nrecord n by_value\nref next n\nchild c -> n", deep, strings.Repeat(`{"next":`, 600)+"null"+strings.Repeat("}", 600))
	if len(got.tables["n"]) != 600 || len(got.tables["_rejects"]) != 1 {
		t.Errorf("%d rows, %d rejects", len(got.tables["n"]), len(got.tables["_rejects"]))
	}
}

func TestNumbersAreNotTextAndTextIsNoNumber(t *testing.T) {
	got := mustLoad(t, "root r\nrecord r\nfield s varchar\nfield n integer", `{"s":1}`, `{"n":"1"}`, `{"s":true}`)
	if len(got.tables["_rejects"]) != 3 {
		t.Errorf("%v", got.tables)
	}
}

func FuzzRecords(f *testing.F) {
	for _, s := range []string{`{"a":1,"n":{"x":[1,2]},"l":[{"k":"v"}],"z":{"q":"\u00e9"}}`, `{"a":1e5,"l":[`, "{\"a\":\"\xff\"}", `{"n":{"n":{"n":{}}}}`} {
		f.Add([]byte(s))
	}
	p := mustCompile(f, "root r\nrecord r by_value\nunknown_fields capture\nfield a decimal(9,2)\nref n r\nchild l {\nfield k varchar\nchild m json\n}\nmeta field x integer[]")
	f.Fuzz(func(t *testing.T, line []byte) {
		e := newEncoder(p, firstDedupSlots)
		ok := e.entry(line, false, 0, 1)
		if !ok && e.fault.reason == "" {
			t.Fatal("refused without a reason")
		}
		if _, valid := validJSON(line); ok && !valid {
			t.Fatal("loaded text that is no JSON")
		}
		for _, b := range e.bufs {
			if !ok && b.rows != 0 {
				t.Fatalf("%d rows of a refused record are left in %s", b.rows, b.t.name)
			}
			for _, c := range b.cols {
				if c.rows != b.rows {
					t.Fatalf("column %s of %s holds %d rows of %d", c.col.name, b.t.name, c.rows, b.rows)
				}
			}
		}
	})
}
