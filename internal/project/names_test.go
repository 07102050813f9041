package project

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNameProblem(t *testing.T) {
	for name, ok := range map[string]bool{
		"orders": true, "Orders_2": true, "größe": true, "注文": true, "_x": true, "2024": true,
		"": false, "a b": false, "a.b": false, "a-b": false, "a/b": false, `a\b`: false, "a:b": false, "CON": false, "nul": false,
		"lpt1": false, "com10": true, "gro\u0308ße": false, "a\x00": false, strings.Repeat("x", 201): false, "a ": false,
	} {
		if problem := nameProblem(name); (problem == "") != ok {
			t.Errorf("%q: got %q", name, problem)
		}
	}
}

func TestFolderProblem(t *testing.T) {
	for path, ok := range map[string]bool{
		"": true, "gold": true, "a/b/c": true, "Straße/2024": true, "a b": true,
		"/abs": false, "../x": false, "a/../b": false, "a//b": false, "a/./b": false, ".rbt": false, "a/.hidden": false, "con": false,
		"a/NUL.txt": false, "x.": false, "x ": false, "a:b": false, "m.parquet": false, "m.parts": false, "a*": false, "a\x01": false, "_rbt_x": false,
	} {
		if problem := folderProblem(path); (problem == "") != ok {
			t.Errorf("%q: got %q", path, problem)
		}
	}
}

// TestUnknownType: a misspelt name is found at any depth, and nothing else is
// taken for one.
func TestUnknownType(t *testing.T) {
	for text, want := range map[string]string{
		"BIGINT": "", "bigint": "", "": "", "DECIMAL(18, 3)": "", "double precision": "", "INT[3][]": "", "timestamp with time zone": "",
		`STRUCT(a INT, "b c" VARCHAR[])`: "", "ENUM('a', 'it''s')": "", "MAP(VARCHAR, INT[])": "", "ROW(INT, TIME WITH TIME ZONE)": "",
		"STRUCT(bigintt INT)": "", "STRUCT(at TIMESTAMP WITH TIME ZONE, n DECIMAL(9,2))[]": "", "UNION(a INT, b MAP(INT, STRUCT(x DATE)))": "",
		"character varying(10)": "", `"my type"`: "", `"NULL"`: "", "GEOMETRY('EPSG:4326')": "", "STRUCT(date DATE)": "", "BIT(3)": "",
		"BIGINTT": "BIGINTT", "varchr(10)": "VARCHR", "integr[]": "INTEGR", "STRUCT(a INT, b INTT)": "INTT", "STRUCT(a STRUCT(b VARCHARR))": "VARCHARR",
		"MAP(VARCHAR, INTT)": "INTT", "MAP(INTT, VARCHAR)": "INTT", "UNION(a DATEE[])": "DATEE", "5": "5", "ROW(INTT)": "INTT",
	} {
		if got := unknownType(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(STRUCT|MAP|ROW|INT)?[a-z0-9 ()\[\],'"]{0,20}`).Draw(t, "type")
		if typeProblem(text) == "" {
			unknownType(text)
		}
	})
}

// TestTypeProblem: what stands in SQL unquoted can end no expression.
func TestTypeProblem(t *testing.T) {
	for text, ok := range map[string]bool{
		"BIGINT": true, "DECIMAL(18, 3)": true, "double[]": true, "INT[3][]": true, "timestamp with time zone": true,
		`STRUCT(a INT, "b c" VARCHAR[])`: true, "ENUM('a', 'it''s')": true, "MAP(VARCHAR, INT)": true, "": true,
		"INT; drop": false, "INT)": false, "(INT": false, "INT -- x": false, "INT /* x */": false, "a[)": false, "ENUM('a": false,
		`"a`: false, "a=b": false, "a.b": false, "INT\n": false, "$1": false, "?": false,
	} {
		if problem := typeProblem(text); (problem == "") != ok {
			t.Errorf("%q: got %q", text, problem)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9 ()\[\],'";$-]{0,20}`).Draw(t, "type")
		if typeProblem(text) != "" {
			return
		}
		depth := 0
		for i := 0; i < len(text); i++ {
			switch c := text[i]; c {
			case '\'', '"':
				i = quotedEnd(text, i)
			case '(', '[':
				depth++
			case ')', ']':
				depth--
			case ';', '$', '-':
				t.Fatalf("%q passes with %q outside of quotes", text, c)
			}
			if depth < 0 {
				t.Fatalf("%q closes what it does not open", text)
			}
		}
		if depth != 0 {
			t.Fatalf("%q stays open", text)
		}
	})
}

func TestSizeProblem(t *testing.T) {
	for text, ok := range map[string]bool{
		"80%": true, "4GB": true, "512 MiB": true, "1.5TB": true, "2gb": true,
		"": false, "4": false, "GB": false, "4XB": false, "-1GB": false, "4GB; x": false, "lots": false,
	} {
		if problem := sizeProblem(text); (problem == "") != ok {
			t.Errorf("%q: got %q", text, problem)
		}
	}
}
