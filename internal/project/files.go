package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rbt/internal/diag"
)

// foundFile is a file of the project.
type foundFile struct {
	path string // absolute
	rel  string // relative to the project, with "/"
	sub  string // relative to its folder, with "/"
}

func (f foundFile) stem() string {
	base := f.rel[strings.LastIndexByte(f.rel, '/')+1:]
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// folder gives the folder under models/, "" at its top.
func (f foundFile) folder() string {
	if i := strings.LastIndexByte(f.sub, '/'); i >= 0 {
		return f.sub[:i]
	}
	return ""
}

// finder lists the files under one folder of the project in the order of their
// paths. Hidden files and folders, the lake and the target folder are left out.
// Symbolic links are followed as far as they stay in the project and its roots.
type finder struct {
	l     *loader
	base  string // absolute
	files []foundFile
	dirs  map[string]bool // real folders on the way down, so that links cannot go round
}

func (l *loader) find(key string) []foundFile {
	base := filepath.Join(l.p.Dir, filepath.FromSlash(l.settings.dirs[key]))
	if !exists(base) {
		if pos, given := l.settings.given[key]; given {
			l.diags = append(l.diags, diag.Errorf(diag.BadPath, pos, "there is no folder %q", l.settings.dirs[key]))
		}
		return nil
	}
	f := &finder{l: l, base: base, dirs: map[string]bool{}}
	f.walk(base)
	slices.SortFunc(f.files, func(a, b foundFile) int { return strings.Compare(a.rel, b.rel) })
	return f.files
}

func (f *finder) walk(dir string) {
	if dir == f.l.p.LakeDir || dir == f.l.p.TargetDir {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.l.diags = append(f.l.diags, diag.Errorf(diag.NoProject, diag.Pos{File: f.l.p.relative(dir)}, "the folder cannot be read: %s", err))
		return
	}
	rel := f.l.p.relative(dir) + "/"
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := dir + string(filepath.Separator) + e.Name()
		kind := e.Type()
		if kind&fs.ModeSymlink != 0 {
			if kind = f.follow(path); kind == fs.ModeIrregular {
				continue
			}
		}
		switch {
		case kind.IsDir():
			f.descend(path, e.Type()&fs.ModeSymlink != 0)
		case kind.IsRegular():
			f.files = append(f.files, foundFile{path: path, rel: rel + e.Name(), sub: filepath.ToSlash(path[len(f.base)+1:])})
		}
	}
}

// descend walks a folder; one reached by a link only if that is not a circle.
func (f *finder) descend(path string, link bool) {
	if !link {
		f.walk(path)
		return
	}
	real := realPath(path)
	if f.dirs[real] || within(f.base, real) {
		f.l.diags = append(f.l.diags, diag.Errorf(diag.BadPath, diag.Pos{File: f.l.p.relative(path)}, "the link leads to a folder around it"))
		return
	}
	f.dirs[real] = true
	f.walk(path)
	delete(f.dirs, real)
}

// follow gives the kind of what a link leads to, ModeIrregular after reporting
// one that leads nowhere or out of the project.
func (f *finder) follow(path string) fs.FileMode {
	info, err := os.Stat(path)
	pos := diag.Pos{File: f.l.p.relative(path)}
	if err != nil {
		f.l.diags = append(f.l.diags, diag.Errorf(diag.BadPath, pos, "the link leads nowhere"))
		return fs.ModeIrregular
	}
	if f.l.p.Allowed(path) != nil {
		f.l.diags = append(f.l.diags, diag.Errorf(diag.BadPath, pos, "the link leads out of the project").
			WithHint("declare the folder in project.yml as a root"))
		return fs.ModeIrregular
	}
	return info.Mode().Type()
}

// hasParent reports whether a path has a .. in it.
func hasParent(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }
