package diag

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRender(t *testing.T) {
	text := func(file string) (string, bool) {
		return "select 'é', x\r\n\tfrom t\n" + strings.Repeat("a", 200) + "b", file == "m.sql"
	}
	cases := []struct {
		name string
		d    Diagnostic
		want string
	}{
		{"caret after a wide character", Errorf("RBT0001", Pos{"m.sql", 1, 13}, "no x").WithHint("write y\nor z"),
			"error[RBT0001]: no x\n  --> m.sql:1:13\n   1 | select 'é', x\n     |             ^\n  help: write y\n        or z\n"},
		{"tabs stay tabs under the line", Diagnostic{Pos: Pos{"m.sql", 2, 2}, Width: 4, Msg: "m", Severity: Warning},
			"warning: m\n  --> m.sql:2:2\n   2 | \tfrom t\n     | \t^^^^\n"},
		{"no column, no caret", Diagnostic{Pos: Pos{File: "m.sql", Line: 2}, Msg: "m"}, "error: m\n  --> m.sql:2\n   2 | \tfrom t\n"},
		{"a place past the end of the line", Diagnostic{Pos: Pos{"m.sql", 2, 99}, Msg: "m"}, "error: m\n  --> m.sql:2:99\n   2 | \tfrom t\n"},
		{"a long line is cut around the caret", Diagnostic{Pos: Pos{"m.sql", 3, 201}, Msg: "m"},
			"error: m\n  --> m.sql:3:201\n   3 | " + strings.Repeat("a", 80) + "b\n     | " + strings.Repeat(" ", 80) + "^\n"},
		{"a file that cannot be had", Errorf("", Pos{"other.sql", 1, 1}, "m").WithNote(Pos{"m.sql", 2, 7}, "here"),
			"error: m\n  --> other.sql:1:1\n  note: m.sql:2:7: here\n   2 | \tfrom t\n     | \t     ^\n"},
		{"no place", Errorf("RBT0001", Pos{}, "m").WithNote(Pos{}, "more"), "error[RBT0001]: m\n  note: more\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Render(c.d, text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	candidates := []string{"orders", "order_items", "customers", "x"}
	for word, want := range map[string]string{
		"ordres": "orders", "ORDERS": "orders", "custmers": "customers", "order_item": "order_items", "y": "x", "payments": "", "": "x",
	} {
		if got := Nearest(word, candidates); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("ac", []string{"ab", "aa"}); got != "aa" {
		t.Errorf("a tie goes to the first by alphabet, not %q", got)
	}
}

func TestLineCol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aé\n日"))).Draw(t, "text")
		line, col := 1, 1
		for i, r := range text {
			if l, c := LineCol(text, i); l != line || c != col {
				t.Fatalf("LineCol(%q, %d) = %d:%d, want %d:%d", text, i, l, c, line, col)
			}
			if col++; r == '\n' {
				line, col = line+1, 1
			}
		}
		if l, c := LineCol(text, len(text)+5); l != line || c != col {
			t.Fatalf("past the end: %d:%d, want %d:%d", l, c, line, col)
		}
	})
}

func TestListSort(t *testing.T) {
	a, b := Errorf("RBT0002", Pos{"a", 1, 1}, "x"), Errorf("RBT0001", Pos{"a", 1, 1}, "x")
	c := Errorf("RBT0001", Pos{"a", 0, 0}, "x")
	if diff := cmp.Diff(List{c, b, a}, List{a, b, a, c}.Sort()); diff != "" {
		t.Error(diff)
	}
	if err := (List{{Severity: Warning, Msg: "w"}}).Err(); err != nil {
		t.Errorf("warnings alone are no error: %v", err)
	}
	if err := (List{a, c}).Err(); err == nil || err.Error() != "a: x [RBT0001]\na:1:1: x [RBT0002]" {
		t.Errorf("as an error: %v", err)
	}
}

// TestLineEnds says that a lone CR ends a line as LF and CR LF do, for places and
// for the lines that are shown.
func TestLineEnds(t *testing.T) {
	const src = "a\rbc\r\n\rdé\nf"
	for _, c := range []struct{ offset, line, col int }{
		{0, 1, 1}, {1, 1, 2}, {2, 2, 1}, {4, 2, 3}, {5, 2, 3}, {6, 3, 1}, {7, 4, 1}, {8, 4, 2}, {10, 4, 3}, {11, 5, 1}, {12, 5, 2}, {99, 5, 2},
	} {
		if line, col := LineCol(src, c.offset); line != c.line || col != c.col {
			t.Errorf("offset %d: %d:%d, want %d:%d", c.offset, line, col, c.line, c.col)
		}
	}
	for n, want := range []string{"a", "bc", "", "dé", "f"} {
		if got, ok := lineOf(src, n+1); got != want || !ok {
			t.Errorf("line %d: %q %t, want %q", n+1, got, ok, want)
		}
	}
	if _, ok := lineOf(src, 6); ok {
		t.Error("there is a line 6")
	}
}
