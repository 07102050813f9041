package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func inferFrom(t *testing.T, name, content string, opt InferOptions) (*Inferred, []File) {
	t.Helper()
	files := writeInput(t, map[string]string{name: content})
	in, err := Infer(context.Background(), files, opt)
	if err != nil {
		t.Fatal(err)
	}
	return in, files
}

// TestInferWritesADeclaration shows the whole text for one input, and that the
// declaration takes every record that it was made from.
func TestInferWritesADeclaration(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"name":"n%d","when":"2026-01-%02d","mixed":%s,"big":%d00000000000000000000,"geo":{"lat":%d.5},"shop":{"name":"s%d","open":true},"tags":["a"],"lines":[{"sku":"k%d","co$t":1.25}],"nothing":null,"_rid":"x","a.b":1,"a_b":2,"cell":[[1,2.5],[3,4]]}`,
			i, i, i+1, []string{"1", `"x"`}[i%2], i+1, i, i%3, i))
	}
	in, files := inferFrom(t, "orders.ndjson", strings.Join(lines, "\n"), InferOptions{Name: "order"})
	want := `---
materialization: ingest
input:
  path: data/orders.ndjson
root: order  # inferred from 20 records in 1 file
records:
  order:  # 20 of them, 20 different
    fields:
      id: bigint  # in 20 of 20
      name: varchar  # in 20 of 20
      when: date  # in 20 of 20
      mixed: json  # in 20 of 20; AMBIGUOUS: 0 booleans, 10 numbers, 10 strings, 0 objects, 0 lists
      big: "decimal(22,0)"  # in 20 of 20; a double would round it
      geo_lat: {type: double, path: geo.lat}  # in 20 of 20
      nothing: json  # in 0 of 20; AMBIGUOUS: only null was seen
      rid: {type: varchar, path: "_rid"}  # in 20 of 20
      a.b: bigint  # in 20 of 20
      a_b_2: {type: bigint, path: a_b}  # in 20 of 20
      cell: "double[][]"  # in 20 of 20, 40 elements
    references:
      shop: shop  # in 20 of 20; 3 different, so a record of its own
    children:
      tags: varchar  # in 20 of 20, 20 elements
      lines:  # in 20 of 20, 20 elements
        fields:
          sku: varchar  # in 20 of 20
          "co$t": double  # in 20 of 20
  shop:  # 20 of them, 3 different
    fields:
      name: varchar  # in 20 of 20
      open: boolean  # in 20 of 20
