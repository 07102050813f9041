package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"rbt/internal/lake"
)

// A durable is a project on disk in which the tests of what survives work.
type durable struct {
	t   testing.TB
	dir string
}

// newDurable writes a project of these files. Linux and macOS only: the tests
// send signals.
func newDurable(t testing.TB, files map[string]string) durable {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("processes on Windows cannot be sent signals, and renaming over an open file is not promised there")
	}
	d := durable{t, t.TempDir()}
	for name, text := range files {
		d.write(name, text)
	}
	return d
}

func (d durable) path(rel string) string { return filepath.Join(d.dir, filepath.FromSlash(rel)) }

func (d durable) write(rel, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(rel)), 0o777); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.path(rel), []byte(text), 0o666); err != nil {
		d.t.Fatal(err)
	}
}

// command prepares one command of rbt in the project.
func (d durable) command(args ...string) *exec.Cmd {
	cmd := exec.Command("rbt", args...)
	cmd.Dir = d.dir
	return cmd
}

// outcome is how a command ended and what it said.
type outcome struct {
	code   int // -1: ended by a signal
	stdout string
	stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
}

func finish(cmd *exec.Cmd) (outcome, error) {
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}, nil
}

// rbt runs a command and wants this exit code.
func (d durable) rbt(code int, args ...string) outcome {
	d.t.Helper()
	o, err := finish(d.command(args...))
	if err != nil {
		d.t.Fatal(err)
	}
	if o.code != code {
		d.t.Fatalf("rbt %s: wanted exit %d: %s", strings.Join(args, " "), code, o)
	}
	return o
}

// query gives the rows of a query over what is published, one line each.
func (d durable) query(sql string) string {
	d.t.Helper()
	out := d.rbt(0, "show", "--inline", sql, "--output", "csv", "--limit", "1000000").stdout
	_, rows, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(rows)
}

// says checks that a text holds all of these.
func says(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// files lists every file below a folder of the project, sorted, relative to it.
func (d durable) files(rel string) []string {
	d.t.Helper()
	var list []string
	root := d.path(rel)
	err := filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && at == root {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, at)
		list = append(list, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// documented lists the files that a lake with these receipts consists of, as
// docs/lake-layout.md says, sorted.
func (d durable) documented() []string {
	d.t.Helper()
	list := []string{".rbt/lock"}
	if _, err := os.Stat(d.path("lake/catalog.duckdb")); err == nil {
		list = append(list, "catalog.duckdb")
	}
	receipts, err := filepath.Glob(d.path("lake/.rbt/state/*.json"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, file := range receipts {
		var r lake.Receipt
		readJSON(d.t, file, &r)
		list = append(list, ".rbt/state/"+filepath.Base(file))
		if r.Form.HasManifest() {
			list = append(list, path.Join(r.Path, lake.ManifestName))
			var m lake.Manifest
			readJSON(d.t, d.path("lake/"+path.Join(r.Path, lake.ManifestName)), &m)
			for _, p := range m.Parts {
				list = append(list, path.Join(r.Path, p))
			}
		} else if r.Path != "" {
			list = append(list, r.Path)
		}
		if r.Form == lake.FormIncremental {
			list = append(list, strings.TrimSuffix(r.Path, ".parts")+".rbt_incremental.json")
		}
	}
	slices.Sort(list)
	return list
}

func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// outsider is a reader that is not rbt: DuckDB over the files of a lake.
func outsider(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// long reports whether the tests shall take their time.
func long() bool { return os.Getenv("RBT_TEST_LONG") != "" }
