package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// endless is a model that no machine finishes, but for n=1.
const endless = `select count(*) as n from range({{ var('n') }}) where range % 7 <> 9`

// longRun starts a run that will not end by itself and returns when its model
// is running.
func longRun(t *testing.T, dir string) (cmd *exec.Cmd, rest *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command("rbt", "run", "--var", "n=1000000000000000")
	cmd.Dir = dir
	rest = &bytes.Buffer{}
	cmd.Stderr = rest
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "START table model m ") {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd, rest
		}
	}
	t.Fatalf("the model never started: %s", rest)
	return nil, nil
}

func newLongProject(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process on Windows cannot be sent an interrupt")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"project.yml": "name: p\nvars: {n: 1}\n", "models/m.sql": endless} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func rbt(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command("rbt", args...)
	cmd.Dir = dir
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// An interrupt ends the run with 130, keeps what was published, and the next
// run is fine.
func TestInterrupt(t *testing.T) {
	dir := newLongProject(t)
	if _, errOut, code := rbt(t, dir, "run"); code != 0 {
		t.Fatalf("first run: %d\n%s", code, errOut)
	}
	before, err := os.ReadFile(filepath.Join(dir, "lake", "m.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, errOut := longRun(t, dir)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("interrupted run ended with %v\n%s", err, errOut)
	}
	after, err := os.ReadFile(filepath.Join(dir, "lake", "m.parquet"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the published file changed: %v", err)
	}
	if out, errOut, code := rbt(t, dir, "run"); code != 0 {
		t.Errorf("next run: %d\n%s%s", code, out, errOut)
	}
}

// A second run on one lake is refused and names the first; readers are not.
func TestSecondRunIsRefused(t *testing.T) {
	dir := newLongProject(t)
	cmd, _ := longRun(t, dir)
	out, errOut, code := rbt(t, dir, "run")
	if code != exitUnable || out != "" || !strings.Contains(errOut, "RBT5001") || !strings.Contains(errOut, "pid") {
		t.Errorf("second run: %d\n%s%s", code, out, errOut)
	}
	if _, errOut, code := rbt(t, dir, "ls"); code != 0 {
		t.Errorf("ls beside a run: %d\n%s", code, errOut)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, errOut, code := rbt(t, dir, "run"); code != 0 {
		t.Errorf("run after it: %d\n%s", code, errOut)
	}
}

// A run that is killed says nothing about how it ended: retry does what it was
// to build, and not what the run before it left.
func TestKilledRunIsRetried(t *testing.T) {
	dir := newLongProject(t)
	if _, errOut, code := rbt(t, dir, "run"); code != 0 {
		t.Fatalf("first run: %d\n%s", code, errOut)
	}
	cmd, _ := longRun(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := os.WriteFile(filepath.Join(dir, "models", "m.sql"), []byte("select {{ var('n') }} as n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := rbt(t, dir, "retry")
	if code != 0 || !strings.Contains(out, "OK created table model m") {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
	if out, _, _ := rbt(t, dir, "show", "--inline", "select n from {{ ref('m') }}", "--output", "csv"); out != "n\n1000000000000000\n" {
		t.Errorf("the variables of the run that was killed: %q", out)
	}
	if out, _, code := rbt(t, dir, "retry"); code != 0 || out != "Nothing to do.\n" {
		t.Errorf("all is done: %d %q", code, out)
	}
}
