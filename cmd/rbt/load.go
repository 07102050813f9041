package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// workspace is a loaded project with the streams of the process, which mask the
// project's secrets.
type workspace struct {
	sys    *system
	o      commonOptions
	p      *project.Project
	out    io.Writer
	errOut io.Writer
	colour palette
}

// load finds and loads the project. Problems in its files are printed; then the
// error is errReported.
func load(ctx context.Context, sys *system, o commonOptions) (*workspace, error) {
	dir, err := findProject(sys, o.projectDir)
	if err != nil {
		return nil, err
	}
	vars, err := parseVars(o)
	if err != nil {
		return nil, err
	}
	targetPath := o.targetPath
	if targetPath != "" {
		// A path on the command line is meant from where the user stands.
		if targetPath, err = sys.abs(targetPath); err != nil {
			return nil, err
		}
	}
	p, problems := project.Load(ctx, project.Options{Dir: dir, Target: o.target, Vars: vars, TargetPath: targetPath, Env: sys.env, Secrets: sys.secrets, Program: sys.program(), Now: sys.now()})
	w := &workspace{
		sys: sys, o: o, p: p, colour: palette{on: sys.colours(o.noColor)},
		out: maskedWriter{sys.stdout, p.Mask}, errOut: maskedWriter{sys.stderr, p.Mask},
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if problems.HasErrors() {
		return nil, w.fail(w.further(ctx, problems))
	}
	w.warn(problems)
	return w, nil
}

// further adds to the problems of a project that is broken what compiling the rest
// of it finds, so that all is told at once.
func (w *workspace) further(ctx context.Context, problems diag.List) diag.List {
	if !w.p.Checkable() {
		return problems
	}
	e, err := engine.Open(ctx, engine.Options{Project: w.p, Now: w.sys.now, Version: rbtVersion(), PID: os.Getpid()})
	if err != nil {
		return problems // settings, which are among them
	}
	_, more := plan.Load(ctx, w.p, e.Parser(), plan.Options{RunStartedAt: w.sys.now().UTC(), NoTexts: true})
	all := slices.Concat(problems, more, e.Problems())
	if err := e.Close(); err != nil {
		all = append(all, diag.Errorf(diag.TemplateHost, diag.Pos{}, "close the engine: %v", err))
	}
	return all.Sort()
}

// fail prints what kept the command from starting or finishing and returns
// errReported.
func (w *workspace) fail(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if w.o.json {
		writeJSONLine(w.errOut, jsonEvent{
			Event: "error", Time: w.sys.now().UTC().Format(time.RFC3339Nano), Level: "error",
			Message: hideCredentials(err.Error()), Problems: problemsOf(err),
		})
		return errReported
	}
	_, _ = io.WriteString(w.errOut, renderError(err, w.p.SourceText))
	var list diag.List
	if errors.As(err, &list) {
		if n := countErrors(list); n > 1 {
			_, _ = fmt.Fprintf(w.errOut, "\n%s; nothing was run.\n", count(int64(n), "error"))
		}
	}
	return errReported
}

// warn prints warnings about the project's files, and what its templates say.
func (w *workspace) warn(list diag.List) {
	if len(list) == 0 || w.o.quiet {
		return
	}
	if w.o.json {
		level := "info"
		if slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Severity == diag.Warning }) {
			level = "warn"
		}
		writeJSONLine(w.errOut, jsonEvent{
			Event: "log", Time: w.sys.now().UTC().Format(time.RFC3339Nano), Level: level,
			Message: list.Error(), Problems: problemsOf(list),
		})
		return
	}
	_, _ = io.WriteString(w.errOut, renderProblems(list, w.p.SourceText)+"\n")
}

// tell says on stderr what a command is about to wait for.
func (w *workspace) tell(text string) {
	switch {
	case w.o.quiet:
	case w.o.json:
		writeJSONLine(w.errOut, jsonEvent{Event: "log", Time: w.sys.now().UTC().Format(time.RFC3339Nano), Level: "info", Message: text})
	default:
		_, _ = fmt.Fprintln(w.errOut, text)
	}
}

func countErrors(list diag.List) int {
	n := 0
	for _, d := range list {
		if d.Severity == diag.Error {
			n++
		}
	}
	return n
}

// findProject gives the folder of the project: the one that is named, else the
// nearest upwards from the working directory that holds a project.yml.
func findProject(sys *system, named string) (string, error) {
	dir, err := sys.abs(named)
	if err != nil {
		return "", fmt.Errorf("find the project: %w", err)
	}
	if named != "" {
		return dir, nil // that it holds no project is told when it is loaded
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isFile(filepath.Join(at, project.File)) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", diag.Errorf(diag.NoProject, diag.Pos{}, "neither %s nor a folder above it holds a %s", dir, project.File).
				WithHint("rbt init makes a project, --project-dir names one")
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// parseVars reads --vars and --var; where both set a variable, --var counts.
func parseVars(o commonOptions) (map[string]any, error) {
	vars := map[string]any{}
	if o.vars != "" {
		parsed, err := project.ParseVars(o.vars)
		if err != nil {
			return nil, usageErrorf("", "--vars: %s", message(err))
		}
		maps.Copy(vars, parsed)
	}
	seen := map[string]bool{}
	for _, v := range o.varList {
		name, value, err := project.ParseVar(v)
		if err != nil {
			name, _, ok := strings.Cut(v, "=")
			if ok && strings.TrimSpace(name) != "" {
				return nil, usageErrorf("", "--var %s: %s", quoteArg(name), message(err))
			}
			return nil, usageErrorf("", "--var: %s", message(err))
		}
		if seen[name] {
			return nil, usageErrorf("", "--var sets %q twice", name)
		}
		seen[name] = true
		vars[name] = value
	}
	return vars, nil
}

// message is an error's text and help without its place and code, for a text that
// has no file.
func message(err error) string {
	var d diag.Diagnostic
	var list diag.List
	switch {
	case errors.As(err, &d):
	case errors.As(err, &list) && len(list) > 0:
		d = list[0]
	default:
		return err.Error()
	}
	if d.Hint != "" {
		return d.Msg + "; " + d.Hint
	}
	return d.Msg
}

// maskedWriter hides secrets in everything that is written. Every write must
// hold whole texts: a secret in two halves would pass.
type maskedWriter struct {
	w    io.Writer
	mask func(string) string
}

func (m maskedWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.w, m.mask(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
