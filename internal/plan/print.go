package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Line is one step of a plan as it is shown: `rbt plan --output json` gives one
// object each with these keys.
type Line struct {
	Number          int      `json:"number"`
	ID              string   `json:"unique_id"`
	Name            string   `json:"name"` // with folders: "staging.stg_orders"
	Kind            Kind     `json:"resource_type"`
	Materialization string   `json:"materialization"` // "seed" of a seed
	File            string   `json:"file"`
	Action          Action   `json:"action"`
	Reasons         []string `json:"reasons"`
	Incremental     bool     `json:"incremental"` // appends
	After           []int    `json:"after"`
	Gates           []string `json:"gates"` // names of tests that hold it back
	UnitTests       []string `json:"unit_tests"`
	Fingerprint     string   `json:"fingerprint"` // "" while parents decide
}

// LateLine is a late test as it is shown.
type LateLine struct {
	Name    string   `json:"name"`
	After   []int    `json:"after"`
	Reasons []string `json:"reasons"`
}

// Document is a whole plan as it is shown. Lists are never null, so that its
// JSON has the same keys whatever is in it.
type Document struct {
	Steps     []Line     `json:"steps"`
	Relays    []RelayDoc `json:"relays"`
	Late      []LateLine `json:"late_tests"`
	UnitTests []string   `json:"unit_tests"`
	Deferred  []string   `json:"deferred"`
	Orphans   []string   `json:"orphans"`
	Foreign   []string   `json:"foreign"`
}

// RelayDoc is a relay as it is shown.
type RelayDoc struct {
	Number int    `json:"number"`
	ID     string `json:"unique_id"`
	After  []int  `json:"after"`
}

// Document gives the plan as it is shown.
func (p *Plan) Document() Document {
	d := Document{Steps: []Line{}, Relays: []RelayDoc{}, Late: []LateLine{}, UnitTests: []string{}, Deferred: []string{},
		Orphans: list(p.Orphans), Foreign: list(p.Foreign)}
	for _, s := range p.Steps {
		l := Line{Number: s.Number, ID: s.Node.ID, Name: s.Node.Display(), Kind: s.Node.Kind, Materialization: string(s.Node.materialization()),
			File: s.Node.File, Action: s.Action, Reasons: list(s.Reasons), Incremental: s.Incremental, After: list(s.After),
			Gates: []string{}, UnitTests: []string{}, Fingerprint: s.Fingerprint}
		if s.Node.Seed != nil {
			l.Materialization = "seed"
		}
		for _, t := range s.Gates {
			l.Gates = append(l.Gates, t.Name)
		}
		for _, u := range s.UnitTests {
			l.UnitTests = append(l.UnitTests, u.Name)
		}
		d.Steps = append(d.Steps, l)
	}
	for _, r := range p.Relays {
		d.Relays = append(d.Relays, RelayDoc{Number: r.Number, ID: r.Node.ID, After: list(r.After)})
	}
	for _, l := range p.Late {
		d.Late = append(d.Late, LateLine{Name: l.Test.Name, After: list(l.After), Reasons: list(l.Reasons)})
	}
	for _, u := range p.UnitTests {
		d.UnitTests = append(d.UnitTests, u.Name)
	}
	for _, n := range p.Deferred {
		d.Deferred = append(d.Deferred, n.Name)
	}
	return d
}

func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// MarshalJSON gives the plan as Document does.
func (p *Plan) MarshalJSON() ([]byte, error) { return json.Marshal(p.Document()) }

// actionWords are the actions as a person reads them; never changed.
var actionWords = map[Action]string{
	ActionRun: "run", ActionUnchanged: "unchanged", ActionRunIfChanged: "maybe", ActionAudit: "audit",
}

// Text gives the plan in lines: one a step in run order with what is done and
// why, then the late tests and what lies in the lake besides.
func (p *Plan) Text() []string {
	var rows [][4]string
	d := p.Document()
	for _, s := range d.Steps {
		rows = append(rows, [4]string{fmt.Sprint(s.Number), actionWords[s.Action], s.Materialization + " " + s.Name, strings.Join(s.Reasons, "; ")})
	}
	for _, l := range d.Late {
		why := strings.Join(l.Reasons, "; ")
		if why == "" {
			why = "if anything that it reads is built"
		}
		rows = append(rows, [4]string{"-", "test", l.Name, why})
	}
	for _, u := range d.UnitTests {
		rows = append(rows, [4]string{"-", "test", u, "unit test"})
	}
	lines := align(rows)
	for _, n := range d.Deferred {
		lines = append(lines, "deferred: "+n+" is read from the other lake")
	}
	for _, n := range d.Orphans {
		lines = append(lines, "orphan: "+n+" is published and no longer in the project")
	}
	for _, f := range d.Foreign {
		lines = append(lines, "foreign: "+f+" was published by no run of rbt")
	}
	return lines
}

// align pads all columns but the last.
func align(rows [][4]string) []string {
	var width [3]int
	for _, r := range rows {
		for i := range width {
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		var b strings.Builder
		for i, w := range width {
			pad := strings.Repeat(" ", w-utf8.RuneCountInString(r[i]))
			if i == 0 {
				b.WriteString(pad + r[i])
			} else {
				b.WriteString("  " + r[i] + pad)
			}
		}
		lines = append(lines, b.String()+"  "+r[3])
	}
	return lines
}
