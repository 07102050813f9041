package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunIngest(t *testing.T) {
	w := newWorld(t, map[string]string{
		"models/crystals.sql": `---
materialization: ingest
path: bronze
input: {path: data/*.ndjson}
mode: append
records:
  crystal:
    fields: {name: {type: varchar, required: true}}
    references: {site: site}
    children: {tags: varchar}
  site: {fields: {city: varchar}}
root: crystal
tests:
  not_null: [name]
  tables: {site: {unique: [city]}}
---
`,
		"models/cities.sql": "select s.city, count(*) as n from {{ ref('crystals') }} c join {{ ref('crystals.site') }} s on s._sid = c.site_sid group by all order by all",
		"data/a.ndjson":     `{"name":"x","site":{"city":"Oslo"},"tags":["a","b"]}` + "\n" + `{"name":"y","site":{"city":"Oslo"}}` + "\n",
	})
	w.wants(w.must(command{}), "crystals success 2", "cities success 1")
	query := "select city, n from 'LAKE/cities.parquet' order by all"
	if diff := cmp.Diff([]string{"city|n", "Oslo|2"}, w.rows(query)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.wants(w.must(command{}), "crystals no-op", "cities no-op")
	w.write("data/b.ndjson", `{"name":"z","site":{"city":"Rom"}}`+"\n"+`{"name":"w","site":{"city":"Oslo"}}`+"\n")
	r := w.must(command{})
	if diff := cmp.Diff([]string{"city|n", "Oslo|3", "Rom|1"}, w.rows(query)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%v", diff, summary(r))
	}
	bad := w.must(command{tests: true})
	for _, tr := range bad.Tests {
		if tr.Status != StatusPass {
			t.Errorf("%s %s: %v", tr.Name, tr.Status, tr.Err)
		}
	}
}

// A column of many values is not written through a dictionary that it would fill
// in vain, one of few values is.
func TestIngestDictionaries(t *testing.T) {
	var lines strings.Builder
	for i := range 8 * (loadedDictionary + 1) {
		fmt.Fprintf(&lines, `{"id":%d,"many":"value %d","few":"value %d"}`+"\n", i, i%(loadedDictionary+1), i%10)
	}
	w := newWorld(t, map[string]string{
		"models/m.sql": `---
materialization: ingest
path: bronze
input: {path: data/*.ndjson}
records:
  r:
    fields: {id: bigint, many: varchar, few: varchar}
root: r
---
`,
		"models/n.sql":  "select * from {{ ref('m') }} order by id",
		"data/a.ndjson": lines.String(),
	})
	w.must(command{})
	for _, at := range []struct{ files, many string }{{"bronze/m/r/*.parquet", "PLAIN"}, {"n.parquet", "PLAIN_DICTIONARY"}} {
		query := "select path_in_schema, encodings from parquet_metadata('LAKE/" + at.files + "') where path_in_schema in ('many', 'few') order by all"
		want := []string{"path_in_schema|encodings", "few|PLAIN_DICTIONARY", "many|" + at.many}
		if diff := cmp.Diff(want, w.rows(query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", at.files, diff)
		}
	}
}
