package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manyModels writes a project of n models of ten lines, with config in the body
// or in frontmatter, that call one macro of a file of 50.
func manyModels(b *testing.B, n int, frontmatter bool) string {
	dir := b.TempDir()
	writeFile(b, filepath.Join(dir, File), "name: big\nvars: {start: 2024-01-01}\nsources: [{name: raw, tables: [{name: t, path: t.csv}]}]\n")
	var macros strings.Builder
	for i := range 50 {
		fmt.Fprintf(&macros, "{%% macro m%d(c, scale=2) %%}round({{ c }} / 100.0, {{ scale }}){%% endmacro %%}\n", i)
	}
	writeFile(b, filepath.Join(dir, "macros/all.sql"), macros.String())
	for i := range n {
		parent := "{{ source('raw', 't') }}"
		if i > 0 {
			parent = fmt.Sprintf("{{ ref('model_%05d') }}", i/2)
		}
		head := "{{ config(materialized='incremental', tags=['daily']) }}\n"
		if frontmatter {
			head = "---\nmaterialization: incremental\ntags: [daily]\ndescription: a model\ncolumns:\n  id: {type: BIGINT, tests: [not_null, unique]}\n  amount: {tests: [not_null]}\n---\n"
		}
		text := head + "select\n  id,\n  {{ m" + fmt.Sprint(i%50) + "('amount') }} as amount,\n  day\nfrom " + parent +
			"\nwhere day >= '{{ var('start') }}'\n{% if is_incremental() %}\n  and day > (select max(day) from {{ this }})\n{% endif %}\n"
		writeFile(b, filepath.Join(dir, fmt.Sprintf("models/d%02d/model_%05d.sql", i%100, i)), text)
	}
	return dir
}

func benchmarkLoad(b *testing.B, frontmatter, compile bool) {
	dir := manyModels(b, 10_000, frontmatter)
	b.ReportAllocs()
	for b.Loop() {
		p, list := Load(context.Background(), Options{Dir: dir, Env: os.LookupEnv})
		if len(list) > 0 {
			b.Fatal(list)
		}
		if !compile {
			continue
		}
		each(len(p.Models), func(i int) {
			if _, list := p.Compile(context.Background(), p.Models[i], CompileOptions{Incremental: true}); list != nil {
				b.Error(list)
			}
		})
	}
}

func BenchmarkLoadConfig(b *testing.B)      { benchmarkLoad(b, false, false) }
func BenchmarkLoadFrontmatter(b *testing.B) { benchmarkLoad(b, true, false) }
func BenchmarkCompileConfig(b *testing.B)   { benchmarkLoad(b, false, true) }
