package ingest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
)

var randomTypes = []string{"varchar", "integer", "bigint", "double", "boolean", "decimal(9,2)", "json", "integer[]"}

// randomValues are spellings by type, some of one value.
var randomValues = map[string][]string{
	"varchar":      {`"a"`, `"\u0061"`, `""`, `"b\n"`, `"é"`},
	"integer":      {"1", "1.0", "10e-1", "2"},
	"bigint":       {"5", "9007199254740993", "-7"},
	"double":       {"1.5", "15e-1", "0", "-0.0"},
	"boolean":      {"true", "false"},
	"decimal(9,2)": {"1.5", "1.50", "-2", "0"},
	"json":         {`{"a":1,"b":[ ]}`, `{"b":[],"a":1.0}`, `[1, "x"]`, `"s"`},
	"integer[]":    {"[]", "[1]", "[1, null]", "[1.0]"},
}

// drawMembers writes the members of one block of a declaration.
func drawMembers(t *rapid.T, b *strings.Builder, indent, prefix, mark string, types []string, depth int, required bool) {
	byValue := strings.Contains(mark, "meta")
	for i := range rapid.IntRange(0, 2).Draw(t, "fields") {
		req, path := "", ""
		if required && rapid.IntRange(0, 5).Draw(t, "req") == 0 {
			req = " required"
		}
		if rapid.IntRange(0, 5).Draw(t, "path") == 0 {
			path = fmt.Sprintf(" path=sub%sp%d.x", prefix, i)
		}
		fmt.Fprintf(b, "%s%sfield %sf%d %s%s%s\n", indent, mark, prefix, i, rapid.SampledFrom(randomTypes).Draw(t, "type"), req, path)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "refs") {
		if byValue && rapid.Bool().Draw(t, "fewer") {
			continue
		}
		fmt.Fprintf(b, "%s%sref %sr%d %s\n", indent, mark, prefix, i, rapid.SampledFrom(types).Draw(t, "target"))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "children") {
		switch k := rapid.IntRange(0, 2).Draw(t, "kind"); {
		case k == 0:
			fmt.Fprintf(b, "%s%schild %sc%d %s\n", indent, mark, prefix, i, rapid.SampledFrom(randomTypes).Draw(t, "type"))
		case k == 1 || depth > 1 || mark != "":
			fmt.Fprintf(b, "%s%schild %sc%d -> %s\n", indent, mark, prefix, i, rapid.SampledFrom(types).Draw(t, "target"))
		default:
			fmt.Fprintf(b, "%schild %sc%d {\n", indent, prefix, i)
			drawMembers(t, b, indent+"  ", fmt.Sprintf("%s%d", prefix, i), "", types, depth+1, required)
			fmt.Fprintf(b, "%s}\n", indent)
		}
	}
}

func drawSpec(t *rapid.T) string {
	var b strings.Builder
	types := []string{"ra", "rb", "rc", "rd"}[:rapid.IntRange(1, 4).Draw(t, "types")]
	b.WriteString("root ra\nmax_rejects 100%\n")
	fmt.Fprintf(&b, "occurrences %s\n", rapid.SampledFrom([]string{"none", "count", "table"}).Draw(t, "occurrences"))
	unknown := rapid.SampledFrom([]string{"ignore", "ignore", "capture", "quarantine"}).Draw(t, "unknown")
	fmt.Fprintf(&b, "unknown_fields %s\n", unknown)
	for i, name := range types {
		dedup := rapid.SampledFrom([]string{"content_id", "content_id", "by_value", "none"}).Draw(t, "dedup")
		fmt.Fprintf(&b, "record %s %s", name, dedup)
		if dedup == "content_id" {
			fmt.Fprintf(&b, " conflict=%s", rapid.SampledFrom([]string{"fail", "first", "first", "last", "last", "quarantine"}).Draw(t, "conflict"))
		}
		if rapid.IntRange(0, 4).Draw(t, "entries") == 0 {
			b.WriteString(" entries")
		}
		b.WriteByte('\n')
		p := string(rune('a' + i))
		drawMembers(t, &b, "  ", p, "", types, 0, true)
		if rapid.IntRange(0, 2).Draw(t, "metadata") == 0 {
			drawMembers(t, &b, "  ", "m"+p, "meta ", types, 0, false)
		}
	}
	return b.String()
}

