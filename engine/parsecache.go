package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rbt/internal/memory"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// answers keeps on disk what the engine said, by a hash of all that it was asked
// about, so that it is not asked again. It may be removed at any time; what
// another version of rbt, of the engine or of this format wrote has another name
// and is not read. Whatever goes wrong with it costs time and nothing else.
type answers[T any] struct {
	dir      string
	prefix   string              // of the file's name
	versions string              // all on which the answers depend
	mask     func(string) string // what it changes is not kept
	least    int                 // so many that nobody asked for are kept in any case

	loaded  bool
	entries map[string]T // by hash
	used    map[string]bool
	changed bool
}

// parseCache is what the engine's parser said of texts: a command over texts that
// were seen before opens no database.
type parseCache = answers[plan.Tables]

// parseFormat counts up when what is made of a parse tree changes.
const parseFormat = 1

// parseSpare bounds what is kept of texts that no command asks for any more, in
// multiples of what the last one asked for.
const parseSpare = 4

const (
	parsePrefix = "parse-"
	// answersMark counts up with the form of the file.
	answersMark = "rbt answers 2\n"
)

func newParseCache(targetDir, version string, mask func(string) string) *parseCache {
	return newAnswers[plan.Tables](targetDir, parsePrefix, parseFormat, version, mask)
}

func newAnswers[T any](targetDir, prefix string, format int, version string, mask func(string) string) *answers[T] {
	return &answers[T]{dir: filepath.Join(targetDir, "cache"), prefix: prefix, versions: strconv.Itoa(format) + "\x00" + version + "\x00" + Version(), mask: mask, used: map[string]bool{}}
}

func parseKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (c *answers[T]) path() string {
	sum := sha256.Sum256([]byte(c.versions))
	return filepath.Join(c.dir, c.prefix+hex.EncodeToString(sum[:8]))
}

func (c *answers[T]) get(key string) (T, bool) {
	c.load()
	c.used[key] = true
	t, ok := c.entries[key]
	return t, ok
}

func (c *answers[T]) put(key string, t T) {
	c.load()
	c.used[key], c.changed = true, true
	c.entries[key] = t
}

func (c *answers[T]) load() {
	if c.loaded {
		return
	}
	c.loaded, c.entries = true, map[string]T{}
	content, err := project.ReadText(c.path())
	if err != nil {
		return
	}
	body, ok := memory.Open(content, answersMark)
	entries := map[string]T{}
	if ok && json.Unmarshal([]byte(body), &entries) == nil {
		c.entries = entries
	}
}

// save writes what is new, and drops most of what nobody asked for. The JSON is
// sealed: a damaged answer would be one that nobody gave.
func (c *answers[T]) save() error {
	if !c.changed {
		return nil
	}
	spare := max(c.least, parseSpare*len(c.used))
	kept := make(map[string]json.RawMessage, len(c.entries))
	for _, key := range sortedKeys(c.entries) {
		if !c.used[key] {
			if spare--; spare < 0 {
				continue
			}
		}
		text, err := json.Marshal(c.entries[key])
		if err == nil && c.mask(string(text)) == string(text) {
			kept[key] = text
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	var sealed strings.Builder
	sealed.WriteString(answersMark)
	sealed.Write(text)
	memory.Seal(&sealed, answersMark)
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return err
	}
	if err := project.ReplaceFile(c.path(), sealed.String()); err != nil {
		return err
	}
	c.changed = false
	return c.removeOthers()
}

// removeOthers removes what other versions wrote.
func (c *answers[T]) removeOthers() error {
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), c.prefix) && e.Name() != filepath.Base(c.path()) {
			// Another command may have removed it first.
			if removed := os.Remove(filepath.Join(c.dir, e.Name())); !errors.Is(removed, os.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
	}
	return err
}
