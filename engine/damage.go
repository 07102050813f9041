package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// brokenFile is what the engine (1.5.6) says where the bytes of a Parquet file
// make no sense; it names the file in few of these messages. Any of them may have
// another cause, so that the files are asked before one is blamed.
var brokenFile = regexp.MustCompile(`(?i)don't know what type|corrupt|failed to read file|decompress|parquet|thrift|tprotocol|out of buffer`)

// unreadable gives an error of a query that failed because a file which it read,
// published or of a source, is damaged inside: it names that file. All other
// errors are given back as they are. Each file is read whole, which is done only
// after an error that says so, to find the one that says it alone.
func (c *catalog) unreadable(ctx context.Context, s *session, err error, reads []*relation) error {
	var told diag.Diagnostic
	if errors.As(err, &told) || !brokenFile.MatchString(err.Error()) {
		return err
	}
	for _, r := range c.under(reads) {
		if found := c.brokenIn(ctx, s, r); found != nil {
			return found
		}
	}
	return err
}

// named gives the relations that a compiled text refers to, bound or not.
func (c *catalog) named(refs []project.Ref) []*relation {
	var out []*relation
	for _, ref := range refs {
		if r, ok := c.lookup(ref.Relation()); ok {
			out = append(out, r)
		}
	}
	return out
}

// brokenIn finds a file of a relation that cannot be read; nil where all can.
func (c *catalog) brokenIn(ctx context.Context, s *session, r *relation) error {
	r.mu.Lock()
	table := r.table
	r.mu.Unlock()
	if r.node.Source != nil {
		if table == nil || table.format != "parquet" {
			return nil
		}
		for _, file := range table.files {
			if err := readWhole(ctx, s, file); err != nil {
				return table.problem(diag.SourceValue, file, 0, "cannot be read as Parquet: %v", err)
			}
		}
		return nil
	}
	pub, ok, err := c.published(r.node)
	if err != nil || !ok || pub.damage != nil {
		return nil
	}
	for _, o := range pub.receipt.Outputs {
		for i, file := range pub.files(o.Relation) {
			if err := readWhole(ctx, s, file); err != nil && i < len(o.Files) {
				damage := lake.DamageError{Node: r.node.Name, Path: o.Files[i].Path, Err: fmt.Errorf("%s is damaged inside, and the engine cannot read it: %w", o.Files[i].Path, err)}
				d := damage.Diagnostic()
				d.Pos = diag.Pos{} // that of what reads it, which is where the user looks
				return d
			}
		}
	}
	return nil
}

// readWhole reads every value of a Parquet file. The error is that of the engine;
// that the reading was interrupted is none.
func readWhole(ctx context.Context, s *session, file string) error {
	query := "SELECT bit_xor(hash(t)) FROM read_parquet(" + quoteText(literalPath(file)) + ", hive_partitioning = false) AS t"
	err := s.Query(ctx, query, func([]any) error { return nil })
	if ctx.Err() != nil {
		return nil
	}
	var e *EngineError
	if errors.As(err, &e) {
		return errors.New(messageOf(e))
	}
	return err
}
