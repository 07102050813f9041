package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/lake"
)

func newDebugCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "debug", Usage: "check what a run relies on: folders, disk, sources",
			Description: `Prints versions and what rbt found, and tries what a run does to the disk: write, fsync,
rename, link. What it makes it removes; nothing that is published is touched.`,
			Flags: commonFlags(),
			Action: func(c *cli.Context) error {
				o, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				return runDebug(c.Context, sys, o)
			},
		},
		examples: []string{"rbt debug", "rbt debug --target prod"},
		exits: `0    all checks passed
2    a check failed, or rbt could not start
130  interrupted`,
	}
}

// check is one line of `rbt debug`. Failed ones say what to do.
type check struct {
	name, found string
	err         error
	warn        bool // err is no reason not to run
	help        string
}

func runDebug(ctx context.Context, sys *system, o commonOptions) error {
	s, err := openProject(ctx, sys, o, true)
	if err != nil {
		return err
	}
	// A target folder that cannot be made is told by the checks.
	made, _ := mkdirAll(s.p.TargetDir)
	defer removeEmpty(made)
	defer s.close()
	checks := s.facts()
	checks = append(checks, s.checkEngine(ctx))
	checks = append(checks, s.checkFolder("target folder", s.p.TargetDir, "artifacts and spilled data go there; choose another with --target-path"))
	for _, dir := range s.outputFolders() {
		checks = append(checks, s.checkFolder("lake folder", dir, "rbt publishes there; choose another with lake: in project.yml"))
	}
	checks = append(checks, s.checkLake(ctx)...)
	checks = append(checks, s.checkSources()...)
	bad := 0
	var b strings.Builder
	for _, c := range checks {
		if c.write(&b, s.colour) && !c.warn {
			bad++
		}
	}
	if bad == 0 {
		b.WriteString("\n" + s.colour.green("All checks passed") + "\n")
	} else {
		b.WriteString("\n" + s.colour.red(count(int64(bad), "check")+" failed") + "\n")
	}
	if _, err := io.WriteString(s.out, b.String()); err != nil {
		return err
	}
	if bad > 0 {
		return errReported
	}
	return nil
}

// write prints a check and reports whether it found something wrong.
func (c check) write(b *strings.Builder, p palette) bool {
	mark := p.green("ok   ")
	found := c.found
	if c.err != nil {
		mark, found = p.red("FAIL "), c.err.Error()
		if c.warn {
			mark = p.yellow("warn ")
		}
	}
	fmt.Fprintf(b, "%s %-15s %s\n", mark, c.name, found)
	if c.err != nil && c.help != "" {
		fmt.Fprintf(b, "      %-15s %s\n", "", c.help)
	}
	return c.err != nil
}

func (s *session) facts() []check {
	threads := "one a core, at most 8"
	if s.p.Engine.Threads > 0 {
		threads = fmt.Sprint(s.p.Engine.Threads)
	}
	return []check{
		{name: "rbt", found: fmt.Sprintf("%s, %s %s/%s", rbtVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)},
		{name: "engine", found: fmt.Sprintf("DuckDB %s, %s", engine.Version(), count(int64(runtime.NumCPU()), "core"))},
		{name: "project", found: fmt.Sprintf("%s in %s", s.p.Name, filepath.Join(s.p.Dir, "project.yml"))},
		{name: "target", found: fmt.Sprintf("%s, lake %s", s.p.Target, s.p.LakeDir)},
		{name: "nodes at once", found: threads},
		{name: "contents", found: strings.Join([]string{
			count(int64(len(s.p.Models)), "model"), count(int64(len(s.p.Seeds)), "seed"),
			count(int64(len(s.p.Sources)), "source table"), count(int64(len(s.p.Tests)), "test"),
		}, ", ")},
	}
}

// checkEngine starts the SQL engine with the settings of the project.
func (s *session) checkEngine(ctx context.Context) check {
	c := check{name: "memory"}
	limits, err := s.engine.Limits(ctx)
	if err != nil {
		c.err, c.help = errors.New(message(err)), "the SQL engine does not start, and a run would not either"
		return c
	}
	limit := "80%"
	if s.p.Engine.MemoryLimit != "" {
		limit = s.p.Engine.MemoryLimit
	}
	c.found = fmt.Sprintf("%s (memory_limit %s), %s; what does not fit is spilled to %s",
		limits.Memory, limit, count(limits.Threads, "engine thread"), limits.SpillFolder)
	return c
}

