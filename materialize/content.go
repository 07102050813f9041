package materialize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rbt/internal/lake"
)

// maxCompared is the number of values, rows times columns, up to which a relation
// that was built again is compared with the published one row by row: some 30 ms
// of one core. Above it only an equal file counts as equal.
const maxCompared = 2_000_000

// hashContent lets what depends on a relation tell whether it has other content
// than before. Without it the commit tells, and equal data counts as new.
//
// The hash is that of the files' pages. A model without ORDER BY that several
// threads built has its rows in another order every time: where all else is as
// before, the rows are compared as a set that counts repetitions, and the
// published hash stays where they are equal.
func (p *publication) hashContent(ctx context.Context, s Session, o *StagedOutput, followed func(file string) *lake.Following) error {
	if o.ContentHash != nil {
		return nil
	}
	files := make([]string, len(o.Files))
	for i, f := range o.Files {
		files[i] = f.Path
	}
	hash, err := p.lake.ContentHash(files, o.Columns, followed)
	if err != nil {
		return &FaultError{p.Name, err}
	}
	o.ContentHash = &hash
	published, ok := p.previous.Output(o.Relation)
	if !ok || !p.comparable(published, o) || *published.ContentHash == hash {
		return nil
	}
	if same, err := p.sameRows(ctx, s, published, files); err == nil && same {
		o.ContentHash, o.rearranged = published.ContentHash, true // what cannot be compared counts as new
	}
	return ctx.Err()
}

// keeps reports whether what is staged is a table as it is published, made by the
// same text under the same settings out of other inputs: a reader of the file has
// nothing of a new one. Rows in another order are published, since the text may say
// the order, by what it does not select.
func (p *publication) keeps(staged Staged) bool {
	old := p.previous
	switch {
	case p.Form != lake.FormFile && p.Form != lake.FormParts || p.Force || p.FullRefresh:
		return false
	case !old.Recorded || old.Foreign || old.Damage != nil || old.Receipt.Form != p.Form || old.Receipt.Path != p.place.Path():
		return false
	case len(p.Inputs.Config) == 0: // unknown inputs; no node is without config
		return false
	case old.Receipt.Inputs.SQL != p.Inputs.SQL || old.Receipt.Inputs.Engine != p.Inputs.Engine || !maps.Equal(old.Receipt.Inputs.Config, p.Inputs.Config):
		return false
	}
	for _, o := range staged.Outputs {
		published, ok := old.Output(o.Relation)
		if !ok || o.rearranged || o.ContentHash == nil || published.ContentHash == nil || *o.ContentHash != *published.ContentHash {
			return false
		}
		// A receipt may hold the hash of an older order of the rows, and pages can be
		// damaged.
		hash, err := p.lake.ContentHash(p.paths(published), published.Columns, nil)
		if err != nil || hash != *o.ContentHash {
			return false
		}
	}
	return true
}

// paths gives the published files of an output, absolute.
func (p *publication) paths(o lake.Output) []string {
	files := make([]string, len(o.Files))
	for i, f := range o.Files {
		files[i] = filepath.Join(p.lake.Root(), filepath.FromSlash(f.Path))
	}
	return files
}

// comparable reports whether it is worth while, and certain enough, to compare
// the rows of a relation with the published ones.
func (p *publication) comparable(published lake.Output, o *StagedOutput) bool {
	switch {
	case !p.HasReaders || published.ContentHash == nil || p.previous.Damage != nil || p.previous.Foreign:
		return false
	case published.Rows != o.Rows || o.Rows*int64(len(o.Columns)) > maxCompared || !slices.Equal(published.Columns, o.Columns):
		return false
	}
	return !slices.ContainsFunc(o.Columns, func(c lake.Column) bool { return !hashedExactly(c.Type) })
}

// hashedExactly reports whether two values of a type are equal to the engine's
// hash exactly where they are stored alike: not numbers of floating point, whose
// zeros have two forms, and nothing nested.
func hashedExactly(typ string) bool {
	if strings.HasPrefix(typ, "DECIMAL(") {
		return !strings.HasSuffix(typ, "]")
	}
	return slices.Contains([]string{
		"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
		"VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
	}, typ)
}

// sameRows reports whether the staged files hold exactly the published rows, each
// as often, in whatever order: equal numbers of rows and equal sums of two hashes
// of every row. Sums and not exclusive ors, in which a row that stands there twice
// would count as none.
func (p *publication) sameRows(ctx context.Context, s Session, published lake.Output, staged []string) (bool, error) {
	old := p.paths(published)
	if len(old) == 0 || len(staged) == 0 {
		return false, nil
	}
	if may, err := p.lake.MayHoldSame(old, staged); err != nil || !may {
		return false, err
	}
	before, err := p.rowSums(ctx, s, "published", old, published.Columns)
	if err != nil {
		return false, err
	}
	now, err := p.rowSums(ctx, s, "staged", staged, published.Columns)
	return err == nil && before == now, err
}

// rowSums gives, as text, the number of rows of files and the sums of two hashes
// of each row, which take its values in both directions.
func (p *publication) rowSums(ctx context.Context, s Session, which string, files []string, columns []lake.Column) (sums string, err error) {
	view := p.Name + " " + which // no node has a blank in its name
	if err := s.Relation(ctx, "main", view, files, columns); err != nil {
		return "", err
	}
	relation := QuoteIdent("main") + "." + QuoteIdent(view)
	defer func() { err = errors.Join(err, s.Exec(ctx, "DROP VIEW "+relation)) }()
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = QuoteIdent(c.Name)
	}
	forth := strings.Join(names, ", ")
	slices.Reverse(names)
	query := fmt.Sprintf("SELECT concat_ws(' ', count(*), sum(hash(%s)), sum(hash(%s, 1))) FROM %s", forth, strings.Join(names, ", "), relation)
	err = s.Query(ctx, query, func(v []any) error {
		sums = fmt.Sprint(v[0])
		return nil
	})
	return sums, err
}
