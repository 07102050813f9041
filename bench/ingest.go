package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// nestedFront is how rbt ingests the nested records; %s is the input.
const nestedFront = `materialization: ingest
input: {path: %s}
root: crystal
records:
  crystal:
    fields:
      material_id: {type: varchar, required: true}
      formula: varchar
      energy: double
      band_gap: decimal(18,9)
      a: {type: double, path: lattice.a}
    references:
      structure: {record: structure, required: true}
    children:
      tags: varchar
      authors: {record: author}
  author:
    fields: {name: varchar, orcid: varchar}
  structure:
    fields: {spacegroup: integer}
    children:
      sites: {fields: {x: double, y: double, z: double}}
%s`

// nestedTables are the tables that come of nested records, with the columns
// that both sides make alike: all but those that rbt alone adds, and ids, which
// each side hashes in its own way.
func nestedTables() map[string][]string {
	return map[string][]string{
		"crystal":          {"_sid", "_occurrences", "material_id", "formula", "energy", "band_gap", "a", "structure_sid"},
		"structure":        {"_sid", "_occurrences", "spacegroup"},
		"structure__sites": {"_parent_sid", "_idx", "x", "y", "z"},
		"author":           {"_sid", "_occurrences", "name", "orcid"},
		"tags":             {"_parent_sid", "_idx", "value"},
		"authors":          {"_parent_sid", "_idx", "author_sid"},
	}
}

// nestedPlain is the plain DuckDB SQL for the same tables: one parse into a
// temporary table, 128-bit content ids, one row per content, dense keys in the
// order of the lines, and joins from then on.
func nestedPlain(input, out string) []step {
	steps := []step{
		// row_number() must follow the lines
		{Exec: "SET preserve_insertion_order = true"},
		{Exec: `CREATE TEMP TABLE parsed AS SELECT *, md5(structure::VARCHAR)::UUID AS scid,
			md5(row(material_id, formula, energy, band_gap, lattice, tags, authors, structure)::VARCHAR)::UUID AS cid
			FROM (SELECT row_number() OVER () AS pos, * FROM ` + readNested(input) + `)`},
		{Exec: "SET preserve_insertion_order = false"},
		{Exec: `CREATE TEMP TABLE author_occ AS SELECT pos, idx, pos * 1000000 + idx AS nth, a.name AS name, a.orcid AS orcid, md5(a::VARCHAR)::UUID AS acid
			FROM (SELECT pos, unnest(authors) AS a, generate_subscripts(authors, 1) - 1 AS idx FROM parsed)`},
		{Exec: `CREATE TEMP TABLE keep_crystal AS SELECT row_number() OVER (ORDER BY pos) AS sid, * FROM
			(SELECT cid, min(pos) AS pos, count(*) AS n FROM parsed GROUP BY cid)`},
		{Exec: `CREATE TEMP TABLE keep_structure AS SELECT row_number() OVER (ORDER BY pos) AS sid, * FROM
			(SELECT scid, min(pos) AS pos, count(*) AS n FROM parsed GROUP BY scid)`},
		{Exec: `CREATE TEMP TABLE keep_author AS SELECT row_number() OVER (ORDER BY nth) AS sid, * FROM
			(SELECT acid, min(nth) AS nth, count(*) AS n FROM author_occ GROUP BY acid)`},
	}
	for _, t := range [][2]string{
		{"crystal", `SELECT k.sid AS _sid, k.cid AS _content_id, k.n AS _occurrences, p.material_id, p.formula, p.energy, p.band_gap, p.lattice.a AS a, s.sid AS structure_sid,
			true AS _is_entry, 'nested.ndjson' AS _file, p.pos AS _line, 1::BIGINT AS _load_id
			FROM keep_crystal k JOIN parsed p ON p.pos = k.pos JOIN keep_structure s ON s.scid = p.scid`},
		{"structure", `SELECT k.sid AS _sid, k.scid AS _content_id, k.n AS _occurrences, p.structure.spacegroup AS spacegroup,
			false AS _is_entry, 'nested.ndjson' AS _file, p.pos AS _line, 1::BIGINT AS _load_id
			FROM keep_structure k JOIN parsed p ON p.pos = k.pos`},
		{"structure__sites", `SELECT _parent_sid, _idx, s.x AS x, s.y AS y, s.z AS z FROM (SELECT k.sid AS _parent_sid, unnest(p.structure.sites) AS s,
			generate_subscripts(p.structure.sites, 1) - 1 AS _idx FROM keep_structure k JOIN parsed p ON p.pos = k.pos)`},
		{"author", `SELECT k.sid AS _sid, k.acid AS _content_id, k.n AS _occurrences, o.name, o.orcid,
			false AS _is_entry, 'nested.ndjson' AS _file, o.pos AS _line, 1::BIGINT AS _load_id
			FROM keep_author k JOIN author_occ o ON o.nth = k.nth`},
		{"tags", `SELECT k.sid AS _parent_sid, unnest(p.tags) AS value, generate_subscripts(p.tags, 1) - 1 AS _idx
			FROM keep_crystal k JOIN parsed p ON p.pos = k.pos`},
		{"authors", `SELECT k.sid AS _parent_sid, o.idx AS _idx, a.sid AS author_sid
			FROM keep_crystal k JOIN author_occ o ON o.pos = k.pos JOIN keep_author a ON a.acid = o.acid`},
	} {
		steps = append(steps, step{Query: t[1], To: filepath.Join(out, t[0]+".parquet")})
	}
	return steps
}

