package lake

import (
	"encoding/binary"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rbt/internal/memory"
)

// Memory is what an earlier command read of a lake, so that the next need not open
// two files a node. It is never trusted over the lake: of each file that a node
// was read from it holds the identity (size, times of modification and of change,
// inode), and only a file that has the same one now counts as read. It may be lost
// at any time; whatever is wrong with it costs time and nothing else.
//
// It is written and read as one text, by one build of the program for one lake.
type Memory struct {
	program, root string
	from          int   // memoryFrom, and fewer in tests
	now           int64 // before anything of the lake was read, in ns since 1970
	entries       map[string]*entry

	mu   sync.Mutex
	seen map[string]*entry // what is true now
	anew int               // how many of those the text did not hold
}

// entry is what is known of one node.
type entry struct {
	receipt memory.Identity
	data    memory.Identity // of the file at path; zero where it was not found to be whole
	path    string          // of the receipt, as is commit
	commit  string
	said    string // the receipt, as appendReceipt writes it; "" where it is not kept
}

const (
	// memoryMagic counts up with the form of the text.
	memoryMagic = "rbt lake 3\n"
	// memoryFrom is the number of nodes from which on it pays.
	memoryFrom = 200
	// memoryShare is the part of a lake, as its inverse, that may be new before the
	// text is written again: reading so few files costs less than writing it.
	memoryShare = 16
)

// NewMemory gives what text holds of the lake at root. Text that another program
// wrote, or for another lake, or that is damaged or empty holds nothing. Now is the
// time before anything of the lake is read.
func NewMemory(program, root, text string, now time.Time) *Memory {
	m := &Memory{program: program, root: root, from: memoryFrom, now: now.UnixNano(), seen: map[string]*entry{}}
	body, ok := memory.Open(text, memoryMagic)
	r := memory.NewReader(body)
	if !ok || r.Text() != program || r.Text() != root {
		return m
	}
	n := r.Count()
	all := make([]entry, n)
	entries := make(map[string]*entry, n)
	for i := range all {
		entries[r.Text()] = &all[i]
		all[i] = entry{receipt: r.Identity(), data: r.Identity(), path: r.Text(), commit: r.Text(), said: r.Text()}
	}
	if r.Done() {
		m.entries, m.seen = entries, make(map[string]*entry, n)
	}
	return m
}

// Text gives what is to be written for the next command; false where it would hold
// little that the text of before does not.
func (m *Memory) Text() (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.seen))
	for name, e := range m.seen {
		if e.said != "" {
			names = append(names, name)
		}
	}
	if len(names) < m.from || m.anew <= len(names)/memoryShare {
		return "", false
	}
	slices.Sort(names)
	// The text can be a good part of all memory, and is made once at its full length.
	size := len(memoryMagic) + len(m.program) + len(m.root) + 3*binary.MaxVarintLen64 + memory.SumSize
	for _, name := range names {
		e := m.seen[name]
		size += len(name) + len(e.path) + len(e.commit) + len(e.said) + 14*binary.MaxVarintLen64
	}
	b := make([]byte, 0, 256)
	var text strings.Builder
	text.Grow(size)
	text.WriteString(memoryMagic)
	text.Write(binary.AppendUvarint(memory.AppendText(memory.AppendText(b, m.program), m.root), uint64(len(names))))
	for _, name := range names {
		e := m.seen[name]
		b = memory.AppendIdentity(memory.AppendIdentity(memory.AppendText(b[:0], name), e.receipt), e.data)
		b = binary.AppendUvarint(memory.AppendText(memory.AppendText(b, e.path), e.commit), uint64(len(e.said)))
		text.Write(b)
		text.WriteString(e.said)
	}
	memory.Seal(&text, memoryMagic)
	return text.String(), true
}

// Use makes the lake's ReadState and Recover go by what is known and note what they
// read. It is called before either.
func (l *Lake) Use(m *Memory) { l.memory = m }

// knownReceipt reads the receipt of a node, of a file that is as it was from memory.
func (l *Lake) knownReceipt(name string) (Receipt, error) {
	rel := receiptPath(name)
	if l.recalling == nil {
		return l.readReceipt(name, rel)
	}
	// Before it is read: what changes meanwhile has another identity next time.
	id := l.identityAt(rel)
	if r, ok := l.recalling.receipt(name, id); ok {
		return r, nil
	}
	r, err := l.readReceipt(name, rel)
	if err == nil {
		l.recalling.noteReceipt(name, id, r)
	}
	return r, err
}

// identityAt gives the identity of a file now; zero where it has none that can be
// relied on.
func (l *Lake) identityAt(rel string) memory.Identity {
	if l.fs == OS() {
		return memory.Stat(l.root + string(filepath.Separator) + filepath.FromSlash(rel))
	}
	info, err := l.fs.Stat(l.abs(rel))
	if err != nil {
		return memory.Identity{}
	}
	return memory.IdentityOf(info)
}

func (m *Memory) receipt(name string, id memory.Identity) (Receipt, bool) {
	e, ok := m.entries[name]
	if !ok || e.receipt != id || id == (memory.Identity{}) {
		return Receipt{}, false
	}
	r, ok := readReceiptText(e.said)
	if !ok {
		return Receipt{}, false
	}
	m.mu.Lock()
	m.seen[name] = e
	m.mu.Unlock()
	return r, true
}

func (m *Memory) noteReceipt(name string, id memory.Identity, r Receipt) {
	e := &entry{receipt: id, path: r.Path, commit: r.Commit}
	if id.Settled(m.now) {
		e.said = receiptText(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[name] = e
	if e.said != "" {
		m.anew++
	}
}

// ContentIdentity gives a text that another content of a file has not: "" where the
// system tells too little, and of a file that was changed so shortly before now, a
// time before the file is read, that it could be changed again without being told
// apart.
func ContentIdentity(info fs.FileInfo, now time.Time) string {
	id := memory.IdentityOf(info)
	if !id.Settled(now.UnixNano()) {
		return ""
	}
	return string(memory.AppendIdentity(nil, id))
}

// whole reports whether the published file of a node, which is id now, was found to
// be that of its receipt.
func (m *Memory) whole(r *Receipt, id memory.Identity) bool {
	if want := r.Outputs[0].Files; len(want) == 1 && want[0].Bytes != id.Size {
		return false
	}
	e, ok := m.entries[r.Name]
	return ok && id != (memory.Identity{}) && e.data == id && e.path == r.Path && e.commit == r.Commit
}

// noteWhole notes that the published file of a node is that of its receipt.
func (m *Memory) noteWhole(r *Receipt, id memory.Identity) {
	if !id.Settled(m.now) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.seen[r.Name]
	if !ok || e.said == "" || e.path != r.Path || e.commit != r.Commit || e.data == id {
		return
	}
	if m.entries[r.Name] == e {
		m.anew++ // the receipt is not
	}
	now := *e // what was read of the text stays as it is
	now.data = id
	m.seen[r.Name] = &now
}
