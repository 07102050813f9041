package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rbt": main})
}

// TestScripts runs testdata/script/*.txtar: a project, commands, what they
// print and how they end. UPDATE=1 rewrites the expected texts.
func TestScripts(t *testing.T) {
	testscript.Run(t, scriptParams(t, filepath.Join("..", "..", "testdata", "script")))
}

func scriptParams(t *testing.T, dir string) testscript.Params {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	shared := sharedData(root)
	return testscript.Params{
		Dir:                dir,
		UpdateScripts:      os.Getenv("UPDATE") == "1",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PROJECTS", filepath.Join(root, "testdata", "projects"))
			e.Setenv("REPO", root)
			e.Setenv("RBT_SHARED", shared)
			// A terminal's habits must not reach the scripts.
			e.Setenv("TERM", "dumb")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "shared":
				return shared != "", nil
			case "root":
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": cmdStatus, "copytree": cmdCopyTree, "tree": cmdTree, "replace": cmdReplace,
			"append": cmdAppend, "bytes": cmdBytes, "query": cmdQuery, "same": cmdSame,
		},
	}
}

// sharedData is the folder of the public data sets that some scripts read:
// $RBT_SHARED, else a folder "shared" beside the repository; "" where there is
// none.
func sharedData(root string) string {
	dir := os.Getenv("RBT_SHARED")
	if dir == "" {
		dir = filepath.Join(filepath.Dir(root), "shared")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		return ""
	}
	return dir
}

// cmdStatus is `status N command…`: the command must end in exit code N.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status code command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	ts.Logf("[exit status %d]", got)
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// cmdCopyTree is `copytree src dst`: a folder with all that is in it.
func cmdCopyTree(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: copytree src dst")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// cmdTree is `tree dir…`: prints every file below, sorted, to stdout.
func cmdTree(ts *testscript.TestScript, _ bool, args []string) {
	var lines []string
	for _, dir := range args {
		root := ts.MkAbs(dir)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(ts.Getenv("WORK"), path)
			lines = append(lines, filepath.ToSlash(rel))
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		_, _ = fmt.Fprintln(ts.Stdout(), l)
	}
}

// cmdReplace is `replace file old new`: every occurrence; \n is a line break.
func cmdReplace(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace file old new")
	}
	text := ts.ReadFile(args[0])
	unescape := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t").Replace
	from, to := unescape(args[1]), unescape(args[2])
	if !strings.Contains(text, from) {
		ts.Fatalf("%s does not contain %q", args[0], from)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, from, to)), 0o666))
}

// cmdAppend is `append file line…`: adds lines at the end.
func cmdAppend(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	ts.Check(err)
	for _, line := range args[1:] {
		_, err := fmt.Fprintln(f, line)
		ts.Check(err)
	}
	ts.Check(f.Close())
}

// cmdBytes is `bytes file text`: writes text with Go's escapes (\r, \xef, …).
func cmdBytes(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: bytes file text")
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o777))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
}

// cmdQuery is `query sql row…`: the rows of the query over what is published,
// as CSV without header, must be these.
func cmdQuery(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: query sql [row...]")
	}
	ts.Check(ts.Exec("rbt", "show", "--inline", args[0], "--output", "csv", "--limit", "100000"))
	out := ts.ReadFile("stdout")
	_, rows, _ := strings.Cut(out, "\n")
	want := strings.Join(args[1:], "\n")
	if got := strings.TrimSuffix(rows, "\n"); (got == want) == neg {
		ts.Fatalf("query gave\n%s\nwant\n%s", got, want)
	}
}

// cmdSame is `same file copy`: the bytes must be the same (cmp is for text).
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same file1 file2")
	}
	a, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if bytes.Equal(a, b) == neg {
		ts.Fatalf("%s and %s: same content is %v", args[0], args[1], !neg)
	}
}
