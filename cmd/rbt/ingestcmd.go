package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/project"
)

func newIngestCommand(sys *system) commandSpec {
	return commandSpec{
		Command:  &cli.Command{Name: "ingest", Usage: "declare nested records: infer"},
		subs:     []commandSpec{newInferCommand(sys)},
		examples: []string{"rbt ingest infer landing/orders > models/orders_raw.sql"},
		exits:    inferExits,
	}
}

const inferExits = `0    the declaration is on stdout
2    rbt could not start or finish: usage, project, input or output
130  interrupted`

func newInferCommand(sys *system) commandSpec {
	return commandSpec{
		args: 1,
		Command: &cli.Command{
			Name: "infer", Usage: "write the declaration of an ingest from a sample of its files", ArgsUsage: "PATH",
			Description: `Reads a sample of PATH (a file, a folder or a quoted glob) and writes the frontmatter of an ingest
model that takes every sampled record. Each line says in how many records its key was met; where
values disagree it says AMBIGUOUS. Nothing is built, and the project is not changed.`,
			Flags: flags([]cli.Flag{
				&cli.StringSliceFlag{Name: "glob", Usage: "of a folder only the files that match `GLOB`; repeatable"},
				&cli.StringFlag{Name: "root", Usage: "call the root record `NAME` (default: after PATH)"},
				&cli.StringFlag{Name: "format", Usage: "`FORMAT` of the files: auto, ndjson, json, csv, parquet or arrow_ipc"},
				&cli.StringFlag{Name: "compression", Usage: "`KIND` of compression: auto, none, gzip or zstd"},
				&cli.StringFlag{Name: "record-path", Usage: "records are at `PATH` of a JSON document, as '$.data[*]'"},
				&cli.Int64Flag{Name: "sample", Usage: "look at `N` records at most (default: 100000)"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				return runInfer(c.Context, sys, inferOptions{
					commonOptions: common, paths: c.Args().Slice(), globs: c.StringSlice("glob"), root: c.String("root"), format: c.String("format"),
					compression: c.String("compression"), recordPath: c.String("record-path"), sample: c.Int64("sample"),
				})
			},
		},
		examples: []string{
			"rbt ingest infer landing/orders > models/orders_raw.sql",
			"rbt ingest infer 'landing/crawl/**/*.ndjson.gz' --root crystal",
			"rbt ingest infer answer.json --record-path '$.data[*]'",
		},
		exits: inferExits,
	}
}

type inferOptions struct {
	commonOptions
	paths, globs                          []string
	root, format, compression, recordPath string
	sample                                int64
}

func (o inferOptions) check() error {
	const command = "rbt ingest infer"
	if len(o.paths) != 1 {
		return usageErrorf(command, "ingest infer takes one PATH: a file, a folder or a glob")
	}
	for _, word := range []struct {
		flag, value string
		allowed     []string
	}{
		{"format", o.format, []string{"auto", "ndjson", "json", "csv", "parquet", "arrow_ipc"}},
		{"compression", o.compression, []string{"auto", "none", "gzip", "zstd"}},
	} {
		if word.value != "" && !slices.Contains(word.allowed, word.value) {
			return usageErrorf(command, "--%s cannot be %q: one of %s", word.flag, word.value, strings.Join(word.allowed, ", "))
		}
	}
	if o.sample < 0 {
		return usageErrorf(command, "--sample takes a number of records, not %d", o.sample)
	}
	return nil
}

func runInfer(ctx context.Context, sys *system, o inferOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	path, err := sys.abs(o.paths[0])
	if err != nil {
		return err
	}
	written, note := inputAsWritten(ctx, sys, o, path)
	root := o.root
	if root == "" {
		root = rootName(path)
	}
	in, err := engine.InferIngest(ctx, engine.InferOptions{
		Path: path, Globs: o.globs, Written: written, Root: root, Format: o.format, Compression: o.compression, RecordPath: o.recordPath, Sample: o.sample,
	})
	if errors.Is(err, engine.ErrNoInput) {
		return fmt.Errorf("there is no file at %s", o.paths[0])
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(sys.stdout, in.Frontmatter); err != nil {
		return fmt.Errorf("write the declaration: %w", err)
	}
	if o.quiet {
		return nil
	}
	for _, text := range append([]string{note}, in.Notes...) {
		if text != "" {
			_, _ = fmt.Fprintf(sys.stderr, "note: %s\n", text)
		}
	}
	part := ""
	if in.Partial {
		part = ", a part of the input: --sample looks at more"
	}
	_, _ = fmt.Fprintf(sys.stderr, "Inferred from %s in %s%s.\n", count(in.Records, "record"), count(int64(in.Files), "file"), part)
	return nil
}

// inputAsWritten gives a path as a declaration names it: relative to the
// project, or below one of its roots. The note says what else has to be done
// where neither holds the path.
func inputAsWritten(ctx context.Context, sys *system, o inferOptions, path string) (written, note string) {
	dir, err := findProject(sys, o.projectDir)
	if err != nil {
		return filepath.ToSlash(o.paths[0]), ""
	}
	// What is wrong with the project does not matter here: the model that this
	// command is to write may be what is missing.
	p, _ := project.Load(ctx, project.Options{Dir: dir, Target: o.target, Env: sys.env, Secrets: sys.secrets})
	if p != nil {
		if text, ok := p.WrittenPath(path); ok {
			return text, ""
		}
	}
	return filepath.ToSlash(path), "the path leads out of the project: declare its folder in project.yml under roots: and write $name/… instead"
}

// rootName makes a name for the root record of the last word of a path that
// begins with a letter; "" where there is none.
func rootName(path string) string {
	words := strings.Split(filepath.ToSlash(path), "/")
	for _, word := range slices.Backward(words) {
		if strings.ContainsAny(word, "*?[{") {
			continue
		}
		word, _, _ = strings.Cut(word, ".")
		name := strings.Map(func(r rune) rune {
			if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
				return unicode.ToLower(r)
			}
			return '_'
		}, word)
		if name != "" && unicode.IsLetter(rune(name[0])) && !strings.Contains(name, "__") {
			return name
		}
		return ""
	}
	return ""
}
