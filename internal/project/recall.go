package project

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"rbt/internal/memory"
)

// recall is what an earlier command found out about the models of the project,
// kept in one file under target/cache, so that a command pays for the models
// that changed. It may be removed at any time, and whatever goes wrong with it
// costs time and nothing else.
//
// It can not be stale: the name of the file is a hash of all that every model
// sees (project.yml and what it read of the environment, the command line, all
// macros, and the program itself), the file holds a hash of all names that a
// reference can mean, and an entry the hash of the model's text. A model's file that
// still has the identity with which its text was read is not read again. Models of which
// the outcome depends on anything else are not kept: those that read the
// environment or the clock, that have unit tests or tests of the project's own,
// ingests, and all that something was said about, be it a warning. Where there are
// secrets nothing is kept: hashes of texts have ***** in their place, and a hash
// of a secret itself would help to guess it.
type recall struct {
	path    string
	key     hash                // of all that every model sees
	names   hash                // of all that references can mean, now
	entries []entry             // of the file, in the order of the models' files
	kept    map[*Model]*keeping // of all models that can be kept
	was     hash                // names, when the file was written
	settled int                 // how many recalled models can be known by another identity than the file has
}

type hash [sha256.Size]byte

// source is the text of a model as it was read.
type source struct {
	text     hash            // of the file
	id       memory.Identity // with which it was read; zero where the file can not be known by it
	plain    bool            // the text begins with no byte order mark
	body     string
	bodyLine int
}

// entry is what is kept of a model. What is said holds the model, its tests, and what
// plan found out, as valueReader reads it.
type entry struct {
	file string
	source
	said string
}

// keeping is an entry on its way: loaded is written once the model is loaded,
// found once it is compiled.
type keeping struct {
	entry  // said is "" for a new one
	loaded []byte
	found  []byte
}

// Found is what is found out about a model by compiling it, and recalled by
// later commands.
type Found struct {
	Refs     []Ref
	SQLHash  string
	Shape    map[string]string
	Volatile string
}

// recalled is what is kept of a loaded model.
type recalled struct {
	Model Model
	Tests []Test
}

const (
	recallPrefix = "models-"
	// recallMagic counts up with what the program's own identity does not tell:
	// the form of the file.
	recallMagic = "rbt models 2\n"
	// recallFrom is the number of models from which on it pays: fewer are loaded
	// before anybody notices.
	recallFrom = 200
	// settledShare is the part of all models, as its inverse, that may have to be read
	// for lack of an identity before the file is written for their sake alone.
	settledShare = 16
)

// openRecall reads what is kept. It must be called when macros and variables are
// loaded, and before models are.
func (l *loader) openRecall(files []foundFile) {
	if l.o.Program == "" || len(files) < cmp.Or(l.o.RecallFrom, recallFrom) || l.p.mask.any() || l.diags.HasErrors() {
		return
	}
	key, err := l.surroundings()
	if err != nil {
		return
	}
	name := fmt.Sprintf("%s%x", recallPrefix, key[:16])
	r := &recall{key: key, path: filepath.Join(l.p.TargetDir, "cache", name)}
	l.p.recall = r
	if l.anew {
		return
	}
	if content, err := ReadText(r.path); err == nil {
		r.read(content)
	}
}

// surroundings gives a hash of all that every model sees, names of nodes and its
// own file excepted.
func (l *loader) surroundings() (hash, error) {
	h := sha256.New()
	p := l.p
	target := p.targetObject()
	b, err := appendValue(nil, reflect.ValueOf([]any{
		l.o.Program, l.fileText, p.Name, p.Target, target.attrs, p.Vars, l.o.Vars, l.settings.dirs["models"], l.macroTexts, l.asked,
	}))
	if err != nil {
		return hash{}, err
	}
	for _, t := range p.macros {
		b = memory.AppendText(b, t.File())
	}
	_, _ = h.Write(b) // a hash never fails to take bytes
	return hash(h.Sum(nil)), nil
}

// recordEnv notes what is read of the environment while project.yml is.
func (l *loader) recordEnv() (stop func()) {
	env := l.p.env
	l.asked = map[string]any{}
	l.p.env = func(name string) (string, bool) {
		v, ok := env(name)
		l.asked[name] = []any{v, ok}
		return v, ok
	}
	return func() { l.p.env = env }
}

