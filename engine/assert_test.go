package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

var clock = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func spelled(s string) *string { return &s }

func counted(t testing.TB, s *session, c check, limit int) (failures, checked int64) {
	t.Helper()
	one := func(query string) (n int64) {
		if err := s.Query(context.Background(), query, func(v []any) error { n = v[0].(int64); return nil }); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	return one(c.Count(limit)), one(c.Checked)
}

func TestAssertionCounts(t *testing.T) {
	db, err := openDatabase(context.Background(), project.Engine{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := db.session(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sql := range []string{
		`CREATE TABLE parent(id BIGINT)`, `INSERT INTO parent VALUES (1), (2), (NULL)`,
		`CREATE TABLE data(id BIGINT, "a b" VARCHAR, d DECIMAL(9,2), f DOUBLE, ok BOOLEAN, day DATE, "at" TIMESTAMP, l INTEGER[])`,
		`INSERT INTO data VALUES
			(1, 'it''s', 1.50, 1.0, true, '2026-03-01', '2026-03-04 11:00:00', [1]),
			(2, '007', 2.25, 'nan', false, '2026-03-02', NULL, [1]),
			(2, 'é', NULL, 'inf', NULL, '2026-03-04', '2026-03-01 00:00:00', NULL),
			(NULL, NULL, -1.00, NULL, true, NULL, NULL, [])`,
		`CREATE TABLE void AS FROM data WHERE false`,
	} {
		if err := s.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	columns := []lake.Column{{Name: "id", Type: "BIGINT"}, {Name: "a b", Type: "VARCHAR"}, {Name: "d", Type: "DECIMAL(9,2)"}, {Name: "f", Type: "DOUBLE"},
		{Name: "ok", Type: "BOOLEAN"}, {Name: "day", Type: "DATE"}, {Name: "at", Type: "TIMESTAMP"}, {Name: "l", Type: "INTEGER[]"}}
	on := func(kind string, args project.TestArgs, columns ...string) project.Test {
		return project.Test{Kind: kind, Node: "data", Columns: columns, Args: args}
	}
	cases := []struct {
		name              string
		test              project.Test
		failures, checked int64
		void              int64 // failures on a table without rows
	}{
		{"not_null", on("not_null", project.TestArgs{}, "id"), 1, 4, 0},
		{"not_null quoted", on("not_null", project.TestArgs{}, "A B"), 1, 4, 0},
		{"not_null NaN is set", on("not_null", project.TestArgs{}, "f"), 1, 4, 0},
		{"not_null nested", on("not_null", project.TestArgs{}, "l"), 1, 4, 0},
		{"unique", on("unique", project.TestArgs{}, "id"), 1, 3, 0},
		{"unique passes", on("unique", project.TestArgs{}, "a b"), 0, 3, 0},
		{"unique composite ignores NULL keys", on("unique", project.TestArgs{}, "id", "d"), 0, 2, 0},
		{"unique nested", on("unique", project.TestArgs{}, "l"), 1, 3, 0},
		{"accepted text keeps its spelling", on("accepted_values", project.TestArgs{Values: []*string{spelled("it's"), spelled("007"), nil}}, "a b"), 1, 3, 0},
		{"accepted text that looks like a number", on("accepted_values", project.TestArgs{Values: []*string{spelled("7"), spelled("it's"), spelled("é")}}, "a b"), 1, 3, 0},
		{"accepted integers", on("accepted_values", project.TestArgs{Values: []*string{spelled("002"), spelled("3")}}, "id"), 1, 3, 0},
		{"accepted decimals", on("accepted_values", project.TestArgs{Values: []*string{spelled("1.5"), spelled("-1")}}, "d"), 1, 3, 0},
		{"accepted doubles", on("accepted_values", project.TestArgs{Values: []*string{spelled("nan"), spelled("1e0")}}, "f"), 1, 3, 0},
		{"accepted booleans", on("accepted_values", project.TestArgs{Values: []*string{spelled("true")}}, "ok"), 1, 3, 0},
		{"accepted dates", on("accepted_values", project.TestArgs{Values: []*string{spelled("2026-03-01")}}, "day"), 2, 3, 0},
		{"relationships", on("relationships", project.TestArgs{To: "parent", Field: "id"}, "id"), 0, 3, 0},
		{"range integers by a fraction", on("range", project.TestArgs{Min: spelled("1.5")}, "id"), 1, 3, 0},
		{"range beyond the type", on("range", project.TestArgs{Max: spelled("99999999999999999999")}, "id"), 0, 3, 0},
		{"range beyond every decimal", on("range", project.TestArgs{Max: spelled("100000000000000000000000000000000000000"), Min: spelled("-99999999999999999999999999999999999999")}, "d"), 0, 3, 0},
		{"accepted values of 38 digits", on("accepted_values", project.TestArgs{Values: []*string{spelled("99999999999999999999999999999999999999")}}, "id"), 3, 3, 0},
		{"range finer than the scale", on("range", project.TestArgs{Max: spelled("2.2499")}, "d"), 1, 3, 0},
		{"range inclusive", on("range", project.TestArgs{Min: spelled("-1"), Max: spelled("2.25")}, "d"), 0, 3, 0},
		{"range exclusive", on("range", project.TestArgs{Min: spelled("-1"), Max: spelled("2.25"), ExclusiveMin: true, ExclusiveMax: true}, "d"), 2, 3, 0},
		{"range NaN is in no range", on("range", project.TestArgs{Min: spelled("0")}, "f"), 1, 3, 0},
		{"range dates", on("range", project.TestArgs{Min: spelled("2026-03-02")}, "day"), 1, 3, 0},
		{"row_count", on("row_count", project.TestArgs{Min: spelled("1"), Max: spelled("4")}), 0, 4, 1},
		{"row_count equal_to", on("row_count", project.TestArgs{EqualTo: "parent"}), 1, 4, 1},
		{"expression NULL is no violation", on("expression", project.TestArgs{SQL: "d > 0 -- positive"}), 1, 4, 0},
		{"expression text false", on("expression", project.TestArgs{SQL: "CASE WHEN id = 1 THEN 'false' ELSE 'true' END"}), 1, 4, 0},
		{"matches", on("matches", project.TestArgs{Pattern: "^[0-9]+$"}, "a b"), 2, 3, 0},
		{"freshness", on("freshness", project.TestArgs{MaxAge: 2 * time.Hour}, "at"), 0, 4, 1},
		{"freshness stale", on("freshness", project.TestArgs{MaxAge: time.Minute}, "at"), 1, 4, 1},
		{"not_constant", on("not_constant", project.TestArgs{}, "id"), 0, 3, 0},
		{"sequence has a gap and a repeat", on("sequence", project.TestArgs{}, "id"), 1, 3, 0},
		{"sequence that falls", on("sequence", project.TestArgs{Value: spelled("-1")}, "id"), 1, 3, 0},
		{"sequence of days", on("sequence", project.TestArgs{Value: spelled("1 day")}, "day"), 1, 3, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, from := range []string{"data", "void"} {
				got, err := genericCheck(&c.test, subject{from: from, columns: columns}, "parent", clock)
				if err != nil {
					t.Fatal(err)
				}
				want := [2]int64{c.failures, c.checked}
				if from == "void" {
					want = [2]int64{c.void, 0}
				}
				failures, checked := counted(t, s, got, 0)
				if diff := cmp.Diff(want, [2]int64{failures, checked}); diff != "" {
					t.Errorf("on %s: %s\n%s", from, diff, got.Rows)
				}
			}
		})
	}
	t.Run("limit", func(t *testing.T) {
		test := on("accepted_values", project.TestArgs{Values: []*string{spelled("x")}}, "a b")
		c, err := genericCheck(&test, subject{from: "data", columns: columns}, "", clock)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := counted(t, s, c, 2); n != 2 {
			t.Errorf("limit 2 counts %d", n)
		}
	})
	t.Run("where", func(t *testing.T) {
		test := on("not_null", project.TestArgs{}, "id")
		test.Where = "f IS NOT NULL -- only these"
		c, err := genericCheck(&test, subject{from: "data", columns: columns}, "", clock)
		if err != nil {
			t.Fatal(err)
		}
		if n, of := counted(t, s, c, 0); n != 0 || of != 3 {
			t.Errorf("where: %d of %d", n, of)
		}
	})
}

func TestAssertionMistakes(t *testing.T) {
	pos := diag.Pos{File: "models/data.sql", Line: 3, Col: 5}
	columns := []lake.Column{{Name: "amount", Type: "BIGINT"}, {Name: "price", Type: "DECIMAL(9,2)"}, {Name: "day", Type: "DATE"}, {Name: "f", Type: "DOUBLE"}, {Name: "ok", Type: "BOOLEAN"}, {Name: "at", Type: "TIMESTAMP"}, {Name: "word", Type: "VARCHAR"}}
	cases := []struct {
		name string
		test project.Test
		want string
	}{
		{"unknown column", project.Test{Kind: "not_null", Columns: []string{"amonut"}}, `models/data.sql:3:5: test not_null: data has no column "amonut" [RBT6001]`},
		{"empty list", project.Test{Kind: "accepted_values", Columns: []string{"amount"}}, `models/data.sql:3:5: accepted_values: the list of values is empty, so no row could ever pass [RBT6002]`},
		{"only NULL", project.Test{Kind: "accepted_values", Columns: []string{"amount"}, Args: project.TestArgs{Values: []*string{nil}}}, `models/data.sql:3:5: accepted_values: the list of values is empty, so no row could ever pass [RBT6002]`},
		{"fraction for an integer", project.Test{Kind: "accepted_values", Columns: []string{"amount"}, Args: project.TestArgs{Values: []*string{spelled("1.5")}}}, `models/data.sql:3:5: accepted_values: "1.5" is no value of the type BIGINT, which amount has [RBT6002]`},
		{"word for a number", project.Test{Kind: "range", Columns: []string{"price"}, Args: project.TestArgs{Min: spelled("low")}}, `models/data.sql:3:5: range: "low" is no value of the type DECIMAL(9,2), which price has [RBT6002]`},
		{"word for a double", project.Test{Kind: "range", Columns: []string{"f"}, Args: project.TestArgs{Min: spelled("low")}}, `models/data.sql:3:5: range: "low" is no value of the type DOUBLE, which f has [RBT6002]`},
		{"number for a date", project.Test{Kind: "range", Columns: []string{"day"}, Args: project.TestArgs{Min: spelled("1")}}, `models/data.sql:3:5: range: "1" is no value of the type DATE, which day has [RBT6002]`},
		{"number for a date in a list", project.Test{Kind: "accepted_values", Columns: []string{"day"}, Args: project.TestArgs{Values: []*string{spelled("5")}}}, `models/data.sql:3:5: accepted_values: "5" is no value of the type DATE, which day has [RBT6002]`},
		{"word that is no boolean", project.Test{Kind: "accepted_values", Columns: []string{"ok"}, Args: project.TestArgs{Values: []*string{spelled("yes"), spelled("on")}}}, `models/data.sql:3:5: accepted_values: "on" is no value of the type BOOLEAN, which ok has [RBT6002]`},
		{"offset of a time without a zone", project.Test{Kind: "range", Columns: []string{"at"}, Args: project.TestArgs{Min: spelled("2024-01-02T01:00:00Z"), Max: spelled("2024-01-02T01:00:00+02:00")}}, `models/data.sql:3:5: range: "2024-01-02T01:00:00+02:00" is no value of the type TIMESTAMP, which at has [RBT6002]`},
		{"fraction finer than the scale", project.Test{Kind: "accepted_values", Columns: []string{"price"}, Args: project.TestArgs{Values: []*string{spelled("1.505")}}}, `models/data.sql:3:5: accepted_values: "1.505" is no value of the type DECIMAL(9,2), which price has [RBT6002]`},
		{"age of a number", project.Test{Kind: "freshness", Columns: []string{"amount"}}, `models/data.sql:3:5: freshness: amount has the type BIGINT, and only dates and timestamps have an age [RBT6002]`},
		{"age of a text", project.Test{Kind: "freshness", Columns: []string{"word"}}, `models/data.sql:3:5: freshness: word has the type VARCHAR, and only dates and timestamps have an age [RBT6002]`},
		{"steps of texts", project.Test{Kind: "sequence", Columns: []string{"word"}}, `models/data.sql:3:5: sequence: word has the type VARCHAR, and only numbers, dates and times have steps [RBT6002]`},
		{"steps of booleans", project.Test{Kind: "sequence", Columns: []string{"ok"}}, `models/data.sql:3:5: sequence: ok has the type BOOLEAN, and only numbers, dates and times have steps [RBT6002]`},
		{"step between integers", project.Test{Kind: "sequence", Columns: []string{"amount"}, Args: project.TestArgs{Value: spelled("0.5")}}, `models/data.sql:3:5: sequence: "0.5" is no value of the type BIGINT, which amount has [RBT6002]`},
		{"interval between integers", project.Test{Kind: "sequence", Columns: []string{"amount"}, Args: project.TestArgs{Value: spelled("1 day")}}, `models/data.sql:3:5: sequence: "1 day" is no value of the type BIGINT, which amount has [RBT6002]`},
		{"days in the wrong order", project.Test{Kind: "range", Columns: []string{"day"}, Args: project.TestArgs{Min: spelled("2024-01-02"), Max: spelled("2024-01-01")}}, `models/data.sql:3:5: range: nothing lies between 2024-01-02 and 2024-01-01 [RBT6002]`},
		{"step without a unit", project.Test{Kind: "sequence", Columns: []string{"day"}}, `models/data.sql:3:5: sequence: day is a DATE, and its step "1" has no unit [RBT6002]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.test.Node, c.test.Pos = "data", pos
			_, err := genericCheck(&c.test, subject{from: "data", columns: columns}, "", clock)
			var d diag.Diagnostic
			if !errors.As(err, &d) {
				t.Fatalf("no diagnostic: %v", err)
			}
			if diff := cmp.Diff(c.want, d.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func sqlOf[T any](v *T, literal func(T) string) string {
	if v == nil {
		return "NULL"
	}
	return literal(*v)
}

func TestOutcome(t *testing.T) {
	count := func(op string, n float64) *project.Threshold { return &project.Threshold{Op: op, Number: n} }
	percent := func(op string, n float64) *project.Threshold {
		return &project.Threshold{Op: op, Number: n, Percent: true}
	}
	cases := []struct {
		name              string
		test              project.Test
		failures, checked int64
		want              Status
	}{
		{"pass", project.Test{}, 0, 10, StatusPass},
		{"fail", project.Test{}, 1, 10, StatusFail},
		{"warn", project.Test{Severity: diag.Warning}, 1, 10, StatusWarn},
		{"error_if alone warns below", project.Test{ErrorIf: count(">", 9)}, 4, 10, StatusWarn},
		{"error_if holds", project.Test{ErrorIf: count(">", 9)}, 10, 10, StatusFail},
		{"warn_if and error_if below both", project.Test{WarnIf: count(">", 2), ErrorIf: count(">", 9)}, 2, 10, StatusPass},
		{"warn_if does not soften error", project.Test{WarnIf: count(">", 2)}, 1, 10, StatusFail},
		{"error_if with severity warn", project.Test{Severity: diag.Warning, ErrorIf: count(">", 2)}, 5, 10, StatusWarn},
		{"percent reached", project.Test{ErrorIf: percent(">=", 10)}, 1, 10, StatusFail},
		{"percent not reached", project.Test{ErrorIf: percent(">", 10)}, 1, 10, StatusWarn},
		{"percent of no rows", project.Test{ErrorIf: percent(">", 0)}, 0, 0, StatusPass},
		{"percent of no rows, reached", project.Test{ErrorIf: percent(">=", 5), WarnIf: percent(">=", 1)}, 0, 0, StatusPass},
		{"percent of no rows, below", project.Test{ErrorIf: percent("<", 5)}, 0, 0, StatusFail},
		{"percent of no rows, equal", project.Test{ErrorIf: percent("=", 100), WarnIf: percent("=", 0)}, 0, 0, StatusWarn},
		{"percent of no rows with a violation", project.Test{ErrorIf: percent(">=", 100)}, 1, 0, StatusFail},
		{"must fail", project.Test{ErrorIf: count("=", 0), WarnIf: count("=", 0)}, 0, 10, StatusFail},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := outcome(&c.test, c.failures, c.checked); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