// drawObject writes an object of the declared members: keys in any order, null
// or missing as it happens, now and then something wrong.
func drawObject(t *rapid.T, s *Spec, depth int, byValue bool, groups ...Members) string {
	var items []string
	subs := map[string][]string{}
	put := func(path, name Text, value string) {
		if keys := strings.Split(path.Value, "."); path.Value != "" {
			subs[keys[0]] = append(subs[keys[0]], fmt.Sprintf("%q:%s", keys[1], value))
			return
		}
		items = append(items, fmt.Sprintf("%q: %s", name.Value, value))
	}
	absent := func(required bool) bool {
		n := rapid.IntRange(0, 7).Draw(t, "absent")
		return n == 0 || (n < 3 && !required)
	}
	for gi, g := range groups {
		for _, f := range g.Fields {
			vals := randomValues[f.Type.Value]
			if f.Type.Value == "double" && gi == 1 && !byValue && rapid.IntRange(0, 9).Draw(t, "nan") == 0 {
				vals = []string{`"NaN"`}
			}
			if f.Type.Value == "double" && byValue {
				vals = vals[:3]
			}
			switch {
			case absent(f.Required.Set && rapid.IntRange(0, 3).Draw(t, "keep") > 0):
				if rapid.Bool().Draw(t, "null") {
					put(f.Path, f.Name, "null")
				}
			case rapid.IntRange(0, 60).Draw(t, "wrong") == 0 && f.Type.Value != "json":
				put(f.Path, f.Name, `{"no":1}`)
			default:
				put(f.Path, f.Name, rapid.SampledFrom(vals).Draw(t, "value"))
			}
		}
		for _, r := range g.References {
			if depth > 2 || absent(false) {
				continue
			}
			put(r.Path, r.Name, drawRecord(t, s, r.Record.Value, depth+1))
		}
		for _, c := range g.Children {
			if depth > 2 || absent(false) {
				continue
			}
			elems := make([]string, rapid.IntRange(0, 2).Draw(t, "elements"))
			for i := range elems {
				switch {
				case c.Record.Value != "":
					elems[i] = drawRecord(t, s, c.Record.Value, depth+1)
				case c.Row != nil:
					elems[i] = drawObject(t, s, depth+1, byValue, *c.Row)
				default:
					vals := append([]string{"null"}, randomValues[c.Type.Value]...)
					if c.Type.Value == "double" {
						vals = vals[:3]
					}
					elems[i] = rapid.SampledFrom(vals).Draw(t, "value")
				}
			}
			put(c.Path, c.Name, "["+strings.Join(elems, ",")+"]")
		}
	}
	for k, v := range subs {
		items = append(items, fmt.Sprintf("%q: {%s}", k, strings.Join(v, ",")))
	}
	sort.Strings(items)
	if rapid.IntRange(0, 15).Draw(t, "unknown") == 0 {
		items = append(items, `"zz": `+rapid.SampledFrom([]string{"1", "1.0", `{"q":[1]}`}).Draw(t, "extra"))
	}
	if rapid.Bool().Draw(t, "shuffle") {
		items = rapid.Permutation(items).Draw(t, "order")
	}
	return "{" + strings.Join(items, ",") + "}"
}

func drawRecord(t *rapid.T, s *Spec, name string, depth int) string {
	for i := range s.Records {
		if r := &s.Records[i]; r.Name.Value == name {
			return drawObject(t, s, depth, r.Dedup.Value == "by_value", r.Members, r.Metadata)
		}
	}
	panic(name)
}