// outputFolders are the folders of the lake in which models are published, as
// far as they exist, and the lake itself.
func (s *session) outputFolders() []string {
	dirs := []string{s.p.LakeDir}
	for _, m := range s.p.Models {
		dir := filepath.Join(s.p.LakeDir, filepath.FromSlash(m.Path))
		if _, err := os.Stat(dir); err == nil {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// checkFolder does in a folder what a publish does, and cleans up after it. A
// folder that is not there is made and removed again.
func (s *session) checkFolder(name, dir, help string) check {
	c := check{name: name, found: dir + ": write, fsync, rename and link work", help: help}
	made, err := mkdirAll(dir)
	defer removeEmpty(made)
	if err == nil {
		err = probe(lake.OS(), dir)
	}
	if errors.Is(err, errNoLinks) {
		c.warn, c.help = true, "test and show read the published files themselves, and repeat when a run replaces them"
	}
	if err != nil {
		c.err = fmt.Errorf("%s: %w", dir, err)
	}
	return c
}

// mkdirAll makes a folder and returns those that it had to make, deepest first.
func mkdirAll(dir string) ([]string, error) {
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	return made, os.MkdirAll(dir, 0o777)
}

// removeEmpty removes folders that mkdirAll made, as far as nothing lies in them.
func removeEmpty(dirs []string) {
	for _, d := range dirs {
		_ = os.Remove(d)
	}
}

// errNoLinks says that a file system has no hard links; probe returns it.
var errNoLinks = errors.New("hard links are not possible here")

func probe(fsys lake.FS, dir string) (err error) {
	temp, err := os.MkdirTemp(dir, ".rbt-debug-")
	if err != nil {
		return err
	}
	defer func() {
		if rerr := os.RemoveAll(temp); err == nil {
			err = rerr
		}
	}()
	staged, published, pin := filepath.Join(temp, "staged"), filepath.Join(temp, "published"), filepath.Join(temp, "pin")
	for _, step := range []func() error{
		func() error { return fsys.Write(staged, []byte("rbt")) },
		func() error { return fsys.Sync(staged) },
		func() error { return fsys.Rename(staged, published) },
		func() error { return fsys.SyncDir(temp) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := fsys.Link(published, pin); err != nil {
		return fmt.Errorf("%w: %w", errNoLinks, err)
	}
	return nil
}

// checkLake reads what is published.
func (s *session) checkLake(ctx context.Context) []check {
	state, err := s.lake.ReadState(ctx)
	if err != nil {
		return []check{{name: "published", err: err, help: "the lake cannot be read"}}
	}
	known := map[string]bool{}
	for _, m := range s.p.Models {
		known[strings.ToLower(m.Name)] = true
	}
	for _, m := range s.p.Seeds {
		known[strings.ToLower(m.Name)] = true
	}
	checks := []check{{name: "published", found: count(int64(len(state.Nodes)), "node")}}
	for _, name := range sortedNames(state.Nodes) {
		if damage := state.Nodes[name].Damage; damage != nil {
			checks = append(checks, check{name: name, err: damage, help: "restore the file, or rebuild with rbt run --full-refresh -s " + quoteArg(name)})
		}
	}
	for _, name := range state.Orphans(func(name string) bool { return known[strings.ToLower(name)] }) {
		checks = append(checks, check{name: name, err: errors.New("published, but no longer in the project"), warn: true, help: "nothing reads it; remove its files to be rid of it"})
	}
	for _, path := range state.Foreign {
		checks = append(checks, check{name: "foreign data", err: fmt.Errorf("%s was published by no run of rbt", path), warn: true, help: "move it away, or let --full-refresh replace it"})
	}
	if holder := s.lake.LockHolder(); holder != "" {
		checks = append(checks, check{name: "lock", found: "held by " + holder + ", or left behind by it"})
	}
	return checks
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// checkSources looks for the files of every source.
func (s *session) checkSources() []check {
	var checks []check
	for _, src := range s.p.Sources {
		c := check{name: "source", help: "check the path in " + src.PathPos.String()}
		name := src.Group + "." + src.Name
		files, err := s.engine.SourceFiles(src)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			c.err = fmt.Errorf("%s: %w", name, err)
		case len(files) == 0 && src.OnMissing != "empty":
			c.err = fmt.Errorf("%s: no file", name)
		default:
			c.found = fmt.Sprintf("%s: %s", name, count(int64(len(files)), "file"))
		}
		checks = append(checks, c)
	}
	return checks
}
