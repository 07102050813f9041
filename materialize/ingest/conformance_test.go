package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rbt/internal/lake"
	"rbt/materialize"
)

// A faultStep is one run of the node m. Its name is its fingerprint: a step that
// is published already is not done again.
type faultStep struct {
	fp    string
	files []string // of the input; none: a table made by a query
	full  bool
}

// A faultScenario is a lake before, and the run during which the fault strikes.
type faultScenario struct {
	name   string
	spec   string
	before []faultStep
	step   faultStep
}

const replaceSpec = "root r\noccurrences table\nrecord r\nfield a integer\nref v v\nrecord v by_value\nfield x integer\nchild c integer"

func faultScenarios() []faultScenario {
	a, ab := []string{"a.ndjson"}, []string{"a.ndjson", "b.ndjson"}
	return []faultScenario{
		{"load first", replaceSpec, nil, faultStep{"1", a, false}},
		{"load again", replaceSpec, []faultStep{{"1", a, false}}, faultStep{"2", ab, false}},
		{"append first", appendSpec, nil, faultStep{"1", a, false}},
		{"append", appendSpec, []faultStep{{"1", a, false}}, faultStep{"2", ab, false}},
		{"append nothing new", appendSpec, []faultStep{{"1", ab, false}}, faultStep{"2", ab, false}},
		{"append full refresh", appendSpec, []faultStep{{"1", a, false}, {"2", ab, false}}, faultStep{"3", ab, true}},
		{"table to ingest", appendSpec, []faultStep{{"1", nil, false}}, faultStep{"2", a, false}},
		{"ingest to table", appendSpec, []faultStep{{"1", a, false}}, faultStep{"2", nil, false}},
	}
}

// faultInput writes the input that the scenarios read.
func faultInput(t testing.TB, dir string) {
	writeFiles(t, dir, map[string]string{
		"a.ndjson": `{"a":1,"v":{"x":1,"c":[1,2]}}` + "\n" + `{"a":2,"v":{"x":2}}` + "\n{",
		"b.ndjson": `{"a":3,"v":{"x":1,"c":[1,2]}}` + "\n" + `{"a":1,"v":{"x":1,"c":[1,2]}}`,
	})
}

// faultSession asks for a point before each file that the engine writes.
type faultSession struct {
	materialize.Session
	point func(op, name string) error
}

func (s faultSession) CopyTo(ctx context.Context, q, name string, metadata map[string]string) ([]materialize.StagedFile, error) {
	if err := s.point("CopyTo", name); err != nil {
		return nil, err
	}
	return s.Session.CopyTo(ctx, q, name, metadata)
}

func (s faultSession) Fork(ctx context.Context) (materialize.Session, error) {
	fork, err := s.Session.Fork(ctx)
	return faultSession{fork, s.point}, err
}

// faultRun is what `rbt run` does for the node: lock, recover, publish unless it
// is published already. point is asked at every step of the load besides.
func faultRun(s materialize.Session, l *lake.Lake, sc faultScenario, st faultStep, input, id string, point func(op, name string) error) error {
	ctx := context.Background()
	lock, err := l.Lock(ctx, lake.LockOptions{PID: os.Getpid(), Host: "h", Now: time.UnixMilli(0)})
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := l.Recover(ctx, lock); err != nil {
		return err
	}
	node, _, err := l.ReadNode("m", "gold")
	if err != nil {
		return err
	}
	if node.Damage != nil {
		return node.Damage
	}
	if node.Recorded && node.Receipt.Fingerprint == st.fp {
		return nil
	}
	target := materialize.Target{Lake: l, Name: "m", Folder: "gold", Form: lake.FormIngest, RunID: id, Fingerprint: st.fp, TestsHash: "t",
		Inputs: lake.Inputs{SQL: st.fp}, FullRefresh: st.full, Now: func() time.Time { return time.UnixMilli(0) }}
	var src materialize.Source
	if st.files == nil {
		target.Form = lake.FormFile
		src = materialize.NewQuery("SELECT 1 AS a", nil, false)
	} else {
		program, problems := Compile(parseSpec(sc.spec))
		if err := problems.Err(); err != nil {
			return err
		}
		job := &Job{Program: program, Workers: 1, FullRefresh: st.full}
		for _, f := range st.files {
			job.Files = append(job.Files, File{Path: filepath.Join(input, f), Name: f})
		}
		if sc.spec == appendSpec && node.Manifest != nil {
			job.Previous = &Previous{State: node.Manifest.Extra[StateKey], Files: map[string][]string{}, Rows: map[string]int64{}}
			for folder, table := range node.Manifest.Tables {
				job.Previous.Rows[folder] = table.Rows
			}
			for _, p := range node.Manifest.Parts {
				job.Previous.Files[path.Dir(p)] = append(job.Previous.Files[path.Dir(p)], filepath.Join(l.Root(), "gold", "m", filepath.FromSlash(p)))
			}
			target.Append = !st.full
		}
		job.hooks.shards = func(dir string) error { return point("Shards", dir) }
		job.hooks.step = func(name string) error { return point("Merge", name) }
		src = job
	}
	_, err = materialize.Publish(ctx, faultSession{s, point}, target, src, func(context.Context, materialize.Staged) error { return nil })
	return err
}

