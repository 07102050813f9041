package plan

import "rbt/internal/diag"

// pastMatcher compares with an earlier command, and reports where there is
// nothing to compare with.
func (x *index) pastMatcher(t term) func(*item) bool {
	if !x.asked[t.method] {
		x.asked[t.method] = true
		x.ask(t)
	}
	switch t.method {
	case byResult:
		return func(it *item) bool { return x.results[it.id] == t.value }
	case bySourceStatus:
		return func(it *item) bool { return x.sources[it.id] == t.value }
	default:
		return func(it *item) bool { return x.states[it.id].is(t.value) }
	}
}

// ask fetches what a method compares with.
func (x *index) ask(t term) {
	var err error
	var given bool
	var hint string
	switch t.method {
	case byResult:
		hint = "result: looks at target/run_results.json of the last run: run first"
		if given = x.past.Results != nil; given {
			x.results, err = x.past.Results()
		}
	case bySourceStatus:
		hint = "source_status: looks at target/sources.json: run `rbt source freshness` before, and again now"
		if given = x.past.Sources != nil; given {
			x.sources, err = x.past.Sources()
		}
	default:
		hint = "state: compares with another manifest: add --state DIR or --state git:REF"
		if given = x.past.State != nil; given {
			x.states, err = x.past.State(x.g)
		}
	}
	switch {
	case !given:
		x.diags = append(x.diags, diag.Errorf(diag.SelectorNeedsState, diag.Pos{},
			"selector %q has nothing to compare with", t.text).WithHint("%s", hint))
	case err != nil:
		x.diags = append(x.diags, diag.Errorf(diag.SelectorNeedsState, diag.Pos{},
			"selector %q has nothing to compare with: %v", t.text, err).WithHint("%s", hint))
	}
}

// is reports whether a change is of one of the kinds of state:, in dbt's
// meaning: what is new is modified in every way.
func (c Change) is(what string) bool {
	switch what {
	case "new":
		return c.New
	case "old":
		return !c.New
	case "modified.body":
		return c.New || c.Body
	case "modified.configs":
		return c.New || c.Configs
	case "unmodified":
		return c == Change{}
	default: // modified
		return c != Change{}
	}
}
