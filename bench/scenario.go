package main

import (
	"fmt"
	"slices"
	"strings"
)

// scenario is a lettered group of cases.
type scenario struct {
	letter, title string
	run           func(*bench) error
}

// scenarios is the whole list, in order.
func scenarios() []scenario {
	return []scenario{
		{"a", "one model of 20 M rows x 17 columns", runWide},
		{"b", "500 small models in layers of 50", runLayers},
		{"c", "1,000 and 10,000 models: ls, plan, compile, a run with nothing to do", runMany},
		{"d", "a star schema of 40 models over 10 M rows", runStar},
		{"e", "100 appends of 100,000 rows each, and a reader", runAppends},
		{"f", "assertions and unit tests", runAssertions},
		{"g", "ingest of nested and flat records", runIngest},
		{"h", "the same under a memory limit of 1 GB", runMemory},
		{"i", "ingests under memory limits, at two sizes, and large appends", runBigIngest},
	}
}

// choose picks scenarios by their letters.
func choose(letters string) ([]scenario, error) {
	all := scenarios()
	if letters == "" {
		return all, nil
	}
	var chosen []scenario
	for _, letter := range strings.Split(letters, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.letter == strings.TrimSpace(letter) })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q (see -list)", letter)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// side is one way to do the work of a case.
type side struct {
	name  string
	reset func() error          // before every run, not measured; may be nil
	run   func() (usage, error) // measured
	// outputs says where the results of the last run lie, to compare them;
	// nil: this side is not compared.
	outputs func() (map[string]relation, error)
	once    bool // too slow to repeat: run in the first round only
}

// metric names a figure of a run.
type metric string

// The metrics, in the order in which they are printed.
const (
	wall  metric = "wall"   // seconds
	cpu   metric = "cpu"    // seconds, user and system, of the process and its children
	peak  metric = "peak"   // bytes of resident memory at the highest
	wrote metric = "wrote"  // bytes handed to the disk
	kept  metric = "output" // bytes of the published files
)

func metrics() []metric { return []metric{wall, cpu, peak, wrote, kept} }

// target bounds a metric of a side: absolutely, or as a ratio to that of
// another side where against is set.
type target struct {
	side    string
	metric  metric
	against string
	max     float64
	// against another metric than its own; "" the same
	of metric
}

func (t target) String() string {
	if t.against == "" {
		return fmt.Sprintf("%s %s at most %s", t.side, t.metric, formatMetric(t.metric, t.max))
	}
	of := string(t.of)
	if of == "" {
		of = string(t.metric)
	}
	return fmt.Sprintf("%s %s at most %.3g x the %s of %s", t.side, t.metric, t.max, of, t.against)
}

// compareBy says how much of two outputs must be the same.
type compareBy int

const (
	byNothing compareBy = iota // the sides' outputs are not compared
	byValue                    // same rows, and every value the same in its own type
	byText                     // same rows, values compared as text: for tools that choose other types
	byCount                    // same number of rows in every relation
)

// comparison is a case: sides that do the same work.
type comparison struct {
	name    string
	base    string // the side that ratios are taken against
	sides   []side
	targets []target
	check   compareBy
	notes   []string
}

// compare runs the sides of a case in turn, as often as asked, checks that
// they made the same, and adds the result.
func (b *bench) compare(c comparison) error {
	res := result{Case: c.name, Base: c.base, Notes: c.notes}
	for _, s := range c.sides {
		res.Sides = append(res.Sides, sideResult{Name: s.name})
	}
	for round := range b.opt.repeat {
		for i, s := range c.sides {
			if res.Sides[i].Failed != "" || (s.once && round > 0) {
				continue
			}
			u, err := b.measureSide(s)
			if err != nil {
				res.Sides[i].Failed = err.Error()
				b.logf("   %s: %s: %v", c.name, s.name, err)
				continue
			}
			if b.opt.verbose {
				b.logf("   %s: %s: %s", c.name, s.name, u)
			}
			res.Sides[i].Runs = append(res.Sides[i].Runs, u)
		}
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
	}
	res.settle(c.targets)
	if c.check != byNothing {
		res.Check = b.checkSides(c, res.Sides)
	}
	b.add(res)
	return nil
}

// measureSide runs one side once, with the disk quiet.
func (b *bench) measureSide(s side) (usage, error) {
	if s.reset != nil {
		if err := s.reset(); err != nil {
			return usage{}, fmt.Errorf("prepare %s: %w", s.name, err)
		}
	}
	flushDisk()
	u, err := s.run()
	if err != nil || s.outputs == nil {
		return u, err
	}
	outputs, err := s.outputs()
	if err != nil {
		return u, err
	}
	u.OutBytes, err = outputSize(outputs)
	return u, err
}

func (b *bench) add(r result) {
	r.Scenario = b.scenario
	b.results = append(b.results, r)
	b.logf("%s", strings.TrimRight(r.text(), "\n"))
}
