package materialize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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
)

// A step is one run of one node: what a plan would ask for. Its name is its
// fingerprint, so that a step that is published already is not done again.
type step struct {
	fp     string
	form   lake.Form
	folder string
	sql    string
	add    bool // an increment
	full   bool
	tables map[string]string // of an ingest: table -> query
	fail   bool              // its audit fails
	drift  string            // the query of the rebuild, where the increment drifts
}

// A scenario is a lake before, and the step during which the fault strikes.
type scenario struct {
	name   string
	before []step
	step   step
	// mess leaves more in the lake than steps do, for recovery to remove.
	mess func(l *lake.Lake) error
}

func scenarios() []scenario {
	one, two := "SELECT 1 AS a, 'x' AS b", "SELECT 2 AS a, 'y' AS b UNION ALL SELECT 3, NULL"
	none := one + " WHERE false"
	table := func(fp, sql string) step { return step{fp: fp, form: lake.FormFile, folder: "gold", sql: sql} }
	form := func(f lake.Form, fp, sql string) step { return step{fp: fp, form: f, folder: "gold", sql: sql} }
	inc := func(fp, sql string) step { return form(lake.FormIncremental, fp, sql) }
	add := func(fp, sql string) step { s := inc(fp, sql); s.add = true; return s }
	full := func(s step) step { s.full = true; return s }
	ingest := func(fp string, add bool, tables ...string) step {
		s := step{fp: fp, form: lake.FormIngest, folder: "gold", add: add, tables: map[string]string{}}
		for i := 0; i < len(tables); i += 2 {
			s.tables[tables[i]] = tables[i+1]
		}
		return s
	}
	moved := table("v2", two)
	moved.folder = "silver"
	movedIncrement := full(inc("v2", two))
	movedIncrement.folder = "silver"
	failing := table("v2", two)
	failing.fail = true
	drifting := add("v2", "SELECT 2 AS a, 'y' AS b, 3 AS c")
	drifting.drift = "SELECT 1 AS a, 'x' AS b, NULL::INTEGER AS c UNION ALL SELECT 2, 'y', 3"
	return []scenario{
		{name: "table first", step: table("v1", one)},
		{name: "table again", before: []step{table("v1", one)}, step: table("v2", two)},
		{name: "table of parts first", step: form(lake.FormParts, "v1", one)},
		{name: "table of parts again", before: []step{form(lake.FormParts, "v1", one)}, step: form(lake.FormParts, "v2", two)},
		{name: "incremental first", step: inc("v1", one)},
		{name: "incremental first without rows", step: inc("v1", none)},
		{name: "incremental append", before: []step{inc("v1", one)}, step: add("v2", two)},
		{name: "incremental append to none", before: []step{inc("v1", none)}, step: add("v2", two)},
		{name: "incremental append without rows", before: []step{inc("v1", one), add("v2", two)}, step: add("v3", none)},
		{name: "incremental full refresh", before: []step{inc("v1", one), add("v2", two)}, step: full(inc("v3", two))},
		{name: "incremental rebuild after drift", before: []step{inc("v1", one)}, step: drifting},
		{name: "incremental moved", before: []step{inc("v1", one)}, step: movedIncrement},
		{name: "seed first", step: form(lake.FormSeed, "v1", one)},
		{name: "seed again", before: []step{form(lake.FormSeed, "v1", one)}, step: form(lake.FormSeed, "v2", two)},
		{name: "view first", step: form(lake.FormView, "v1", one)},
		{name: "view again", before: []step{form(lake.FormView, "v1", one)}, step: form(lake.FormView, "v2", two)},
		{name: "table to incremental", before: []step{table("v1", one)}, step: inc("v2", two)},
		{name: "incremental to table", before: []step{inc("v1", one), add("v2", two)}, step: table("v3", two)},
		{name: "incremental to table of parts", before: []step{inc("v1", one), add("v2", two)}, step: form(lake.FormParts, "v3", two)},
		{name: "table to view", before: []step{table("v1", one)}, step: form(lake.FormView, "v2", two)},
		{name: "view to table", before: []step{form(lake.FormView, "v1", one)}, step: table("v2", two)},
		{name: "table moved", before: []step{table("v1", one)}, step: moved},
		{name: "table with failing audit", before: []step{table("v1", one)}, step: failing},
		{name: "ingest first", step: ingest("v1", false, "root", one, "sites", two)},
		{name: "ingest again", before: []step{ingest("v1", false, "root", one, "sites", two, "gone", one)}, step: ingest("v2", false, "root", two, "sites", one)},
		{name: "ingest append", before: []step{ingest("v1", false, "root", one, "sites", two)}, step: ingest("v2", true, "root", two, "sites", none)},
		{name: "recovery", before: []step{table("v1", one), inc("v2", two), full(inc("v3", one)), add("v4", two)}, step: add("v5", one), mess: makeMess},
	}
}

