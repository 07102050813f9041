package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rbt/internal/lake"
	"rbt/internal/project"
	"rbt/materialize"
)

// TestSettingsHoldOnEveryConnection: SET without GLOBAL would hold on the
// connection alone on which it was said.
func TestSettingsHoldOnEveryConnection(t *testing.T) {
	t.Setenv("TZ", "America/New_York")
	ctx := context.Background()
	d, err := openDatabase(ctx, project.Engine{DuckDBThreads: 3, MemoryLimit: "1GiB", Settings: map[string]string{"integer_division": "true"}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 3 {
		s, err := d.session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got := rowsOf(t, s, "select current_setting('TimeZone'), current_setting('threads'), current_setting('preserve_insertion_order'), current_setting('errors_as_json'), "+
			"current_setting('memory_limit'), current_setting('integer_division'), current_setting('autoload_known_extensions')")[1]
		if want := "UTC|3|false|true|1.0 GiB|true|false"; got != want {
			t.Errorf("settings %s, want %s", got, want)
		}
		err = s.Exec(ctx, "select nope")
		if e, ok := err.(*EngineError); !ok || e.Position != 7 || e.Name != "nope" {
			t.Errorf("error %#v", err)
		}
	}
}

// What did not get its memory is told apart from what is wrong.
func TestMemoryIsAKindOfFailure(t *testing.T) {
	d, err := openDatabase(t.Context(), project.Engine{MemoryLimit: "60MB", DuckDBThreads: 1}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := filepath.Join(t.TempDir(), "x.staged")
	if _, err := s.CopyTo(t.Context(), "select list(i) as l from range(40000000) t(i)", path, nil); !errors.Is(err, materialize.ErrMemory) {
		t.Errorf("a copy without memory: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished file is left: %v", err)
	}
	if err := s.Exec(t.Context(), "create table main.x as select list(i) as l from range(40000000) t(i)"); !errors.Is(err, materialize.ErrMemory) {
		t.Errorf("a table without memory: %v", err)
	}
	if err := s.Exec(t.Context(), "select nothing"); err == nil || errors.Is(err, materialize.ErrMemory) {
		t.Errorf("a mistake: %v", err)
	}
}

func TestSettingProblems(t *testing.T) {
	for _, test := range []struct {
		cfg  project.Engine
		want string
	}{
		{project.Engine{Settings: map[string]string{"threads": "2"}}, "project.yml: engine.settings: threads is set by rbt itself [RBT4011]"},
		{project.Engine{Settings: map[string]string{"integer_divison": "true"}}, `project.yml: engine.settings: DuckDB has no setting "integer_divison" [RBT4011]`},
		{project.Engine{MemoryLimit: "lots"}, `project.yml: engine.memory_limit: "lots" is not a size [RBT4011]`},
		{project.Engine{MemoryLimit: "120%"}, `project.yml: engine.memory_limit: "120%" is not a percentage between 0 and 100 [RBT4011]`},
	} {
		d, err := openDatabase(context.Background(), test.cfg, t.TempDir())
		if err == nil {
			_ = d.Close()
		}
		if err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v, want %s", test.cfg, err, test.want)
		}
	}
}

func TestMemoryLimitPercent(t *testing.T) {
	half := func(limit string) float64 {
		d, err := openDatabase(context.Background(), project.Engine{MemoryLimit: limit}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		s, err := d.session(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		size, _ := parseBytes(rowsOf(t, s, "select current_setting('memory_limit')")[1])
		return size
	}
	if ratio := half("40%") / half("80%"); ratio < 0.49 || ratio > 0.51 {
		t.Errorf("40 %% is %.3f of 80 %%", ratio)
	}
}

func TestDescribeSeesNull(t *testing.T) {
	s := testSession(t)
	for query, want := range map[string][]lake.Column{
		"select 1 as a, null as b, [null] as c, {'x': null} as d": {{Name: "a", Type: "INTEGER"}, {Name: "b", Type: `"NULL"`}, {Name: "c", Type: `"NULL"[]`}, {Name: "d", Type: `STRUCT(x "NULL")`}},
		"pivot (select 1 as a, 2.5 as b) on a using max(b)":       {{Name: "1", Type: "DECIMAL(2,1)"}},
		"-- c\nsummarize select 1 as a":                           nil,
		"describe select 1 as a": {{Name: "column_name", Type: "VARCHAR"}, {Name: "column_type", Type: "VARCHAR"}, {Name: "null", Type: "VARCHAR"},
			{Name: "key", Type: "VARCHAR"}, {Name: "default", Type: "VARCHAR"}, {Name: "extra", Type: "VARCHAR"}},
		"select 1 as a, 2 as a, null as a":                  {{Name: "a", Type: "INTEGER"}, {Name: "a", Type: "INTEGER"}, {Name: "a", Type: `"NULL"`}},
		"with q as (select 1::uinteger as u) from q -- end": {{Name: "u", Type: "UINTEGER"}},
		"select 1 as a, 2 as A":                             {{Name: "a", Type: "INTEGER"}, {Name: "A", Type: "INTEGER"}},
	} {
		got, err := s.Describe(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestCopyToKeepsMetadataAndOrder(t *testing.T) {
	s := testSession(t)
	path := t.TempDir() + "/it's [1].staged"
	files, err := s.CopyTo(context.Background(), "select i from range(300000) t(i) order by i desc", path, map[string]string{"rbt_model": `a'b"c`, "k": ""})
	if err != nil {
		t.Fatal(err)
	}
	if files[0].Rows != 300000 || files[0].Bytes == 0 {
		t.Errorf("%+v", files)
	}
	from := "read_parquet(" + quoteText(literalPath(path)) + ", file_row_number = true)"
	if got := rowsOf(t, s, "select count(*), count(*) filter (where i + file_row_number = 299999) from "+from)[1]; got != "300000|300000" {
		t.Errorf("rows and rows in their place: %s", got)
	}
	got := rowsOf(t, s, "select decode(key), decode(value) from parquet_kv_metadata("+quoteText(literalPath(path))+") order by 1")
	if diff := cmp.Diff([]string{`decode("key")|decode("value")`, "k|", `rbt_model|a'b"c`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
