package engine

import (
	"rbt/internal/diag"
	"rbt/internal/project"
)

// outcome settles what a number of violations means, in dbt's order: an error
// where error_if holds and the severity is error, else a warning where warn_if
// holds, else a pass. checked is the number of rows looked at, for thresholds in
// percent; no violation in no rows is 0%.
func outcome(t *project.Test, failures, checked int64) Status {
	if t.Severity == diag.Error && holds(t.ErrorIf, failures, checked) {
		return StatusFail
	}
	if holds(t.WarnIf, failures, checked) {
		return StatusWarn
	}
	return StatusPass
}

func holds(th *project.Threshold, failures, checked int64) bool {
	if th == nil {
		return failures != 0
	}
	value, limit := float64(failures), th.Number
	if th.Percent {
		// Compared as failures*100 against limit*checked, so that no quotient is
		// rounded before it meets the limit. Where nothing was looked at, a violation
		// (too few rows, no newest value) is all there is, and none is 0%.
		value, limit = value*100, limit*float64(max(checked, 1))
	}
	switch th.Op {
	case "=", "==":
		return value == limit
	case "!=", "<>":
		return value != limit
	case "<":
		return value < limit
	case "<=":
		return value <= limit
	case ">":
		return value > limit
	case ">=":
		return value >= limit
	}
	return failures != 0
}

// asksForShare reports whether a threshold is a share of the rows looked at.
func asksForShare(t *project.Test) bool {
	return t.WarnIf != nil && t.WarnIf.Percent || t.ErrorIf != nil && t.ErrorIf.Percent
}

// refuses reports whether a test that ended so stops what it gates.
func (s Status) refuses() bool { return s == StatusFail || s == StatusError }
