package plan

import (
	"fmt"
	"testing"

	"rbt/internal/lake"
)

// bigWorld is a project of models of some lines, each with three parents and a
// test, that was run.
func bigWorld(tb testing.TB, count int) *world {
	files := map[string]string{
		"project.yml": "name: big\nvars: {day: 2024-01-01}\nsources:\n  - name: raw\n    tables:\n      - {name: t, path: raw/t.csv, columns: {id: BIGINT}}\n",
		"raw/t.csv":   "id\n1\n",
	}
	for i := range count {
		sql := fmt.Sprintf("---\ntags: [t%d]\ntests: [{not_null: [id]}]\n---\nselect id, '{{ var('day') }}' as day\nfrom {{ source('raw', 't') }}\n", i%7)
		if i > 0 {
			sql += fmt.Sprintf("join {{ ref('m%05d') }} using (id)\njoin {{ ref('m%05d') }} using (id)\njoin {{ ref('m%05d') }} using (id)\nwhere id > 0\n",
				(i*7919)%i, (i*104729)%i, i/2)
		}
		files[fmt.Sprintf("models/f%02d/m%05d.sql", i%20, i)] = sql
	}
	w := newWorld(tb, files)
	w.files["raw.t"] = map[string]lake.FileStamp{"raw/t.csv": {Size: 5}}
	w.run()
	return w
}

// BenchmarkUnchanged measures a plan of which nothing has to run.
func BenchmarkUnchanged(b *testing.B) {
	w := bigWorld(b, 10_000)
	p := w.load()
	g, _ := Load(b.Context(), p, &fakeParser{}, w.opts)
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			Load(b.Context(), p, wordParser{}, w.opts)
		}
	})
	b.Run("plan", func(b *testing.B) {
		for b.Loop() {
			pl, diags := g.Plan(p, &w.state, w.opts)
			if diags.HasErrors() || pl.Steps[0].Action != ActionUnchanged {
				b.Fatal(diags, lines(pl)[:200])
			}
		}
	})
	b.Run("select", func(b *testing.B) {
		for b.Loop() {
			g.Select(Selectors{Select: []string{"+m05000+", "tag:t3,f03"}})
		}
	})
}
