package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rbt/engine"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// gitPrefix begins a --state that names a revision instead of a folder.
const gitPrefix = "git:"

// gitRef gives the revision that --state names.
func gitRef(state string) (string, bool) { return strings.CutPrefix(state, gitPrefix) }

// revisionKinds are the extensions of the files that a project is made of; what
// else a repository holds is not looked at.
var revisionKinds = []string{".sql", ".yml", ".yaml", ".csv", ".py"}

// revision loads the project as it is in a revision of its git repository, with
// the flags of this command, and gives what --state compares with. The work tree
// and the index of the repository are not touched.
func (s *session) revision(ctx context.Context, ref string) (*engine.PastManifest, error) {
	if ref == "" || strings.HasPrefix(ref, "-") {
		return nil, fmt.Errorf("%q names no revision", gitPrefix+ref)
	}
	dir := filepath.Join(s.p.TargetDir, "tmp-revision-"+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make folder %s: %w", dir, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	g := git{dir: s.p.Dir, ctx: ctx}
	if err := g.extract(ref, dir); err != nil {
		return nil, err
	}
	vars, err := parseVars(s.o)
	if err != nil {
		return nil, err
	}
	p, problems := project.Load(ctx, project.Options{Dir: dir, Target: s.o.target, Vars: vars, Lake: s.p.LakeDir, TargetPath: filepath.Join(dir, "target"), Env: s.sys.env, Secrets: s.sys.secrets})
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("load the project of %s: %w", ref, err)
	}
	graph, problems := plan.Load(ctx, p, s.engine.Parser(), plan.Options{RunStartedAt: s.started, InvocationID: s.invocationID})
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("compile the project of %s: %w", ref, err)
	}
	e, err := engine.Open(ctx, engine.Options{Project: p})
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Close() }()
	return &engine.PastManifest{Project: p.Name, Prints: graph.Prints(e.SeedHash)}, nil
}

// git reads a repository with the git binary, from a folder in it.
type git struct {
	dir string
	ctx context.Context
}

// extract writes the files of a revision that lie under the folder into another
// one. Blobs are taken as they are stored: no filter, attribute or hook of the
// repository has a say.
func (g git) extract(ref, into string) error {
	commit, err := g.output("rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return fmt.Errorf("find the revision %q: %w%s", ref, err, g.whyMissing())
	}
	if err := g.tree(strings.TrimSpace(string(commit)), into); err != nil {
		return fmt.Errorf("read the files of %q: %w", ref, err)
	}
	if !isFile(filepath.Join(into, project.File)) {
		return fmt.Errorf("the revision %q holds no %s in %s", ref, project.File, g.dir)
	}
	return nil
}

// whyMissing says what a clone of a CI service usually lacks.
func (g git) whyMissing() string {
	shallow, err := g.output("rev-parse", "--is-shallow-repository")
	switch {
	case err != nil:
		return "" // git is not here, or there is no repository
	case strings.TrimSpace(string(shallow)) == "true":
		return "; this clone is shallow and holds few revisions: fetch the one that is meant (git fetch --depth 1 origin main, then git:FETCH_HEAD)"
	}
	return "; of a branch that is only on the remote say so (git:origin/main), or fetch it first"
}

// entry is a blob, link or submodule in a tree.
type entry struct{ name, id string }

