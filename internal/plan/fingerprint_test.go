package plan

import (
	"testing"

	"rbt/internal/lake"
)

// TestFingerprintStays says that a lake that was built before is not built again: the
// value is that of earlier versions.
func TestFingerprintStays(t *testing.T) {
	in := lake.Inputs{
		SQL: "abc", Engine: "e", Config: map[string]string{"a": "1", "b": "2"}, Parents: map[string]string{"x": "y"},
		Sources: map[string]lake.FileStamp{"f": {Size: 1, Mtime: -2, Ctime: 3}},
	}
	if got, want := Fingerprint(in), "ce3449b7de2c3089ec6c9677bca48f5e"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
