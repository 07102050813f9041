package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/materialize"
)

// StateKey is the key of the node's manifest under which an append keeps its
// state.
const StateKey = "ingest"

// Previous is what is published of an append model.
type Previous struct {
	// State is the manifest's value under StateKey.
	State json.RawMessage
	// Files are the published parts by folder, absolute, in the order of the
	// manifest; Rows their rows.
	Files map[string][]string
	Rows  map[string]int64
}

// state is what an append has to know of the loads before it. Everything that
// grows with files or records lies in parts beside it: the ledger of files and
// the keys of deduplicated types.
type state struct {
	Format      int              `json:"format"`
	Hash        string           `json:"hash"`
	Declaration json.RawMessage  `json:"declaration"`
	NextSID     map[string]int64 `json:"next_sid"` // by record type
	Loads       int64            `json:"loads"`
	Files       int64            `json:"files"`
}

// StateOf gives the state in a manifest that an append can build upon; false
// where the published load has none. A state without its ledger is a leftover of
// loads that another one has replaced.
func StateOf(m *lake.Manifest) (json.RawMessage, bool) {
	text, ok := m.Extra[StateKey]
	return text, ok && m.HasLedger()
}

// stateFormat is the version of state, ledger and keys that this rbt writes.
const stateFormat = 1

// Folders of the relations that only an append has, beside its ledger.
func keysFolder(t *recType) string    { return "_keys__" + t.name }
func updatesFolder(t *recType) string { return "_updates__" + t.name }

func keysColumns() []lake.Column {
	return []lake.Column{col("k", "UUID"), col("sid", "BIGINT"), col("m", "UUID")}
}

func updatesColumns() []lake.Column {
	return []lake.Column{col("_sid", "BIGINT"), col("entry", "BOOLEAN"), col("occurrences", "BIGINT"), col("_load_id", "BIGINT")}
}

// plan decides what a load reads: in an append the files that the ledger does
// not know. It returns the state that is built upon, nil for a load from
// scratch.
func (j *Job) plan(ctx context.Context, s materialize.Session) (*state, error) {
	p := j.Program
	if !p.appendMode || j.Previous == nil {
		j.stamps = make([]fileStamp, len(j.Files))
		return nil, nil
	}
	var st state
	err := json.Unmarshal(j.Previous.State, &st)
	if j.FullRefresh && (err != nil || st.Format != stateFormat) {
		// Nothing of it is needed; only the order of files is lost.
		j.stamps = make([]fileStamp, len(j.Files))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state of the ingest: %w", err)
	}
	if st.Format != stateFormat {
		return nil, diag.Errorf(diag.IngestChangedSpec, diag.Pos{}, "the stored state has the format %d, this rbt writes %d", st.Format, stateFormat).
			WithHint("run once with --full-refresh")
	}
	known, err := j.readLedger(ctx, s)
	if err != nil {
		return nil, err
	}
	if j.FullRefresh {
		j.orderAsKnown(known)
		return nil, nil
	}
	if st.Hash != p.hash {
		if err := compareDeclarations(st.Declaration, p.declaration); err != nil {
			return nil, err
		}
	}
	return &st, j.pickNew(ctx, known, &st)
}

// compareDeclarations refuses what an append cannot keep: ids and rows that are
// stored must come out again. A nullable field more changes none of them, nor
// do the policies for bad records.
func compareDeclarations(old, now []byte) error {
	var a, b map[string]any
	if err := json.Unmarshal(old, &a); err != nil {
		return fmt.Errorf("read stored declaration: %w", err)
	}
	if err := json.Unmarshal(now, &b); err != nil {
		return fmt.Errorf("read declaration: %w", err)
	}
	for _, d := range []map[string]any{a, b} {
		policies, _ := d["Policies"].(map[string]any)
		for _, k := range []string{"on_bad_record", "max_rejects", "type_mismatch", "format", "compression", "record_path", "csv"} {
			delete(policies, k)
		}
		dropDefaults(d)
	}
	where := difference(declPlace{}, a, b)
	if where == "" {
		return nil
	}
	return diag.Errorf(diag.IngestChangedSpec, diag.Pos{}, "the declaration differs from that of the stored records: %s", where).
		WithHint("an append can take in a new nullable field only; load everything anew with --full-refresh")
}

// dropDefaults takes out of the records what says no more than its absence.
func dropDefaults(declaration map[string]any) {
	records, _ := declaration["Records"].([]any)
	for i, r := range records {
		m, ok := r.(map[string]any)
		if !ok {
			continue
		}
		for key, usual := range map[string]string{"Dedup": "content_id", "OnMetadataConflict": "fail", "Identity": nameOf(r, i)} {
			if m[key] == usual {
				m[key] = ""
			}
		}
	}
}

// declPlace is where a difference of two declarations lies, in the words of the
// frontmatter; metadata says that it is a record's metadata, whose members stand
// there without a key for their kind.
type declPlace struct {
	text     string
	metadata bool
}

