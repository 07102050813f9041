package plan

import (
	"slices"

	"rbt/internal/project"
)

// Asked are the gates and unit tests that a step asks when it is run: all of one
// that is built or may be, of one that audits what is published those that have not
// passed on it, none of one that is unchanged.
func (s *Step) Asked() (gates []*project.Test, units []*project.UnitTest) {
	switch s.Action {
	case ActionUnchanged:
		return nil, nil
	case ActionAudit:
		passed := rememberedTests(s.Receipt)
		asked := map[any]bool{}
		for _, t := range s.tests {
			if passed[t.Hash] && t.Volatile == "" {
				continue
			}
			if t.Unit != nil {
				asked[t.Unit] = true
			} else {
				asked[t.Test] = true
			}
		}
		return slices.DeleteFunc(slices.Clone(s.Gates), func(t *project.Test) bool { return !asked[t] }),
			slices.DeleteFunc(slices.Clone(s.UnitTests), func(u *project.UnitTest) bool { return !asked[u] })
	}
	return s.Gates, s.UnitTests
}

// LateActions says of each of Late whether it runs: ActionRun, ActionUnchanged, or
// ActionRunIfChanged where data that it looks at may change.
func (p *Plan) LateActions() []Action {
	byNode := make(map[*Node]Action, len(p.Steps))
	for _, s := range p.Steps {
		byNode[s.Node] = s.Action
	}
	out := make([]Action, len(p.Late))
	for i, l := range p.Late {
		actions := []Action{byNode[l.Owner]}
		for _, number := range l.After {
			if number <= len(p.Steps) {
				actions = append(actions, p.Steps[number-1].Action)
			}
		}
		switch {
		case len(l.Reasons) > 0 || slices.Contains(actions, ActionRun):
			out[i] = ActionRun
		case slices.Contains(actions, ActionRunIfChanged):
			out[i] = ActionRunIfChanged
		default:
			out[i] = ActionUnchanged
		}
	}
	return out
}