// nameHash gives a hash of all that references can mean before models say
// config() in their bodies.
func (ix *index) nameHash() hash {
	h := sha256.New()
	var b []byte
	write := func(texts ...string) {
		b = b[:0]
		for _, t := range texts {
			b = memory.AppendText(b, t)
		}
		_, _ = h.Write(b)
	}
	for _, name := range slices.Sorted(maps.Keys(ix.nodes)) {
		t := ix.nodes[name]
		write("node", name, t.node, t.output, t.disabled)
	}
	for _, name := range slices.Sorted(maps.Keys(ix.sources)) {
		write("source", name, ix.sources[name].Group, ix.sources[name].Name)
	}
	write(append([]string{"groups"}, ix.groups...)...)
	return hash(h.Sum(nil))
}

// read takes the content of the file; a damaged one is empty.
func (r *recall) read(content string) {
	body, ok := memory.Open(content, recallMagic)
	if !ok || len(body) < sha256.Size {
		return
	}
	copy(r.was[:], body)
	v := readerOf(body[sha256.Size:])
	entries := make([]entry, v.Count())
	for i := range entries {
		e := &entries[i]
		e.file = v.Text()
		copy(e.text[:], v.Bytes(sha256.Size))
		e.id, e.plain, e.bodyLine, e.body = v.Identity(), v.Byte() != 0, int(v.Varint()), v.Text()
		e.said = v.Text()
	}
	if v.Done() && slices.IsSortedFunc(entries, func(a, b entry) int { return strings.Compare(a.file, b.file) }) {
		r.entries = entries
	}
}

