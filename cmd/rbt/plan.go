package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/plan"
)

var planFormats = []string{"json", "text"}

func newPlanCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "plan", Usage: "say what a run would do, in what order, and why",
			Description: `Compares the project with what is published and prints every step of a run with its reason.
It writes nothing but target/cache, and takes no lock.`,
			Flags: flags(selectFlags(), deferFlags(), []cli.Flag{
				&cli.BoolFlag{Name: "full-refresh", Aliases: []string{"f"}, Usage: "plan for run --full-refresh"},
				&cli.BoolFlag{Name: "force", Usage: "plan for run --force"},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORM`: text or json"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				o := planOptions{commonOptions: common, fullRefresh: c.Bool("full-refresh"), force: c.Bool("force")}
				if o.selectOptions, err = readSelect(c, sys); err != nil {
					return err
				}
				if o.output, err = oneOf(c, "output", "text", planFormats); err != nil {
					return err
				}
				return runPlan(c.Context, sys, o)
			},
		},
		examples: []string{"rbt plan", "rbt plan -s fct_orders+", "rbt plan --output json | jq '.steps[] | select(.action == \"run\") | .name'"},
		exits:    unableExits,
	}
}

type planOptions struct {
	commonOptions
	selectOptions
	fullRefresh bool
	force       bool
	output      string
}

func runPlan(ctx context.Context, sys *system, o planOptions) error {
	s, err := openProject(ctx, sys, o.commonOptions, true)
	if err != nil {
		return err
	}
	defer s.close()
	s.noTexts = true
	state, err := s.stateAndGraph(ctx)
	if err != nil {
		return err
	}
	po := s.planOptions(ctx, o.selectOptions)
	po.FullRefresh, po.Force = o.fullRefresh, o.force
	other, err := s.deferTo(ctx, o.past)
	if err != nil {
		return s.fail(err)
	}
	po.Defer = other.state
	p, err := s.plan(ctx, state, po)
	if err != nil {
		return err
	}
	text := planText(p)
	if o.output == "json" {
		if text, err = planJSON(p); err != nil {
			return err
		}
	}
	_, err = io.WriteString(s.out, text)
	return err
}

// planVerb says what will be done with a step, in one word.
func planVerb(s *plan.Step) string {
	switch {
	case s.Action == plan.ActionRun && s.Appends:
		return "append"
	case s.Action == plan.ActionRun:
		return "build"
	case s.Action == plan.ActionRunIfChanged:
		return "maybe"
	case s.Action == plan.ActionAudit:
		return "audit"
	}
	return string(s.Action)
}

func stepName(s *plan.Step) string {
	n := engine.NodeResult{ResourceType: string(s.Node.Kind), Display: s.Node.Display()}
	if s.Node.Model != nil {
		n.Materialization = string(s.Node.Model.Materialization)
	}
	return describe(&n)
}

// planText prints the steps as a table: number, what, node, why.
func planText(p *plan.Plan) string {
	if len(p.Steps) == 0 {
		if tests := len(p.Late) + len(p.UnitTests); tests > 0 {
			return fmt.Sprintf("No nodes. %s on what is published.\n", count(int64(tests), "test"))
		}
		return "Nothing to do.\n"
	}
	var b strings.Builder
	width, digits := 0, len(fmt.Sprint(len(p.Steps)))
	counts := map[string]int{}
	for _, s := range p.Steps {
		width = max(width, cellWidth(stepName(s)))
		counts[planVerb(s)]++
	}
	for _, s := range p.Steps {
		name := stepName(s)
		fmt.Fprintf(&b, "%*d  %-9s  %s%s  %s\n", digits, s.Number, planVerb(s), name, strings.Repeat(" ", width-cellWidth(name)), strings.Join(s.Reasons, "; "))
	}
	var parts []string
	for _, verb := range []struct{ word, phrase string }{
		{"build", "to build"}, {"append", "to append to"}, {"maybe", "to build if a parent's data changes"},
		{"audit", "to audit again"}, {"unchanged", "unchanged"},
	} {
		if n := counts[verb.word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verb.phrase))
		}
	}
	fmt.Fprintf(&b, "\n%s: %s. %s\n", count(int64(len(p.Steps)), "node"), strings.Join(parts, ", "), plannedTests(p))
	for _, name := range p.Orphans {
		fmt.Fprintf(&b, "%s is published but no longer in the project.\n", name)
	}
	for _, path := range p.Foreign {
		fmt.Fprintf(&b, "%s lies in the lake, and no run of rbt published it.\n", path)
	}
	return b.String()
}

// plannedTests counts the tests of a plan by when they run.
func plannedTests(p *plan.Plan) string {
	before, after, perhaps, passed := 0, 0, 0, 0
	for _, s := range p.Steps {
		gates, units := s.Asked()
		n := len(gates) + len(units)
		passed += len(s.Gates) + len(s.UnitTests) - n
		switch s.Action {
		case plan.ActionRun:
			before += n
		case plan.ActionRunIfChanged:
			perhaps += n
		default:
			after += n
		}
	}
	for i, action := range p.LateActions() {
		switch action {
		case plan.ActionRun:
			if ofSource(p.Late[i]) {
				before++
			} else {
				after++
			}
		case plan.ActionRunIfChanged:
			perhaps++
		default:
			passed++
		}
	}
	text := fmt.Sprintf("%s before publishing, %d after", count(int64(before), "test"), after)
	if perhaps > 0 {
		text += fmt.Sprintf(", %d if data changes", perhaps)
	}
	if passed > 0 {
		text += fmt.Sprintf("; %d passed on data that does not change", passed)
	}
	return text + "."
}

// ofSource reports whether a late test comes before what reads the source that it is
// about.
func ofSource(t plan.LateTest) bool { return t.Guards && len(t.After) == 0 }

type jsonPlan struct {
	Steps   []jsonStep `json:"steps"`
	Guards  []string   `json:"tests_of_sources"`
	Late    []string   `json:"tests_after_publish"`
	Orphans []string   `json:"orphans"`
	Foreign []string   `json:"foreign"`
}

type jsonStep struct {
	Number          int      `json:"number"`
	ID              string   `json:"unique_id"`
	Name            string   `json:"name"`
	Materialization string   `json:"materialized"`
	Action          string   `json:"action"`
	Incremental     bool     `json:"incremental"`
	Reasons         []string `json:"reasons"`
	After           []int    `json:"after"`
	Gates           []string `json:"tests_before_publish"`
}

func planJSON(p *plan.Plan) (string, error) {
	j := jsonPlan{Steps: []jsonStep{}, Guards: []string{}, Late: []string{}, Orphans: orEmpty(p.Orphans), Foreign: orEmpty(p.Foreign)}
	for _, s := range p.Steps {
		step := jsonStep{
			Number: s.Number, ID: s.Node.ID, Name: s.Node.Name, Materialization: string(s.Node.Kind), Action: string(s.Action),
			Incremental: s.Incremental, Reasons: orEmpty(s.Reasons), After: []int{}, Gates: []string{},
		}
		if s.Node.Model != nil {
			step.Materialization = string(s.Node.Model.Materialization)
		}
		for _, a := range slices.Concat(s.After, s.Looks) {
			if a <= len(p.Steps) {
				step.After = append(step.After, a)
			}
		}
		slices.Sort(step.After)
		gates, _ := s.Asked()
		for _, t := range gates {
			step.Gates = append(step.Gates, t.Name)
		}
		j.Steps = append(j.Steps, step)
	}
	for i, action := range p.LateActions() {
		switch name := p.Late[i].Test.Name; {
		case action == plan.ActionUnchanged:
		case ofSource(p.Late[i]):
			j.Guards = append(j.Guards, name)
		default:
			j.Late = append(j.Late, name)
		}
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode the plan: %w", err)
	}
	return string(text) + "\n", nil
}
