// Package plan turns a loaded project and the state of a lake into an immutable
// Plan: the graph of nodes, which are selected, in what order they run, what is
// to be done with each and why, and which tests gate which. It opens no
// database and writes nothing; SQL is looked into only through Parser. Graph
// and order never change after Build.
//
// Its words: a node is a seed, source, model or ingest; an output is a relation
// of a node; an edge joins an output to the node that reads it; a step is a
// selected node; a decision is what will be done with a step; a gate is a test
// that must hold before its node is published.
package plan

import (
	"time"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// Parser looks into SQL text. It is implemented by the engine, with a cache, so
// that a plan of unchanged text opens no database. It is used by many goroutines
// at once. Of an error that has the methods SQLOffset() int and
// SQLDiagnostic(diag.Pos) diag.Diagnostic the place is found in the user's file.
type Parser interface {
	// Scan reads the text with rbt's own token scanner, without a database:
	// exactly one statement or an error with its byte offset, the identifiers
	// that occur outside strings and comments, and the comments.
	Scan(sql string) (Scan, error)
	// Condition reads a text that will stand in parentheses inside of a query and
	// refuses one that would end them, or swallow what follows.
	Condition(sql string) error
	// Tables gives the table references of a query that are not CTEs in scope,
	// from DuckDB's own parse tree.
	Tables(sql string) (Tables, error)
}

// Scan is what the token scanner knows of a text.
type Scan struct {
	// Identifiers holds every bare or quoted identifier in lower case with the
	// byte offset of its first occurrence.
	Identifiers map[string]int
	// Normalized is the text without comments, with one blank for every run of
	// white space outside literals and quoted names, and none at the ends: equal
	// for texts that mean the same to the engine. "" stands for the text as it is.
	Normalized string
	// Volatile names the first function or bare name that makes the text never
	// unchanged; "" if there is none.
	Volatile string
	// NoModel says why a text that is a query cannot be a model; nil where it can.
	NoModel error
}

// Tables is what DuckDB's parse tree says a query reads.
type Tables struct {
	Names    []TableName
	Refused  bool   // the serialiser refuses the text (PIVOT without IN): nothing is known
	Volatile string // why the text can never be unchanged; "" if it can
}

// TableName is a table reference outside the scope of a CTE of that name.
// Offset is its byte offset in the text, -1 where it is not known.
type TableName struct {
	Catalog, Schema, Name string
	Offset                int
}

// Kind is the kind of a node, in dbt's words for resource types.
type Kind string

// The kinds of nodes.
const (
	KindSource   Kind = "source"
	KindSeed     Kind = "seed"
	KindModel    Kind = "model"
	KindTest     Kind = "test"
	KindUnitTest Kind = "unit_test"
)

// Node is one thing of the project that others may read. Exactly one of Model,
// Seed and Source is set.
type Node struct {
	ID     string // "model.shop.orders", "seed.shop.x", "source.shop.raw.orders"
	Name   string // as shown and selected: "orders", "raw.orders"
	Kind   Kind
	File   string   // relative to the project
	Folder []string // folders under models/ or seeds/, for selection and display
	Model  *project.Model
	Seed   *project.Seed
	Source *project.Source
	// Full and Increment are the two renderings of a model; Increment is nil
	// unless the model is incremental. With Options.NoTexts both are nil, with
	// Options.Recall of models that are as an earlier command found them; Render
	// makes them.
	Full, Increment *project.Compiled
	Refs            []project.Ref // what it reads, of both renderings and of bare names, each once
	Parents         []*Node       // sorted by ID
	Children        []*Node
	Tests           []*project.Test // generic tests on it
	Volatile        string          // from the text; "" if it can be unchanged
	SQLHash         string          // of all renderings, without comments and white space
	// Shape holds the configuration that shapes the data, key by key as a hash;
	// what a source declares is part of all that read it.
	Shape map[string]string

	index        int  // place in Graph.nodes
	textVolatile bool // the text differs from run to run
}

// Action is what is to be done with a step.
type Action string

// The actions. RunIfChanged is settled when the turn comes: run unless every
// rebuilt parent kept its content.
const (
	ActionRun          Action = "run"
	ActionUnchanged    Action = "unchanged"
	ActionRunIfChanged Action = "run_if_parents_change"
	ActionAudit        Action = "audit" // tests changed: audit what is published, build nothing
)

// Step is a selected node of a run. Number counts from 1 in run order.
type Step struct {
	Number  int
	Node    *Node
	Action  Action
	Reasons []string // why, at least one
	// Incremental says that an increment is appended rather than a full build made.
	Incremental bool
	// Appends says that what is published stays and parts are added to it: an
	// increment, or an ingest of new files.
	Appends bool
	// After lists what must be over before this one: steps that it reads, and
	// what stands above unselected nodes in between. Numbers above that of the
	// last step are those of Plan.Relays. Ascending.
	After []int
	// Looks lists the steps whose new data Gates look at, as far as they do not stand
	// in After: they must be over before this one too, but where one fails, this one
	// goes on and its gates look at what is published. Ascending.
	Looks []int
	// Gates are the tests that must hold before the node is published; UnitTests
	// need no data and come before it is built.
	Gates     []*project.Test
	UnitTests []*project.UnitTest
	// Fingerprint and Inputs are of this build. Where Pending is set, what they
	// hold of parents is settled when the turn comes, by Settler.Decide, and
	// Fingerprint is "".
	Fingerprint string
	Inputs      lake.Inputs
	Pending     bool
	Receipt     *lake.Receipt // what is published now; nil if nothing
	// Refused says why the step cannot be run; nil where it can. It fails when its
	// turn comes, and other steps that do not read it are not kept from running.
	Refused error

	parts  *lake.Manifest // of what is published
	damage error          // of what is published
	tests  []*TestNode    // of this plan, that the receipt remembers when they pass
	// lookedAt holds what a gate looks at, foreign the owner of a gate that another
	// receipt remembers.
	lookedAt map[*project.Test][]int
	foreign  map[*project.Test]*Node
}

// LateTest is a test that is no gate of one step: it runs when every step that it
// reads is over. It need not run if it has no Reasons and neither a step of
// After nor the step of Owner was built.
type LateTest struct {
	Test  *project.Test
	After []int // steps, ascending; none: at once
	// Owner is the node whose receipt remembers in TestsHash that the test
	// passed. It need not be a step; its receipt must not hold the hash of the test
	// when it fails, so that a later run tests it again. Nil: nobody remembers.
	Owner   *Node
	Reasons []string // why the test runs whatever is built
	Guards  bool     // it stands in one of Plan.Guards: steps wait for it
}

// Guard keeps what reads a source, or a step whose late tests are to come, or anything
// that a late singular test reads, from being built before these tests have held: the
// steps wait for them and are skipped where one fails.
type Guard struct {
	Tests []int // places in Plan.Late of tests about one relation, or of one about none, ascending, at least one
	Steps []int // numbers of steps that read it, ascending, at least one
}

// Plan is what a command will do. It never changes.
type Plan struct {
	Project *project.Project
	Graph   *Graph
	// Selected is all that the selectors picked, sources, ephemerals and tests
	// included.
	Selected Selection
	Steps    []*Step
	Relays   []Relay
	Late     []LateTest
	Guards   []Guard // by the ID of what the tests are about, else of the test
	// UnitTests are those that no step brings: of a plan for tests, all.
	UnitTests []*project.UnitTest
	tests     []*TestNode // of Selected, with the hashes of TestHashes; nil of a plan for tests
	Deferred  []*Node     // unselected nodes that steps and tests read from Options.Defer
	Orphans   []string    // receipts whose node left the project
	Foreign   []string    // paths of data that no receipt accounts for
	Warnings  diag.List

	ids *identities
}

// Options say what to plan.
type Options struct {
	Selectors
	FullRefresh    bool
	Force          bool
	RunStartedAt   time.Time
	InvocationID   string
	EngineIdentity string // engine version, time zone and settings, for fingerprints
	Workers        int    // goroutines for compiling and stamping; 0 is one a core
	// NoTexts leaves the nodes without renderings: for commands that run no SQL,
	// so that models which an earlier command compiled need not be compiled again.
	NoTexts bool
	// Recall leaves nodes without renderings that an earlier command compiled: for
	// commands that Render what they need.
	Recall bool
	// Tests plans for `rbt test`: no step, all tests of the selection.
	Tests bool
	// Defer is the state of another lake, from which unselected parents are read
	// that this one does not have; nil if there is none.
	Defer *lake.State
	// SourceFiles gives the identity of each file of a source now, by the name
	// that receipts use. An error, or nil for the function, means that nothing is
	// known: then what reads the source is built, and says so itself.
	SourceFiles func(*project.Source) (map[string]lake.FileStamp, error)
	// IngestFiles does the same for the input of an ingest.
	IngestFiles func(*project.Model) (map[string]lake.FileStamp, error)
	// SeedHash gives the hash of a seed's file.
	SeedHash func(*project.Seed) (string, error)
}
