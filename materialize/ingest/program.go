package ingest

import "rbt/internal/lake"

// Program is a declaration that was found to be right, with everything that
// can be known before a byte is read. It is immutable and may be shared.
type Program struct {
	model       string
	declaration []byte
	hash        string

	types    []*recType
	families []*family
	root     *recType // nil with rootBy
	rootBy   *rootBy
	tables   []*table
	outputs  []Output

	failBad     bool
	maxRejects  int64   // -1: only the share counts
	maxShare    float64 // share of all records; used where maxRejects is -1
	unknown     unknownPolicy
	mismatch    mismatchPolicy
	occurrences occurrencePolicy
	appendMode  bool
	ignoreOld   bool // append: a changed file is skipped

	format      string
	compression string
	recordPath  []pathStep
	csv         csvDialect
	sweep       bool

	rejects *table
	occ     *table // nil unless occurrences is table
}

// OutputKind says what the rows of an output are.
type OutputKind string

// The kinds of outputs.
const (
	OutputRecord      OutputKind = "record"
	OutputChild       OutputKind = "child"
	OutputFamily      OutputKind = "family"
	OutputRejects     OutputKind = "rejects"
	OutputOccurrences OutputKind = "occurrences"
	OutputLoads       OutputKind = "loads"

	// What an append keeps beside them; no ref() reaches these.
	outputLedger  OutputKind = "ledger"
	outputKeys    OutputKind = "keys"
	outputUpdates OutputKind = "updates"
)

// Output is one relation that the program makes. Relation is its name in the
// lake and in DuckDB (crystals__structure__sites; the root's is the model's
// name), Folder the name of its folder and staged file (structure__sites; the
// root's is its record name), Ref what a user writes in ref() after the model's
// name and a dot (structure.sites; empty for the root).
type Output struct {
	Kind     OutputKind
	Relation string
	Folder   string
	Ref      string
	Columns  []lake.Column

	rec    *recType // record and child
	list   *list    // child
	family *family
}

// Outputs gives the relations in the order in which they are listed
// everywhere: the root, record types as declared each with its children,
// families, then the relations of the load itself.
func (p *Program) Outputs() []Output { return p.outputs }

// Hash identifies the declaration: equal hashes read equal bytes into equal
// tables. Places, comments, the input's paths, workers and limits are outside.
func (p *Program) Hash() string { return p.hash }

// Declaration is the normalised declaration as JSON, which an append compares
// with the stored one.
func (p *Program) Declaration() []byte { return p.declaration }

type dedupPolicy uint8

const (
	dedupContent dedupPolicy = iota
	dedupValue
	dedupNone
)

type conflictPolicy uint8

const (
	conflictFail conflictPolicy = iota
	conflictFirst
	conflictLast
	conflictQuarantine
)

type unknownPolicy uint8

const (
	unknownIgnore unknownPolicy = iota
	unknownFail
	unknownQuarantine
	unknownCapture
)

type mismatchPolicy uint8

const (
	mismatchQuarantine mismatchPolicy = iota
	mismatchFail
	mismatchNull
)

type occurrencePolicy uint8

const (
	occurrencesCount occurrencePolicy = iota
	occurrencesNone
	occurrencesTable
)

// recType is a compiled record type.
type recType struct {
	shape
	ord      int
	identity string
	dedup    dedupPolicy
	entries  bool
	conflict conflictPolicy
	hasMid   bool // metadata is compared
	hasCid   bool // the content id is not the key
	canDrop  bool // workers may drop exact repeats
	id       *idRule
	family   *family // the family whose numbers its ids share; nil: alone
	place    int     // in family
	famSize  int
	reps     *table // nil where nothing is ever dropped
	head     []byte // prefix of the content id
	folder   string
}

// shape is what records and owned rows have in common: an object with members
// that becomes a row of one table.
type shape struct {
	name   string // as in ref(): structure.sites
	rec    *recType
	owned  bool
	level  int // 0 for a record; number of indices of an owned row
	node   *objNode
	fields []*field
	refs   []*ref
	lists  []*list
	ident  []part // sorted by name
	meta   []part // sorted by name
	table  *table
	extra  int // column of _extra in table, or -1
}

// part names one member in the order of hashing.
type part struct {
	what partKind
	i    int
	name string
}

type partKind uint8

const (
	partField partKind = iota
	partRef
	partList
)

type field struct {
	name, col string
	typ       scalar
	required  bool
	meta      bool
	prefix    []byte
	colIdx    int
}

type ref struct {
	name, col string
	target    *recType
	required  bool
	meta      bool
	prefix    []byte
	colIdx    int
	hashIdx   int // column of the compared identity, -1 unless metadata
}

type listKind uint8

const (
	listScalar listKind = iota
	listLink
	listOwned
)

type list struct {
	name     string
	kind     listKind
	typ      scalar
	target   *recType
	row      *shape
	required bool
	meta     bool
	level    int // number of indices of its rows
	prefix   []byte
	countCol string
	countIdx int // column in the owner's table, -1 where required
	hashIdx  int // column of the compared identity, -1 unless metadata of a record
	table    *table
	folder   string
	refName  string
	nests    bool // rows of other records of its type may stand between those of one
}

type family struct {
	name    string
	members []*recType
	folder  string
}

type idRule struct {
	base, series string
	from         *field
	unique       bool
}

type rootBy struct {
	path  []string
	cases map[string]*recType
	names []string // sorted
}

// objNode is one object of the input as the declaration sees it: which keys
// mean what. Keys below a path share the slots of the shape that they belong to.
type objNode struct {
	entries []objEntry
	lookup  map[string]int
}

type entryKind uint8

const (
	entryField entryKind = iota
	entryRef
	entryList
	entrySub
	entrySkip // known, but read elsewhere
)

type objEntry struct {
	key  string
	kind entryKind
	i    int // index into fields, refs or lists of the shape
	sub  *objNode
}

// csvDialect is how CSV files are written; the zero value is the usual one.
type csvDialect struct {
	comma    rune // 0 is ','
	quote    byte // 0 is '"'
	noQuote  bool
	noHeader bool
	null     string
}

// table is one kind of shard: what workers append rows to.
type table struct {
	ord  int
	name string // unique word, used in file names and messages
	cols []column
	// numbered: the shards have one more column, the rank of every row by position,
	// which is known when all are read
	numbered bool
}

// rankColumn is the column that numbered tables have last.
func rankColumn() column { return column{name: "s", typ: typBigint, required: true} }

// stored are the columns of the shards.
func (t *table) stored() []column {
	if !t.numbered {
		return t.cols
	}
	return append(t.cols[:len(t.cols):len(t.cols)], rankColumn())
}

// column of a shard. Shard columns have short names of their own, so that no
// name of the user reaches them.
type column struct {
	name     string
	typ      scalar
	required bool
}

// add appends a column and returns its index.
func (t *table) add(name string, typ scalar, required bool) int {
	t.cols = append(t.cols, column{name: name, typ: typ, required: required})
	return len(t.cols) - 1
}
