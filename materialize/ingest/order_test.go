package ingest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBothInterleavingsOfTwoFiles lets one file wait for the other, either way.
func TestBothInterleavingsOfTwoFiles(t *testing.T) {
	line := func(a int) string { return fmt.Sprintf(`{"a":%d,"n":{"x":%d}}`, a, a%3) }
	files := writeInput(t, map[string]string{"1.ndjson": line(1) + "\n" + line(2) + "\n" + line(3), "2.ndjson": line(3) + "\n" + line(4) + "\n" + line(1)})
	p := mustCompile(t, "root r\nrecord r\nfield a integer\nref n n\nrecord n\nfield x integer")
	s := newTestSession(t, 1)
	var want map[string][]string
	for first := range int64(2) {
		j := &Job{Program: p, Files: files, Workers: 2}
		shift := positionShift(2)
		var left sync.WaitGroup
		left.Add(3)
		j.hooks.record = func(_ int, base int64) {
			if base>>shift == first {
				left.Done()
			} else {
				left.Wait()
			}
		}
		got, err := runJob(t, s, j)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got.tables
		}
		if d := cmp.Diff(want, got.tables); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff([]string{"1|1|1|true|2|1.ndjson|1", "2|2|2|true|1|1.ndjson|2", "3|3|3|true|2|1.ndjson|3", "4|4|1|true|1|2.ndjson|2"}, want["r"]); d != "" {
		t.Error(d)
	}
}

// TestFailuresAreTheSameForAnyWorkers: the first bad record in the order of the
// input is named, whoever meets one first.
func TestFailuresAreTheSameForAnyWorkers(t *testing.T) {
	contents := map[string]string{}
	for f := range 4 {
		var lines []string
		for i := range 200 {
			l := fmt.Sprintf(`{"a":%d}`, i)
			if i >= 100 && (i+f)%7 == 0 {
				l = `{"a":"x"}`
			}
			lines = append(lines, l)
		}
		contents[fmt.Sprintf("%d.ndjson", f)] = strings.Join(lines, "\n")
	}
	files := writeInput(t, contents)
	s := newTestSession(t, 1)
	for _, src := range []string{"on_bad_record fail", "max_rejects 17", "max_rejects 0", "type_mismatch fail", "max_rejects 1%"} {
		want := ""
		for _, w := range []int{1, 2, 4, 7} {
			for _, c := range []int{64, 1000, 1 << 20} {
				_, err := runJob(t, s, &Job{Program: mustCompile(t, "root r\nrecord r none\nfield a integer\n"+src), Files: files, Workers: w, ChunkBytes: c})
				if err == nil {
					t.Fatalf("%s: no error", src)
				}
				got := fmt.Sprintf("%#v", err)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s, %d workers, chunk %d:\n%s\nwant\n%s", src, w, c, got, want)
				}
			}
		}
	}
}
