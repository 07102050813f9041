package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Models that no machine finishes in the time of a test, unless their variable
// says so: one that the engine can interrupt, and one that is a single
// vectorised call, which DuckDB 1.5.6 cannot interrupt. Neither needs memory.
const (
	endlessCopy = "select i, j from range({{ var('n') }}) a(i), range({{ var('n') }}) b(j)"
	deafCall    = "select levenshtein(repeat('a', {{ var('n') }} + i), repeat('b', {{ var('n') }} + i)) as d from range(1) t(i)"
)

var signalProject = map[string]string{
	"project.yml":         "name: shop\nvars: {n: 3}\nengine: {threads: 1}\n",
	"models/first.sql":    "select 1 as one",
	"models/slow.sql":     "-- depends_on: {{ ref('first') }}\n" + endlessCopy,
	"models/deaf.sql":     "-- depends_on: {{ ref('first') }}\n" + deafCall,
	"models/after_it.sql": "select count(*) as n from {{ ref('slow') }}, {{ ref('deaf') }}",
}

// A background is a command that runs while the test does something else.
type background struct {
	t      testing.TB
	cmd    *exec.Cmd
	ended  chan struct{}
	stdout *bytes.Buffer
	stderr *bytes.Buffer
}

// patience is after how long a command that should have ended is killed, so that
// the test fails instead of hanging.
const patience = 2 * time.Minute

// inBackground starts a command and returns when it has printed a line that holds
// until.
func (d durable) inBackground(until string, args ...string) *background {
	d.t.Helper()
	return d.background(until, false, args...)
}

// background does the same for a line of stdout or of stderr.
func (d durable) background(until string, fromStderr bool, args ...string) *background {
	d.t.Helper()
	b := &background{t: d.t, cmd: d.command(args...), ended: make(chan struct{}), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	b.cmd.Stdout, b.cmd.Stderr = b.stdout, b.stderr
	pipe, text := b.cmd.StdoutPipe, b.stdout
	if fromStderr {
		b.cmd.Stderr, pipe, text = nil, b.cmd.StderrPipe, b.stderr
	} else {
		b.cmd.Stdout = nil
	}
	out, err := pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	watchdog := time.AfterFunc(patience, func() { _ = b.cmd.Process.Kill() })
	d.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	seen := make(chan bool, 1)
	go func() {
		defer close(b.ended)
		defer watchdog.Stop()
		r := bufio.NewReader(out)
		told := false
		for {
			line, err := r.ReadString('\n')
			text.WriteString(line)
			if !told && strings.Contains(line, until) {
				told = true
				seen <- true
			}
			if err != nil {
				break
			}
		}
		if !told {
			seen <- false
		}
		_, _ = io.Copy(io.Discard, r)
		_ = b.cmd.Wait()
	}()
	if !<-seen {
		<-b.ended
		d.t.Fatalf("rbt %s never said %q:\n%s%s", strings.Join(args, " "), until, b.stdout, b.stderr)
	}
	return b
}

func (b *background) signal(s os.Signal) {
	b.t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		b.t.Fatal(err)
	}
}

// end waits for the command and gives how it ended.
func (b *background) end() outcome {
	<-b.ended
	return outcome{b.cmd.ProcessState.ExitCode(), b.stdout.String(), b.stderr.String()}
}

// runResults gives the state of the last command, and of every node the status
// and its message, as run_results.json has them.
func (d durable) runResults() (state string, nodes map[string]string) {
	d.t.Helper()
	var doc struct {
		Results []struct {
			ID      string `json:"unique_id"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"results"`
		Args struct {
			State string `json:"state"`
		} `json:"args"`
	}
	readJSON(d.t, d.path("target/run_results.json"), &doc)
	nodes = map[string]string{}
	for _, r := range doc.Results {
		nodes[r.ID[strings.LastIndex(r.ID, ".")+1:]] = r.Status + " " + r.Message
	}
	return doc.Args.State, nodes
}

// staging waits until the engine writes the staged file of a node.
func (d durable) staging(node string, b *background) {
	d.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if found, err := filepath.Glob(d.path("lake/.rbt-tmp/*/" + node + "/*.staged")); err != nil || len(found) > 0 {
			return
		}
		select {
		case <-b.ended:
			d.t.Fatalf("%s was never staged: %s", node, b.end())
		case <-tick.C:
		}
	}
}