func drawInput(t *rapid.T, s *Spec) map[string]string {
	files := map[string]string{}
	var earlier []string
	for i := range rapid.IntRange(0, 3).Draw(t, "files") {
		var lines []string
		for range rapid.IntRange(0, 9).Draw(t, "lines") {
			var line string
			switch n := rapid.IntRange(0, 20).Draw(t, "line"); {
			case n == 0:
				line = `{"broken":`
			case n == 1:
				line = "  "
			case n < 8 && len(earlier) > 0:
				line = rapid.SampledFrom(earlier).Draw(t, "again")
			default:
				line = drawRecord(t, s, "ra", 0)
			}
			earlier = append(earlier, line)
			lines = append(lines, line)
		}
		files[fmt.Sprintf("f%d.ndjson", i)] = strings.Join(lines, "\n")
	}
	return files
}

// unsignZeros takes the sign from zeros: DuckDB's Parquet writer (1.5.6) puts
// 0.0 and -0.0 into its dictionary as one value, whichever comes first.
func unsignZeros(tables map[string][]string) {
	for _, rows := range tables {
		for i, r := range rows {
			rows[i] = strings.ReplaceAll(r, "-0.0", "0.0")
		}
	}
}

// TestRandomGraphsEqualTheOracle is the heart of the matter: any declaration
// and input, any workers and chunks, against one record at a time with maps.
func TestRandomGraphsEqualTheOracle(t *testing.T) {
	s := newTestSession(t, 2)
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		src := drawSpec(rt)
		spec := parseSpec(src)
		p, list := Compile(spec)
		if p == nil {
			rt.Fatalf("declaration refused:\n%s\n%v", src, list)
		}
		contents := drawInput(rt, &spec)
		n++
		root := filepath.Join(dir, fmt.Sprint(n))
		var files []File
		for i := range len(contents) {
			name := fmt.Sprintf("f%d.ndjson", i)
			files = append(files, File{Path: filepath.Join(root, name), Name: name})
			if err := os.MkdirAll(root, 0o755); err != nil {
				rt.Fatal(err)
			}
			if err := os.WriteFile(files[i].Path, []byte(contents[name]), 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		o := &oracle{spec: spec}
		o.load(files, contents)
		o.result(files)
		j := &Job{Program: p, Files: files, Workers: rapid.SampledFrom([]int{1, 2, 4, 7}).Draw(rt, "workers"), ChunkBytes: rapid.SampledFrom([]int{64, 300, 1 << 20}).Draw(rt, "chunk")}
		got, err := runJob(t, s, j)
		if e := os.RemoveAll(root); e != nil {
			rt.Fatal(e)
		}
		describe := func() string {
			var b strings.Builder
			b.WriteString(src)
			for _, f := range files {
				b.WriteString("\n-- " + f.Name + "\n" + contents[f.Name])
			}
			return b.String()
		}
		if o.err != "" {
			var d diag.Diagnostic
			if !errors.As(err, &d) || d.Code != diag.IngestConflict {
				rt.Fatalf("%s\n\nwant conflict %s, got %v", describe(), o.err, err)
			}
			rest := d.Msg[strings.Index(d.Msg, "metadata field ")+len("metadata field "):]
			if said := fmt.Sprintf("%s %s %s", d.Pos, d.Notes[0].Pos, rest[:strings.Index(rest, " differs")]); said != o.err {
				rt.Fatalf("%s\n\nwant conflict %s, got %s", describe(), o.err, said)
			}
			return
		}
		if err != nil {
			rt.Fatalf("%s\n\n%v", describe(), err)
		}
		rejects := []string{}
		for _, r := range got.tables["_rejects"] {
			rejects = append(rejects, strings.Join(strings.SplitN(r, "|", 3)[:2], "|"))
		}
		sort.Strings(rejects)
		want := append([]string{}, o.rejects...)
		sort.Strings(want)
		if d := cmp.Diff(want, rejects); d != "" {
			rt.Fatalf("%s\n\nrejects %s\n%v", describe(), d, got.tables["_rejects"])
		}
		delete(got.tables, "_rejects")
		delete(got.tables, "_loads")
		unsignZeros(o.tables)
		unsignZeros(got.tables)
		if d := cmp.Diff(o.tables, got.tables); d != "" {
			rt.Fatalf("%s\n\n%s", describe(), d)
		}
	})
}
