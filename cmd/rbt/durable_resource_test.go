package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A project of one node of each form that writes, and how its rows grow too many.
var resourceProject = map[string]string{
	"project.yml":    "name: shop\nvars: {n: 3}\nroots: {drop: drop}\nengine: {threads: 1, duckdb_threads: 1}\n",
	"models/t.sql":   "select hash(i)::varchar || hash(i + 1) as a, {{ var('n') }} as n from range({{ var('n') }}) t(i)",
	"models/p.sql":   "---\nlayout: parts\n---\nselect hash(i)::varchar || hash(i + 1) as a from range({{ var('n') }}) t(i)",
	"models/inc.sql": "---\nmaterialization: incremental\n---\nselect hash(i)::varchar || hash(i + 1) as a from range({{ var('n') }}) t(i)",
	"models/records.sql": `---
materialization: ingest
input: {path: $drop/*.ndjson}
mode: append
records: {r: {fields: {a: varchar}}}
root: r
---
`,
	"drop/1.ndjson": `{"a":"x"}` + "\n",
}

const tooMany = "2000000"

// grow adds raw records that fill a small disk.
func (d durable) grow() {
	d.t.Helper()
	var b strings.Builder
	for i := range uint64(120_000) {
		h := i * 0x9E3779B97F4A7C15 // spreads the bits, so that nothing compresses
		b.WriteString(`{"a":"`)
		for k := range 4 {
			const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
			x := (h ^ h>>29) * (2*uint64(k) + 0xBF58476D1CE4E5B9)
			for range 8 {
				b.WriteByte(digits[x>>58])
				x <<= 6
			}
		}
		b.WriteString("\"}\n")
	}
	d.write("drop/2.ndjson", b.String())
}

// content is every row that is published.
func (d durable) content() string {
	d.t.Helper()
	var all []string
	for _, m := range []string{"t", "p", "inc", "records"} {
		all = append(all, m+": "+d.query("select count(*), sum(hash(x)::hugeint) from {{ ref('"+m+"') }} x"))
	}
	return strings.Join(all, "\n")
}

