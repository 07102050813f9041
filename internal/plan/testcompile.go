package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"rbt/internal/diag"
	"rbt/internal/project"
)

// test compiles a test: its hash, and what it reads besides the node that it is
// about.
func (c *compiler) test(ctx context.Context, t *TestNode) ([]project.Ref, diag.List) {
	if t.Unit != nil {
		t.Hash = digest(t.Unit)
		if len(t.Unit.Vars)+len(t.Unit.Macros) > 0 && t.About != nil && t.About.Model != nil {
			// What it renders to is not among the renderings of the model.
			t.Hash = hashText(t.Hash, t.About.Model.Body)
		}
		t.Hash = t.Hash[:testHashSize]
		return nil, nil
	}
	refs := slices.Clone(t.Test.Refs)
	diags := c.conditions(t)
	if len(diags) > 0 {
		return nil, diags
	}
	normalized := ""
	if t.templated() {
		compiled, list := c.p.CompileTest(ctx, t.Test, c.options(false))
		if list.HasErrors() {
			return nil, list
		}
		found, more := c.reader.look(compiled)
		t.Compiled, normalized = compiled, c.p.Mask(found.normalized)
		t.Volatile = cmp.Or(compiled.Volatile, found.volatile)
		refs, diags = slices.Concat(refs, compiled.Refs, found.refs), append(list, more...)
	}
	if a := t.Test.Args; a.To != "" || a.EqualTo != "" {
		refs = append(refs, a.Ref)
	}
	for _, sql := range []string{t.Test.Args.SQL, t.Test.Where} {
		more, list := c.fragment(t, sql)
		refs, diags = append(refs, more...), append(diags, list...)
	}
	if t.Test.Kind == "freshness" {
		t.Volatile = "a freshness test"
	}
	t.Hash = hashText(digest(asked(t.Test)), normalized)[:testHashSize]
	return refs, diags
}

// testHashSize is the length of a test's hash in hex digits: a receipt holds one
// for each test of its node, and only these must differ.
const testHashSize = 12

// asked leaves out of a test what does not change its result. A template counts
// as what it renders to.
func asked(t *project.Test) project.Test {
	a := *t
	a.Template = nil
	a.Name, a.Description, a.Tags, a.File, a.Folder, a.Body, a.BodyLine, a.Refs = "", "", nil, "", "", "", 0, nil
	return a
}

// conditions refuses conditions of a test that would end the parentheses around
// them, since that would change what is asked. Any other fault is left to the
// engine, which knows the columns that they are about.
func (c *compiler) conditions(t *TestNode) diag.List {
	var diags diag.List
	for _, sql := range []string{t.Test.Args.SQL, t.Test.Where} {
		if sql == "" {
			continue
		}
		if err := c.reader.parser.Condition(sql); err != nil {
			diags = append(diags, faultyCondition(t, err))
		}
	}
	return diags
}

// fragment looks into a condition of a test.
func (c *compiler) fragment(t *TestNode, sql string) ([]project.Ref, diag.List) {
	if sql == "" {
		return nil, nil
	}
	query := fmt.Sprintf("select (%s\n)", sql)
	scan, err := c.reader.parser.Scan(query)
	if err != nil {
		return nil, nil
	}
	t.Volatile = cmp.Or(t.Volatile, scan.Volatile)
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

// faultyCondition says at the place of a test what is wrong with a condition of it.
func faultyCondition(t *TestNode, err error) diag.Diagnostic {
	d := diag.Errorf(diag.SQLSyntax, t.Test.Pos, "%v", err)
	var at interface {
		SQLDiagnostic(diag.Pos) diag.Diagnostic
	}
	if errors.As(err, &at) {
		d = at.SQLDiagnostic(t.Test.Pos)
		d.Width = 0
	}
	d.Msg = fmt.Sprintf("test %s: %s", t.Test.Kind, d.Msg)
	return d
}
