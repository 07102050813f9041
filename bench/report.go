package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// result is what a case found.
type result struct {
	Scenario    string         `json:"scenario"`
	Case        string         `json:"case"`
	Base        string         `json:"base,omitempty"`
	Sides       []sideResult   `json:"sides,omitempty"`
	Check       string         `json:"check,omitempty"`
	Targets     []targetResult `json:"targets,omitempty"`
	Growth      []growthResult `json:"growth,omitempty"`
	Notes       []string       `json:"notes,omitempty"`
	NotMeasured string         `json:"not_measured,omitempty"`
}

// sideResult is the cost of one side: every run, the median, and how far the
// runs lay apart.
type sideResult struct {
	Name   string             `json:"name"`
	Runs   []usage            `json:"runs,omitempty"`
	Median usage              `json:"median"`
	Spread map[metric]float64 `json:"spread,omitempty"`
	Ratio  map[metric]float64 `json:"ratio,omitempty"` // to the base
	Failed string             `json:"failed,omitempty"`
}

// targetResult says whether a promise was kept; got has the unit of max.
type targetResult struct {
	Target string  `json:"target"`
	Max    float64 `json:"max"`
	Got    float64 `json:"got"`
	Met    bool    `json:"met"`
	Text   string  `json:"text"`
}

// settle fills in medians, spreads and ratios, and judges the targets.
func (r *result) settle(targets []target) {
	for i := range r.Sides {
		s := &r.Sides[i]
		s.Median = usage{
			WallS: median(s.Runs, wall), CPUS: median(s.Runs, cpu), PeakB: int64(median(s.Runs, peak)),
			WroteB: int64(median(s.Runs, wrote)), OutBytes: int64(median(s.Runs, kept)),
		}
		s.Spread = map[metric]float64{}
		for _, m := range metrics() {
			s.Spread[m] = spread(s.Runs, m)
		}
	}
	base := r.side(r.Base)
	for i := range r.Sides {
		s := &r.Sides[i]
		if base == nil || s.Name == r.Base || len(s.Runs) == 0 {
			continue
		}
		s.Ratio = map[metric]float64{}
		for _, m := range metrics() {
			if of := base.Median.get(m); of > 0 {
				s.Ratio[m] = s.Median.get(m) / of
			}
		}
	}
	for _, t := range targets {
		r.Targets = append(r.Targets, r.judge(t))
	}
}

// side finds a side by name; nil where there is none that ran.
func (r *result) side(name string) *sideResult {
	for i := range r.Sides {
		if r.Sides[i].Name == name && len(r.Sides[i].Runs) > 0 {
			return &r.Sides[i]
		}
	}
	return nil
}

func (r *result) judge(t target) targetResult {
	out := targetResult{Target: t.String(), Max: t.max}
	s := r.side(t.side)
	if s == nil {
		out.Text = "not measured"
		return out
	}
	out.Got = s.Median.get(t.metric)
	if t.against != "" {
		of := t.of
		if of == "" {
			of = t.metric
		}
		against := r.side(t.against)
		if against == nil || against.Median.get(of) == 0 {
			out.Text = "not measured"
			return out
		}
		out.Got /= against.Median.get(of)
		out.Text = fmt.Sprintf("%.3f x", out.Got)
	} else {
		out.Text = formatMetric(t.metric, out.Got)
	}
	out.Met = out.Got <= t.max
	return out
}

// formatMetric prints a figure with its unit.
func formatMetric(m metric, v float64) string {
	switch m {
	case wall, cpu:
		if v < 1 {
			return fmt.Sprintf("%.1f ms", v*1000)
		}
		return fmt.Sprintf("%.2f s", v)
	default:
		return fmt.Sprintf("%.1f MB", v/1e6)
	}
}

// text is the table of a case.
func (r *result) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "(%s) %s\n", r.Scenario, r.Case)
	if r.NotMeasured != "" {
		first, _, _ := strings.Cut(r.NotMeasured, "\n")
		fmt.Fprintf(&out, "    not measured: %s\n", first)
		return out.String()
	}
	if len(r.Sides) > 0 {
		r.writeSides(&out)
	}
	for _, g := range r.Growth {
		fmt.Fprintf(&out, "    %s\n", g)
	}
	if r.Check != "" {
		fmt.Fprintf(&out, "    outputs: %s\n", r.Check)
	}
	for _, t := range r.Targets {
		word := "MISSED"
		if t.Met {
			word = "met"
		}
		if t.Text == "not measured" {
			word = "not measured"
		}
		fmt.Fprintf(&out, "    target %s: %s (%s)\n", t.Target, word, t.Text)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "    %s\n", n)
	}
	return out.String()
}

func (r *result) writeSides(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\tside\truns\twall\t±\tcpu\t±\tpeak\twrote\toutput\twall x\tcpu x\tpeak x\t\n")
	for _, s := range r.Sides {
		if s.Failed != "" {
			first, _, _ := strings.Cut(s.Failed, "\n")
			fmt.Fprintf(table, "\t%s\tfailed: %s\t\n", s.Name, first)
			continue
		}
		fmt.Fprintf(table, "\t%s\t%d", s.Name, len(s.Runs))
		fmt.Fprintf(table, "\t%s\t%.0f%%", formatMetric(wall, s.Median.WallS), s.Spread[wall]*50)
		fmt.Fprintf(table, "\t%s\t%.0f%%", formatMetric(cpu, s.Median.CPUS), s.Spread[cpu]*50)
		for _, m := range []metric{peak, wrote, kept} {
			fmt.Fprintf(table, "\t%s", formatMetric(m, s.Median.get(m)))
		}
		for _, m := range []metric{wall, cpu, peak} {
			if s.Ratio == nil {
				fmt.Fprint(table, "\t")
				continue
			}
			fmt.Fprintf(table, "\t%.3g", s.Ratio[m])
		}
		fmt.Fprint(table, "\t\n")
	}
	table.Flush()
}

// report prints everything that was found and writes it as JSON where asked.
func (b *bench) report(out io.Writer) error {
	b.meta.FloorMB = float64(ownPeak()) / 1e6
	for _, name := range slices.Sorted(maps.Keys(b.tools)) {
		state := b.tools[name]
		b.meta.Tools[name] = state.version
		if state.reason != "" {
			b.meta.Tools[name] = "not measured: " + state.reason
		}
	}
	m := b.meta
	fmt.Fprintf(out, "%s, %s/%s, %d cores, %s, memory %s, load at start %s\n", m.When, m.OS, m.Arch, m.Cores, m.CPU, m.Memory, m.Load)
	fmt.Fprintf(out, "%s, %s, scale %g, %d runs a side; peak memory below %.0f MB reads as that\n", m.Rbt, m.Go, m.Scale, m.Repeat, m.FloorMB)
	for _, name := range slices.Sorted(maps.Keys(m.Tools)) {
		fmt.Fprintf(out, "%s: %s\n", name, m.Tools[name])
	}
	missed := 0
	for _, r := range b.results {
		fmt.Fprintf(out, "\n%s", r.text())
		for _, t := range r.Targets {
			if !t.Met {
				missed++
			}
		}
	}
	fmt.Fprintf(out, "\n%d cases, %d targets missed or not measured\n", len(b.results), missed)
	if b.opt.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"machine": m, "results": b.results}, "", " ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(b.opt.json, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