func noPoint(string, string) error { return nil }

// faultOutcome is everything that is published of the node, and every file.
type faultOutcome struct {
	Rows map[string][]string
	Tree []string
	Node lake.Node
}

func faultObserve(t testing.TB, s materialize.Session, root string) faultOutcome {
	t.Helper()
	l, err := lake.Open(root, lake.OS())
	if err != nil {
		t.Fatal(err)
	}
	state, err := l.ReadState(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := faultOutcome{Rows: map[string][]string{}}
	n, ok := state.Nodes["m"]
	if ok {
		if n.Damage != nil || n.Foreign || len(n.Others) > 0 {
			t.Errorf("unreadable: damage %v, foreign %v %v", n.Damage, n.Foreign, n.Others)
		}
		for _, o := range n.Receipt.Outputs {
			staged := materialize.StagedOutput{Relation: o.Relation, Columns: o.Columns}
			for _, f := range o.Files {
				staged.Files = append(staged.Files, materialize.StagedFile{Path: filepath.Join(root, filepath.FromSlash(f.Path))})
			}
			rows := []string{}
			if len(staged.Files) > 0 {
				rows = readTable(t, s, staged)
			}
			if int64(len(rows)) != o.Rows {
				t.Errorf("%s has %d rows, its receipt says %d", o.Relation, len(rows), o.Rows)
			}
			slices.Sort(rows)
			out.Rows[o.Relation] = rows
		}
	}
	out.Node = n
	out.Tree = faultTree(t, root)
	return out
}

func faultTree(t testing.TB, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !e.IsDir() {
			list = append(list, strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(at, root)), "/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sameFaultOutcome compares all but run ids and figures of time.
var sameFaultOutcome = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.IgnoreFields(lake.Receipt{}, "RunID", "Stats"), cmpopts.IgnoreFields(lake.PartInfo{}, "RunID", "Bytes"),
	cmpopts.IgnoreFields(lake.File{}, "Bytes"), // rbt_version and times of the loads' table are of no fixed width
}

// faultBench is a scenario set up once; each fault gets a copy of it.
type faultBench struct {
	faultScenario
	s               materialize.Session
	input, base     string
	old, new, again faultOutcome
	calls           []lake.Call
}

func newFaultBench(t *testing.T, sc faultScenario) *faultBench {
	dir, err := os.MkdirTemp("/dev/shm", "rbt-ingest-faults")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &faultBench{faultScenario: sc, s: newTestSession(t, 2), input: filepath.Join(dir, "input"), base: filepath.Join(dir, "base", "lake")}
	faultInput(t, b.input)
	l := b.open(t, b.base, lake.OS())
	for i, st := range sc.before {
		if err := faultRun(b.s, l, sc, st, b.input, fmt.Sprintf("before%d", i), noPoint); err != nil {
			t.Fatal(err)
		}
	}
	b.old = faultObserve(t, b.s, b.base)
	f := &lake.Faulty{FS: lake.OS()}
	root := b.copy(t)
	if err := faultRun(b.s, b.open(t, root, f), sc, sc.step, b.input, "step", f.Point); err != nil {
		t.Fatal(err)
	}
	b.calls, b.new = f.Calls(), faultObserve(t, b.s, root)
	if err := faultRun(b.s, b.open(t, root, lake.OS()), sc, sc.step, b.input, "again", noPoint); err != nil {
		t.Fatal(err)
	}
	b.again = faultObserve(t, b.s, root)
	return b
}

func (b *faultBench) open(t testing.TB, root string, fsys lake.FS) *lake.Lake {
	t.Helper()
	l, err := lake.Open(root, lake.OS())
	if err == nil && fsys != lake.OS() {
		// Opened before the faults begin: that opening a lake may fail is tested
		// with the other strategies.
		l, err = lake.Open(root, fsys)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (b *faultBench) copy(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(filepath.Dir(b.base)), "copy")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "lake")
	if _, err := os.Stat(b.base); err == nil {
		if err := os.CopyFS(root, os.DirFS(b.base)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// check is asked after a fault: what is published is the old or the new version,
// no glob finds more, and clean runs then give what a run that never failed gives.
func (b *faultBench) check(t testing.TB, root, what string) {
	t.Helper()
	got := faultObserve(t, b.s, root)
	if !cmp.Equal(got.Rows, b.old.Rows, cmpopts.EquateEmpty()) && !cmp.Equal(got.Rows, b.new.Rows, cmpopts.EquateEmpty()) {
		t.Errorf("%s: neither old nor new: %s", what, cmp.Diff(b.new.Rows, got.Rows))
	}
	for _, f := range got.Tree {
		if strings.Contains(f, "rbt-tmp") && strings.HasSuffix(f, ".parquet") {
			t.Errorf("%s: a glob would find %s", what, f)
		}
	}
	for i := range 2 {
		if err := faultRun(b.s, b.open(t, root, lake.OS()), b.faultScenario, b.step, b.input, fmt.Sprintf("clean%d", i), noPoint); err != nil {
			t.Errorf("%s: the next run fails: %v", what, err)
			return
		}
	}
	if diff := cmp.Diff(b.again, faultObserve(t, b.s, root), sameFaultOutcome); diff != "" {
		t.Errorf("%s: after a clean run: %s", what, diff)
	}
	os.RemoveAll(filepath.Dir(root))
}

func faultStride(normal int) int {
	if os.Getenv("RBT_TEST_LONG") != "" {
		return 1
	}
	return normal
}

// TestConformanceFaults makes the calls of a load and its publish fail one by
// one, as a broken disk and as a full one. By default every scenario strikes at
// some of them, another choice in each; RBT_TEST_LONG=1 strikes at all.
func TestConformanceFaults(t *testing.T) {
	stride := faultStride(24)
	for i, sc := range faultScenarios() {
		t.Run(sc.name, func(t *testing.T) {
			b := newFaultBench(t, sc)
			points := 0
			for n := 1 + (i*5)%stride; n <= len(b.calls); n += stride {
				for _, mode := range []struct {
					err    error
					sticky bool
				}{{syscall.EIO, false}, {syscall.ENOSPC, true}} {
					root := b.copy(t)
					f := &lake.Faulty{FS: lake.OS(), N: n, Err: mode.err, Sticky: mode.sticky}
					l, err := lake.Open(root, f)
					if err == nil {
						err = faultRun(b.s, l, sc, sc.step, b.input, "fault", f.Point)
					}
					call := b.calls[n-1]
					what := fmt.Sprintf("%v at call %d (%s %s)", mode.err, n, call.Op, filepath.Base(call.Name))
					if err != nil && !errors.Is(err, mode.err) && !strings.Contains(err.Error(), mode.err.Error()) {
						t.Errorf("%s: the error does not say so: %v", what, err)
					}
					points++
					b.check(t, root, what)
				}
			}
			t.Logf("ingest: %-20s %3d calls, %3d fault points", sc.name, len(b.calls), points)
		})
	}
}

// TestConformanceKill ends a real process at the calls of a load and its publish.
func TestConformanceKill(t *testing.T) {
	if dir := os.Getenv("RBT_INGEST_KILL_LAKE"); dir != "" {
		faultKillChild(t, dir)
		return
	}
	stride := faultStride(48)
	for i, sc := range faultScenarios() {
		t.Run(sc.name, func(t *testing.T) {
			b := newFaultBench(t, sc)
			points := 0
			for n := 1 + (i*7)%stride; n <= len(b.calls)-4; n += stride {
				root := b.copy(t)
				cmd := exec.Command(os.Args[0], "-test.run=^TestConformanceKill$")
				cmd.Env = append(os.Environ(), "RBT_INGEST_KILL_LAKE="+root, "RBT_INGEST_KILL_INPUT="+b.input, "RBT_INGEST_KILL_SCENARIO="+strconv.Itoa(i), "RBT_INGEST_KILL_AT="+strconv.Itoa(n))
				out, err := cmd.CombinedOutput()
				what := fmt.Sprintf("killed at call %d (%s %s)", n, b.calls[n-1].Op, filepath.Base(b.calls[n-1].Name))
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != -1 {
					t.Fatalf("%s: the process ended by itself: %v\n%s", what, err, out)
				}
				points++
				b.check(t, root, what)
			}
			t.Logf("ingest: %-20s %3d calls, %3d killed", sc.name, len(b.calls), points)
		})
	}
}

// faultKillChild is the process that is killed.
func faultKillChild(t *testing.T, dir string) {
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	sc := faultScenarios()[number("RBT_INGEST_KILL_SCENARIO")]
	f := &lake.Faulty{FS: lake.OS(), N: number("RBT_INGEST_KILL_AT")}
	l, err := lake.Open(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	err = faultRun(newTestSession(t, 2), l, sc, sc.step, os.Getenv("RBT_INGEST_KILL_INPUT"), "killed", func(op, name string) error {
		if op == "CopyTo" { // the engine is killed with half of a file written
			if err := os.WriteFile(name, []byte("PAR1 torn"), 0o666); err != nil {
				return err
			}
		}
		return f.Point(op, name)
	})
	t.Fatalf("not killed: %v, %d calls", err, len(f.Calls()))
}
