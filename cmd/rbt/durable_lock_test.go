package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var lockProject = map[string]string{
	"project.yml":       "name: shop\nvars: {n: 3}\ntargets: {dev: {lake: lake}, prod: {lake: lake_prod}}\ndefault_target: dev\nengine: {threads: 1}\n",
	"models/t.sql":      "---\ntests: [{unique: [i]}]\n---\nselect i from range(1000) t(i)",
	"models/p.sql":      "---\nlayout: parts\n---\nselect i from range(1000) t(i)",
	"models/inc.sql":    "---\nmaterialization: incremental\n---\nselect i from range(10) t(i)",
	"models/v.sql":      "---\nmaterialization: view\n---\nselect count(*) as n from {{ ref('t') }}",
	"models/slow.sql":   endlessCopy,
	"tests/t_is_ok.sql": "select a.i from {{ ref('t') }} a left join {{ ref('t') }} b using (i) where b.i is null",
}

// Eight runs at once on one lake: one at a time writes; without patience the
// others say which process does, with patience they wait; the lake is that of one
// run.
func TestEightRuns(t *testing.T) {
	alone := newDurable(t, lockProject)
	alone.rbt(0, "run")
	alone.rbt(0, "run")
	state := func(d durable) []string {
		rows := d.files("lake")
		for _, r := range []string{"t", "p", "inc", "v", "slow"} {
			rows = append(rows, r+": "+d.query("select count(*), sum(hash(x)::hugeint) from {{ ref('"+r+"') }} x"))
		}
		return rows
	}
	for _, tc := range []struct {
		name string
		args []string
	}{{"without patience", nil}, {"with patience", []string{"--lock-timeout", "10m"}}} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDurable(t, lockProject)
			outcomes := make([]outcome, 8)
			var wg sync.WaitGroup
			for i := range outcomes {
				wg.Go(func() {
					o, err := finish(d.command(append([]string{"run"}, tc.args...)...))
					if err != nil {
						t.Error(err)
					}
					outcomes[i] = o
				})
			}
			wg.Wait()
			built, unchanged, refused := 0, 0, 0
			for _, o := range outcomes {
				switch {
				case o.code == exitOK && strings.Contains(o.stdout, "NO-OP=0"):
					built++
				case o.code == exitOK:
					unchanged++
				case o.code == exitUnable && strings.Contains(o.stderr, "RBT5001") && strings.Contains(o.stderr, "another run (pid "):
					refused++
				default:
					t.Error(o)
				}
			}
			if built != 1 || tc.args != nil && refused > 0 {
				t.Errorf("%d built, %d had nothing to do, %d were refused", built, unchanged, refused)
			}
			d.rbt(0, "run")
			if diff := cmp.Diff(state(alone), state(d)); diff != "" {
				t.Errorf("(-one run +eight):\n%s", diff)
			}
		})
	}
}

// The text in the lock file holds nobody up: the kernel gives the lock back when
// a process ends, and the number in the text may be that of another by now.
func TestStaleLock(t *testing.T) {
	d := newDurable(t, lockProject)
	for _, text := range []string{
		fmt.Sprintf("pid %d on elsewhere, started 2020-01-01T00:00:00Z\n", 1<<22-1), // no such process
		fmt.Sprintf("pid %d on here, started 2020-01-01T00:00:00Z\n", os.Getpid()),  // alive, and no rbt
		"", "\x00\x00\x00\x00", strings.Repeat("x", 10_000),
	} {
		d.write("lake/.rbt/lock", text)
		d.rbt(0, "run")
	}
	run := d.inBackground("START table model slow ", "run", "--var", "n=10000000", "-s", "slow")
	d.staging("slow", run)
	o := d.rbt(2, "run", "-s", "t")
	says(t, o.stderr, "RBT5001", fmt.Sprintf("another run (pid %d on ", run.cmd.Process.Pid), "--lock-timeout 5m")
	o = d.rbt(2, "run", "-s", "t", "--lock-timeout", "50ms")
	says(t, o.stderr, fmt.Sprintf("waiting up to 50ms for another run (pid %d on ", run.cmd.Process.Pid), "still after 50ms")
	run.signal(os.Kill)
	run.end()
	d.rbt(0, "run")
}

