package ingest

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// benchInput writes nested records, half of them repeats; RBT_BENCH_RECORDS
// sets how many.
func benchInput(b *testing.B) (File, int64) {
	n := 20_000
	if v, err := strconv.Atoi(os.Getenv("RBT_BENCH_RECORDS")); err == nil {
		n = v
	}
	path := filepath.Join(b.TempDir(), "in.ndjson")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewSource(7))
	for n > 0 {
		k := min(n, 5000)
		if _, err := f.WriteString(strings.Join(generate(r, k, 0.5, 0), "\n") + "\n"); err != nil {
			b.Fatal(err)
		}
		n -= k
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return File{Path: path, Name: "in.ndjson"}, info.Size()
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func BenchmarkNested(b *testing.B) {
	f, size := benchInput(b)
	p := mustCompile(b, nestedSpec)
	s := newTestSession(b, 2)
	b.SetBytes(size)
	b.ResetTimer()
	start := cpuSeconds()
	for range b.N {
		j := &Job{Program: p, Files: []File{f}}
		if _, err := j.Stage(context.Background(), s, b.TempDir()); err != nil {
			b.Fatal(err)
		}
		st := j.Stats()
		b.ReportMetric(st.EncodeSeconds, "encode-s")
		b.ReportMetric(st.MergeSeconds, "merge-s")
		b.ReportMetric(float64(st.ShardBytes)/1e6, "shard-MB")
	}
	b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op")
}

func BenchmarkEncode(b *testing.B) {
	f, size := benchInput(b)
	p := mustCompile(b, nestedSpec)
	b.SetBytes(size)
	b.ResetTimer()
	start := cpuSeconds()
	for range b.N {
		j := &Job{Program: p, Files: []File{f}}
		j.prepare()
		w, err := newWorkspace(filepath.Join(b.TempDir(), "shards"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.encode(context.Background(), w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op")
}

// The same tables in plain SQL: read once into memory, ids by hash of the
// struct, dense numbers by first appearance.
const duckColumns = `{order_id:'VARCHAR',placed:'TIMESTAMPTZ',total:'DECIMAL(18,2)',weight:'DOUBLE',paid:'BOOLEAN',
customer:'STRUCT(name VARCHAR,email VARCHAR,score DOUBLE,home STRUCT(street VARCHAR,city VARCHAR,zip VARCHAR))',
shipping:'STRUCT(street VARCHAR,city VARCHAR,zip VARCHAR)',tags:'VARCHAR[]',
items:'STRUCT(sku VARCHAR,qty INTEGER,price DOUBLE,options STRUCT(k VARCHAR,v VARCHAR)[])[]',
reviewers:'STRUCT(name VARCHAR,email VARCHAR,score DOUBLE,home STRUCT(street VARCHAR,city VARCHAR,zip VARCHAR))[]',source:'VARCHAR'}`

func duckStatements(in, dir string) []string {
	out := func(name, q string) string {
		return "COPY (" + q + ") TO " + text(filepath.Join(dir, name+".staged")) + " (FORMAT parquet, COMPRESSION zstd)"
	}
	return []string{
		"SET preserve_insertion_order = true",
		"CREATE OR REPLACE TEMP TABLE raw AS SELECT *, row_number() OVER () AS pos, md5(CAST(r AS VARCHAR)) AS cid FROM (SELECT r, unnest(r) FROM (SELECT r FROM (SELECT struct_pack(order_id,placed,total,weight,paid,customer,shipping,tags,items,reviewers) AS r0, * FROM read_json(" + text(in) + ", format='newline_delimited', columns=" + duckColumns + ")) t, LATERAL (SELECT t.r0 AS r)))",
		"CREATE OR REPLACE TEMP TABLE orders AS SELECT *, row_number() OVER (ORDER BY pos) AS sid FROM (SELECT arg_min(raw, pos) AS x, min(pos) AS pos, count(*) AS n FROM raw GROUP BY cid)",
		"CREATE OR REPLACE TEMP TABLE customers AS SELECT md5(CAST(c AS VARCHAR)) AS cid, c, n, row_number() OVER (ORDER BY pos) AS sid FROM (SELECT c, min(pos) AS pos, count(*) AS n FROM (SELECT pos * 10 AS pos, customer AS c FROM raw UNION ALL SELECT pos * 10 + 2, unnest(reviewers) FROM raw) GROUP BY c)",
		"CREATE OR REPLACE TEMP TABLE addresses AS SELECT md5(CAST(a AS VARCHAR)) AS cid, a, n, row_number() OVER (ORDER BY pos) AS sid FROM (SELECT a, min(pos) AS pos, count(*) AS n FROM (SELECT pos * 10 AS pos, customer.home AS a FROM raw UNION ALL SELECT pos * 10 + 1, shipping FROM raw UNION ALL SELECT pos * 10 + 2, unnest(reviewers).home FROM raw) GROUP BY a)",
		out("order", "SELECT o.sid, x.cid, x.order_id, x.placed, x.total, x.weight, x.paid, c.sid AS customer_sid, a.sid AS shipping_sid, o.n FROM orders o LEFT JOIN customers c ON c.c = x.customer LEFT JOIN addresses a ON a.a = x.shipping ORDER BY o.sid"),
		out("customer", "SELECT c.sid, c.cid, c.c.name, c.c.email, c.c.score, a.sid AS home_sid, c.n FROM customers c LEFT JOIN addresses a ON a.a = c.c.home ORDER BY c.sid"),
		out("address", "SELECT sid, cid, a.street, a.city, a.zip, n FROM addresses ORDER BY sid"),
		out("tags", "SELECT sid, unnest(x.tags) AS value, generate_subscripts(x.tags, 1) AS idx FROM orders ORDER BY sid, idx"),
		out("items", "SELECT sid, i.idx, i.v.sku, i.v.qty, i.v.price FROM (SELECT sid, unnest(x.items) AS v, generate_subscripts(x.items, 1) AS idx FROM orders) i ORDER BY sid, idx"),
		out("options", "SELECT sid, pidx, idx, v.k, v.v FROM (SELECT sid, pidx, unnest(o) AS v, generate_subscripts(o, 1) AS idx FROM (SELECT sid, unnest(x.items).options AS o, generate_subscripts(x.items, 1) AS pidx FROM orders)) ORDER BY sid, pidx, idx"),
		out("reviewers", "SELECT o.sid, o.idx, c.sid AS customer_sid FROM (SELECT sid, unnest(x.reviewers) AS v, generate_subscripts(x.reviewers, 1) AS idx FROM orders) o LEFT JOIN customers c ON c.c = o.v ORDER BY o.sid, o.idx"),
	}
}

func BenchmarkPlainSQL(b *testing.B) {
	f, size := benchInput(b)
	s := newTestSession(b, 2)
	b.SetBytes(size)
	b.ResetTimer()
	start := cpuSeconds()
	for range b.N {
		for _, q := range duckStatements(f.Path, b.TempDir()) {
			at := time.Now()
			if err := s.Exec(context.Background(), q); err != nil {
				b.Fatalf("%v\n%s", err, q)
			}
			b.Logf("%6.2fs %.60s", time.Since(at).Seconds(), q)
		}
	}
	b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op")
}