// makeMess leaves what dead runs and readers leave.
func makeMess(l *lake.Lake) error {
	for rel, content := range map[string]string{
		"gold/.rbt-tmp/dead/m/m.staged":            "half",
		"gold/.rbt-tmp/dead/other/shard/x.lz4":     "half",
		"gold/m.parts/part-0000000000009.parquet":  "half",
		"gold/m.parts/._rbt_manifest.json.rbt-tmp": "{",
		"gold/.m.rbt_incremental.json.rbt-tmp":     "{",
		".rbt/state/.m.json.rbt-tmp":               "{",
		".rbt/pins/99999/1.pin":                    "old",
		".rbt/pins/99999/lock":                     "",
	} {
		at := filepath.Join(l.Root(), filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(content), 0o666); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(l.Root(), "gold", "m.rbt_incremental.json"))
}

// tablesSource is the smallest Source with several relations.
type tablesSource struct {
	tables map[string]string
	kept   map[string][]string
	rows   map[string]int64
}

func (s tablesSource) Stage(ctx context.Context, sess Session, dir string) (Staged, error) {
	var out Staged
	names := make([]string, 0, len(s.tables))
	for n := range s.tables {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		cols, err := sess.Describe(ctx, s.tables[n])
		if err != nil {
			return Staged{}, err
		}
		files, err := sess.CopyTo(ctx, s.tables[n], filepath.Join(dir, n+".staged"), nil)
		if err != nil {
			return Staged{}, err
		}
		relation := "m__" + n
		if n == "root" {
			relation = "m" // the root of an ingest has the node's own name
		}
		o := StagedOutput{Relation: relation, Columns: cols, Files: files, Rows: files[0].Rows, Kept: s.kept[n], KeptRows: s.rows[n]}
		if o.Rows == 0 && len(o.Kept) > 0 {
			o.Files = nil
		}
		out.Outputs = append(out.Outputs, o)
	}
	out.Manifest = map[string]json.RawMessage{"ledger": json.RawMessage(`["a"]`)}
	return out, nil
}