// nestedNoIDs is plain DuckDB SQL that only flattens: no ids, nothing dropped.
func nestedNoIDs(input, out string) []step {
	steps := []step{
		{Exec: "SET preserve_insertion_order = true"},
		{Exec: "CREATE TEMP TABLE parsed AS SELECT row_number() OVER () AS pos, * FROM " + readNested(input)},
		{Exec: "SET preserve_insertion_order = false"},
	}
	for _, t := range [][2]string{
		{"crystal", "SELECT pos, material_id, formula, energy, band_gap, lattice.a AS a, structure.spacegroup AS spacegroup FROM parsed"},
		{"sites", "SELECT pos, idx, s.x AS x, s.y AS y, s.z AS z FROM (SELECT pos, unnest(structure.sites) AS s, generate_subscripts(structure.sites, 1) - 1 AS idx FROM parsed)"},
		{"tags", "SELECT pos, unnest(tags) AS value, generate_subscripts(tags, 1) - 1 AS idx FROM parsed"},
		{"authors", "SELECT pos, idx, a.name AS name, a.orcid AS orcid FROM (SELECT pos, unnest(authors) AS a, generate_subscripts(authors, 1) - 1 AS idx FROM parsed)"},
	} {
		steps = append(steps, step{Query: t[1], To: filepath.Join(out, t[0]+".parquet")})
	}
	return steps
}

// readNested is the call that parses nested records with declared types.
func readNested(path string) string {
	return "read_ndjson(" + quote(path) + `, columns = {"material_id": 'VARCHAR', "formula": 'VARCHAR', "energy": 'DOUBLE', "band_gap": 'DECIMAL(18,9)',
		"lattice": 'STRUCT(a DOUBLE)', "tags": 'VARCHAR[]', "authors": 'STRUCT(name VARCHAR, orcid VARCHAR)[]',
		"structure": 'STRUCT(spacegroup INTEGER, sites STRUCT(x DOUBLE, y DOUBLE, z DOUBLE)[])'})`
}

// shape is a kind of input: how it is made, how rbt is told of it, and what
// plain SQL makes the same tables.
type shape struct {
	name    string
	input   string // file or glob under the case's folder
	make    func(dir string, n int) error
	front   func(path string) string
	plain   func(input, out string) []step
	tables  map[string][]string // what is compared
	records int
	targets []target
	// flatten is plain SQL that makes no ids, and drops nothing; nil: not measured
	flatten func(input, out string) []step
	nested  bool // other tools load it too
}

// runIngest is scenario g.
func runIngest(b *bench) error {
	for _, s := range b.shapes() {
		sides := func(n int) ([]side, error) { return b.shapeSides(s, n) }
		if b.opt.growth {
			if err := b.grow("ingest, "+s.name, "records", s.records, sides); err != nil {
				return err
			}
			continue
		}
		all, err := sides(s.records)
		if err != nil {
			return err
		}
		c := comparison{name: "ingest of " + count(s.records, "record") + ", " + s.name, base: "duckdb", sides: all, targets: s.targets, check: byValue}
		if s.nested {
			peers, goals := b.ingestPeers(filepath.Join(b.work, b.scenario, "ingest"), filepath.Join(b.work, b.scenario, "ingest", s.input))
			c.sides, c.targets = append(c.sides, peers...), append(c.targets, goals...)
		}
		if err := b.compare(c); err != nil {
			return err
		}
	}
	if b.opt.growth {
		return nil
	}
	return b.ingestAppend()
}

