package project

import "slices"

// valueKind is the shape of a value in YAML.
type valueKind int

const (
	kindText     valueKind = iota // one scalar, kept as spelled
	kindBool                      // true or false
	kindInt                       // a whole number, not negative
	kindTexts                     // one scalar or a list of them
	kindTextMap                   // a mapping of scalars
	kindAny                       // anything: vars, meta
	kindTable                     // a mapping described by its own table
	kindList                      // a list of such mappings
	kindMap                       // a mapping from free names to such mappings
	kindTests                     // assertions in one of their shapes
	kindColumns                   // declared columns in one of their shapes
	kindDuration                  // "12 hours" or {count: 12, period: hour}
)

// mapKey is one key of a mapping: what the decoder enforces, what error messages
// suggest, and what JSON Schema says.
type mapKey struct {
	name     string
	aliases  []string
	kind     valueKind
	sub      string   // name of the table of kindTable, kindList and kindMap
	short    bool     // kindTable and kindMap: a scalar may stand for the whole mapping
	enum     []string // allowed words of kindText
	required bool
	doc      string // one sentence
}

// keyTable is everything that may stand in one kind of mapping.
type keyTable struct {
	name string // in $defs of the JSON Schema
	what string // in messages: "the frontmatter", "a source"
	keys []mapKey
	// foreign are keys that dbt has here and rbt does not: what to do instead,
	// "" where there is nothing like it.
	foreign map[string]string
	index   map[string]int // by name and alias
	names   []string       // names and aliases, sorted
}

func newTable(name, what string, foreign map[string]string, keys ...mapKey) *keyTable {
	t := &keyTable{name: name, what: what, keys: keys, foreign: foreign, index: make(map[string]int, 2*len(keys))}
	for i, k := range keys {
		t.index[k.name] = i
		t.names = append(t.names, k.name)
		for _, a := range k.aliases {
			t.index[a] = i
			t.names = append(t.names, a)
		}
	}
	slices.Sort(t.names)
	return t
}
