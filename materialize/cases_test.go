package materialize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet/file"

	"rbt/internal/lake"
)

// publicCases reads the public collection of bug reports, where it stands beside
// the repository: the tests below are about those of them that concern stored
// data.
func publicCases(t *testing.T) map[string]string {
	t.Helper()
	dir := os.Getenv("RBT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	b, err := os.ReadFile(filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		t.Skipf("the public cases are not there: %v (RBT_SHARED names their folder)", err)
	}
	cases := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(b))); ; {
		var c struct{ ID, Input string }
		if err := dec.Decode(&c); errors.Is(err, io.EOF) {
			return cases
		} else if err != nil {
			t.Fatal(err)
		}
		cases[c.ID] = c.Input
	}
}

// TestCasesAreOurs: the inputs on which the tests below and those of types,
// drift and refusals are built are those of the collection.
func TestCasesAreOurs(t *testing.T) {
	cases := publicCases(t)
	for id, part := range map[string]string{
		"C46": "{'x':2,'y':'q'}", "C48": "select 5000000000::bigint as id", "C50": "3.0::numeric(18,3) as c", "C68": "select 1 as id, null as x",
		"C70": "9007199254740993::bigint", "C78": "error('boom')", "C82": "select [1,2]::int[2] as a union all select null", "C84": "timestamptz '2024-03-10 06:30:00+05:30'",
	} {
		if !strings.Contains(cases[id], part) {
			t.Errorf("%s is %q and has no %q", id, cases[id], part)
		}
	}
}

// TestNullArray (C82): a NULL in a column of fixed-size arrays is kept, and
// another reader opens the file.
func TestNullArray(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "select [1,2]::int[2] as a union all select null")
	if got := rows(t, s, l, "m"); strings.Join(got, " ") != "{'a': NULL} {'a': [1, 2]}" {
		t.Error(got)
	}
	abs, _ := l.Abs("gold/m.parquet")
	r, err := file.OpenParquetFile(abs, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	col, err := r.RowGroup(0).Column(0)
	if err != nil {
		t.Fatal(err)
	}
	values, defs, reps := make([]int32, 8), make([]int16, 8), make([]int16, 8)
	total, n, err := col.(*file.Int32ColumnChunkReader).ReadBatch(8, values, defs, reps)
	if err != nil || total != 3 || n != 2 || values[0] != 1 || values[1] != 2 {
		t.Error(total, n, values, err)
	}
}

// TestTimeZones (C84): a naive timestamp and an instant stay apart, whatever the
// zone of the reader.
func TestTimeZones(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "select timestamp '2024-03-10 06:30:00' as n, timestamptz '2024-03-10 06:30:00+05:30' as t")
	abs, _ := l.Abs("gold/m.parquet")
	for _, zone := range []string{"UTC", "America/New_York"} {
		reader := openDB(t).session(t)
		ctx := context.Background()
		if err := reader.Exec(ctx, "SET TimeZone = "+QuoteText(zone)); err != nil {
			t.Fatal(err)
		}
		err := reader.Query(ctx, "SELECT typeof(n), typeof(t), n::VARCHAR, epoch(t)::BIGINT FROM read_parquet("+QuoteText(abs)+")", func(v []any) error {
			if got := fmt.Sprint(v...); got != "TIMESTAMPTIMESTAMP WITH TIME ZONE2024-03-10 06:30:001710032400" {
				t.Error(zone, got)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestStateDoesNotGrow (C64): increments without new rows leave manifest and
// receipt as large as they were.
func TestStateDoesNotGrow(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, tempDir(t), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormIncremental, 1), "SELECT 1 AS a")
	size := func() (n int64) {
		for _, f := range tree(t, l) {
			info, err := os.Stat(filepath.Join(l.Root(), f))
			if err != nil {
				t.Fatal(err)
			}
			n += info.Size()
		}
		return n
	}
	sizes := map[int]int64{}
	for i := 2; i <= 20; i++ {
		tg := target(l, "m", lake.FormIncremental, 100+i)
		tg.Append, tg.Now = true, func() time.Time { return time.UnixMilli(100) }
		mustPublish(t, s, tg, "SELECT 1 AS a WHERE false")
		sizes[i] = size()
	}
	if sizes[2] != sizes[20] {
		t.Errorf("%d bytes after run 2, %d after run 20", sizes[2], sizes[20])
	}
	// The same for tables: what a run replaces is gone at the start of the next.
	for i := range 5 {
		recoverLake(t, l)
		mustPublish(t, s, target(l, "p", lake.FormParts, i), "SELECT 1 AS a")
	}
	recoverLake(t, l)
	if parts, err := filepath.Glob(filepath.Join(l.Root(), "gold", "p.parts", "part-*")); err != nil || len(parts) != 1 {
		t.Error(parts, err)
	}
}

// TestDiskFull (C80): a disk without room. The error says what and where, the
// old version stays, nothing else is left, and with room the next run succeeds.
// A mounted file system of 2 MB where the test may mount one; a limit of the
// size of files for a child process where it may not.
func TestDiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits of a disk are made with Linux's means")
	}
	s := openDB(t).session(t)
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).Run(); err != nil {
		t.Skipf("no file system can be mounted here (%v); the seam's ENOSPC is tested by the conformance suite", err)
	}
	defer exec.Command("umount", dir).Run()
	l := newLake(t, filepath.Join(dir, "lake"), lake.OS())
	for i, form := range []lake.Form{lake.FormFile, lake.FormParts, lake.FormIncremental, lake.FormSeed} {
		name := fmt.Sprintf("m%d", i)
		mustPublish(t, s, target(l, name, form, 1), "SELECT 'x' AS a")
		before := tree(t, l)
		tg := target(l, name, form, 2)
		tg.Append = form == lake.FormIncremental
		_, text := try(s, tg, "SELECT hash(i)::VARCHAR || hash(i + 1) AS a FROM range(4000000) t(i)")
		if !strings.Contains(strings.ToLower(text), "no space left") || !strings.Contains(text, dir) {
			t.Errorf("%s: %s", form, text)
		}
		if got := tree(t, l); strings.Join(got, " ") != strings.Join(before, " ") {
			t.Errorf("%s left %v", form, got)
		}
		if got := rows(t, s, l, name); strings.Join(got, " ") != "{'a': x}" {
			t.Errorf("%s: %v", form, got)
		}
		tg.RunID = "run3"
		mustPublish(t, s, tg, "SELECT 'y' AS a")
	}
}

