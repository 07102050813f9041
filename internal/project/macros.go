package project

import (
	"path/filepath"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// loadMacros parses macros/ and tests/generic/, whose macros and test blocks all
// templates see.
func (l *loader) loadMacros() []jinja.MacroInfo {
	var files []foundFile
	for _, f := range l.find("macros") {
		if strings.EqualFold(filepath.Ext(f.rel), ".sql") {
			files = append(files, f)
		}
	}
	l.testFiles = l.find("tests")
	for _, f := range l.testFiles {
		if strings.EqualFold(filepath.Ext(f.rel), ".sql") && isGeneric(f) {
			files = append(files, f)
		}
	}
	templates := make([]*jinja.Template, len(files))
	texts := make([]string, len(files))
	lists := make([]diag.List, len(files))
	each(len(files), func(i int) {
		sub := &loader{p: l.p}
		text, ok := sub.read(files[i])
		if ok {
			texts[i] = text
			templates[i], lists[i] = jinja.Parse(files[i].rel, text, 1)
		}
		lists[i] = append(lists[i], sub.diags...)
	})
	var infos []jinja.MacroInfo
	for i, t := range templates {
		l.diags = append(l.diags, lists[i]...)
		if t == nil || lists[i].HasErrors() {
			addWords(l.p.lost.words, texts[i])
			l.p.lost.all = l.p.lost.all || t == nil
			continue
		}
		l.p.macros = append(l.p.macros, t)
		l.macroTexts = append(l.macroTexts, texts[i])
		infos = append(infos, t.Macros()...)
	}
	var list diag.List
	l.p.library, list = newLibrary(l.p.macros)
	l.diags = append(l.diags, list...)
	return infos
}

// isGeneric reports whether a file under tests/ holds test blocks rather than a
// singular test.
func isGeneric(f foundFile) bool { return strings.HasPrefix(f.sub, "generic/") }

// ownTests gives the kinds of tests that {% test %} blocks define.
func (l *loader) ownTests(infos []jinja.MacroInfo) *testKinds {
	own := map[string]*ownTest{}
	for _, info := range infos {
		if info.Kind != "test" {
			continue
		}
		if builtinTests[info.Name] != nil {
			l.report(diag.Errorf(diag.BadMacro, info.Pos, "rbt has a test %s of its own", info.Name).WithHint("give the block another name"))
			continue
		}
		if len(info.Params) == 0 {
			l.p.lost.words[folded(info.Name)] = true
			l.report(diag.Errorf(diag.BadMacro, info.Pos, "the test %s has no parameter for the relation", info.Name).
				WithHint("write {%% test %s(model, column_name) %%}", info.Name))
			continue
		}
		own[info.Name] = &ownTest{info: info, table: newTestTable(info.Name, nil)}
	}
	kinds := newTestKinds(own)
	kinds.lost = l.p.lost
	return kinds
}