// append writes an entry but for what is said.
func (e *entry) append(b []byte) []byte {
	b = append(memory.AppendText(b, e.file), e.text[:]...)
	b = memory.AppendIdentity(b, e.id)
	if e.plain {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return memory.AppendText(binary.AppendVarint(b, int64(e.bodyLine)), e.body)
}

// recallModels finds what is kept of the models' files; both are in their order.
func (l *loader) recallModels() {
	if l.p.recall == nil {
		return
	}
	rest := l.p.recall.entries
	for _, mf := range l.models {
		for len(rest) > 0 && rest[0].file < mf.rel {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].file == mf.rel {
			mf.entry = &rest[0]
		}
	}
}

// unread gives the text of a file that is as it was when it was read before; false
// where it must be read, with the identity that it is read with.
func (l *loader) unread(mf *modelFile) bool {
	if l.p.recall == nil || l.o.Now.IsZero() {
		return false
	}
	// Before the file is read: what changes meanwhile has another identity next time.
	id := memory.Stat(mf.path)
	if !id.Settled(l.o.Now.UnixNano()) {
		return false
	}
	if mf.entry != nil && mf.entry.id == id {
		mf.source = mf.entry.source
		return true
	}
	mf.source.id = id
	return false
}

// model fills a model from what is kept of its file with this text; false where
// there is nothing.
func (r *recall) model(mf *modelFile) bool {
	if r == nil || mf.entry == nil || mf.entry.text != mf.source.text {
		return false
	}
	v := readerOf(mf.entry.said)
	loaded := readerOf(v.Text())
	said := read[recalled](loaded)
	if v.Bad() || loaded.Bad() {
		return false
	}
	*mf.m = said.Model
	mf.m.Body, mf.m.BodyLine = mf.source.body, mf.source.bodyLine
	for i := range said.Tests {
		said.Tests[i].settled = true
		mf.tests = append(mf.tests, &said.Tests[i])
	}
	mf.cfg.enabled, mf.recalled = true, true
	return true
}

// stale reports whether a reference can mean something else than when the
// entries were written: then nothing that was recalled counts.
func (r *recall) stale(ix *index) bool {
	if r == nil {
		return false
	}
	// What config() in a body disables is known late.
	var disabled []string
	for name, t := range ix.nodes {
		if t.disabled != "" {
			disabled = append(disabled, name)
		}
	}
	slices.Sort(disabled)
	h := sha256.New()
	_, _ = h.Write(r.names[:])
	var b []byte
	for _, name := range disabled {
		b = memory.AppendText(memory.AppendText(b[:0], name), ix.nodes[name].disabled)
		_, _ = h.Write(b)
	}
	r.names = hash(h.Sum(nil))
	return r.names != r.was && len(r.entries) > 0
}

// keepModels writes what is kept of the models that are loaded. Tests have their
// relations, and no names yet that were made.
func (l *loader) keepModels() {
	r := l.p.recall
	if r == nil || l.diags.HasErrors() {
		return
	}
	r.kept = make(map[*Model]*keeping, len(l.models))
	all := make([]keeping, len(l.models))
	for i, mf := range l.models {
		if !mf.recalled && !mf.keepable() {
			continue
		}
		k := &all[i]
		k.file, k.source = mf.rel, mf.source
		if mf.recalled {
			k.said = mf.entry.said
			if k.id != mf.entry.id && k.id != (memory.Identity{}) {
				r.settled++
			}
		}
		r.kept[mf.m] = k
	}
	each(len(l.models), func(i int) {
		mf := l.models[i]
		k := r.kept[mf.m]
		if k == nil || mf.recalled {
			return
		}
		said := recalled{Model: *mf.m}
		said.Model.Body, said.Model.BodyLine = "", 0
		for _, t := range mf.tests {
			said.Tests = append(said.Tests, *t)
		}
		if b, err := appendValue(nil, reflect.ValueOf(said)); err == nil {
			k.loaded = b
		}
	})
}

// keepable reports whether the outcome of loading a model depends on nothing
// but what entries are kept by.
func (mf *modelFile) keepable() bool {
	if !mf.cfg.enabled || mf.unsteady || !mf.parsed || mf.m.Materialization == Ingest || len(mf.units) > 0 {
		return false
	}
	for _, t := range mf.tests {
		if builtinTests[t.Kind] == nil || t.Args.Custom != nil || t.templated {
			return false
		}
	}
	return true
}

// Recall gives what an earlier command found out about a model of the same text
// in the same project; false where there is nothing.
func (p *Project) Recall(m *Model) (Found, bool) {
	k := p.keeping(m)
	if k == nil || k.said == "" {
		return Found{}, false
	}
	v := readerOf(k.said)
	_ = v.Text()
	found := read[Found](v)
	return found, !v.Bad()
}

// Keep notes for later commands what was found out about a model by rendering
// it. Several goroutines may keep different models.
func (p *Project) Keep(m *Model, found Found, renderings ...*Compiled) {
	k := p.keeping(m)
	if k == nil || k.loaded == nil {
		return
	}
	for _, c := range renderings {
		if c != nil && (c.Volatile != "" || c.env) {
			return
		}
	}
	if b, err := appendValue(nil, reflect.ValueOf(found)); err == nil {
		k.found = b
	}
}

// TextHash gives the SHA-256 of a model's file as it was when the project was loaded,
// in hex digits; false where it is not known without reading the file again.
func (p *Project) TextHash(m *Model) (string, bool) {
	k := p.keeping(m)
	if k == nil || !k.plain {
		return "", false
	}
	return hex.EncodeToString(k.text[:]), true
}

// RecallKey is equal for two commands only where a model and its compiled text are
// the same; "" where that cannot be told.
func (p *Project) RecallKey(m *Model) string {
	k := p.keeping(m)
	if k == nil || p.mask.any() || k.said == "" && k.found == nil {
		return ""
	}
	h := sha256.New()
	// A hash never fails to take bytes.
	_, _ = h.Write(slices.Concat(p.recall.key[:], p.recall.names[:], k.text[:], []byte(k.file)))
	return string(h.Sum(nil))
}

func (p *Project) keeping(m *Model) *keeping {
	if p.recall == nil {
		return nil
	}
	return p.recall.kept[m]
}

// SaveRecall writes what is kept, if anything of it is new. Another command may
// do so at the same time: the later file stands.
func (p *Project) SaveRecall() error {
	r := p.recall
	if r == nil || p.mask.any() {
		return nil
	}
	var keep []*keeping
	fresh := false
	for _, k := range r.kept {
		if k.said != "" || k.found != nil {
			keep = append(keep, k)
			fresh = fresh || k.said == ""
		}
	}
	if !fresh && len(keep) == len(r.entries) && r.settled <= len(keep)/settledShare {
		return nil
	}
	slices.SortFunc(keep, func(a, b *keeping) int { return strings.Compare(a.file, b.file) })
	// The text can be a good part of all memory, and is made once at its full length.
	size := len(recallMagic) + sha256.Size + memory.SumSize + binary.MaxVarintLen64
	for _, k := range keep {
		size += len(k.file) + len(k.text) + len(k.body) + len(k.said) + len(k.loaded) + len(k.found) + 12*binary.MaxVarintLen64
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(recallMagic)
	b.Write(r.names[:])
	n := binary.AppendUvarint(nil, uint64(len(keep)))
	b.Write(n)
	for _, k := range keep {
		n = k.append(n[:0])
		if k.said != "" {
			b.Write(binary.AppendUvarint(n, uint64(len(k.said))))
			b.WriteString(k.said)
			continue
		}
		length := binary.AppendUvarint(nil, uint64(len(k.loaded)))
		b.Write(binary.AppendUvarint(n, uint64(len(length)+len(k.loaded)+len(k.found))))
		b.Write(length)
		b.Write(k.loaded)
		b.Write(k.found)
	}
	memory.Seal(&b, recallMagic)
	return KeepCache(r.path, recallPrefix, b.String())
}
