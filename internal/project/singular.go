package project

import (
	"path/filepath"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// singularFile is a singular test while it is loaded.
type singularFile struct {
	foundFile
	t       *Test
	d       *decoder
	enabled bool
	failed  bool // the template cannot be parsed
}

// loadSingular reads the singular tests: every .sql file under tests/ that is not
// under tests/generic/.
func (l *loader) loadSingular() {
	for _, f := range l.testFiles {
		if strings.EqualFold(filepath.Ext(f.rel), ".sql") && !isGeneric(f) {
			l.singular = append(l.singular, &singularFile{foundFile: f})
		}
	}
	each(len(l.singular), func(i int) { l.readSingular(l.singular[i]) })
	for _, s := range l.singular {
		l.diags = append(l.diags, s.d.diags...)
	}
}

func (l *loader) readSingular(s *singularFile) {
	s.d = &decoder{file: s.rel}
	sub := &loader{p: l.p}
	text, ok := sub.read(s.foundFile)
	s.d.diags = append(s.d.diags, sub.diags...)
	if !ok {
		return
	}
	cut := splitFrontmatter(text)
	if cut.has && !cut.closed {
		s.d.add(diag.Errorf(diag.Unclosed, diag.Pos{File: s.rel, Line: 1, Col: 1}, "the frontmatter is never closed").
			WithHint("end it with a line that is exactly ---"))
		return
	}
	t := &Test{
		Name: s.stem(), Kind: "singular", File: s.rel, Folder: s.folder(), Body: cut.body, BodyLine: cut.bodyLine,
		Pos: diag.Pos{File: s.rel, Line: cut.bodyLine, Col: 1},
	}
	if problem := nameProblem(t.Name); problem != "" {
		s.d.add(badName(diag.Pos{File: s.rel}, "a test", t.Name, problem))
		return
	}
	s.enabled = true
	if cut.has {
		root, list := yamlText{file: s.rel, text: cut.yaml, line: 2}.parse()
		s.d.diags = append(s.d.diags, list...)
		f, ok := s.d.fields(root, singularTable)
		if list == nil && ok {
			t.Description = f.text("description")
			f.testConfig(t)
			s.enabled = f.boolean("enabled", true)
		}
	}
	template, list := jinja.Parse(s.rel, cut.body, cut.bodyLine)
	s.d.diags = append(s.d.diags, list...)
	t.Template, s.failed = template, list.HasErrors()
	for _, m := range template.Macros() {
		if m.Kind == "test" {
			s.d.add(diag.Errorf(diag.Misplaced, m.Pos, "a test block stands in a singular test").
				WithHint("move the file to tests/generic/"))
			return
		}
	}
	s.t = t
}
