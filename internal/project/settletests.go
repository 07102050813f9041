package project

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// settleTests adds the singular tests, resolves what tests name, and names them.
func (l *loader) settleTests() {
	p := l.p
	for _, s := range l.singular {
		if s.t != nil && s.enabled && !s.failed {
			p.Tests = append(p.Tests, s.t)
		}
	}
	l.configureTests()
	for _, t := range p.Tests {
		if t.settled {
			continue
		}
		before := len(l.diags)
		l.resolveTest(t)
		t.failed = t.failed || l.diags[before:].HasErrors()
		// The YAML trees would live as long as the project.
		t.snippets, t.said = nil, fields{}
	}
	l.keepModels()
	slices.SortStableFunc(p.Tests, func(a, b *Test) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Output, b.Output), a.Pos.Compare(b.Pos))
	})
	l.nameTests()
	// What is wrong with these is told; compiling them would tell it again.
	p.Tests = slices.DeleteFunc(p.Tests, func(t *Test) bool { return t.failed })
}

// resolveTest finds the relation that a relationship or row_count names.
func (l *loader) resolveTest(t *Test) {
	l.renderSnippets(t)
	l.refuseShares(t)
	for _, name := range sortedKeys(t.Args.Custom) {
		text, _ := t.Args.Custom[name].(string)
		if call, ok := referenceCall(text); ok {
			l.resolveArgument(t, call)
		}
	}
	if t.Args.To == "" && t.Args.EqualTo == "" {
		return
	}
	ref, problem := l.p.lookup(t.Args.toCall)
	if problem != nil {
		problem.Pos = t.Args.toPos
		l.report(*problem)
		return
	}
	ref.Pos = t.Args.toPos
	t.Args.Ref = ref
	if t.Args.EqualTo != "" {
		t.Args.EqualTo = ref.Node
	} else {
		t.Args.To, t.Args.ToSource = ref.Node, ref.Source
	}
}

// resolveArgument finds what an argument of a test block names.
func (l *loader) resolveArgument(t *Test, call refCall) {
	ref, problem := l.p.lookup(call)
	if problem != nil {
		problem.Pos = t.Pos
		l.report(*problem)
		return
	}
	ref.Pos = t.Pos
	t.Refs = append(t.Refs, ref)
}

// refuseShares refuses percentages in a singular test: it is about no relation,
// so that there are no rows to have a share of.
func (l *loader) refuseShares(t *Test) {
	if t.Template == nil {
		return
	}
	for _, limit := range []struct {
		key string
		is  *Threshold
	}{{"error_if", t.ErrorIf}, {"warn_if", t.WarnIf}} {
		if limit.is != nil && limit.is.Percent {
			l.report(diag.Errorf(diag.BadValue, t.Pos, "`%s: %s`: a singular test has no rows to take a percentage of", limit.key, limit.is.Text).
				WithHint("write a number of rows, as `> 10`, or let the query return a row where the share is too large"))
		}
	}
}

// nameTests gives every test without a name one that stays the same while the
// test does, and makes sure that no two are equal.
func (l *loader) nameTests() {
	byName := make(map[string]*Test, len(l.p.Tests))
	kept := l.p.Tests[:0]
	for _, t := range l.p.Tests {
		given := t.Name != ""
		if !given {
			t.Name = t.madeName()
		}
		first, taken := byName[folded(t.Name)]
		if taken && !given && first.identity() != t.identity() {
			t.Name += "_" + shortHash(t.identity())
			first, taken = byName[folded(t.Name)]
		}
		switch {
		case !taken:
			byName[folded(t.Name)] = t
			kept = append(kept, t)
		case !given && first.identity() == t.identity():
			w := diag.Errorf(diag.NameClash, t.Pos, "the same test stands twice").WithNote(first.Pos, "the first one")
			w.Severity = diag.Warning
			l.report(w)
		default:
			l.report(diag.Errorf(diag.NameClash, t.Pos, "two tests have the name %q", t.Name).
				WithNote(first.Pos, "the first one").WithHint("give one of them another `name:`"))
		}
	}
	l.p.Tests = kept
}

// maxTestName keeps the names of files that are called after a test short.
const maxTestName = 120

// madeName makes a name of kind, node, columns and arguments, as dbt does.
func (t *Test) madeName() string {
	node := t.Node
	if t.Output != "" {
		node = t.Output
	}
	clean := t.Kind + "_" + slug(node)
	for _, c := range t.Columns {
		clean += "_" + slug(c)
	}
	if args := slug(t.argText()); args != "" {
		clean += "__" + args
	}
	if len(clean) > maxTestName {
		end := maxTestName - 9
		for !utf8.RuneStart(clean[end]) {
			end--
		}
		clean = strings.TrimRight(clean[:end], "_") + "_" + shortHash(t.identity())
	}
	return clean
}