// run is what `rbt run` does for one node: lock, recover, publish unless it is
// published already.
func run(s Session, l *lake.Lake, st step, id string) error {
	ctx := context.Background()
	lock, err := l.Lock(ctx, lake.LockOptions{PID: os.Getpid(), Host: "h", Now: time.UnixMilli(0)})
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := l.Recover(ctx, lock); err != nil {
		return err
	}
	node, _, err := l.ReadNode("m", st.folder)
	if err != nil {
		return err
	}
	if node.Damage != nil {
		return node.Damage
	}
	if node.Recorded && node.Receipt.Fingerprint == st.fp {
		return nil
	}
	if node.Manifest != nil {
		for _, info := range node.Manifest.PartInfo {
			if info.Fingerprint == st.fp {
				return nil // [UNCHANGED, already in part-…]
			}
		}
	}
	tg := Target{Lake: l, Name: "m", Folder: st.folder, Form: st.form, RunID: id, Fingerprint: st.fp, TestsHash: "t",
		Inputs: lake.Inputs{SQL: st.fp}, Append: st.add, FullRefresh: st.full, Now: func() time.Time { return time.UnixMilli(0) }}
	if st.drift != "" {
		tg.Rebuild = func() (Source, error) { return NewQuery(st.drift, nil, false), nil }
	}
	var src Source = NewQuery(st.sql, nil, false)
	if st.tables != nil {
		ts := tablesSource{tables: st.tables, kept: map[string][]string{}, rows: map[string]int64{}}
		if st.add {
			for _, o := range node.Receipt.Outputs {
				name := strings.TrimPrefix(o.Relation, "m__")
				if o.Relation == "m" {
					name = "root"
				}
				ts.rows[name] = o.Rows
				for _, f := range o.Files {
					ts.kept[name] = append(ts.kept[name], filepath.Join(l.Root(), filepath.FromSlash(f.Path)))
				}
			}
		}
		src = ts
	}
	audit := pass
	if st.fail {
		tg.FailedDir = filepath.Join(filepath.Dir(l.Root()), "failed")
		audit = func(context.Context, Staged) error { return errAudit }
	}
	_, err = Publish(ctx, s, tg, src, audit)
	return err
}

var errAudit = errors.New("the audit fails")

// content is what readers see of a node: every relation, its columns and rows.
func content(s Session, l *lake.Lake) (map[string][]string, error) {
	out := map[string][]string{}
	state, err := l.ReadState(context.Background())
	if err != nil {
		return nil, err
	}
	n, ok := state.Nodes["m"]
	if !ok {
		return out, nil
	}
	if n.Damage != nil {
		return nil, n.Damage
	}
	if n.Foreign || len(n.Others) > 0 {
		return nil, fmt.Errorf("foreign: %v %v", n.Receipt.Path, n.Others)
	}
	for _, o := range n.Receipt.Outputs {
		one := n
		one.Receipt.Outputs = []lake.Output{o}
		rows, err := readRows(s, l, one)
		if err != nil {
			return nil, err
		}
		if int64(len(rows)) != o.Rows && n.Receipt.Form != lake.FormView {
			return nil, fmt.Errorf("%s: receipt says %d rows, %d are there", o.Relation, o.Rows, len(rows))
		}
		for _, c := range o.Columns {
			rows = append(rows, "column "+c.Name+" "+c.Type)
		}
		out[o.Relation] = rows
	}
	return out, nil
}

// outcome is everything that a run that never failed leaves behind.
type outcome struct {
	content map[string][]string
	tree    []string
	node    lake.Node
}

func observe(t testing.TB, s Session, l *lake.Lake) outcome {
	t.Helper()
	c, err := content(s, l)
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := l.ReadNode("m")
	if err != nil {
		t.Fatal(err)
	}
	return outcome{c, tree(t, l), n}
}

// sameOutcome compares all but run ids.
var sameOutcome = cmp.Options{
	cmp.AllowUnexported(outcome{}), cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(lake.Receipt{}, "RunID"), cmpopts.IgnoreFields(lake.PartInfo{}, "RunID"),
}

// bench is a scenario set up once; each fault gets a copy of it.
type bench struct {
	scenario
	db       *testDB
	s        Session
	base     string // the lake before the step
	old, new outcome
	again    outcome // after a run that found nothing to do
	calls    []lake.Call
	root     string // of the lake in which calls were recorded
}

