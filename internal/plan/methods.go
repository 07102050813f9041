package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// method says by what a term picks.
type method string

// The methods. byName is the one of a term that names none and looks like no
// path or file.
const (
	byName         method = "fqn"
	byPath         method = "path"
	byFile         method = "file"
	byTag          method = "tag"
	bySource       method = "source"
	byConfig       method = "config"
	byResourceType method = "resource_type"
	byTestType     method = "test_type"
	byTestName     method = "test_name"
	byState        method = "state"
	byResult       method = "result"
	bySourceStatus method = "source_status"
	bySelector     method = "selector"
)

// methodInfo describes a method.
type methodInfo struct {
	keyed  bool     // has a key: config.<key>
	values []string // the only values that it takes; nil: any
	past   bool     // compares with an earlier command, so that nothing is an answer
}

// methods lists every method; it is never changed.
var methods = map[method]methodInfo{
	byName:         {},
	byPath:         {},
	byFile:         {},
	byTag:          {},
	bySource:       {},
	byConfig:       {keyed: true},
	byResourceType: {values: []string{"model", "seed", "source", "test", "unit_test"}},
	byTestType:     {values: []string{"data", "generic", "singular", "unit"}},
	byTestName:     {},
	byState:        {past: true, values: []string{"modified", "modified.body", "modified.configs", "new", "old", "unmodified"}},
	byResult:       {past: true, values: []string{"error", "fail", "pass", "skipped", "success", "warn"}},
	bySourceStatus: {past: true, values: []string{"fresher"}},
	bySelector:     {},
}

// foreignMethods are methods of dbt for what rbt does not have, with what to do
// instead; it is never changed.
var foreignMethods = map[string]string{
	"access":         "a project of rbt is one package: every model may be read",
	"exposure":       "select the models that it reads",
	"group":          "give the models a tag and write tag:<name>",
	"metric":         "select the models that it reads",
	"package":        "a project of rbt is one package: leave the method out",
	"saved_query":    "select the models that it reads",
	"semantic_model": "select the models that it reads",
	"version":        "a version of x is the model x_v2: write its name",
}

func methodNames() []string {
	names := make([]string, 0, len(methods))
	for m := range methods {
		names = append(names, string(m))
	}
	slices.Sort(names)
	return names
}

// defaultMethod is dbt's rule for a term without a method.
func defaultMethod(value string) method {
	switch {
	case strings.ContainsAny(value, `/\`):
		return byPath
	case slices.Contains([]string{".sql", ".csv", ".yml", ".yaml"}, strings.ToLower(path.Ext(value))):
		return byFile
	default:
		return byName
	}
}

// hasWildcard reports whether a value is a pattern.
func hasWildcard(value string) bool { return strings.ContainsAny(value, "*?[") }

// like reports whether s is value, or matches it where value is a pattern, in
// which * stands for anything at all. A pattern that cannot be read matches
// nothing but itself.
func like(value, s string) bool {
	if value == s {
		return true
	}
	if !hasWildcard(value) {
		return false
	}
	// The library's * stops at /, and { } mean a choice, which selectors do not have.
	matched, err := doublestar.Match(plainPattern.Replace(value), plainText.Replace(s))
	return err == nil && matched
}

// plainPattern and plainText put aside what has a meaning to the library and
// none in a selector; both are never changed.
var (
	plainPattern = strings.NewReplacer("/", "\x00", "{", `\{`, "}", `\}`, `\`, `\\`)
	plainText    = strings.NewReplacer("/", "\x00")
)

// cleanPath brings a path of a selector to the form in which files are known:
// relative to the project, with "/". dir is the project folder.
func cleanPath(value, dir string) string {
	value = strings.ReplaceAll(value, `\`, "/")
	if rest, ok := strings.CutPrefix(value, strings.ReplaceAll(dir, `\`, "/")+"/"); ok && dir != "" {
		value = rest
	}
	return path.Clean(value)
}

// matchPath reports whether a file is the path, lies below it, or does so for
// the path as a pattern, in which ** stands for any folders.
func matchPath(pattern, file string) bool {
	if file == "" {
		return false
	}
	if pattern == "." || pattern == file || strings.HasPrefix(file, pattern+"/") {
		return true
	}
	if !hasWildcard(pattern) {
		return false
	}
	for p := file; p != "."; p = path.Dir(p) {
		if ok, err := doublestar.Match(pattern, p); err == nil && ok {
			return true
		}
	}
	return false
}

// matchFile compares with a file's name, with or without its extension.
func matchFile(value, file string) bool {
	base := strings.ToLower(path.Base(file))
	return file != "" && (like(value, base) || like(value, strings.TrimSuffix(base, path.Ext(base))))
}

// matchSource compares with group, group.table or project.group.table, ignoring
// case.
func matchSource(value, project, group, table string) bool {
	group, table = strings.ToLower(group), strings.ToLower(table)
	switch parts := strings.Split(value, "."); len(parts) {
	case 1:
		return like(value, group)
	case 2:
		return like(parts[0], group) && like(parts[1], table)
	case 3:
		return like(parts[0], project) && like(parts[1], group) && like(parts[2], table)
	default:
		return false
	}
}

// listValue and mappingValue are what the lists and mappings of templates have
// in common with those of Go.
type (
	listValue    interface{ Items() []any }
	mappingValue interface {
		Keys() []any
		Get(key any) (any, bool)
	}
)

// matchConfig compares with a value of the configuration: text, number or
// boolean as spelled; an element of a list; a key of a mapping.
func matchConfig(want string, have any) bool {
	switch v := have.(type) {
	case nil:
		return like(strings.ToLower(want), "null") || like(strings.ToLower(want), "none")
	case bool:
		return like(strings.ToLower(want), fmt.Sprint(v))
	case string:
		return like(want, v)
	case []string:
		return slices.ContainsFunc(v, func(s string) bool { return like(want, s) })
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return matchConfig(want, x) })
	case map[string]any:
		for key := range v {
			if like(want, key) {
				return true
			}
		}
		return false
	case listValue:
		return matchConfig(want, v.Items())
	case mappingValue:
		return matchConfig(want, v.Keys())
	default:
		return like(want, fmt.Sprint(v))
	}
}

// configValue finds a key of a node's configuration; dots lead into mappings.
// What the user did not write has rbt's default.
func configValue(n *Node, key string) (any, bool) {
	first, rest, nested := strings.Cut(key, ".")
	value, ok := topConfig(n, first)
	for ok && nested {
		first, rest, nested = strings.Cut(rest, ".")
		switch m := value.(type) {
		case map[string]any:
			value, ok = m[first]
		case mappingValue:
			value, ok = m.Get(first)
		default:
			return nil, false
		}
	}
	return value, ok
}

// topConfig gives a key of the configuration in dbt's and rbt's names.
func topConfig(n *Node, key string) (any, bool) {
	switch key {
	case "tags":
		return n.Tags(), true
	case "enabled": // what is not enabled is no node
		return true, true
	case "meta":
		return n.meta(), true
	}
	m := n.Model
	if m == nil {
		return nil, false
	}
	switch key {
	case "materialization", "materialized":
		return string(m.Materialization), true
	case "strategy", "incremental_strategy":
		return m.Strategy, m.Strategy != ""
	case "layout":
		return m.Layout, m.Layout != ""
	case "path":
		return m.Path, true
	case "on_schema_change":
		return m.OnSchemaChange, m.OnSchemaChange != ""
	case "contract":
		if m.ContractEnforced {
			return "enforced", true
		}
		return nil, false
	}
	value, ok := m.Config[key]
	return value, ok
}
