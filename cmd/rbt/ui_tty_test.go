package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/engine"
)

// screen is a terminal of the simplest kind: it knows what the live view uses
// (up from the start of a line, then every row below emptied, then up again)
// and, as terminals do, wraps long lines anew when its width changes.
type screen struct {
	columns int
	lines   [][]rune // as written; the cursor stands at the end of the last
	erase   int      // rows that are still to be emptied
	below   int      // rows that were emptied below the cursor
	broken  string   // what the view did that a terminal would show as garbage
}

func (s *screen) Write(p []byte) (int, error) {
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		if len(s.lines) == 0 {
			s.lines = append(s.lines, nil)
		}
		last := len(s.lines) - 1
		switch r := text[i]; r {
		case '\n':
			s.lines = append(s.lines, nil)
		case '\r':
		case 0x1b:
			n := 0
			for i += 2; text[i] >= '0' && text[i] <= '9'; i++ {
				n = n*10 + int(text[i]-'0')
			}
			s.control(text[i], n)
		default:
			if s.erase+s.below > 0 {
				s.broken = "text is written while rows are emptied"
			}
			s.lines[last] = append(s.lines[last], r)
		}
	}
	return len(p), nil
}

// control obeys one control sequence.
func (s *screen) control(command rune, n int) {
	switch {
	case command == 'A' && s.erase == 0 && s.below == 0:
		s.up(n)
		s.erase, s.below = n, n-1
	case command == 'K' && n == 2 && s.erase > 0:
		s.erase--
	case command == 'B' && n == 1 && s.erase > 0:
	case command == 'A' && s.erase == 0 && s.below == n:
		s.below = 0
	default:
		s.broken = fmt.Sprintf("unexpected control sequence %d%c", n, command)
	}
}

// up goes up n rows of the screen; what is below is emptied next.
func (s *screen) up(n int) {
	if len(s.lines[len(s.lines)-1]) > 0 {
		s.broken = "the cursor does not stand at the start of a line"
	}
	for n > 0 && len(s.lines) > 1 {
		s.lines = s.lines[:len(s.lines)-1]
		n -= max(1, (len(s.lines[len(s.lines)-1])+s.columns-1)/s.columns)
	}
	if n != 0 {
		s.broken = "the cursor stands in the middle of a wrapped line"
	}
	s.lines[len(s.lines)-1] = nil
}

func (s *screen) String() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(strings.TrimRight(string(l), " "))
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func newTestTTY(s *screen, rows int) *ttyPrinter {
	var buffer strings.Builder
	text := &textPrinter{out: &buffer, width: lineWidth, report: report{text: sourceOf}}
	return &ttyPrinter{text: text, buffer: &buffer, out: s, size: func() (int, int) { return s.columns, rows }, stop: make(chan struct{})}
}

func TestTTYPrinterLiveView(t *testing.T) {
	s := &screen{columns: 100}
	p := newTestTTY(s, 24)
	events := sampleRun()
	start := events[0].Time
	p.Event(events[0])
	p.Event(events[1])
	p.Event(events[4])
	p.Event(engine.Event{Kind: engine.EventNodeProgress, Node: events[1].Node, Progress: &engine.Progress{Rows: 12345, Estimated: true, Share: 0.42, Bytes: 37_900_000}})
	p.draw(start.Add(2500 * time.Millisecond))
	want := "   2.5s  table model staging.stg_orders  42%  about 12,000 rows read  37.9 MB written\n" +
		"   2.5s  table model marts.orders\n" +
		"0 of 8 done, 2 running,  2.5s\n"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	p.Event(events[2])
	p.draw(start.Add(70 * time.Second))
	want = "1 of 8 OK created table model staging.stg_orders ....... [OK 99 rows, 4.1 KB, 1 test in 0.02s]\n" +
		"       WARN 3 not_null(note)\n" +
		"  1m10s  table model marts.orders\n" +
		"1 of 8 done, 1 running, 1m10s\n"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// Dots make way where a line would not fit, down to three.
func TestTTYPrinterTakesDotsAway(t *testing.T) {
	for columns, dots := range map[int]string{94: ".......", 91: "....", 90: "...", 40: "..."} {
		s := &screen{columns: 200}
		p := newTestTTY(s, 24)
		p.size = func() (int, int) { return columns, 24 }
		events := sampleRun()
		for _, e := range events[:3] {
			p.Event(e)
		}
		want := "1 of 8 OK created table model staging.stg_orders " + dots + " [OK 99 rows, 4.1 KB, 1 test in 0.02s]"
		if got, _, _ := strings.Cut(s.String(), "\n"); got != want {
			t.Errorf("%d columns: got %q, want %q", columns, got, want)
		}
	}
}

// After a run the screen holds what the plain printer writes, but for the START
// lines, at any size and even if the terminal was narrowed in between.
func TestTTYPrinterLeavesTheReport(t *testing.T) {
	for _, columns := range []int{200, 70, 20, 3} {
		s := &screen{columns: 200}
		p := newTestTTY(s, 10)
		for i, e := range sampleRun() {
			if i == 5 {
				s.columns = columns
			}
			p.Event(e)
			p.draw(e.Time.Add(time.Second))
		}
		p.Close()
		var plain strings.Builder
		print(&textPrinter{out: &plain, width: lineWidth, report: report{text: sourceOf}}, sampleRun())
		if s.broken != "" {
			t.Errorf("%d columns: %s", columns, s.broken)
		}
		// A narrow screen takes dots away, and nothing else.
		dots := regexp.MustCompile(`\.{3,} \[`)
		if diff := cmp.Diff(dots.ReplaceAllString(plain.String(), "... ["), dots.ReplaceAllString(s.String(), "... [")); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", columns, diff)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tc := range []struct {
		s     string
		cells int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"abc", 0, ""}, {"abc", 1, "…"}} {
		if got := fit(tc.s, tc.cells); got != tc.want {
			t.Errorf("fit(%q, %d) = %q, want %q", tc.s, tc.cells, got, tc.want)
		}
	}
}
