package engine

import (
	"regexp"
	"slices"
	"strings"

	"rbt/internal/project"
)

// selectors are the named selections, in the shape that dbt gives them: every
// criterion as a mapping of method and value, and a selector that is named by
// another in its place.
func (m manifestWriter) selectors() object {
	all := object{}
	for _, s := range m.p.Selectors {
		w := selectorWriter{list: m.p.Selectors, inside: []string{s.Name}, left: maxCriteria}
		o := object{"name": s.Name, "definition": w.criterion(s.Definition)}
		if s.Description != "" {
			o["description"] = s.Description
		}
		if s.Default {
			o["default"] = true
		}
		all[s.Name] = o
	}
	return all
}

// maxCriteria bounds how much is written of one selector: those that name others
// twice, and these again, would double with each.
const maxCriteria = 10_000

// selectorWriter writes one selector.
type selectorWriter struct {
	list   []*project.Selector
	inside []string // names of the selectors around what is written, outermost first
	left   int      // how many criteria may still be written in the place of a name
}

func (w *selectorWriter) criteria(parts []*project.Criterion) []any {
	out := emptyList()
	for _, part := range parts {
		out = append(out, w.criterion(part))
	}
	return out
}

// criterion writes a part of a definition.
func (w *selectorWriter) criterion(c *project.Criterion) object {
	w.left--
	set := func(name string, parts []*project.Criterion) object {
		members := w.criteria(parts)
		if c.Exclude != nil {
			members = append(members, object{"exclude": w.criteria(c.Exclude)})
		}
		return object{name: members}
	}
	switch {
	case c.Union != nil:
		return set("union", c.Union)
	case c.Intersection != nil:
		return set("intersection", c.Intersection)
	case c.Words != "":
		return w.words(c.Words)
	}
	o := object{"method": c.Method, "value": c.Value}
	neighbours(o, "parents", c.Parents)
	neighbours(o, "children", c.Children)
	if c.Family {
		o["childrens_parents"] = true
	}
	if c.Exclude != nil {
		o["exclude"] = w.criteria(c.Exclude)
	}
	return w.named(o)
}

func neighbours(o object, which string, generations int) {
	if generations == 0 {
		return
	}
	o[which] = true
	if generations != project.AllGenerations {
		o[which+"_depth"] = generations
	}
}

// named puts what a selector is in the place of its bare name. Of those that name
// each other in a circle the inner one stays a name.
func (w *selectorWriter) named(o object) object {
	name, _ := o["value"].(string)
	if o["method"] != "selector" || len(o) > 2 || slices.Contains(w.inside, name) || w.left <= 0 {
		return o
	}
	for _, s := range w.list {
		if s.Name == name {
			w.inside = append(w.inside, name)
			defer func() { w.inside = w.inside[:len(w.inside)-1] }()
			return w.criterion(s.Definition)
		}
	}
	return o
}

// words writes a text in the grammar of --select: blanks join, commas intersect.
func (w *selectorWriter) words(text string) object {
	union := emptyList()
	for _, word := range strings.Fields(text) {
		both := emptyList()
		for _, term := range strings.Split(word, ",") {
			both = append(both, w.named(singleTerm(term)))
		}
		if len(both) == 1 {
			union = append(union, both[0])
		} else {
			union = append(union, object{"intersection": both})
		}
	}
	if only, ok := union[0].(object); ok && len(union) == 1 {
		return only
	}
	return object{"union": union}
}

// termParts are a term: @, generations and + before, method, value, + and
// generations behind.
var termParts = regexp.MustCompile(`(?s)^(@)?(?:([0-9]*)(\+))?(?:([a-zA-Z0-9_.]+):)?(.*?)(?:(\+)([0-9]*))?$`)

// singleTerm writes one term. Without a method a path, a file or a name is meant.
func singleTerm(term string) object {
	parts := termParts.FindStringSubmatch(term)
	method, value := parts[4], parts[5]
	switch {
	case method != "":
	case strings.ContainsAny(value, `/\`):
		method = "path"
	case strings.HasSuffix(value, ".sql"), strings.HasSuffix(value, ".yml"), strings.HasSuffix(value, ".csv"):
		method = "file"
	default:
		method = "fqn"
	}
	o := object{"method": method, "value": value}
	for _, flag := range []struct{ name, found, depth string }{
		{"childrens_parents", parts[1], ""}, {"parents", parts[3], parts[2]}, {"children", parts[6], parts[7]},
	} {
		if flag.found != "" {
			o[flag.name] = true
		}
		if flag.depth != "" {
			o[flag.name+"_depth"] = flag.depth
		}
	}
	return o
}
