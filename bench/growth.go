package main

import (
	"fmt"
	"math"
)

// growthResult says how a side's cost grows with the size of its work: cost is
// about size to the power of the exponent, so 1 is linear and 2 quadratic.
type growthResult struct {
	Side      string             `json:"side"`
	Unit      string             `json:"unit"`
	Sizes     []int              `json:"sizes"`
	Usages    []usage            `json:"usages"`
	Exponents map[metric]float64 `json:"exponents"`
}

func (g growthResult) String() string {
	text := fmt.Sprintf("%s at %v %s:", g.Side, g.Sizes, g.Unit)
	for _, m := range []metric{wall, cpu, peak} {
		text += fmt.Sprintf(" %s", m)
		for _, u := range g.Usages {
			text += " " + formatMetric(m, u.get(m))
		}
		text += fmt.Sprintf(" (size^%.2f);", g.Exponents[m])
	}
	return text
}

// grow runs each side at a quarter, a half and the whole of a size, and reports
// the exponents.
func (b *bench) grow(name, unit string, size int, sides func(n int) ([]side, error)) error {
	var found []growthResult
	for _, n := range []int{max(1, size/4), max(2, size/2), max(4, size)} {
		all, err := sides(n)
		if err != nil {
			return err
		}
		for i, s := range all {
			if len(found) <= i {
				found = append(found, growthResult{Side: s.name, Unit: unit})
			}
			var runs []usage
			for range b.opt.repeat {
				u, err := b.measureSide(s)
				if err != nil {
					return fmt.Errorf("%s at %d %s: %w", s.name, n, unit, err)
				}
				runs = append(runs, u)
			}
			g := &found[i]
			g.Sizes = append(g.Sizes, n)
			g.Usages = append(g.Usages, usage{WallS: median(runs, wall), CPUS: median(runs, cpu), PeakB: int64(median(runs, peak))})
		}
	}
	for i := range found {
		found[i].Exponents = map[metric]float64{}
		for _, m := range []metric{wall, cpu, peak} {
			found[i].Exponents[m] = exponent(found[i], m)
		}
	}
	b.add(result{Case: "growth: " + name, Growth: found})
	return nil
}

// exponent fits log cost = a + exponent * log size by least squares.
func exponent(g growthResult, m metric) float64 {
	var sx, sy, sxx, sxy float64
	n := float64(len(g.Sizes))
	for i, size := range g.Sizes {
		x, y := math.Log(float64(size)), math.Log(max(1e-6, g.Usages[i].get(m)))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