// Beside a run that writes: commands that read, in the same target/ folder, and a
// run into the lake of another target.
func TestBesideARun(t *testing.T) {
	d := newDurable(t, lockProject)
	d.rbt(0, "run")
	d.rbt(0, "run", "--target", "prod")
	run := d.inBackground("START table model slow ", "run", "--var", "n=10000000", "-s", "slow")
	d.staging("slow", run)
	commands := [][]string{
		{"test", "-s", "t"}, {"test", "-s", "t", "--target", "prod"}, {"show", "-s", "v"}, {"compile"}, {"ls"}, {"plan"}, {"debug"},
		{"run", "--target", "prod", "--force"},
	}
	var wg sync.WaitGroup
	for range 2 {
		for _, args := range commands {
			if args[0] == "run" {
				args = append(args, "--lock-timeout", "10m")
			}
			wg.Go(func() {
				if o, err := finish(d.command(args...)); err != nil || o.code != 0 {
					t.Errorf("rbt %s beside a run: %v %s", strings.Join(args, " "), err, o)
				}
			})
		}
	}
	wg.Wait()
	for _, artifact := range []string{"manifest.json", "run_results.json"} {
		var doc map[string]any
		readJSON(t, d.path("target/"+artifact), &doc)
	}
	run.signal(os.Interrupt)
	if o := run.end(); o.code != exitInterrupted {
		t.Error(o)
	}
	for _, f := range d.files("target") {
		if strings.HasPrefix(filepath.Base(f), ".tmp-") {
			t.Errorf("%s is left in target/", f)
		}
	}
}

// A lake inside a lake is refused from either side, before anything is written.
func TestNestedLake(t *testing.T) {
	d := newDurable(t, lockProject)
	d.rbt(0, "run")
	d.write("project.yml", "name: shop\nvars: {n: 3}\nlake: lake/inner\n")
	says(t, d.rbt(2, "run").stderr, "RBT5", "lies inside the lake")
	if _, err := os.Stat(d.path("lake/inner")); err == nil {
		t.Error("the inner lake was made")
	}
	outer := newDurable(t, lockProject)
	outer.write("project.yml", "name: shop\nvars: {n: 3}\nlake: lake/inner\n")
	outer.rbt(0, "run")
	outer.write("project.yml", "name: shop\nvars: {n: 3}\n")
	says(t, outer.rbt(2, "run").stderr, "RBT5", "lies inside the lake")
}

// Readers beside runs that publish one after another: never an error, never two
// versions in one statement.
func TestReadersBesideRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("runs and readers work side by side for some time; -short leaves it out")
	}
	publishes := 12
	if long() {
		publishes = 500
	}
	files := map[string]string{"project.yml": "name: shop\nvars: {v: 0}\nroots: {drop: drop}\n"}
	for name, text := range versioned {
		files[name] = text
	}
	files["tests/one_version.sql"] = "select 1 from {{ ref('versions') }} a join {{ ref('versions') }} b using (i) having count(*) <> 20000 or min(a.v) <> max(b.v)"
	d := newDurable(t, files)
	d.drop(0)
	d.rbt(0, "run", "--var", "v=0")
	readers := &killReaders{d: d, queries: oneVersion[:4], stop: make(chan struct{}), tests: []string{"one_version"}}
	readers.start(outsider(t))
	begun, done := time.Now(), 0
	for v := 1; v <= publishes; v++ {
		d.drop(v)
		args := []string{"run", "--var", fmt.Sprintf("v=%d", v)}
		if v%10 == 9 {
			args = append(args, "--full-refresh")
		}
		if o, err := finish(d.command(args...)); err != nil || o.code != 0 {
			t.Errorf("run %d: %v %s", v, err, o)
			break
		}
		done++
	}
	close(readers.stop)
	readers.wg.Wait()
	t.Logf("%d runs in %.0f s, %d readings beside them, %d wrong", done, time.Since(begun).Seconds(), readers.readings.Load(), readers.wrong.Load())
}
