package project

import (
	"cmp"
	"time"
)

// Operate adds and subtracts spans, and gives the span between two times.
func (m moment) Operate(op string, other any, swapped bool) (any, bool, error) {
	switch o := timeOf(other).(type) {
	case span:
		return shifted(op, o, swapped, func(d time.Duration) any { return moment{m.t.Add(d), m.zoned} })
	case moment:
		if op == "-" && !swapped {
			return span{m.t.Sub(o.t)}, true, nil
		}
	}
	return nil, false, nil
}

// Order compares two times.
func (m moment) Order(other any) (int, bool) {
	if o, ok := timeOf(other).(moment); ok {
		return m.t.Compare(o.t), true
	}
	return 0, false
}

// Operate adds and subtracts spans, of which only whole days count, and gives
// the span between two days.
func (d day) Operate(op string, other any, swapped bool) (any, bool, error) {
	switch o := other.(type) {
	case span:
		days, _, _ := o.parts()
		return shifted(op, span{time.Duration(days) * 24 * time.Hour}, swapped, func(by time.Duration) any { return day{d.t.Add(by)} })
	case day:
		if op == "-" && !swapped {
			return span{d.t.Sub(o.t)}, true, nil
		}
	}
	return nil, false, nil
}

// Order compares two days.
func (d day) Order(other any) (int, bool) {
	if o, ok := other.(day); ok {
		return d.t.Compare(o.t), true
	}
	return 0, false
}

// shifted moves a time by a span: time + span, span + time, time - span.
func shifted(op string, by span, swapped bool, move func(time.Duration) any) (any, bool, error) {
	switch {
	case op == "+":
		return move(by.d), true, nil
	case op == "-" && !swapped:
		return move(-by.d), true, nil
	}
	return nil, false, nil
}

// Operate adds and subtracts spans and multiplies them by whole numbers.
func (s span) Operate(op string, other any, swapped bool) (any, bool, error) {
	switch o := other.(type) {
	case span:
		switch {
		case op == "+":
			return span{s.d + o.d}, true, nil
		case op == "-" && !swapped:
			return span{s.d - o.d}, true, nil
		}
	case int64:
		const limit = 100 * 365 * 24 * time.Hour
		if op == "*" && (s.d == 0 || o >= -int64(limit)/max(1, int64(s.d.Abs())) && o <= int64(limit)/max(1, int64(s.d.Abs()))) {
			return span{s.d * time.Duration(o)}, true, nil
		}
	}
	return nil, false, nil
}

// Order compares two spans.
func (s span) Order(other any) (int, bool) {
	if o, ok := other.(span); ok {
		return cmp.Compare(s.d, o.d), true
	}
	return 0, false
}

// Operate is that of the time.
func (c *clock) Operate(op string, other any, swapped bool) (any, bool, error) {
	return c.touch().Operate(op, other, swapped)
}

// Order is that of the time.
func (c *clock) Order(other any) (int, bool) { return c.touch().Order(other) }

// timeOf gives the time of run_started_at, and any other value as it is.
func timeOf(v any) any {
	if c, ok := v.(*clock); ok {
		return c.touch()
	}
	return v
}
