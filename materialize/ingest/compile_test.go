package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
)

const sweepHint = "(use owned rows instead of records of dedup: none, keep lists of records and, below other records, metadata out of by_value types, and records out of metadata, or use mode: full_refresh)"

func TestMistakesAreFoundAtCompile(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []string // place, code, part of the message or hint
	}{
		{"unknown record type", "root r\nrecord r\nref a autor\nrecord author", []string{`m.sql:3:7 RBT7001 reference a names the record type "autor", which is not declared (did you mean author?)`}},
		{"unknown root", "root q\nrecord r", []string{`m.sql:1:6 RBT7001 root names the record type "q", which is not declared (did you mean r?)`}},
		{"clashing columns", "root r\nrecord r\nfield a.b integer\nfield A_B integer", []string{"m.sql:4:7 RBT7002 field A_B has the same name as a.b after normalising (rename one of them, and write its key under `path:`)"}},
		{"keys that normalise to one", "root r\nrecord r\nfield co$t varchar\nfield co#t varchar", []string{"m.sql:4:7 RBT7002 field co#t has the same name as co$t after normalising (rename one of them, and write its key under `path:`)"}},
		{"a reference against a field", "root r\nrecord r\nfield x_sid integer\nref x r", []string{"m.sql:4:5 RBT7002 reference x has the same name as x_sid after normalising (rename one of them, and write its key under `path:`)"}},
		{"a count against a field", "root r\nrecord r\nfield x_count integer\nchild x integer", []string{"m.sql:4:7 RBT7002 count of the child x has the same name as x_count after normalising (rename one of them, and write its key under `path:`)"}},
		{"records that differ in case", "root r\nrecord r\nrecord R", []string{"m.sql:3:8 RBT7002 record R has the same name as r after normalising (rename one of them, and write its key under `path:`)"}},
		{"a child of the root against a record", "root r\nrecord r\nchild x -> x\nrecord x", []string{"m.sql:4:8 RBT7002 the relations x (children of r) and x (record) have the same name (rename one of them; a child keeps its key with path:)"}},
		{"an output that spells another", "root r\nrecord r\nrecord a\nchild b {\nfield x integer\nchild c integer\n}\nrecord a__b\nchild c integer", []string{
			"m.sql:8:8 RBT7002 the relations a.b (children of a) and a__b (record) have the same name (rename one of them; a child keeps its key with path:)",
			"m.sql:9:7 RBT7002 the relations a.b.c (children of a) and a__b.c (children of a__b) have the same name (rename one of them; a child keeps its key with path:)"}},
		{"reserved names", "root r\nrecord r\nfield _sid integer\nrecord _x", []string{
			"m.sql:3:7 RBT7003 field _sid has a reserved name (use another name and path: _sid)", "m.sql:4:8 RBT7003 record _x has a reserved name (names that start with _ are rbt's own)"}},
		{"bad types", "root r\nrecord r\nfield a varchr\nfield b decimal(40,2)\nfield c hugeint\nchild d blob", []string{
			`m.sql:3:9 RBT7005 field a: unknown type "varchr" (did you mean varchar?)`, "m.sql:4:9 RBT7005 field b: type decimal(40,2) is outside decimal(1..38, 0..precision)",
			"m.sql:5:9 RBT7005 field c: type hugeint has no exact form in Parquet; use decimal(38,0)", `m.sql:6:9 RBT7005 child d: unknown type "blob"`}},
		{"id.from", "root r\nrecord r\nfield code varchar\nid from=cod", []string{`m.sql:4:4 RBT7009 id.from names "cod", which is no field of r (did you mean code?)`}},
		{"id without series", "root r\nrecord r\nid base=x", []string{"m.sql:3:1 RBT7009 the id of r needs base and series together (minted ids read base-series-number)"}},
		{"by_value with on_metadata_conflict", "root r\nrecord r by_value conflict=first\nmeta field a integer", []string{
			"m.sql:2:19 RBT7011 on_metadata_conflict has no meaning with dedup: by_value, which does not compare metadata (remove on_metadata_conflict, or use dedup: content_id)"}},
		{"append with last", "mode append\nroot r\nrecord r content_id conflict=last", []string{
			"m.sql:3:21 RBT7012 on_metadata_conflict: last cannot be kept with mode: append, which never rewrites stored rows (use first, fail or quarantine, or mode: full_refresh)"}},
		{"append over metadata of by_value", "root r\nmode append\nrecord r\nref v v\nrecord v by_value\nfield a integer\nmeta field m integer", []string{
			"m.sql:2:6 RBT7012 mode: append cannot be kept: a repeated r can leave a v behind that nothing holds any more, and stored rows are never removed " + sweepHint}},
		{"append over records that are never one", "root r\nmode append\nrecord r\nref v v\nrecord v none\nfield a integer", []string{
			"m.sql:2:6 RBT7012 mode: append cannot be kept: a repeated r can leave a v behind that nothing holds any more, and stored rows are never removed " + sweepHint}},
		{"append over a list of records by value", "root r\nmode append\nrecord r by_value\nchild vs -> v\nrecord v\nfield a integer", []string{
			"m.sql:2:6 RBT7012 mode: append cannot be kept: a repeated r can leave a v behind that nothing holds any more, and stored rows are never removed " + sweepHint}},
		{"append over records in metadata", "root r\nmode append\nrecord r\nfield b integer\nmeta ref v v\nrecord v\nfield a integer", []string{
			"m.sql:2:6 RBT7012 mode: append cannot be kept: a repeated r can leave a v behind that nothing holds any more, and stored rows are never removed " + sweepHint}},
		{"family of unknown types", "root r\nrecord r\nfamily f r s", []string{`m.sql:3:12 RBT7001 family f names the record type "s", which is not declared (did you mean r?)`}},
		{"two families of minted ids", "root r\nrecord r\nid base=b series=1\nfamily f r\nfamily g r", []string{"m.sql:5:8 RBT7010 r mints ids and is in the families f and g (take it out of one of them)"}},
		{"no root", "record r\nrecord s", []string{"m.sql:1:1 RBT7008 the ingest has several record types and no root (say root: and a record type, or root_by:)"}},
		{"overlapping paths", "root r\nrecord r\nfield a json path=x\nfield b integer path=x.y\nfield c integer path=x..y", []string{
			"m.sql:4:17 RBT7007 b reads the key x, which another member reads already (read it once and derive the other in a model)",
			`m.sql:5:17 RBT7007 path of c: "x..y" is not a list of keys (keys joined with dots; a key that holds a dot stands in double quotes)`}},
		{"words", "root r\nrecord r sometimes\non_bad_record drop\nmax_rejects many\nunknown_fields captur\nrecord_path data", []string{
			`m.sql:2:10 RBT7006 dedup cannot be "sometimes" (one of: content_id, by_value, none)`, `m.sql:3:15 RBT7006 on_bad_record cannot be "drop" (one of: quarantine, fail)`,
			`m.sql:4:13 RBT7006 max_rejects cannot be "many" (for example 1000 or 0.1%)`, `m.sql:5:16 RBT7006 unknown_fields cannot be "captur" (did you mean capture?)`,
			`m.sql:6:13 RBT7007 input.record_path: "data" does not start with $ (for example $, $.data[*] or $.pages[*].items[*])`}},
		{"records that nothing can end", "root r\nrecord r\nref me r required\nref a a\nrecord a\nref b b required\nref x x required\nrecord b\nref a a required\nrecord x\nref r r\nref b b required", []string{
			"m.sql:3:5 RBT7014 reference me: no record can satisfy it, since each r needs another: r -> r (take `required` from one of them)",
			"m.sql:6:5 RBT7014 reference b: no record can satisfy it, since each a needs another: a -> b -> a (take `required` from one of them)"}},
		{"required metadata that nothing can end", "root r\nrecord r\nmeta ref m a required\nrecord a\nfield n integer\nmeta ref r r required", []string{
			"m.sql:3:10 RBT7014 reference m: no record can satisfy it, since each r needs another: r -> a -> r (take `required` from one of them)"}},
		{"the same member twice", "root r\nrecord r\nfield a integer\nchild a integer", []string{"m.sql:4:7 RBT7002 child a has the same name as a after normalising (rename one of them, and write its key under `path:`)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, list := Compile(parseSpec(c.src))
			if p != nil {
				t.Fatal("accepted")
			}
			var got []string
			for i, d := range list {
				s := fmt.Sprintf("%s %s %s", d.Pos, d.Code, d.Msg)
				if d.Hint != "" && !(i < len(c.want) && c.want[i] == s) && !strings.HasPrefix(d.Hint, "one of: boolean") {
					s += " (" + d.Hint + ")"
				}
				got = append(got, s)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOutputsAreKnownBeforeAByteIsRead(t *testing.T) {
	p := mustCompile(t, crystalSpec+"\nfamily people author")
	var got []string
	for _, o := range p.Outputs() {
		got = append(got, fmt.Sprintf("%s %s %s %s", o.Kind, o.Relation, o.Folder, o.Ref))
	}
	want := []string{
		"record m crystal ", "child m__tags tags tags", "child m__authors authors authors", "child m__notes notes notes",
		"record m__source source source", "record m__author author author", "record m__structure structure structure",
		"child m__structure__sites structure__sites structure.sites", "child m__structure__sites__props structure__sites__props structure.sites.props",
		"family m__people people people", "rejects m___rejects _rejects _rejects", "loads m___loads _loads _loads",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]lake.Column{{Name: "_parent_sid", Type: "BIGINT"}, {Name: "_parent_idx", Type: "INTEGER"}, {Name: "_idx", Type: "INTEGER"}, {Name: "k", Type: "VARCHAR"}},
		p.Outputs()[8].Columns); d != "" {
		t.Error(d)
	}
}

func TestHashOfTheDeclaration(t *testing.T) {
	base := mustCompile(t, crystalSpec).Hash()
	if moved := mustCompile(t, "\n\n"+strings.ReplaceAll(crystalSpec, "  field", "      field")).Hash(); moved != base {
		t.Error("moving lines changed the hash")
	}
	for _, change := range [][2]string{{"energy double", "energy float"}, {"structure required", "structure"}, {"root crystal", "unknown_fields capture\nroot crystal"}, {"record author", "record author none"}} {
		if mustCompile(t, strings.Replace(crystalSpec, change[0], change[1], 1)).Hash() == base {
			t.Errorf("%v did not change the hash", change)
		}
	}
}
