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
		return fmt.Errorf("find the revision %q: %w", ref, err)
	}
	// Run below the root of the repository, ls-tree lists that folder alone, with
	// paths relative to it.
	listing, err := g.output("ls-tree", "-r", "-z", strings.TrimSpace(string(commit)))
	if err != nil {
		return fmt.Errorf("list the files of %q: %w", ref, err)
	}
	var names, blobs []string
	for entry := range strings.SplitSeq(string(listing), "\x00") {
		info, name, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(info)
		if !ok || len(fields) != 3 || fields[1] != "blob" || fields[0] == "120000" || !wanted(name) {
			continue
		}
		names, blobs = append(names, name), append(blobs, fields[2])
	}
	if !slices.Contains(names, project.File) {
		return fmt.Errorf("the revision %q holds no %s in %s", ref, project.File, g.dir)
	}
	return g.blobs(blobs, func(i int, content io.Reader, size int64) error {
		to := filepath.Join(into, filepath.FromSlash(names[i]))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		file, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.CopyN(file, content, size)
		return errors.Join(err, file.Close())
	})
}

// wanted reports whether a file can be part of a project, and its path stays
// where it is put.
func wanted(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && slices.Contains(revisionKinds, strings.ToLower(path.Ext(name)))
}

// blobs reads the contents of blobs, in order, through one process.
func (g git) blobs(ids []string, use func(i int, content io.Reader, size int64) error) (err error) {
	cmd := g.command("cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
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
	for i, id := range ids {
		head, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read blob %s: %w", id, err)
		}
		fields := strings.Fields(head)
		if len(fields) != 3 || fields[1] != "blob" {
			return fmt.Errorf("read blob %s: git says %q", id, strings.TrimSpace(head))
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return fmt.Errorf("read blob %s: %w", id, err)
		}
		if err := use(i, r, size); err != nil {
			return err
		}
		if _, err := r.Discard(1); err != nil {
			return fmt.Errorf("read blob %s: %w", id, err)
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
