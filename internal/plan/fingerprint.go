package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// Fingerprint gives the identity of what a node is made from: 32 hex digits,
// equal for equal inputs.
func Fingerprint(in lake.Inputs) string {
	// The texts are short and the nodes many: they are hashed in one piece.
	b := make([]byte, 0, 1024)
	for _, part := range []string{"rbt inputs 1", in.SQL, in.Engine} {
		b = appendText(b, part)
	}
	for _, m := range []map[string]string{in.Config, in.Parents} {
		b = appendText(b, strconv.Itoa(len(m)))
		for _, key := range slices.Sorted(maps.Keys(m)) {
			b = appendText(appendText(b, key), m[key])
		}
	}
	for _, file := range slices.Sorted(maps.Keys(in.Sources)) {
		s := in.Sources[file]
		b = appendText(appendText(b, file), fmt.Sprint(s.Size, s.Mtime, s.Ctime))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:hashSize])
}

// appendText is writeText behind b.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// sourceKey begins the keys of Inputs.Config that hold how a source that is
// read is declared.
const sourceKey = "source "

// shape gives the configuration that shapes a node's data, key by key as a
// hash: what is not here (descriptions, docs, tags, meta, tests, limits of
// resources, what is done about drift) can change and the data stays.
//
//   - materialization, path of what has files, layout of a table, strategy of an
//     incremental: a change of any is a full build in another place or form
//   - types: the declared columns that have a type, and all columns of an
//     enforced contract
//   - contract
//   - options of a seed
//   - of an ingest everything that is declared, but workers and memory_limit
//   - of a source everything but where its files are: they are Inputs.Sources.
//     It is an entry of whatever reads the source
func shape(n *Node) map[string]string {
	c := make(map[string]string, 6)
	switch {
	case n.Model != nil:
		modelShape(c, n.Model)
	case n.Seed != nil:
		c["types"] = digest(types(n.Seed.Columns, false))
		c["options"] = digest(n.Seed.Options)
	case n.Source != nil:
		c[sourceKey+n.Name] = sourceDigest(n.Source)
	}
	return c
}

func modelShape(c map[string]string, m *project.Model) {
	c["materialization"] = hashText(string(m.Materialization))
	c["types"] = digest(types(m.Columns, m.ContractEnforced))
	if m.ContractEnforced {
		c["contract"] = hashText("enforced")
	}
	switch m.Materialization {
	case project.View, project.Ephemeral:
		return
	case project.Table:
		c["layout"] = hashText(m.Layout)
	case project.Incremental:
		c["strategy"] = hashText(m.Strategy)
	}
	c["path"] = hashText(m.Path)
	if r := m.Records; r != nil {
		input := r.Input
		input.Patterns = nil // the files are what counts
		c["input"] = digest(input)
		c["root"] = digest([]any{r.Root, r.RootBy})
		c["records"] = digest(r.Types)
		c["families"] = digest(r.Families)
		c["mode"] = digest(r.Mode)
		c["policies"] = digest([]any{r.OnBadRecord, r.MaxRejects, r.UnknownFields, r.TypeMismatch, r.Occurrences, r.OnChangedFile})
	}
}

// types gives the declared columns as far as they shape data, in an order that
// does not depend on how they were written.
func types(columns []project.Column, all bool) [][2]string {
	var out [][2]string
	for _, c := range columns {
		if c.Type != "" || all {
			out = append(out, [2]string{strings.ToLower(c.Name), c.Type})
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

func sourceDigest(s *project.Source) string {
	// The order of columns counts where a file has no header.
	var columns [][2]string
	for _, c := range s.Columns {
		columns = append(columns, [2]string{c.Name, c.Type})
	}
	return digest([]any{s.Format, s.Options, columns, s.ExtraColumns, s.OnMissing})
}

// maxFiles is how many changed files a plan names of each node; the rest are
// counted.
const maxFiles = 3

const sqlChanged = "sql changed"

// changes says in words what differs between what a node was made from and what
// it would be made from now, sorted by kind; it is empty where nothing differs.
// A parent whose entry is "" now is not known yet and not compared.
func changes(old, now lake.Inputs) []string {
	var out []string
	if old.SQL != now.SQL {
		out = append(out, sqlChanged)
	}
	for _, key := range changedKeys(old.Config, now.Config) {
		if name, isSource := strings.CutPrefix(key, sourceKey); isSource {
			out = append(out, "declaration of source "+name+" "+verb(old.Config, now.Config, key))
		} else {
			out = append(out, "config changed: "+key)
		}
	}
	for _, key := range changedKeys(old.Parents, now.Parents) {
		_, before := old.Parents[key]
		if id, read := now.Parents[key]; !before || !read || id != "" {
			out = append(out, "parent "+key+" "+parentVerb(old.Parents, now.Parents, key))
		}
	}
	files := changedKeys(old.Sources, now.Sources)
	for i, file := range files {
		if i == maxFiles && len(files) > maxFiles+1 {
			out = append(out, fmt.Sprintf("%d more source files changed", len(files)-maxFiles))
			break
		}
		out = append(out, "source file "+file+" "+verb(old.Sources, now.Sources, file))
	}
	if old.Engine != now.Engine {
		out = append(out, "engine version or settings changed")
	}
	return out
}

// parentVerb tells a parent of other content from one that was published again
// and whose content nobody compared.
func parentVerb(old, now map[string]string, key string) string {
	if v := verb(old, now, key); v != "changed" || strings.Contains(now[key], ":") {
		return v
	}
	return "republished"
}

func changedKeys[V comparable](old, now map[string]V) []string {
	var keys []string
	for k, v := range now {
		if o, ok := old[k]; !ok || o != v {
			keys = append(keys, k)
		}
	}
	for k := range old {
		if _, ok := now[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func verb[V any](old, now map[string]V, key string) string {
	if _, ok := old[key]; !ok {
		return "added"
	}
	if _, ok := now[key]; !ok {
		return "removed"
	}
	return "changed"
}
