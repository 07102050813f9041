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

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/plan"
	"rbt/internal/project"
)

func newCompileCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "compile", Usage: "turn templates into SQL, without running it",
			Description: `Writes the SQL of the selected models to target/compiled. One selected model, and --inline,
are printed as well. An incremental model is compiled as the next run would: as an increment
once it is published. With --check each is also bound to the columns of what it reads, as far
as they are known without data: a misspelt column, a missing function and types that do not fit
are found, also where nothing was ever published.`,
			Flags: flags(selectFlags(), []cli.Flag{
				&cli.StringFlag{Name: "inline", Usage: "compile this `SQL` and print it"},
				&cli.BoolFlag{Name: "check", Usage: "bind the SQL to the columns of what it reads"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				sel, err := readSelect(c, sys)
				if err != nil {
					return err
				}
				return runCompile(c.Context, sys, compileOptions{commonOptions: common, selectOptions: sel, inline: c.String("inline"), check: c.Bool("check")})
			},
		},
		examples: []string{
			"rbt compile",
			"rbt compile -s fct_orders",
			"rbt compile --check",
			`rbt compile --inline "select * from {{ ref('fct_orders') }}"`,
		},
		exits: `0    done
1    --check found a model that cannot run
2    rbt could not start or finish: usage, project, input or output
130  interrupted`,
	}
}

type compileOptions struct {
	commonOptions
	selectOptions
	inline string
	check  bool
}

func runCompile(ctx context.Context, sys *system, o compileOptions) error {
	if o.inline != "" && len(o.selected)+len(o.excluded) > 0 {
		return usageErrorf("rbt compile", "--inline takes no selection")
	}
	if o.inline != "" && o.check {
		return usageErrorf("rbt compile", "--check is for models, not for the text of --inline")
	}
	s, err := openProject(ctx, sys, o.commonOptions, true)
	if err != nil {
		return err
	}
	defer s.close()
	if o.inline != "" {
		compiled, err := s.inline(ctx, o.inline)
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.out, compiled.SQL+"\n")
		return err
	}
	s.recall = true
	state, err := s.stateAndGraph(ctx)
	if err != nil {
		return err
	}
	g, selection, err := s.selectNodes(ctx, o.selectOptions)
	if err != nil {
		return err
	}
	needed := selection.Nodes
	if o.check {
		needed = g.Nodes()
	}
	if err := s.checked(ctx, g.Render(ctx, needed)); err != nil {
		return err
	}
	if err := s.writeCompiled(selection, state, len(o.selected) > 0); err != nil || !o.check {
		return err
	}
	return s.checkModels(ctx, g, selection.Nodes)
}

// checkModels binds models to the columns of what they read and prints what is
// wrong with them; then the error is errFailed.
func (s *session) checkModels(ctx context.Context, g *plan.Graph, nodes []*plan.Node) error {
	problems, err := s.engine.Check(ctx, g, nodes)
	if err != nil {
		return s.fail(err)
	}
	if !problems.HasErrors() {
		if !s.o.quiet {
			s.tell("Checked " + count(int64(len(nodes)), "node") + ": nothing wrong was found.")
		}
		return nil
	}
	_ = s.fail(problems)
	return errFailed
}

// inlineFile is how places in the text of --inline are named.
const inlineFile = "--inline"

// inline compiles the text of --inline, which must be one query.
func (s *session) inline(ctx context.Context, text string) (*project.Compiled, error) {
	compiled, problems := s.p.CompileText(ctx, inlineFile, text, 1, project.CompileOptions{RunStartedAt: s.started, InvocationID: s.invocationID})
	if err := s.checked(ctx, problems); err != nil {
		return nil, err
	}
	_, err := s.engine.Parser().Scan(compiled.SQL)
	var at interface {
		SQLOffset() int
		SQLDiagnostic(diag.Pos) diag.Diagnostic
	}
	if errors.As(err, &at) {
		pos, _, _ := compiled.Result.Locate(at.SQLOffset())
		err = at.SQLDiagnostic(pos)
	}
	if err != nil {
		return nil, s.fail(err)
	}
	return compiled, nil
}