// TestNoPermission (C80): a folder that cannot be written to.
func TestNoPermission(t *testing.T) {
	s := openDB(t).session(t)
	l := newLake(t, t.TempDir(), lake.OS())
	mustPublish(t, s, target(l, "m", lake.FormFile, 1), "SELECT 1 AS a")
	gold := filepath.Join(l.Root(), "gold")
	if err := os.Chmod(gold, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(gold, 0o755)
	if f, err := os.Create(filepath.Join(gold, "probe")); err == nil {
		f.Close()
		os.Remove(f.Name())
		// The test runs as one whom permissions do not concern.
		l = newLake(t, l.Root(), refusingFS{lake.OS(), gold, syscall.EACCES})
	}
	_, text := try(s, target(l, "m", lake.FormFile, 2), "SELECT 2 AS a")
	if !strings.Contains(text, "permission denied") || !strings.Contains(text, gold) {
		t.Error(text)
	}
	if got := rows(t, s, l, "m"); strings.Join(got, " ") != "{'a': 1}" {
		t.Error(got)
	}
}

// refusingFS refuses to make anything in a folder.
type refusingFS struct {
	lake.FS
	dir string
	err error
}

func (r refusingFS) MkdirAll(name string) error {
	if strings.HasPrefix(name, r.dir) {
		return &os.PathError{Op: "mkdir", Path: name, Err: r.err}
	}
	return r.FS.MkdirAll(name)
}

// TestManyProcesses (C66): eight processes at once on one lake. Without patience
// those that do not get the lock say who has it; with patience each waits. Never
// do two write at the same time, and the lake is that of one run.
func TestManyProcesses(t *testing.T) {
	if dir := os.Getenv("RBT_WRITER_LAKE"); dir != "" {
		writerChild(t, dir)
		return
	}
	s := openDB(t).session(t)
	for _, patience := range []string{"0s", "2m"} {
		l := newLake(t, filepath.Join(tempDir(t), "lake"), lake.OS())
		var wg sync.WaitGroup
		var mu sync.Mutex
		wrote, refused := 0, 0
		for range 8 {
			wg.Go(func() {
				cmd := exec.Command(os.Args[0], "-test.run=^TestManyProcesses$", "-test.v")
				cmd.Env = append(os.Environ(), "RBT_WRITER_LAKE="+l.Root(), "RBT_WRITER_PATIENCE="+patience)
				out, err := cmd.CombinedOutput()
				mu.Lock()
				defer mu.Unlock()
				switch text := string(out); {
				case err == nil:
					wrote++
				case strings.Contains(text, "another run (pid "):
					refused++
				default:
					t.Errorf("%v\n%s", err, text)
				}
			})
		}
		wg.Wait()
		if wrote == 0 || wrote+refused != 8 || patience != "0s" && refused > 0 {
			t.Errorf("patience %s: %d wrote, %d were refused", patience, wrote, refused)
		}
		if got := rows(t, s, l, "m"); strings.Join(got, " ") != "{'a': 1}" {
			t.Error(got)
		}
		recoverLake(t, l)
		if got := strings.Join(tree(t, l), " "); got != ".rbt/lock .rbt/state/m.json gold/m.parts/_rbt_manifest.json gold/m.parts/part-0000000000001.parquet gold/m.rbt_incremental.json" {
			t.Error(got)
		}
		t.Logf("patience %s: %d wrote, %d were refused", patience, wrote, refused)
	}
}

func writerChild(t *testing.T, dir string) {
	patience, err := time.ParseDuration(os.Getenv("RBT_WRITER_PATIENCE"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLake(t, dir, lake.OS())
	ctx := context.Background()
	lock, err := l.Lock(ctx, lake.LockOptions{Timeout: patience, PID: os.Getpid(), Host: "h", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	// Whoever is alone can make the mark.
	mark := filepath.Join(filepath.Dir(dir), "writing")
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatalf("two write at once: %v", err)
	}
	f.Close()
	defer os.Remove(mark)
	recovered, err := l.Recover(ctx, lock)
	if err != nil {
		t.Fatal(err)
	}
	if n := recovered.State.Nodes["m"]; n.Recorded && n.Receipt.Fingerprint == "fp1" {
		return
	}
	mustPublish(t, openDB(t).session(t), target(l, "m", lake.FormIncremental, 1), "SELECT 1 AS a")
}

// TestNodesAtOnce: nodes of one run that are published at once share folders of
// staging, and none gets into the way of another.
func TestNodesAtOnce(t *testing.T) {
	d := openDB(t)
	l := newLake(t, filepath.Join(tempDir(t), "lake"), lake.OS())
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range 4 {
		s := d.session(t)
		wg.Go(func() {
			for i := range jobs {
				form := []lake.Form{lake.FormFile, lake.FormParts, lake.FormIncremental, lake.FormView}[i%4]
				if _, err := Publish(context.Background(), s, target(l, fmt.Sprintf("m%d", i), form, 1), NewQuery(fmt.Sprintf("SELECT %d AS a", i), nil, false), pass); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 200 {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	state, err := l.ReadState(context.Background())
	if err != nil || len(state.Nodes) != 200 || len(state.Foreign) > 0 {
		t.Error(err, len(state.Nodes), state.Foreign)
	}
	for _, f := range tree(t, l) {
		if strings.Contains(f, "rbt-tmp") {
			t.Error("left:", f)
		}
	}
}

// TestReadersBesidePublishes: readers that pin, with statements that name a
// relation twice, beside a writer of files, parts and increments: never an error
// and never two versions in one statement.
func TestReadersBesidePublishes(t *testing.T) {
	d := openDB(t)
	l := newLake(t, filepath.Join(tempDir(t), "lake"), lake.OS())
	publish := func(s Session, i int) {
		recoverLake(t, l)
		for _, form := range []lake.Form{lake.FormFile, lake.FormParts} {
			mustPublish(t, s, target(l, string(form), form, i), fmt.Sprintf("SELECT %d AS v, i FROM range(1000) t(i)", i))
		}
		tg := target(l, "inc", lake.FormIncremental, i)
		tg.Append, tg.FullRefresh = i%5 != 0, i%5 == 0
		mustPublish(t, s, tg, fmt.Sprintf("SELECT %d AS v, i FROM range(10) t(i)", i))
	}
	writer := d.session(t)
	publish(writer, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 1; i <= 60; i++ {
			publish(writer, i)
		}
	}()
	pins := l.NewPins(os.Getpid())
	defer pins.Close()
	reader, reads := d.session(t), 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, name := range []string{"file", "parts", "inc"} {
			reads++
			readPinned(t, reader, pins, l, name)
		}
	}
	t.Logf("%d readings beside 60 publishes of three nodes", reads)
}

func readPinned(t *testing.T, s Session, pins *lake.Pins, l *lake.Lake, name string) {
	t.Helper()
	p, ok, err := pins.Pin(l, name)
	if err != nil || !ok || p.Node.Damage != nil || !p.Held {
		t.Fatal(name, ok, err, p.Node.Damage)
	}
	var files []string
	for _, f := range p.Files[name] {
		files = append(files, f.Path)
	}
	from := "(" + readSQL(files, p.Node.Receipt.Outputs[0].Columns) + ")"
	err = s.Query(context.Background(), fmt.Sprintf("SELECT count(*), count(DISTINCT a.v), (SELECT count(*) FROM %[1]s), max(a.v) - max(b.v) FROM %[1]s a JOIN %[1]s b USING (v, i)", from), func(v []any) error {
		want := p.Node.Receipt.Outputs[0].Rows
		versions := int64(1)
		if name == "inc" {
			versions = int64(len(files))
		}
		if v[0] != want || v[1] != versions || v[2] != want || v[3] != int32(0) {
			return fmt.Errorf("%s: %v, the receipt says %d rows", name, v, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
