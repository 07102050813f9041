package lake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGreatestValues: the values hold for the files over which they were taken.
func TestGreatestValues(t *testing.T) {
	files := func() []File {
		return []File{{Path: "m.parts/a", Bytes: 1, Commit: "c1"}, {Path: "m.parts/b", Bytes: 2, Commit: "c2"}}
	}
	values := map[string]string{"k": "5", "d": ""}
	of := func(change func(o *Output)) map[string]string {
		o := Output{Relation: "m", Files: files(), Greatest: NewGreatest(files(), values)}
		change(&o)
		return o.GreatestValues()
	}
	if diff := cmp.Diff(values, of(func(*Output) {})); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for name, change := range map[string]func(o *Output){
		"none are known":     func(o *Output) { o.Greatest = nil },
		"a part less":        func(o *Output) { o.Files = o.Files[:1] },
		"a part more":        func(o *Output) { o.Files = append(o.Files, File{Path: "m.parts/c"}) },
		"another part":       func(o *Output) { o.Files[1].Path = "m.parts/c" },
		"another size":       func(o *Output) { o.Files[1].Bytes = 3 },
		"another commit":     func(o *Output) { o.Files[0].Commit = "c2" },
		"another order":      func(o *Output) { o.Files[0], o.Files[1] = o.Files[1], o.Files[0] },
		"no files":           func(o *Output) { o.Files = nil },
		"taken over nothing": func(o *Output) { o.Greatest = NewGreatest(nil, values) },
	} {
		if got := of(change); got != nil {
			t.Errorf("%s: %v is believed", name, got)
		}
	}
}

func TestGreaterOf(t *testing.T) {
	a := map[string]string{"x": "9", "n": "-10", "null": "", "one": "", "big": "18446744073709551615", "a": "1", "bad": "x"}
	b := map[string]string{"x": "10", "n": "-9", "null": "", "one": "3", "big": "9223372036854775807", "b": "1", "bad": "1"}
	want := map[string]string{"x": "10", "n": "-9", "null": "", "one": "3", "big": "18446744073709551615"}
	for _, pair := range [][2]map[string]string{{a, b}, {b, a}} {
		if diff := cmp.Diff(want, GreaterOf(pair[0], pair[1])); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