// writeCompiled writes the SQL of models to target/compiled, and one alone to
// stdout as well.
func (s *session) writeCompiled(selection plan.Selection, state *lake.State, print bool) error {
	var written []*plan.Node
	var open []string
	for _, n := range selection.Nodes {
		if n.Model == nil || n.Full == nil {
			continue
		}
		written = append(written, n)
		if n.Full.Queried {
			open = append(open, n.Name)
		}
	}
	if err := s.writeTexts(written, state); err != nil {
		return s.fail(engine.TargetProblem(err))
	}
	if len(open) > 0 && !s.o.quiet {
		s.tell(fmt.Sprintf("What the templates of %s ask the database is settled when they run; here every query gave nothing.", shorten(open, 8)))
	}
	if print && len(written) == 1 {
		_, err := io.WriteString(s.out, compiledNow(written[0], state).SQL+"\n")
		return err
	}
	if s.o.quiet {
		return nil
	}
	_, err := fmt.Fprintf(s.errOut, "Compiled %s into %s\n", count(int64(len(written)), "model"), s.sys.shown(filepath.Join(s.p.TargetDir, "compiled")))
	return err
}

// writeTexts writes the compiled texts of nodes on all cores. Where no text stands
// yet they go into a folder that gets its name when it is whole: a rename for every
// file costs more than all else of compiling it.
func (s *session) writeTexts(nodes []*plan.Node, state *lake.State) error {
	folder := filepath.Join(s.p.TargetDir, compiledPath(s.p, ""))
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) || len(nodes) == 0 {
		return s.eachText(nodes, state, s.writeArtifact)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil {
		return fmt.Errorf("make folder of %s: %w", folder, err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(folder), ".tmp-*")
	if err != nil {
		return fmt.Errorf("make %s: %w", folder, err)
	}
	defer os.RemoveAll(temp) // nothing is left of it after the rename
	err = s.eachText(nodes, state, func(name, content string) error {
		within, err := filepath.Rel(compiledPath(s.p, ""), name)
		if err != nil {
			return fmt.Errorf("place %s: %w", name, err)
		}
		return writeNew(filepath.Join(temp, within), s.p.Mask(content))
	})
	if err == nil {
		err = os.Chmod(temp, 0o755)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", folder, err)
	}
	if os.Rename(temp, folder) == nil {
		return nil
	}
	// Another command made the folder meanwhile.
	return s.eachText(nodes, state, s.writeArtifact)
}

// eachText gives the compiled texts of nodes to write, with their names below the
// target folder, on all cores.
func (s *session) eachText(nodes []*plan.Node, state *lake.State, write func(name, content string) error) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	// A goroutine takes several, so that starting it costs nothing beside them.
	const chunk = 64
	for some := range slices.Chunk(nodes, chunk) {
		group.Go(func() error {
			for _, n := range some {
				if err := write(compiledPath(s.p, n.File), compiledNow(n, state).SQL+"\n"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// writeNew writes a file into a folder that nobody else knows.
func writeNew(path, content string) error {
	err := os.WriteFile(path, []byte(content), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	return err
}

// compiledNow is what the next run would run of a model.
func compiledNow(n *plan.Node, state *lake.State) *project.Compiled {
	if published, ok := state.Nodes[n.Name]; ok && n.Increment != nil && published.Receipt.Form == lake.FormIncremental {
		return n.Increment
	}
	return n.Full
}

// compiledPath is where the compiled text of a file lies under the target
// folder, as in dbt.
func compiledPath(p *project.Project, file string) string {
	return filepath.Join("compiled", p.Name, filepath.FromSlash(file))
}

// writeArtifact puts a whole file into the target folder; one that has the
// content already is left alone.
func (w *workspace) writeArtifact(name, content string) error {
	path := filepath.Join(w.p.TargetDir, name)
	content = w.p.Mask(content)
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	err := project.ReplaceFile(path, content)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("make folder of %s: %w", path, err)
		}
		err = project.ReplaceFile(path, content)
	}
	return err
}
