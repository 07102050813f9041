package project

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// moment is a time as templates see it: Python's datetime in UTC. Of zoned ones
// the zone is known and printed; those that templates make have none, as in
// Python.
type moment struct {
	t     time.Time
	zoned bool
}

// String prints it as Python does.
func (m moment) String() string { return m.iso(" ") }

func (m moment) iso(sep string) string {
	s := m.t.Format("2006-01-02") + sep + m.t.Format("15:04:05")
	if us := m.t.Nanosecond() / 1000; us != 0 {
		s += fmt.Sprintf(".%06d", us)
	}
	if m.zoned {
		s += "+00:00"
	}
	return s
}

// Attr gives parts and methods of a datetime.
func (m moment) Attr(name string) (any, bool) {
	switch name {
	case "hour":
		return int64(m.t.Hour()), true
	case "minute":
		return int64(m.t.Minute()), true
	case "second":
		return int64(m.t.Second()), true
	case "microsecond":
		return int64(m.t.Nanosecond() / 1000), true
	case "isoformat":
		return jinja.Func(func(c *jinja.Call) (any, error) {
			if len(c.Args) == 1 {
				sep, _ := textArg(c.Args[0])
				return m.iso(sep), nil
			}
			return m.iso("T"), nil
		}), true
	case "date":
		return method(func() any { return day{midnight(m.t)} }), true
	case "timestamp":
		return method(func() any { return float64(m.t.UnixMicro()) / 1e6 }), true
	case "astimezone":
		return method(func() any { return moment{m.t, true} }), true
	case "replace":
		return jinja.Func(func(c *jinja.Call) (any, error) {
			t := m.t
			n, err := numbers(c, clockParts, []int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond() / 1000})
			if err != nil {
				return nil, err
			}
			v, err := exactTime(c, n)
			if err != nil {
				return nil, err
			}
			return moment{v.t, m.zoned}, nil
		}), true
	}
	return dateAttr(m.t, m.zoned, name)
}

// method is a function without arguments.
func method(f func() any) jinja.Func {
	return func(*jinja.Call) (any, error) { return f(), nil }
}

// day is Python's date.
type day struct{ t time.Time }

// String prints it as Python does.
func (d day) String() string { return d.t.Format("2006-01-02") }

// Attr gives parts and methods of a date.
func (d day) Attr(name string) (any, bool) {
	switch name {
	case "isoformat":
		return method(func() any { return d.String() }), true
	case "replace":
		return jinja.Func(func(c *jinja.Call) (any, error) {
			n, err := numbers(c, clockParts[:3], []int{d.t.Year(), int(d.t.Month()), d.t.Day()})
			if err != nil {
				return nil, err
			}
			v, err := exactTime(c, append(n, 0, 0, 0, 0))
			if err != nil {
				return nil, err
			}
			return day{v.t}, nil
		}), true
	}
	return dateAttr(d.t, false, name)
}

// dateAttr gives what dates and datetimes share.
func dateAttr(t time.Time, zoned bool, name string) (any, bool) {
	switch name {
	case "year":
		return int64(t.Year()), true
	case "month":
		return int64(t.Month()), true
	case "day":
		return int64(t.Day()), true
	case "weekday":
		return method(func() any { return int64((t.Weekday() + 6) % 7) }), true
	case "isoweekday":
		return method(func() any { return int64((t.Weekday()+6)%7 + 1) }), true
	case "strftime":
		return jinja.Func(func(c *jinja.Call) (any, error) {
			if len(c.Args) != 1 {
				return nil, badCall(c, "strftime takes a format")
			}
			format, ok := textArg(c.Args[0])
			if !ok {
				return nil, badCall(c, "strftime takes a text")
			}
			out, bad := strftime(t, zoned, format)
			if bad != "" {
				return nil, diag.Errorf(diag.TemplateUnsupported, c.Pos, "strftime does not know %s", bad)
			}
			return out, nil
		}), true
	}
	return nil, false
}

// strftime formats a time as Python does in the C locale; without a zone %z and
// %Z are nothing.
func strftime(t time.Time, zoned bool, format string) (out, bad string) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		directive, plain := format[i], false
		if directive == '-' && i+1 < len(format) {
			i++
			directive, plain = format[i], true
		}
		if !zoned && (directive == 'z' || directive == 'Z') {
			continue
		}
		part, ok := timePart(t, directive)
		if !ok {
			return "", "%" + string(directive)
		}
		if plain {
			part = strings.TrimLeft(part, "0")
			if part == "" {
				part = "0"
			}
		}
		b.WriteString(part)
	}
	return b.String(), ""
}

// timeLayouts are the directives that Go formats alike.
var timeLayouts = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'I': "03", 'p': "PM", 'y': "06", 'j': "002",
	'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
	'R': "15:04", 'e': "_2", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'z': "-0700", 'Z': "UTC",
}

func timePart(t time.Time, directive byte) (string, bool) {
	if layout, ok := timeLayouts[directive]; ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	switch directive {
	case '%':
		return "%", true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'G':
		return strconv.Itoa(year), true
	case 'V':
		return pad2(week), true
	case 'u':
		return strconv.Itoa(int(t.Weekday()+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(int(t.Weekday())), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'U':
		return pad2((t.YearDay() + 6 - int(t.Weekday())) / 7), true
	case 'W':
		return pad2((t.YearDay() + 6 - int(t.Weekday()+6)%7) / 7), true
	}
	return "", false
}
