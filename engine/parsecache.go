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

	"rbt/internal/plan"
	"rbt/internal/project"
)

// parseCache keeps on disk what the engine's parser said of texts, by their
// content, so that a command over texts that were seen before opens no
// database. It may be removed at any time; what another version of rbt, of the
// engine or of this format wrote has another name and is not read. Whatever
// goes wrong with it costs time and nothing else.
type parseCache struct {
	dir      string
	versions string              // all on which the answers depend
	mask     func(string) string // what it changes is not kept

	loaded  bool
	entries map[string]plan.Tables // by hash of the text
	used    map[string]bool
	changed bool
}

// parseFormat counts up when what is made of a parse tree changes.
const parseFormat = 1

// parseSpare bounds what is kept of texts that no command asks for any more, in
// multiples of what the last one asked for.
const parseSpare = 4

const parsePrefix = "parse-"

func newParseCache(targetDir, version string, mask func(string) string) *parseCache {
	return &parseCache{dir: filepath.Join(targetDir, "cache"), versions: strconv.Itoa(parseFormat) + "\x00" + version + "\x00" + Version(), mask: mask, used: map[string]bool{}}
}

func parseKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (c *parseCache) path() string {
	sum := sha256.Sum256([]byte(c.versions))
	return filepath.Join(c.dir, parsePrefix+hex.EncodeToString(sum[:8])+".json")
}

func (c *parseCache) get(key string) (plan.Tables, bool) {
	c.load()
	c.used[key] = true
	t, ok := c.entries[key]
	return t, ok
}

func (c *parseCache) put(key string, t plan.Tables) {
	c.load()
	c.used[key], c.changed = true, true
	c.entries[key] = t
}

func (c *parseCache) load() {
	if c.loaded {
		return
	}
	c.loaded, c.entries = true, map[string]plan.Tables{}
	content, err := os.ReadFile(c.path())
	if err != nil {
		return
	}
	entries := map[string]plan.Tables{}
	if json.Unmarshal(content, &entries) == nil {
		c.entries = entries
	}
}

// save writes what is new, and drops most of what nobody asked for.
func (c *parseCache) save() error {
	if !c.changed {
		return nil
	}
	spare := parseSpare * len(c.used)
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
	content, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return err
	}
	if err := project.ReplaceFile(c.path(), string(content)); err != nil {
		return err
	}
	c.changed = false
	return c.removeOthers()
}

// removeOthers removes what other versions wrote.
func (c *parseCache) removeOthers() error {
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), parsePrefix) && e.Name() != filepath.Base(c.path()) {
			err = errors.Join(err, os.Remove(filepath.Join(c.dir, e.Name())))
		}
	}
	return err
}
