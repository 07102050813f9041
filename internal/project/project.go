// Package project owns what the user wrote: project.yml, frontmatter, yml
// blocks, macros, tests, and the template context in which models are compiled.
// It decodes strictly, collects every problem with its place, and never opens a
// database, the lake, or a data file. A loaded Project never changes.
//
// Its words: a model is one SQL file; a source is a declared table of files
// that rbt does not write; a seed is a small CSV in the repository; a
// materialization says how a model is published; a ref names a model, seed or
// ingest output; a test is an assertion; frontmatter is the YAML before a
// model's SQL.
package project

import (
	"time"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// Materialization says how a model is published.
type Materialization string

// The materializations of models.
const (
	Table       Materialization = "table"
	View        Materialization = "view"
	Ephemeral   Materialization = "ephemeral"
	Incremental Materialization = "incremental"
	Ingest      Materialization = "ingest"
)

// Options say what to load and what the command line overrides.
type Options struct {
	Dir        string                      // the project folder, which holds project.yml
	Target     string                      // "" is default_target
	Vars       map[string]any              // of --vars and --var, over project.yml; values as ParseVars gives them
	Lake       string                      // "" is what project.yml and the target say
	TargetPath string                      // "" likewise
	Threads    int                         // nodes at once; 0 is what environment and project.yml say
	Env        func(string) (string, bool) // the environment; nil is an empty one
	// Secrets are the values of all secret variables of the environment: they are
	// masked also where the project does not ask for them.
	Secrets []string
	// Program is the identity of the program: of two that differ in anything it is
	// not the same. With it what was found out about models is recalled from, and
	// by SaveRecall kept in, the target folder; "" recalls nothing.
	Program string
	// RecallFrom is the number of files under models/ from which on that is done;
	// 0 is the number from which on it pays.
	RecallFrom int
	// Now is the time before anything of the project is read. By it a file that was
	// left alone long enough is known by its identity, and its text recalled; zero
	// reads every file.
	Now time.Time
}

// Project is everything that the user wrote, checked and with defaults filled
// in. Slices are sorted by name (tests by node, then place), so that their order
// never depends on the file system.
type Project struct {
	Name      string
	Dir       string // absolute
	Target    string // name of the target in force, "default" where none is declared
	LakeDir   string // absolute
	TargetDir string // absolute; artifacts
	Engine    Engine
	Vars      map[string]any
	Models    []*Model // enabled ones
	Seeds     []*Seed
	Sources   []*Source
	Tests     []*Test // assertions of all models, seeds, sources and ingest outputs, and singular tests
	UnitTests []*UnitTest
	Selectors []*Selector // of selectors.yml
	Warnings  diag.List

	roots       []root
	realDir     string
	realRoots   []string
	env         func(string) (string, bool)
	mask        *mask
	texts       *texts
	index       *index
	macros      []*jinja.Template // of macros/ and tests/generic/
	library     *jinja.Library
	globals     map[string]any // of all templates; never changed after loading
	problems    diag.List
	targetLakes map[string]string // by target
	recall      *recall           // nil where nothing is recalled
	drawn       *drawn
	lost        *lost
	clash       bool // several nodes have one name
	loaded      bool // all files were read, and names are known
}

// TargetLake gives the lake of a target as an absolute path; false where the
// project has no such target.
func (p *Project) TargetLake(target string) (string, bool) {
	dir, ok := p.targetLakes[target]
	return dir, ok
}

// Engine is the `engine:` block. Threads counts nodes built at once,
// DuckDBThreads the threads of the engine; 0 leaves the choice to rbt.
// MemoryLimit is as DuckDB takes it ("80%", "4GB"). Settings are DuckDB
// settings by name, SettingPlaces where each is said, for messages.
type Engine struct {
	Threads       int
	DuckDBThreads int
	MemoryLimit   string
	Settings      map[string]string
	SettingPlaces map[string]diag.Pos
}

// Model is one SQL file with the effective configuration: folder defaults,
// frontmatter and config() in the body, merged.
type Model struct {
	Name             string // the file's spelling
	File             string // relative to the project, with "/"
	Folder           string // below the models folder, with "/"; "" at its top
	Materialization  Materialization
	Strategy         string // of incremental: "append"
	Layout           string // of table: "file" or "parts"
	Path             string // sub-folder of the lake with "/", may be ""
	Description      string
	Tags             []string
	Meta             map[string]any
	Docs             map[string]any
	Columns          []Column
	ContractEnforced bool
	OnSchemaChange   string              // "fail" or "full_refresh"
	Config           map[string]any      // every effective key as written, for config.<key> selection and config.get
	ConfigPos        map[string]diag.Pos // where a key was written
	Body             string              // the SQL as written
	BodyLine         int                 // line of the file on which Body begins
	Records          *Records            // of ingest; nil otherwise
}

// Column is a declared column. Type is "" where none was declared.
type Column struct {
	Name        string
	Type        string
	Description string
	Pos         diag.Pos
	TypePos     diag.Pos
}

// Seed is one CSV file under the seeds folder.
type Seed struct {
	Name        string
	File        string
	Folder      string // below the seeds folder, with "/"; "" at its top
	Description string
	Tags        []string
	Meta        map[string]any
	Columns     []Column
	Options     map[string]string // delimiter, …, as for csv sources
	Pos         diag.Pos
}

// Source is one declared table of files. Patterns are absolute paths in which
// *, ? and [ are glob characters unless the path names an existing file (to be
// tried by whoever expands them); they lie in the project or under a declared
// root.
type Source struct {
	Group        string // the source's name, the "s" of source('s', 't')
	Name         string // the table's name
	Description  string
	Tags         []string
	Meta         map[string]any
	Patterns     []string
	Format       string // csv | json | ndjson | parquet | arrow_ipc; never "" (taken from the extension)
	Options      map[string]string
	Columns      []Column
	ExtraColumns string // keep | ignore | error
	OnMissing    string // error | empty
	Freshness    *Freshness
	Pos          diag.Pos // where the table is declared
	PathPos      diag.Pos
}

// Freshness is how old a source may be: the newest value of LoadedAt, or the
// newest modification time of its files where that is "". Zero means no limit.
type Freshness struct {
	LoadedAt   string
	WarnAfter  time.Duration
	ErrorAfter time.Duration
	Pos        diag.Pos
}

// Test is one assertion. A generic one belongs to a relation (Node, Output) and
// has Kind not_null, unique, … or the name of a {% test %} block; a singular one
// has Kind "singular" and a Template.
type Test struct {
	Name        string // unique in the project; generated from kind, node and columns where the user gave none
	Kind        string
	Node        string // model, seed, or "source.table"; "" for a singular test
	Output      string // output of an ingest in its __ spelling; "" is the root
	Columns     []string
	Args        TestArgs
	Severity    diag.Severity // diag.Error or diag.Warning
	WarnIf      *Threshold    // nil is dbt's default "!= 0"
	ErrorIf     *Threshold
	Where       string
	Limit       int  // 0 is none
	FailNulls   bool // nulls: fail
	Description string
	Tags        []string
	Pos         diag.Pos
	File        string // of a singular test
	Folder      string // of a singular test: below the tests folder
	Body        string
	BodyLine    int
	Template    *jinja.Template
	// Refs is what templates in Where and in a condition refer to, and what
	// arguments of a {% test %} block name.
	Refs []Ref

	snippets  []snippet
	said      fields // what YAML says of severity and the like
	settled   bool   // it is recalled, with all its relations
	failed    bool   // a mistake in it was told
	templated bool   // a condition is a template
}

// TestArgs are the arguments of a generic test; which are set depends on Kind.
type TestArgs struct {
	Values                     []*string // accepted_values, in YAML spelling; nil is a NULL
	To                         string    // relationships: model, seed or source table as written in ref()/source()
	ToSource                   bool
	Field                      string  // relationships
	SQL                        string  // expression
	Min, Max                   *string // range, row_count, in YAML spelling
	ExclusiveMin, ExclusiveMax bool
	Equal                      *string        // row_count: a number
	EqualTo                    string         // row_count: a model
	Pattern                    string         // matches
	MaxAge                     time.Duration  // freshness
	Value                      *string        // not_constant none; sequence step
	Custom                     map[string]any // of a {% test %} block: keyword arguments as template values
	Ref                        Ref            // what To or EqualTo names

	toCall refCall
	toPos  diag.Pos
}

// Threshold is warn_if or error_if: a comparison with a count of failing rows
// or a percentage of the rows checked.
type Threshold struct {
	Op      string // = == != <> < <= > >=, dbt's
	Number  float64
	Percent bool
	Text    string // as written
}

// UnitTest is one unit test of a model.
type UnitTest struct {
	Name        string
	Model       string
	Description string
	Tags        []string
	Given       []Fixture
	Expect      Fixture  // of an incremental model: the rows of the increment
	ExpectTable *Fixture // of an incremental model: all rows after the increment; nil if not asked
	Vars        map[string]any
	Macros      map[string]any // overridden macro -> value it returns; is_incremental among them
	Now         *time.Time     // frozen run_started_at
	Pos         diag.Pos

	modelPos  diag.Pos
	macrosPos diag.Pos
}

// Fixture is rows of one input (or of what is expected): exactly one of Rows,
// CSV and SQL is set. Input is a ref, "source.table" or "this" (expect: "").
type Fixture struct {
	Input    string
	IsSource bool
	Rows     []map[string]any // values as template values: nil, bool, string, *jinja.List, *jinja.Dict; numbers keep their spelling as Number
	Columns  []string         // order in which columns were first written
	CSV      *string
	SQL      string
	SQLLine  int  // line of the file on which SQL begins
	Unsaid   bool // no rows are written, not even none
	Pos      diag.Pos
	Ref      Ref // what Input names; zero for this and for what is expected

	call     refCall
	inputPos diag.Pos
}