func (at declPlace) key(k string) declPlace {
	word := strings.ToLower(k)
	switch k {
	case "OnMetadataConflict":
		word = "on_metadata_conflict"
	case "RootBy":
		word = "root_by"
	case "Repeats":
		word = "unique"
	}
	switch {
	case k == "Policies", at.metadata && (k == "Fields" || k == "References" || k == "Children"):
		return at
	case at.text == "":
		return declPlace{text: word}
	}
	return declPlace{text: at.text + "." + word, metadata: k == "Metadata"}
}

func (at declPlace) item(name string) declPlace { return declPlace{text: at.text + "." + name} }

// difference names the first place in which two declarations differ, "" where
// an append can go on.
func difference(at declPlace, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Sorted(mapKeys(x, y))
		for _, k := range keys {
			if k == "Fields" {
				if d := fieldsDiffer(at, x, y); d != "" {
					return d
				}
				continue
			}
			if d := difference(at.key(k), x[k], y[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			if d := difference(at.item(nameOf(x[i], i)), x[i], y[i]); d != "" {
				return d
			}
		}
		return ""
	default:
		if a == b {
			return ""
		}
		return fmt.Sprintf("%s is %v and was %v", at.text, shownValue(at, b), shownValue(at, a))
	}
	return fmt.Sprintf("%s was added, removed or replaced", at.text)
}

// shownValue is how the frontmatter writes a value.
func shownValue(at declPlace, v any) string {
	number, _ := strconv.Atoi(fmt.Sprint(v))
	switch {
	case at.text == "unknown_fields":
		return []string{"ignore", "fail", "quarantine", "capture"}[min(max(number, 0), 3)]
	case at.text == "occurrences":
		return []string{"count", "none", "table"}[min(max(number, 0), 2)]
	case strings.HasSuffix(at.text, ".id.unique"):
		return strconv.FormatBool(v != true)
	case v == nil || v == "":
		return "absent"
	}
	return fmt.Sprint(v)
}

func mapKeys(maps ...map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, m := range maps {
			for k := range m {
				if !seen[k] {
					seen[k] = true
					if !yield(k) {
						return
					}
				}
			}
		}
	}
}

func nameOf(v any, i int) string {
	if m, ok := v.(map[string]any); ok {
		if name, ok := m["Name"].(string); ok {
			return name
		}
	}
	return fmt.Sprint(i)
}

// fieldsDiffer lets nullable fields come in, but not the first metadata field of
// a record: until then its metadata was not compared.
func fieldsDiffer(at declPlace, a, b map[string]any) string {
	fields := at.key("Fields")
	x, _ := a["Fields"].([]any)
	y, _ := b["Fields"].([]any)
	old := map[string]any{}
	for i, f := range x {
		old[nameOf(f, i)] = f
	}
	for i, f := range y {
		name := nameOf(f, i)
		was, ok := old[name]
		if ok {
			delete(old, name)
			if d := difference(fields.item(name), was, f); d != "" {
				return d
			}
			continue
		}
		m, _ := f.(map[string]any)
		if required, _ := m["Required"].(bool); required {
			return fields.item(name).text + " is new and required"
		}
		if at.metadata && len(x) == 0 && a["References"] == nil && a["Children"] == nil {
			return fields.item(name).text + " is the first metadata of its record"
		}
	}
	if len(old) > 0 {
		return fields.item(slices.Sorted(mapKeys(old))[0]).text + " is gone"
	}
	return ""
}

// nextState is what the manifest keeps after this load.
func (m *merger) nextState(prev *state) (json.RawMessage, error) {
	st := state{Format: stateFormat, Hash: m.p.hash, Declaration: bytes.Clone(m.p.declaration), NextSID: map[string]int64{}, Loads: m.j.LoadID, Files: int64(len(m.j.Files))}
	if prev != nil {
		st.Files += prev.Files
	}
	for _, t := range m.p.types {
		st.NextSID[t.name] = m.base[t.ord] + m.fresh[t.ord]
	}
	text, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode state of the ingest: %w", err)
	}
	return text, nil
}

// damage names the stored part that made a load fail, where one cannot be read:
// the engine often says what is wrong with a file and not with which.
func (j *Job) damage(ctx context.Context, s materialize.Session, err error) error {
	var known diag.Diagnostic
	if err == nil || j.Previous == nil || ctx.Err() != nil || errors.As(err, &known) {
		return err
	}
	for _, folder := range slices.Sorted(maps.Keys(j.Previous.Files)) {
		for _, file := range j.Previous.Files[folder] {
			scan := "SELECT count(h) FROM (SELECT hash(t) AS h FROM " + readParquet([]string{file}) + " t)"
			if bad := s.Query(ctx, scan, func([]any) error { return nil }); bad != nil && ctx.Err() == nil {
				return diag.Errorf(diag.LakeDamaged, diag.Pos{File: file}, "the stored part cannot be read: %v", bad).
					WithHint("restore the file from a backup of the lake, or load everything anew with --full-refresh")
			}
		}
	}
	return err
}
