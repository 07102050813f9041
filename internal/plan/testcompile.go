package plan

import (
	"context"
	"fmt"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// test compiles a test: its hash, and what it reads besides the node that it is
// about.
func (c *compiler) test(ctx context.Context, t *TestNode) ([]project.Ref, diag.List) {
	if t.Unit != nil {
		t.Hash = digest(t.Unit)
		return nil, nil
	}
	var refs []project.Ref
	var diags diag.List
	normalized := ""
	if t.About == nil {
		compiled, list := c.p.CompileText(ctx, t.Test.File, t.Test.Body, t.Test.BodyLine, c.options(false))
		if list.HasErrors() {
			return nil, list
		}
		found, more := c.reader.look(compiled)
		t.Compiled, normalized = compiled, found.normalized
		t.Volatile = compiled.Volatile
		if t.Volatile == "" {
			t.Volatile = found.volatile
		}
		refs, diags = append(compiled.Refs, found.refs...), append(list, more...)
	}
	if a := t.Test.Args; a.To != "" || a.EqualTo != "" {
		refs = append(refs, a.Ref)
	}
	for _, sql := range []string{t.Test.Args.SQL, t.Test.Where} {
		more, list := c.fragment(t, sql)
		refs, diags = append(refs, more...), append(diags, list...)
	}
	if t.Test.Kind == "freshness" {
		t.Volatile = "freshness"
	}
	t.Hash = hashText(digest(asked(t.Test)), normalized)
	return refs, diags
}

// asked leaves out of a test what does not change its result.
func asked(t *project.Test) project.Test {
	a := *t
	a.Name, a.Description, a.Tags, a.File, a.Body, a.BodyLine = "", "", nil, "", "", 0
	return a
}

// fragment looks into a condition of a test. A fault in it is left to the
// engine, which knows the columns that it is about.
func (c *compiler) fragment(t *TestNode, sql string) ([]project.Ref, diag.List) {
	if sql == "" {
		return nil, nil
	}
	query := fmt.Sprintf("select (%s\n)", sql)
	scan, err := c.reader.parser.Scan(query)
	if err != nil {
		return nil, nil
	}
	if t.Volatile == "" {
		t.Volatile = scan.Volatile
	}
	hits := c.reader.hits(scan.Identifiers)
	if len(hits) == 0 {
		return nil, nil
	}
	tables, err := c.reader.parser.Tables(query)
	switch {
	case err != nil:
		return nil, nil
	case tables.Refused:
		return nil, diag.List{diag.Errorf(diag.BareName, t.Test.Pos,
			"%q is also the name of a model, and whether it is meant in the test %s cannot be told", hits[0], t.Name).
			WithHint("write a singular test with {{ ref('%s') }}", hits[0])}
	}
	var refs []project.Ref
	for _, name := range tables.Names {
		if ref, ok := c.reader.relation(name); ok {
			ref.Pos = t.Test.Pos
			refs = append(refs, ref)
		}
	}
	return refs, nil
}