// unharmed checks that what is published and every file of the lake is as before,
// and that the next run is fine.
func (d durable) unharmed(before string, files []string) {
	d.t.Helper()
	if diff := cmp.Diff(before, d.content()); diff != "" {
		d.t.Errorf("published (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(files, d.files("lake")); diff != "" {
		d.t.Errorf("files (-before +after):\n%s", diff)
	}
	_ = os.Remove(d.path("drop/2.ndjson"))
	d.rbt(0, "run")
}

// mounted mounts a file system of so many KiB on a folder, or skips.
func (d durable) mounted(rel, size string) (unmount func()) {
	d.t.Helper()
	if runtime.GOOS != "linux" {
		d.t.Skip("a small file system is mounted with Linux's means; the conformance suite has the same faults at the seam")
	}
	if err := os.MkdirAll(d.path(rel), 0o777); err != nil {
		d.t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", d.path(rel)).CombinedOutput(); err != nil {
		d.t.Skipf("nothing can be mounted here (%v: %s); the conformance suite has the same faults at the seam", err, out)
	}
	done := false
	unmount = func() {
		if !done {
			done = true
			_ = exec.Command("umount", "-l", d.path(rel)).Run()
		}
	}
	d.t.Cleanup(unmount)
	return unmount
}

// limited runs a command under a limit of the shell.
func (d durable) limited(limit string, args ...string) outcome {
	d.t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", "ulimit " + limit + `; exec rbt "$@"`, "sh"}, args...)...)
	cmd.Dir = d.dir
	o, err := finish(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	return o
}

// A lake on a disk of 2 MB. While data is staged the disk fills: path and cause
// are named, everything published stays, nothing is left.
func TestDiskFullWhileStaging(t *testing.T) {
	d := newDurable(t, resourceProject)
	d.mounted("lake", "2m")
	d.rbt(0, "run")
	before, files := d.content(), d.files("lake")
	d.grow()
	for _, node := range []string{"t", "p", "inc", "records"} {
		o := d.rbt(1, "run", "-s", node, "--var", "n="+tooMany)
		text := strings.ToLower(o.stdout + o.stderr)
		says(t, text, "no space left on device", strings.ToLower(d.path("lake")), "make room on that disk")
		if !strings.Contains(text, "error[rbt4012]") && !strings.Contains(text, "error[rbt5013]") {
			t.Errorf("%s: no code in %s", node, o)
		}
	}
	d.unharmed(before, files)
}

// A disk that is full before the run begins: also the receipts and manifests of a
// publish find no room. And what fills it is what a killed run left: then the
// next run makes the room itself.
func TestDiskFullOfLeftovers(t *testing.T) {
	d := newDurable(t, resourceProject)
	d.mounted("lake", "2m")
	d.rbt(0, "run")
	before, files := d.content(), d.files("lake")
	fill := func(rel string) {
		d.write(rel, "")
		f, err := os.OpenFile(d.path(rel), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		block := make([]byte, 1024)
		for err == nil {
			_, err = f.Write(block)
		}
	}
	fill("lake/fill")
	o, err := finish(d.command("run", "--force"))
	if err != nil || o.code == 0 {
		t.Errorf("a run on a full disk: %v %s", err, o)
	}
	says(t, strings.ToLower(o.stdout+o.stderr), "no space left on device", "make room on that disk")
	if diff := cmp.Diff(before, d.content()); diff != "" {
		t.Errorf("published (-before +after):\n%s", diff)
	}
	if err := os.Remove(d.path("lake/fill")); err != nil {
		t.Fatal(err)
	}
	d.rbt(0, "run", "--var", "n=4", "-s", "t", "p")
	d.rbt(0, "run", "-s", "t", "p")
	d.rbt(0, "run")
	before = d.content()
	fill("lake/.rbt-tmp/00000000-dead/t/t.staged")
	d.rbt(0, "run", "--force", "-s", "t", "p")
	if diff := cmp.Diff(before, d.content()); diff != "" {
		t.Errorf("published (-before +after):\n%s", diff)
	}
	d.rbt(0, "run")
	if got := d.files("lake"); len(got) != len(files) {
		t.Errorf("files: %v", got)
	}
}

// A lake, or target/, that can only be read: runs say so and end with 2; readers
// read.
func TestReadOnlyFolders(t *testing.T) {
	d := newDurable(t, resourceProject)
	unmount := d.mounted("lake", "2m")
	d.rbt(0, "run")
	before, files := d.content(), d.files("lake")
	remount := func(how string) {
		t.Helper()
		if out, err := exec.Command("mount", "-o", "remount,"+how, d.path("lake")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	remount("ro")
	o := d.rbt(2, "run", "--force")
	says(t, o.stderr, "RBT5013", d.path("lake"), "read-only file system", "mount it writable")
	d.rbt(0, "test")
	d.rbt(0, "plan")
	if diff := cmp.Diff(before, d.content()); diff != "" {
		t.Errorf("published (-before +after):\n%s", diff)
	}
	remount("rw")
	d.unharmed(before, files)
	unmount()
}

// Limits of the process: size of files, open files.
func TestProcessLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the shell's limits are tried on Linux")
	}
	d := newDurable(t, resourceProject)
	d.rbt(0, "run")
	before, files := d.content(), d.files("lake")
	d.grow()
	for _, node := range []string{"t", "p", "inc", "records"} {
		// The higher limit is met by the engine's own threads, not by Go's.
		for _, limit := range []string{"-f 400", "-f 2000"} {
			o := d.limited(limit, "run", "-s", node, "--var", "n="+tooMany)
			if o.code != exitFailed {
				t.Errorf("%s under a limit of file size: %s", node, o)
			}
			says(t, strings.ToLower(o.stdout+o.stderr), "file too large", strings.ToLower(d.path("lake")), "ulimit -f")
		}
	}
	for _, n := range []string{"9", "11", "12", "13", "14", "15", "16", "17", "18"} {
		o := d.limited("-n "+n, "run", "-s", "t", "p", "records", "--force")
		if strings.Contains(o.stderr, "SIGABRT") && strings.Contains(o.stderr, "duckdb_open") {
			continue // DuckDB 1.5.6 ends its process where not even itself can be opened
		}
		if o.code == exitOK {
			break
		}
		if text := strings.ToLower(o.stdout + o.stderr); !strings.Contains(text, "too many open files") || o.code != exitFailed && o.code != exitUnable {
			t.Errorf("%s open files: %s", n, o)
		}
		if left, _ := filepath.Glob(d.path("lake/.rbt-tmp/*/*")); len(left) > 0 && o.code == exitFailed {
			t.Errorf("%s open files: staging stays: %v", n, left)
		}
	}
	_ = os.Remove(d.path("drop/2.ndjson"))
	d.rbt(0, "run", "--full-refresh", "--force")
	d.rbt(0, "run")
	if got := d.content(); got != before || len(d.files("lake")) != len(files) {
		t.Errorf("after it: %s\n%v", got, d.files("lake"))
	}
}

// Memory that is used up where temporary files find no room either.
func TestNoMemoryAndNoSpill(t *testing.T) {
	d := newDurable(t, map[string]string{
		"project.yml":  "name: shop\nvars: {n: 3}\nengine: {memory_limit: 60MB, threads: 1, duckdb_threads: 1}\n",
		"models/s.sql": "select hash(i) as h, repeat('x', 100) || i as t from range({{ var('n') }}) t(i) order by h",
	})
	d.rbt(0, "run")
	before := d.query("select * from {{ ref('s') }}")
	d.mounted("target", "1m")
	o := d.rbt(1, "run", "--var", "n=2000000")
	says(t, o.stdout, "error[RBT4012]", "--> models/s.sql", "engine.memory_limit")
	if strings.Contains(o.stdout, "SET ") {
		t.Errorf("advice that no model can follow: %s", o.stdout)
	}
	if got := d.query("select * from {{ ref('s') }}"); got != before {
		t.Errorf("published: %s", got)
	}
	d.rbt(0, "run")
	if got := d.files("lake"); len(got) != len(d.documented()) {
		t.Errorf("left: %v", got)
	}
	for _, f := range d.files("target") {
		if strings.HasPrefix(f, "tmp/") {
			t.Errorf("temporary file stays: %s", f)
		}
	}
}

// A folder in which this user may not write.
func TestNoPermission(t *testing.T) {
	d := newDurable(t, resourceProject)
	d.rbt(0, "run")
	before, files := d.content(), d.files("lake")
	command := func(args ...string) outcome {
		cmd := d.command(args...)
		asNobody(t, cmd, d.dir)
		o, err := finish(cmd)
		if errors.Is(err, os.ErrPermission) {
			t.Skipf("another user cannot run rbt here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	writable := d.path("target_of_nobody")
	if err := os.Mkdir(writable, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(writable, 0o777); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	o := command("run", "--force", "--target-path", writable)
	if o.code != exitUnable {
		t.Errorf("a lake without permission: %s", o)
	}
	says(t, o.stderr, "permission denied", d.path("lake"), "RBT5013", "give this user the right")
	d.unharmed(before, files)
}
