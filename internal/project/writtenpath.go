package project

import (
	"path/filepath"
	"strings"
)

// WrittenPath gives an absolute path or glob as a declaration of this project
// names it: relative to the project, or as $root/… below the deepest root that
// holds it. It is false for a path that neither holds.
func (p *Project) WrittenPath(path string) (string, bool) {
	if !p.inBounds(path) {
		return "", false
	}
	if within(path, p.Dir) {
		return p.relative(path), true
	}
	var best root
	for _, r := range p.roots {
		if within(path, r.dir) && len(r.dir) > len(best.dir) {
			best = r
		}
	}
	rel, err := filepath.Rel(best.dir, path)
	if err != nil {
		return "", false
	}
	return strings.TrimSuffix("$"+best.name+"/"+filepath.ToSlash(rel), "/."), true
}
