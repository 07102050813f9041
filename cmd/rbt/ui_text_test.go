package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/engine"
	"rbt/internal/diag"
)

func sortStrings(s []string) { slices.Sort(s) }

// sampleRun is a run in which everything happens once.
func sampleRun() []engine.Event {
	start := time.Date(2024, 3, 1, 10, 0, 0, 0, time.UTC)
	node := func(n engine.NodeResult) *engine.NodeResult {
		n.ID, n.ResourceType = "model.p."+n.Name, "model"
		if n.Materialization == "" {
			n.Materialization = "table"
		}
		n.File = "models/" + n.Name + ".sql"
		return &n
	}
	warn := &engine.TestResult{ID: "t1", Name: "not_null_stg_orders_note", Node: "stg_orders", Label: "not_null(note)", Status: engine.StatusWarn, Severity: diag.Warning, Failures: 3, Checked: 99, Expected: "no NULL in note", File: "models/stg_orders.sql", Columns: []string{"id", "note"}, Sample: [][]string{{"1", "NULL"}, {"12", "NULL"}}}
	fail := &engine.TestResult{ID: "t2", Name: "not_null_orders_order_id", Node: "orders", Label: "not_null(order_id)", Status: engine.StatusFail, Failures: 2, Checked: -1, Expected: "no NULL in order_id", File: "models/orders.sql", Elapsed: 10 * time.Millisecond}
	staging := node(engine.NodeResult{Name: "stg_orders", Display: "staging.stg_orders", Status: engine.StatusSuccess, Rows: 99, Bytes: 4123, Elapsed: 20 * time.Millisecond, Tests: []*engine.TestResult{warn}})
	customers := node(engine.NodeResult{Name: "customers", Display: "marts.customers", Status: engine.StatusUnchanged})
	orders := node(engine.NodeResult{Name: "orders", Display: "marts.orders", Status: engine.StatusError, Elapsed: 30 * time.Millisecond, Tests: []*engine.TestResult{fail}})
	revenue := node(engine.NodeResult{Name: "revenue", Display: "marts.revenue", Status: engine.StatusSkipped, Because: "marts.orders"})
	events := node(engine.NodeResult{Name: "events", Display: "marts.events", Materialization: "incremental", Incremental: true, Parts: 2, Rows: 1, Bytes: 999, Status: engine.StatusSuccess, Elapsed: 1500 * time.Millisecond, Notes: []string{"old parts keep the old SQL; rebuild them with --full-refresh"}})
	broken := node(engine.NodeResult{Name: "broken", Display: "broken", Materialization: "view", Status: engine.StatusError, Elapsed: time.Second, Err: diag.Errorf("RBT4001", diag.Pos{File: "models/broken.sql", Line: 2, Col: 5}, "column %q not found", "x")})
	seed := &engine.NodeResult{ID: "seed.p.codes", Name: "codes", Display: "seeds.codes", ResourceType: "seed", Materialization: "seed", File: "seeds/codes.csv", Status: engine.StatusSuccess, Rows: 3, Bytes: 700, Elapsed: 5 * time.Millisecond}
	late := &engine.TestResult{ID: "t3", Name: "no_fives", Status: engine.StatusError, Checked: -1, File: "tests/no_fives.sql", Err: errors.New("no such table"), AfterPublish: true}
	res := &engine.Result{Command: "run", Started: start, Elapsed: 3 * time.Second, Nodes: []*engine.NodeResult{staging, customers, orders, revenue, events, broken, seed}, Tests: []*engine.TestResult{warn, fail, late}}
	event := func(kind engine.EventKind, number int, n *engine.NodeResult) engine.Event {
		return engine.Event{Kind: kind, Time: start, Number: number, Total: 8, Node: n}
	}
	return []engine.Event{
		{Kind: engine.EventRunStarted, Time: start, Total: 8},
		event(engine.EventNodeStarted, 1, staging), event(engine.EventNodeFinished, 1, staging),
		event(engine.EventNodeFinished, 2, customers),
		event(engine.EventNodeStarted, 3, orders), event(engine.EventNodeFinished, 3, orders),
		event(engine.EventNodeFinished, 4, revenue),
		event(engine.EventNodeFinished, 5, events),
		event(engine.EventNodeFinished, 6, broken),
		event(engine.EventNodeStarted, 7, seed), event(engine.EventNodeFinished, 7, seed),
		{Kind: engine.EventLog, Time: start, Level: "warn", Message: "old is published but no longer in the project"},
		{Kind: engine.EventLog, Time: start, Level: "debug", Message: "select 1"},
		{Kind: engine.EventTestFinished, Time: start, Number: 8, Total: 8, Test: late},
		{Kind: engine.EventRunFinished, Time: start, Result: res},
	}
}

func sourceOf(file string) (string, bool) {
	return "select a\n  , x from t\n", file == "models/broken.sql"
}

func print(p printer, events []engine.Event) {
	for _, e := range events {
		p.Event(e)
	}
	p.Close()
}

