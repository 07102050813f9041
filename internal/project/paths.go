package project

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// root is a folder outside the project that project.yml opens for reading.
type root struct {
	name string
	dir  string // absolute
}

// isAbs reports whether a path in a file is absolute. Backslashes are taken for
// slashes everywhere, so that one project file reads the same on all systems.
func isAbs(path string) bool {
	return strings.HasPrefix(path, "/") || isDrive(path)
}

func isDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && (path[0] >= 'a' && path[0] <= 'z' || path[0] >= 'A' && path[0] <= 'Z')
}

// slashed gives a path as files write it on every system.
func slashed(path string) string { return strings.ReplaceAll(path, `\`, "/") }

// within reports whether an absolute path is dir or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) && !filepath.IsAbs(rel)
}

// realPath resolves the symbolic links of the part of a path that exists.
func realPath(path string) string {
	rest := ""
	for at := path; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(at)
		if parent == at {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = parent
	}
}

// foreignPath says why a path can be none that rbt reads or writes, "" if it can.
func foreignPath(text, verb string) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "the path holds a NUL character"
	case strings.Contains(text, "://"):
		return "the path is a URL: rbt " + verb
	case text == "~" || strings.HasPrefix(text, "~/"):
		return "the path begins with ~, which only a shell expands"
	}
	return ""
}

// expandRoot replaces a leading $name by the root's folder. problem is "" if
// there is nothing wrong.
func (p *Project) expandRoot(path string) (expanded, problem, hint string) {
	if !strings.HasPrefix(path, "$") {
		return path, "", ""
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	for _, r := range p.roots {
		if r.name == name {
			return filepath.ToSlash(r.dir) + "/" + rest, "", ""
		}
	}
	names := make([]string, len(p.roots))
	for i, r := range p.roots {
		names[i] = r.name
	}
	hint = suggestion(name, names)
	if hint == "" {
		hint = "declare it in project.yml, roots: {" + name + ": /folder}; a variable of the environment is \"{{ env_var('" + name + "') }}\""
	}
	return "", fmt.Sprintf("unknown root $%s", name), hint
}

// inputPath turns a path or glob of a file into an absolute one and makes sure
// that it stays in the project or under a root.
func (p *Project) inputPath(d *decoder, n *yaml.Node) (string, bool) {
	refuse := func(hint, format string, args ...any) (string, bool) {
		out := diag.Errorf(diag.BadPath, d.pos(n), format, args...)
		if hint != "" {
			out = out.WithHint("%s", hint)
		}
		d.add(out)
		return "", false
	}
	text := slashed(strings.TrimSpace(n.Value))
	if text == "" {
		return refuse("", "the path is empty")
	}
	if problem := foreignPath(text, "reads files"); problem != "" {
		return refuse("", "%s", problem)
	}
	// project.yml is rendered, and what a variable holds there is text. Elsewhere the
	// braces would be part of a name, which no file has.
	if d.file != File && strings.Contains(text, "{{") {
		return refuse("declare the folder in project.yml, roots: {name: \"{{ env_var('NAME') }}\"}, and write $name/…",
			"the path %s is a template, and only project.yml is rendered", quotedPath(n.Value))
	}
	expanded, problem, hint := p.expandRoot(text)
	if problem != "" {
		return refuse(hint, "%s", problem)
	}
	if isDrive(expanded) && runtime.GOOS != "windows" {
		return refuse("", "the path names a Windows drive, which this system does not have")
	}
	if !isAbs(expanded) {
		expanded = filepath.ToSlash(p.Dir) + "/" + expanded
	}
	clean := filepath.Clean(filepath.FromSlash(expanded))
	if strings.HasSuffix(expanded, "/") && clean != string(filepath.Separator) {
		clean += string(filepath.Separator)
	}
	if !p.inBounds(clean) {
		return refuse("declare the folder in project.yml as a root: roots: {name: /folder}, and write $name/…",
			"the path %s leads out of the project", quotedPath(n.Value))
	}
	return clean, true
}

// quotedPath is a path in quotes, with its backslashes as they were written.
func quotedPath(path string) string { return strings.ReplaceAll(strconv.Quote(path), `\\`, `\`) }

// inBounds reports whether a path or glob lies in the project or a root, by its
// name and, as far as its folders exist, also after symbolic links.
func (p *Project) inBounds(path string) bool {
	named := func(dir string) bool { return within(path, dir) }
	if !named(p.Dir) && !slices.ContainsFunc(p.roots, func(r root) bool { return named(r.dir) }) {
		return false
	}
	return p.Allowed(globBase(path)) == nil
}

// globBase gives the folder of a pattern before its first glob character.
func globBase(path string) string {
	if i := strings.IndexAny(path, "*?["); i >= 0 {
		return filepath.Dir(path[:i] + "x")
	}
	return path
}

// Allowed reports whether a file may be read as an input: after symbolic links
// it must lie in the project or under a declared root. The error names the file
// and where it leads.
func (p *Project) Allowed(path string) error {
	real := realPath(path)
	if within(real, p.realDir) {
		return nil
	}
	for _, dir := range p.realRoots {
		if within(real, dir) {
			return nil
		}
	}
	return fmt.Errorf("read %s: it leads to %s, out of the project and its roots", path, real)
}

// outputDir gives the absolute folder that lake or target names: in the
// project, under a root, or absolute.
func (p *Project) outputDir(text string) (dir, problem, hint string) {
	text = slashed(strings.TrimSpace(text))
	expanded, problem, hint := p.expandRoot(text)
	switch {
	case problem != "":
		return "", problem, hint
	case foreignPath(text, "writes to folders") != "":
		return "", foreignPath(text, "writes to folders"), ""
	case isDrive(expanded) && runtime.GOOS != "windows":
		return "", "the path names a Windows drive, which this system does not have", ""
	case isAbs(expanded):
		return filepath.Clean(filepath.FromSlash(expanded)), "", ""
	}
	dir = filepath.Join(p.Dir, filepath.FromSlash(expanded))
	if !within(dir, p.Dir) {
		return "", fmt.Sprintf("the path %s leads out of the project", quotedPath(text)), "write an absolute path, or declare a root"
	}
	return dir, "", ""
}

// relative gives a path as diagnostics show it.
func (p *Project) relative(path string) string {
	rel, err := filepath.Rel(p.Dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// exists reports whether a file or folder is there, without following a link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
