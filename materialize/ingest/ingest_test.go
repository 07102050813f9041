package ingest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const crystalSpec = `
root crystal
record crystal
  field material_id varchar required
  field energy double
  field gap decimal(18,9)
  field a double path=lattice.a
  field raw json
  field cell double[]
  ref source source
  ref structure structure required
  child tags varchar
  child authors -> author
  child notes {
    field at timestamptz
    field text varchar
  }
  meta field file varchar path=meta.file
record source
  field name varchar
record author
  field name varchar
record structure
  field group integer
  child sites {
    field x double
    child props {
      field k varchar
    }
  }
`

func TestOneOfEverything(t *testing.T) {
	rec := `{"material_id":"m1","energy":-1.5,"gap":1.123456789,"lattice":{"a":2},"raw":{"b": 1, "a":[ true ]},"cell":[1,null,2.5],` +
		`"source":{"name":"s"},"structure":{"group":7,"sites":[{"x":1,"props":[{"k":"p"},{"k":"q"}]},{"x":2}]},` +
		`"tags":["t1",null,"t2"],"authors":[{"name":"A"},{"name":"B"},{"name":"A"}],"notes":[{"at":"2026-01-02T03:04:05Z","text":"n"}],"meta":{"file":"f1"}}`
	got := mustLoad(t, crystalSpec, rec, rec, `{"material_id":"m2","structure":{"group":7,"sites":[{"x":1,"props":[{"k":"p"},{"k":"q"}]},{"x":2}]},"tags":[]}`)
	want := map[string][]string{
		"crystal": {
			`1|m1|-1.5|1.123456789|2.0|{"b":1,"a":[true]}|[1.0, NULL, 2.5]|f1|1|1|3|3|1|true|2|a.ndjson|1`,
			`2|m2|∅|∅|∅|∅|∅|∅|∅|1|0|∅|∅|true|1|a.ndjson|3`,
		},
		"tags":                    {"1|0|t1", "1|1|∅", "1|2|t2"},
		"authors":                 {"1|0|1", "1|1|2", "1|2|1"},
		"notes":                   {"1|0|2026-01-02 03:04:05+00|n"},
		"source":                  {"1|s|false|2|a.ndjson|1"},
		"author":                  {"1|A|false|4|a.ndjson|1", "2|B|false|2|a.ndjson|1"},
		"structure":               {"1|7|2|false|3|a.ndjson|1"},
		"structure__sites":        {"1|0|1.0|2", "1|1|2.0|∅"},
		"structure__sites__props": {"1|0|0|p", "1|0|1|q"},
		"_rejects":                {},
		"_loads":                  {"1|1|", ""},
	}
	delete(want, "_loads")
	delete(got.tables, "_loads")
	if d := cmp.Diff(want, got.tables); d != "" {
		t.Error(d)
	}
}
