package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// testSession is a session on an engine of the test's own.
func testSession(t testing.TB) *session {
	t.Helper()
	d, err := openDatabase(context.Background(), project.Engine{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := d.session(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestOneQuery(t *testing.T) {
	type result struct {
		Text   string // of the statement
		Code   diag.Code
		Offset int
	}
	tests := []struct {
		sql  string
		want result
	}{
		{"select 1", result{Text: "select 1"}},
		{"select 1;", result{Text: "select 1"}},
		{"select 1 as a -- the end", result{Text: "select 1 as a"}},
		{"select 1 as a; -- trailing note", result{Text: "select 1 as a"}},
		{"select 1 as a; /* x */ ;", result{Text: "select 1 as a"}},
		{";;select 1", result{Text: "  select 1"}},
		{"-- banner\n/* more */\nwith a as (select 1 as i) select * from a", result{Text: "         \n          \nwith a as (select 1 as i) select * from a"}},
		{"select /* a /* nested ; */ ; */ 1", result{Text: "select                          1"}},
		{"select 'a;''b' as \"x;\"\"y\"", result{Text: "select 'a;''b' as \"x;\"\"y\""}},
		{"select 'a\\', 1", result{Text: "select 'a\\', 1"}},
		{"select e'a\\';', 1", result{Text: "select e'a\\';', 1"}},
		{"select e'a'\n'\\'; '", result{Text: "select e'a'\n'\\'; '"}},
		{"select e'a' -- c\n'\\'; '", result{Text: "select e'a' -- c\n'\\'; '"}},
		{"select $$a;b$$, $t$;$$;$t$", result{Text: "select $$a;b$$, $t$;$$;$t$"}},
		{"select a$b$c", result{Text: "select a$b$c"}},
		{"select 2 -/**/- 3", result{Text: "select 2 -    - 3"}},
		{"select 1 --\r, 2", result{Text: "select 1    , 2"}},
		{"\ufeffselect\u00a01", result{Text: "   select  1"}},
		{"((select 1) union all (select 2))", result{Text: "((select 1) union all (select 2))"}},
		{"pivot t on a", result{Text: "pivot t on a"}},
		{"", result{Code: diag.SQLEmpty}},
		{"-- nothing\n;", result{Code: diag.SQLEmpty}},
		{"select 1; select 2", result{Code: diag.SQLTwoStatements, Offset: 10}},
		{"copy (select 1) to 'x.parquet'; select 1", result{Code: diag.SQLNotAQuery, Offset: 0}},
		{"create table t as select 1; select * from t", result{Code: diag.SQLNotAQuery, Offset: 0}},
		{"select '\\'; copy (select 1) to 'x'; --'", result{Code: diag.SQLTwoStatements, Offset: 12}},
		{"select ae'\\'; copy (select 1) to 'x'; --'", result{Code: diag.SQLTwoStatements, Offset: 14}},
		{"select 1 -- \r; copy (select 1) to 'x'", result{Code: diag.SQLTwoStatements, Offset: 15}},
		{"  attach 'dbname=x password=p4ss' as db (type postgres)", result{Code: diag.SQLNotAQuery, Offset: 2}},
		{"( insert into t values (1) )", result{Code: diag.SQLNotAQuery, Offset: 2}},
		{"(", result{Code: diag.SQLNotAQuery, Offset: 0}},
		{"1", result{Code: diag.SQLNotAQuery, Offset: 0}},
		{"select ?", result{Code: diag.SQLParameter, Offset: 7}},
		{"select $1", result{Code: diag.SQLParameter, Offset: 7}},
		{"select $name, 2", result{Code: diag.SQLParameter, Offset: 7}},
		{"select '?' /* ? */, \"?\"", result{Text: "select '?'        , \"?\""}},
		{"select 'abc", result{Code: diag.SQLSyntax, Offset: 7}},
		{"select e'abc\\'", result{Code: diag.SQLSyntax, Offset: 7}},
		{"select \"abc", result{Code: diag.SQLSyntax, Offset: 7}},
		{"select $$abc", result{Code: diag.SQLSyntax, Offset: 7}},
		{"select /* /* */ 1", result{Code: diag.SQLSyntax, Offset: 7}},
		{"select 1\x00; select 2", result{Code: diag.SQLSyntax, Offset: 8}},
		{"select e'\\'a\u00a0'", result{Code: diag.SQLSyntax, Offset: 7}},
	}
	for _, test := range tests {
		st, err := oneQuery(test.sql)
		got := result{Text: st.text}
		if p := (*sqlProblem)(nil); errors.As(err, &p) {
			got = result{Code: p.code, Offset: p.offset}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("oneQuery(%q) (-want +got):\n%s", test.sql, diff)
		}
	}
}

func TestRefusalShowsNoText(t *testing.T) {
	_, err := oneQuery("attach 'dbname=x password=p4ss' as db (type postgres)")
	want := "a model is one query; this is a statement that begins with ATTACH"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestNormalised(t *testing.T) {
	same := []string{
		"select a, 'x  y' from t where a<=3",
		"select  a ,\n 'x  y' -- note\nfrom /* c */ t where a <= 3;",
		"-- top\nselect a,'x  y' from t where a<=3 ; -- end",
	}
	other := []string{
		"select a, 'x y' from t where a<=3",
		"select A, 'x  y' from t where a<=3",
		"select a, 'x  y' from t where a<=-3",
	}
	normal := func(sql string) string {
		st, err := oneQuery(sql)
		if err != nil {
			t.Fatal(err)
		}
		return st.normalised()
	}
	want := normal(same[0])
	for _, sql := range same[1:] {
		if got := normal(sql); got != want {
			t.Errorf("normalised(%q) = %q, want %q", sql, got, want)
		}
	}
	for _, sql := range other {
		if got := normal(sql); got == want {
			t.Errorf("normalised(%q) is that of another text", sql)
		}
	}
}

// statementCount says how many statements DuckDB sees: 1, 2 (for more than one)
// or 0 where it refuses the text. Nothing is executed.
func statementCount(t testing.TB, s *session, sql string) int {
	t.Helper()
	count := 0
	err := s.conn.Raw(func(c any) error {
		p, err := c.(*duckdb.Conn).Prepare(sql)
		switch {
		case err == nil:
			count = 1
			return p.Close()
		case isEngineError(err) && parseEngineError(err).Type != "Parser":
			count = 1
		case strings.Contains(err.Error(), "multi-statement"):
			count = 2
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// pieces are the parts from which odd texts are made: every way in which a
// scanner and the engine's lexer could come to disagree.
var pieces = []string{
	"select ", "1", "a", "e", "E", "x", "U&", "b", "n", "'", "''", "\\", "\\'", "\"", "\"\"", "$", "$$", "$t$", "$1", "?", ";", ";", "--", "/*", "*/",
	"\n", "\r", " ", "\t", "\f", "\v", "\u00a0", "\u2003", "\u200b", "\u200d", "\u2060", "\ufeff", "ä", "日", "-", "+", "*", "/", ".", "..", ",", "(", ")", "[", "]", "{", "}", ":",
	"1_0", "1e", "1e5", "0x", "copy (select 1) to '/nonexistent/x'", "from ", "as ", "`", "@", "#", "|", "\x00", "\xff", "\xc2",
}

func checkAgreement(t testing.TB, s *session, sql string) {
	t.Helper()
	st, err := oneQuery(sql)
	if err != nil {
		return
	}
	if st.mentions("pivot", "pivot_wider") {
		return
	}
	if n := statementCount(t, s, st.text); n > 1 {
		t.Fatalf("oneQuery accepts %q, in which the engine sees several statements", sql)
	}
	if n := statementCount(t, s, sql); n > 1 {
		t.Fatalf("oneQuery accepts %q, in which the engine sees several statements", sql)
	}
	if len(st.text) > len(sql) {
		t.Fatalf("the statement of %q is longer than the text", sql)
	}
	for _, tok := range st.tokens {
		if st.text[tok.start:tok.end] != sql[tok.start:tok.end] {
			t.Fatalf("token %q of %q is not the text", st.text[tok.start:tok.end], sql)
		}
	}
	again, err := oneQuery(st.normalised())
	if err != nil || again.normalised() != st.normalised() {
		t.Fatalf("normalising %q twice gives %q after %q (%v)", sql, again.normalised(), st.normalised(), err)
	}
}

// TestScannerAgreesWithEngine: what the scanner takes for one statement, the
// engine never takes for several.
func TestScannerAgreesWithEngine(t *testing.T) {
	s := testSession(t)
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 30).Draw(rt, "pieces")
		checkAgreement(t, s, "select "+strings.Join(parts, ""))
	})
}

// TestScannerAcceptsWhatEngineAccepts: odd but right queries are not refused.
func TestScannerAcceptsWhatEngineAccepts(t *testing.T) {
	s := testSession(t)
	for _, sql := range []string{
		"select $ä$x$ä$", "select $_1$a;$_1$", "select 1_000, 1e5, 1.5e-3, .5, 1.", "select [1,2,3][1:2]", "select {'a': 1}.a",
		"select '$$' , $$'$$", "select @1", "select x'ab'", "select b'101', n'abc'", "select e'\\\\'", "select 1 as ä, 2 as 日本",
		"from (select 1)", "table duckdb_constraints", "values (1)", "summarize select 1", "describe select 1", "unpivot (select 1 a, 2 b) on a, b",
		"select list_transform([1], x -> x + 1)", "select list_transform([1], lambda x: x + 1)", "select x: 1", "select 'a'\n'b'",
	} {
		st, err := oneQuery(sql)
		if err != nil {
			t.Errorf("oneQuery(%q): %v", sql, err)
			continue
		}
		if err := s.checkQuery(context.Background(), st); err != nil {
			t.Errorf("checkQuery(%q): %v", sql, err)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, p := range pieces {
		f.Add("select " + p)
	}
	f.Add("select e'a' -- c\n'\\'; copy (select 1) to 'x'; --'")
	f.Add("select $a$ $a$; select 1")
	s := testSession(f)
	f.Fuzz(func(t *testing.T, sql string) { checkAgreement(t, s, sql) })
}