// slug gives a text as a name: letters and digits, all else as one _.
func slug(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

// argText gives the arguments that tell tests of one kind and column apart.
func (t *Test) argText() string {
	a := t.Args
	var parts []string
	for _, v := range a.Values {
		if v != nil {
			parts = append(parts, *v)
		}
	}
	if a.To != "" {
		parts = append(parts, a.To, a.Field)
	}
	parts = append(parts, spelledOut(a.SQL), a.Pattern, a.EqualTo)
	for _, v := range []*string{a.Min, a.Max, a.Equal, a.Value} {
		if v != nil {
			parts = append(parts, *v)
		}
	}
	if a.MaxAge > 0 {
		parts = append(parts, a.MaxAge.String())
	}
	for _, k := range sortedKeys(a.Custom) {
		parts = append(parts, k, fmt.Sprint(goText(a.Custom[k])))
	}
	if t.Where != "" {
		parts = append(parts, "where", spelledOut(t.Where))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, " ")
}

// operators are what conditions differ in most, as words that a name can hold.
var operators = strings.NewReplacer("<>", " ne ", "!=", " ne ", ">=", " ge ", "<=", " le ", ">", " gt ", "<", " lt ", "=", " eq ",
	"+", " plus ", "-", " minus ", "*", " times ", "/", " over ", "%", " mod ", "||", " and_then ")

func spelledOut(condition string) string { return operators.Replace(condition) }

// identity tells tests apart by all that changes what they check.
func (t *Test) identity() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q ", t.Kind, t.Node, t.Output, t.Columns)
	a := t.Args
	for _, v := range append([]*string{a.Min, a.Max, a.Equal, a.Value}, a.Values...) {
		if v == nil {
			b.WriteString("- ")
		} else {
			fmt.Fprintf(&b, "%q ", *v)
		}
	}
	for _, limit := range []*Threshold{t.WarnIf, t.ErrorIf} {
		if limit != nil {
			fmt.Fprintf(&b, "%q ", limit.Text)
		}
	}
	fmt.Fprintf(&b, "%d %d %q %v %q %q %q %q %v %v %d %q %v %s", t.Severity, t.Limit, a.To, a.ToSource, a.Field, a.SQL, a.EqualTo, a.Pattern,
		a.ExclusiveMin, a.ExclusiveMax, a.MaxAge, t.Where, t.FailNulls, t.argText())
	return b.String()
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// settleUnitTests checks what unit tests name.
func (l *loader) settleUnitTests() {
	if len(l.units) == 0 {
		return
	}
	models := make(map[string]*Model, len(l.p.Models))
	var names []string
	for _, m := range l.p.Models {
		models[folded(m.Name)] = m
		names = append(names, m.Name)
	}
	seen := map[string]*UnitTest{}
	for _, u := range l.units {
		if t, ok := l.p.index.nodes[folded(u.Model)]; ok && t.disabled != "" {
			continue
		}
		m := models[folded(u.Model)]
		if m == nil {
			d := diag.Errorf(diag.UnknownNode, u.modelPos, "there is no model %q", u.Model)
			if hint := suggestion(u.Model, names); hint != "" {
				d = d.WithHint("%s", hint)
			}
			l.report(d)
			continue
		}
		u.Model = m.Name
		l.checkUnitTest(u, m)
		if first := seen[folded(u.Name)]; first != nil {
			l.report(diag.Errorf(diag.NameClash, u.Pos, "two unit tests have the name %q", u.Name).WithNote(first.Pos, "the first one"))
			continue
		}
		seen[folded(u.Name)] = u
		l.p.UnitTests = append(l.p.UnitTests, u)
	}
	slices.SortStableFunc(l.p.UnitTests, func(a, b *UnitTest) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), strings.Compare(a.Name, b.Name))
	})
}

// overridable gives the functions and macros that a unit test may replace.
func (l *loader) overridable() map[string]bool {
	known := map[string]bool{}
	for name, v := range l.p.globals {
		if _, ok := v.(jinja.Func); ok {
			known[name] = true
		}
	}
	known["execute"] = true
	add := func(prefix string, infos []jinja.MacroInfo) {
		for _, m := range infos {
			if m.Kind == "macro" {
				known[prefix+m.Name] = true
			}
		}
	}
	for _, t := range l.p.macros {
		add("", t.Macros())
	}
	for space, file := range builtinSpaces {
		add(space+".", builtinTemplate(file).Macros())
	}
	for _, name := range bareMacros {
		known[name] = true
	}
	return known
}

func (l *loader) checkUnitTest(u *UnitTest, m *Model) {
	vague := l.p.lost.vague[m]
	if m.Materialization == Ingest {
		l.report(diag.Errorf(diag.Misplaced, u.Pos, "an ingest has no SQL, so that it has no unit tests"))
	}
	if u.ExpectTable != nil && !vague && m.Materialization != Incremental {
		l.report(diag.Errorf(diag.Misplaced, u.ExpectTable.Pos, "`expect_table` is for incremental models, %s is a %s", m.Name, m.Materialization).
			WithHint("write `expect:`"))
	}
	if len(u.Macros) > 0 && l.known == nil {
		l.known = l.overridable()
	}
	for _, name := range sortedKeys(u.Macros) {
		if l.known[name] || l.p.lost.macro(name) {
			continue
		}
		d := diag.Errorf(diag.UnknownNode, u.macrosPos, "there is no macro %q to override", name)
		if hint := suggestion(name, slices.Collect(maps.Keys(l.known))); hint != "" {
			d = d.WithHint("%s", hint)
		}
		l.report(d)
	}
	for i := range u.Given {
		g := &u.Given[i]
		if g.call.this {
			if m.Materialization != Incremental && !vague {
				l.report(diag.Errorf(diag.Misplaced, g.inputPos, "`this` is an input of incremental models only"))
			}
			continue
		}
		ref, problem := l.p.lookup(g.call)
		if problem != nil {
			problem.Pos = g.inputPos
			l.report(*problem)
			continue
		}
		ref.Pos = g.inputPos
		g.Ref, g.Input, g.IsSource = ref, ref.Node, ref.Source
	}
}
