package project

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rbt/internal/diag"
)

func TestSources(t *testing.T) {
	p := good(t, `
-- project.yml --
name: shop
roots: {landing: /data/landing, near: ../near}
sources:
  - name: raw
    tags: [r]
    meta: {owner: me, team: x}
    freshness: {warn_after: {count: 12, period: hour}, error_after: 2 days}
    loaded_at_field: at
    tables:
      - name: orders
        path: $landing/orders/**/*.csv.gz
        options: {header: true, delimiter: "\t", quote: "", skip: 1, null: NA}
        columns: {id: BIGINT, zip: {type: "DECIMAL(10, 2)", description: z}}
        extra_columns: error
        on_missing: empty
        tags: [o]
        meta: {team: y}
      - name: events
        path: ["$near/a.ndjson", data/b.jsonl.zst]
        freshness: {error_after: 1h}
      - {name: w, path: "data/w [1].parquet", format: parquet}
      - {name: tabs, path: data/t.tsv}
      - {name: back, path: 'data\x\y.json'}
-- models/more.yaml --
version: 2
sources:
  - name: raw
    tables: [{name: more, path: m.arrow, freshness: null}]
  - name: off
    config: {enabled: false}
    tables: [{name: x, path: x.csv}]
`)
	var got []Source
	for _, s := range p.Sources {
		got = append(got, *s)
	}
	fresh := &Freshness{LoadedAt: "at", WarnAfter: 12 * time.Hour, ErrorAfter: 48 * time.Hour}
	want := []Source{
		{Name: "back", Patterns: []string{"$DIR/data/x/y.json"}, Format: "json", Freshness: fresh},
		{Name: "events", Patterns: []string{"$NEAR/a.ndjson", "$DIR/data/b.jsonl.zst"}, Format: "ndjson", Freshness: &Freshness{LoadedAt: "at", ErrorAfter: time.Hour}},
		{Name: "more", Patterns: []string{"$DIR/m.arrow"}, Format: "arrow_ipc"},
		{Name: "orders", Patterns: []string{"/data/landing/orders/**/*.csv.gz"}, Format: "csv", ExtraColumns: "error", OnMissing: "empty", Freshness: fresh,
			Options: map[string]string{"header": "true", "delimiter": "\t", "quote": "", "skip": "1", "nullstr": "NA"},
			Columns: []Column{{Name: "id", Type: "BIGINT"}, {Name: "zip", Type: "DECIMAL(10, 2)", Description: "z"}},
			Tags:    []string{"r", "o"}, Meta: map[string]any{"owner": "me", "team": "y"}},
		{Name: "tabs", Patterns: []string{"$DIR/data/t.tsv"}, Format: "csv", Options: map[string]string{"delimiter": "\t"}, Freshness: fresh},
		{Name: "w", Patterns: []string{"$DIR/data/w [1].parquet"}, Format: "parquet", Freshness: fresh},
	}
	for i := range want {
		w := &want[i]
		w.Group = "raw"
		for j := range w.Patterns {
			w.Patterns[j] = strings.NewReplacer("$DIR", p.Dir, "$NEAR", filepath.Join(filepath.Dir(p.Dir), "near")).Replace(w.Patterns[j])
		}
		if w.ExtraColumns == "" {
			w.ExtraColumns, w.OnMissing = "keep", "error"
		}
		if w.Tags == nil && w.Name != "more" {
			w.Tags, w.Meta = []string{"r"}, map[string]any{"owner": "me", "team": "x"}
		}
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreTypes(diag.Pos{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestSeeds(t *testing.T) {
	p := good(t, `
-- seeds/sub/countries.csv --
code;name
de;Germany
-- seeds/plain.csv --
a
1
-- seeds/off.csv --
a
1
-- seeds/notes.txt --
x
-- models/seeds.yml --
seeds:
  - name: Countries
    description: d
    delimiter: ";"
    columns: {code: {type: VARCHAR, tests: [unique]}}
    config: {column_types: {name: VARCHAR, code: INT}, tags: [t]}
    tests: [row_count: {min: 1}]
  - {name: off, enabled: false}
`)
	if len(p.Seeds) != 2 || p.Seeds[1].Name != "plain" {
		t.Fatalf("got %v", p.Seeds)
	}
	want := Seed{Name: "countries", File: "seeds/sub/countries.csv", Folder: "sub", Description: "d", Tags: []string{"t"}, Meta: map[string]any{},
		Columns: []Column{{Name: "code", Type: "VARCHAR"}, {Name: "name", Type: "VARCHAR"}}, Options: map[string]string{"delimiter": ";"}}
	if d := cmp.Diff(want, *p.Seeds[0], cmpopts.IgnoreTypes(diag.Pos{})); d != "" {
		t.Error(d)
	}
	p.test(t, "unique_countries_code")
	p.test(t, "row_count_countries__1")
}

const ingestModel = `
-- models/crystals.sql --
---
materialization: ingest
input:
  path: data/crawl
  glob: ["**/*.ndjson", "**/*.json.zst"]
  format: auto
  record_path: $.data[*]
  on_missing: empty
root: crystal
records:
  crystal:
    identity: crystal/v1
    dedup: content_id
    entries: true
    fields:
      material_id: {type: varchar, required: true}
      band_gap: decimal(18,9)
      a: {type: double, path: lattice.a}
    references:
      source: source
      structure: {record: structure, required: true}
    children:
      tags: varchar
      authors: {record: author}
      notes: {fields: {at: timestamptz, text: varchar}}
    metadata:
      file: {type: varchar, path: meta.file}
      kind: varchar
      prev: {record: crystal}
      seen: {type: date, list: true}
    on_metadata_conflict: first
    id: {base: acme.crystals, series: "1"}
  source: {fields: {name: varchar}}
  author: {fields: {name: varchar}}
  structure:
    fields: {cell: "double[]"}
    children:
      sites:
        fields: {x: double}
        children: {props: {fields: {k: varchar}}}
families: {calculations: [source, author]}
max_rejects: 0.1%
occurrences: table
workers: 3
memory_limit: 2GB
tests:
  not_null: [material_id]
  tables: {structure.sites: {not_null: [x]}, crystals.author: [unique: name], crystal: {unique: [material_id]}}
---
-- nothing here
-- models/m.sql --
select * from {{ ref('crystals') }}, {{ ref('crystals.crystal') }}, {{ ref('crystals.structure.sites') }}, {{ ref('Crystals__structure__sites__props') }}, {{ ref('crystals.notes') }}, {{ ref('crystals.calculations') }}, {{ ref('crystals._rejects') }}
`

func TestRecords(t *testing.T) {
	p := good(t, ingestModel)
	m := p.model(t, "crystals")
	var outputs []string
	for _, o := range m.Outputs() {
		outputs = append(outputs, o.Ref+"="+o.Relation)
	}
	if d := cmp.Diff([]string{
		"=crystals", "tags=crystals__tags", "authors=crystals__authors", "notes=crystals__notes", "seen=crystals__seen",
		"source=crystals__source", "author=crystals__author", "structure=crystals__structure", "structure.sites=crystals__structure__sites",
		"structure.sites.props=crystals__structure__sites__props", "calculations=crystals__calculations",
		"_rejects=crystals___rejects", "_occurrences=crystals___occurrences", "_loads=crystals___loads",
	}, outputs); d != "" {
		t.Error(d)
	}
	want := `select * from "main"."crystals", "main"."crystals", "main"."crystals__structure__sites", "main"."crystals__structure__sites__props", ` +
		`"main"."crystals__notes", "main"."crystals__calculations", "main"."crystals___rejects"`
	if got := p.sql(t, "m", CompileOptions{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	text := func(v string) Text { return Text{Value: v} }
	on := Flag{Set: true}
	field := func(name, kind string) RecordField { return RecordField{Name: text(name), Type: text(kind)} }
	records := &Records{
		Input: RecordInput{Patterns: []string{filepath.Join(p.Dir, "data/crawl")}, Globs: []string{"**/*.ndjson", "**/*.json.zst"},
			Format: text("auto"), RecordPath: text("$.data[*]"), OnMissing: "empty"},
		Root: text("crystal"), MaxRejects: text("0.1%"), Occurrences: text("table"), Workers: 3, MemoryLimit: "2GB",
		Families: []Family{{Name: text("calculations"), Members: []Text{text("source"), text("author")}}},
		Types: []RecordType{
			{Name: text("crystal"), Identity: text("crystal/v1"), Dedup: text("content_id"), Entries: on, OnMetadataConflict: text("first"),
				Members: Members{
					Fields: []RecordField{{Name: text("material_id"), Type: text("varchar"), Required: on}, field("band_gap", "decimal(18,9)"),
						{Name: text("a"), Type: text("double"), Path: text("lattice.a")}},
					References: []RecordReference{{Name: text("source"), Record: text("source")}, {Name: text("structure"), Record: text("structure"), Required: on}},
					Children: []RecordChild{{Name: text("tags"), Type: text("varchar")}, {Name: text("authors"), Record: text("author")},
						{Name: text("notes"), Row: &Members{Fields: []RecordField{field("at", "timestamptz"), field("text", "varchar")}}}},
				},
				Metadata: Members{
					Fields:     []RecordField{{Name: text("file"), Type: text("varchar"), Path: text("meta.file")}, field("kind", "varchar")},
					References: []RecordReference{{Name: text("prev"), Record: text("crystal")}},
					Children:   []RecordChild{{Name: text("seen"), Type: text("date")}},
				},
				ID: &RecordID{Base: text("acme.crystals"), Series: text("1")}},
			{Name: text("source"), Members: Members{Fields: []RecordField{field("name", "varchar")}}},
			{Name: text("author"), Members: Members{Fields: []RecordField{field("name", "varchar")}}},
			{Name: text("structure"), Members: Members{Fields: []RecordField{field("cell", "double[]")},
				Children: []RecordChild{{Name: text("sites"), Row: &Members{Fields: []RecordField{field("x", "double")},
					Children: []RecordChild{{Name: text("props"), Row: &Members{Fields: []RecordField{field("k", "varchar")}}}}}}}}},
		},
	}
	if d := cmp.Diff(records, m.Records, cmpopts.IgnoreTypes(diag.Pos{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	var tests []string
	for _, x := range p.Tests {
		tests = append(tests, x.Name+" "+x.Output)
	}
	if d := cmp.Diff([]string{"not_null_crystals_material_id ", "unique_crystals_material_id ", "unique_crystals_author_name crystals__author",
		"not_null_crystals_structure_sites_x crystals__structure__sites"}, tests); d != "" {
		t.Error(d)
	}
	if pos := m.Records.Types[0].Fields[2].Path.Pos; pos.String() != "models/crystals.sql:18:31" {
		t.Errorf("the place of a path: %s", pos)
	}
	_, list := load(t, ingestModel+"-- models/crystals__notes.sql --\nselect 1\n")
	if len(list) != 1 || list[0].Code != diag.NameClash {
		t.Errorf("a model with the name of an output: %v", list)
	}
}

// TestModelConfig: layers, aliases and config() in the body.
func TestModelConfig(t *testing.T) {
	p := good(t, `
-- project.yml --
name: shop
folders:
  a: {materialization: view, tags: [x], meta: {k: 1, l: 2}, path: p}
  a/b: {tags: [y, x], meta: {l: 3}, contract: {enforced: false}}
-- models/a/b/m.sql --
---
tags: z
meta: {m: 00123}
columns: {id: {type: BIGINT, description: d}}
contract: enforced
docs: {show: false}
description: text
---
{{ config(materialized='table', layout='parts', meta={'n': 1}) }}select {{ config.get('layout') }} {{ config.get('meta').m }}
-- models/inc.sql --
---
materialized: "  INCREMENTAL_append "
on_schema_change: Full_Refresh
---
select 1
-- models/t.sql --
---
materialization: full-refresh
---
select 1
-- models/conditional.sql --
{% if not is_incremental() %}{{ config(materialized='view' if var('v', true) else 'table', tags=['c']) }}{% endif %}select 1
-- models/in_macro.sql --
{{ setup() }}select 1
-- macros/setup.sql --
{% macro setup() %}{{ config(materialized='ephemeral') }}{% endmacro %}
-- models/off.sql --
---
enabled: false
---
{{ broken(
-- models/body_off.sql --
{{ config(enabled=false) }}select 1
`)
	type row struct {
		Name             string
		Mat              Materialization
		Strategy, Layout string
		Path             string
		Tags             []string
		Meta             map[string]any
		Enforced         bool
		OnChange         string
	}
	var got []row
	for _, m := range p.Models {
		got = append(got, row{m.Name, m.Materialization, m.Strategy, m.Layout, m.Path, m.Tags, m.Meta, m.ContractEnforced, m.OnSchemaChange})
	}
	want := []row{
		{"conditional", View, "", "", "", []string{"c"}, nil, false, "fail"},
		{"in_macro", Table, "", "file", "", nil, nil, false, "fail"},
		{"inc", Incremental, "append", "", "", nil, nil, false, "full_refresh"},
		{"m", Table, "", "parts", "p", []string{"x", "y", "z"}, map[string]any{"k": int64(1), "l": int64(3), "m": "00123", "n": int64(1)}, true, "fail"},
		{"t", Table, "", "file", "", nil, nil, false, "fail"},
	}
	want[1].Mat, want[1].Layout = Ephemeral, ""
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := p.sql(t, "m", CompileOptions{}); got != "select parts 00123" {
		t.Errorf("got %q", got)
	}
}
