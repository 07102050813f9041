package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
)

// TestTheSameLineAgain: a line that is equal to the one before is counted
// without being read. What comes out must be what the oracle makes, which reads
// every line.
func TestTheSameLineAgain(t *testing.T) {
	for name, c := range map[string]struct {
		src   string
		lines []string
	}{
		"nested content": {"root r\nrecord r\nfield a integer\nref n n\nchild ns -> n\nchild o {\nfield x integer\n}\nrecord n\nfield v integer",
			[]string{`{"a":1,"n":{"v":1},"ns":[{"v":1},{"v":2},{"v":1}],"o":[{"x":1},{"x":2}]}`, `{"a":2,"n":{"v":2}}`, `{"a":1,"n":{"v":1},"ns":[{"v":1},{"v":2},{"v":1}],"o":[{"x":1},{"x":2}]}`}},
		"equal metadata": {"root r\nrecord r\nfield a integer\nmeta field m varchar", []string{`{"a":1,"m":"x"}`, `{"a":2,"m":"y"}`}},
		"NaN differs from itself": {"root r\nrecord r content_id conflict=quarantine\nfield a integer\nmeta field m double",
			[]string{`{"a":1,"m":"NaN"}`, `{"a":2,"m":1}`}},
		"NaN below a record that is dropped": {"root r\nrecord r\nfield a integer\nref n n\nrecord n content_id conflict=first\nfield v integer\nmeta field m double",
			[]string{`{"a":1,"n":{"v":1,"m":"NaN"}}`, `{"a":2}`}},
		"the last metadata counts":  {"root r\nrecord r content_id conflict=last\nfield a integer\nmeta field m varchar", []string{`{"a":1,"m":"x"}`, `{"a":1,"m":"y"}`, `{"a":1,"m":"x"}`}},
		"never merged":              {"root r\nrecord r none\nfield a integer\nchild t integer", []string{`{"a":1,"t":[1,2]}`, `{"a":2}`}},
		"never merged, below":       {"root r\nrecord r\nfield a integer\nref n n\nrecord n none\nfield v integer", []string{`{"a":1,"n":{"v":1}}`, `{"a":2}`}},
		"by value":                  {"root r\nrecord r by_value\nfield a integer\nref n r\nchild t integer", []string{`{"a":1,"n":{"a":1,"t":[5]},"t":[1,2]}`, `{"a":1,"t":[3]}`}},
		"by every place":            {"root r\nrecord r\nfield a integer\nref n n\nrecord n\nfield v integer\noccurrences table", []string{`{"a":1,"n":{"v":1}}`, `{"a":2,"n":{"v":1}}`}},
		"nested first, entry later": {"root r\nrecord r\nfield a integer\nref n r", []string{`{"n":{"a":1}}`, `{"a":1}`, `{"n":{"a":1}}`}},
		"bad ones":                  {"root r\nrecord r\nfield a integer", []string{`{"a":1}`, `{"a":"x"}`, `{"a":1`, ``, `{"a":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, l := range c.lines {
				for range 5 {
					lines = append(lines, l)
				}
			}
			wantOracle(t, c.src, map[string]string{"a.ndjson": strings.Join(lines, "\n") + "\n"})
		})
	}
}

// TestNaNAgainIsAConflict: NaN differs from itself on the next line too.
func TestNaNAgainIsAConflict(t *testing.T) {
	line := `{"a":1,"m":"NaN"}`
	_, err := tryLoad(t, "root r\nrecord r\nfield a integer\nmeta field m double", line, line)
	wantDiag(t, err, diag.IngestConflict, "a.ndjson:2", "r: the metadata field m differs from that of the same content before: nan and nan")
}

// TestNulledValuesOfRepeats: what a line made NULL counts again with the line.
func TestNulledValuesOfRepeats(t *testing.T) {
	s := newTestSession(t, 1)
	line := `{"a":1,"b":"x"}` + "\n"
	j := &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer\nfield b integer\ntype_mismatch null"),
		Files: writeInput(t, map[string]string{"a.ndjson": strings.Repeat(line, 5)})}
	got, err := runJob(t, s, j)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"1|1|∅|true|5|a.ndjson|1"}, got.tables["r"]); d != "" {
		t.Error(d)
	}
	if n := j.Stats().Nulled; n != 5 {
		t.Errorf("%d values became NULL, want 5", n)
	}
}

// TestRepeatsBeyondTheMap: a map of repeats that is full forgets, and a line
// that follows its equal across that is read again.
func TestRepeatsBeyondTheMap(t *testing.T) {
	var b strings.Builder
	for i := range 3 * firstDedupSlots {
		for range 3 {
			fmt.Fprintf(&b, `{"a":%d,"n":{"v":%d}}`+"\n", i%(2*firstDedupSlots), i%7)
		}
	}
	wantOracle(t, "root r\nrecord r\nfield a integer\nref n n\nrecord n\nfield v integer", map[string]string{"a.ndjson": b.String()})
}

// TestRecordsThatAreNeverMerged: workers number them, chunk by chunk, whichever
// chunk is read first.
func TestRecordsThatAreNeverMerged(t *testing.T) {
	contents := map[string]string{}
	for f := range 5 {
		var b strings.Builder
		for i := range 40 * f {
			switch {
			case i%11 == 3:
				b.WriteString(`{"a":"bad"}` + "\n")
			case i%7 == 0:
				b.WriteString("\n")
			default:
				fmt.Fprintf(&b, `{"a":%d,"n":{"v":%d},"ns":[{"v":1},{"v":%d}],"o":[{"x":1},{"x":2}]}`+"\n", 100*f+i, i%3, i)
			}
		}
		contents[fmt.Sprintf("f%d.ndjson", f)] = b.String()
	}
	for name, src := range map[string]string{
		"all":           "root r\nrecord r none\nfield a integer\nref n n\nchild ns -> n\nchild o {\nfield x integer\n}\nrecord n none\nfield v integer",
		"the upper":     "root r\nrecord r none\nfield a integer\nref n n\nchild ns -> n\nchild o {\nfield x integer\n}\nrecord n\nfield v integer",
		"every place":   "root r\nrecord r none\nfield a integer\nref n n\nchild ns -> n\nchild o {\nfield x integer\n}\nrecord n none\nfield v integer\noccurrences table",
		"holding their": "root r\nrecord r none\nfield a integer\nref n r\nchild ns -> r\nchild o {\nfield x integer\n}",
	} {
		t.Run(name, func(t *testing.T) { wantOracle(t, src, contents) })
	}
}

// wantOracle loads files with several workers and sizes of chunks, and with the
// least memory, and compares the tables with the oracle's.
func wantOracle(t *testing.T, src string, contents map[string]string) {
	t.Helper()
	spec := parseSpec(src)
	files := writeInput(t, contents)
	o := &oracle{spec: spec}
	o.load(files, contents)
	o.result(files)
	if o.err != "" {
		t.Fatal(o.err)
	}
	unsignZeros(o.tables)
	s := newTestSession(t, 2)
	for _, workers := range []int{1, 3} {
		for _, chunk := range []int{64, 1 << 20} {
			got, err := runJob(t, s, &Job{Program: mustCompile(t, src), Files: files, Workers: workers, ChunkBytes: chunk, MemoryLimit: 1})
			if err != nil {
				t.Fatal(err)
			}
			delete(got.tables, "_rejects")
			delete(got.tables, "_loads")
			unsignZeros(got.tables)
			if d := cmp.Diff(o.tables, got.tables); d != "" {
				t.Errorf("%d workers, chunks of %d bytes: %s", workers, chunk, d)
			}
		}
	}
}
