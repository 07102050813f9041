package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"rbt/internal/diag"
)

// ErrNoInput is returned by Discover where nothing matches.
var ErrNoInput = errors.New("no input file")

// Discover expands the paths of an input into the sorted list of its files. A
// path may be a file, a folder (then globs say which of its files, all where
// there are none) or a pattern; the characters [, * and ? are literal where
// they name an existing file or folder. Names are relative to the root: the
// folder itself, the fixed part of a pattern, or the folder of a single file;
// with several paths, the deepest folder that holds them all. Hidden files and
// folders are left out unless a pattern names them. The error wraps ErrNoInput
// where nothing matches.
func Discover(paths, globs []string) ([]File, error) {
	var found []string
	var roots []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, fmt.Errorf("resolve input %s: %w", p, err)
		}
		files, root, err := expand(abs, globs)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
		roots = append(roots, root)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w matches %s", ErrNoInput, strings.Join(paths, ", "))
	}
	slices.Sort(found)
	found = slices.Compact(found)
	root := commonFolder(roots)
	out := make([]File, len(found))
	for i, f := range found {
		out[i] = File{Path: f, Name: below(root, f)}
	}
	if byName := func(a, b File) int { return cmp.Compare(a.Name, b.Name) }; !slices.IsSortedFunc(out, byName) {
		slices.SortFunc(out, byName)
	}
	return out, nil
}

func expand(path string, globs []string) (files []string, root string, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		// To open a pipe waits for whoever writes into it.
		return nil, "", diag.Errorf(diag.IngestInput, diag.Pos{}, "input %s is no file but a pipe or socket", path).
			WithHint("an ingest knows its input by size and time: write what comes out of it into a file")
	case err == nil && !info.IsDir():
		return []string{path}, filepath.Dir(path), nil
	case err == nil:
		files, err = walk(path, globs)
		return files, path, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, "", unopened(diag.Pos{}, fmt.Errorf("read input %s: %w", path, err))
	}
	base, pattern := doublestar.SplitPattern(filepath.ToSlash(path))
	root = filepath.FromSlash(base)
	if base == filepath.ToSlash(path) || !strings.ContainsAny(pattern, "*?[{") {
		return nil, filepath.Dir(path), nil
	}
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return nil, root, nil
	}
	files, err = walk(root, []string{pattern})
	return files, root, err
}

// walk lists the files below root that match one of the patterns; without
// patterns, all.
func walk(root string, patterns []string) ([]string, error) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("read input: %q is no pattern", p)
		}
	}
	var out []string
	// With a separator behind it a link to a folder is walked as that folder.
	top := strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && path != top
		if hidden && !slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(p, ".") || strings.Contains(p, "/.") }) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() || !matches(patterns, below(root, path)) {
			return nil
		}
		if !d.Type().IsRegular() {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() {
				return err
			}
		}
		out = append(out, path)
		return nil
	})
	if err != nil {
		return nil, unopened(diag.Pos{}, fmt.Errorf("read input %s: %w", root, err))
	}
	return out, nil
}

// unopened says that a file or folder of the input cannot be looked at.
func unopened(at diag.Pos, err error) error {
	hint := "fetch it again, or take it out of the input"
	if errors.Is(err, fs.ErrPermission) {
		hint = "give this user the right to read it, or take it out of the input"
	}
	return diag.Errorf(diag.IngestInput, at, "%v", err).WithHint("%s", hint)
}

// below is the name of a file relative to a folder that holds it, both clean,
// with "/".
func below(root, path string) string {
	rel := strings.TrimPrefix(path, root)
	return filepath.ToSlash(strings.TrimPrefix(rel, string(filepath.Separator)))
}

func matches(patterns []string, rel string) bool {
	if len(patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, rel) })
}

// commonFolder is the deepest folder that holds all of them.
func commonFolder(roots []string) string {
	common := roots[0]
	for _, r := range roots[1:] {
		for common != r && !strings.HasPrefix(r, strings.TrimSuffix(common, string(filepath.Separator))+string(filepath.Separator)) {
			up := filepath.Dir(common)
			if up == common {
				break
			}
			common = up
		}
	}
	return common
}
