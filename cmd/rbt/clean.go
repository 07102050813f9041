package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/diag"
)

func newCleanCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "clean", Usage: "remove target/, never the lake",
			Description: `Removes the artifacts of earlier commands: compiled SQL, results, logs, caches, rows of failed
tests. Nothing that is published is touched. A folder that holds anything else is left alone.`,
			Flags: commonFlags(),
			Action: func(c *cli.Context) error {
				o, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				return runClean(c.Context, sys, o)
			},
		},
		examples: []string{"rbt clean"},
		exits:    unableExits,
	}
}

// artifactNames are what rbt writes into a target folder.
var artifactNames = []string{
	".lock", "cache", "catalog.json", "compiled", "failed", "failures", "last_run.json", "logs", "manifest.json",
	"run_results.json", "sources.json", "tmp",
}

func isArtifact(name string) bool {
	return slices.Contains(artifactNames, name) || strings.HasPrefix(name, "tmp-") || strings.HasPrefix(name, ".tmp-")
}

func runClean(ctx context.Context, sys *system, o commonOptions) error {
	w, err := load(ctx, sys, o)
	if err != nil {
		return err
	}
	dir := w.p.TargetDir
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return w.fail(engine.TargetProblem(fmt.Errorf("read folder %s: %w", dir, err)))
	}
	var others []string
	for _, e := range entries {
		if !isArtifact(e.Name()) {
			others = append(others, e.Name())
		}
	}
	if len(others) > 0 {
		return w.fail(diag.Errorf(diag.OwnFolder, diag.Pos{}, "%s holds what rbt did not write (%s); nothing is removed", dir, shorten(others, 8)).
			WithHint("move that away first, or remove the folder by hand"))
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return w.fail(engine.TargetProblem(fmt.Errorf("remove %s: %w", filepath.Join(dir, e.Name()), err)))
		}
	}
	if err := os.Remove(dir); err != nil {
		return w.fail(engine.TargetProblem(fmt.Errorf("remove %s: %w", dir, err)))
	}
	if !w.o.quiet {
		_, err = fmt.Fprintf(w.out, "Removed %s\n", w.sys.shown(dir))
	}
	return err
}
