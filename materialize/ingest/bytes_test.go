package ingest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nestedSpec is the declaration of the generated records.
const nestedSpec = `
root order
occurrences count
record order
  field order_id varchar required
  field placed timestamptz
  field total decimal(18,2)
  field weight double
  field paid boolean
  ref customer customer
  ref shipping address
  child tags varchar
  child items {
    field sku varchar
    field qty integer
    field price double
    child options {
      field k varchar
      field v varchar
    }
  }
  child reviewers -> customer
  meta field source varchar
record customer
  field name varchar
  field email varchar
  field score double
  ref home address
record address
  field street varchar
  field city varchar
  field zip varchar
`

// generate writes n nested records of about size bytes each, a share of them
// repeats of an earlier one and broken ones among them.
func generate(r *rand.Rand, n int, repeats, broken float64) []string {
	lines := make([]string, 0, n)
	address := func() string {
		k := r.Intn(500)
		return fmt.Sprintf(`{"street":"Long Street Number %d","city":"City %d","zip":"%05d"}`, k, k%37, k*31%99999)
	}
	customer := func() string {
		k := r.Intn(2000)
		return fmt.Sprintf(`{"name":"Customer Name %d","email":"customer%d@example.org","score":%d.%03d,"home":%s}`, k, k, k%100, k%1000,
			fmt.Sprintf(`{"street":"Long Street Number %d","city":"City %d","zip":"%05d"}`, k%500, k%500%37, k%500*31%99999))
	}
	for i := range n {
		if len(lines) > 0 && r.Float64() < repeats {
			lines = append(lines, lines[r.Intn(len(lines))])
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, `{"order_id":"o-%09d","placed":"2026-%02d-%02dT%02d:%02d:%02d.%03dZ","total":%d.%02d,"weight":%g,"paid":%t,`,
			i, 1+r.Intn(12), 1+r.Intn(28), r.Intn(24), r.Intn(60), r.Intn(60), r.Intn(1000), r.Intn(100000), r.Intn(100), r.Float64()*1000, r.Intn(2) == 0)
		fmt.Fprintf(&b, `"customer":%s,"shipping":%s,"tags":["red","tag %d","x"],"items":[`, customer(), address(), r.Intn(50))
		for k := range 2 + r.Intn(4) {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"sku":"SKU-%06d","qty":%d,"price":%.4f,"options":[{"k":"color","v":"blue %d"},{"k":"size","v":"%d"}]}`, r.Intn(100000), 1+r.Intn(9), r.Float64()*500, r.Intn(9), r.Intn(40))
		}
		fmt.Fprintf(&b, `],"reviewers":[%s],"source":"crawl"}`, customer())
		line := b.String()
		if r.Float64() < broken {
			line = line[:len(line)/2]
		}
		lines = append(lines, line)
	}
	return lines
}

func hashOutputs(t testing.TB, l string, p *Program) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range p.Outputs() {
		text, err := os.ReadFile(filepath.Join(l, o.Folder+".staged"))
		if err != nil {
			t.Fatal(err)
		}
		out[o.Folder] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return out
}

// TestBytesDoNotDependOnHowItIsRun stages one input many ways and compares the
// files byte by byte.
func TestBytesDoNotDependOnHowItIsRun(t *testing.T) {
	n, workers, chunks, threads := 2500, []int{1, 4, 7}, []int{700, 64 << 10, 1 << 20}, []int{1, 4}
	if os.Getenv("RBT_TEST_LONG") == "1" {
		n, workers, chunks, threads = 30_000, []int{1, 2, 4, 7}, []int{700, 64 << 10, 1 << 20, 4 << 20}, []int{1, 2, 4}
	}
	lines := generate(rand.New(rand.NewSource(1)), n, 0.5, 0.01)
	half := len(lines) / 2
	files := writeInput(t, map[string]string{"a.ndjson": strings.Join(lines[:half], "\n"), "b/c.ndjson.gz": compress(t, "gzip", strings.Join(lines[half:], "\n")),
		"d.json": "[" + strings.Join(lines[:20], ",\n") + "]"})
	p := mustCompile(t, nestedSpec+"\nmax_rejects 100%\noccurrences table")
	var want map[string]string
	for _, th := range threads {
		s := newTestSession(t, th)
		for _, w := range workers {
			for _, c := range chunks {
				dir := t.TempDir()
				j := &Job{Program: p, Files: files, Workers: w, ChunkBytes: c, Metadata: map[string]string{"rbt_commit": "c"}}
				if w == 7 {
					j.MemoryLimit = 16 << 20 // small buffers and maps
				}
				if _, err := j.Stage(context.Background(), s, dir); err != nil {
					t.Fatal(err)
				}
				got := hashOutputs(t, dir, p)
				if want == nil {
					want = got
				}
				for name, h := range got {
					if want[name] != h {
						t.Errorf("%d workers, chunk %d, %d threads: %s differs", w, c, th, name)
					}
				}
			}
		}
	}
}

// TestHeavyDuplicationEqualsOneWorker is 180 records seven times over in chunks
// of about 31.
func TestHeavyDuplicationEqualsTheOracle(t *testing.T) {
	src := "root r\nrecord r\nfield a integer\nref n n\nchild l -> n\nmeta field f integer\nrecord n by_value\nfield x integer\nchild c integer"
	var lines []string
	for range 7 {
		for i := range 180 {
			lines = append(lines, fmt.Sprintf(`{"a":%d,"f":%d,"n":{"x":%d,"c":[1]},"l":[{"x":%d,"c":[1]},{"x":%d}]}`, i, i%3, i%11, i%11, i%5))
		}
	}
	content := strings.Join(lines, "\n")
	files := writeInput(t, map[string]string{"a.ndjson": content})
	o := &oracle{spec: parseSpec(src)}
	o.load(files, map[string]string{"a.ndjson": content})
	o.result(files)
	got, err := runJob(t, newTestSession(t, 2), &Job{Program: mustCompile(t, src), Files: files, Workers: 4, ChunkBytes: 31 * 70})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, o.tables)
	if got.stats.Dropped == 0 {
		t.Error("no worker dropped a repeat")
	}
}