// shapeSides makes n records and is the sides that ingest them.
func (b *bench) shapeSides(s shape, n int) ([]side, error) {
	dir, err := b.dir("ingest")
	if err != nil {
		return nil, err
	}
	b.logf("   data: %d records, %s", n, s.name)
	if err := s.make(dir, n); err != nil {
		return nil, err
	}
	project, out := filepath.Join(dir, "project"), filepath.Join(dir, "plain")
	p := neutral{name: "records", data: dir, models: []model{{name: "loaded", front: s.front("$data/" + s.input)}}}
	if err := p.writeRbt(project); err != nil {
		return nil, err
	}
	rbt := b.rbtSide("rbt", project, p)
	rbt.outputs = func() (map[string]relation, error) {
		return ingested(filepath.Join(project, "lake", "loaded"), s.tables)
	}
	input := filepath.Join(dir, s.input)
	plain := b.plainSide("duckdb", dir, out, s.plain(input, out))
	plain.outputs = func() (map[string]relation, error) {
		found := map[string]relation{}
		for table, columns := range s.tables {
			found[table] = relation{files: []string{filepath.Join(out, table+".parquet")}, columns: columns}
		}
		return found, nil
	}
	sides := []side{plain, rbt}
	if s.flatten != nil {
		out := filepath.Join(dir, "plain-no-ids")
		sides = append(sides, b.plainSide("duckdb, no ids", dir, out, s.flatten(input, out)))
	}
	return sides, nil
}

// plainSide runs plain SQL steps in the bare program.
func (b *bench) plainSide(name, dir, out string, steps []step) side {
	return side{name: name, reset: b.cleared(out), run: func() (usage, error) {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return usage{}, err
		}
		return b.runJob(dir, filepath.Base(out), job{Settings: plainSettings(dir), Steps: steps})
	}}
}

// ingested is the tables that an ingest published under folder.
func ingested(folder string, tables map[string][]string) (map[string]relation, error) {
	found := map[string]relation{}
	for table, columns := range tables {
		files, err := filepath.Glob(filepath.Join(folder, table, "part-*.parquet"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no parts of %s under %s", table, folder)
		}
		found[table] = relation{files: files, columns: columns}
	}
	return found, nil
}

// ingestAppend compares an append of a twentieth with the ingest of the whole.
func (b *bench) ingestAppend() error {
	n := b.size(200_000, 2000)
	dir, err := b.dir("ingest-append")
	if err != nil {
		return err
	}
	landing := filepath.Join(dir, "landing")
	if err := writeRecords(filepath.Join(landing, "1.ndjson"), n, &recordWriter{}, crystal(n)); err != nil {
		return err
	}
	later := filepath.Join(dir, "later.ndjson")
	if err := writeRecords(later, n/20, &recordWriter{salt: 1}, func(w *recordWriter, i int) { w.crystal(n+i, 8) }); err != nil {
		return err
	}
	project := filepath.Join(dir, "project")
	p := neutral{name: "records", data: dir, models: []model{{name: "loaded", front: fmt.Sprintf(nestedFront, "$data/landing", "mode: append\n")}}}
	if err := p.writeRbt(project); err != nil {
		return err
	}
	arrived := filepath.Join(landing, "2.ndjson")
	fresh := b.cleared(filepath.Join(project, "lake"), filepath.Join(project, "target"), arrived)
	call := func() (usage, error) { return b.runRbt(project, "run") }
	return b.compare(comparison{
		name: "append of " + count(n/20, "record") + " to " + strconv.Itoa(n), base: "full",
		sides: []side{
			{name: "full", reset: fresh, run: call},
			{name: "append", run: call, reset: func() error {
				if err := fresh(); err != nil {
					return err
				}
				if _, err := call(); err != nil {
					return err
				}
				return os.Link(later, arrived)
			}},
		},
		targets: []target{{side: "append", metric: cpu, against: "full", max: 0.08}, {side: "append", metric: wall, against: "full", max: 0.08}},
	})
}