func tempDir(t testing.TB) string {
	// Memory, where there is any to be had as a folder: every call of the seam
	// is made some hundred times.
	dir, err := os.MkdirTemp("/dev/shm", "rbt-conformance")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func prepare(t *testing.T, sc scenario) *bench {
	b := &bench{scenario: sc, db: openDB(t), base: filepath.Join(tempDir(t), "base", "lake")}
	b.s = b.db.session(t)
	l := newLake(t, b.base, lake.OS())
	for i, st := range sc.before {
		if err := run(b.s, l, st, fmt.Sprintf("before%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if sc.mess != nil {
		if err := sc.mess(l); err != nil {
			t.Fatal(err)
		}
	}
	b.old = observe(t, b.s, l)
	f := &lake.Faulty{FS: lake.OS()}
	l = b.copy(t, f)
	b.db.point = func(path string) error { return f.Point("CopyTo", path) }
	if err := run(b.s, l, sc.step, "step"); err != nil && !(sc.step.fail && errors.Is(err, errAudit)) {
		t.Fatal(err)
	}
	b.db.point = nil
	b.calls, b.root = f.Calls(), l.Root()
	b.new = observe(t, b.s, newLake(t, l.Root(), lake.OS()))
	if err := run(b.s, newLake(t, l.Root(), lake.OS()), sc.step, "again"); err != nil && !sc.step.fail {
		t.Fatal(err)
	}
	b.again = observe(t, b.s, newLake(t, l.Root(), lake.OS()))
	return b
}

func (b *bench) copy(t testing.TB, fsys lake.FS) *lake.Lake {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(filepath.Dir(b.base)), "lake")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "lake")
	if _, err := os.Stat(b.base); err == nil {
		if err := os.CopyFS(dir, os.DirFS(b.base)); err != nil {
			t.Fatal(err)
		}
	}
	return newLake(t, dir, fsys)
}

// check is asked after a fault: what is published is the old or the new version,
// and clean runs then give what a run that never failed gives.
func (b *bench) check(t testing.TB, root, what string) (committed bool) {
	t.Helper()
	l := newLake(t, root, lake.OS())
	got, err := content(b.s, l)
	if err != nil {
		t.Errorf("%s: unreadable: %v", what, err)
		return false
	}
	if !cmp.Equal(got, b.old.content) && !cmp.Equal(got, b.new.content) {
		t.Errorf("%s: neither old nor new: %s", what, cmp.Diff(b.new.content, got))
	}
	committed = cmp.Equal(got, b.new.content)
	for _, f := range tree(t, l) {
		if strings.Contains(f, "rbt-tmp") && strings.HasSuffix(f, ".parquet") {
			t.Errorf("%s: %s would be read by a glob", what, f)
		}
	}
	for i := range 2 {
		if err := run(b.s, l, b.step, fmt.Sprintf("clean%d", i)); err != nil && !b.step.fail {
			t.Errorf("%s: the next run fails: %v", what, err)
			return committed
		}
	}
	after := observe(t, b.s, l)
	if diff := cmp.Diff(b.again, after, sameOutcome); diff != "" {
		t.Errorf("%s: after a clean run: %s", what, diff)
	}
	os.RemoveAll(filepath.Dir(root))
	return committed
}

func describe(c lake.Call, root string) string {
	short := func(s string) string { return strings.TrimPrefix(s, root) }
	return strings.TrimSpace(c.Op + " " + short(c.Name) + " " + short(c.New))
}

func TestConformanceFaults(t *testing.T) {
	for i, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			b := prepare(t, sc)
			stride := 3 // of the second mode; RBT_TEST_LONG strikes everywhere
			if os.Getenv("RBT_TEST_LONG") != "" {
				stride = 1
			}
			points, room := 0, 0
			for _, mode := range []struct {
				name   string
				err    error
				sticky bool
			}{{"EIO", syscall.EIO, false}, {"ENOSPC", syscall.ENOSPC, true}} {
				for n := 1; n <= len(b.calls); n++ {
					if mode.sticky && !slices.Contains(writes, b.calls[n-1].Op) {
						continue // a full disk refuses only what needs room
					}
					if mode.sticky {
						if room++; (room+i)%stride != 0 {
							continue
						}
					}
					f := &lake.Faulty{FS: lake.OS(), N: n, Err: mode.err, Sticky: mode.sticky}
					l, err := openFaulty(b, t, f)
					what := fmt.Sprintf("%s at call %d (%s)", mode.name, n, describe(b.calls[n-1], b.root))
					points++
					if err == nil {
						b.db.point = func(path string) error { return f.Point("CopyTo", path) }
						err = run(b.s, l, b.step, "fault")
						b.db.point = nil
					}
					if err != nil && !errors.Is(err, mode.err) && !errors.Is(err, errAudit) && !strings.Contains(err.Error(), mode.err.Error()) {
						t.Errorf("%s: the error does not say so: %v", what, err)
					}
					left := tree(t, newLake(t, l.Root(), lake.OS()))
					committed := b.check(t, l.Root(), what)
					if err == nil && !committed && !b.step.fail {
						t.Errorf("%s: the run succeeded and published nothing", what)
					}
					if mode.sticky && b.mess == nil && !committed {
						for _, p := range left {
							if strings.Contains(p, "rbt-tmp") {
								t.Errorf("%s: staging stays: %s", what, p)
							}
						}
					}
				}
			}
			t.Logf("%-32s %3d calls, %3d fault points", sc.name, len(b.calls), points)
		})
	}
}

