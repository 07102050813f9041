package project

import (
	"strings"
	"unicode"

	"rbt/internal/diag"
)

// lost is what a project with broken files may declare without that it can be read.
// A name that it holds is not reported as unknown: the mistake in the file that
// would declare it is told, and there may be no other.
type lost struct {
	words  map[string]bool // of macro files that are broken, folded
	yml    map[string]bool // of broken files that declare sources and variables, folded
	all    bool            // a file of macros cannot be read as text
	allYML bool            // a .yml file cannot
	names  map[string]bool // folded names of models whose outputs are not known
	// untold are the models of which a template fails that was rendered already.
	untold map[*Model]bool
	vague  map[*Model]bool // models of which a configuration is not known
}

func newLost() *lost {
	return &lost{words: map[string]bool{}, yml: map[string]bool{}, names: map[string]bool{}, untold: map[*Model]bool{}, vague: map[*Model]bool{}}
}

// addWords adds all words of a text that could be names.
func addWords(to map[string]bool, text string) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		to[folded(word)] = true
	}
}

// macro reports whether a name may be that of a macro or test block in a broken file.
func (l *lost) macro(name string) bool { return l.all || l.words[folded(name)] }

// declared reports whether a name may stand in a broken file of sources or variables.
func (l *lost) declared(name string) bool { return l.allYML || l.yml[folded(name)] }

// source reports whether a table of a source may be declared there.
func (l *lost) source(group, table string) bool { return l.declared(group) && l.declared(table) }

// output reports whether a name may be that of a model that is not there as such,
// or of an output of an ingest that cannot be read.
func (l *lost) output(name string) bool {
	if len(l.names) == 0 {
		return false
	}
	name = folded(name)
	if base, _, ok := strings.Cut(name, "."); l.names[name] || ok && l.names[base] {
		return true
	}
	for i := range len(name) {
		if strings.HasPrefix(name[i:], "__") && l.names[name[:i]] {
			return true
		}
	}
	return false
}

// follows turns an error about a name that a broken file may define into one that
// is not told.
func (l *lost) follows(err error) error {
	d, ok := err.(diag.Diagnostic)
	if !ok || d.Code != diag.UndefinedName {
		return err
	}
	name, ok := strings.CutSuffix(d.Msg, "' is undefined")
	if ok && l.macro(strings.TrimPrefix(name, "'")) {
		return diag.Consequence(d.Pos)
	}
	return err
}

// losing notes models that are broken, before names are looked up.
func (l *loader) losing() {
	for _, mf := range l.models {
		if mf.vague {
			l.p.lost.names[folded(mf.m.Name)] = true
		}
	}
}

// lose notes what cannot be told of a model, once all of its own mistakes are known.
func (l *loader) lose(mf *modelFile) {
	if mf.vague || mf.d.diags.HasErrors() {
		l.p.lost.vague[mf.m] = true
	}
	if mf.failed || !mf.recalled && !mf.whole {
		l.p.lost.untold[mf.m] = true
	}
}

// Checkable reports whether a project with errors was loaded far enough that its
// models and tests can be compiled to find more of them.
func (p *Project) Checkable() bool { return p.loaded }

// Broken reports whether the project has errors: then nothing of it may run.
func (p *Project) Broken() bool { return p.problems.HasErrors() }

// Clashing reports whether several nodes have one name.
func (p *Project) Clashing() bool { return p.clash }

// Vague reports whether the configuration of a model is not known, since there is
// a mistake in it, which was told.
func (p *Project) Vague(m *Model) bool { return p.lost.vague[m] }