---
`
	if d := cmp.Diff(want, in.Frontmatter("data/orders.ndjson")); d != "" {
		t.Error(d)
	}
	p, list := Compile(in.Spec)
	if p == nil {
		t.Fatal(list)
	}
	got, err := runJob(t, newTestSession(t, 1), &Job{Program: p, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.tables["order"]) != 20 || len(got.tables["shop"]) != 3 || len(got.tables["_rejects"]) != 0 {
		t.Errorf("%v", got.tables)
	}
}

// TestInferredDeclarationsTakeTheirSample tries inputs of different shapes.
func TestInferredDeclarationsTakeTheirSample(t *testing.T) {
	repeat := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i) + "\n")
		}
		return b.String()
	}
	for _, c := range []struct {
		name, content, path string
		rows                int
	}{
		{"a.ndjson", repeat(30, func(i int) string {
			return fmt.Sprintf(`{"u":{"id":%d,"tags":["x",null]},"e":[{"u":{"id":%d},"k":[{"z":%d}]}],"deep":{"a":{"b":{"c":%d}}}}`, i%4, i%4, i, i)
		}), "", 30},
		{"b.json", `{"data":{"items":[` + strings.TrimSuffix(strings.ReplaceAll(repeat(12, func(i int) string { return fmt.Sprintf(`{"i":%d,"v":%d.25}`, i, i) }), "\n", ","), ",") + `]}}`, "$.data.items[*]", 12},
		{"c.csv", "id,zip,amount,at,note\n1,00123,1.50,2026-01-02T03:04:05Z,\n2,99999,2,2026-01-02T03:04:05+01:00,x\n", "", 2},
		{"d.ndjson", repeat(40, func(i int) string {
			return fmt.Sprintf(`{"by_day":{%s},"m":{"x%d":1}}`, func() string {
				var b []string
				for k := range 60 {
					b = append(b, fmt.Sprintf(`"d%d":%d`, k*i, k))
				}
				sort.Strings(b)
				return strings.Join(compactStrings(b), ",")
			}(), i)
		}), "", 40},
		{"e.ndjson", `{"x":1}` + "\n" + `{"x":1.5,"y":[],"z":{}}` + "\n" + `{"x":9007199254740993,"Y":"b","y":[1,"a"]}` + "\nbroken\n" + `{"t":"2026-01-01","tt":"2026-01-01 10:00","ttt":"10:00","u":"0123abcd-0123-0123-0123-0123456789ab","t2":"2026-01-01T00:00:00+01:00"}`, "", 4},
	} {
		in, files := inferFrom(t, c.name, c.content, InferOptions{Name: "r", RecordPath: c.path})
		p, list := Compile(in.Spec)
		if p == nil {
			t.Fatalf("%s: %v\n%s", c.name, list, in.Frontmatter("x"))
		}
		got, err := runJob(t, newTestSession(t, 1), &Job{Program: p, Files: files})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(got.tables["r"]) != c.rows || len(got.tables["_rejects"]) != int(in.Skipped) {
			t.Errorf("%s: %d rows, rejects %v\n%s", c.name, len(got.tables["r"]), got.tables["_rejects"], in.Frontmatter("x"))
		}
	}
}

func compactStrings(s []string) []string {
	out := s[:0]
	seen := map[string]bool{}
	for _, x := range s {
		if k, _, _ := strings.Cut(x, ":"); !seen[k] {
			seen[k] = true
			out = append(out, x)
		}
	}
	return out
}

// TestInferTakesAnyRecords is the same for arbitrary JSON.
func TestInferTakesAnyRecords(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "A", "b", "a.b", "a_b", "_x", "x_count", "x", "x_sid", "é", "", "q\"", "c d", "a__b", "b__a"})
	var value *rapid.Generator[any]
	depth := 0
	value = rapid.Custom(func(t *rapid.T) any {
		switch k := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case k == 0:
			return nil
		case k == 1:
			return rapid.Bool().Draw(t, "b")
		case k == 2:
			return json.Number(rapid.SampledFrom([]string{"1", "-0", "1.5", "0.1", "1e3", "123456789012345678901234567890", "1e-30", "9007199254740993", "1e300"}).Draw(t, "n"))
		case k < 5 || depth > 3:
			return rapid.SampledFrom([]string{"", "x", "2026-01-01", "2026-01-01T00:00:00Z", "12:00", "NaN"}).Draw(t, "s")
		case k < 7:
			depth++
			defer func() { depth-- }()
			return rapid.SliceOfN(value, 0, 3).Draw(t, "list")
		default:
			depth++
			defer func() { depth-- }()
			return rapid.MapOfN(key, value, 0, 4).Draw(t, "object")
		}
	})
	dir := t.TempDir()
	path := filepath.Join(dir, "a.ndjson")
	rapid.Check(t, func(rt *rapid.T) {
		var lines []string
		some := rapid.SliceOfN(rapid.MapOfN(key, value, 0, 5), 1, 4).Draw(rt, "records")
		for range rapid.SampledFrom([]int{1, 6}).Draw(rt, "times") {
			for _, r := range some {
				text, err := json.Marshal(r)
				if err != nil {
					rt.Fatal(err)
				}
				lines = append(lines, string(text))
			}
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			rt.Fatal(err)
		}
		in, err := Infer(context.Background(), []File{{Path: path, Name: "a.ndjson"}}, InferOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		p, list := Compile(in.Spec)
		if p == nil {
			rt.Fatalf("%v\n%s\n%s", list, in.Frontmatter("x"), strings.Join(lines, "\n"))
		}
		e := newEncoder(p, firstDedupSlots)
		for _, l := range lines {
			if !e.entry([]byte(l), true, 0, 1) {
				rt.Fatalf("%s: %s %v\n%s", l, e.fault.msg, e.fault.path, in.Frontmatter("x"))
			}
		}
	})
}

func TestInferSaysWhatItCannotRead(t *testing.T) {
	files := writeInput(t, map[string]string{"a.ndjson": "[1]\n2\n"})
	if _, err := Infer(context.Background(), files, InferOptions{}); err == nil || !strings.Contains(err.Error(), "no record in 1 files (2 values") {
		t.Errorf("got %v", err)
	}
	in, err := Infer(context.Background(), writeInput(t, map[string]string{"a.ndjson": strings.Repeat(`{"a":1}`+"\n", 300)}), InferOptions{MaxRecords: 100})
	if err != nil || !in.Partial || in.Records != 100 {
		t.Errorf("%+v %v", in, err)
	}
}
