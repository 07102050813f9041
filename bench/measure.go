package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// usage is what one run of a side cost.
type usage struct {
	WallS    float64 `json:"wall_s"`
	CPUS     float64 `json:"cpu_s"`
	PeakB    int64   `json:"peak_bytes"`
	WroteB   int64   `json:"wrote_bytes"`
	OutBytes int64   `json:"output_bytes"`
}

func (u usage) String() string {
	return fmt.Sprintf("wall %s, cpu %s, peak %s, wrote %s", formatMetric(wall, u.WallS), formatMetric(cpu, u.CPUS),
		formatMetric(peak, float64(u.PeakB)), formatMetric(wrote, float64(u.WroteB)))
}

// get is the figure of one metric, in seconds or bytes.
func (u usage) get(m metric) float64 {
	switch m {
	case wall:
		return u.WallS
	case cpu:
		return u.CPUS
	case peak:
		return float64(u.PeakB)
	case wrote:
		return float64(u.WroteB)
	default:
		return float64(u.OutBytes)
	}
}

// child runs a command to its end and says what it cost. A command that fails
// is an error with the end of what it printed.
func (b *bench) child(cmd *exec.Cmd) (usage, error) {
	var out tailBuffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &out
	started := time.Now()
	err := cmd.Run()
	elapsed := time.Since(started)
	if err != nil {
		return usage{}, fmt.Errorf("run %s: %w\n%s", cmd.Args[0], err, tail(out.Bytes(), 12))
	}
	u := rusageOf(cmd.ProcessState)
	u.WallS = elapsed.Seconds()
	u.CPUS = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return u, nil
}

// tailBuffer keeps the end of what is written to it, so that a chatty child
// does not make this process large.
type tailBuffer struct{ bytes.Buffer }

func (t *tailBuffer) Write(p []byte) (int, error) {
	const most = 64 << 10
	n, err := t.Buffer.Write(p)
	if extra := t.Len() - most; extra > most {
		t.Next(extra)
	}
	return n, err
}

// command is a child in a folder, with the environment of this process.
func (b *bench) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Dir = dir
	return cmd
}

// runRbt is one call of rbt in a project.
func (b *bench) runRbt(project string, args ...string) (usage, error) {
	return b.child(b.command(project, b.rbt, args...))
}

// runTests is one call of `rbt test` in a project, in which so many tests must
// have passed.
func (b *bench) runTests(project string, passed int) (usage, error) {
	var out tailBuffer
	cmd := b.command(project, b.rbt, "test")
	cmd.Stdout = &out
	u, err := b.child(cmd)
	if want := fmt.Sprintf("PASS=%d ", passed); err == nil && !bytes.Contains(out.Bytes(), []byte(want)) {
		err = fmt.Errorf("not %d tests passed: %s", passed, tail(out.Bytes(), 1))
	}
	return u, err
}

// median of a metric over runs; 0 of none.
func median(runs []usage, m metric) float64 {
	if len(runs) == 0 {
		return 0
	}
	values := make([]float64, len(runs))
	for i, u := range runs {
		values[i] = u.get(m)
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

// spread is (highest - lowest) / median of a metric.
func spread(runs []usage, m metric) float64 {
	mid := median(runs, m)
	if mid == 0 {
		return 0
	}
	by := func(a, b usage) int { return cmp.Compare(a.get(m), b.get(m)) }
	return (slices.MaxFunc(runs, by).get(m) - slices.MinFunc(runs, by).get(m)) / mid
}

// outputSize sums the files of outputs.
func outputSize(outputs map[string]relation) (int64, error) {
	var total int64
	seen := map[string]bool{}
	for _, rel := range outputs {
		for _, file := range rel.allFiles() {
			if seen[file] {
				continue
			}
			seen[file] = true
			info, err := os.Stat(file)
			if err != nil {
				return 0, fmt.Errorf("measure the output: %w", err)
			}
			total += info.Size()
		}
	}
	return total, nil
}