// writes are the calls that need room on the disk.
var writes = []string{"CopyTo", "Write", "Copy", "Sync", "SyncDir", "Rename", "Link", "MkdirAll"}

// openFaulty copies the lake before and opens it through f from its first call
// on.
func openFaulty(b *bench, t testing.TB, f *lake.Faulty) (*lake.Lake, error) {
	plain := b.copy(t, lake.OS())
	l, err := lake.Open(plain.Root(), f)
	if err != nil {
		return plain, err
	}
	return l, nil
}

// TestConformanceKill ends a real process at each call. All calls take minutes;
// by default each scenario strikes at some of them, another choice in each.
func TestConformanceKill(t *testing.T) {
	if dir := os.Getenv("RBT_KILL_LAKE"); dir != "" {
		killChild(t, dir)
		return
	}
	stride := 16
	if os.Getenv("RBT_TEST_LONG") != "" {
		stride = 1
	}
	for i, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			b := prepare(t, sc)
			points := 0
			for n := 1 + i%stride; n <= len(b.calls); n += stride {
				l := b.copy(t, lake.OS())
				cmd := exec.Command(os.Args[0], "-test.run=^TestConformanceKill$", "-test.v")
				cmd.Env = append(os.Environ(), "RBT_KILL_LAKE="+l.Root(), "RBT_KILL_SCENARIO="+sc.name, "RBT_KILL_AT="+strconv.Itoa(n))
				out, err := cmd.CombinedOutput()
				what := fmt.Sprintf("killed at call %d (%s)", n, describe(b.calls[n-1], b.root))
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != -1 {
					t.Fatalf("%s: the process ended by itself: %v\n%s", what, err, out)
				}
				points++
				b.check(t, l.Root(), what)
			}
			t.Logf("%-32s %3d calls, %3d killed", sc.name, len(b.calls), points)
		})
	}
}

// killChild is the process that is killed.
func killChild(t *testing.T, dir string) {
	n, err := strconv.Atoi(os.Getenv("RBT_KILL_AT"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(scenarios(), func(s scenario) bool { return s.name == os.Getenv("RBT_KILL_SCENARIO") })
	f := &lake.Faulty{FS: lake.OS(), N: n}
	l, err := lake.Open(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	db := openDB(t)
	db.point = func(path string) error {
		// The engine is killed with half of a file written.
		if err := os.WriteFile(path, []byte("PAR1 torn"), 0o666); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return f.Point("CopyTo", path)
	}
	err = run(db.session(t), l, scenarios()[i].step, "killed")
	t.Fatalf("not killed: %v, %d calls", err, len(f.Calls()))
}
