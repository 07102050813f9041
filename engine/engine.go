// Package engine runs a plan against embedded DuckDB: sessions, the scheduler,
// error places, sources, audits, results. Its facade (Open, Run, Test) is what
// a Go program embeds. It prints nothing: it emits events. It writes to the
// lake only through materialize.
package engine

import (
	"time"

	"rbt/internal/diag"
)

// EventKind tells what happened.
type EventKind string

// The kinds of events, in the order in which a node meets them.
const (
	EventRunStarted   EventKind = "run_started"
	EventNodeStarted  EventKind = "node_started"
	EventNodeProgress EventKind = "node_progress"
	EventStatement    EventKind = "statement"
	EventNodeFinished EventKind = "node_finished"
	EventTestFinished EventKind = "test_finished"
	EventLog          EventKind = "log"
	EventRunFinished  EventKind = "run_finished"
)

// Status is how a node or test ended, in the words of dbt's artifacts.
type Status string

// The statuses of nodes (success, error, skipped, no-op, cancelled) and tests
// (pass, warn, fail, error, skipped).
const (
	StatusSuccess   Status = "success"
	StatusError     Status = "error"
	StatusSkipped   Status = "skipped"
	StatusUnchanged Status = "no-op"
	StatusCancelled Status = "cancelled"
	StatusPass      Status = "pass"
	StatusWarn      Status = "warn"
	StatusFail      Status = "fail"
)

// Event is something that happened in a run. Which fields are set depends on
// Kind; it is complete when it is sent and never changes.
type Event struct {
	Kind      EventKind
	Time      time.Time
	Number    int // of the step or test, from 1
	Total     int
	Node      *NodeResult // started: only identity is set
	Test      *TestResult
	Progress  *Progress
	Statement *Statement
	Message   string
	Level     string  // debug | info | warn | error
	Result    *Result // run_finished
}

// Statement is one text that the SQL engine is given: told when it begins, and
// again when it is done.
type Statement struct {
	Node               string // display name of the node that it is for; "" where it is for none
	Connection, Number int    // the connection, and the place of the statement on it; both from 1
	SQL                string
	Done               bool
	Elapsed            time.Duration // once it is done
	Err                error
}

// Progress is how far a running node is; a field that is 0 is not known.
type Progress struct {
	Rows              int64
	Estimated         bool    // Rows is the SQL engine's guess of how many it has read
	Share             float64 // of the work, 0 to 1; negative where the engine does not know
	Files, FilesTotal int64
	Bytes, BytesTotal int64 // read by an ingest, written by all else
	Records, Rejects  int64
}

// NodeResult is how one node of a run ended.
type NodeResult struct {
	ID, Name, Display string // model.shop.stg_orders, stg_orders, staging.stg_orders
	ResourceType      string // model | seed
	Materialization   string
	File              string
	Status            Status
	Reason            string // why it ran, or was unchanged
	Because           string // skipped: display name of the root cause
	Rows, Bytes       int64  // published by this run
	Parts             int    // parts published in all, of an incremental
	Incremental       bool
	Kept              bool // the table came out as it is published, and its files stayed
	Started           time.Time
	Elapsed           time.Duration
	Tests             []*TestResult // gates
	Err               error         // diag.Diagnostic or diag.List where a place is known
	SQL               string        // compiled
	Notes             []string      // what a user should be told under the line
	Worker            int
}

// TestResult is how one test ended. Failures counts violating rows (groups for
// unique), Checked the rows looked at, -1 where it is not known.
type TestResult struct {
	ID, Name, Node, Kind string
	Label                string // not_null(order_id)
	Output               string // of an ingest, as ref() takes it; "" where the node itself is tested
	File                 string
	Status               Status
	Severity             diag.Severity
	Failures             int64
	Checked              int64
	Expected             string // one sentence: what was expected
	Found                string // of a unit test that fails: what was found, in a few words
	Columns              []string
	Sample               [][]string // at most five violating rows, printed exactly
	SQL                  string
	Compiled             string // where that SQL lies under the target folder, "" where it was not kept
	Stored               string // where all violating rows lie under the target folder, "" where they were not asked for
	Elapsed              time.Duration
	Err                  error
	AfterPublish         bool   // published before this test could run
	Because              string // skipped: name of what failed before it, "" where nothing did
}

// Result is what a run or test came to.
type Result struct {
	InvocationID string
	Command      string
	Started      time.Time
	Elapsed      time.Duration
	Nodes        []*NodeResult // in plan order
	Tests        []*TestResult // in plan order, gates included
	Cancelled    bool
	Fatal        error // rbt could not start or finish
}
