package project

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rbt/internal/diag"
	"rbt/internal/jinja"
	"rbt/internal/memory"
)

func someRecalled() recalled {
	dict := jinja.NewDict()
	// Text is always a valid key.
	_ = dict.Set("k", jinja.NewList(int64(1), "x", 2.5, nil, true))
	one := "1"
	return recalled{
		Model: Model{
			Name: "m", File: "models/m.sql", Materialization: View, Tags: []string{"a", ""}, Meta: map[string]any{"d": dict, "none": nil},
			Columns: []Column{{Name: "id", Type: "BIGINT", Pos: diag.Pos{File: "models/m.sql", Line: 3, Col: 2}}},
			Config:  map[string]any{"tags": []string{"a"}, "enabled": false, "docs": map[string]any{}}, ContractEnforced: true,
			ConfigPos: map[string]diag.Pos{"tags": {File: "models/m.sql", Line: 1}, "enabled": {File: "models/m.sql", Line: 2, Col: 7}, "none": {}}, Docs: map[string]any{},
		},
		Tests: []Test{{Kind: "accepted_values", Columns: []string{"id"}, Severity: diag.Warning, Limit: -1,
			Args: TestArgs{Values: []*string{&one, nil}, MaxAge: -5, Ref: Ref{Node: "n"}}, WarnIf: &Threshold{Op: ">", Number: 0.5, Percent: true}}},
	}
}

// TestRecalledRoundTrip says that what is read is what was written, down to nil
// and empty.
func TestRecalledRoundTrip(t *testing.T) {
	want := someRecalled()
	b, err := appendValue(nil, reflect.ValueOf(want))
	if err != nil {
		t.Fatal(err)
	}
	r := readerOf(string(b))
	got := read[recalled](r)
	options := cmp.Options{cmpopts.IgnoreUnexported(Model{}, Test{}, TestArgs{}), cmp.AllowUnexported(jinja.List{}),
		cmp.Comparer(func(a, b *jinja.Dict) bool { return a.Len() == b.Len() && printed(goText(a)) == printed(goText(b)) })}
	if diff := cmp.Diff(want, got, options); diff != "" || !r.Done() {
		t.Errorf("done %t, -want +got:\n%s", r.Done(), diff)
	}
	for cut := range len(b) {
		short := readerOf(string(b[:cut]))
		if read[recalled](short); !short.Bad() {
			t.Errorf("%d of %d bytes are taken for the whole", cut, len(b))
		}
	}
	if _, err := appendValue(nil, reflect.ValueOf([]any{jinja.Tuple{}})); err == nil {
		t.Error("a tuple is written")
	}
}

// FuzzRecalled says that no content of the file does harm.
func FuzzRecalled(f *testing.F) {
	b, err := appendValue(nil, reflect.ValueOf(someRecalled()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("\x08\x08\x08")
	f.Fuzz(func(t *testing.T, text string) {
		read[recalled](readerOf(text))
		read[Found](readerOf(text))
		r := &recall{}
		r.read(recallMagic + text + memory.Sum(text))
		for i := range r.entries {
			e := &r.entries[i]
			r.model(&modelFile{foundFile: foundFile{rel: e.file}, m: &Model{}, entry: e, source: e.source})
		}
	})
}
