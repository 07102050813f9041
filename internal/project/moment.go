package project

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/jinja"
)

// moment is a time as templates see it: Python's datetime in UTC.
type moment struct{ t time.Time }

// String prints it as Python does.
func (m moment) String() string { return m.iso(" ") }

func (m moment) iso(sep string) string {
	s := m.t.Format("2006-01-02") + sep + m.t.Format("15:04:05")
	if us := m.t.Nanosecond() / 1000; us != 0 {
		s += fmt.Sprintf(".%06d", us)
	}
	return s + "+00:00"
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
		return method(func() any { return m }), true
	case "replace":
		return jinja.Func(func(c *jinja.Call) (any, error) {
			t := m.t
			n, err := numbers(c, clockParts, []int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond() / 1000})
			if err != nil {
				return nil, err
			}
			return exactTime(c, n)
		}), true
	}
	return dateAttr(m.t, name)
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
			return day{v.(moment).t}, nil
		}), true
	}
	return dateAttr(d.t, name)
}

// dateAttr gives what dates and datetimes share.
func dateAttr(t time.Time, name string) (any, bool) {
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
			out, bad := strftime(t, format)
			if bad != "" {
				return nil, diag.Errorf(diag.TemplateUnsupported, c.Pos, "strftime does not know %s", bad)
			}
			return out, nil
		}), true
	}
	return nil, false
}

// strftime formats a time as Python does in the C locale.
func strftime(t time.Time, format string) (out, bad string) {
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

// reObject gives match, search, sub, findall, split and escape of Python's re
// for the patterns that both languages read alike.
func reObject() *object {
	pattern := func(c *jinja.Call, n int) (*regexp.Regexp, []string, error) {
		if len(c.Args) != n {
			return nil, nil, badCall(c, "it takes %d texts", n)
		}
		texts := make([]string, n)
		for i, a := range c.Args {
			s, ok := textArg(a)
			if !ok {
				return nil, nil, badCall(c, "it takes texts")
			}
			texts[i] = s
		}
		re, err := regexp.Compile(texts[0])
		if err != nil {
			return nil, nil, badCall(c, "the pattern %q is not supported: %s", texts[0], strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		return re, texts, nil
	}
	find := func(whole, start bool) jinja.Func {
		return func(c *jinja.Call) (any, error) {
			re, texts, err := pattern(c, 2)
			if err != nil {
				return nil, err
			}
			m := re.FindStringSubmatchIndex(texts[1])
			if m == nil || start && m[0] != 0 || whole && m[1] != len(texts[1]) {
				return nil, nil
			}
			return &found{re: re, text: texts[1], at: m}, nil
		}
	}
	return &object{name: "re", attrs: map[string]any{
		"match": find(false, true), "fullmatch": find(true, true), "search": find(false, false),
		"sub": jinja.Func(func(c *jinja.Call) (any, error) {
			re, texts, err := pattern(c, 3)
			if err != nil {
				return nil, err
			}
			return re.ReplaceAllString(texts[2], groupReference.ReplaceAllString(strings.ReplaceAll(texts[1], "$", "$$"), "$${$1}")), nil
		}),
		"findall": jinja.Func(func(c *jinja.Call) (any, error) {
			re, texts, err := pattern(c, 2)
			if err != nil {
				return nil, err
			}
			return foundAll(re, texts[1]), nil
		}),
		"split": jinja.Func(func(c *jinja.Call) (any, error) {
			re, texts, err := pattern(c, 2)
			if err != nil {
				return nil, err
			}
			return goValue(re.Split(texts[1], -1)), nil
		}),
		"escape": jinja.Func(func(c *jinja.Call) (any, error) {
			if len(c.Args) != 1 {
				return nil, badCall(c, "escape takes a text")
			}
			return regexp.QuoteMeta(printed(c.Args[0])), nil
		}),
	}}
}

// groupReference is Python's \1 in a replacement.
var groupReference = regexp.MustCompile(`\\(\d)`)

// foundAll gives findall: whole matches, the one group, or tuples of groups.
func foundAll(re *regexp.Regexp, text string) *jinja.List {
	out := jinja.NewList()
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		switch len(m) {
		case 1:
			out.Append(m[0])
		case 2:
			out.Append(m[1])
		default:
			groups := make(jinja.Tuple, len(m)-1)
			for i, g := range m[1:] {
				groups[i] = g
			}
			out.Append(groups)
		}
	}
	return out
}

// found is a match of a pattern.
type found struct {
	re   *regexp.Regexp
	text string
	at   []int
}

// String gives the whole match.
func (f *found) String() string { return f.text[f.at[0]:f.at[1]] }

func (f *found) group(i int) any {
	if i < 0 || 2*i+1 >= len(f.at) || f.at[2*i] < 0 {
		return nil
	}
	return f.text[f.at[2*i]:f.at[2*i+1]]
}

// Attr gives group, groups, start and end.
func (f *found) Attr(name string) (any, bool) {
	switch name {
	case "group":
		return jinja.Func(func(c *jinja.Call) (any, error) {
			if len(c.Args) == 0 {
				return f.String(), nil
			}
			switch n := c.Args[0].(type) {
			case int64:
				if n < 0 || n > int64(f.re.NumSubexp()) {
					return nil, badCall(c, "the pattern has no group %d", n)
				}
				return f.group(int(n)), nil
			case string:
				if i := f.re.SubexpIndex(n); i > 0 {
					return f.group(i), nil
				}
			}
			return nil, badCall(c, "the pattern has no such group")
		}), true
	case "groups":
		return method(func() any {
			out := jinja.Tuple{}
			for i := 1; 2*i < len(f.at); i++ {
				out = append(out, f.group(i))
			}
			return out
		}), true
	case "start":
		return method(func() any { return int64(f.at[0]) }), true
	case "end":
		return method(func() any { return int64(f.at[1]) }), true
	}
	return nil, false
}