// An interrupt during a COPY, and one during a call that does not hear it: the
// run ends with 130, says which node was running, keeps what was published, and
// leaves nothing behind.
func TestSignals(t *testing.T) {
	for _, tc := range []struct {
		name, node, n string
		signal        os.Signal
		says, after   string
	}{
		{"interrupt during a copy", "slow", "10000000", os.Interrupt, "Cancelled.", "skipped because of slow"},
		{"terminate during a copy", "slow", "10000000", syscall.SIGTERM, "Cancelled.", "skipped because of slow"},
		{"interrupt during a deaf call", "deaf", "400000", os.Interrupt, "still running: deaf", "skipped cancelled before it began"},
		{"terminate during a deaf call", "deaf", "400000", syscall.SIGTERM, "still running: deaf", "skipped cancelled before it began"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDurable(t, signalProject)
			d.rbt(0, "run")
			before := d.query("select * from {{ ref('" + tc.node + "') }}")
			// The staged file exists a moment before the call begins: a signal in
			// between ends the run like any other, and another is tried.
			const tries = 20
			var o outcome
			for try := 1; ; try++ {
				run := d.inBackground("START table model "+tc.node+" ", "run", "--var", "n="+tc.n, "-s", "first", tc.node, "after_it", "--force")
				d.staging(tc.node, run)
				run.signal(tc.signal)
				if o = run.end(); try == tries || o.code != exitInterrupted || strings.Contains(o.stdout+o.stderr, tc.says) {
					break
				}
			}
			if o.code != exitInterrupted {
				t.Errorf("ended with %s", o)
			}
			says(t, o.stdout+o.stderr, tc.says)
			held, err := os.ReadFile(d.path("lake/.rbt/lock"))
			if stuck := tc.node == "deaf"; err != nil || stuck != (len(held) > 0) {
				t.Errorf("what still runs must keep the lake locked to the end of the process: %q, %v", held, err)
			}
			state, nodes := d.runResults()
			want := map[string]string{"first": nodes["first"], tc.node: "skipped cancelled while it ran", "after_it": tc.after}
			if diff := cmp.Diff(want, nodes); state != "cancelled" || !strings.HasPrefix(nodes["first"], "success") || diff != "" {
				t.Errorf("run_results.json: state %s, %s\n%s", state, diff, o)
			}
			if got := d.query("select * from {{ ref('" + tc.node + "') }}"); got != before {
				t.Errorf("published: %s", got)
			}
			d.rbt(0, "run")
			if got, want := d.files("lake"), d.documented(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("left in the lake: %v", got)
			}
		})
	}
}

// A second interrupt ends the process at once; the next run needs nothing.
func TestSecondInterrupt(t *testing.T) {
	d := newDurable(t, signalProject)
	d.rbt(0, "run")
	run := d.inBackground("START table model deaf ", "run", "--var", "n=400000", "-s", "deaf")
	d.staging("deaf", run)
	for signals := 0; ; signals++ {
		// The kernel joins signals that were not taken yet.
		if err := run.cmd.Process.Signal(os.Interrupt); err != nil {
			break
		}
	}
	o := run.end()
	if o.code != exitInterrupted {
		t.Errorf("ended with %s", o)
	}
	says(t, o.stderr, "ended at once")
	d.rbt(0, "run")
	if got, want := d.files("lake"), d.documented(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("left in the lake: %v", got)
	}
}

// A run that waits for the lock of another can be interrupted as well.
func TestInterruptWhileWaiting(t *testing.T) {
	d := newDurable(t, signalProject)
	first := d.inBackground("START table model slow ", "run", "--var", "n=10000000", "-s", "first", "slow")
	second := d.background("waiting up to 10m0s for another run (pid ", true, "run", "--lock-timeout", "10m")
	second.signal(os.Interrupt)
	if o := second.end(); o.code != exitInterrupted {
		t.Errorf("the waiting run ended with %s", o)
	}
	first.signal(os.Interrupt)
	if o := first.end(); o.code != exitInterrupted {
		t.Errorf("the first run ended with %s", o)
	}
	d.rbt(0, "run")
}