// tree writes the files of a commit, those of its submodules included as far as
// they are checked out.
func (g git) tree(commit, into string) error {
	// Run below the root of the repository, ls-tree lists that folder alone, with
	// paths relative to it.
	listing, err := g.output("ls-tree", "-r", "-z", commit)
	if err != nil {
		return err
	}
	var files, links, modules []entry
	for line := range strings.SplitSeq(string(listing), "\x00") {
		info, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(info)
		if !ok || len(fields) != 3 || !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		e := entry{name, fields[2]}
		switch {
		case fields[1] == "commit":
			modules = append(modules, e)
		case fields[0] == "120000":
			links = append(links, e)
		case fields[1] == "blob" && wanted(name):
			files = append(files, e)
		}
	}
	if err := g.blobs(files, func(name string, content io.Reader, size int64) error {
		return writeBlob(filepath.Join(into, name), content, size)
	}); err != nil {
		return err
	}
	for _, m := range modules {
		module := git{dir: filepath.Join(g.dir, filepath.FromSlash(m.name)), ctx: g.ctx}
		if _, err := os.Lstat(filepath.Join(module.dir, ".git")); err != nil {
			continue // it is not checked out, so that the project is without it too
		}
		if err := module.tree(m.id, filepath.Join(into, filepath.FromSlash(m.name))); err != nil {
			return fmt.Errorf("the submodule %s: %w; git submodule update --init may fetch it", m.name, err)
		}
	}
	// Last, so that nothing is written through a link.
	return g.blobs(links, func(name string, content io.Reader, size int64) error { return link(into, name, content, size) })
}

func writeBlob(to string, content io.Reader, size int64) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, content, size)
	return errors.Join(err, file.Close())
}

// link makes a symbolic link as far as it leads to something that was written.
func link(into, name string, content io.Reader, size int64) error {
	var target strings.Builder
	if _, err := io.CopyN(&target, content, size); err != nil {
		return err
	}
	to := filepath.Join(into, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if os.Symlink(filepath.FromSlash(target.String()), to) != nil {
		return nil // this system makes no links, and so the project is without it too
	}
	real, err := filepath.EvalSymlinks(to)
	if err == nil {
		var root, rel string
		if root, err = filepath.EvalSymlinks(into); err == nil {
			rel, err = filepath.Rel(root, real)
		}
		if err == nil && filepath.IsLocal(rel) {
			return nil
		}
	}
	return os.Remove(to)
}

// wanted reports whether a file can be part of a project.
func wanted(name string) bool {
	return slices.Contains(revisionKinds, strings.ToLower(path.Ext(name)))
}

// blobs reads the contents of blobs, in order, through one process, and gives each
// with its path in the form of the system.
func (g git) blobs(entries []entry, use func(name string, content io.Reader, size int64) error) (err error) {
	if len(entries) == 0 {
		return nil
	}
	var ids strings.Builder
	for _, e := range entries {
		ids.WriteString(e.id + "\n")
	}
	cmd := g.command("cat-file", "--batch")
	cmd.Stdin = strings.NewReader(ids.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run git: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run git: %w", err)
	}
	defer func() {
		_ = out.Close()
		if werr := cmd.Wait(); err == nil && werr != nil {
			err = gitError(werr, stderr.String())
		}
	}()
	r := bufio.NewReaderSize(out, 1<<16)
	for _, e := range entries {
		head, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read blob %s: %w", e.id, err)
		}
		fields := strings.Fields(head)
		if len(fields) != 3 || fields[1] != "blob" {
			return fmt.Errorf("read blob %s: git says %q", e.id, strings.TrimSpace(head))
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return fmt.Errorf("read blob %s: %w", e.id, err)
		}
		if err := use(filepath.FromSlash(e.name), r, size); err != nil {
			return err
		}
		if _, err := r.Discard(1); err != nil {
			return fmt.Errorf("read blob %s: %w", e.id, err)
		}
	}
	return nil
}

func (g git) output(args ...string) ([]byte, error) {
	cmd := g.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, gitError(err, stderr.String())
	}
	return out, nil
}

func (g git) command(args ...string) *exec.Cmd {
	// Optional locks would write to the repository.
	cmd := exec.CommandContext(g.ctx, "git", append([]string{"--no-optional-locks", "-C", g.dir}, args...)...)
	// A hook of git runs with these set for the folder that git was called in.
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}, name)
	})
	return cmd
}

// gitError puts what git said in place of its exit code.
func gitError(err error, stderr string) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run git: %w", err)
	}
	if text := strings.TrimSpace(stderr); text != "" {
		return fmt.Errorf("git: %s", strings.TrimPrefix(text, "fatal: "))
	}
	return errors.New("git knows nothing of it")
}