const wantText = `1 of 8 START table model staging.stg_orders ............ [RUN]
1 of 8 OK created table model staging.stg_orders ....... [OK 99 rows, 4.1 KB, 1 test in 0.02s]
       WARN 3 not_null(note)
2 of 8 NO-OP table model marts.customers ............... [UNCHANGED]
3 of 8 START table model marts.orders .................. [RUN]
3 of 8 ERROR audit of table model marts.orders ......... [FAIL 2 not_null(order_id) in 0.03s]
4 of 8 SKIP table model marts.revenue .................. [because of marts.orders]
5 of 8 OK created incremental model marts.events ....... [OK 1 new row, 999 bytes, 2 parts in 1.50s]
       old parts keep the old SQL; rebuild them with --full-refresh
6 of 8 ERROR creating view model broken ................ [ERROR in 1.00s]
7 of 8 START seed file seeds.codes ..................... [RUN]
7 of 8 OK loaded seed file seeds.codes ................. [OK 3 rows, 700 bytes in 0.01s]
warning: old is published but no longer in the project
8 of 8 ERROR no_fives .................................. [ERROR in 0.00s]

WARN 3 not_null(note) on stg_orders (models/stg_orders.sql)
  expected: no NULL in note
  got 3 of 99 rows that do not; the first 2:
    id | note
    ---+-----
    1  | NULL
    12 | NULL

FAIL 2 not_null(order_id) on orders (models/orders.sql)
  expected: no NULL in order_id
  got 2 that do not

Error in view model broken (models/broken.sql)
error[RBT4001]: column "x" not found
  --> models/broken.sql:2:5
   2 |   , x from t
     |     ^

ERROR no_fives (tests/no_fives.sql)
  published before this test could run
error: no such table

Done. PASS=2 WARN=1 ERROR=3 SKIP=1 NO-OP=1 TOTAL=8
`

func TestTextPrinter(t *testing.T) {
	var b strings.Builder
	print(&textPrinter{out: &b, starts: true, width: lineWidth, report: report{text: sourceOf}}, sampleRun())
	if diff := cmp.Diff(wantText, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Quiet keeps what went wrong and nothing else.
func TestTextPrinterQuiet(t *testing.T) {
	var b strings.Builder
	print(&textPrinter{out: &b, quiet: true, starts: true, width: lineWidth, report: report{text: sourceOf}}, sampleRun())
	got := b.String()
	for _, absent := range []string{"START", "NO-OP", "seeds.codes", "Done."} {
		if strings.Contains(got, absent) {
			t.Errorf("quiet output has %q:\n%s", absent, got)
		}
	}
	for _, present := range []string{"WARN 3 not_null(note)", "[FAIL 2 not_null(order_id) in 0.03s]", "models/broken.sql:2:5", "ERROR no_fives"} {
		if !strings.Contains(got, present) {
			t.Errorf("quiet output lacks %q:\n%s", present, got)
		}
	}
}

// Colours change nothing but colours.
func TestTextPrinterColours(t *testing.T) {
	var b strings.Builder
	print(&textPrinter{out: &b, starts: true, width: lineWidth, colour: palette{on: true}, report: report{text: sourceOf}}, sampleRun())
	plain := stripEscapes(b.String())
	if plain == b.String() {
		t.Error("nothing is painted")
	}
	if diff := cmp.Diff(wantText, plain); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func stripEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '[' {
			for i += 2; i < len(s) && (s[i] == ';' || s[i] >= '0' && s[i] <= '9'); i++ {
			}
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func TestColumnFor(t *testing.T) {
	for _, tc := range []struct {
		total int
		name  string
		want  int
	}{
		{4, "table model staging.stg_orders", 56},
		{40, "incremental model intermediate.int_order_payments", 73},
		{1, strings.Repeat("x", 500), maxLineWidth},
	} {
		if got := columnFor(tc.total, []string{tc.name}); got != tc.want {
			t.Errorf("columnFor(%d, %q) = %d, want %d", tc.total, tc.name, got, tc.want)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1.0 KB", 4123: "4.1 KB", 999_949: "999.9 KB", 999_950: "1.0 MB", 12_345_678: "12.3 MB", 5_000_000_000: "5.0 GB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestTextTable(t *testing.T) {
	got := textTable([]string{"id", "größe", "x"}, [][]string{{"1", "日本", "a\nb"}, {"100", "é", "\x1b[31m"}, {"2"}})
	want := "id  | größe | x\n" +
		"----+-------+---------\n" +
		"1   | 日本  | a\\nb\n" +
		"100 | é     | \\x1b[31m\n" +
		"2   |       |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// One object a line, with the figures of the text.
func TestJSONPrinter(t *testing.T) {
	var b strings.Builder
	print(&jsonPrinter{out: &b}, sampleRun())
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(sampleRun())-1 { // the debug message is left out
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	var events []map[string]any
	for _, l := range lines {
		var e map[string]any
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		for _, key := range []string{"event", "time", "level", "message"} {
			if _, ok := e[key]; !ok {
				t.Errorf("%s: no %q", l, key)
			}
		}
		events = append(events, e)
	}
	last := events[len(events)-1]
	want := map[string]any{"pass": 2.0, "warn": 1.0, "error": 3.0, "skip": 1.0, "no-op": 1.0, "total": 8.0}
	if diff := cmp.Diff(want, last["summary"]); diff != "" {
		t.Errorf("summary (-want +got)\n%s", diff)
	}
	if last["level"] != "error" || last["elapsed_seconds"] != 3.0 {
		t.Errorf("last event: %v", last)
	}
	problem := events[8]["problems"].([]any)[0].(map[string]any)
	wantProblem := map[string]any{"code": "RBT4001", "severity": "error", "file": "models/broken.sql", "line": 2.0, "column": 5.0, "message": `column "x" not found`}
	if diff := cmp.Diff(wantProblem, problem); diff != "" {
		t.Errorf("problem (-want +got)\n%s", diff)
	}
}
