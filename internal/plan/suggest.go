package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"rbt/internal/diag"
)

// unknown says that the criterion of a term matches nothing, and what is near.
func (x *index) unknown(t term) diag.Diagnostic {
	what, prefix, candidates := x.candidates(t)
	d := diag.Errorf(diag.SelectorUnknown, diag.Pos{}, "selector %q matches nothing: %s", t.text, what)
	if t.method == byName {
		if n := x.g.Lookup(t.value); n != nil && n.Kind == KindSource {
			return d.WithHint("a source is selected with source:%s", n.Name)
		}
		if strings.ToLower(t.value) == x.project {
			return d.WithHint("the project has this name; %s.* selects all of it", x.g.project)
		}
	}
	value := t.value
	if t.method == byPath {
		value = cleanPath(value, x.g.dir)
	}
	if t.method == byConfig && len(candidates) == 0 {
		d.Msg = fmt.Sprintf("selector %q matches nothing: no node has the key %s", t.text, t.key)
		if near := diag.Nearest(t.key, x.configKeys()); near != "" {
			return d.WithHint("did you mean config.%s:%s?", near, value)
		}
	}
	slices.Sort(candidates)
	if near := diag.Nearest(value, slices.Compact(candidates)); near != "" {
		return d.WithHint("did you mean %s%s?", prefix, near)
	}
	if hasWildcard(value) && !doublestar.ValidatePattern(plainPattern.Replace(value)) {
		return d.WithHint("as a pattern it cannot be read: [ begins a set of characters, which ] ends, as in stg_[ab]*")
	}
	if t.method == byTag && len(candidates) == 0 {
		return d.WithHint("nothing in this project has a tag")
	}
	return d.WithHint("`rbt ls` lists what there is")
}

// candidates gives for a term what its method looks at in words, what a
// suggestion begins with, and what could have been meant.
func (x *index) candidates(t term) (what, prefix string, candidates []string) {
	each := func(add func(*item)) {
		for i := range x.items {
			add(&x.items[i])
		}
	}
	prefix = string(t.method) + ":"
	switch t.method {
	case byName:
		each(func(it *item) { candidates = append(candidates, it.names()...) })
		return "no model, seed, test or folder has this name", "", candidates
	case byPath:
		each(func(it *item) {
			for p := it.file; p != "" && p != "."; p = path.Dir(p) {
				candidates = append(candidates, p)
			}
		})
		return "no file of the project lies there", prefix, candidates
	case byFile:
		each(func(it *item) { candidates = append(candidates, path.Base(it.file)) })
		return "no file of the project has this name", prefix, candidates
	case byTag:
		each(func(it *item) { candidates = append(candidates, it.tags()...) })
		return "nothing has this tag; tags are compared exactly", prefix, candidates
	case bySource:
		each(func(it *item) {
			if it.kind == KindSource {
				candidates = append(candidates, it.node.Source.Group, it.node.Name)
			}
		})
		return "no source has this name", prefix, candidates
	case byConfig:
		each(func(it *item) {
			if it.node == nil {
				return
			}
			if value, ok := configValue(it.node, t.key); ok {
				candidates = append(candidates, fmt.Sprint(value))
			}
		})
		return fmt.Sprintf("no node has this value of %s", t.key), "config." + t.key + ":", candidates
	case byTestName:
		each(func(it *item) {
			if it.test != nil && it.test.ofType("generic") {
				candidates = append(candidates, it.test.Test.Kind)
			}
		})
		return "no test of this name is declared", prefix, candidates
	default: // byResourceType, byTestType
		return "this project has none", prefix, nil
	}
}

// configKeys gives the keys that config: can look at, and those that nodes have.
func (x *index) configKeys() []string {
	keys := []string{"contract", "enabled", "incremental_strategy", "layout", "materialization", "materialized", "meta", "on_schema_change", "path", "strategy", "tags"}
	for i := range x.items {
		if n := x.items[i].node; n != nil && n.Model != nil {
			for key := range n.Model.Config {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// names gives what a person could have meant by a name: the item and the
// folders above it, in the project's spelling.
func (it *item) names() []string {
	var folder []string
	name := ""
	switch {
	case it.kind == KindSource:
		return nil
	case it.node != nil:
		folder, name = it.node.Folder, it.node.Name
	default:
		folder, name = it.test.Folder, it.test.Name
	}
	names := []string{name}
	for i := range folder {
		names = append(names, strings.Join(folder[:i+1], "."))
	}
	if len(folder) > 0 {
		names = append(names, strings.Join(folder, ".")+"."+name)
	}
	return names
}
