package engine

import (
	"context"
	"fmt"

	"rbt/materialize/ingest"
)

// ErrNoInput is returned by InferIngest where no file matches.
var ErrNoInput = ingest.ErrNoInput

// InferOptions say from what an ingest declaration is inferred.
type InferOptions struct {
	// Path is a file, folder or glob; Globs say which files of a folder.
	Path  string
	Globs []string
	// Written is Path as the declaration names it.
	Written string
	// Root is what the root record is called; "" or a name that no relation can
	// have means record.
	Root string
	// Format, Compression and RecordPath as under `input:`; "" is auto.
	Format, Compression, RecordPath string
	// Sample bounds how many records are looked at; 0 means 100,000.
	Sample int64
}

// Inferred is an ingest declaration with what it stands on.
type Inferred struct {
	// Frontmatter is the text of a model.
	Frontmatter string
	// Records were sampled in Files; Skipped values there were no records. Partial
	// says that the input goes on behind the sample.
	Records, Skipped int64
	Files            int
	Partial          bool
	// Notes say what could not be declared.
	Notes []string
}

// InferIngest looks at a sample of an ingest's input and writes the declaration
// under which every sampled record loads. It needs no project. The error wraps
// ErrNoInput where there is no file.
func InferIngest(ctx context.Context, o InferOptions) (*Inferred, error) {
	files, err := ingest.Discover([]string{o.Path}, o.Globs)
	if err != nil {
		return nil, err
	}
	in, err := ingest.Infer(ctx, files, ingest.InferOptions{
		Name: o.Root, Format: o.Format, Compression: o.Compression, RecordPath: o.RecordPath, MaxRecords: o.Sample,
	})
	if err != nil {
		return nil, err
	}
	if _, problems := ingest.Compile(in.Spec); problems.HasErrors() {
		return nil, fmt.Errorf("infer a declaration: %w", problems.Err())
	}
	return &Inferred{
		Frontmatter: in.Frontmatter(o.Written, o.Globs...), Records: in.Records, Skipped: in.Skipped, Files: in.Files, Partial: in.Partial, Notes: in.Notes,
	}, nil
}
