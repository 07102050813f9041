// Command bench measures rbt: what it costs over the SQL that it runs, and how
// it stands against what a user would pick instead.
//
// It owns the scenarios, the data that they run on (made from fixed seeds),
// the bare programs that rbt is measured against, and the report. It must
// never measure inside its own process: every measured side is a child
// process, so that CPU, wall time, peak memory and bytes written mean the same
// for all of them, and the parent stays small, because on Linux a child's peak
// memory can not read lower than its parent's.
//
// Words: a scenario is a lettered group of cases; a case compares sides in one
// run, in the order A B A B; a side is one way to do the work; a target is a
// bound that a side promises to keep, absolute or against another side; a peer
// is another tool that does the same work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// childFlag is the first argument of the bench binary where it plays the bare
// program: the second is the path of the job.
const childFlag = "-child-job"

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		exitOn(runJobFile(os.Args[2]))
		return
	}
	exitOn(run(os.Args[1:]))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	list    bool
	run     string
	scale   float64
	repeat  int
	json    string
	peers   bool
	tools   string
	growth  bool
	work    string
	rbt     string
	verbose bool
}

func parseOptions(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.BoolVar(&o.list, "list", false, "list the scenarios and stop")
	set.StringVar(&o.run, "run", "", "letters of the scenarios to run, with commas; default all")
	set.Float64Var(&o.scale, "scale", 1, "size of the data and of the projects; 1 is what the targets are for")
	set.IntVar(&o.repeat, "repeat", 3, "how often each side of a case runs")
	set.StringVar(&o.json, "json", "", "write the results to this file as JSON")
	set.BoolVar(&o.peers, "peers", false, "install other tools from the package registries and measure them too")
	set.StringVar(&o.tools, "tools", "", "with -peers: only tools whose names start so, with commas; default all")
	set.BoolVar(&o.growth, "growth", false, "run each scenario at N, 2N and 4N and report how its cost grows, instead of comparing")
	set.StringVar(&o.work, "work", "", "keep data, projects and tools in this folder; default a temporary one that is removed")
	set.StringVar(&o.rbt, "rbt", "", "measure this rbt binary; default one built from this repository")
	set.BoolVar(&o.verbose, "v", false, "print every single run")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if o.scale <= 0 || o.repeat < 1 {
		return o, errors.New("-scale must be above 0 and -repeat at least 1")
	}
	return o, nil
}

func run(args []string) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	chosen, err := choose(o.run)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range chosen {
			fmt.Printf("%s  %s\n", s.letter, s.title)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	for _, s := range chosen {
		if ctx.Err() != nil {
			break
		}
		b.scenario = s.letter
		b.logf("== %s  %s", s.letter, s.title)
		if err := s.run(b); err != nil {
			b.add(result{Case: s.title, NotMeasured: err.Error()})
		}
		if !b.keep {
			removeLarge(filepath.Join(b.work, s.letter))
		}
	}
	return b.report(os.Stdout)
}

// bench is one run of the program: where it works, how large, and what it has
// found so far.
type bench struct {
	ctx      context.Context
	opt      options
	self     string // this binary
	rbt      string // the binary under test
	root     string // the repository
	work     string // data, projects, outputs
	scenario string // letter of the scenario that runs
	results  []result
	meta     machine
	tools    map[string]peerState
	keep     bool
	moved    int // how many folders were set aside
}

// newBench makes the working folder and builds rbt.
func newBench(ctx context.Context, o options) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the bench binary: %w", err)
	}
	b := &bench{ctx: ctx, opt: o, self: self, keep: o.work != "", tools: map[string]peerState{}}
	if b.keep {
		b.work, err = filepath.Abs(o.work)
		if err == nil {
			err = os.MkdirAll(b.work, 0o755)
		}
	} else {
		b.work, err = os.MkdirTemp("", "rbt-bench-")
	}
	if err != nil {
		return nil, fmt.Errorf("make the working folder: %w", err)
	}
	if b.root, err = repositoryRoot(); err != nil {
		return nil, err
	}
	b.rbt = o.rbt
	if b.rbt == "" {
		b.rbt = filepath.Join(b.work, "rbt")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.rbt, "./cmd/rbt")
		cmd.Dir = b.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build rbt: %w\n%s", err, tail(out, 10))
		}
	}
	if b.rbt, err = filepath.Abs(b.rbt); err != nil {
		return nil, err
	}
	b.meta = describeMachine(b)
	return b, nil
}

// repositoryRoot is the folder of the module that this program is started in.
func repositoryRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository (start bench inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (b *bench) close() {
	if b.keep {
		os.RemoveAll(b.aside())
		return
	}
	os.RemoveAll(b.work)
}

// dir makes a folder of its own for one case, empty.
func (b *bench) dir(name string) (string, error) {
	path := filepath.Join(b.work, b.scenario, name)
	if err := b.cleared(path)(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("make %s: %w", path, err)
	}
	return path, nil
}

// size scales a count, and never lets it fall below floor.
func (b *bench) size(n, floor int) int { return max(floor, int(float64(n)*b.opt.scale)) }

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// machine says on what the figures were taken.
type machine struct {
	When    string            `json:"when"`
	OS      string            `json:"os"`
	Arch    string            `json:"arch"`
	Cores   int               `json:"cores"`
	Memory  string            `json:"memory"`
	CPU     string            `json:"cpu"`
	Scale   float64           `json:"scale"`
	Repeat  int               `json:"repeat"`
	Go      string            `json:"go"`
	Rbt     string            `json:"rbt"`
	Load    string            `json:"load_at_start"`
	FloorMB float64           `json:"peak_memory_floor_mb"`
	Tools   map[string]string `json:"tools,omitempty"`
}

func describeMachine(b *bench) machine {
	m := machine{
		When: time.Now().UTC().Format("2006-01-02 15:04 MST"), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Cores: runtime.NumCPU(), Scale: b.opt.scale, Repeat: b.opt.repeat, Go: runtime.Version(),
		Memory: fieldOf("/proc/meminfo", "MemTotal"), CPU: fieldOf("/proc/cpuinfo", "model name"),
		Tools: map[string]string{},
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	if out, err := exec.CommandContext(b.ctx, b.rbt, "version").Output(); err == nil {
		m.Rbt = strings.TrimSpace(strings.SplitN(string(out), "\n", 2)[0])
	}
	return m
}

// fieldOf reads "name: value" out of one of the files that Linux describes
// itself with; "" elsewhere.
func fieldOf(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// tail keeps the last n lines of an output, for messages.
func tail(out []byte, n int) string {
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
