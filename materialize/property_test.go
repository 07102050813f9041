package materialize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/lake"
)

// naive is what one node holds, as somebody would keep it in memory.
type naive struct {
	form   lake.Form // "" where nothing is published
	folder string
	wide   bool     // a second column came by a rebuild
	rows   []string // in the order of their text
}

// asks is one random run.
type asks struct {
	form    lake.Form
	folder  string
	full    bool
	rows    int
	wide    bool // the query gives a second column
	rebuild bool // on_schema_change: full_refresh
	fail    bool // the audit fails
	crash   int  // the process ends at this call; 0: it does not
}

func TestRandomRuns(t *testing.T) {
	s, base := openDB(t).session(t), tempDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "lake")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		dir = filepath.Join(dir, "lake")
		var state naive
		next := 0
		for range rapid.IntRange(1, 8).Draw(rt, "runs") {
			next++
			state = randomRun(rt, s, dir, state, drawAsks(rt), next)
		}
		// Two more starts of a run: nothing undocumented is left.
		l := newLake(rt, dir, lake.OS())
		for range 2 {
			recoverHere(rt, l)
		}
		checkTree(rt, l, state)
	})
}

func drawAsks(t *rapid.T) asks {
	return asks{
		form:    rapid.SampledFrom([]lake.Form{lake.FormFile, lake.FormParts, lake.FormIncremental, lake.FormIncremental, lake.FormIncremental, lake.FormView}).Draw(t, "form"),
		folder:  rapid.SampledFrom([]string{"gold", "gold", "gold", "silver"}).Draw(t, "folder"),
		full:    rapid.IntRange(0, 5).Draw(t, "full") == 0,
		rows:    rapid.IntRange(0, 3).Draw(t, "rows"),
		wide:    rapid.IntRange(0, 4).Draw(t, "wide") == 0,
		rebuild: rapid.Bool().Draw(t, "rebuild"),
		fail:    rapid.IntRange(0, 6).Draw(t, "fail") == 0,
		crash:   max(0, rapid.IntRange(-60, 60).Draw(t, "crash")),
	}
}

