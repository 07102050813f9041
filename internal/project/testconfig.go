package project

import (
	"context"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// configureTests takes config() in the bodies of singular tests and in {% test %}
// blocks, as dbt does. Of a block, YAML at the test counts before.
func (l *loader) configureTests() {
	blocks := l.configuringBlocks()
	l.p.Tests = slices.DeleteFunc(l.p.Tests, func(t *Test) bool {
		singular := t.Template != nil
		if singular && !strings.Contains(t.Body, "config") || !singular && !blocks[t.Kind] {
			return false
		}
		calls := &configCalls{}
		if err := l.renderTest(t, calls); err != nil {
			l.diags = append(l.diags, asList(err, t.Pos)...)
			t.failed = true
			return false
		}
		enabled := true
		for _, c := range calls.calls {
			enabled = l.applyTestCall(t, c, singular) && enabled
		}
		return !enabled
	})
}

// configuringBlocks gives the test blocks of files that call config().
func (l *loader) configuringBlocks() map[string]bool {
	blocks := map[string]bool{}
	for i, t := range l.p.macros {
		if !strings.Contains(l.macroTexts[i], "config") {
			continue
		}
		for _, m := range t.Macros() {
			blocks[m.Name] = m.Kind == "test"
		}
	}
	return blocks
}

// renderTest renders a test for its config().
func (l *loader) renderTest(t *Test, calls *configCalls) error {
	r := &rendering{p: l.p, cfg: calls}
	if t.Template != nil {
		_, err := r.render(l.ctx, t.Template)
		return err
	}
	kwargs, list := r.testArguments(t)
	if list != nil {
		// An unknown relation is reported where tests are resolved.
		return nil
	}
	ctx := context.WithValue(l.ctx, renderingKey{}, r)
	_, err := jinja.CallMacro(ctx, r.library(), "test", t.Kind, []any{r.testRelation(t)}, kwargs, r.options())
	return l.p.lost.follows(err)
}

// applyTestCall lays one config() over a test and reports whether the test is
// enabled.
func (l *loader) applyTestCall(t *Test, c *jinja.Call, singular bool) bool {
	mf := &modelFile{foundFile: foundFile{rel: t.File}, m: &Model{Body: t.Body, BodyLine: t.BodyLine}}
	d := &decoder{file: c.Pos.File}
	f, ok := d.fields(mf.callNode(d, c), testConfigCall)
	if ok {
		fresh := &Test{}
		fresh.Description = f.text("description")
		said := t.said
		f.testConfig(fresh)
		for key, take := range map[string]func(){
			"severity":    func() { t.Severity = fresh.Severity },
			"warn_if":     func() { t.WarnIf = fresh.WarnIf },
			"error_if":    func() { t.ErrorIf = fresh.ErrorIf },
			"where":       func() { t.Where = fresh.Where },
			"limit":       func() { t.Limit = fresh.Limit },
			"nulls":       func() { t.FailNulls = fresh.FailNulls },
			"description": func() { t.Description = fresh.Description },
		} {
			switch {
			case !f.has(key):
			case said.t == nil || !said.has(key):
				take()
			case singular:
				d.add(diag.Errorf(diag.Contradicted, f.keyPos(key), "%s stands in the frontmatter too", f.label(key)).
					WithNote(said.keyPos(key), "the other place").WithHint("say it once"))
			}
		}
		t.Tags = append(t.Tags, fresh.Tags...)
	}
	l.diags = append(l.diags, d.diags...)
	return f.boolean("enabled", true)
}

// testConfigCall is what config() takes in a test.
var testConfigCall = newTable("test_config_call", "config() of a test", foreignTestConfigKeys, singularTable.keys...)
