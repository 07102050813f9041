package project

import (
	"cmp"
	"slices"
	"strings"

	"rbt/internal/jinja"
)

// Macro is a macro or {% test %} block of the project. Text runs from the line
// on which it begins to the line before the next one of its file.
type Macro struct {
	Name string
	Kind string // "macro" or "test"
	File string
	Line int
	Text string
}

// Macros lists what macros/ and tests/generic/ define, by file and place.
func (p *Project) Macros() []Macro {
	var all []Macro
	for _, t := range p.macros {
		infos := t.Macros()
		slices.SortFunc(infos, func(a, b jinja.MacroInfo) int { return a.Pos.Compare(b.Pos) })
		for i, info := range infos {
			m := Macro{Name: info.Name, Kind: info.Kind, File: info.Pos.File, Line: info.Pos.Line}
			if text, ok := p.SourceText(m.File); ok {
				lines := strings.SplitAfter(text, "\n")
				end := len(lines)
				if i+1 < len(infos) {
					end = max(m.Line, infos[i+1].Pos.Line-1)
				}
				m.Text = strings.Join(lines[min(m.Line-1, len(lines)):min(end, len(lines))], "")
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Macro) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	return all
}
