package project

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"rbt/internal/jinja"
)

// texts keeps texts that are no files, so that diagnostics can show their lines.
type texts struct {
	mu      sync.Mutex
	virtual map[string]string
}

// keep remembers a text under the name that diagnostics give it.
func (t *texts) keep(file, text string, line int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.virtual[file] = strings.Repeat("\n", max(0, line-1)) + text
}

// maxSourceText bounds the files of which a line is shown, in bytes: a diagnostic
// may name a raw file of any size.
const maxSourceText = 64 << 20

// SourceText gives the text of a file as diagnostics name it, without a byte
// order mark, or false where there is none, or no text.
func (p *Project) SourceText(file string) (string, bool) {
	p.texts.mu.Lock()
	text, ok := p.texts.virtual[file]
	p.texts.mu.Unlock()
	if ok {
		return text, true
	}
	if file == "" || strings.HasPrefix(file, "--") {
		return "", false
	}
	if strings.HasPrefix(file, builtinPrefix) && !exists(filepath.Join(p.Dir, file)) {
		b, err := builtinFiles.ReadFile(file)
		return string(b), err == nil
	}
	path := filepath.Join(p.Dir, filepath.FromSlash(file))
	if !within(path, p.Dir) {
		return "", false
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxSourceText {
		return "", false
	}
	b, err := readFile(path)
	if err != nil || bytes.IndexByte(b[:min(len(b), 4096)], 0) >= 0 {
		return "", false
	}
	return strings.TrimPrefix(string(b), bom), true
}

func scalarNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// goText gives a value as it is written in names, without the order of a map.
func goText(v any) any {
	switch v := v.(type) {
	case *jinja.List:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = printed(goText(v.At(i)))
		}
		return strings.Join(parts, "_")
	case *jinja.Dict:
		var parts []string
		for k, item := range v.All() {
			parts = append(parts, printed(k), printed(goText(item)))
		}
		return strings.Join(parts, "_")
	default:
		return printed(v)
	}
}