func recoverHere(t *rapid.T, l *lake.Lake) {
	lock, err := l.Lock(context.Background(), lake.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := l.Recover(context.Background(), lock); err != nil {
		t.Fatal(err)
	}
}

// query gives n rows that no other run gives.
func query(run, n int, wide bool) (sql string, rows []string) {
	second := ""
	if wide {
		second = ", 'w' AS b"
	}
	for i := range n {
		if wide {
			rows = append(rows, fmt.Sprintf("{'a': %d, 'b': w}", run*10+i))
		} else {
			rows = append(rows, fmt.Sprintf("{'a': %d}", run*10+i))
		}
	}
	return fmt.Sprintf("SELECT (%d + i)::INTEGER AS a%s FROM range(%d) t(i)", run*10, second, n), rows
}

// expected is the state after the run, and whether the run is refused.
func expected(was naive, a asks, run int) (naive, bool) {
	_, rows := query(run, a.rows, a.wide)
	full := naive{form: a.form, folder: a.folder, wide: a.wide, rows: rows}
	switch {
	case a.form != lake.FormIncremental || was.form != lake.FormIncremental || a.full:
		return full, a.fail
	case was.folder != a.folder:
		return was, true
	case was.wide != a.wide && !a.rebuild:
		return was, true
	case was.wide != a.wide:
		return full, a.fail
	}
	out := was
	out.rows = slices.Sorted(slices.Values(append(slices.Clone(was.rows), rows...)))
	return out, a.fail
}

func randomRun(t *rapid.T, s Session, dir string, was naive, a asks, run int) naive {
	f := &lake.Faulty{FS: lake.OS(), N: a.crash, Err: syscall.EIO, Dead: true}
	after, refused := expected(was, a, run)
	err := doRun(s, dir, f, a, run)
	if refused {
		after = was
	}
	got := seen(t, s, dir, was, after)
	crashed := err != nil && errors.Is(err, syscall.EIO)
	switch {
	case err != nil && !refused && !crashed:
		t.Fatalf("run %d %+v over %+v: %v", run, a, was, err)
	case err == nil && refused:
		t.Fatalf("run %d %+v over %+v was not refused", run, a, was)
	case err == nil && !cmp.Equal(got, after, cmp.AllowUnexported(naive{})):
		t.Fatalf("run %d %+v over %+v gave %+v", run, a, was, got)
	case refused && !cmp.Equal(got, was, cmp.AllowUnexported(naive{})):
		t.Fatalf("run %d %+v over %+v was refused and left %+v", run, a, was, got)
	}
	return got
}

// seen reads the lake as a reader does and says which of the two states it
// holds.
func seen(t *rapid.T, s Session, dir string, was, after naive) naive {
	l := newLake(t, dir, lake.OS())
	state, err := l.ReadState(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	n, ok := state.Nodes["m"]
	if !ok {
		if was.form == "" {
			return was
		}
		t.Fatalf("nothing is published, and %+v was", was)
	}
	if n.Damage != nil || n.Foreign || len(n.Others) > 0 {
		t.Fatalf("%+v", n)
	}
	rows, err := readRows(s, l, n)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []naive{after, was} {
		place := lake.Place{Folder: st.folder, Name: "m", Form: st.form}
		columns := 1
		if st.wide {
			columns = 2
		}
		if st.form == n.Receipt.Form && place.Path() == n.Receipt.Path && len(n.Receipt.Outputs[0].Columns) == columns &&
			slices.Equal(slices.Sorted(slices.Values(st.rows)), slices.Sorted(slices.Values(rows))) {
			return st
		}
	}
	t.Fatalf("the lake holds %s %v, neither %+v nor %+v", n.Receipt.Form, rows, after, was)
	return naive{}
}

func doRun(s Session, dir string, f *lake.Faulty, a asks, run int) error {
	ctx := context.Background()
	l, err := lake.Open(dir, f)
	if err != nil {
		return err
	}
	lock, err := l.Lock(ctx, lake.LockOptions{})
	if err != nil {
		return err
	}
	defer lock.Release()
	recovered, err := l.Recover(ctx, lock)
	if err != nil {
		return err
	}
	node := recovered.State.Nodes["m"]
	if node.Damage != nil {
		return node.Damage
	}
	sql, _ := query(run, a.rows, a.wide)
	tg := Target{Lake: l, Name: "m", Folder: a.folder, Form: a.form, RunID: fmt.Sprintf("run%d", run), Fingerprint: fmt.Sprint(run), FullRefresh: a.full,
		Append: a.form == lake.FormIncremental && node.Receipt.Form == lake.FormIncremental && !a.full, Now: func() time.Time { return time.UnixMilli(int64(run)) }}
	if a.rebuild {
		tg.Rebuild = func() (Source, error) { return NewQuery(sql, nil, false), nil }
	}
	_, err = Publish(ctx, s, tg, NewQuery(sql, nil, false), func(context.Context, Staged) error {
		if a.fail {
			return errAudit
		}
		return nil
	})
	return err
}

// checkTree allows only files that the form of the state has.
func checkTree(t *rapid.T, l *lake.Lake, st naive) {
	for _, f := range tree(t, l) {
		place, err := lake.NewPlace(st.folder, "m", lake.FormFile)
		if err != nil {
			t.Fatal(err)
		}
		place.Form = st.form
		part := st.form.HasManifest() && strings.HasPrefix(f, place.Path()+"/part-")
		if strings.HasSuffix(f, "/") || part {
			continue // an empty folder that a node once lay in
		}
		if !slices.Contains([]string{".rbt/lock", ".rbt/state/m.json", place.Path(), place.Manifest(), place.Pointer()}, f) {
			t.Fatalf("%s is left, and the node is %+v", f, st)
		}
	}
}
